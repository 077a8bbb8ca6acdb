"""When the steps of a schedule run if messages take no time, for the figures of *pipelines* and *pipeline-schedules*.

A row takes 10 ms forward and 20 ms backward, on a stage of length 2 twice as long.
"""


def predicted(schedule, micro, lengths=(1, 1, 1, 1), rows=16):
    """Play a schedule through; return each stage's steps, as in `Pipeline.events`."""
    stages = len(lengths)
    orders = [schedule(stage, stages, micro) for stage in range(stages)]
    seconds = {"F": 0.01 * rows / micro, "B": 0.02 * rows / micro}
    ended, free, steps = {}, [0.0] * stages, [[] for _ in orders]
    while any(orders):  # run whatever can run
        for stage in [stage for stage in range(stages) if orders[stage]]:
            what, k = orders[stage][0]
            source = stage - 1 if what == "F" else stage + 1
            arrived = ended.get((what, source, k))
            if 0 <= source < stages and arrived is None:
                continue
            start = max(free[stage], arrived or 0.0)
            free[stage] = ended[what, stage, k] = start + lengths[stage] * seconds[what]
            steps[stage].append((what, k, start, free[stage]))
            orders[stage].pop(0)
    return steps


def took(ranks):
    """Return the seconds from the first step of all ranks to the last."""
    steps = [step for of_rank in ranks for step in of_rank]
    return max(step[3] for step in steps) - min(step[2] for step in steps)
