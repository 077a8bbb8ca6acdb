"""Graders: the right answer passes, and each classic mistake gets its own sentence."""

import pytest

from ranklab import check

pytestmark = pytest.mark.ranks


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
        (lambda items, rank, world_size: items[rank::4], "With 8 items on 2 ranks: nobody has items 2, 3, 6, 7."),
        (floor_share, "With 1 item on 2 ranks: nobody has item 0."),
        (
            last_takes_the_rest,
            "on 3 ranks: the shares have [2, 2, 4] items; the longest may be one longer than the shortest.",
        ),
        (lambda items, rank, world_size: [i + 1 for i in items[rank::world_size]], "not among the items"),
        (lambda items, rank, world_size: None, "rank 0 returned NoneType, not a list."),
        (lambda items, rank, world_size: [items[rank::world_size]], "is in a share but not among the items"),
        (lambda items, rank: items, "raised TypeError"),
    ],
)
def test_my_share(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.my_share, answer)


def test_a_ceiling_leaves_ranks_without_work(notebook, capsys):
    """One item too many for the last rank: eight items on four ranks are fine, ten on three are 4, 4, 2."""
    assert "With 10 items on 3 ranks: the shares have [4, 4, 2] items" in verdict(capsys, check.my_share, ceiling_share)


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


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (right_total, "Correct: rank 0 has 1111"),
        (only_rank_zero_calls, "Not yet. After 5 s: rank 0 waits in all_reduce for ranks 1–3"),
        (reduces_a_number, "ranks 0–3 raised TypeError: Invalid function argument"),
        (everyone_returns, "ranks 1–3 should return None, but rank 1 returned 1111."),
        (forgets_to_reduce, "Rank 0 returned 1; one process that adds all values gets 1111."),
        (takes_the_maximum, "Rank 0 returned 1000;"),
    ],
)
def test_sum_on_rank_zero(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.sum_on_rank_zero, answer)


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


def right_device(local_rank, visible):
    if len(visible) == 1:
        return 0
    if local_rank >= len(visible):
        raise ValueError("more processes than GPUs")
    return local_rank


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (right_device, "Correct"),
        (lambda local_rank, visible: local_rank, "srun --gpus-per-task=1"),
        (lambda local_rank, visible: 0 if len(visible) == 1 else local_rank, "your answer is 2 instead of an error"),
        (lambda local_rank, visible: local_rank % len(visible), "your answer is 0 instead of an error"),
        (lambda local_rank, visible: visible[local_rank % len(visible)], "CUDA_VISIBLE_DEVICES=4,5"),
        (lambda local_rank, visible: 0, "belongs to another rank"),
        (lambda local_rank, visible: local_rank + 8, "There is no index 8"),
        (lambda local_rank, visible: None, "There is no index None"),
        (lambda local_rank, visible: visible.index(local_rank), "Your answer raised ValueError"),
    ],
)
def test_device_index(capsys, answer, sentence):
    assert sentence in verdict(capsys, check.device_index, answer)
