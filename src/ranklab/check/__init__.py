"""Graders: they run a reader's answer on the reader's ranks and say what is wrong.

A grader compares with the one-process answer, prints one sentence and raises nothing, so that a notebook with an
unsolved exercise still runs to its end. One module for the exercises of one or two chapters.
"""

from .all_reduce import few_messages, ring_sum
from .buckets import best_cap, exposed, launched_at
from .by_hand import average_gradients, weighted_loss
from .collectives import gather_uneven, transpose
from .cost_of_talking import bus_bandwidth, choose
from .data_parallel import run_replicas, what_remains
from .ddp import batch_statistics, training_calls
from .feeding_ranks import accuracy, rows_of
from .hosts import interface_for, wire_seconds
from .launch import node_commands, rank_of, who_am_i
from .meeting_up import how_to_meet, two_levels
from .pipelines import best_micro, fewest, within
from .point_to_point import hand_over, shift
from .ranks import cluster_numbers, device_index, draw_cluster, my_share, sum_on_rank_zero
from .splitting_layers import best_cut, chain
from .why_distribute import mean_gradient, training_bytes

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
