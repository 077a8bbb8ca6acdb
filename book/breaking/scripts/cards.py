"""Print drills as cards for a room without computers; the last card of each is its solution.

python cards.py 3 8 15 > cards.txt
"""

import sys

import ranklab

for seed in sys.argv[1:]:
    print(ranklab.drill(int(seed)).cards(), end="\f\n")
