"""The topics of a log for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from worker.safe_text import printable
from worker.views.fitting import Column, Sheet
from worker.views.words import topic_word


class PartitionRow(NamedTuple):
    """What a partition holds."""

    topic: str
    partition: int
    records: int  # between the watermarks
    low: int
    high: int
    committed: int | None  # the group's, the next offset to be read


def overview(group: str, rows: Iterable[PartitionRow]) -> Sheet:
    """Return a line for each partition; the name of a topic stands beside its first one."""
    headings = ("partition", "records", "low", "high", f"read by\n{printable(group, 20)}")
    columns = [Column("topic", style="bold"), *(Column(heading, is_number=True) for heading in headings)]
    lines = []
    for row in rows:
        numbers = (row.records, row.low, row.high)
        read = "-" if row.committed is None else f"{row.committed:,}"
        topic = topic_word(row.topic) if row.partition == 0 else ""
        lines.append([topic, str(row.partition), *(f"{number:,}" for number in numbers), read])
    return Sheet(columns, lines)
