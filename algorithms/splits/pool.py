"""Split models: the best split of every key's stream, after every event, in one pool of flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import ledger
from algorithms.core.arrays import Int32s, Int64s, UInt32s, are_set, extended
from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import CRITERIA, UNIT
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.given import check_batch, features_of, index_of, label_of, units_of, whole
from algorithms.core.names import NO_NAMES, Interner, name_or_id
from algorithms.core.stored import flattened, rebuilt
from algorithms.core.units import MAX_TOTAL as MAX_TOTAL  # for all who import it from here
from algorithms.splits import finders, kernel, ranking, slots
from algorithms.splits.exact import SHORT
from algorithms.splits.kernel import ALIVE, Batch, Decisions, Out, Rules, State
from algorithms.splits.slots import C0, C1, FEATURES, N0, N1, NONE, feature_of


class Split(NamedTuple):
    """A split of one index, as a library user sees it."""

    feature: int | bytes | None
    score: float  # weight times impurity after the split; of the node itself where there is none
    runner_up: int | bytes | None
    runner_up_score: float
    totals: tuple[int, int]  # in units of 2^-20
    present: tuple[int, int]


class Ranked(NamedTuple):
    """One of the best features of an index."""

    feature: int | bytes
    score: float  # weight times impurity after the split
    present: tuple[int, int]  # weights of the labels where the feature is present, in units of 2^-20


class SplitPool:
    """Any number of split models in one set of arrays; an index is a small integer.

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
        Keep only the last so many examples of each index.
    verify_deletes : bool
        Keep every live example, so that a delete by value is checked exactly. Without it a delete by
        value is refused where the counts show that the example cannot be there.
    on_duplicate : OnDuplicate
        What an insert of a live id does.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    splits, trees : Emit
        When a decision is due.
    max_indexes, max_live_ids : int
        Bounds; what would pass them is refused.
    """

    def __init__(
        self,
        *,
        finder: str = "exact",
        criterion: str = "entropy",
        alpha: float = 0.1,
        window: int | None = None,
        verify_deletes: bool = False,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
        names: bool = False,
        splits: Emit = Emit(When.CHANGE),  # noqa: B008  (a constant)
        trees: Emit = Emit(),  # noqa: B008
        max_indexes: int = 1 << 30,
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
        self._make_criterion: Callable[[int], Any] = CRITERIA[criterion][2]
        self._reach = 1024  # weights that the criterion's memo covers
        self._covered = self._reach  # inserts of weight 1 until an index could have outgrown it
        self.rules = Rules(
            window=window or 0,
            tracked=verify_deletes or window is not None,
            keyed=False,
            on_duplicate=int(on_duplicate),
            max_indexes=max_indexes,
            max_live_ids=max_live_ids,
            split_when=int(splits.when),
            split_argument=splits.argument,
            tree_when=int(trees.when),
            tree_argument=trees.argument,
        )
        self.names = Interner() if names else None
        self._pool = State(
            slots=slots.make(1, 16),
            finder=finders.FINDERS[finder].make(1, 16, alpha),
            criterion=self._make_criterion(self._reach),
            names=self.names.arrays if self.names is not None else NO_NAMES,
            ledger=ledger.make(1),
            heads=np.array([kernel.HEAD], np.int64),
            alive=np.zeros(1, np.int64),
        )

    # --- events

    def apply(self, batch: Batch, *, checked: bool = False) -> Decisions:
        """Apply events in order and return what was due. Amortised O(ones) for all that is built in but scans.

        Parameters
        ----------
        batch : Batch
            The events.
        checked : bool
            Whether the caller has made sure of what `check_events` looks for, as the worker's codec has.

        Raises
        ------
        ValueError
            Where it is no such batch; no event is applied.
        """
        if not checked:
            check_events(batch, self.names)
        n = len(batch.index)
        if n:
            self._reserve(int(batch.index.max()) + 1)
        self._provide_memo(n)
        longest = int(np.diff(batch.pointer).max(initial=0))
        out = Out(
            status=np.zeros(n, np.int8),
            event=np.empty(n, np.int64),
            due=np.empty(n, np.int8),
            numbers=np.empty((n, 7), np.int64),
            scores=np.empty((n, 3), np.float64),
            asked=np.empty((n, 5), np.int64),
            guides=np.empty(n, np.float64),
            counts=np.zeros(3, np.int64),
            scratch=np.empty(max(longest, self._longest_live), np.int32),
        )
        if self.rules.tracked or batch.named.any():
            self._longest_live = max(self._longest_live, longest)
        if self.names is not None:
            self._pool = self._pool._replace(names=self.names.arrays)
        event, applied, short = 0, False, kernel.SLOTS
        while short != kernel.DONE:
            event, applied, short = kernel.apply(self._pool, self.rules, batch, out, event, applied)
            if short != kernel.DONE:
                self._enlarge(short, int(batch.pointer[event + 1] - batch.pointer[event]))
        return _trimmed(out)

    _longest_live = 0  # features of the largest example in the ledger

    def _reserve(self, indexes: int) -> None:
        before = len(self._pool.heads)
        if indexes > before:
            self._grow(max(indexes, 2 * before), len(self._pool.slots.rows))

    def _grow(self, indexes: int, capacity: int) -> None:
        before = len(self._pool.heads)
        heads = extended(self._pool.heads, indexes)
        heads[before:] = kernel.HEAD
        self._pool = self._pool._replace(
            slots=slots.grown(self._pool.slots, indexes, capacity),
            finder=self._module.grown(self._pool.finder, indexes, capacity),
            ledger=ledger.grown(self._pool.ledger, indexes),
            heads=heads,
        )

    def _enlarge(self, short: int, ones: int) -> None:
        pool = self._pool
        if short == kernel.SLOTS:
            self._grow(len(pool.heads), 2 * max(len(pool.slots.rows), ones))
        elif short == kernel.BOXES:
            self._pool = pool._replace(finder=self._module.enlarged(pool.finder))
        elif short == kernel.ROWS:
            self._pool = pool._replace(ledger=ledger.with_rows(pool.ledger))
        else:
            self._pool = pool._replace(ledger=ledger.with_features(pool.ledger, ones))

    def _provide_memo(self, inserts: int) -> None:
        """Make the memo of the criterion long enough for the largest index."""
        self._covered -= inserts
        if self._covered >= 0:
            return
        heads = self._pool.slots.heads
        largest = int((heads[:, N0] + heads[:, N1]).max()) // UNIT + inserts
        if 2 * largest > self._reach:  # with room, or a sliding window would come here all the time
            self._reach = 2 * largest
            self._pool = self._pool._replace(criterion=self._make_criterion(self._reach))
        self._covered = self._reach - largest

    # --- one event at a time, for library users

    def insert(
        self, features: Sequence[int | bytes], label: int, *, weight: float = 1.0, index: int = 0, time: int = 1
    ) -> Status:
        """Learn one example; see `apply` for many.

        Raises
        ------
        ValueError
            Where the example is not one: a wrong feature, label or weight.
        """
        return self._one(Op.INSERT, features, label, weight, index, time)

    def delete(
        self, features: Sequence[int | bytes], label: int, *, weight: float = 1.0, index: int = 0, time: int = 1
    ) -> Status:
        """Forget one example, given by value; see `apply` for many.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return self._one(Op.DELETE, features, label, weight, index, time)

    def _one(
        self, op: Op, features: Sequence[int | bytes], label: int, weight: float, index: int, time: int
    ) -> Status:
        batch = Batch(
            index=np.array([index_of(index)], np.int32),
            op=np.array([op], np.int8),
            label=np.array([label_of(label, 2)], np.int8),
            weight=np.array([units_of(weight, 1)], np.int64),
            time=np.array([whole("a time in ms", time, 0, kernel.LAST_TIME)], np.int64),
            named=np.zeros(1, np.int8),
            id_high=np.zeros(1, np.int64),
            id_low=np.zeros(1, np.int64),
            pointer=np.zeros(2, np.int64),
            feature=features_of(features, self.names),
        )
        batch.pointer[1] = len(batch.feature)
        status = Status(int(self.apply(batch, checked=True).status[0]))
        self.sweep(batch.feature)
        return status

    def best(self, index: int = 0) -> Split:
        """Return the best split of an index now."""
        index = index_of(index)
        self._reserve(index + 1)
        heads, rows = self._pool.slots.heads, self._pool.slots.rows
        if self.names is not None:
            self._pool = self._pool._replace(names=self.names.arrays)
        while (best := kernel.best_slot(self._pool, index)) == SHORT:
            self._enlarge(kernel.BOXES, 0)
        runner_up = NONE
        if best != NONE:
            while (runner_up := self._second(index, best)) == SHORT:
                self._enlarge(kernel.BOXES, 0)
        return Split(
            feature=self._feature(best),
            score=float(kernel.score_of(self._pool, index, best)),
            runner_up=self._feature(runner_up),
            runner_up_score=float(kernel.score_of(self._pool, index, runner_up)),
            totals=(int(heads[index, N0]), int(heads[index, N1])),
            present=(int(rows[best, C0]), int(rows[best, C1])) if best != NONE else (0, 0),
        )

    def top(self, index: int = 0, k: int = 10, limit: float = np.inf) -> list[Ranked]:
        """Return the `k` best features of an index now, by score, then by feature.

        Those that score worse than `limit` are left out. A search like that for the best, at worst a look at
        every feature; it changes no state.
        """
        index = index_of(index)
        k = whole("k", k, 1, 1 << 32)
        self._reserve(index + 1)
        pool, rows = self._pool, self._pool.slots.rows
        if self.names is not None:
            pool = pool._replace(names=self.names.arrays)
        found = ranking.make(min(k, self.features(index)), limit)
        kernel.rank(pool, index, found)
        count = int(found.taken[0])
        scored = zip(found.score[:count].tolist(), found.slot[:count].tolist(), strict=True)
        ranked = sorted((score, self._number_or_name(slot), slot) for score, slot in scored)
        return [
            Ranked(feature, score, (int(rows[slot, C0]), int(rows[slot, C1]))) for score, feature, slot in ranked
        ]

    def within(self, index: int = 0, alpha: float = 0.0) -> list[int | bytes]:
        """Return the features whose score is at most (1 + alpha) times the best, by score, then by feature.

        Where nothing splits the node there are none. No state is changed.
        """
        return within(self, index, alpha)

    def _second(self, index: int, best: int) -> int:
        return int(kernel.find(self._pool, index, best))

    def _feature(self, slot: int) -> int | bytes | None:
        return None if slot == NONE else self._number_or_name(slot)

    def _number_or_name(self, slot: int) -> int | bytes:
        return name_or_id(self.names, int(feature_of(self._pool.slots, slot)))

    # --- state

    def sweep(self, interned: Int64s | UInt32s) -> None:
        """Forget the names that nothing refers to any more: of those just interned, and of deleted features."""
        if self.names is not None:
            self.names.sweep(interned)

    def are_alive(self, indexes: Int32s) -> npt.NDArray[np.bool_]:
        """Return which of these indexes have learned something since they were last dropped."""
        return are_set(self._pool.heads[:, ALIVE], indexes)

    @property
    def alive(self) -> int:
        """How many indexes are alive."""
        return int(self._pool.alive[0])

    @property
    def slots(self) -> int:
        """How many (index, feature) pairs are counted."""
        return int(self._pool.slots.counts[slots.USED])

    @property
    def live_examples(self) -> int:
        """How many live examples the ledger holds."""
        return int(self._pool.ledger.heads[:, ledger.LIVES].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state."""
        return sum(array.nbytes for array in self.arrays().values())

    def features(self, index: int) -> int:
        """Return how many features an index has seen."""
        return int(self._pool.slots.heads[index, FEATURES])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays (not copied)."""
        names = flattened(self.names.arrays, "names") if self.names is not None else {}
        return flattened(self._pool) | names

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        if self.names is not None:
            self.names = Interner(rebuilt(self.names.arrays, arrays, "names"))
        self._pool = rebuilt(self._pool, arrays)
        self._longest_live = int(self._pool.ledger.rows[:, ledger.LENGTH].max())
        self._covered = 0
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        pool = self._pool
        slots.check(pool.slots)
        self._module.check(pool.finder, pool.slots)
        ledger.check(pool.ledger)
        assert pool.alive[0] == np.count_nonzero(pool.heads[:, ALIVE])
        for index in range(len(pool.heads)):
            if not pool.heads[index, ALIVE]:
                assert tuple(pool.heads[index].tolist()) == kernel.HEAD
                assert pool.slots.heads[index, FEATURES] == 0
                assert pool.ledger.heads[index, ledger.LIVES] == 0
        if self.names is not None:
            keys = pool.slots.rows[: pool.slots.counts[slots.EVER], slots.KEY]
            kept = [row for index in range(len(pool.heads)) for row, _, _ in ledger.live(pool.ledger, index)]
            self.names.check_references([keys[keys >= 0] & 0xFFFFFFFF, *kept])


class _Ranks(Protocol):
    def top(self, index: int, k: int, limit: float = ...) -> list[Ranked]: ...
    def features(self, index: int) -> int: ...


def within(pool: _Ranks, index: int, alpha: float) -> list[int | bytes]:
    """Return the features of a pool's index whose score is at most (1 + alpha) times the best."""
    if not 0.0 <= alpha < np.inf:
        raise ValueError(f"expected a finite alpha of at least 0, got {alpha}")
    return [
        row.feature
        for best in pool.top(index, 1)
        for row in pool.top(index, pool.features(index), (1.0 + alpha) * best.score)
    ]


def check_events(batch: Batch, names: Interner | None) -> None:
    """Raise ValueError unless the events of a batch can be applied: see `Batch`. O(ones), with a sort."""
    check_batch(batch, np.int8, names)
    learned = (batch.op == Op.INSERT) | ((batch.op == Op.DELETE) & (batch.named == 0))
    for what, wrong, column in (
        ("labels 0 or 1", (batch.label < 0) | (batch.label > 1), batch.label),
        ("weights of at least 1 unit", batch.weight < 1, batch.weight),
    ):
        if (wrong & learned).any():
            event = int(np.argmax(wrong & learned))
            raise ValueError(f"expected {what}, got {column[event]} in the event {event}")
    row = np.repeat(np.arange(len(batch.index)), np.diff(batch.pointer))
    order = np.lexsort((batch.feature, row))
    row, feature = row[order], batch.feature[order]
    repeated = (row[1:] == row[:-1]) & (feature[1:] == feature[:-1])
    if repeated.any():
        event = int(row[int(np.argmax(repeated))])
        raise ValueError(f"expected each feature of an example once, got one twice in the event {event}")


def _check_choice(what: str, name: str, choices: Mapping[str, Any]) -> None:
    if name not in choices:
        raise ValueError(f"expected a {what} of {', '.join(choices)}, got {name!r}")


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
        asked=asked[:, 0],
        leaf=asked[:, 1],
        weights=asked[:, 2:4],
        guide=asked[:, 4],
        guide_score=out.guides[:predictions],
        changes=changes,
    )
