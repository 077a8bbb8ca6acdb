"""A folder for ``PYTHONPATH``: the programs of a launch import torch quicker, see ``sitecustomize.py``."""
