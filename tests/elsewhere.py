"""What every launcher of ipyparallel's has to make true, asked of a world of three ranks."""


def who() -> dict[str, str]:
    import os

    names = (
        "RANK",
        "LOCAL_RANK",
        "GROUP_RANK",
        "WORLD_SIZE",
        "SLURM_PROCID",
        "OMPI_COMM_WORLD_RANK",
        "RANKLAB_SSH_RANK",
    )
    return {name: os.environ[name] for name in names if name in os.environ}


def total() -> float:
    import torch
    import torch.distributed as dist

    dist.init_process_group()
    ones = torch.ones(1)
    dist.all_reduce(ones)
    return ones.item()


def stay_away() -> None:
    import torch
    import torch.distributed as dist

    if dist.get_rank() != 1:
        dist.all_reduce(torch.ones(1))


# Sent by value, as functions of a notebook are: on another computer there is no such module to import.
for function in (who, total, stay_away):
    function.__module__ = "__main__"


def asked(world, own_name: str) -> None:
    """Ask a world of three ranks what every launcher has to make true, and stop it."""
    with world:
        told, problem = world._call(who, timeout=300)
        assert problem == "", problem
        assert [entry["RANK"] for entry in told] == ["0", "1", "2"]
        assert [entry[own_name] for entry in told] == ["0", "1", "2"]
        assert {entry["WORLD_SIZE"] for entry in told} == {"3"}
        sums, problem = world._call(total, timeout=300)
        assert problem == "", problem
        assert sums == [3.0] * 3
        _, problem = world._call(stay_away, timeout=2)
        assert "ranks 0, 2" in problem
        assert world.processes.alive() == [0, 1, 2]
    assert not world.processes.home.exists()
