"""Make the environment that every make verb runs in, or say why it cannot be made.

The only module that runs outside the environment: standard library only, and in a Python old
enough to be told that it is too old.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys

OLDEST = (3, 11)
REQUIREMENTS = "requirements.txt"
WANTED = (REQUIREMENTS, "pyproject.toml")
STAMP = "ranklab-stamp"
WHEELS = "wheels"  # an archive for a room without a network brings its packages (archive.py)
ADDED = "ranklab-added"  # beside the stamp: which further files of requirements are installed, and of what content
# Packages whose module has another name than theirs with an underscore for each hyphen.
MODULES = {
    "scikit-learn": "sklearn",
    "PyYAML": "yaml",
    "pytest-xdist": "xdist",
    "beautifulsoup4": "bs4",
    "pillow": "PIL",
}
# Where these are missing, their tests are skipped or the verb itself says so.
DISPENSABLE = {"playwright", "ruff", "mypy"}
# What an existing interpreter is asked: its version, and which of these modules it lacks. Any Python can read it.
PROBE = """
import sys
print("%d.%d" % sys.version_info[:2])
if sys.version_info >= (3, 4):
    import importlib.util
    print(" ".join(name for name in sys.argv[1:] if not importlib.util.find_spec(name)))
"""


def main(arguments=None):
    """Check an existing environment (``--existing``) or make and refresh our own."""
    parser = argparse.ArgumentParser(prog="environment.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where the environment is or shall be")
    parser.add_argument("--existing", action="store_true", help="use it as it is, install nothing")
    parser.add_argument("--add", action="append", default=[], metavar="FILE", help="install what FILE pins, too")
    options = parser.parse_args(arguments)
    try:
        if options.existing:
            return check_existing(options.folder, options.add)
        return refresh(options.folder) or add(options.folder, options.add)
    except KeyboardInterrupt:
        return refuse("Stopped. The next make begins again.", 130)
    except (OSError, subprocess.CalledProcessError) as error:
        return refuse(
            f"The environment {options.folder} could not be made: {error}. It needs a folder that you may write "
            "in; VENV=path names an environment that exists already"
        )


def refresh(folder):
    """Make ``folder`` or bring it up to date; a stamp in it says what it was made from."""
    if sys.version_info < OLDEST:
        return refuse(
            "This is Python {}.{}; the book needs Python {}.{} or newer. "
            "Name one that you have, for example: make run PYTHON=python3.12".format(
                *(tuple(sys.version_info[:2]) + OLDEST)
            )
        )
    stamp = os.path.join(folder, STAMP)
    made_from = read(stamp)
    if made_from == fingerprint() and os.path.exists(python_of(folder)):
        return 0
    try:
        import ensurepip  # noqa: F401 — Debian splits it off, and venv then fails half-way
        import venv
    except ImportError:
        return refuse("This Python has no venv module. On Debian and Ubuntu: sudo apt-get install python3-venv")
    # Only a finished environment of this very interpreter is worth keeping: pip then adds what changed.
    keep = made_from.startswith(sys.version + "\n") and os.path.exists(python_of(folder))
    if (
        not keep and os.path.islink(folder) and os.path.isdir(folder) and os.listdir(folder)
    ):  # to begin anew would empty what it leads to
        return refuse(
            f"{folder} is a link to an unfinished environment, or to one of another Python. "
            f"Remove the link, or what it leads to. (VENV={folder} uses an environment as it is.)"
        )
    print("{} {} from requirements.txt".format("Updating" if keep else "Making (this takes minutes)", folder))
    sys.stdout.flush()
    if keep:
        os.remove(stamp)  # an update that is interrupted counts as unfinished
    else:
        # Links, as `python -m venv` makes them: a copied interpreter may not find its libraries.
        venv.create(folder, with_pip=True, clear=True, symlinks=os.name != "nt")
    for what in (["-r", REQUIREMENTS], ["--no-deps", "-e", "."]):
        status = pip_install(python_of(folder), what)
        if status:
            return status
    with open(stamp, "w") as file:
        file.write(fingerprint())
    print(f"The environment is ready: {folder}")
    return 0


def add(folder, files):
    """Bring further files of requirements into an environment that is up to date; what was added once stays.

    A file is installed together with requirements.txt, so that it cannot move what is pinned there.
    """
    for name in files:
        if not os.path.exists(name):
            return refuse(f"There is no {name} here")
    note = os.path.join(folder, ADDED)
    there = {name: digest for name, digest in map(str.split, read(note).splitlines()) if os.path.exists(name)}
    wanted = {name: hashlib.sha256(read(name).encode()).hexdigest() for name in [*there, *files]}
    if wanted == there:
        return 0
    print("Adding to {} what {} asks for".format(folder, " and ".join(sorted(wanted))))
    sys.stdout.flush()
    what = [word for name in [REQUIREMENTS, *sorted(wanted)] for word in ("-r", name)]
    status = pip_install(python_of(folder), what)
    if not status:
        with open(note, "w") as file:
            file.writelines("{} {}\n".format(*entry) for entry in sorted(wanted.items()))
    return status


def check_existing(folder, files=()):
    """Say whether ``folder`` can be used as it is, with what further files of requirements ask for; install nothing."""
    python = python_of(folder)
    if not os.path.exists(python):
        return refuse(f"VENV={folder} holds no bin/python: name the folder of a virtual environment")
    asked = [REQUIREMENTS, *files]
    packages = {MODULES.get(name, name.replace("-", "_")): name for file in asked for name in requirements(file)}
    try:
        answer = subprocess.check_output([python, "-c", PROBE, *packages], universal_newlines=True)
        version, missing = answer.split("\n")[:2]
        too_old = tuple(map(int, version.split("."))) < OLDEST
    except subprocess.CalledProcessError as error:
        return refuse(f"{python} does not work as a Python: it ended with status {error.returncode}")
    except (OSError, ValueError) as error:
        return refuse(f"{python} does not work as a Python: {error}")
    if too_old:
        return refuse(
            "The Python in VENV={} is {}; the book needs Python {}.{} or newer".format(folder, version, *OLDEST)
        )
    lacking = [packages[module] for module in missing.split()]
    if set(lacking) - DISPENSABLE:
        return refuse(
            "VENV={} lacks {}: `{} -m pip install -r {}` adds them (and puts torch at {})".format(
                folder, ", ".join(lacking), python, " -r ".join(asked), requirements()["torch"]
            )
        )
    return 0


def requirements(file=REQUIREMENTS):
    """The packages that a file of requirements asks for, as ``{name: version}``."""
    return dict(re.findall(r"^([\w-]+)==(\S+)", read(file), re.M))


def fingerprint():
    """What the environment is made from: the interpreter, and a digest of the wanted packages."""
    digest = hashlib.sha256()
    for name in WANTED:
        with open(name, "rb") as file:
            digest.update(file.read())
    return sys.version + "\n" + digest.hexdigest()


def pip_install(python, what):
    """Run pip, which shows its own progress."""
    command = [python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    if os.path.isdir(WHEELS):
        command += ["--no-index", "--find-links", WHEELS]
    if subprocess.call(command + what):
        return refuse("pip could not install {}; its last lines say why".format(" ".join(what)))
    return 0


def python_of(folder):
    """The interpreter inside an environment."""
    return os.path.join(folder, "bin", "python")


def read(path):
    """The text of a file, empty where there is none."""
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()


def refuse(sentence, status=1):
    """Say on stderr why we stop, after all that stdout has to say; return the exit status for make."""
    sys.stdout.flush()
    sys.stderr.write(sentence + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
