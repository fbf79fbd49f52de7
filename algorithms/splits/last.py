"""The best feature after the event before: a column of a head, which holds its number or one of two marks.

The numbers of names are given out again when a name goes. So the number of a name that has left an index says
nothing: sooner or later, as batches happen to end, it is another's. Where each change is told, each event finds
the best feature anew; otherwise many events may lie between one decision and the next. Ids always mean the same.
"""

from __future__ import annotations

from algorithms.core.jit import inlined
from algorithms.core.names import Names

GONE = -2  # there was one, and it has left the index
# Below GONE: it went in this event, and may come back in it, as where an example is replaced by one like it.


@inlined
def without(names: Names, last: int, feature: int) -> int:
    """Return what is kept once a feature has left the index."""
    return GONE - 1 - feature if last == feature and names.start.size > 0 else last


@inlined
def has_left(last: int) -> bool:
    """Return whether the feature left the index in this event; then it is to be seen whether it came back."""
    return last < GONE


@inlined
def departed(last: int) -> int:
    """Return the feature that left the index in this event."""
    return GONE - 1 - last
