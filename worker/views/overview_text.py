"""The topics of a log for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from worker.views.words import printable


class PartitionRow(NamedTuple):
    """What a partition holds."""

    topic: str
    partition: int
    records: int  # between the watermarks
    low: int
    high: int
    committed: int | None  # the group's, the next offset to be read


def overview(group: str, rows: Iterable[PartitionRow]) -> Table:
    """Return a line for each partition; the name of a topic stands beside its first one."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("topic", style="bold", overflow="fold")
    for heading in ("partition", "records", "low", "high", f"read by {printable(group, 20)}"):
        table.add_column(heading, justify="right")
    for row in rows:
        numbers = (row.records, row.low, row.high)
        read = "-" if row.committed is None else f"{row.committed:,}"
        topic = Text(printable(row.topic, 249) if row.partition == 0 else "")
        table.add_row(topic, str(row.partition), *(f"{number:,}" for number in numbers), read)
    return table
