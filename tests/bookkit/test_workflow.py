"""The workflow file: it can be read, its commands are the README's, and it writes only where it publishes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text(encoding="utf-8"))
JOBS = WORKFLOW["jobs"]


def commands(job):
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_its_commands_are_those_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    said = set(re.findall(r"`(make [a-z]+|\.ci/run)", readme)) | set(re.findall(r"^\$ (make [a-z]+)", readme, re.M))
    assert [run for run in commands("test") + commands("site") if run not in said] == []
    assert ".ci/run" in commands("test") and "make book" in commands("site") and "make drift" in commands("site")


def test_once_a_week_the_newest_torch_is_tried():
    assert WORKFLOW[True]["schedule"], "YAML reads the word on as true"
    (step,) = (step for step in JOBS["site"]["steps"] if step.get("run") == "make drift")
    assert "schedule" in step["if"]


def test_only_what_publishes_may_write_and_it_waits_for_the_tests():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert [name for name, job in JOBS.items() if "permissions" in job] == ["publish"]
    assert set(JOBS["publish"]["needs"]) == {"test", "site"}
    assert "pull_request" in JOBS["publish"]["if"]


@pytest.fixture
def pages(tmp_path):
    """A forge without gh-pages yet, and what the step that publishes does to it."""
    if not shutil.which("git"):
        pytest.skip("There is no git on this machine.")

    def git(*words, where="work"):
        done = subprocess.run(["git", *words], cwd=tmp_path / where, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "forge").mkdir()
    git("init", "--quiet", "--bare", where="forge")

    def publish(kind, name, text):
        work = tmp_path / f"work-{len(list(tmp_path.iterdir()))}"
        html = work / "built" / "_build" / "book" / "html"
        work.mkdir()
        git("init", "--quiet", where=work.name)
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-qm", "start", where=work.name)
        git("remote", "add", "origin", str(tmp_path / "forge"), where=work.name)
        html.mkdir(parents=True)
        (html / "index.html").write_text(text)
        (run,) = commands("publish")
        environment = {"PATH": "/usr/bin:/bin", "GITHUB_REF_TYPE": kind, "GITHUB_REF_NAME": name, "GITHUB_SHA": "abc"}
        done = subprocess.run(["bash", "-e", "-c", run], cwd=work, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    publish.files = lambda: git("ls-tree", "-r", "--name-only", "gh-pages", where="forge").split()
    publish.text = lambda name: git("show", f"gh-pages:{name}", where="forge")
    return publish


def test_a_release_keeps_a_folder_of_its_own_while_the_top_goes_on(pages):
    pages("branch", "main", "one")
    assert pages.files() == [".nojekyll", "index.html"]
    pages("tag", "v0.1.0", "release")
    pages("branch", "main", "two")
    assert pages.files() == [".nojekyll", "index.html", "v0.1.0/index.html"]
    assert (pages.text("index.html"), pages.text("v0.1.0/index.html")) == ("two", "release")
    pages("branch", "main", "two")  # nothing is new, and that is no failure
