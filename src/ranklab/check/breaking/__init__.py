"""Graders of part 4, a module a chapter."""
