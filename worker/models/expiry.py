"""Keys that nobody uses expire: the clock of a partition, and which keys go at which event.

The clock is the median of the last five record timestamps, and never goes back: two wrong ones among any five do
not move it. A key is due once the clock has gone on by the span since its last event. Nothing here depends on how
records are batched: what goes at an event follows from the records up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.events import LET_GO
from worker.codec.events import DROP, NO_FEATURES, NO_ID, NO_LABEL, Events
from worker.models.intake import Bools

# Keys that go at one event because it is time, beside the event's own. An event adds one use at most, so what is
# due does not get more while events come; the records that tell of more keys would make a batch take too long.
AT_ONCE = 1
_LAST = 5  # timestamps that the clock is the median of
_UNSEEN = -1  # in the place of one that has not come yet
_END_OF_TIME = 1 << 61  # of the clock: spans are added to it, and what stands for stamps to come is above
NO_TIMES: Int64s = np.zeros(0, np.int64)
_NEVER = np.iinfo(np.int64).max  # the stamp of uses whose clock is not known yet
_NAME = "expiry"  # of the arrays in checkpoints, before their own
MEANWHILE = (f"{_NAME}.place", f"{_NAME}.apart")  # arrays that there are while keys get other numbers
_HEAD, _DUE, _PREVIOUS, _LATEST, _TAIL, _WAITING, _GONE = range(7)  # of `counts`


class Clock:
    """What time it is in a partition, in ms; 0 until five records have come."""

    def __init__(self) -> None:
        self.last: Int64s = np.full(_LAST, _UNSEEN, np.int64)
        self.now: Int64s = np.zeros(1, np.int64)

    def see(self, timestamps: Int64s) -> Int64s:
        """Return the time after each record; one without a timestamp leaves the clock as it is. O(n)."""
        told = timestamps >= 0
        seen = np.concatenate([self.last, timestamps[told]])
        windows = np.lib.stride_tricks.sliding_window_view(seen, _LAST)
        medians = np.minimum(np.partition(windows, _LAST // 2, axis=1)[:, _LAST // 2], _END_OF_TIME)
        medians[(windows < 0).any(axis=1)] = 0
        medians[0] = self.now[0]
        after = np.maximum.accumulate(medians)
        self.last, self.now = seen[-_LAST:].copy(), after[-1:].copy()
        return after[np.cumsum(told)]


class Expired(NamedTuple):
    """The keys that go in a part, in order."""

    event: Int64s  # before which event of the part
    key: Int32s
    stamp: Int64s  # the time of its last event
    due: Int64s  # how many more could have gone there


class Part(NamedTuple):
    """Consecutive events of a batch: none of their keys can be due again in the same part."""

    events: Events
    instance: Int32s  # the number of each event's key
    record: Int64s  # int64[n], which of the part's records each event is of, counting those that have events
    clock: Int64s  # int64[m], after each of these records


class Expiry:
    """Which keys of a model have been idle for longer than a span.

    Uses stand in a queue in the order of time, at most one a key and part; of each key only the last one counts.
    The time of a use is the clock two records later, when the median can have come to the use's own timestamp:
    after a long silence the clock jumps, and a key whose event came just before was not idle.

    Parameters
    ----------
    span : int
        In ms, above 0.
    """

    def __init__(self, span: int) -> None:
        self._span = span
        self._clock = Clock()
        self._key: Int32s = np.zeros(16, np.int32)
        self._stamp: Int64s = np.zeros(16, np.int64)
        # Where the queue begins; where the uses begin that were not due yet, those of the last record but one, and
        # those of the last; where it ends. How many keys are due and have not gone, and how many have gone.
        self._counts: Int64s = np.zeros(7, np.int64)
        # By key: where its last use stands, -1: it is not alive.
        self._place: Int64s = np.zeros(0, np.int64)
        # The same of keys that have not moved, while others have (moving.py): in the queue key k of these is ~k.
        self._apart: Int64s = NO_TIMES

    @property
    def gone(self) -> int:
        """How many keys have expired so far."""
        return int(self._counts[_GONE])

    @property
    def due(self) -> int:
        """How many keys are due and have not gone yet."""
        return int(self._counts[_WAITING])

    def since(self, key: int) -> int:
        """Return the time of the last use of a key that is alive; 0 where the clock does not tell it yet."""
        stamp = int(self._stamp[self._place[key]])
        return stamp if stamp != _NEVER else int(self._clock.now[0])

    # --- a batch

    def parts(self, events: Events, instance: Int32s, timestamps: Int64s) -> Iterator[Part]:
        """Yield the events of a batch in parts, each of them to be planned, applied and `noted` before the next.

        Parameters
        ----------
        events : Events
            Those of a batch.
        instance : Int32s
            The number of each event's key.
        timestamps : Int64s
            Of the records. Those without an event do not count.
        """
        self._make_room_for(int(instance.max(initial=-1)) + 1)
        records, record = np.unique(events.record, return_inverse=True)
        clock = self._seen(timestamps[records])
        start = 0
        while start < len(records):
            stop = len(records)
            if clock[start] > 0:
                stop = max(start + 1, int(np.searchsorted(clock, clock[start] + self._span)))
            first, last = np.searchsorted(record, (start, stop)).tolist()
            yield Part(
                _sliced(events, first, last), instance[first:last], record[first:last] - start, clock[start:stop]
            )
            start = stop

    def _seen(self, timestamps: Int64s) -> Int64s:
        """Return the clock after each record; once it goes, it is taken to have gone from the beginning."""
        was_set = self._clock.now[0] > 0
        clock = self._clock.see(timestamps)
        if not was_set and self._clock.now[0] > 0:
            begins = clock[np.argmax(clock > 0)]
            clock[clock == 0] = begins
            queued = self._stamp[: self._counts[_TAIL]]
            queued[queued == 0] = begins
        return clock

    def plan(self, part: Part) -> Expired:
        """Return which keys go: before its own event a key that is due, and some of those that are due longest."""
        counts, clock = self._counts, part.clock
        self._stamp[counts[_PREVIOUS] : counts[_LATEST]] = clock[0]
        if len(clock) > 1:
            self._stamp[counts[_LATEST] : counts[_TAIL]] = clock[1]
        begin, tail = int(counts[_DUE]), int(counts[_TAIL])
        limit = int(clock[-1]) - self._span
        if clock[-1] == 0 or not (counts[_WAITING] or (begin < tail and self._stamp[begin] <= limit)):
            return NOBODY
        end = begin + int(np.searchsorted(self._stamp[begin:tail], limit, side="right"))
        n = len(part.instance)
        keys, first = np.unique(part.instance, return_index=True)
        looked, waiting = self._waiting(keys, n)
        # Of what becomes due now, which may be all keys there are, some can go; of the rest the number is enough.
        new = self._counting(begin, end)
        own = self._place[keys]
        own = np.sort(own[(own >= begin) & (own < end)])
        some = new[: n * (AT_ONCE + 2)]  # n of these may be used before they are due
        later = own[own > some[-1]] if len(some) else own[:0]
        at = np.concatenate([waiting, some, later])
        key, stamp = self._key[at], self._stamp[at]
        own_at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        used = np.where(keys[own_at] == key, first[own_at], n)  # the first event of each key
        due = np.searchsorted(clock[part.record], stamp + self._span)  # the event at which it is due
        idle = used >= due
        busy = due[len(waiting) :][~idle[len(waiting) :]]  # of what becomes due now, what is used before
        at, key, stamp, used, due = at[idle], key[idle], stamp[idle], used[idle], due[idle]
        event = _going(due, used, n)
        goes = event < n
        order = np.flatnonzero(goes)
        # The key of an event goes before those whose turn it is.
        order = order[np.lexsort((order, event[order] != used[order], event[order]))]
        until = clock[part.record[event[order]]] - self._span
        become = np.searchsorted(self._stamp[new], until, side="right")
        become -= np.searchsorted(busy, event[order], side="right")
        left = counts[_WAITING] + become - np.arange(1, len(order) + 1)
        # What is before goes, or is used again in this part.
        left_out = new[len(some) :][:1].tolist()
        counts[_HEAD] = min([*at[~goes][:1].tolist(), *left_out, end, *([looked] if looked < begin else [])])
        counts[_DUE] = end
        counts[_WAITING] += len(new) - len(busy) - len(order)
        return Expired(event[order], key[order], stamp[order], left)

    def _waiting(self, keys: Int32s, n: int) -> tuple[int, Int64s]:
        """Return places of keys that have been due before: as many as may go at n events, and all of these keys.

        And up to where in the queue was looked for it: what has been due for long is not looked at in each part.
        """
        head, begin = int(self._counts[_HEAD]), int(self._counts[_DUE])
        most = n * (AT_ONCE + 1)
        stop = min(head + most, begin)
        found = self._counting(head, stop)
        while len(found) < most and stop < begin:
            before, stop = stop, min(stop + most, begin)
            found = np.concatenate([found, self._counting(before, stop)])
        own = self._place[keys]
        return stop, np.concatenate([found, np.sort(own[(own >= stop) & (own < begin)])])

    def _counting(self, begin: int, end: int) -> Int64s:
        """Return which places of a part of the queue are those of last uses."""
        at: Int64s = np.arange(begin, end)
        counts: Int64s = at[self._places(self._key[begin:end]) == at]
        return counts

    def _places(self, keys: Int32s) -> Int64s:
        """Return where the last uses of keys of the queue stand."""
        if not len(self._apart):
            return self._place[keys]
        is_apart = keys < 0
        places: Int64s = np.empty(len(keys), np.int64)
        places[is_apart], places[~is_apart] = self._apart[~keys[is_apart]], self._place[keys[~is_apart]]
        return places

    def note(self, part: Part, expired: Expired, are_alive: Callable[[Int32s], Bools]) -> None:
        """Note what has become of a part, now that it is known which of its keys are alive."""
        self._counts[_GONE] += len(expired.key)
        last = _last_events(part.instance)
        keys = part.instance[last]
        self._place[expired.key] = self._place[keys] = -1
        alive = are_alive(keys)
        keys, at, m = keys[alive], part.record[last][alive], len(part.clock)
        if self._counts[_TAIL] + len(keys) > len(self._key):
            self._compact(len(keys))
        tail = int(self._counts[_TAIL])
        stop = tail + len(keys)
        self._key[tail:stop] = keys
        self._stamp[tail:stop] = np.append(part.clock, (_NEVER, _NEVER))[at + 2]
        self._place[keys] = np.arange(tail, stop)
        self._counts[_PREVIOUS] = self._counts[_LATEST] if m == 1 else tail + np.count_nonzero(at < m - 2)
        self._counts[_LATEST] = tail + np.count_nonzero(at < m - 1)
        self._counts[_TAIL] = stop

    def _make_room_for(self, keys: int) -> None:
        before = len(self._place)
        if keys > before:
            longer = np.full(max(keys, 2 * before), -1, np.int64)
            longer[:before] = self._place
            self._place = longer

    def _compact(self, more: int) -> None:
        """Leave out what no longer counts, and make room for more. Amortised O(1) a use."""
        head, tail = int(self._counts[_HEAD]), int(self._counts[_TAIL])
        kept = self._counting(head, tail)
        size = max(16, 2 * (len(kept) + more))
        key, stamp = np.zeros(size, np.int32), np.zeros(size, np.int64)
        key[: len(kept)], stamp[: len(kept)] = self._key[kept], self._stamp[kept]
        within = [_DUE, _PREVIOUS, _LATEST]
        self._counts[within] = np.searchsorted(kept, self._counts[within])
        self._key, self._stamp = key, stamp
        self._counts[_HEAD], self._counts[_TAIL] = 0, len(kept)
        at = np.arange(len(kept))
        is_apart = key[: len(kept)] < 0
        self._place[key[at[~is_apart]]] = at[~is_apart]
        self._apart[~key[at[is_apart]]] = at[is_apart]

    # --- keys that get other numbers

    def begin_move(self, alive: int) -> None:
        """Set all keys apart, of which so many are alive: each of these shall get another number."""
        tail = int(self._counts[_TAIL])
        np.invert(self._key[:tail], out=self._key[:tail])
        self._apart, self._place = self._place, NO_TIMES
        self._make_room_for(alive)

    def move(self, keys: Int32s, to: Int32s) -> None:
        """Give keys that were set apart other numbers; their uses stay where they are."""
        self._make_room_for(int(to.max(initial=-1)) + 1)
        at = self._apart[keys]
        self._key[at] = to
        self._place[to] = at
        self._apart[keys] = -1

    def end_move(self) -> None:
        """All keys have their new numbers."""
        self._compact(0)  # no number from before stays in the queue
        self._apart = NO_TIMES

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state as named arrays, not copied."""
        # A key may get the number of one that was used later and has gone, so places do not follow from the queue.
        moving = dict(zip(MEANWHILE, (self._place, self._apart), strict=True)) if len(self._apart) else {}
        return moving | {
            f"{_NAME}.last": self._clock.last,
            f"{_NAME}.now": self._clock.now,
            f"{_NAME}.key": self._key,
            f"{_NAME}.stamp": self._stamp,
            f"{_NAME}.counts": self._counts,
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], are_alive: Callable[[Int32s], Bools]) -> None:
        """Take over a state that `arrays` returned, which may be among others."""
        self._clock.last, self._clock.now, self._key, self._stamp, self._counts = (
            arrays[f"{_NAME}.{name}"] for name in ("last", "now", "key", "stamp", "counts")
        )
        tail = int(self._counts[_TAIL])
        queued = self._key[:tail]
        if MEANWHILE[0] in arrays:
            self._place, self._apart = (arrays[name] for name in MEANWHILE)
            return
        self._place = self._apart = NO_TIMES
        self._make_room_for(int(queued.max(initial=-1)) + 1)
        self._place[queued] = np.arange(tail)  # of equal ones the last counts
        self._place[queued[~are_alive(queued)]] = -1

    def uses(self) -> list[tuple[int, int]]:
        """Return the keys in the order of their last uses, each with its time. For tests."""
        at = self._counting(int(self._counts[_HEAD]), int(self._counts[_TAIL]))
        return list(zip(self._key[at].tolist(), self._stamp[at].tolist(), strict=True))

    def check(self, alive: int) -> None:
        """Raise AssertionError unless all invariants hold and so many keys are alive. For tests."""
        uses = self.uses()
        stamps = [stamp for _, stamp in uses]
        assert stamps == sorted(stamps), "the queue is not in the order of time"
        placed = np.count_nonzero(self._place >= 0) + np.count_nonzero(self._apart >= 0)
        assert len(uses) == alive == placed, "a key that is alive has no use"
        head, due, previous, latest, tail, waiting, _ = self._counts.tolist()
        assert head <= due <= tail
        assert previous <= latest <= tail
        assert waiting == len(self._counting(head, due))


NOBODY = Expired(NO_TIMES, np.zeros(0, np.int32), NO_TIMES, NO_TIMES)


def _going(due: Int64s, used: Int64s, n: int) -> Int64s:
    """Return before which of n events each key goes, n: before none of these.

    `due` rises: the event from which on a key may go; `used` is its own first event from there on, when it goes at
    the latest. At each event `AT_ONCE` go.
    """
    event, most = used.copy(), n * (AT_ONCE + 1)  # so many can go
    at, room = 0, AT_ONCE
    for number, (begin, own) in enumerate(zip(due[:most].tolist(), used[:most].tolist(), strict=True)):
        if begin > at:
            at, room = begin, AT_ONCE
        if own <= at:
            continue
        if not room:
            at, room = at + 1, AT_ONCE
            if at >= n:
                break
            if own <= at:
                continue
        event[number] = at
        room -= 1
    return event


def _last_events(instance: Int32s) -> Int64s:
    """Return the last event of each key, ascending."""
    _, behind = np.unique(instance[::-1], return_index=True)
    return np.sort(len(instance) - 1 - behind)


def with_own(part: Part, expired: Expired, turns: Int64s) -> tuple[Events, Int32s]:
    """Return the events of a part with those of the model's own before them, and their keys.

    A tombstone stands before the event at which a key goes, then, before the events of `turns`, which rise, what
    lets an example go.
    """
    own = np.concatenate([expired.event, turns])
    if not len(own):
        return part.events, part.instance
    by_event = np.argsort(own, kind="stable")
    own = own[by_event]
    order = np.insert(np.arange(len(part.instance)), own, own)
    added = own + np.arange(len(own))
    changed = {name: getattr(part.events, name)[order] for name in _ROWS}
    for name, value in (("op", DROP), ("id_kind", NO_ID), ("label_kind", NO_LABEL), ("space", NO_FEATURES)):
        changed[name][added] = value
    changed["op"][added[by_event >= len(expired.event)]] = LET_GO
    sizes = np.diff(part.events.pointer)[order]
    sizes[added] = 0
    instance = part.instance[order]
    instance[added] = np.concatenate([expired.key, np.zeros(len(turns), np.int32)])[by_event]
    pointer = np.concatenate([[0], np.cumsum(sizes)])
    return part.events._replace(pointer=pointer, **changed), instance


_ONES = ("feature", "name_start", "name_size", "value")
_ROWS = tuple(name for name in Events._fields if name not in ("buffer", "pointer", *_ONES))


def _sliced(events: Events, first: int, last: int) -> Events:
    """Return the events from one up to another."""
    if first == 0 and last == len(events.op):
        return events
    begin, end = int(events.pointer[first]), int(events.pointer[last])
    columns = {name: getattr(events, name)[first:last] for name in _ROWS}
    columns |= {name: getattr(events, name)[begin:end] for name in _ONES}
    return Events(buffer=events.buffer, pointer=events.pointer[first : last + 1] - begin, **columns)
