"""Graders: they run a reader's answer on the reader's ranks and say what is wrong.

A grader compares with the one-process answer, prints one sentence and raises nothing, so that a notebook with an
unsolved exercise still runs to its end. One module for the exercises of one or two chapters.
"""

from .data_parallel.buckets import best_cap, exposed, launched_at
from .data_parallel.by_hand import average_gradients, weighted_loss
from .data_parallel.data_parallel_and_the_gil import run_replicas, what_remains
from .data_parallel.ddp import batch_statistics, training_calls
from .data_parallel.feeding_ranks import accuracy, rows_of
from .launching.from_spawn_to_torchrun import node_commands, rank_of, who_am_i
from .launching.two_computers import interface_for, wire_seconds
from .model_parallel.pipelines import best_micro, fewest, within
from .model_parallel.splitting_layers import best_cut, chain
from .ranks.meeting_up import how_to_meet, two_levels
from .ranks.rank_local_rank_world_size import cluster_numbers, device_index, draw_cluster
from .ranks.why_distribute import mean_gradient, training_bytes
from .ranks.your_first_ranks import my_share, sum_on_rank_zero
from .talking.all_reduce import few_messages, ring_sum
from .talking.collectives import gather_uneven, transpose
from .talking.cost_of_talking import bus_bandwidth, choose
from .talking.point_to_point import hand_over, shift

__all__ = [
    "accuracy",
    "average_gradients",
    "batch_statistics",
    "best_cap",
    "best_cut",
    "best_micro",
    "bus_bandwidth",
    "chain",
    "choose",
    "cluster_numbers",
    "device_index",
    "draw_cluster",
    "exposed",
    "few_messages",
    "fewest",
    "gather_uneven",
    "hand_over",
    "how_to_meet",
    "interface_for",
    "launched_at",
    "mean_gradient",
    "my_share",
    "node_commands",
    "rank_of",
    "ring_sum",
    "rows_of",
    "run_replicas",
    "shift",
    "sum_on_rank_zero",
    "training_bytes",
    "training_calls",
    "transpose",
    "two_levels",
    "weighted_loss",
    "what_remains",
    "who_am_i",
    "wire_seconds",
    "within",
]
