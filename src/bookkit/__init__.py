"""What authors need: record, run, normalise and check the chapters, and build the site.

``python -m bookkit --help`` lists the verbs; the Makefile calls nothing else.
"""
