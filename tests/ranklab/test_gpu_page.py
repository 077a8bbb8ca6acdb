"""What the page *Run it on GPUs* quotes and accepts is what the helper says and accepts."""

import re
from pathlib import Path

import pytest

from ranklab import doctor
from ranklab.engines import devices
from ranklab.system import backends

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book" / "run-on-gpus.md").read_text(encoding="utf-8")


def test_the_quoted_sentences_are_what_one_card_makes_the_start_say(monkeypatch):
    said = []
    monkeypatch.setattr(devices, "visible_gpu_names", lambda: ["GPU-aa"])
    monkeypatch.setattr(devices, "tell", said.append)
    devices.choose_devices([4])
    devices.choose_devices([4], asked="nccl")
    assert re.findall(r"^> `(.*)`$", PAGE, re.M) == said


def test_two_cards_are_dealt_out_in_turn():
    from ranklab.system.gpus import own_gpu

    assert [own_gpu(rank, 4, 2, shared=True) for rank in range(4)] == [0, 1, 0, 1]


def test_the_table_of_versions_the_doctor_and_the_accepted_range_agree():
    setup = (ROOT / "book" / "setup.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+\.\d+)\.\d+ \|", setup.split("(tried-versions)=")[1], re.M)
    assert set(listed) == set(doctor.TESTED)
    assert f'"torch>={doctor.TESTED[0]},' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f"torch {version}" in PAGE for version in doctor.TESTED)


@pytest.mark.parametrize(
    "version, state, says",
    [
        ("2.13.0", doctor.OK, "2.13.0."),
        ("2.13.0+cpu", doctor.OK, "2.13.0+cpu."),
        ("2.14.0", doctor.WARNING, "2.14.0 is untested."),
        ("2.8.0", doctor.WARNING, "2.8.0 ran a selection of the helper's tests, and lacks names that some cells use."),
        ("2.11.0", doctor.WARNING, "2.11.0 is untested."),
    ],
)
def test_the_doctor_says_when_torch_is_untested(monkeypatch, version, state, says):
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda _: version)
    finding = doctor._torch()
    assert (finding.state, finding.said) == (state, says)


def test_what_an_older_gloo_prints_for_each_group_is_not_the_readers():
    line = "[Gloo] Rank 0 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3\n"
    assert backends.without_chatter(f"mine\n{line}{line}yours\n") == "mine\nyours\n"


def test_what_the_store_prints_without_a_name_server_is_not_the_readers():
    said = "[c10d] The hostname of the client socket cannot be retrieved. err=-3\n"
    words = f"[W1123 18:37:06.629102548 socket.cpp:207] {said}mine\n[W1123 18:37:06.6 other.cpp:1] yours\n"
    assert backends.without_chatter(words) == "mine\n[W1123 18:37:06.6 other.cpp:1] yours\n"
