"""The messages of the page *Index of errors*: what is said of each, and the programs that produce it."""
