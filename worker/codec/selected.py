"""Some of the events of a batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from worker.codec.events import Events

ONES = ("feature", "name_start", "name_size", "value")  # columns with an entry for each feature
ROWS = tuple(name for name in Events._fields if name not in ("buffer", "pointer", *ONES))  # for each event


def selected(events: Events, wanted: npt.NDArray[np.bool_]) -> Events:
    """Return some of the events, in their order. O(ones)."""
    sizes = np.diff(events.pointer)
    entries = np.repeat(wanted, sizes)
    columns = {name: getattr(events, name)[wanted] for name in ROWS}
    columns |= {name: getattr(events, name)[entries] for name in ONES}
    pointer = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[wanted])])
    return events._replace(pointer=pointer, **columns)
