"""What is known of an index beside its questions, as columns of `State.heads` and `State.numbers`."""

from __future__ import annotations

from algorithms.splits.slots import NONE

# int64
EVENTS = 0  # inserts and deletes applied
ALIVE = 1  # 1 once an insert was applied, until the index is dropped
LAST = 2  # the feature of the best split after the event before, or NONE, or what splits/last.py says
SPLIT_PERIOD, TREE_PERIOD = 3, 4  # the period of event time that the last event was in, -1 before the first
ROOT = 5  # of the heap by floors, or NONE
RARE = 6  # of the heap of rare features, or NONE
FIRST, SECOND = 7, 8  # the rows that a search found best and second when it last looked, or NONE
HEAD = (0, 0, NONE, -1, -1, NONE, NONE, NONE, NONE)

# float64
LOWERED = 0  # see search.py
LAST_VALUE = 1  # the threshold, or category, of the best split after the event before, 0 where it is gone
NUMBERS = 2
