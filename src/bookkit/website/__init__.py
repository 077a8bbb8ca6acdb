"""What the built pages get after Sphinx has written them, so that they are found, read and loaded well.

Each module has one errand and works on the files of a built site: ``search`` writes what a search looks through,
``figures`` gives every picture a twin for the dark theme, ``frame`` mends what the theme leaves, ``bundle`` makes one
style sheet and one script of many.
"""
