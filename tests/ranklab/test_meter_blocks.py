"""A meter that counts a second block, and one in a program that no launcher started."""

import os
import subprocess
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import ranklab


def test_a_second_block_begins_at_zero(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    counts = iter([{1: 500}, {1: 900}, {1: 900, 2: 10}, {1: 950}])
    monkeypatch.setattr(sys.modules["ranklab.rank.meter"], "written", lambda ours: next(counts))
    twice = ranklab.meter()
    with FakeTensorMode():
        gpus = torch.empty(2, device="cuda")
    with twice:
        twice._count("allreduce_", ([torch.ones(6)],))
    first = twice.calls
    assert twice.wire == 400 and twice.why == "" and first == {"all_reduce": 1}
    with twice:
        assert twice.wire is None and twice.why == "The block has not ended yet."
        twice._count("send", ([torch.ones(2)],))
        twice._count("recv_", ([gpus],))
    assert twice.calls == {"send": 1, "recv": 1} and twice.payload == {"send": 8, "recv": 8}
    assert twice.wire is None and twice.why == "Tensors on cuda travel without the kernel's TCP."
    assert str(twice).endswith(f"on the wire: unknown. {twice.why}")
    assert first == {"all_reduce": 1}, "who kept the counts of the first block has them"
    counts = iter([{1: 0}, {1: 7}])
    with twice:
        pass
    assert twice.wire == 7 and twice.why == "", "what was on a GPU in an earlier block is forgotten, too"


def test_a_process_of_mp_spawn_is_a_rank_though_its_environment_does_not_say_so(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, torch, torch.distributed as dist, torch.multiprocessing as mp, ranklab\n"
        "def work(rank):\n"
        "    try:\n"
        "        with ranklab.meter(): pass\n"
        "    except ranklab.WorldError as error: before = str(error)\n"
        "    dist.init_process_group('gloo', init_method='file://' + sys.argv[1], rank=rank, world_size=2)\n"
        "    with ranklab.meter() as meter: dist.all_reduce(torch.ones(6))\n"
        "    print(f'{before}\\n{meter}\\n', end='')\n"
        "    dist.destroy_process_group()\n"
        "if __name__ == '__main__': mp.spawn(work, nprocs=2)\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "meeting")]
    clean = {name: value for name, value in os.environ.items() if name not in ("RANK", "MASTER_PORT")}
    run = subprocess.run(command, env=clean, capture_output=True, text=True, check=True)
    before, counted, wire = sorted(set(run.stdout.splitlines()))
    assert before.endswith("or in a program of your own after init_process_group().")
    assert counted == "all_reduce: 1 call, 24 bytes"
    why = "set RANK and MASTER_PORT" if sys.platform.startswith("linux") else "Linux does."
    assert wire.startswith("on the wire: unknown.") and why in wire
