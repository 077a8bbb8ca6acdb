"""Graders of part 6, a module a chapter."""
