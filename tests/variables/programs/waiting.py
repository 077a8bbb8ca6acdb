"""One rank waits at a place that the other one does not know."""

from tests.messages import stage

from . import PATIENCE, tell


@stage.program(2)
def one_barrier(rank):
    tell(rank, TORCH_DIST_INIT_BARRIER=("1", "0")[rank])


@stage.program(2)
def one_retries(rank):
    tell(rank, PATIENCE, GLOO_DISABLE_CONNECTION_RETRIES=("1", "0")[rank])
