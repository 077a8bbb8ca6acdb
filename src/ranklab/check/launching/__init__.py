"""Graders of part 5, a module a chapter."""
