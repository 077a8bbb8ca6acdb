"""The archive for a room without a network: what is in it, that its sums are right, and that pip then asks nobody."""

import hashlib
import subprocess
import tarfile

import pytest

from bookkit import archive, environment
from bookkit.errors import BookError


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "clone"
    (folder / "book").mkdir(parents=True)
    (folder / "book" / "index.md").write_text("# Ranks\n")
    (folder / "secret.txt").write_text("not of the book\n")
    for command in (["init", "--quiet"], ["add", "book/index.md"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def test_only_what_git_knows_is_given_away(clone):
    assert [path.as_posix() for path in archive.tracked(clone)] == ["book/index.md"]
    (clone / "book" / "index.md").unlink()  # deleted and not yet committed
    assert archive.tracked(clone) == []


def test_where_there_is_no_clone_a_sentence_says_so(tmp_path):
    with pytest.raises(BookError, match="made in a clone"):
        archive.tracked(tmp_path)


def test_everything_has_its_sum_and_nobody_s_name(tmp_path):
    files = {"book/index.md": tmp_path / "index.md", "wheels/torch.whl": tmp_path / "torch.whl"}
    for path, file in files.items():
        file.write_text(path)
    made = archive.pack(files, tmp_path / "book.tar")
    with tarfile.open(made) as tar:
        held = {entry.name.removeprefix("rank-by-rank/"): tar.extractfile(entry).read() for entry in tar}
        assert {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in tar} == {(0, 0, "", "")}
    sums = dict(reversed(line.split("  ")) for line in held.pop("SHA256SUMS").decode().splitlines())
    assert sums == {path: hashlib.sha256(content).hexdigest() for path, content in held.items()}
    assert set(held) == set(files)
    digest, name = (tmp_path / "book.tar.sha256").read_text().split()
    assert (name, digest) == ("book.tar", hashlib.sha256(made.read_bytes()).hexdigest())


@pytest.mark.parametrize(
    ("there", "asked"), [(True, ["--no-index", "--find-links", "wheels"]), (False, [])], ids=["archive", "clone"]
)
def test_packages_that_were_brought_are_taken_and_no_network_is_asked(tmp_path, monkeypatch, there, asked):
    monkeypatch.chdir(tmp_path)
    commands = []
    monkeypatch.setattr(environment.subprocess, "call", lambda command: commands.append(command) or 0)
    if there:
        (tmp_path / "wheels").mkdir()
    assert environment.pip_install("python", ["-e", "."]) == 0
    assert commands[0][-2:] == ["-e", "."]
    assert [word for word in commands[0] if word in ("--no-index", "--find-links", "wheels")] == asked
