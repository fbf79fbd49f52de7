"""The steps that every kind of model takes from events to an outcome; kinds fill in what is theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int8s, Int32s, Int64s, UInt32s
from algorithms.core.events import LEFT, LET_GO, SINCE, Op, Status
from algorithms.core.events import Events as Columns
from algorithms.core.names import Interner
from algorithms.core.pool import Answered
from worker.codec import Events, Expired, LetGo, Source
from worker.codec.encode import Output
from worker.codec.events import NO_ID
from worker.log.port import Records
from worker.models.aging import AT_ONCE as AT_ONCE_LET_GO
from worker.models.aging import TOLD_EVERY, Aging
from worker.models.awaited import Awaited
from worker.models.expiry import NO_TIMES, NOBODY, Expiry, Part, with_own
from worker.models.expiry import Expired as Going
from worker.models.holdings import Holdings
from worker.models.intake import Intake, Labels, id_digests, refusal, source_of
from worker.models.keys import Keys
from worker.models.moving import (
    AT_ONCE,
    MOVED,
    Left,
    Memory,
    MovingPool,
    PackingPool,
    give_back,
    is_sparse,
    moved_of,
    needed,
)
from worker.models.port import BEFORE, Outcome, Refusal, Result
from worker.models.refusals import REFUSALS
from worker.models.values import Values, any_values
from worker.settings.values import Span
from worker.watching.status import ModelStatus


class Pool(Protocol):
    """What a model needs of the pool that holds its instances."""

    names: Interner | None

    @property
    def alive(self) -> int:
        """How many instances have learned something."""
        ...

    def are_alive(self, keys: Int32s) -> npt.NDArray[np.bool_]:
        """Return which instances have."""
        ...

    def sweep(self, interned: Any) -> None:
        """Forget the names that nothing refers to."""
        ...

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state."""
        ...

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Take a state over."""
        ...

    def check(self) -> None:
        """Raise AssertionError unless every invariant holds."""
        ...


_EXPIRED_SEQ = BEFORE  # no event has as many results of its own
_LET_GO_SEQ, _LET_GO_EACH = BEFORE + 1_000_000, 1_000_000  # nor has an example that goes before an event

# As plain numbers: to look a member up takes as long as to compare a small batch with it.
_OPERATIONS = tuple(kind.name.lower() for kind in Op)
_INSERT, _DELETE, _DROP = int(Op.INSERT), int(Op.DELETE), int(Op.DROP)
_APPLIED, _IGNORED, _ALREADY_DROPPED = int(Status.APPLIED), int(Status.IGNORED), int(Status.ALREADY_DROPPED)
_SKIPPED = int(Status.SKIPPED)  # codes behind it are refusals

_NO_CLOCK: Int64s = np.zeros((0, 3), np.int64)

P = TypeVar("P", bound=Pool)
A = TypeVar("A", bound=Answered)


class Prepared(NamedTuple):
    """The events of a batch, as the model understands them."""

    records: Records
    events: Events
    label: Labels  # as the model's `Intake` makes them, -1 or nan where the label is none of the model's
    feature: UInt32s  # uint32[ones], ids, or numbers of names
    instance: Int32s  # int32[n], the number of each event's key
    op: Int8s  # int8[n], negative where the event is refused already
    clock: Int64s  # int64[n, 3], as `Events.clock` of pools
    key_of: Callable[[int], bytes]  # the key behind a number

    def result(self, event: int, seq: int, output: Output, *, keyed: bool = True) -> Result:
        """Return a result that follows from an event, or from an example that has gone before one."""
        record, row = int(self.events.record[event]), int(self.events.row[event])
        if self.op[event] != LET_GO:
            return Result(record, row, seq, output, keyed)
        begin = max(event - AT_ONCE_LET_GO + 1, 0)
        turn = int(np.count_nonzero(self.op[begin:event] == LET_GO))
        key = self.key_of(int(self.instance[event])) if keyed else None
        return Result(record, row, _LET_GO_SEQ + _LET_GO_EACH * turn + seq, output, keyed, key)

    def applied(self, status: Int8s) -> dict[str, int]:
        """Return how many events were applied, by operation."""
        counts = np.bincount(self.op[status == _APPLIED], minlength=len(_OPERATIONS))
        return dict(zip(_OPERATIONS, counts.tolist(), strict=False))  # `LET_GO`, behind them, is none

    def columns(self) -> Columns:
        """Return the events as pools take them."""
        events = self.events
        high, low = id_digests(events)
        return Columns(
            key=self.instance,
            op=self.op,
            label=self.label,
            weight=events.weight,
            # What goes has no event time: that of the event may be of another key, and begins none of its periods.
            time=events.time if not len(self.clock) else np.where(self.op == LET_GO, 0, events.time),
            named=(events.id_kind != NO_ID).astype(np.int8),
            id_high=high,
            id_low=low,
            pointer=events.pointer,
            feature=self.feature,
            value=events.value,
            clock=self.clock,
        )


class PoolModel(ABC, Generic[P, A]):
    """All instances of one model name in one partition, in one pool.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    intake : Intake
        Its labels and features.
    pool : Pool
        An empty one.
    awaited : Awaited
        What the settings name, to be told where it does not come.
    expire : Span, optional
        For how long a key must have had no event to be dropped.
    window : Span, optional
        For how long examples are kept.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"learned"})  # of a pool of `Rows`

    def __init__(
        self,
        name: str,
        intake: Intake,
        pool: P,
        awaited: Awaited,
        expire: Span | None = None,
        window: Span | None = None,
    ) -> None:
        self.name = name
        self._awaited = awaited
        self._intake = intake
        self._pool = pool
        self._keys = Keys()
        self._expiry = Expiry(expire.ms) if expire is not None else None
        self._aging = Aging(window.ms) if window is not None else None
        self._memory: Memory | None = None  # for a smaller pool
        self._left: Left[Any] | None = None  # while what lives moves to it

    # --- what kinds fill in

    @abstractmethod
    def _outcome(self, prepared: Prepared, answers: A) -> Outcome:
        """Return results and the counts that are the kind's own; the rest is filled in."""

    def _checked(self, feature: UInt32s, events: Events) -> Values:  # noqa: ARG002
        """Return which of `events.value` the model does not take: none unless a kind says otherwise."""
        return any_values(events.value)

    def _taken(self, feature: UInt32s, events: Events, values: Values) -> tuple[UInt32s, Events]:  # noqa: ARG002
        """Return features, and events with their values, as the pool takes them; those that are wrong stay."""
        return feature, events

    def _apply(self, prepared: Prepared) -> A:
        """Let the pool apply the events; a kind whose pool takes no columns has a way of its own."""
        pool: Any = self._pool
        answers: A = pool.apply(self._columns(prepared), checked=True)
        return answers

    def _renumber(self, keys: Int32s) -> None:
        """Let what the kind knows of keys beside the pool follow: these have the numbers from 0 on from now on."""

    def _columns(self, prepared: Prepared) -> Columns:
        """Return the events as the pool shall take them."""
        return prepared.columns()

    def _looks_at_deletes(self) -> bool:
        """Return whether features and label of a delete by value are looked at; with an id they never are."""
        return True

    # --- events

    def apply(self, records: Records, events: Events) -> Outcome:
        """Apply the events of a batch of records, strictly in order; a refused one changes nothing."""
        numbers = self._keys.numbers(records)
        instance = numbers[events.record]
        if self._left is not None:
            self._move(self._left.keys.known(dict.fromkeys(key or b"" for key in records.keys)))
        if (self._expiry is None and self._aging is None) or not len(instance):
            outcome = self._take(records, events, instance)
        else:
            outcome, numbers = self._take_by_time(records, events, instance, numbers)
        # Keys were interned before it was known whether their events would be accepted.
        self._keys.keep(numbers, self._pool.are_alive)
        self._move_on(len(instance))
        return outcome

    def _take_by_time(
        self, records: Records, events: Events, instance: Int32s, numbers: Int32s
    ) -> tuple[Outcome, Int32s]:
        """Apply events, and let go what is due before them; return the numbers of all keys that this was about."""
        pool: Any = self._pool
        if self._aging is not None:
            self._aging.see(events, records.timestamps, pool)
        outcome = Outcome(())
        if self._expiry is None:
            outcome = self._take_part(records, Part(events, instance, NO_TIMES, NO_TIMES), NOBODY)
        else:
            for part in self._expiry.parts(events, instance, records.timestamps):
                going = self._with_moved(self._expiry.plan(part))
                outcome = outcome.then(self._take_part(records, part, going))
                self._expiry.note(part, going, self._pool.are_alive)
                numbers = np.concatenate([numbers, going.key])
        if self._aging is not None:
            self._aging.done(pool)
        return outcome, numbers

    def _take_part(self, records: Records, part: Part, going: Going) -> Outcome:
        """Apply some events, and before them let go keys and examples that are due; results tell of these."""
        turns = NO_TIMES
        if self._aging is not None:
            pool: Any = self._pool
            turns, left = self._aging.turns(part, pool, self._left.pool if self._left is not None else None)
            if len(left):
                self._move(left)
        events, instance = with_own(part, going, turns)
        outcome = self._take(records, events, instance)
        if not len(going.key):
            return outcome
        assert self._expiry is not None
        results, told = list(outcome.results), part.events
        record, row = told.record[going.event], told.row[going.event]
        seq = _EXPIRED_SEQ + np.arange(len(going.key)) - np.searchsorted(going.event, going.event)
        columns = (record, row, seq, records.offsets[record], told.time[going.event], *going[1:4])
        for number, (at, of_it, last, offset, time, key, stamp, due) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True), start=self._expiry.gone + 1
        ):
            source = Source(*records.source, offset, of_it, time)
            expired = Expired(self.name, stamp, number, due, source)
            results.append(Result(at, of_it, last, expired, key=self._keys.key(key)))
        results.sort(key=attrgetter("place"))
        applied = dict(outcome.applied)
        applied["drop"] -= len(going.key)
        return outcome._replace(results=results, applied=applied, expired=len(going.key))

    def _take(self, records: Records, events: Events, instance: Int32s) -> Outcome:
        """Apply events, whose keys have these numbers."""
        label = self._intake.labels(events)
        feature = self._intake.numbers(events, self._pool.names)
        deletes = events.op == _DELETE
        bare = (
            (events.op == _DROP)
            | (events.op == LET_GO)
            | (deletes & ((events.id_kind != NO_ID) | (not self._looks_at_deletes())))
        )
        values = self._checked(feature, events)
        op, refused = self._intake.validate(events, label, bare, values.wrong, partial(values.detail, events))
        clock = self._aging.clock(events, op) if self._aging is not None else _NO_CLOCK
        taken, events = self._taken(feature, events, values)
        prepared = Prepared(records, events, label, taken, instance, op, clock, self._keys.key)
        gone = self._gone
        answers = self._apply(prepared)
        status = answers.status
        refused += [
            refusal(events, event, *REFUSALS[Status(int(status[event]))])
            for event in np.flatnonzero(status > _SKIPPED).tolist()
        ]
        self._awaited.see(label[(op == _INSERT) & (status == _APPLIED)], feature, self._pool.names)
        outcome = self._outcome(prepared, answers)._replace(
            missing=self._awaited.missing,
            has_others=self._awaited.has_others,
            refusals=sorted(refused, key=_place),
            applied=prepared.applied(status),
            ignored=int(np.count_nonzero(status == _IGNORED)),
            already_dropped=int(np.count_nonzero(status == _ALREADY_DROPPED)),
        )
        if self._gone > gone:
            outcome = self._with_let_go(outcome, prepared, status, gone)
        # Names were interned before it was known whether their events would be accepted.
        self._pool.sweep(feature if taken is feature else np.concatenate([feature, taken]))
        return outcome

    def _with_let_go(self, outcome: Outcome, prepared: Prepared, status: Int8s, gone: int) -> Outcome:
        """Tell of examples that went because it was time, of every so many of them in a result."""
        went = np.flatnonzero((prepared.op == LET_GO) & (status == _APPLIED))
        results = list(outcome.results)
        for at in range(-gone % TOLD_EVERY, len(went), TOLD_EVERY):
            event = int(went[at])
            since, due = prepared.clock[event, [SINCE, LEFT]].tolist()
            source = source_of(prepared.records, prepared.events, event)
            told = LetGo(self.name, since, gone + at + 1, due, source)
            results.append(prepared.result(event, _LET_GO_EACH - 1, told, keyed=False))
        results.sort(key=attrgetter("place"))
        return outcome._replace(results=results, let_go=len(went))

    # --- moving to a smaller pool, see moving.py

    def _move_on(self, events: int) -> None:
        """Go on with what a move to a smaller pool takes, as far as so many events allow."""
        if self._left is not None:
            self._move(self._left.next(AT_ONCE * events))
            if not len(self._left.keys):
                self._end_move()
        elif self.due or not is_sparse(self._pool, self._keys):
            self._memory = None
        else:
            self._memory = self._memory or Memory(needed(self._pool, self._keys))
            if self._memory.made_ready(events):
                self._memory = None  # the new arrays take it
                if isinstance(self._pool, PackingPool):
                    self._pack()
                else:
                    self._begin_move()

    def _pack(self) -> None:
        """Let all keys move at once."""
        pool: Any = self._pool
        keys, _ = self._keys.in_use(0, max(len(self._keys), 1))
        packed = self._keys.emptied()
        to = packed.given(map(self._keys.key, keys.tolist()))
        pool.pack(keys)
        packed.keep(to, pool.are_alive)
        self._keys = packed
        self._renumber(keys)
        if self._expiry is not None:
            self._expiry.begin_move(len(keys))
            self._expiry.move(keys, to)
            self._expiry.end_move()
        give_back()

    def _begin_move(self) -> None:
        pool: Any = self._pool
        self._left = Left(pool, self._keys)
        self._pool, self._keys = pool.emptied(), self._keys.emptied()
        if self._expiry is not None:
            self._expiry.begin_move(pool.alive)

    def _move(self, keys: Int32s) -> Int32s:
        """Move keys that are left; return their new numbers."""
        assert self._left is not None
        pool: Any = self._pool
        to = self._keys.given(map(self._left.keys.key, keys.tolist()))
        if len(keys):
            pool.take(self._left.pool, keys, to)
            self._left.keys.forget(keys)
            self._keys.keep(to, pool.are_alive)
            if self._expiry is not None:
                self._expiry.move(keys, to)
        return to

    def _with_moved(self, going: Going) -> Going:
        """Let those of the keys that go that are left move first."""
        is_left = going.key < 0
        if not is_left.any():
            return going
        key = going.key.copy()
        key[is_left] = self._move(~key[is_left])
        return going._replace(key=key)

    def _end_move(self) -> None:
        self._left = None
        if self._expiry is not None:
            self._expiry.end_move()
        pool: Any = self._pool
        pool.moved()
        give_back()

    @property
    def is_moving(self) -> bool:
        """Whether it moves to a smaller pool, or is about to."""
        return self._left is not None or self._memory is not None

    def settle(self) -> None:
        """Let all that is left move at once: for those who look at the arrays of a copy."""
        if self._left is not None:
            self._move(self._left.next(len(self._left.keys)))
            self._end_move()

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them."""
        self._pool.warm_up()

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        own = self._keys.arrays() | self._expiring() | self._pool.arrays()
        if self._left is None:
            return own
        left: dict[str, npt.NDArray[Any]] = self._left.keys.arrays() | self._left.pool.arrays()
        return left | {MOVED + name: array for name, array in own.items()}

    def _expiring(self) -> dict[str, npt.NDArray[Any]]:
        expiring = self._expiry.arrays() if self._expiry is not None else {}
        return expiring | (self._aging.arrays() if self._aging is not None else {})

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        self._left = self._memory = None
        own = moved_of(arrays)
        if own:
            pool: Any = self._pool
            self._left = Left(pool.emptied(), Keys())
            self._left.keys.restore(arrays)
            self._left.pool.restore(arrays)
        self._keys.restore(own or arrays)
        self._pool.restore(own or arrays)
        if self._expiry is not None:
            self._expiry.restore(own or arrays, self._pool.are_alive)
        if self._aging is not None:
            self._aging.restore(own or arrays)

    @property
    def due(self) -> int:
        """How many keys are due and have not gone yet."""
        return self._expiry.due if self._expiry is not None else 0

    @property
    def examples_due(self) -> int:
        """How many examples are due and have not gone yet."""
        pool: Any = self._pool
        return pool.due if self._aging is not None else 0

    @property
    def _gone(self) -> int:
        """How many examples have gone because it was time."""
        pool: Any = self._pool
        return pool.gone if self._aging is not None else 0

    def status(self) -> ModelStatus:
        """Return how large the model is."""
        size = sum(array.nbytes for array in self.arrays().values())
        return ModelStatus(
            self.name, keys=self._pool.alive, bytes=size, due=self.due, examples_due=self.examples_due
        )

    def keys(self) -> list[bytes]:
        """Return the keys that it holds something of."""
        self.settle()
        numbers, _ = self._keys.in_use(0, max(len(self._keys), 1))
        return [self._keys.key(number) for number in numbers.tolist()]

    def about(self, key: bytes) -> dict[str, Any]:
        """Return how large what it holds of such a key is and what it did, as numbers with names."""
        self.settle()
        [number] = self._keys.known([key]).tolist()
        sizes = getattr(self._pool, "sizes", None)
        told: dict[str, Any] = sizes(number)._asdict() if sizes is not None else {}
        if self._expiry is not None:
            told["idle_since"] = self._expiry.since(number)
        return told

    def holdings(self) -> Mapping[bytes, Holdings] | None:
        """Return None: unless a kind says otherwise, it learns for good, or is only near to what is live."""
        return None

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. For tests."""
        if self._left is None:
            self._pool.check()
            self._keys.check(self._pool.alive)
        else:
            pool, left = cast("MovingPool", self._pool), self._left
            pool.check_beside(left.pool)
            left.keys.check(left.pool.alive)
            self._keys.check(self._pool.alive - left.pool.alive)
        if self._expiry is not None:
            self._expiry.check(self._pool.alive)


def _place(each: Refusal) -> tuple[int, int]:
    return each.record, each.row
