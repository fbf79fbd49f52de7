"""Messages of the client to columns of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from worker.log.kafka.names import names_of_any_bytes
from worker.log.port import Records, TopicPartition


def to_records(source: TopicPartition, messages: Sequence[Any], next_offset: int) -> Records:
    """Return messages of one partition, in the order of their offsets, as records.

    One list comprehension for each column takes a third of the time of one loop over all columns.
    """
    with names_of_any_bytes():  # asked once: the client forgets the names that it has failed to read
        headers = [tuple(found) if (found := message.headers()) else () for message in messages]
    return Records(
        source=source,
        offsets=np.array([message.offset() for message in messages], dtype=np.int64),
        timestamps=np.array([message.timestamp()[1] for message in messages], dtype=np.int64),
        keys=[message.key() for message in messages],
        values=[message.value() for message in messages],
        headers=headers,
        next_offset=next_offset,
    )
