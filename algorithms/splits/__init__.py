"""The best split of every key's examples, exact after every event, approximate, or by a scan of all features."""

from algorithms.core.events import Events, OnDuplicate, Op, Status
from algorithms.splits.kernel import Decisions
from algorithms.splits.pool import Ranked, Split, SplitPool

__all__ = ["Decisions", "Events", "OnDuplicate", "Op", "Ranked", "Split", "SplitPool", "Status"]
