"""An interrupt ends the reader's code; it leaves no half of a library behind."""

import os
import subprocess
import sys
import textwrap

import pytest

# A package that is installed, and modules of the reader's own: each is interrupted while it is imported.
PRESS = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\n"
FILES = {
    "site-packages/slow/__init__.py": f"import slow.part\n{PRESS}time.sleep(0.3)\nWHOLE = slow.part.WHOLE\n",
    "site-packages/slow/part.py": "WHOLE = True\n",
    "own/__init__.py": "import own.part\nimport endless\n",
    "own/part.py": "WHOLE = True\n",
    "endless.py": f"import os\nif 'ENDLESS' in os.environ:\n{textwrap.indent(PRESS, '    ')}    time.sleep(90)\n",
}
PROGRAM = """
    import os, signal, sys, threading, time
    from ranklab.rank import interrupt

    class Kernel:
        pass

    kernel = Kernel()
    interrupt.guard(kernel)

    def answer(cell):
        '''Run a cell as a rank does.'''
        try:
            exec(compile(cell, "/tmp/ipykernel_1/2.py", "exec"), {})  # bookkit: planted
            print("came to its end")
        except KeyboardInterrupt:
            print("interrupted")
        finally:
            kernel.post_handler_hook()
"""


@pytest.fixture
def run(tmp_path):
    """Run a program in which those modules can be imported; return what it printed."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = os.pathsep.join([str(tmp_path), str(tmp_path / "site-packages"), *sys.path])

    def run(program, **environment):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM) + textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "PYTHONPATH": found, **environment},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_an_interrupt_waits_until_a_library_is_imported(run):
    told = run("""
        answer("import slow, time; time.sleep(90)")
        print(sys.modules["slow"].WHOLE)
    """)
    assert told == ["interrupted", "True"]


def test_an_interrupt_that_waited_is_not_for_the_next_message(run):
    told = run("""
        answer("import slow")
        answer("import time; [time.sleep(0.02) for _ in range(20)]")
    """)
    assert told == ["came to its end", "came to its end"]


def test_a_module_of_the_readers_own_is_interrupted_and_imported_afresh(run):
    """Where its parts were not forgotten: module 'own' has no attribute 'part'."""
    told = run(
        """
        answer("import own")
        os.environ.pop("ENDLESS")
        import own
        print(own.part.WHOLE)
        """,
        ENDLESS="yes",
    )
    assert told == ["interrupted", "True"]


def test_nothing_else_than_the_readers_code_is_interrupted(run):
    assert run("os.kill(os.getpid(), signal.SIGINT); print('undisturbed')") == ["undisturbed"]
