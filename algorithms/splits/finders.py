"""The registry of split finders. A new finder is one file like scan.py and one line in `FINDERS`.

A finder is a NamedTuple of arrays and these functions, the first argument being its state (the kernels
compile a version of themselves for each):

=============  ====================================================================================
``start``      begin an empty index
``ready``      can so many features be touched before the arrays must be enlarged?
``touched``    a weight has been added to (negative: taken from) a slot's count of a label
``taking``     a weight of a label is about to be taken from the totals
``removing``   a slot is about to be given back
``dropping``   the slots of an index are gone, the index goes too
``settle``     an event is over; False: enlarge and ask again
``find``       the best slot but one that is excluded; NONE, or SHORT: enlarge and ask again
``rank``       offer every slot that may be among the best to a ranking; changes nothing else
``overfull``   does some feature occur more often than its label?
=============  ====================================================================================

and ``make``, ``grown``, ``enlarged``, ``check`` outside kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from algorithms.core.jit import dispatch
from algorithms.splits import bins, count_groups, exact, quadtree, scan, updent, updgini


class Finder(NamedTuple):
    """How a finder is made."""

    kind: type  # of its state
    module: ModuleType
    criterion: str | None  # the only criterion that it serves, None: any
    approximate: Callable[[int, int, float], Any] | None = None  # makes it where it takes an alpha

    def make(self, indexes: int, capacity: int, alpha: float) -> Any:
        """Make the finder for so many indexes and slots, and scores of at most (1 + alpha) times the best."""
        if self.approximate is None:
            return self.module.make(indexes, capacity)
        return self.approximate(indexes, capacity, alpha)


FINDERS: dict[str, Finder] = {
    "exact": Finder(quadtree.Quadtrees, exact, None),
    "updent": Finder(count_groups.Bins, bins, "entropy", updent.make),
    "updgini": Finder(count_groups.Bins, bins, "gini", updgini.make),
    "baseent": Finder(scan.Scan, scan, "entropy"),
    "basegini": Finder(scan.Scan, scan, "gini"),
}


def _hook(name: str, doc: str) -> Callable[..., Any]:
    return dispatch(doc, {finder.kind: getattr(finder.module, name) for finder in FINDERS.values()})


start = _hook("start", "Begin an empty index.")
ready = _hook("ready", "Return whether so many features can be touched before the arrays must be enlarged.")
touched = _hook("touched", "Tell the finder that a weight has been added to a slot's count of a label.")
taking = _hook("taking", "Tell the finder that a weight of a label is about to be taken from the totals.")
removing = _hook("removing", "Tell the finder that a slot is about to be given back.")
dropping = _hook("dropping", "Tell the finder that an index whose slots are gone goes too.")
settle = _hook("settle", "Tell the finder that an event is over; False: enlarge it and tell it again.")
find = _hook("find", "Return the best slot but one that is excluded, NONE, or SHORT.")
rank = _hook("rank", "Offer every slot that may be among the best to a ranking.")
overfull = _hook("overfull", "Return whether some feature occurs more often than its label.")
