"""The names under which other launchers number their processes. Pure.

ipyparallel starts engines through Slurm, mpiexec and ssh; each of them numbers its processes in its own words. The
rank is read from there and never from the order in which engines happen to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..layout import Place

# srun; Open MPI; a process manager with PMIx or PMI (MPICH, Intel MPI); ranklab itself, for ssh.
RANK_NAMES = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANKLAB_SSH_RANK")


def read_rank(environment: Mapping[str, str], launcher: str = "") -> int | None:
    """Return the number that a launcher gave this process, or None where there is none.

    Args:
        environment: of the process.
        launcher: "slurm", "mpi" or "ssh": an mpiexec inside a Slurm job sees the job's SLURM_PROCID as well, so its
            own name is looked at first.
    """
    own = {"slurm": RANK_NAMES[:1], "mpi": RANK_NAMES[1:4], "ssh": RANK_NAMES[4:]}.get(launcher, ())
    for name in (*own, *RANK_NAMES):
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return None


def read_places(hosts: Sequence[str]) -> list[Place]:
    """Lay out ranks whose hosts are known.

    Args:
        hosts: the host of each rank, in rank order.

    Returns:
        The place of each rank: nodes are numbered as they first appear, local ranks count the ranks of a host in
        rank order, also where a host's ranks are not neighbours (``srun --distribution=cyclic``).
    """
    nodes = list(dict.fromkeys(hosts))
    return [
        Place(
            rank=rank,
            local_rank=hosts[:rank].count(host),
            node_rank=nodes.index(host),
            world_size=len(hosts),
            local_world_size=hosts.count(host),
            nnodes=len(nodes),
        )
        for rank, host in enumerate(hosts)
    ]
