"""How much this machine does at once."""

import os

import psutil

CHAPTER_BYTES = 1 << 30  # four ranks and their notebook, with room for what a chapter trains


def cores():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def places():
    """How many chapters this machine executes at once: one for each core, as long as there is memory for them."""
    return max(1, min(cores(), psutil.virtual_memory().available // CHAPTER_BYTES))
