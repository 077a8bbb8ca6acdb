"""Graders of part 7, a module a chapter."""
