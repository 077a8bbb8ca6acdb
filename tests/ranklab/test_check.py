"""Graders: the right answer passes, and each classic mistake gets its own sentence."""

import inspect
import time

import pytest
import torch

from ranklab import check
from ranklab.check import grading
from ranklab.check.ranks import your_first_ranks


def verdict(capsys, grader, answer):
    grader(answer)
    return capsys.readouterr().out.strip()


def floor_share(items, rank, world_size):
    size = len(items) // world_size
    return items[rank * size : (rank + 1) * size]


def ceiling_share(items, rank, world_size):
    size = -(-len(items) // world_size)
    return items[rank * size : (rank + 1) * size]


def last_takes_the_rest(items, rank, world_size):
    size = len(items) // world_size
    return items[rank * size :] if rank == world_size - 1 else items[rank * size : (rank + 1) * size]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda items, rank, world_size: items[rank::world_size], "Correct"),
        (lambda items, rank, world_size: items, "item 0 belongs to ranks 0, 1, it should belong to one rank."),
        (lambda items, rank, world_size: items[rank::world_size] * 2, "on 2 ranks: rank 0 has item 0 2 times."),
        (lambda items, rank, world_size: [torch.ones(2)] * len(items), "tensor([1., 1.]) is in a share but not among"),
        (lambda items, rank, world_size: items[rank::4], "With 8 items on 2 ranks: nobody has items 2, 3, 6, 7."),
        (floor_share, "With 1 item on 2 ranks: nobody has item 0."),
        (
            last_takes_the_rest,
            "on 3 ranks: the shares have [2, 2, 4] items; the longest may be one longer than the shortest.",
        ),
        (
            lambda items, rank, world_size: list(range(len(items)))[rank::world_size],
            "With 7 items (spoon, fork, …) on 2 ranks: 0 is in a share but not among the items. It is the place of "
            "one: return the item.",
        ),
        (
            lambda items, rank, world_size: (
                items[rank::world_size] if len(items) % 4 != 3 else items[rank:-1:world_size]
            ),
            "With 7 items on 2 ranks: nobody has item 6.",
        ),
        (lambda items, rank, world_size: [i + 1 for i in items[rank::world_size]], "not among the items"),
        (lambda items, rank, world_size: None, "rank 0 returned NoneType, not a list."),
        (lambda items, rank, world_size: [items[rank::world_size]], "is in a share but not among the items"),
        (lambda items, rank: items, "With 0 items on 2 ranks: rank 0 raised TypeError: "),
        (lambda items, rank, world_size: items[rank], "With 0 items on 2 ranks: rank 0 raised IndexError: list index"),
        (lambda items, rank, world_size: [items[0]] if rank == 3 else [], "With 0 items on 4 ranks: rank 3 raised"),
    ],
)
def test_my_share(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.my_share, answer)


def test_a_ceiling_leaves_ranks_without_work(notebook, capsys):
    """One item too many for the last rank: eight items on four ranks are fine, ten on three are 4, 4, 2."""
    assert "With 10 items on 3 ranks: the shares have [4, 4, 2] items" in verdict(capsys, check.my_share, ceiling_share)


def test_an_error_in_a_share_is_told_with_its_line(notebook, capsys):
    names = {"__name__": "__main__"}
    source = "def first(items, rank, world_size):\n    here = rank\n    return [items[here]]\n"
    exec(compile(source, "ipykernel_1/cell.py", "exec"), names)  # as a kernel names its cells
    sentence = "With 0 items on 2 ranks: rank 0 raised IndexError: list index out of range, line 3 in first"
    assert sentence in verdict(capsys, check.my_share, names["first"])


def right_total(value):
    import torch
    import torch.distributed as dist

    result = torch.tensor(value)
    dist.reduce(result, dst=0)
    return result.item() if dist.get_rank() == 0 else None


def only_rank_zero_calls(value):
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        result = torch.tensor(value)
        dist.all_reduce(result)
        return result.item()


def reduces_a_number(value):
    import torch.distributed as dist

    dist.all_reduce(value)


def everyone_returns(value):
    import torch
    import torch.distributed as dist

    result = torch.tensor(value)
    dist.all_reduce(result)
    return result.item()


def forgets_to_reduce(value):
    import torch.distributed as dist

    return value if dist.get_rank() == 0 else None


def takes_the_maximum(value):
    import torch
    import torch.distributed as dist

    result = torch.tensor(value)
    dist.all_reduce(result, op=dist.ReduceOp.MAX)
    return result.item() if dist.get_rank() == 0 else None


def returns_the_tensor(value):
    import torch
    import torch.distributed as dist

    result = torch.tensor(value)
    dist.all_reduce(result)
    return result if dist.get_rank() == 0 else None


def forgets_to_return(value):
    import torch
    import torch.distributed as dist

    result = torch.tensor(value)
    dist.all_reduce(result)


def adds_to_the_last_round(value):
    import sys

    import torch
    import torch.distributed as dist

    result = torch.tensor(value)
    dist.all_reduce(result)
    sys.rounds = getattr(sys, "rounds", 0) + result.item()
    return sys.rounds if dist.get_rank() == 0 else None


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (right_total, "Correct: in two rounds rank 0 had the sum, the others had None, and nobody waited."),
        (only_rank_zero_calls, "Not yet. After 5 s: rank 0 waits in all_reduce for ranks 1–3"),
        (reduces_a_number, "ranks 0–3 raised TypeError: Invalid function argument"),
        (everyone_returns, "ranks 1–3 should return None, but rank 1 returned 1111."),
        (forgets_to_reduce, "Rank 0 returned its own value; one process that adds 1, 10, 100 and 1000 gets 1111."),
        (takes_the_maximum, "Rank 0 returned 1000; one process that adds"),
        (returns_the_tensor, "Rank 0 returned a Tensor, not a number. item() takes the number out of it."),
        (forgets_to_return, "Rank 0 returned None; one process that adds"),
        (lambda value: True if value == 1 else None, "Rank 0 returned a bool, not a number."),
        (lambda value: 1111 if value == 1 else None, "Rank 0 returned None; one process that adds 40, 30, 20 and 10"),
        (adds_to_the_last_round, "Rank 0 returned 1211; one process that adds 40, 30, 20 and 10 gets 100."),
    ],
)
def test_sum_on_rank_zero(notebook, capsys, monkeypatch, answer, sentence):
    rounds = iter([[1, 10, 100, 1000], [40, 30, 20, 10]])
    monkeypatch.setattr(your_first_ranks, "_draw_values", lambda size: next(rounds))
    assert sentence in verdict(capsys, check.sum_on_rank_zero, answer)


def test_the_values_of_a_sum_are_new_every_time_and_no_two_alike():
    drawn = [tuple(your_first_ranks._draw_values(4)) for _ in range(20)]
    assert len(set(drawn)) > 15
    assert all(len(set(values)) == 4 for values in drawn)


def right_place(rank, nodes):
    node = 0
    local = rank
    while local >= nodes[node]:
        local -= nodes[node]
        node += 1
    return {
        "node_rank": node,
        "local_rank": local,
        "local_world_size": nodes[node],
        "world_size": sum(nodes),
        "nnodes": len(nodes),
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rank, nodes: {}, "Correct"),
        (lambda rank, nodes: {"node_rank": rank // nodes[0]}, "node_rank is "),
        (lambda rank, nodes: {"local_rank": rank}, "local_rank is "),
        (lambda rank, nodes: {"local_world_size": nodes[0]}, "local_world_size is "),
        (lambda rank, nodes: {"world_size": len(nodes)}, "world_size is "),
        (lambda rank, nodes: {"nnodes": sum(nodes)}, "nnodes is "),
        (
            lambda rank, nodes: right_place(rank, sorted(nodes)),
            "With nodes=[2, 2, 1], rank 0: local_world_size is 2, your answer is 1.",
        ),
        (lambda rank, nodes: {"nnodes": torch.ones(2)}, "nnodes is 1, your answer is tensor([1., 1.])."),
    ],
)
def test_cluster_numbers(notebook, capsys, change, sentence):
    answer = lambda rank, nodes: right_place(rank, nodes) | change(rank, nodes)  # noqa: E731
    assert sentence in verdict(capsys, check.cluster_numbers, answer)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda rank, nodes: None, "your answer is None, not a dictionary."),
        (lambda rank, nodes: {"node_rank": 0}, "your answer has no 'local_rank'."),
        (lambda rank, nodes: 1 / 0, "your answer raised ZeroDivisionError: division by zero"),
    ],
)
def test_an_answer_of_another_shape_is_told(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.cluster_numbers, answer)


def test_a_drawn_cluster_is_uneven_and_the_same_for_the_same_seed():
    for seed in range(20):
        nodes = check.draw_cluster(seed)
        assert nodes == check.draw_cluster(seed)
        assert 4 <= sum(nodes) <= 6 and len(set(nodes)) > 1


def right_device(local_rank, seen):
    sharing = [other for other, gpus in enumerate(seen) if gpus == seen[local_rank]]
    if sharing.index(local_rank) >= len(seen[local_rank]):
        raise ValueError("more processes than GPUs")
    return sharing.index(local_rank)


def all_or_nobody(local_rank, seen):
    """As good an answer: where there are too few GPUs, nobody starts."""
    if len({gpu for gpus in seen for gpu in gpus}) < len(seen):
        raise ValueError("more processes than GPUs")
    return [other for other, gpus in enumerate(seen) if gpus == seen[local_rank]].index(local_rank)


def trusts_the_launcher(local_rank, seen):
    """Look at one's own list only: right under srun, wrong where two processes were shown the same GPU."""
    visible = seen[local_rank]
    if len(visible) == 1:
        return 0
    if local_rank >= len(visible):
        raise ValueError("more processes than GPUs")
    return local_rank


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            lambda local_rank, seen: ValuError if seen == [[4], [4]] else right_device(local_rank, seen),  # noqa: F821
            "local rank 1 sees GPUs [4]. Your answer raised NameError: name 'ValuError' is not defined",
        ),
        (right_device, "Correct: in all 27 cases"),
        (all_or_nobody, "Correct: in all 27 cases"),
        (
            trusts_the_launcher,
            "CUDA_VISIBLE_DEVICES=4 torchrun, two processes: local rank 1 sees GPUs [4]. None is its",
        ),
        (lambda local_rank, seen: local_rank, "srun --gpus-per-task=1, eight tasks: local rank 1 sees GPUs [1]. There"),
        (
            lambda local_rank, seen: 0 if len(seen[local_rank]) == 1 and len(seen) > 2 else local_rank,
            "CUDA_VISIBLE_DEVICES=4 torchrun, two processes: local rank 1 sees GPUs [4]. None is its own: the others "
            "see the same. Your answer is 1 instead of an error.",
        ),
        (lambda local_rank, seen: local_rank % len(seen[local_rank]), "Your answer is 0 instead of an error"),
        (lambda local_rank, seen: seen[local_rank][local_rank % len(seen[local_rank])], "CUDA_VISIBLE_DEVICES=4,5"),
        (lambda local_rank, seen: 0, "belongs to another rank"),
        (lambda local_rank, seen: local_rank + 8, "There is no index 8"),
        (
            lambda local_rank, seen: right_device(local_rank, seen) if len(seen) != 4 or seen[0] == seen[3] else 0,
            "srun, tasks dealt to two sockets in turn: local rank 2 sees GPUs [0, 1]. Your answer is index 0",
        ),
        (lambda local_rank, seen: None, "There is no index None"),
        (lambda local_rank, seen: seen[local_rank].index(local_rank), "Your answer raised ValueError"),
    ],
)
def test_device_index(capsys, answer, sentence):
    assert sentence in verdict(capsys, check.device_index, answer)


@pytest.mark.parametrize(
    "grader", [check.cluster_numbers, check.device_index, check.what_remains, check.training_calls, check.two_levels]
)
def test_an_answer_in_the_notebook_has_a_deadline(notebook, capsys, monkeypatch, grader):
    asked = grading.asked

    def soon(*arguments):
        with monkeypatch.context() as patched:
            patched.setattr(grading, "DEADLINE", 0.1)
            return asked(*arguments)

    monkeypatch.setattr(inspect.getmodule(grader), "asked", soon)
    assert "our answer did not come back within 0.1 s." in verdict(capsys, grader, lambda *_: time.sleep(60))
