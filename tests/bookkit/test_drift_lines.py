"""The lines of torch behind a cell that differs: the names it uses, where they are defined, what of it is executed."""

import sys

import pytest

from bookkit import drift_lines, torch_names

CELLS = [
    "import torch\nimport torch.distributed as dist\nimport numpy as np",
    "%%px\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nddp = DDP(torch.nn.Linear(1, 1))",
    "%%px --timeout 3\ndist.all_reduce(np.ones(1), op=dist.ReduceOp.SUM)\nddp.zero_grad()",
]


def test_the_names_of_torch_that_a_cell_uses_are_whole_and_no_others_count():
    assert torch_names.used(CELLS) == ["torch.distributed.all_reduce", "torch.distributed.ReduceOp.SUM"]
    assert torch_names.used(CELLS[:2]) == ["torch.nn.parallel.DistributedDataParallel", "torch.nn.Linear"]


def test_a_cell_that_is_no_python_uses_none():
    assert torch_names.used(["import torch", "%%bash\nfor rank in 0 1; do echo $rank; done"]) == []


def test_where_torch_defines_a_name():
    found = torch_names.definitions(["torch.distributed.all_reduce", "torch.distributed.no_such", "torch.ones"])
    reduce = found["torch.distributed.all_reduce"]
    assert reduce["file"] == "torch/distributed/distributed_c10d.py" and reduce["line"] > 1000
    assert "def all_reduce(" in reduce["source"]
    assert found["torch.distributed.no_such"] is None and found["torch.ones"]["file"] == ""
    assert torch_names.ask(sys.executable, [*found]) == found


def defined(source, line=100):
    return {"file": "torch/a.py", "line": line, "source": source}


OLD = defined('    def f(self, x):\n        """Old."""\n        x = one(x)\n        return x\n', 90)
DOCUMENTED = defined(
    '    def f(self, x):\n        """New\n        words."""\n        # why\n        x = one(x)\n        return x\n'
)
MORE = defined(
    "    def f(self, x):\n        x = two(x)\n        if self.in_backward:\n            x = one(x)\n        return x\n"
)


@pytest.mark.parametrize(
    ("here", "there", "said", "line"),
    [
        (OLD, None, "", "torch/a.py:90 (f, new)"),
        (OLD, OLD, "", ""),
        (OLD, defined(OLD["source"]), "", ""),
        (DOCUMENTED, OLD, "", ""),
        (MORE, OLD, "", "torch/a.py:101 (f)"),
        (MORE, OLD, "got an unexpected keyword argument 'in_backward'", "torch/a.py:102 (f)"),
        (None, OLD, "", ""),
        (defined(""), OLD, "", ""),
    ],
    ids=["new", "same", "moved", "documented", "changed", "named by the error", "gone", "emptied"],
)
def test_the_line_is_the_first_that_is_executed_and_differs(here, there, said, line):
    assert drift_lines.line_of("torch.f", here, there, said) == line


def test_each_cell_that_differs_gets_the_lines_of_what_it_uses(monkeypatch):
    here, there = {"torch.distributed.all_reduce": MORE}, {"torch.distributed.all_reduce": OLD}
    here |= {"torch.distributed.ReduceOp.SUM": {"file": "", "line": 0, "source": ""}}
    there |= {"torch.distributed.ReduceOp.SUM": None}
    monkeypatch.setattr(torch_names, "ask", lambda python, names: here if python == sys.executable else there)
    notes = [{"cell": 3, "printed": "1"}]
    drift_lines.blame([(CELLS, notes)], "other")
    assert notes == [{"cell": 3, "printed": "1", "lines": ["torch/a.py:101 (all_reduce)"]}]


def test_where_no_cell_differs_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(torch_names, "ask", lambda *_: pytest.fail("asked"))
    drift_lines.blame([(CELLS, [])], "other")
