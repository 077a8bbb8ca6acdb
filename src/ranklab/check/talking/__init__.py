"""Graders of part 2, a module a chapter."""
