"""Make the environment that every make verb runs in, or say why it cannot be made.

The only module that runs outside the environment: standard library only, and in a Python old
enough to be told that it is too old.
"""

import argparse
import hashlib
import os
import subprocess
import sys

OLDEST = (3, 11)
WANTED = ("requirements.txt", "pyproject.toml")
STAMP = "ranklab-stamp"


def main(arguments=None):
    """Check an existing environment (``--existing``) or make and refresh our own."""
    parser = argparse.ArgumentParser(prog="environment.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where the environment is or shall be")
    parser.add_argument("--existing", action="store_true", help="use it as it is, install nothing")
    options = parser.parse_args(arguments)
    if options.existing:
        return check_existing(options.folder)
    return refresh(options.folder)


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
    print("{} {} from requirements.txt".format("Updating" if keep else "Making (this takes minutes)", folder))
    sys.stdout.flush()
    if keep:
        os.remove(stamp)  # an update that is interrupted counts as unfinished
    else:
        venv.create(folder, with_pip=True, clear=True)
    for what in (["-r", "requirements.txt"], ["--no-deps", "-e", "."]):
        status = pip_install(python_of(folder), what)
        if status:
            return status
    with open(stamp, "w") as file:
        file.write(fingerprint())
    print(f"The environment is ready: {folder}")
    return 0


def check_existing(folder):
    """Say whether ``folder`` can be used as it is; never install into it."""
    python = python_of(folder)
    if not os.path.exists(python):
        return refuse(f"VENV={folder} holds no bin/python: name the folder of a virtual environment")
    probe = f"import sys; sys.exit(sys.version_info < {OLDEST!r})"
    if subprocess.call([python, "-c", probe]):
        return refuse("The Python in VENV={} is older than {}.{}".format(folder, *OLDEST))
    return 0


def fingerprint():
    """What the environment is made from: the interpreter, and a digest of the wanted packages."""
    digest = hashlib.sha256()
    for name in WANTED:
        with open(name, "rb") as file:
            digest.update(file.read())
    return sys.version + "\n" + digest.hexdigest()


def pip_install(python, what):
    """Run pip with its story on one line; show it whole where it fails."""
    command = [python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    pip = subprocess.Popen(
        [*command, "--progress-bar", "off", *what],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    story = []
    for line in pip.stdout:
        story.append(line)
        show(line.strip())
    status = pip.wait()
    show("")
    if status:
        sys.stdout.writelines(story)
        return refuse("pip could not install {}; its last lines say why".format(" ".join(what)))
    return 0


def show(line):
    """One moving line on a terminal; elsewhere a plain line for each package."""
    if sys.stdout.isatty():
        sys.stdout.write("\r\033[K" + line[:76])
    elif line.startswith(("Collecting", "Downloading", "Installing", "Successfully")):
        sys.stdout.write(line[:160] + "\n")
    sys.stdout.flush()


def python_of(folder):
    """The interpreter inside an environment."""
    return os.path.join(folder, "bin", "python")


def read(path):
    """The text of a file, empty where there is none."""
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()


def refuse(sentence):
    """Say on stderr why we stop, and return the exit status that says it to make."""
    sys.stderr.write(sentence + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
