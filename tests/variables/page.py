"""The page, written from the catalogue."""

import re
from pathlib import Path

from tests.messages.page import code, place, torch_version

from .catalogue import GROUPS, VARIABLES
from .entry import Group, Reader, Variable

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "book/environment-variables.md"
COMPARE = ROOT / "book/launching/scripts/same_environment.py"
NEEDS = (  # what somebody wants, and the variables that help, the first one first
    (
        "A job hangs, and you want to know where",
        "TORCH_FR_BUFFER_SIZE TORCH_DISTRIBUTED_DEBUG TORCH_NCCL_DUMP_ON_TIMEOUT",
    ),
    (
        "The ranks do not find one another",
        "MASTER_ADDR MASTER_PORT GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME TORCH_CPP_LOG_LEVEL",
    ),
    ("NCCL fails, and its message says little", "NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE"),
    ("You suspect a cable, a switch or a driver", "NCCL_P2P_DISABLE NCCL_IB_DISABLE NCCL_SHM_DISABLE"),
    ("A CUDA error is reported at the wrong line", "CUDA_LAUNCH_BLOCKING"),
    ("The processes slow each other down", "OMP_NUM_THREADS MKL_NUM_THREADS"),
    ("Two ranks, or two runs, compute different numbers", "PYTHONHASHSEED OMP_NUM_THREADS CUBLAS_WORKSPACE_CONFIG"),
    ("The GPU's memory is full of holes", "PYTORCH_ALLOC_CONF"),
    ("A program sees the wrong GPU", "CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER LOCAL_RANK"),
    (
        "torchrun starts again and again, or not at all",
        "PET_MAX_RESTARTS TORCHELASTIC_ERROR_FILE TORCH_DISABLE_SHARE_RDZV_TCP_STORE",
    ),
)
OPENING = """\
<!-- Written by `python -m tests.variables` from tests/variables/catalogue: change it there. -->
# Environment variables

It is night, the job hangs, and somebody in a forum writes: *set this variable*. Look the variable up here before you
set it. Each entry says what the variable does, what its default is, and who reads it. It also says what happens when
two ranks have different values, because that is how a cluster breaks most quietly.

{{.rl-find .rl-variables}}
On the site you can paste a name, or your whole `export` line, into the field above. The search of the site and of your
browser find the names as well.

## Before you set one

1. **No variable helps a job that hangs already.** Its processes have read their environment. Look at the job as it is,
   with the tools of {{doc}}`/book/breaking/hangs`, and set variables for the next run.
2. **Set it before the process starts.** torch reads several variables while it is imported, and OpenMP reads its own
   when its library is loaded. A line `os.environ[…] = …` below `import torch` comes too late for those.
3. **Set it on every node.** An `export` in your shell does not reach the other machines by itself. `torchrun` gives its
   whole environment to the processes of its own node, and to no others.
4. **Take it out again.** NVIDIA's guide says that variables for debugging should not stay set in production. A
   forgotten `NCCL_P2P_DISABLE=1` costs speed in every job that follows.

For the next run of a job that hangs, set these in the environment of every process. The first makes the store and its
sockets say how they connect. The second compares every collective on all ranks, which costs time. The third makes NCCL
say which networks and rings it uses.

```bash
export TORCH_CPP_LOG_LEVEL=INFO
export TORCH_DISTRIBUTED_DEBUG=DETAIL
export NCCL_DEBUG=INFO
```

The flight recorder needs no line here, because it is on by default in torch {torch}: see
[`TORCH_FR_BUFFER_SIZE`](#env-torch-fr-buffer-size).

What do you want to know, or to fix?

{needs}

## Do all ranks have the same environment?

This program lists the variables in which the ranks differ. Run it as you run your job: with the same launcher, on the
same nodes.

```python
{compare}```

With `OMP_NUM_THREADS=1` on one rank and `OMP_NUM_THREADS=2` on the other it prints:

```text
{compared}
```

If the ranks do not even meet, write the environment of each node into a file with `env | sort`, and compare the files
with `diff`.

**Where the entries come from.** This page has {all} variables. For {installed} of them, a test of this book finds the
place in the installed torch {torch}, a build for CPUs: the line of Python, the words of a C++ header, or the name in a
library. The test fails when the name goes, or when a default in Python source changes. For {ours} more it finds the
place in `ranklab`. The other {guides} belong to NCCL, CUDA, Slurm and Python. Their entries name a guide or a source
file, and say *not found in this build* if the test has looked for the name in vain.

Some defaults stand only in C++ files that no installation contains. They were read in a copy of pytorch's repository
that need not be exactly this release, and no test compares them. The outputs were printed by real processes on a CPU
with gloo, {tried} programs in all. An answer without an output was not run: it follows from the source or the guide
that the entry names. Nothing on this page was run on a GPU, except for what a linked chapter shows.
"""


def link(name: str) -> str:
    """A variable as a link to its entry."""
    variable = next(variable for variable in VARIABLES if variable.name == name)
    return f"[`{name}`](#{variable.label})"


def where(reader: Reader) -> str:
    """One reader as words."""
    if reader.kind == "guide":
        return f"[{reader.symbol}]({reader.path})"
    if reader.kind == "repository":
        return f"pytorch's `{reader.path.removeprefix('pytorch: ')}` (`{reader.symbol}`)"
    quoted = reader.symbol if reader.kind == "library" else f"`{reader.symbol}`"
    symbol = f" ({quoted})" if reader.symbol else ""
    return f"`{reader.path}`{symbol}"


def verb(reader: Reader) -> str:
    """What a reader does with the name."""
    if reader.kind in ("guide", "repository"):
        return "Source:"
    if reader.named or re.match(r"[A-Z_]+ = ", reader.code):  # a constant that carries the name
        return "Named in"
    return "Set by" if reader.sets else "Read by"


def origin(variable: Variable) -> str:
    """Who reads it, a few sentences."""
    said = []
    for does in ("Read by", "Set by", "Named in", "Source:"):
        if places := [where(reader) for reader in variable.readers if verb(reader) == does]:
            said.append(f"{does} {(', ' if does == 'Source:' else ' and ').join(places)}.")
    if not variable.installed and not variable.ours:
        said.append("Not found in this build of torch.")
    if variable.since:
        said.append(f"Since {variable.since}.")
    if variable.by:
        module, _, name = variable.by.partition(".")
        said.append(f"Run by `tests/variables/programs/{module}.py`, `{name}`.")
    if variable.see:
        said.append(f"In this book: {place(variable.see)}.")
    return " ".join(said)


def shown(text: str) -> list[str]:
    """An output as a block, or nothing."""
    return [f"```text\n{text}\n```"] if text else []


def entry(variable: Variable) -> str:
    """One variable as Markdown."""
    parts = [f"({variable.label})=\n### {code(variable.name)}", variable.what, f"**Default.** {variable.default}"]
    parts += [f"**If two ranks differ.** {variable.differ}", *shown(variable.shows)]
    parts.append("{.rl-origin}\n" + origin(variable))
    return "\n\n".join(parts)


def group(group: Group) -> str:
    """One group as Markdown."""
    return "\n\n".join([f"## {group.title}", group.opening, *shown(group.shows), *map(entry, group.variables)])


def program(path: Path) -> str:
    """A program without what it says about itself."""
    return re.sub(r'\A""".*?"""\n+', "", path.read_text(encoding="utf-8"), flags=re.S)


def page() -> str:
    """The whole page."""
    installed = sum(variable.installed for variable in VARIABLES)
    ours = sum(variable.ours and not variable.installed for variable in VARIABLES)
    opening = OPENING.format(
        all=len(VARIABLES),
        installed=installed,
        ours=ours,
        guides=len(VARIABLES) - installed - ours,
        tried=len({each.by for each in (*VARIABLES, *GROUPS) if each.by} | {"amounts.compared"}),
        torch=torch_version(),
        needs="\n".join(f"* {need}: {', '.join(map(link, names.split()))}" for need, names in NEEDS),
        compare=program(COMPARE),
        compared=COMPARED,
    )
    return "\n".join([opening, *("\n" + group(each) + "\n" for each in GROUPS)]).rstrip("\n") + "\n"


COMPARED = "OMP_NUM_THREADS ['1', '2']"


def write() -> None:
    """Write the page and say where it is."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}: {len(VARIABLES)} variables.")
