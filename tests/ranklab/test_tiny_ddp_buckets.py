"""TinyDDP with buckets, of the chapter *buckets*: one code in chapter and file, and the gradients of torch's DDP."""

import ast

import pytest
from tiny_models import CASES, SCRIPTS, launched, shown

FILE = SCRIPTS / "tiny_ddp_buckets.py"

# Every case on each rank: BucketDDP beside torch's DDP with the same caps; then in which order the sums were begun.
PROGRAM = """
import copy
import torch
import torch.distributed as dist
from tiny_ddp_buckets import BucketDDP
from tiny_models import CASES, Branch, Early, made, raised, tell, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()


class Shuffled(nn.Module):
    # Every rank computes in an order of its own.
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        return sum(self.layers[(number * (1 + 2 * rank) + rank) % 4](x) for number in range(4))


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        if (a is None) != (b is None) or (a is not None and not torch.equal(a, b)):
            return False
    return True


BYTES = {"default": None, "tiny": 8, "uneven": 500, "one": 10**9}
told = {}
for name, (make, dtype, micro) in (CASES | {"shuffled": (Shuffled, torch.float32, 1)}).items():
    for cap, length in BYTES.items():
        for to_none in (True, False) if cap == "tiny" else (True,):
            model = made(make, dtype)
            unused = make in (Branch, Early)
            torchs = {} if length is None else {"bucket_cap_mb": length / 2**20}
            caps = {} if length is None else {"caps": (length,)}
            theirs = DDP(copy.deepcopy(model), find_unused_parameters=unused, **torchs)
            ours = BucketDDP(copy.deepcopy(model), find_unused_parameters=unused, **caps)
            told[f"{name}, {cap}, {to_none}"] = same(
                train(ours, dtype, micro, to_none), train(theirs, dtype, micro, to_none)
            )

# The buckets of DDP, and the order in which ours are begun, with ranks that compute in different orders.
theirs, ours = DDP(Shuffled(), bucket_cap_mb=8 / 2**20), BucketDDP(Shuffled(), caps=(8,))
buckets, begun = [], []
names = {p.data_ptr(): n for n, p in theirs.module.named_parameters()}


def hook(state, bucket):
    buckets.append([names[p.data_ptr()] for p in bucket.parameters()])
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])


theirs.register_comm_hook(None, hook)
places = {id(p): n for n, p in ours.module.named_parameters()}
real = dist.all_reduce
for model in (theirs, ours):
    for _ in range(2):
        buckets.clear() if model is theirs else begun.clear()

        def noted(tensor, *rest, **named):
            if model is ours:
                index = next(i for i, b in enumerate(ours.flat) if b is tensor)
                begun.append([places[id(ours.order[place])] for place in ours.buckets[index]])
            return real(tensor, *rest, **named)

        dist.all_reduce = noted
        model(torch.ones(1, 6)).sum().backward()
        dist.all_reduce = real
told["order"] = [begun == buckets and len(begun) > 2, begun]
for wrap in (BucketDDP, DDP):
    model = wrap(Branch())
    told[f"missing {wrap.__name__}"] = raised(
        lambda model=model: [model(torch.ones(1, 6)).sum().backward() for _ in range(2)]
    )
tell(told)
"""


@pytest.fixture(scope="module", params=[3])  # with 3 the order of a sum counts; the chapter has 2
def told(request, tmp_path_factory):
    """What each rank tells of every case, from one launch for each number of ranks."""
    return launched(tmp_path_factory.mktemp("tiny"), PROGRAM, request.param, 240)


# With gradients that zero_grad() leaves out, and with the many small buckets also with those that it sets to zero.
TRIED = {"default": [True], "tiny": [True, True], "uneven": [True], "one": [True]}


@pytest.mark.parametrize("cap", TRIED)
@pytest.mark.parametrize("case", [*CASES, "shuffled"])
def test_gradients_and_buffers_equal_those_of_torch_to_the_last_bit(told, case, cap):
    for rank, of_rank in enumerate(told):
        assert [same for name, same in of_rank.items() if name.startswith(f"{case}, {cap}, ")] == TRIED[cap], rank


def test_sums_begin_in_the_order_of_torchs_buckets_on_every_rank(told):
    orders = [of_rank["order"] for of_rank in told]
    assert all(as_torch and order == orders[0][1] for as_torch, order in orders)


def test_a_missing_gradient_raises_in_the_first_backward(told):
    for of_rank in told:
        assert of_rank["missing BucketDDP"] == "a parameter received no gradient on this rank"
        assert "Expected to have finished reduction" in of_rank["missing DistributedDataParallel"]


def definitions(text):
    """Return the source of every function and class that a text defines at its top level."""
    return {
        node.name: ast.get_source_segment(text, node)
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }


def test_the_chapter_and_the_file_hold_the_same_code():
    found = {}
    for source in shown("buckets"):
        found.update(definitions(source))
    kept = definitions(FILE.read_text())
    assert len(kept) == 7  # group and six classes
    assert {name: found.get(name) for name in kept} == kept


def test_the_files_are_small_and_need_nothing_of_ours():
    texts = [(SCRIPTS / name).read_text() for name in ("tiny_ddp.py", "tiny_ddp_buckets.py")]
    assert len([line for line in "\n".join(texts).splitlines() if line.strip()]) <= 200
    assert not any("ranklab" in text for text in texts)
