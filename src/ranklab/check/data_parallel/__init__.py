"""Graders of part 3, a module a chapter."""
