# The verbs of this book. Each makes its environment first (.venv, from requirements.txt) and ends
# by saying where the result is.
#
#   PYTHON=python3.12   the interpreter that .venv is made with
#   VENV=path           an environment that exists already; it is used as it is
#   CH=path             a chapter: its file, with or without .ipynb, or its bare name
#   TORCH=2.11.0        the torch that drift compares with; the newest where not named
#   FRAMEWORKS=1        also install what the chapter on frameworks runs (requirements-frameworks.txt); once is enough
#   GPU=1               record the cells alone that need a GPU
#   T=path::name        a file of tests, or one of its tests
#   LAB=--allow-root    more words for JupyterLab
#   HUB="--names FILE"  more words for the hub; HUB=--help lists them

PYTHON ?= python3
VENV ?=
FRAMEWORKS ?=
GPU ?=
TORCH ?=
LAB ?=
HUB ?=

# Not every shell replaces the ~ of VENV=~/path.
ENVIRONMENT := $(if $(VENV),$(patsubst ~/%,$(HOME)/%,$(VENV)),.venv)
RUN := "$(ENVIRONMENT)/bin/python"

# A kernel or a rank starts in another folder, so the path to src is absolute.
export PYTHONPATH := $(CURDIR)/src$(if $(PYTHONPATH),:$(PYTHONPATH))
# Stored outputs are compared: nothing may depend on a terminal, a hash seed or another kernel's files.
export IPP_NONINTERACTIVE := 1
export PYTHONHASHSEED := 0
export JUPYTER_PREFER_ENV_PATH := 1
# A chapter starts some thirty processes, the tests thousands: each would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

TESTS := tests/bookkit tests/ranklab tests/faults tests/site # first what waits most
# .ci/run says until when; without that word nothing is left out.
UNTIL := -p bookkit.until
NBVAL := -p bookkit.needs $(UNTIL) -rs --nbval --nbval-current-env --nbval-cell-timeout=600 --nbval-kernel-startup-timeout=600
PYTEST := exec $(RUN) -m bookkit.leash pytest
# Each worker would import nbval.
UNIT := -p no:nbval $(UNTIL)
# A file's tests share what they start, so a file stays with one worker; a notebook is a file.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
# Markers follow from what a test starts: tests/starts.py.
QUICK := not ranks and not hosts and not site and not build

.DEFAULT_GOAL := help
.PHONY: help run test quick book slides lab hub record bench check mutate drift doctor archive clean environment

help: ## List the verbs.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: environment ## Execute all chapters, or CH=path, on this machine's ranks and build the site from what they print.
	@exec $(RUN) -m bookkit run $(CH)

test: environment ## Run the tests, then compare every chapter with its stored outputs; CH=path compares one chapter, T=path::name runs one file or test.
ifdef T
	@$(PYTEST) $(UNIT) "$(T)"
else
	@$(RUN) -m bookkit chapters $(CH) >/dev/null # a slip in a name is told now, not after the tests
ifndef CH
	@$(PYTEST) $(UNIT) $(PARALLEL) -m "not site" $(TESTS)
	@$(PYTEST) $(UNIT) -n auto --dist loadscope -m site tests/site # a browser's event loop runs on in its worker
endif
	@chapters="$$($(RUN) -m bookkit chapters $(CH))" && $(PYTEST) $(PARALLEL) $(NBVAL) $$chapters
	@echo "$(if $(BOOKKIT_UNTIL),What was begun in time has passed; what no time was left for is named above.,$(if $(CH),$(CH) printed what it stores.,All tests passed, and every chapter printed what it stores.))"
endif

quick: environment ## Run the tests that start no rank, no host, no browser and no chapter.
	@$(PYTEST) $(UNIT) -n auto --dist worksteal -q -m "$(QUICK)" $(TESTS)

book: environment ## Build the site from the stored outputs; no rank is started.
	@exec $(RUN) -m bookkit build

slides: environment ## Make slides and a printable sheet of all chapters, or CH=path, from their stored outputs.
	@exec $(RUN) -m bookkit.teaching $(CH)

lab: environment ## Open the book in JupyterLab.
	@echo "JupyterLab prints its address below; press Ctrl-C twice to stop it."
	@$(RUN) -m nbformat.sign book/*/*.ipynb >/dev/null # JupyterLab takes styles and folds from what is not trusted
	@unset IPP_NONINTERACTIVE; export JUPYTER_CONFIG_PATH="$(CURDIR)/src/bookkit/jupyter"; exec $(RUN) -m jupyterlab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/book $(LAB)

hub: environment ## Start a JupyterHub for a room of learners (instructors): HUB="--names names.txt --address 0.0.0.0".
	@unset IPP_NONINTERACTIVE; exec $(RUN) -m bookkit.hub $(HUB)

record: environment ## Re-execute all chapters, or CH=path, and store their outputs, with GPU=1 those alone that need a GPU (authors).
	@exec $(RUN) -m bookkit record $(if $(filter-out 0,$(GPU)),--gpu )$(CH)

bench: environment ## Measure the helper against torchrun, mp.spawn and stock ipyparallel.
	@exec $(RUN) -m bookkit.leash tests.benchmarks.run

check: environment ## Lint code and chapters, and look for leaks in chapters, files and built pages; with CH=path in that chapter.
	@exec $(RUN) -m bookkit check $(CH)

mutate: environment ## Change what the cells of CH=path do, one thing at a time, and list what nobody notices (authors; eight minutes).
	@$(if $(CH),,echo "Which chapter? make mutate CH=meeting-up" >&2; exit 2;) exec $(RUN) -m bookkit mutate $(CH)

drift: environment ## Compare all chapters, or CH=path, with another torch (TORCH=2.11.0), and write the page "Does it still hold?".
	@exec $(RUN) -m bookkit drift $(if $(TORCH),--torch "$(TORCH)" )$(CH)

doctor: environment ## Say whether this machine is ready for the book, and how to fix what is not.
	@exec $(RUN) -m ranklab doctor

archive: environment ## Pack the book for a room without a network: site, notebooks, packages and their sums in one file.
	@exec $(RUN) -m bookkit archive $(if $(filter-out 0,$(FRAMEWORKS)),--add requirements-frameworks.txt)

clean: ## Remove what was built and the caches; with ALL=1 also .venv.
	@rm -rf _build .pytest_cache .ruff_cache src/*.egg-info
	@find src tests book -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@find book -name .ipynb_checkpoints -prune -exec rm -rf {} + 2>/dev/null || true
	$(if $(ALL),@rm -rf .venv)
	@echo "Removed _build and the caches$(if $(ALL), and .venv)."

environment:
	@$(PYTHON) src/bookkit/environment.py $(if $(VENV),--existing) $(if $(filter-out 0,$(FRAMEWORKS)),--add requirements-frameworks.txt) $(if $(filter hub,$(MAKECMDGOALS)),--add requirements-hub.txt) "$(ENVIRONMENT)"
