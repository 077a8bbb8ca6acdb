"""Dockerfile, compose file, devcontainer and Binder: they can be read, and what they name exists and agrees."""

import json
import re
import stat
from pathlib import Path

import yaml

from bookkit.environment import OLDEST
from bookkit.hub import proxy
from ranklab.programs import PROGRAMS

ROOT = Path(__file__).parents[2]
CONTAINER, BINDER = ROOT / ".devcontainer", ROOT / ".binder"
DOCKERFILE = (CONTAINER / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((CONTAINER / "compose.yml").read_text(encoding="utf-8"))
SETTINGS = json.loads((CONTAINER / "devcontainer.json").read_text(encoding="utf-8"))
PYTHON = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text(encoding="utf-8"))
TESTED = next(step["with"]["python-version"] for step in PYTHON["jobs"]["test"]["steps"] if "with" in step)


def test_all_take_the_python_that_the_tests_run_on():
    assert re.search(r"^FROM python:(\S+)-slim", DOCKERFILE, re.M)[1] == TESTED
    assert (BINDER / "runtime.txt").read_text().strip() == f"python-{TESTED}"
    assert tuple(map(int, TESTED.split("."))) >= OLDEST


def test_what_they_call_are_verbs_of_the_makefile():
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    called = re.findall(r'\bmake"?,? "?([a-z]+)', DOCKERFILE.split("USER reader")[1] + SETTINGS["postCreateCommand"])
    assert called and set(called) <= verbs


def test_compose_and_devcontainer_build_that_dockerfile_from_the_top():
    build = COMPOSE["services"]["hub"]["build"]
    assert (CONTAINER / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).samefile(CONTAINER / "Dockerfile")
    assert (CONTAINER / SETTINGS["build"]["dockerfile"]).exists()
    assert (CONTAINER / SETTINGS["build"]["context"]).resolve() == ROOT


def test_what_the_host_has_built_stays_out_of_the_image():
    # Docker takes the file that is named as the Dockerfile and lies beside it.
    left_out = (CONTAINER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    built = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    assert {".venv", "_build", "__pycache__"} <= {line.removeprefix("**/") for line in left_out} & built


def test_the_hub_of_the_container_is_not_root_and_opens_no_port_to_the_network():
    assert "USER reader" in DOCKERFILE and SETTINGS["remoteUser"] == "reader"
    assert COMPOSE["services"]["hub"]["ports"] == ["127.0.0.1:8000:8000"]
    assert "--allow-root" not in DOCKERFILE


def test_the_image_has_node_for_the_proxy_and_what_cells_call():
    assert "nodejs npm" in DOCKERFILE and "trixie" in DOCKERFILE  # whose Node is 20
    assert '"node": ">=20"' in (Path(proxy.__file__).parent / "package.json").read_text(encoding="utf-8")
    wanted = (BINDER / "apt.txt").read_text().split()
    assert set(wanted) <= set(DOCKERFILE.split())
    assert set(wanted) <= {program.package for program in PROGRAMS}


def test_binder_installs_what_the_book_asks_for_and_nothing_else():
    (line,) = (BINDER / "requirements.txt").read_text().splitlines()
    assert (BINDER / line.removeprefix("-r ")).resolve() == ROOT / "requirements.txt"
    assert (BINDER / "postBuild").stat().st_mode & stat.S_IXUSR
