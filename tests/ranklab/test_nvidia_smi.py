"""What nvidia-smi prints, read into data; the texts are its own, of machines with 0, 1, 2 and 8 GPUs."""

import pytest
from nvidia_smi_texts import ALL_NVLINK, CUT, ONE, PAIRS, TWO_PIX, TWO_SYS

from ranklab.system import nvidia_smi
from ranklab.system.nvidia_smi import Card, User, neighbours, read_cards, read_users, read_ways, tell_ways


@pytest.mark.parametrize(
    ("listing", "cards"),
    [
        ("", []),
        ("No devices were found\n", []),
        ("GPU 0: NVIDIA H200 (UUID: GPU-a)\n", [Card("GPU-a")]),
        (CUT, [Card("GPU-a", ("MIG-1", "MIG-2")), Card("GPU-b")]),
        ("".join(f"GPU {n}: X (UUID: GPU-{n})\n" for n in range(8)), [Card(f"GPU-{n}") for n in range(8)]),
    ],
    ids=["none", "a driver without GPUs", "one", "MIG", "eight"],
)
def test_gpus_and_their_parts(listing, cards):
    assert read_cards(listing) == cards


def test_who_uses_gpus_and_how_much_of_them():
    assert read_users("") == []
    assert read_users("No running processes found\n[Not Supported]\n") == []
    assert read_users("12, 500\n13, [N/A]\n12, 20\n") == [User(12, 520), User(13, 0)]


@pytest.mark.parametrize(
    ("text", "shown", "told"),
    [
        (ALL_NVLINK, range(8), "each pair is joined by 18 NVLinks (NV18)."),
        (ALL_NVLINK, [2, 5], "they are joined by 18 NVLinks (NV18)."),
        (TWO_PIX, range(2), "they are joined through one PCIe switch (PIX)."),
        (TWO_SYS, range(2), "they are joined between processors (SYS)."),
        (PAIRS, range(4), "2 pairs by 4 NVLinks (NV4); 4 pairs between processors (SYS)."),
        (PAIRS, [0, 1, 2], "1 pair by 4 NVLinks (NV4); 2 pairs between processors (SYS)."),
        (TWO_PIX.replace("PIX", "NEW"), range(2), "they are joined in a way of its own (NEW)."),
        (ONE, [0], ""),
        ("", [0, 1], ""),
        ("Failed to get topology", [0, 1], ""),
    ],
    ids=["NVLink", "two of eight", "PIX", "SYS", "two pairs", "three of four", "new", "one GPU", "none", "forbidden"],
)
def test_how_gpus_are_joined_in_a_sentence(text, shown, told):
    assert tell_ways(read_ways(text), shown) == told


def test_gpus_that_belong_together():
    assert neighbours(read_ways(PAIRS), range(4)) == [0, 1]
    assert neighbours(read_ways(PAIRS), [1, 2, 3]) == [2, 3]
    assert neighbours(read_ways(ALL_NVLINK), range(8)) == []
    assert neighbours(read_ways(TWO_SYS), range(2)) == []


def test_a_machine_without_the_program_is_asked_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia_smi.ask("-L") == "" and nvidia_smi.users() == []
