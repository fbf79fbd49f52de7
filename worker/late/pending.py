"""The store of a partition: what was predicted with an id, until its label comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import example_store, free_list
from algorithms.core.arrays import Int8s, Int32s, Int64s, UInt32s, extended, filled
from algorithms.core.events import INSERT, PREDICT
from algorithms.core.example_store import (
    HIGH,
    LENGTH,
    LIVE,
    LIVES,
    LOW,
    NONE,
    OWNER,
    START,
    STATE,
)
from algorithms.core.names import Interner
from algorithms.core.stored import flattened, rebuilt
from worker.codec import Events
from worker.codec.events import IDS, LABEL, NAMES, NO_ID
from worker.codec.selected import ONES, selected
from worker.late.kernel import (
    BEFORE,
    CHANGED,
    COUNTS,
    CROWDED,
    CROWDED_OUT,
    DONE,
    DROPPED,
    EVENT,
    EXPIRED,
    FIRST,
    FORGOTTEN,
    FULL_FEATURES,
    FULL_GONE,
    FULL_QUEUE,
    FULL_ROWS,
    FULL_WORDS,
    GONE,
    HEAD,
    KEPT,
    KINDS,
    LABELLED,
    LAST,
    LATE,
    MOST,
    NAMED,
    NEVER,
    NOW,
    NUMBER,
    PLACE,
    SETTLED,
    SPAN,
    TAIL,
    TAKEN,
    VALUED,
    Asked,
    Found,
    Pending,
    follow,
    shorten,
)
from worker.log.port import Records
from worker.models.expiry import Clock
from worker.models.intake import id_digests
from worker.models.keys import Keys

Bools = npt.NDArray[np.bool_]
Id = tuple[int, int]

_NAME = "pending"  # of the arrays in checkpoints, before their own


class Waiting(NamedTuple):
    """A pending example."""

    key: bytes
    id: Id
    features: tuple[tuple[int | bytes, float], ...]  # ascending


class Tally(NamedTuple):
    """How many examples of a batch became what."""

    kept: int = 0
    labelled: int = 0
    settled: int = 0  # inserted while they were pending
    forgotten: int = 0  # deleted, or dropped with their key
    late: int = 0  # labels of ids that are not pending
    expired: int = 0  # that nobody labelled in time
    crowded_out: int = 0  # that had to go for others


class Answered(NamedTuple):
    """Events for which an example was kept, or was there; by their numbers in the batch as it came."""

    event: Int64s
    fate: Int8s  # TAKEN, LABELLED or SETTLED
    row: Int32s  # of the example in the store
    given: Int64s  # of labelled and settled ones: the event of this batch that it was kept for, -1: it is older
    stays: Bools  # of those that were kept: whether it is still there after the batch


class Resolved(NamedTuple):
    """What a batch came to: the events for models, and what is to be known beside them."""

    asked: Events  # as they came
    events: Events  # labels are inserts of what was pending; late ones are left out
    plain: Events  # without labels
    late: tuple[tuple[int, int], ...]  # record and row of the labels whose example is not pending
    forgotten: frozenset[tuple[int, int]]  # and of the deletes whose example was
    answered: Answered
    gone: Int32s  # rows whose example is another one now, or none
    tally: Tally


class PendingExamples:
    """Examples that wait for their labels, of all keys of a partition.

    Parameters
    ----------
    most : int
        How many at most; the oldest goes for the next one.
    span : int
        For how long, in ms.
    begin : int
        The offset from which on examples are kept.
    """

    def __init__(self, most: int, span: int, begin: int = 0) -> None:
        self._begin = begin
        counts = np.zeros(COUNTS, np.int64)
        counts[[MOST, SPAN]] = most, span
        self._pending = Pending(example_store.make(1), np.zeros(16, np.int32), np.zeros(16, np.int64), counts)
        self._clock = Clock()
        self._keys = Keys()
        self._names = Interner()

    def __len__(self) -> int:
        return int(self._pending.examples.counts[free_list.USED])

    @property
    def size(self) -> int:
        """How much memory the arrays take, room to grow included."""
        return sum(array.nbytes for array in self.arrays().values())

    def limit(self, most: int, span: int) -> Int32s:
        """Let other limits hold from now on; return the rows that became free.

        What was due by those before goes, so that nothing depends on what had been removed by then.
        """
        counts = self._pending.counts
        if counts[[MOST, SPAN]].tolist() == [most, span]:
            return _NO_ROWS
        found = _found(0, gone=len(self), words=0)
        shorten(self._pending, self._names.arrays, most, found)
        counts[[MOST, SPAN]] = most, span
        counts[CHANGED] += 1
        count = int(found.counts[GONE])
        self._keys.keep(found.gone_key[:count], self._are_alive)
        self._sweep_all()
        return found.gone[:count]

    # --- a batch

    def resolve(self, records: Records, events: Events) -> Resolved:
        """Follow the events of a batch, strictly in order."""
        counts = self._pending.counts
        if len(records.keys) and not counts[FIRST]:
            counts[FIRST] = records.offsets[0] + 1
        is_asked = (events.op == PREDICT) & (events.id_kind != NO_ID)
        is_asked &= records.offsets[events.record] >= self._begin
        is_label = events.op == LABEL
        ordinals, record = np.unique(events.record, return_inverse=True)
        clock = self._clock.see(records.timestamps[ordinals])
        if not len(self) and not is_asked.any() and len(ordinals):
            # Nothing waits and nothing comes to wait: what is left to do is what the clock tells.
            self._pass(clock)
            return self._without(events, is_label)
        keys = self._keys.numbers(records)
        numbers, words = self._words(events, is_asked)
        found = self._followed(events, is_asked, keys[events.record], record, clock, *words)
        resolved = self._resolved(events, found)
        self._keys.keep(np.concatenate([keys, found.gone_key[: found.counts[GONE]]]), self._are_alive)
        self._names.sweep(numbers)
        return resolved

    def _pass(self, clock: Int64s) -> None:
        counts = self._pending.counts
        counts[[HEAD, BEFORE, LAST]] = counts[TAIL]
        counts[NOW] = clock[-1]

    def _without(self, events: Events, is_label: Bools) -> Resolved:
        plain = selected(events, ~is_label) if is_label.any() else events
        late = _places(events, is_label)
        return Resolved(events, plain, plain, late, frozenset(), _NO_ANSWERS, _NO_ROWS, Tally(late=len(late)))

    def _words(self, events: Events, is_asked: Bools) -> tuple[Int64s, tuple[Int64s, UInt32s, Int8s]]:
        """Return the numbers of names, and how the features of predicts with an id are stored."""
        sizes = np.diff(events.pointer)
        entries = np.repeat(is_asked, sizes)
        feature, value = events.feature[entries], events.value[entries]
        sizes = np.where(is_asked, sizes, 0)
        named = is_asked & (events.space == NAMES)
        kind: Int8s = np.where(named, NAMED, 0).astype(np.int8)
        numbers = np.zeros(0, np.int64)
        if named.any():
            of_names = np.repeat(named, sizes)
            text = events.buffer.tobytes()
            starts = events.name_start[entries][of_names].tolist()
            ends = np.add(starts, events.name_size[entries][of_names]).tolist()
            numbers = np.array(
                self._names.intern_all(text[start:end] for start, end in zip(starts, ends, strict=True)), np.int64
            )
            feature = feature.copy()
            feature[of_names] = numbers
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        if (value == 1.0).all():
            return numbers, (start, feature, kind)
        valued = np.zeros(len(sizes), np.bool_)
        valued[np.repeat(np.arange(len(sizes)), sizes)[value != 1.0]] = True
        kind |= np.where(valued, VALUED, 0).astype(np.int8)
        stored_sizes = np.where(valued, 3 * sizes, sizes)
        begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(stored_sizes)])
        words = np.zeros(begin[-1], np.uint32)
        within = np.arange(len(feature)) - np.repeat(start[:-1], sizes)
        words[np.repeat(begin[:-1], sizes) + within] = feature
        of_valued = np.repeat(valued, sizes)
        at = (np.repeat(begin[:-1] + sizes, sizes) + 2 * within)[of_valued]
        halves = value[of_valued].view(np.uint32).reshape(-1, 2)
        words[at], words[at + 1] = halves[:, 0], halves[:, 1]
        return numbers, (begin, words, kind)

    def _followed(
        self,
        events: Events,
        is_asked: Bools,
        key: Int32s,
        record: Int64s,
        clock: Int64s,
        start: Int64s,
        words: UInt32s,
        kind: Int8s,
    ) -> Found:
        n, store = len(events.op), self._pending.examples
        most = int(key.max(initial=-1)) + 1
        if most > len(store.heads):
            grown = example_store.grown(store, max(most, 2 * len(store.heads)))
            self._pending = self._pending._replace(examples=grown)
        high, low = id_digests(events)
        named = ((events.id_kind != NO_ID) & (is_asked | (events.op != PREDICT))).astype(np.int8)
        asked = Asked(
            events.op,
            key,
            named,
            high,
            low,
            record.astype(np.int64),
            clock,
            start,
            np.ascontiguousarray(words),
            kind,
        )
        found = _found(n, gone=2 * n + 64, words=16 * int(np.count_nonzero(events.op == LABEL)) + 16)
        while (status := follow(self._pending, self._names.arrays, asked, found)) != DONE:
            event = int(found.counts[EVENT])
            if status == FULL_WORDS:
                found = found._replace(words=extended(found.words, 4 * len(found.words)))
            elif status == FULL_GONE:
                more = int(self._pending.examples.heads[key[event], LIVES])
                room = 2 * len(found.gone) + more
                found = found._replace(gone=extended(found.gone, room), gone_key=extended(found.gone_key, room))
            elif status == FULL_QUEUE:
                self._compact()
            elif status == FULL_ROWS:
                self._pending = self._pending._replace(examples=example_store.with_rows(self._pending.examples))
            else:
                assert status == FULL_FEATURES
                more = int(start[event + 1] - start[event])
                roomy = example_store.with_features(self._pending.examples, more)
                self._pending = self._pending._replace(examples=roomy)
        return found

    def _compact(self) -> None:
        """Squeeze the places of what is gone out of the queue, and make room. Amortised O(1) an example."""
        examples, row, stamp, counts = self._pending
        head, tail = int(counts[HEAD]), int(counts[TAIL])
        kept = head + np.flatnonzero(row[head:tail] != NONE)
        size = max(16, 2 * len(kept))
        queue, stamps = np.zeros(size, np.int32), np.zeros(size, np.int64)
        queue[: len(kept)], stamps[: len(kept)] = row[kept], stamp[kept]
        places = examples.rows[row[kept], PLACE]
        examples.rows[row[kept], PLACE] = np.arange(len(kept)) * KINDS + places % KINDS
        within = [BEFORE, LAST]
        counts[within] = np.searchsorted(kept, counts[within])
        counts[HEAD], counts[TAIL] = 0, len(kept)
        self._pending = self._pending._replace(row=queue, stamp=stamps)

    def _resolved(self, events: Events, found: Found) -> Resolved:
        fate, store = found.fate, self._pending.examples
        is_label, is_late = events.op == LABEL, fate == LATE
        labelled = fate == LABELLED
        told = np.flatnonzero((fate == TAKEN) | labelled | (fate == SETTLED))
        rows, number = found.row[told], found.number[told]
        taken = told[fate[told] == TAKEN]
        first = int(self._pending.counts[KEPT]) - len(taken)  # what was kept before has lower numbers
        given = filled(len(told), NONE, np.int64)
        is_new = (fate[told] != TAKEN) & (number >= first)
        given[is_new] = taken[number[is_new] - first]
        stays = (store.rows[rows, STATE] == LIVE) & (store.rows[rows, NUMBER] == number) & (fate[told] == TAKEN)
        done = found.counts
        forgotten = fate == FORGOTTEN
        plain = selected(events, ~is_label) if is_label.any() else events
        with_inserts = self._inserted(events, found, labelled) if labelled.any() else events
        return Resolved(
            asked=events,
            events=selected(with_inserts, ~is_late) if is_late.any() else with_inserts,
            plain=plain,
            late=_places(events, is_late),
            forgotten=frozenset(_places(events, forgotten)),
            answered=Answered(told, fate[told], rows, given, stays),
            gone=found.gone[: done[GONE]],
            tally=Tally(
                kept=len(taken),
                labelled=int(np.count_nonzero(labelled)),
                settled=int(np.count_nonzero(fate == SETTLED)),
                forgotten=int(np.count_nonzero(forgotten)) + int(done[DROPPED]),
                late=int(np.count_nonzero(is_late)),
                expired=int(done[EXPIRED]),
                crowded_out=int(done[CROWDED_OUT]),
            ),
        )

    def _inserted(self, events: Events, found: Found, labelled: Bools) -> Events:
        """Return the events with inserts in the place of labels: they have the features that were kept."""
        at = np.flatnonzero(labelled)
        size, kind = found.size[at].astype(np.int64), found.kind[at]
        valued = (kind & VALUED) != 0
        ones = np.where(valued, size // 3, size)
        of = np.repeat(np.arange(len(at)), ones)  # of each entry, which of the labelled ones it is of
        within = np.arange(len(of)) - np.repeat(np.cumsum(ones) - ones, ones)
        start = found.start[at]
        word = found.words[start[of] + within]
        value = np.ones(len(of))
        if (odd := valued[of]).any():
            begin = (start[of] + ones[of] + 2 * within)[odd]
            halves = np.stack([found.words[begin], found.words[begin + 1]], axis=1)
            value[odd] = np.ascontiguousarray(halves).view(np.float64)[:, 0]
        name_start, name_size, buffer = np.zeros(len(of), np.int64), np.zeros(len(of), np.int32), events.buffer
        is_name = ((kind & NAMED) != 0)[of]
        if is_name.any():
            different, which = np.unique(word[is_name], return_inverse=True)
            names = [self._names.name(number) for number in different.tolist()]
            sizes = np.array([len(name) for name in names], np.int64)
            begins = len(buffer) + np.cumsum(sizes) - sizes
            name_start[is_name], name_size[is_name] = begins[which], sizes[which]
            word = np.where(is_name, np.uint32(0), word)
            buffer = np.concatenate([buffer, np.frombuffer(b"".join(names), np.uint8)])
        added = {"feature": word, "name_start": name_start, "name_size": name_size, "value": value}
        counts = np.diff(events.pointer)
        counts[at] = ones
        pointer = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        is_new = np.repeat(labelled, counts)
        columns: dict[str, Any] = {}
        for name in ONES:
            columns[name] = np.empty(len(is_new), getattr(events, name).dtype)
            columns[name][~is_new], columns[name][is_new] = getattr(events, name), added[name]
        op, space = events.op.copy(), events.space.copy()
        op[at] = INSERT
        space[at] = np.where(ones == 0, 0, np.where((kind & NAMED) != 0, NAMES, IDS))
        return events._replace(buffer=buffer, op=op, space=space, pointer=pointer, **columns)

    # --- what is held

    def _are_alive(self, keys: Int32s) -> Bools:
        heads = self._pending.examples.heads
        found = keys < len(heads)
        found[found] = heads[keys[found], LIVES] > 0
        return found

    def waiting(self) -> Iterator[tuple[int, Waiting]]:
        """Yield the examples from the oldest to the newest, with their rows."""
        store, counts = self._pending.examples, self._pending.counts
        for row in self._pending.row[counts[HEAD] : counts[TAIL]].tolist():
            if row != NONE:
                of_row = store.rows[row].tolist()
                features = tuple(sorted(self._features(of_row)))
                yield row, Waiting(self._keys.key(of_row[OWNER] >> 1), (of_row[HIGH], of_row[LOW]), features)

    def is_due(self, row: int) -> bool:
        """Return whether an example has waited for too long, and goes with the next events."""
        stamp, now = (
            int(self._pending.stamp[self._pending.examples.rows[row, PLACE] // KINDS]),
            self._pending.counts[NOW],
        )
        return stamp != NEVER and bool(now > 0) and bool(now - stamp >= self._pending.counts[SPAN])

    def _features(self, row: list[int]) -> Iterator[tuple[int | bytes, float]]:
        kind, start, size = row[PLACE] % KINDS, row[START], row[LENGTH]
        words = self._pending.examples.features[start : start + size]
        ones = size // 3 if kind & VALUED else size
        values = words[ones:].copy().view(np.float64).tolist() if kind & VALUED else [1.0] * ones
        for number, value in zip(words[:ones].tolist(), values, strict=True):
            yield self._names.name(number) if kind & NAMED else number, value

    @property
    def first(self) -> int | None:
        """The offset of the first record that was followed."""
        return int(self._pending.counts[FIRST]) - 1 if self._pending.counts[FIRST] else None

    @property
    def was_changed(self) -> bool:
        """Whether other limits held before."""
        return bool(self._pending.counts[CHANGED])

    @property
    def was_full(self) -> bool:
        """Whether examples had to go for others."""
        return bool(self._pending.counts[CROWDED])

    def row_of(self, key: bytes, digest: Id) -> int:
        """Return the row of an example, -1: it is not pending."""
        number = self._keys.find(key)
        if number is None:
            return NONE
        return int(example_store.lookup(self._pending.examples, number * 2 + 1, *digest))

    def _sweep_all(self) -> None:
        sizes = self._names.arrays.size
        self._names.sweep(np.flatnonzero(sizes >= 0))

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state as named arrays, not copied."""
        return {
            **self._keys.arrays(),
            **flattened(self._names.arrays, "names"),
            **flattened(self._pending, _NAME),
            "clock.last": self._clock.last,
            "clock.now": self._clock.now,
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned."""
        self._keys.restore(arrays)
        self._names = Interner(rebuilt(self._names.arrays, arrays, "names"))
        self._pending = rebuilt(self._pending, arrays, _NAME)
        self._clock.last, self._clock.now = arrays["clock.last"], arrays["clock.now"]

    def check(self) -> None:
        """Raise AssertionError unless every invariant holds. For tests."""
        examples, row, stamp, counts = self._pending
        example_store.check(examples)
        head, before, last, tail = counts[[HEAD, BEFORE, LAST, TAIL]].tolist()
        assert head <= tail
        assert before <= last <= tail <= len(row)
        places = np.flatnonzero(row[head:tail] != NONE) + head
        assert len(places) == len(self) <= counts[MOST]
        assert (examples.rows[row[places], PLACE] // KINDS == places).all(), "an example is at another place"
        stamps = stamp[places].tolist()
        assert stamps == sorted(stamps), "the queue is not in the order of time"
        assert all((at >= before) == (stamp[at] == NEVER) for at in places.tolist())
        self._names.check_references(self._held_names())
        self._keys.check(int(np.count_nonzero(examples.heads[:, LIVES])))

    def _held_names(self) -> Iterator[npt.NDArray[Any]]:
        examples, row, _, counts = self._pending
        for at in row[counts[HEAD] : counts[TAIL]].tolist():
            if at != NONE and (kind := int(examples.rows[at, PLACE]) % KINDS) & NAMED:
                start, size = examples.rows[at, [START, LENGTH]].tolist()
                yield examples.features[start : start + (size // 3 if kind & VALUED else size)]


_NO_ROWS = np.zeros(0, np.int32)
_NONE = np.zeros(0, np.int64)
_NO_ANSWERS = Answered(_NONE, np.zeros(0, np.int8), _NO_ROWS, _NONE, np.zeros(0, np.bool_))


def _found(events: int, *, gone: int, words: int) -> Found:
    """Return room for what becomes of so many events."""
    return Found(
        fate=np.zeros(events, np.int8),
        row=filled(events, NONE, np.int32),
        number=filled(events, NONE, np.int64),
        start=np.zeros(events, np.int64),
        size=np.zeros(events, np.int32),
        kind=np.zeros(events, np.int8),
        words=np.zeros(words, np.uint32),
        gone=np.zeros(gone, np.int32),
        gone_key=np.zeros(gone, np.int32),
        counts=np.array([0, -1, 0, 0, 0, 0, 0], np.int64),
    )


def _places(events: Events, wanted: Bools) -> tuple[tuple[int, int], ...]:
    """Return record and row of some events."""
    return tuple(zip(events.record[wanted].tolist(), events.row[wanted].tolist(), strict=True))
