"""``python -m tests.variables`` writes the page of the book from the catalogue."""

from .page import write

write()
