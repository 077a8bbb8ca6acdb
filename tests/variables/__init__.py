"""The variables of the page *Environment variables*: what is said of each, and the ranks that differ in them."""
