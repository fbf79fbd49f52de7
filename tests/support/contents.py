"""What decoded columns say, as plain Python values: for comparing with the reference decoder."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np

from worker.codec.events import FLOAT_LABEL, IDS, INT_LABEL, NAMES, NO_ID, TEXT_LABEL, Events
from worker.codec.reference import Event


def contents(events: Events) -> list[tuple[int, int, Event]]:
    """Return (record, row, event) of each event of the columns."""
    data = events.buffer.tobytes()
    found = []
    for k in range(events.op.size):
        ones = range(int(events.pointer[k]), int(events.pointer[k + 1]))
        features: tuple[Any, ...] = ()
        if events.space[k] == IDS:
            features = tuple(int(events.feature[j]) for j in ones)
        elif events.space[k] == NAMES:
            features = tuple(_text(data, events.name_start[j], events.name_size[j]) for j in ones)
        assert len(features) == len(ones)
        start, size = int(events.id_start[k]), int(events.id_size[k])
        example = None if events.id_kind[k] == NO_ID else msgpack.unpackb(data[start : start + size])
        event = Event(
            int(events.op[k]),
            int(events.time[k]),
            int(events.weight[k]),
            example,
            _label(events, data, k),
            features,
            tuple(events.value[ones.start : ones.stop].tolist()),
        )
        found.append((int(events.record[k]), int(events.row[k]), event))
    return found


def _label(events: Events, data: bytes, k: int) -> int | float | str | None:
    kind, label = int(events.label_kind[k]), events.label[k]
    if kind == INT_LABEL:
        return int(label)
    if kind == FLOAT_LABEL:
        return float(np.int64(label).view(np.float64))
    return _text(data, label, events.label_size[k]) if kind == TEXT_LABEL else None


def _text(data: bytes, start: Any, size: Any) -> str:
    return data[int(start) : int(start) + int(size)].decode()
