"""What the page says of each variable, a module for each question of a reader."""

from . import amounts, elastic, gpus, logs, meeting, networks, ranklab, waiting, who

GROUPS = tuple(module.GROUP for module in (who, meeting, waiting, logs, networks, amounts, gpus, elastic, ranklab))
VARIABLES = tuple(variable for group in GROUPS for variable in group.variables)
