"""torchrun from a notebook: the commands, one agent a node, each rank's output, the first cause of a failure."""
