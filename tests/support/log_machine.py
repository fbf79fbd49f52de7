"""A log beside lists of what is in it, under any order of operations.

A place in a list is an index; which offset belongs to an index is learnt by reading, since a log may use up
offsets of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.support.logs import (
    Content,
    Opener,
    contents,
    drain,
    out,
    read_all,
)
from worker.log.port import (
    LogError,
    OutRecord,
    Records,
    TopicPartition,
)

HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple)
BYTES = st.none() | st.binary(max_size=4)
CONTENT = st.tuples(BYTES, BYTES, HEADERS, st.integers(1, 2**42))
WRITES = st.lists(st.tuples(st.integers(0, 2), CONTENT), max_size=6)
PARTITIONS = st.sets(st.integers(0, 2))


class LogMachine(RuleBasedStateMachine):
    """Does the same to a log and to its model."""

    def __init__(self, open_log: Opener, topic: str) -> None:
        super().__init__()
        self.open_log = open_log
        self.log = open_log()
        self.reader = self.log.reader()
        self.log.create_topic(topic, 3)
        self.sources = [TopicPartition(topic, number) for number in range(3)]
        self.written: dict[TopicPartition, list[Content]] = {source: [] for source in self.sources}
        self.offsets: dict[TopicPartition, dict[int, int]] = {source: {0: 0} for source in self.sources}
        self.committed: dict[TopicPartition, int] = {}
        self.places: dict[TopicPartition, int] = {}  # of the assigned partitions

    def transaction(
        self, writes: list[tuple[int, Content]], consumed: set[int]
    ) -> tuple[list[OutRecord], dict[TopicPartition, int]]:
        """Return the outputs, and the offsets of the assigned partitions among those consumed."""
        outputs = [
            out(self.sources[number], value, key=key, headers=headers, timestamp=timestamp)
            for number, (key, value, headers, timestamp) in writes
        ]
        chosen = [source for source in self.places if source.partition in consumed]
        return outputs, {source: self.offsets[source][self.places[source]] for source in chosen}

    def take(self, batches: Sequence[Records]) -> None:
        """Compare what came with the model, and move on."""
        for batch in batches:
            place = self.places[batch.source]
            came = contents([batch])
            assert came == self.written[batch.source][place : place + len(came)]
            self.places[batch.source] = place + len(came)
            for index, offset in enumerate(batch.offsets.tolist()):
                assert self.offsets[batch.source].get(place + index, 0) <= offset
                self.offsets[batch.source].setdefault(place + index, offset)
            self.offsets[batch.source].setdefault(place + len(came), batch.next_offset)

    def unread(self) -> int:
        """Return how many records wait in the assigned partitions."""
        return sum(len(self.written[source]) - place for source, place in self.places.items())

    @rule(writes=WRITES, consumed=PARTITIONS)
    def commit(self, writes: list[tuple[int, Content]], consumed: set[int]) -> None:
        """Add records and offsets in one transaction."""
        outputs, offsets = self.transaction(writes, consumed)
        self.log.commit(outputs, offsets)
        self.committed |= offsets
        for number, content in writes:
            self.written[self.sources[number]].append(content)

    @rule(writes=WRITES, consumed=PARTITIONS)
    def fail(self, writes: list[tuple[int, Content]], consumed: set[int]) -> None:
        """Fail in a transaction, which adds nothing."""
        outputs, offsets = self.transaction(writes, consumed)
        nowhere = TopicPartition("missing", 0)
        with pytest.raises(LogError):
            self.log.commit([*outputs, out(nowhere)], offsets)
        with pytest.raises(LogError):
            self.log.commit(outputs, {**offsets, nowhere: 0})

    @rule(limit=st.integers(1, 5))
    def poll(self, limit: int) -> None:
        """Go on where the last poll stopped."""
        batches = self.reader.poll(limit, 0.0)
        assert sum(len(batch.keys) for batch in batches) <= limit
        self.take(batches)

    @precondition(lambda self: self.unread() > 0)
    @rule(limit=st.integers(1, 5))
    def drain(self, limit: int) -> None:
        """All that was written arrives."""
        self.take(drain(self.reader, self.unread(), limit))

    @rule(data=st.data(), numbers=PARTITIONS)
    def assign(self, data: st.DataObject, numbers: set[int]) -> None:
        """Start from anywhere a reader has been."""
        chosen = [self.sources[number] for number in sorted(numbers)]
        self.places = {source: data.draw(st.sampled_from(sorted(self.offsets[source]))) for source in chosen}
        self.reader.assign({source: self.offsets[source][place] for source, place in self.places.items()})

    @rule()
    def reopen(self) -> None:
        """Open the log again: it has everything but the readers."""
        self.reader.close()
        self.log.close()
        self.log = self.open_log()
        self.reader = self.log.reader()
        self.places = {}

    @rule()
    def look(self) -> None:
        """Find the committed offsets of the last transactions that went through."""
        for source in self.sources:
            assert self.log.committed(source) == self.committed.get(source)

    def teardown(self) -> None:
        """At the end another reader finds all of it."""
        self.look()
        self.reader.close()
        self.log.close()
        other = self.open_log("others")
        for source in self.sources:
            assert read_all(other, source, len(self.written[source])) == self.written[source]
        other.close()
