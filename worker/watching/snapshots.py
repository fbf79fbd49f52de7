"""The last snapshots of trees that this worker wrote, for its pages.

They are what readers of the output topic see, so the loop makes nothing for a page, and a page that is looked at
costs it nothing: committed records are kept as they are, and decoded by whoever looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

from worker.codec import AnyTree, all_joined, decode_output
from worker.log.port import OutRecord

MOST_TREES = 200
MOST_BYTES = 16_000_000  # of all of them
LARGEST = 2_000_000  # bytes of one: some 40,000 nodes, which take some 30 ms to read


class Snapshot(NamedTuple):
    """The last snapshot of a key's tree, or of all trees of its forest."""

    partition: int  # of input and output
    event: bytes  # which it follows from: model:partition:offset:row
    parts: tuple[bytes, ...]  # values of records

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(map(len, self.parts))


class Snapshots:
    """Snapshots by model and key, those written last; what is too much goes, the oldest first.

    One thread changes it. Any thread may read: `kept` never changes, it is replaced.
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[str, bytes], Snapshot] = {}

    def add(self, records: Iterable[OutRecord]) -> None:
        """Take records of type `tree` that were committed, in order."""
        kept = dict(self.kept)
        for record in records:
            event, _, _ = (record.headers[1][1] or b"").rpartition(b":")  # out_id without the number of the part
            which = event.split(b":", 1)[0].decode(), record.key or b""
            before = kept.pop(which, None)
            parts = before.parts if before is not None and before.event == event else ()
            kept[which] = Snapshot(record.partition, event, (*parts, record.value or b""))
        self.kept = dict(_bounded(kept))

    def keep(self, owned: Set[tuple[str, int]]) -> None:
        """Keep those of these models and partitions; the others are somebody else's now."""
        if any((model, snapshot.partition) not in owned for (model, _), snapshot in self.kept.items()):
            self.kept = {
                (model, key): snapshot
                for (model, key), snapshot in self.kept.items()
                if (model, snapshot.partition) in owned
            }


def read(snapshot: Snapshot) -> list[AnyTree]:
    """Return the tree of a snapshot, or the trees of a forest."""
    headers = (("type", b"tree"), ("out_id", b""))
    parts: list[Any] = [decode_output(value, headers) for value in snapshot.parts]
    trees: list[AnyTree] = all_joined(parts)
    return trees


def _bounded(kept: dict[tuple[str, bytes], Snapshot]) -> Iterator[tuple[tuple[str, bytes], Snapshot]]:
    """Yield the latest, as many as may be kept, the oldest first."""
    latest: list[tuple[tuple[str, bytes], Snapshot]] = []
    size = 0
    for which, snapshot in reversed(kept.items()):
        if snapshot.size > LARGEST:
            continue
        size += snapshot.size
        if len(latest) == MOST_TREES or size > MOST_BYTES:
            break
        latest.append((which, snapshot))
    return reversed(latest)
