"""The graders of the chapter *checkpoints*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check

SAMPLER = """
class Resuming:
    def __init__(self):
        self.epoch, self.seen = 0, 0
    def start(self, epoch, seen=0):
        self.epoch, self.seen = epoch, seen
    def __iter__(self):
        draw = torch.Generator().manual_seed(seed + self.epoch)
        order = torch.randperm(length, generator=draw).tolist()
        end = self.seen + len(self) * ranks
        return iter((order * (ranks + 1))[self.seen + rank : end : ranks])
    def __len__(self):
        return -(-(length - self.seen) // ranks)
return Resuming()
"""
SAVE = """
import os
with open(f"{path}.new", "wb") as file:
    torch.save(state, file)
os.replace(f"{path}.new", path)
"""
END = "end = self.seen - (self.seen - length) // ranks * ranks"
LOST = """
start = resumed[0]["step"]
then, now = never[start], resumed[0]
if now["rate"] != then["rate"]:
    return "scheduler"
if now["rows"] != then["rows"]:
    return "batch" if now["rows"] == never[start - start % 8]["rows"] else "epoch"
if now["dropped"] != then["dropped"]:
    return "generators"
if now["loss"] != then["loss"]:
    return "model"
losses = [entry["loss"] for entry in resumed]
return "nothing" if losses == [entry["loss"] for entry in never[start:]] else "optimizer"
"""


@pytest.fixture
def resumed(graded):
    return partial(graded, check.resuming_sampler, "length, ranks, rank, seed=0")


@pytest.fixture
def saved(graded):
    return partial(graded, check.surviving_save, "state, path")


@pytest.fixture
def named(graded):
    return partial(graded, check.lost_item, "never, resumed")


def test_a_sampler_that_skips_in_the_shared_order_is_right(resumed):
    told = "Correct: 24 resumes on 1 to 4 ranks, no row is left out, and only padding repeats one."
    assert resumed(SAMPLER) == told


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "(order * (ranks + 1))[self.seen + rank : end : ranks]",
            "order[rank::ranks][self.seen:]",
            "With 12 rows on 2 ranks, start(1, 4): rank 0: your rows are [",
        ),
        (
            "(order * (ranks + 1))[self.seen + rank : end : ranks]",
            "order[rank::ranks][self.seen:]",
            "You skip that many rows on each rank",
        ),
        ("self.epoch, self.seen = epoch, seen", "self.epoch = epoch", "Nothing was skipped."),
        (
            "self.epoch, self.seen = epoch, seen",
            "self.seen = seen",
            "The order ignores epoch: seed the generator with seed + epoch.",
        ),
        ("seed + self.epoch", "self.epoch", "The order ignores seed: seed the generator with seed + epoch."),
        (
            "(order * (ranks + 1))[self.seen + rank : end : ranks]",
            "order[self.seen + rank :: ranks]",
            "Some ranks are a row short: repeat rows from the start of the order.",
        ),
        ("self.seen + rank : end : ranks", "self.seen :", "your rows are ["),
        ("length - self.seen", "length", "your rows are ["),
        (
            "self.epoch, self.seen = epoch, seen",
            "self.epoch, self.seen = epoch, max(seen, self.seen)",
            "the next epoch still leaves out rows of this one.",
        ),
        (
            "torch.Generator().manual_seed(seed + self.epoch)",
            "torch.manual_seed(seed + self.epoch)",
            "the rows are right, but your class drew from torch's global generator",
        ),
        ("def start(self, epoch, seen=0)", "def set_epoch(self, epoch, seen=0)", "your class raised AttributeError"),
    ],
)
def test_a_wrong_sampler_is_told_why(resumed, old, new, sentence):
    told = resumed(changed(SAMPLER, old, new))
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_a_length_that_forgets_what_was_seen_is_told(resumed):
    body = changed(SAMPLER, "end = self.seen + len(self) * ranks", END)
    told = resumed(changed(body, "return -(-(length - self.seen) // ranks)", "return -(-length // ranks)"))
    assert "start(1, 4): rank 0: the rows are right, but len() returns 12 instead of 8." in told


@pytest.mark.parametrize(
    "body",
    [
        SAVE,
        changed(SAVE, "    torch.save(state, file)\n", "    torch.save(state, file)\n    os.fsync(file.fileno())\n"),
        'import os\ntorch.save(state, path + "~")\nos.rename(path + "~", path)',
    ],
)
def test_a_save_beside_the_old_file_survives(saved, body):
    assert saved(body).endswith("kills, and each left a snapshot that loads.")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "torch.save(state, path)",
            "Killed while it writes a file: the file holds half of the new snapshot, and the old one is lost.",
        ),
        (
            changed(SAVE, "os.replace(f", "os.remove(path)\nos.rename(f"),
            "Killed before os.rename: the file is gone, and the old one is lost.",
        ),
        (
            changed(SAVE, "os.replace(f", "import shutil\nshutil.copy(f"),
            "Killed while it writes a file: the file holds half of the new snapshot",
        ),
        ('import os\nos.rename(path, path + ".old")\ntorch.save(state, path)', "the old one is lost."),
        (changed(SAVE, '"wb"', '"xb"'), "After a kill while it writes a file, the next save raised FileExistsError"),
        (changed(SAVE, 'os.replace(f"{path}.new", path)', ""), "Without any kill, the file holds the old state still."),
        ("state.save(path)", "your save raised AttributeError"),
    ],
)
def test_a_save_that_a_kill_destroys_is_told_where(saved, body, sentence):
    told = saved(body)
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_every_lost_item_is_named(named):
    assert named(LOST) == "Correct: 14 of 14 found."


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            'if now["rate"] != then["rate"]:',
            'if now["loss"] != then["loss"]:\n    return "model"\nif now["rate"] != then["rate"]:',
            "the epoch lost: your answer is 'model'. In the first step after the stop, these are different: rows,",
        ),
        (
            '"batch" if now["rows"] == never[start - start % 8]["rows"] else "epoch"',
            '"epoch"',
            "the batch lost: your answer is 'epoch'.",
        ),
        (
            'return "nothing" if losses == [entry["loss"] for entry in never[start:]] else "optimizer"',
            'return "nothing"',
            "the optimizer lost: your answer is 'nothing'. The first step after the stop is equal: look at the later",
        ),
        (
            'if now["dropped"] != then["dropped"]:\n    return "generators"\n',
            "",
            "the generators lost: your answer is 'model'.",
        ),
        ("never[start],", "never[0],", "your answer is"),
        ('never[start - start % 8]["rows"]', 'never[start - start % 8]["row"]', "your answer raised KeyError"),
    ],
)
def test_a_wrong_name_is_told_what_to_look_at(named, old, new, sentence):
    told = named(changed(LOST, old, new))
    assert told.startswith("Not yet. Stopped after step ")
    assert sentence in told
