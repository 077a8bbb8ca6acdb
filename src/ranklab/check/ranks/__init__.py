"""Graders of part 1, a module a chapter."""
