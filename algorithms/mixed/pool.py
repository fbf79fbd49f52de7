"""`MixedSplitPool`: the best split of each key, of K labels and any features; one kernel call a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import example_store
from algorithms.core.aging import AgingPool
from algorithms.core.arrays import Float64s, Int8s, Int64s, extended
from algorithms.core.cadence import Emit, When
from algorithms.core.canonical import Canonicaliser, Terms, batch_of
from algorithms.core.class_sums import impurity
from algorithms.core.criteria import make_criterion
from algorithms.core.events import Events, OnDuplicate
from algorithms.core.fixed_point import UNIT
from algorithms.core.free_list import USED
from algorithms.core.given import key_of, whole
from algorithms.core.jit import direct
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES, name_or_id
from algorithms.core.pool import MEMO
from algorithms.core.schema import Feature, Schema
from algorithms.dynamic import examples
from algorithms.mixed import kernel, questions, search
from algorithms.mixed.heads import ALIVE, EVENTS, HEAD, LAST, LAST_VALUE, LOWERED, NUMBERS, RARE, ROOT
from algorithms.mixed.kernel import Out, Rules, State
from algorithms.splits import last
from algorithms.splits.slots import NONE
from algorithms.trees.gaussians import LARGEST_VALUE

CRITERIA = ("entropy", "gini")
SERVED = (Kind.BINARY, Kind.NOMINAL, Kind.NUMERIC)
MOST_CLASSES = 1_000


class Decisions(NamedTuple):
    """What a batch led to. Scores are un-normalised (weight times impurity)."""

    status: Int8s  # int8[n], a `Status` for each event
    event: Int64s  # int64[k], the events after which something was due, ascending
    due: Int8s  # int8[k], kernel.SPLIT_DUE | kernel.TREE_DUE
    feature: Int64s  # int64[k], of the best split, NONE where nothing parts the examples
    kind: Int64s  # int64[k], its `Kind`
    threshold: Float64s  # float64[k], of a numeric feature; of a nominal one the category
    runner_up: Int64s  # int64[k], the best other feature, or NONE
    events: Int64s  # int64[k], how many events the index had applied
    totals: Int64s  # int64[k, K], weights of the labels in the node
    high: Int64s  # int64[k, K], where the feature is present, of the category, or above the threshold
    score: Float64s  # float64[k], of the best; the node's own impurity where there is none
    runner_up_score: Float64s  # float64[k]
    impurity: Float64s  # float64[k], of the node itself
    asked: Int64s  # int64[p], the events that were predictions
    leaf: Int64s  # int64[p]: 0 no split yet, 1 low side, 2 high side
    weights: Int64s  # int64[p, K], weights of the labels in that leaf
    changes: int  # how often a best split became another, as far as was looked


class Split(NamedTuple):
    """A split of one key's examples, as a library user sees it."""

    feature: int | bytes | None
    kind: Kind | None
    threshold: float | None  # of a numeric feature; of a nominal one the category
    score: float  # weight times impurity after the split; of the node itself where there is none
    runner_up: int | bytes | None  # the best other feature
    runner_up_score: float
    impurity: float  # weight times impurity of the node
    totals: tuple[int, ...]  # weights of the labels, in units of 2^-20
    high: tuple[int, ...]  # where the feature is present, of the category, or above the threshold


class Sizes(NamedTuple):
    """How large what is held of a key is, and what was done for it."""

    events: int  # inserts and deletes applied
    features: int  # that live examples have; each category is one, and each run of a numeric feature's values
    examples: int  # live ones


class MixedSplitPool(AgingPool[State, Decisions, Float64s]):
    """Any number of split models of K labels and of any features in one set of arrays, one for each key.

    All live examples are kept, so deletes are always verified. Ties go to the lowest feature, then to the lowest
    category or threshold.

    Parameters
    ----------
    classes : int
        K; labels are 0 to K - 1.
    criterion : str
        ``entropy`` or ``gini``.
    default : Kind
        The kind of the features that `kinds` does not name: ``BINARY``, ``NOMINAL`` or ``NUMERIC``.
    kinds : Mapping[int | bytes, Kind], optional
        The kinds of others.
    window : int, optional
        Keep only the last so many examples of each key.
    span : int, optional
        In ms: keep examples for so long, see ages.py. Events tell what the clock shows.
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

    def __init__(
        self,
        *,
        classes: int = 2,
        criterion: str = "entropy",
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        window: int | None = None,
        span: int | None = None,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
        names: bool = False,
        splits: Emit = Emit(When.CHANGE),  # noqa: B008  (a constant)
        trees: Emit = Emit(),  # noqa: B008
        max_keys: int = 1 << 30,
        max_live_ids: int = 1 << 30,
    ) -> None:
        self._classes = whole("classes", classes, 2, MOST_CLASSES)
        if criterion not in CRITERIA:
            raise ValueError(f"expected a criterion of {', '.join(CRITERIA)}, got {criterion!r}")
        of_all = {default, *(kinds or {}).values()}
        if not of_all <= set(SERVED):
            raise ValueError("expected features of the kinds BINARY, NOMINAL and NUMERIC, got QUANTISED")
        if window is not None and window < 1:
            raise ValueError(f"expected a window of at least 1 example, got {window}")
        if min(splits.argument, trees.argument) < 1:
            raise ValueError("expected n or ms of at least 1 for what is emitted every so often")
        self.rules = Rules(
            classes=self._classes,
            window=window or 0,
            span=span or 0,
            on_duplicate=int(on_duplicate),
            max_keys=max_keys,
            max_live_ids=max_live_ids,
            split_when=int(splits.when),
            split_argument=splits.argument,
            tree_when=int(trees.when),
            tree_argument=trees.argument,
        )
        made = example_store.make(1, aged=span is not None)
        state = State(
            heads=np.array([HEAD], np.int64),
            numbers=np.zeros((1, NUMBERS)),
            totals=np.zeros((1, self._classes), np.int64),
            alive=np.zeros(1, np.int64),
            questions=questions.make(16, 1, self._classes),
            store=made,
            values=np.zeros(0 if of_all == {Kind.BINARY} else len(made.features)),
            names=NO_NAMES,
            criterion=make_criterion(criterion, MEMO),
        )
        super().__init__(state, names=names, kinds=Schema(default, kinds or {}), criterion=criterion)
        self._canonical = Canonicaliser(Terms(LARGEST_VALUE, deletes=True, sparse=True))
        self._apply = direct(kernel.apply)
        self._found = search.make(16, self._classes)

    # --- events

    def apply(self, events: Events, *, checked: bool = False) -> Decisions:
        """Apply events in order and return what was due, see `Pool.apply`.

        An event looks its features up, and its numbers in their columns: O(features + blocks of these). What a
        search costs is said in search.py.
        """
        events = self._begin(events, checked)
        made = self._canonical(events, self._schema.known)
        batch = batch_of(events, made)
        n, asked = len(made.op), len(made.asked)
        out = Out(
            status=np.zeros(n, np.int8),
            event=np.empty(n, np.int64),
            due=np.empty(n, np.int8),
            numbers=np.empty((n, 4), np.int64),
            threshold=np.empty(n),
            totals=np.empty((n, self._classes), np.int64),
            high=np.empty((n, self._classes), np.int64),
            scores=np.empty((n, 3)),
            asked=np.empty((asked, 2), np.int64),
            weights=np.empty((asked, self._classes), np.int64),
            counts=np.zeros(3, np.int64),
        )
        told = list(self._run(batch, out))
        assert not told, "all that splits have to tell is in their decisions"
        np.maximum(out.status, made.status, out=out.status)  # to the kernel, what was refused is `SKIPPED`
        decisions, predictions, changes = out.counts.tolist()
        numbers, scores = out.numbers[:decisions], out.scores[:decisions]
        return Decisions(
            status=out.status,
            event=out.event[:decisions],
            due=out.due[:decisions],
            feature=numbers[:, 0],
            kind=numbers[:, 1],
            threshold=out.threshold[:decisions],
            runner_up=numbers[:, 2],
            events=numbers[:, 3],
            totals=out.totals[:decisions],
            high=out.high[:decisions],
            score=scores[:, 0],
            runner_up_score=scores[:, 1],
            impurity=scores[:, 2],
            asked=out.asked[:predictions, 0],
            leaf=out.asked[:predictions, 1],
            weights=out.weights[:predictions],
            changes=changes,
        )

    def _prediction(self, answers: Decisions) -> Float64s:
        return answers.weights[0] / UNIT

    def _step(self, batch: Any, out: Any, *at: Any) -> tuple[Any, ...]:
        return self._apply(self._state, self.rules, self._found, batch, out, *at)

    @property
    def _heads(self) -> Int64s:
        return self._state.heads

    def _grow_keys(self, keys: int) -> None:
        state = self._state
        before = len(state.heads)
        self._state = state._replace(
            heads=extended(state.heads, keys),
            numbers=extended(state.numbers, keys),
            totals=extended(state.totals, keys),
            store=example_store.grown(state.store, keys),
        )
        self._state.heads[before:] = HEAD

    def _enlarge(self, short: int, key: int, ones: int) -> None:  # noqa: ARG002
        state = self._state
        if short == kernel.ROWS:
            self._state = state._replace(store=example_store.with_rows(state.store))
        elif short == kernel.CONTENT:
            store, values = examples.with_features(state.store, state.values, ones)
            self._state = state._replace(store=store, values=values)
        elif short == kernel.QUESTIONS:
            capacity = 2 * max(len(state.questions.rows), 2 * ones)
            self._state = state._replace(questions=questions.with_rows(state.questions, capacity))
            self._found = search.make(capacity, self._classes)
        else:
            blocks = 2 * max(len(state.questions.following), ones)
            self._state = state._replace(questions=questions.with_blocks(state.questions, blocks))

    def _heaviest(self) -> int:
        return int(self._state.totals.sum(axis=1).max())

    # --- looking

    def best(self, key: int = 0) -> Split:
        """Return the best split of a key now; no model is changed."""
        key = key_of(key)
        self._reserve(key + 1)
        self._show_names()
        state, found = self._state, self._found
        kernel.find(state, key, True, found)
        totals = state.totals[key].copy()
        node = float(impurity(state.criterion, totals))
        row, second = found.row.tolist()
        none = Split(None, None, None, node, None, node, node, tuple(totals.tolist()), (0,) * self._classes)
        if row == NONE:
            return none
        threshold = float(search.part(state.questions, found, 0))
        kind = Kind(int(search.kind_of_row(state.questions, row)))
        return none._replace(
            feature=self._feature(row),
            kind=kind,
            threshold=None if kind == Kind.BINARY else threshold,
            score=float(found.score[0]),
            runner_up=self._feature(second) if second != NONE else None,
            runner_up_score=float(found.score[1]) if second != NONE else node,
            high=tuple(found.below.tolist()),
        )

    def _feature(self, row: int) -> int | bytes:
        return name_or_id(self.names, int(questions.feature_of(self._state.questions, row)))

    @property
    def looked_at(self) -> tuple[int, int]:
        """How many rows and questions the last search scored."""
        rows, scored = self._found.counts.tolist()
        return rows, scored

    @property
    def slots(self) -> int:
        """How many features of keys are counted: a category is one, and so is a block of values."""
        return int(self._state.questions.used[USED])

    @property
    def live_examples(self) -> int:
        """How many live examples there are."""
        return int(self._state.store.heads[:, example_store.LIVES].sum())

    def sizes(self, key: int = 0) -> Sizes:
        """Return how large what is held of a key is, and what was done for it."""
        state = self._state
        if not 0 <= key < len(state.heads):
            return Sizes(0, 0, 0)
        features = sum(
            len(questions.walk(state.questions, root)) for root in state.heads[key, [ROOT, RARE]].tolist()
        )
        return Sizes(int(state.heads[key, EVENTS]), features, int(state.store.heads[key, example_store.LIVES]))

    # --- state

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        super().restore(arrays)
        self._found = search.make(len(self._state.questions.rows), self._classes)
        return self

    def _check(self) -> list[npt.NDArray[Any]]:
        state = self._state
        example_store.check(state.store)
        for key in range(len(state.heads)):
            lives = example_store.live(state.store, key)
            totals = np.bincount(
                [label for _, label, _ in lives],
                weights=[weight for *_, weight in lives],
                minlength=self._classes,
            )
            assert np.allclose(totals, state.totals[key])
            if not state.heads[key, ALIVE]:
                assert tuple(state.heads[key].tolist()) == HEAD
                assert not lives
            before, value = int(state.heads[key, LAST]), float(state.numbers[key, LAST_VALUE])
            if self.names is not None and before not in (NONE, last.GONE):
                assert kernel.row_of(state.questions, key, before, value) != NONE
        roots = state.heads[:, [ROOT, RARE]].tolist()
        counted = questions.check(state.questions, roots, state.totals.tolist())
        self._check_floors()
        return [np.array(counted, np.int64)]

    def _check_floors(self) -> None:
        """Raise AssertionError where a floor is above a score."""
        state, found = self._state, self._found
        before = found.counts.copy()
        for key in range(len(state.heads)):
            found.totals[:] = state.totals[key]
            total = int(found.totals.sum())
            found.row[:] = NONE
            for row in questions.walk(state.questions, int(state.heads[key, ROOT])):  # of RARE their check tells
                least = search._score_row(state.questions, state.names, state.criterion, row, total, found)
                lowered = state.numbers[key, LOWERED]
                assert state.questions.floor[row] - lowered <= least * (1 + 2.0**-40) + 2.0**-40 * lowered
        found.counts[:] = before
