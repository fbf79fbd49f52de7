"""Split models: the best split of every key's stream, after every event, in one pool of flat arrays."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import ages, example_store
from algorithms.core.aging import AgingPool
from algorithms.core.arrays import Float64s, Int32s, Int64s, UInt32s, extended, larger
from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import CRITERIA, UNIT, make_criterion
from algorithms.core.events import Batch, Events, OnDuplicate, Op
from algorithms.core.fixed_point import MAX_TOTAL as MAX_TOTAL  # for all who import it from here
from algorithms.core.given import check_columns, features_of, key_of, whole
from algorithms.core.jit import direct
from algorithms.core.kinds import Kind
from algorithms.core.names import HIGH, NO_NAMES, Interner, name_or_id
from algorithms.core.pool import MEMO, Example, OneByOne
from algorithms.core.schema import Schema
from algorithms.splits import finders, kernel, last, moving, ranking, slots
from algorithms.splits.kernel import ALIVE, Decisions, Out, Rules, State
from algorithms.splits.slots import C0, C1, FEATURES, N0, N1, NONE, feature_of


class Split(NamedTuple):
    """A split of one key's examples, as a library user sees it."""

    feature: int | bytes | None
    score: float  # weight times impurity after the split; of the node itself where there is none
    runner_up: int | bytes | None
    runner_up_score: float
    totals: tuple[int, int]  # in units of 2^-20
    present: tuple[int, int]


class Ranked(NamedTuple):
    """One of the best features of a key."""

    feature: int | bytes
    score: float  # weight times impurity after the split
    present: tuple[int, int]  # weights of the labels where the feature is present, in units of 2^-20


class Sizes(NamedTuple):
    """How large what is held of a key is, and what was done for it."""

    events: int  # inserts and deletes applied
    features: int  # that are counted
    examples: int  # live ones that are kept, to be deleted by their ids or to leave a window


class SplitCalls(OneByOne[Decisions, Float64s]):
    """The calls for one event and one key, of a pool and of a pool in shards."""

    _LEAST = 1

    @abstractmethod
    def features(self, key: int) -> int:
        """Return how many features a key has seen."""

    @abstractmethod
    def top(self, key: int = 0, k: int = 10, limit: float = np.inf) -> list[Ranked]:
        """Return the `k` best features of a key now, by score, then by feature.

        Those that score worse than `limit` are left out. A search like that for the best, at worst a look at
        every feature; it changes no state.
        """

    def within(self, key: int = 0, alpha: float = 0.0) -> list[int | bytes]:
        """Return the features whose score is at most (1 + alpha) times the best, by score, then by feature.

        Where nothing splits the node there are none. No state is changed.
        """
        if not 0.0 <= alpha < np.inf:
            raise ValueError(f"expected a finite alpha of at least 0, got {alpha}")
        return [
            row.feature
            for best in self.top(key, 1)
            for row in self.top(key, self.features(key), (1.0 + alpha) * best.score)
        ]

    def _entries(self, x: Example) -> tuple[UInt32s, Float64s]:
        feature = features_of(x, self.names)
        return feature, np.ones(len(feature))

    def _prediction(self, answers: Decisions) -> Float64s:
        return answers.weights[0] / UNIT


class SplitPool(SplitCalls, AgingPool[State, Decisions, Float64s]):
    """Any number of split models in one set of arrays, one for each key.

    Features are present or absent: all values are 1.

    Parameters
    ----------
    finder : str
        A name in `FINDERS`.
    criterion : str
        A name in `CRITERIA`.
    alpha : float
        For the finders updent and updgini, from 0.001 to 100: their answers score at most (1 + alpha) times
        the best. The others ignore it.
    window : int, optional
        Keep only the last so many examples of each key.
    span : int, optional
        In ms: keep examples for so long, see ages.py. Events tell what the clock shows.
    verify_deletes : bool
        Keep every live example, so that a delete by value is checked exactly. Without it a delete by
        value is refused where the counts show that the example cannot be there.
    on_duplicate : OnDuplicate
        What an insert of a live id does.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    splits, trees : Emit
        When a decision is due.
    max_keys, max_live_ids : int
        Bounds; what would pass them is refused.
    """

    _ALIVE = ALIVE
    _START = (0, False)
    _COUNTED: ClassVar[type] = np.int32  # labels, as the kernel sees them

    def __init__(
        self,
        *,
        finder: str = "exact",
        criterion: str = "entropy",
        alpha: float = 0.1,
        window: int | None = None,
        span: int | None = None,
        verify_deletes: bool = False,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
        names: bool = False,
        splits: Emit = Emit(When.CHANGE),  # noqa: B008  (a constant)
        trees: Emit = Emit(),  # noqa: B008
        max_keys: int = 1 << 30,
        max_live_ids: int = 1 << 30,
    ) -> None:
        _check_choice("finder", finder, finders.FINDERS)
        _check_choice("criterion", criterion, CRITERIA)
        if min(splits.argument, trees.argument) < 1:
            raise ValueError("expected n or ms of at least 1 for what is emitted every so often")
        only = finders.FINDERS[finder].criterion
        if only not in (None, criterion):
            raise ValueError(f"finder {finder!r} serves the criterion {only!r} only, not {criterion!r}")
        if not 0.001 <= alpha <= 100.0:
            raise ValueError(f"expected an alpha from 0.001 to 100, got {alpha}")
        if window is not None and window < 1:
            raise ValueError(f"expected a window of at least 1 example, got {window}")
        self._module = finders.FINDERS[finder].module
        self.can_move = finder not in _HISTORY
        self.rules = Rules(
            window=window or 0,
            span=span or 0,
            tracked=verify_deletes or window is not None or span is not None,
            keyed=False,
            on_duplicate=int(on_duplicate),
            max_keys=max_keys,
            max_live_ids=max_live_ids,
            split_when=int(splits.when),
            split_argument=splits.argument,
            tree_when=int(trees.when),
            tree_argument=trees.argument,
        )
        self._make_finder = partial(finders.FINDERS[finder].make, 1, 16, alpha)
        state = self._empty(make_criterion(criterion, MEMO))
        super().__init__(state, names=names, kinds=Schema(Kind.BINARY, {}), criterion=criterion)
        self._apply = direct(kernel.apply)
        self._longest_live = 0  # features of the largest example in the example store

    def _empty(self, criterion: Any) -> State:
        return State(
            heads=np.array([kernel.HEAD], np.int64),
            alive=np.zeros(1, np.int64),
            slots=slots.make(1, 16),
            finder=self._make_finder(),
            store=example_store.make(1, aged=self.rules.span > 0),
            names=NO_NAMES,
            criterion=criterion,
        )

    # --- events

    def apply(self, events: Events, *, checked: bool = False) -> Decisions:
        """Apply events in order and return what was due. Amortised O(ones) for all that is built in but scans.

        Parameters
        ----------
        events : Events
            The events.
        checked : bool
            Whether the caller has made sure of what `check_events` looks for, as the worker's codec has.

        Raises
        ------
        ValueError
            Where they are no such events; none is applied.
        """
        if not checked:
            check_events(events, self.names)
        events = self._begin(events, checked=True)
        batch = _batch_of(events)
        longest = int(np.diff(events.pointer).max(initial=0))
        out = _out(len(events.key), max(longest, self._longest_live), len(events.feature))
        if self.rules.tracked or events.named.any():
            self._longest_live = max(self._longest_live, longest)
        told = list(self._run(batch, out))
        assert not told, "all that splits have to tell is in their decisions"
        return _trimmed(out)

    def _step(self, batch: Any, out: Any, *at: Any) -> tuple[Any, ...]:
        return self._apply(self._state, self.rules, batch, out, *at)

    @property
    def _heads(self) -> Int64s:
        return self._state.heads

    def _grow_keys(self, keys: int) -> None:
        self._grow(keys, len(self._state.slots.rows), int(self._state.slots.counts[slots.USED]))

    def _grow(self, keys: int, capacity: int, needed: int | None = None) -> None:
        before = len(self._state.heads)
        heads = extended(self._state.heads, keys)
        heads[before:] = kernel.HEAD
        self._state = self._state._replace(
            slots=slots.grown(self._state.slots, keys, capacity, needed),
            finder=self._module.grown(self._state.finder, keys, capacity),
            store=example_store.grown(self._state.store, keys),
            heads=heads,
        )

    def _enlarge(self, short: int, key: int, ones: int) -> None:  # noqa: ARG002
        state = self._state
        if short == kernel.SLOTS:
            needed = int(state.slots.counts[slots.USED]) + ones
            self._grow(len(state.heads), larger(len(state.slots.rows), needed), needed)
        elif short == kernel.BOXES:
            self._enlarge_finder()
        elif short == kernel.ROWS:
            self._state = state._replace(store=example_store.with_rows(state.store))
        else:
            self._state = state._replace(store=example_store.with_features(state.store, ones))

    def _enlarge_finder(self) -> None:
        self._state = self._state._replace(finder=self._module.enlarged(self._state.finder))

    def _heaviest(self) -> int:
        heads = self._state.slots.heads
        return int((heads[:, N0] + heads[:, N1]).max())

    # --- moving

    @property
    def held(self) -> tuple[int, int]:
        """Bytes of slots and examples that are in use, and of all that ever were: about."""
        state = self._state
        parts = ((state.slots.counts, _SLOT_BYTES), (state.store.counts, _EXAMPLE_BYTES))
        used, ever = (sum(int(counts[at]) * size for counts, size in parts) for at in (slots.USED, slots.EVER))
        return used, ever

    def emptied(self) -> Self:
        """Return a pool with the same settings that is empty, with room for what this one holds and no more.

        It counts the keys and the live ids of this one as its own: all move there, see `take`.
        """
        state = self._state
        pool = copy.copy(self)
        pool.names = Interner() if self.names is not None else None
        pool._apply = direct(kernel.apply)
        pool._state = self._empty(state.criterion)
        pool._grow(larger(1, self.alive), larger(16, self.slots))
        while len(pool._state.store.rows) < state.store.counts[example_store.USED]:
            pool._state = pool._state._replace(store=example_store.with_rows(pool._state.store))
        store = example_store.with_features(pool._state.store, int(state.store.counts[example_store.HELD]) // 2)
        pool._state = pool._state._replace(store=store)
        if ages.are_kept(state.store.ages):
            np.invert(self._ages.row, out=self._ages.row)
            pool._share_ages(self._ages)
            store = store._replace(ages=pool._ages)
        pool._state.alive[:] = state.alive
        store.counts[example_store.NAMED] = state.store.counts[example_store.NAMED]
        return pool

    def take(self, other: Self, keys: Int32s, to: Int32s) -> None:
        """Move keys from another pool, which this one was `emptied` from. O(what they hold).

        Parameters
        ----------
        other : SplitPool
            Where they are.
        keys, to : Int32s
            Their numbers there, and here, where they must be empty.
        """
        self._reserve(int(to.max(initial=-1)) + 1)
        other._share_ages(self._ages)
        needs = np.zeros(4, np.int64)
        moving.measure(other._state, keys, needs)
        ones, rows, content, longest = needs.tolist()
        self._make_room(ones, rows, content)
        numbers = self._renumbered(other, keys, ones + content)
        self._longest_live = max(self._longest_live, longest)
        features = np.empty(longest, np.uint32)
        weight = int(moving.move(other._state, keys, self._state, to, numbers, features))
        self._covered = min(self._covered, self._reach - weight // UNIT)
        other.sweep(_NOTHING)

    def _share_ages(self, shared: ages.Ages) -> None:
        """Take over the places of ages that another pool has, beside where the examples here stand."""
        self._set_ages(shared._replace(place=self._ages.place))

    def moved(self) -> None:
        """All keys have moved here: what they shared takes no more room than they need."""
        self._set_ages(ages.packed(self._ages))

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them. No state is changed."""
        if self.can_move:
            none: Int32s = np.zeros(0, np.int32)
            self.emptied().take(self, none, none)

    def _make_room(self, ones: int, rows: int, content: int) -> None:
        """Make room for so many slots, examples and features of examples."""
        if slots.room(self._state.slots) < ones:
            capacity = larger(len(self._state.slots.rows), int(self._state.slots.counts[slots.USED]) + ones)
            self._grow(len(self._state.heads), capacity)
        while len(self._state.store.rows) - self._state.store.counts[example_store.USED] < rows:
            self._enlarge(kernel.ROWS, 0, 0)
        if len(self._state.store.features) - self._state.store.counts[example_store.END] < content:
            self._enlarge(kernel.CONTENT, 0, content)

    def _renumbered(self, other: Self, keys: Int32s, most: int) -> Int64s:
        """Return the numbers here of the features of keys there, by their numbers there."""
        if self.names is None or other.names is None:
            return moving.NO_NUMBERS
        found = np.empty(most, np.uint32)
        used = np.unique(found[: moving.numbers_of(other._state, keys, found)])
        other._show_names()
        numbers = np.full(max(int(other.names.arrays.counts[HIGH]), 1), NONE, np.int64)
        numbers[used] = self.names.intern_all(map(other.names.name, used.tolist()))
        self._show_names()
        return numbers

    def check_beside(self, other: Self) -> None:
        """Raise AssertionError unless `check` holds for both, while keys move here from there."""
        other._share_ages(self._ages)
        other.check()
        totals = ((self._state.alive, 0), (self._state.store.counts, example_store.NAMED))
        others = (other.alive, int(other._state.store.counts[example_store.NAMED]))
        for (counts, at), less in zip(totals, others, strict=True):
            counts[at] -= less
        self.check()
        for (counts, at), less in zip(totals, others, strict=True):
            counts[at] += less

    # --- looking

    def best(self, key: int = 0) -> Split:
        """Return the best split of a key now."""
        key = key_of(key)
        self._reserve(key + 1)
        self._show_names()
        heads = self._state.heads
        before = heads[key].copy()
        # A decision that is due, of no event: the search alone, called from here, would be compiled once more.
        always = self.rules._replace(split_when=int(When.EVERY), split_argument=1)
        nothing = _NO_EXAMPLE._replace(key=np.array([key], np.int32), label=np.zeros(1, self._COUNTED))
        batch, out = _batch_of(nothing), _out(1, 0, 0)
        while self._apply(self._state, always, batch, out, 0, True)[0] == 0:
            self._enlarge_finder()
        heads[key] = before
        found = _trimmed(out)
        feature, runner_up = int(found.feature[0]), int(found.runner_up[0])
        return Split(
            feature=self._feature(feature),
            score=float(found.score[0]),
            runner_up=self._feature(runner_up),
            runner_up_score=float(found.runner_up_score[0]),
            totals=(int(found.totals[0, 0]), int(found.totals[0, 1])),
            present=(int(found.present[0, 0]), int(found.present[0, 1])),
        )

    def top(self, key: int = 0, k: int = 10, limit: float = np.inf) -> list[Ranked]:  # noqa: D102  (inherited)
        key = key_of(key)
        k = whole("k", k, 1, 1 << 32)
        self._reserve(key + 1)
        self._show_names()
        rows = self._state.slots.rows
        found = ranking.make(min(k, self.features(key)), limit)
        kernel.rank(self._state, key, found)
        count = int(found.taken[0])
        scored = zip(found.score[:count].tolist(), found.slot[:count].tolist(), strict=True)
        slots = self._state.slots
        ranked = sorted(
            (score, name_or_id(self.names, int(feature_of(slots, slot))), slot) for score, slot in scored
        )
        return [
            Ranked(feature, score, (int(rows[slot, C0]), int(rows[slot, C1]))) for score, feature, slot in ranked
        ]

    def _feature(self, feature: int) -> int | bytes | None:
        return None if feature == NONE else name_or_id(self.names, feature)

    @property
    def counted(self) -> slots.Slots:
        """The totals and counts of all keys, as kernels see them: not a copy."""
        return self._state.slots

    @property
    def slots(self) -> int:
        """How many (key, feature) pairs are counted."""
        return int(self._state.slots.counts[slots.USED])

    @property
    def live_examples(self) -> int:
        """How many live examples the example store holds."""
        return int(self._state.store.heads[:, example_store.LIVES].sum())

    def features(self, key: int) -> int:
        """Return how many features a key has seen."""
        return int(self._state.slots.heads[key, FEATURES])

    def sizes(self, key: int = 0) -> Sizes:
        """Return how large what is held of a key is, and what was done for it."""
        state = self._state
        if not 0 <= key < len(state.heads):
            return Sizes(0, 0, 0)
        events, examples = state.heads[key, kernel.EVENTS], state.store.heads[key, example_store.LIVES]
        return Sizes(int(events), self.features(key), int(examples))

    # --- state

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        super().restore(arrays)
        self._longest_live = int(self._state.store.rows[:, example_store.LENGTH].max())
        return self

    def _check(self) -> list[npt.NDArray[Any]]:
        state = self._state
        slots.check(state.slots)
        self._module.check(state.finder, state.slots)
        example_store.check(state.store)
        for key in range(len(state.heads)):
            if not state.heads[key, ALIVE]:
                assert tuple(state.heads[key].tolist()) == kernel.HEAD
                assert state.slots.heads[key, FEATURES] == 0
                assert state.store.heads[key, example_store.LIVES] == 0
            before = int(state.heads[key, kernel.LAST])
            if self.names is not None and before not in (NONE, last.GONE):
                assert slots.lookup(state.slots, key, before) != NONE
        counted = state.slots.rows[: state.slots.counts[slots.EVER], slots.KEY]
        kept = [row for key in range(len(state.heads)) for row, _, _ in example_store.live(state.store, key)]
        return [counted[counted >= 0] & 0xFFFFFFFF, *kept]


_HISTORY = ("updent", "updgini")  # finders whose answers follow from more than the counts
_SLOT_BYTES = 64  # with its part of the table and of the finder
_EXAMPLE_BYTES = 112
_NOTHING = np.zeros(0, np.uint32)


def check_events(events: Events, names: Interner | None) -> None:
    """Raise ValueError unless events can be applied to splits. O(ones), with a sort."""
    check_columns(events, np.int32, names)
    learned = (events.op == Op.INSERT) | ((events.op == Op.DELETE) & (events.named == 0))
    for what, wrong, column in (
        ("labels 0 or 1", (events.label < 0) | (events.label > 1), events.label),
        ("weights of at least 1 unit", events.weight < 1, events.weight),
    ):
        if (wrong & learned).any():
            event = int(np.argmax(wrong & learned))
            raise ValueError(f"expected {what}, got {column[event]} in the event {event}")
    row = np.repeat(np.arange(len(events.key)), np.diff(events.pointer))
    if (events.value != 1.0).any():
        at = int(np.argmax(events.value != 1.0))
        raise ValueError(f"expected features of the value 1, got {events.value[at]} in the event {row[at]}")
    order = np.lexsort((events.feature, row))
    row, feature = row[order], events.feature[order]
    repeated = (row[1:] == row[:-1]) & (feature[1:] == feature[:-1])
    if repeated.any():
        event = int(row[int(np.argmax(repeated))])
        raise ValueError(f"expected each feature of an example once, got one twice in the event {event}")


def _check_choice(what: str, name: str, choices: Mapping[str, Any]) -> None:
    if name not in choices:
        raise ValueError(f"expected a {what} of {', '.join(choices)}, got {name!r}")


# What is there to look at a model without an event.
_NO_EXAMPLE = Events.of(np.zeros(1, np.int8), np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(0, np.uint32))


def _batch_of(events: Events) -> Batch:
    return Batch(
        key=events.key,
        op=events.op,
        label=events.label,
        weight=events.weight,
        time=events.time,
        pointer=events.pointer,
        feature=events.feature,
        named=events.named,
        id_high=events.id_high,
        id_low=events.id_low,
        clock=events.clock,
    )


def _out(events: int, longest: int, ones: int) -> Out:
    """Return where the kernel writes for so many events of so many features in all, the longest of so many."""
    return Out(
        status=np.zeros(events, np.int8),
        event=np.empty(events, np.int64),
        due=np.empty(events, np.int8),
        numbers=np.empty((events, 9), np.int64),
        scores=np.empty((events, 3), np.float64),
        asked=np.empty((events, 5), np.int64),
        guides=np.empty(events, np.float64),
        counts=np.zeros(3, np.int64),
        scratch=np.empty(longest, np.int32),
        hashes=np.empty(ones, np.uint32),
    )


def _trimmed(out: Out) -> Decisions:
    decisions, predictions, changes = out.counts.tolist()
    numbers, scores, asked = out.numbers[:decisions], out.scores[:decisions], out.asked[:predictions]
    return Decisions(
        status=out.status,
        event=out.event[:decisions],
        due=out.due[:decisions],
        feature=numbers[:, 0],
        runner_up=numbers[:, 1],
        totals=numbers[:, 2:4],
        present=numbers[:, 4:6],
        events=numbers[:, 6],
        score=scores[:, 0],
        runner_up_score=scores[:, 1],
        impurity=scores[:, 2],
        next_present=numbers[:, 7:9],
        asked=asked[:, 0],
        leaf=asked[:, 1],
        weights=asked[:, 2:4],
        guide=asked[:, 4],
        guide_score=out.guides[:predictions],
        changes=changes,
    )
