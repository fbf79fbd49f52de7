"""The best split of every key's examples, exact after every event, approximate, or by a scan of all features."""

from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.splits.kernel import Batch, Decisions
from algorithms.splits.pool import Ranked, Split, SplitPool

__all__ = ["Batch", "Decisions", "OnDuplicate", "Op", "Ranked", "Split", "SplitPool", "Status"]
