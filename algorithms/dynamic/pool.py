"""`DynamicPool`: any number of trees that forget, in one set of arrays; one kernel call a batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import ledger, rows
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, are_set, extended
from algorithms.core.cadence import Emit
from algorithms.core.criteria import CRITERIA, UNIT
from algorithms.core.declared import Declared, Feature
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.given import check_batch, entries_of, id_of, index_of, label_of, units_of
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES, Interner, name_or_id
from algorithms.core.stored import flattened, rebuilt
from algorithms.dynamic import events as kernel
from algorithms.dynamic import examples, nodes, segment, vocabulary
from algorithms.dynamic.build import Terms
from algorithms.dynamic.builder import UNBOUNDED, check_terms
from algorithms.dynamic.nodes import DEPTH, EXAMPLES, FEATURE, FIRST, NONE
from algorithms.dynamic.prepare import check_kinds, prepared
from algorithms.dynamic.promise import missing
from algorithms.dynamic.splitter import Way
from algorithms.dynamic.state import (
    ALIVE,
    ENTRIES,
    EVENTS,
    REBUILDS,
    REBUILT,
    ROOT,
    TREE_COLUMNS,
    Batch,
    Forest,
    Out,
    Rules,
    examples_of,
)
from algorithms.trees.snapshot import Tree

Value = float | int
Id = int | str | bytes


class Events(NamedTuple):
    """Events for a pool, in order."""

    index: Int32s  # type: ignore[assignment]  # int32[n], whose event (hides tuple.index, which nobody needs)
    op: Int8s  # int8[n], an `Op`; negative: skip
    label: Int32s  # int32[n], the number of the class
    weight: Int64s  # int64[n], in units of 2^-20
    time: Int64s  # int64[n], event time in ms; only snapshots by time depend on it
    named: Int8s  # int8[n], 1 where the example has an id
    id_high: Int64s  # int64[n], 61 bits of the digest of the id
    id_low: Int64s  # int64[n], 61 more
    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[entries], in any order
    value: Float64s  # float64[entries], 0 is the same as absent


class Answers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    snapshots: list[tuple[int, int, Tree]]  # where they were due: event, events applied, the tree then
    guess: Int32s  # int32[n], the class predicted, -1: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], of inserts where `evaluate` is set: -log2 of the share given to the true class
    rebuilt: Int64s  # int64[n], how many examples subtrees were rebuilt from
    asked: Int64s  # int64[p], the events that were predictions
    weights: Float64s  # float64[p, c], the class weights that each was answered with, in examples
    leaf: Int64s  # int64[p], the number of the node that answered, 0 where nothing is known


class Sizes(NamedTuple):
    """How large a tree is and what it did."""

    events: int  # inserts and deletes applied
    examples: int  # live ones
    nodes: int
    leaves: int
    rebuilds: int  # calls of BUILD
    rebuilt: int  # examples in them


class DynamicPool:
    """Any number of trees under inserts and deletes, FuDyADT of paper 002; an index is a small integer.

    Parameters
    ----------
    epsilon : float
        A subtree built from s examples is rebuilt after more than epsilon s inserts and deletes, and so in weight.
        0: after each, so that the tree is always the greedy one.
    alpha : float
        A node whose impurity is at most half of it stays a leaf.
    beta : float
        Above 0 the tree is promised to be feasible after every event (paper 002, definition 3.1): a node with an
        impurity of at least alpha is split, and its split gains at most beta less than the best. Then epsilon must
        be below 1 / (min_examples + 1), alpha / 5 and beta / 12.5, and the criterion Gini.
    min_examples, max_depth : int
        k and h: a node of at most k examples, or so deep, is a leaf.
    criterion : str
        ``gini`` or ``entropy``.
    classes : int
        Labels are 0 to classes - 1.
    default : Kind
        The kind of the features that `kinds` does not name: ``BINARY`` or ``NUMERIC``.
    kinds : Mapping[int | bytes, Kind], optional
        The kinds of others.
    window : int, optional
        Keep only the last so many examples of each index.
    on_duplicate : OnDuplicate
        What an insert of a live id does.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    evaluate : bool
        Predict every example before it is learned.
    max_trees, max_live_ids : int
        Bounds; what would pass them is refused.
    snapshots : Emit
        When `Answers` has a tree's snapshot; at a change means after a rebuild that had or made an inner node.
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        alpha: float = 0.0,
        beta: float = 0.0,
        min_examples: int = 1,
        max_depth: int = UNBOUNDED,
        criterion: str = "gini",
        classes: int = 2,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        window: int | None = None,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
        names: bool = False,
        evaluate: bool = False,
        max_trees: int = 1 << 30,
        max_live_ids: int = 1 << 30,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
    ) -> None:
        check_terms(criterion, classes, alpha, min_examples, max_depth)
        check_kinds([default, *(kinds or {}).values()])
        _check_promise(epsilon, alpha, beta, min_examples, criterion)
        if window is not None and window < 1:
            raise ValueError(f"expected a window of at least 1 example, got {window}")
        if snapshots.argument < 1:
            raise ValueError("expected n or ms of at least 1 for snapshots every so often")
        self.rules = Rules(
            epsilon=float(epsilon),
            terms=Terms(float(alpha), min_examples, max_depth, int(Way.ORDERED)),
            classes=classes,
            window=window or 0,
            on_duplicate=int(on_duplicate),
            evaluated=evaluate,
            max_trees=max_trees,
            max_live_ids=max_live_ids,
            snapshot_when=int(snapshots.when),
            snapshot_argument=snapshots.argument,
        )
        self._plain = default == Kind.BINARY and all(kind == Kind.BINARY for kind in (kinds or {}).values())
        self.names = Interner() if names else None
        self._declared = Declared(default, kinds or {})
        self._make_criterion = CRITERIA[criterion][2]
        self._reach = 1024  # weights that the criterion's memo covers
        self._covered = self._reach  # examples of weight 1 until a tree could have outgrown it
        made = ledger.make(1)
        self._forest = Forest(
            trees=np.zeros((1, TREE_COLUMNS), np.int64),
            nodes=nodes.make(8, classes),
            ledger=made,
            values=np.zeros(0 if self._plain else len(made.features)),
            chain=np.zeros((len(made.rows), 2), np.int32),
            words=vocabulary.make(16),
            names=NO_NAMES,
            criterion=self._make_criterion(self._reach),
            alive=np.zeros(1, np.int64),
        )
        self._scratch = segment.make(8, 64, 16, classes, self._plain)
        self._declared.intern(self.names)

    # --- events

    def apply(self, events: Events) -> Answers:
        """Apply events in order. O(depth log features + features) each; rebuilds amortise as in paper 002.

        Raises
        ------
        ValueError
            Where the columns are none, or an index is negative; no event is applied. Whatever else is wrong with
            an event is told by its status.
        """
        check_batch(events, np.int32, self.names)
        n = len(events.index)
        if n:
            self._reserve(int(events.index.max()) + 1)
        self._provide_memo(n)
        batch, refused = self._prepared(events)
        asked = np.flatnonzero(batch.op == Op.PREDICT)
        out = Out(
            status=np.zeros(n, np.int8),
            guess=np.full(n, NONE, np.int32),
            loss=np.zeros(n),
            rebuilt=np.zeros(n, np.int64),
            shares=np.zeros((len(asked), self.rules.classes)),
            leaf=np.zeros(len(asked), np.int64),
            weights=np.zeros(self.rules.classes),
            counts=np.zeros(1, np.int64),
            told=np.zeros(1, np.int64),
        )
        if self.names is not None:
            self._forest = self._forest._replace(names=self.names.arrays)
        snapshots: list[tuple[int, int, Tree]] = []
        event, short = 0, -1
        while short != kernel.DONE:
            event, short = kernel.apply(self._forest, self.rules, self._scratch, batch, out, event)
            if short == kernel.TOLD:
                index = int(batch.index[event - 1])
                snapshots.append((event - 1, int(self._forest.trees[index, EVENTS]), self.tree(index)))
            elif short != kernel.DONE:
                ones = int(batch.pointer[event + 1] - batch.pointer[event])
                self._enlarge(short, int(batch.index[event]), ones)
        out.status[refused > 0] = refused[refused > 0]
        return Answers(out.status, snapshots, out.guess, out.loss, out.rebuilt, asked, out.shares, out.leaf)

    def _prepared(self, events: Events) -> tuple[Batch, Int8s]:
        """Return the events as the kernel wants them, and what is refused for its features."""
        entries = prepared(events.pointer, events.feature, events.value, self.kinds_of)
        refused = np.zeros(len(events.index), np.int8)
        refused[entries.wrong] = Status.WRONG_VALUE
        refused[entries.repeated] = Status.REPEATED_FEATURE
        by_id = (events.op == Op.DELETE) & (events.named != 0)
        refused[by_id | (events.op == Op.DROP) | (events.op < 0)] = 0  # nobody looks at their features
        return Batch(
            index=events.index,
            op=np.where(refused > 0, np.int8(-1), events.op).astype(np.int8),
            label=events.label,
            weight=events.weight,
            time=events.time,
            named=events.named,
            id_high=events.id_high,
            id_low=events.id_low,
            pointer=entries.pointer,
            feature=entries.feature,
            value=entries.value,
            bits=entries.value.view(np.int64),
            kind=entries.kind,
        ), refused

    def kinds_of(self, feature: Int64s | UInt32s) -> Int8s:
        """Return the `Kind` of each of these features, which are given by their numbers."""
        return self._declared.of(feature)

    def _reserve(self, trees: int) -> None:
        before = len(self._forest.trees)
        if trees > before:
            trees = max(trees, 2 * before)
            self._forest = self._forest._replace(
                trees=extended(self._forest.trees, trees), ledger=ledger.grown(self._forest.ledger, trees)
            )

    def _enlarge(self, short: int, index: int, ones: int) -> None:
        forest = self._forest
        if short == kernel.ROWS:
            book, chain = examples.with_rows(forest.ledger, forest.chain)
            self._forest = forest._replace(ledger=book, chain=chain)
        elif short == kernel.CONTENT:
            book, values = examples.with_features(forest.ledger, forest.values, ones)
            self._forest = forest._replace(ledger=book, values=values)
        elif short == kernel.WORDS:
            more = 2 * max(ones, len(forest.words.cells))
            self._forest = forest._replace(words=rows.grown(forest.words, more))
        elif short == kernel.NODES:
            self._forest = forest._replace(nodes=nodes.grown(forest.nodes, 2 * len(forest.nodes.links)))
        else:
            self._scratch = segment.make(
                _enough(len(self._scratch.rows), int(forest.ledger.heads[index, ledger.LIVES]) + 1),
                _enough(len(self._scratch.column), int(forest.trees[index, ENTRIES]) + ones),
                len(forest.words.cells),
                self.rules.classes,
                self._plain,
            )

    def _provide_memo(self, inserts: int) -> None:
        """Make the memo of the criterion long enough for the largest tree."""
        self._covered -= inserts
        if self._covered >= 0:
            return
        largest = int(self._forest.nodes.weights.sum(axis=1).max()) // UNIT + inserts
        if 2 * largest > self._reach:
            self._reach = 2 * largest
            self._forest = self._forest._replace(criterion=self._make_criterion(self._reach))
        self._covered = self._reach - largest

    # --- one event at a time, for library users

    def insert(
        self,
        x: Mapping[Any, Value] | Iterable[Any],
        label: int,
        *,
        weight: float = 1.0,
        id: Id | None = None,
        index: int = 0,
    ) -> Status:
        """Learn one example: its features with their values, or those that are present; see `apply` for many.

        Raises
        ------
        ValueError
            Where the example is not one: a wrong feature, value, label or weight.
        """
        return self._one(Op.INSERT, x, label_of(label, self.rules.classes), units_of(weight), id, index)[0]

    def delete(
        self,
        x: Mapping[Any, Value] | Iterable[Any] = (),
        label: int = 0,
        *,
        weight: float = 1.0,
        id: Id | None = None,
        index: int = 0,
    ) -> Status:
        """Forget one example, by its id or else by value; what is not there is told by the status.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return self._one(Op.DELETE, x, label_of(label, self.rules.classes), units_of(weight), id, index)[0]

    def predict(self, x: Mapping[Any, Value] | Iterable[Any], *, index: int = 0) -> Float64s:
        """Return the class weights for an example, in examples: all 0 where nothing is known. No state is changed.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return self._one(Op.PREDICT, x, 0, UNIT, None, index)[1].weights[0]

    def drop(self, index: int = 0) -> None:
        """Forget a tree and its examples."""
        self._one(Op.DROP, (), 0, UNIT, None, index)

    def _one(
        self,
        op: Op,
        x: Mapping[Any, Value] | Iterable[Any],
        label: int,
        units: int,
        id: Id | None,
        index: int,
    ) -> tuple[Status, Answers]:
        index = index_of(index)
        high, low = (0, 0) if id is None else digest_of(id_of(id))
        numbers, values = entries_of(x, self.names)
        answers = self.apply(
            Events(
                index=np.array([index], np.int32),
                op=np.array([op], np.int8),
                label=np.array([label], np.int32),
                weight=np.array([units], np.int64),
                time=np.zeros(1, np.int64),
                named=np.array([id is not None], np.int8),
                id_high=np.array([high], np.int64),
                id_low=np.array([low], np.int64),
                pointer=np.array([0, len(numbers)], np.int64),
                feature=numbers,
                value=values,
            )
        )
        self.sweep(numbers)
        status = Status(int(answers.status[0]))
        if status == Status.WRONG_VALUE:
            raise ValueError(f"expected finite values, got {x!r}")
        return status, answers

    # --- looking

    def tree(self, index: int = 0) -> Tree:
        """Return a tree as columns, its weights those of now; one that has learned nothing has no nodes."""
        found = nodes.snapshot(self._forest.nodes, self._root(index))
        return found._replace(
            feature=[None if number is None else name_or_id(self.names, int(number)) for number in found.feature]
        )

    def _root(self, index: int) -> int:
        trees = self._forest.trees
        return int(trees[index, ROOT]) if 0 <= index < len(trees) and trees[index, ALIVE] else NONE

    def sizes(self, index: int = 0) -> Sizes:
        """Return how large a tree is and what it did. O(its nodes)."""
        root = self._root(index)
        if root == NONE:
            return Sizes(0, 0, 0, 0, 0, 0)
        own = nodes.preorder(self._forest.nodes, root)
        events, rebuilds, examples_in_them = self._forest.trees[index, [EVENTS, REBUILDS, REBUILT]].tolist()
        return Sizes(
            events=events,
            examples=int(self._forest.ledger.heads[index, ledger.LIVES]),
            nodes=len(own),
            leaves=int(np.count_nonzero(self._forest.nodes.links[own, FEATURE] == NONE)),
            rebuilds=rebuilds,
            rebuilt=examples_in_them,
        )

    @property
    def alive(self) -> int:
        """How many trees have learned something since they were last dropped."""
        return int(self._forest.alive[0])

    def are_alive(self, indexes: Int32s) -> npt.NDArray[np.bool_]:
        """Return which of these trees have learned something since they were last dropped."""
        return are_set(self._forest.trees[:, ALIVE], indexes)

    @property
    def node_count(self) -> int:
        """How many nodes all trees have."""
        return int(self._forest.nodes.used[nodes.USED])

    @property
    def live_examples(self) -> int:
        """How many live examples there are."""
        return int(self._forest.ledger.heads[:, ledger.LIVES].sum())

    @property
    def slots(self) -> int:
        """How many features live examples have, over all trees."""
        return int(self._forest.words.used[rows.USED])

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split."""
        links = self._forest.nodes.links[: self._forest.nodes.used[nodes.EVER]]
        return int(links[links[:, FEATURE] >= NONE, DEPTH].max(initial=0))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state."""
        return sum(array.nbytes for array in self.arrays().values())

    # --- state

    def sweep(self, interned: Int64s | UInt32s) -> None:
        """Forget the names that nothing refers to any more: of those just interned, and of what was forgotten."""
        if self.names is not None:
            self.names.sweep(interned)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays (not copied)."""
        names = flattened(self.names.arrays, "names") if self.names is not None else {}
        return flattened(self._forest) | names

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        if self.names is not None:
            self.names = Interner(rebuilt(self.names.arrays, arrays, "names"))
            self._declared.find(self.names)
        self._forest = rebuilt(self._forest, arrays)
        self._covered = 0
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        forest, links = self._forest, self._forest.nodes.links
        ledger.check(forest.ledger)
        assert forest.alive[0] == np.count_nonzero(forest.trees[:, ALIVE])
        reached: list[int] = []
        for index in range(len(forest.trees)):
            lives = int(forest.ledger.heads[index, ledger.LIVES])
            if not forest.trees[index, ALIVE]:
                assert not forest.trees[index].any()
                assert lives == 0
                continue
            own = nodes.preorder(forest.nodes, int(forest.trees[index, ROOT]))
            reached += own
            assert links[own[0], nodes.PARENT] == NONE
            assert links[own[0], DEPTH] == 0
            held = [row for node in own for row in self._check_leaf(node)]
            assert sorted(held) == sorted(self._live_rows(index)), "an example is in no leaf, or in two"
            assert forest.ledger.rows[held, ledger.LENGTH].sum() == forest.trees[index, ENTRIES]
            for node in own:
                assert links[node, nodes.EDITS] <= self.rules.epsilon * links[node, nodes.BUILT]
                assert links[node, nodes.EDITED_WEIGHT] <= self.rules.epsilon * links[node, nodes.BUILT_WEIGHT]
        nodes.check(forest.nodes, reached)
        self._check_words([n for n in links[reached, FEATURE].tolist() if n != NONE])

    def _live_rows(self, index: int) -> list[int]:
        found, row = [], int(self._forest.ledger.heads[index, ledger.OLDEST])
        while row != NONE:
            found.append(row)
            row = int(self._forest.ledger.rows[row, ledger.NEWER])
        return found

    def _check_leaf(self, node: int) -> list[int]:
        """Return the examples of a node, whose list and weights must be right and who must belong there."""
        forest, links = self._forest, self._forest.nodes.links
        held, before, row = [], NONE, int(links[node, FIRST])
        while row != NONE:
            assert forest.chain[row, examples.BEFORE] == before
            held.append(row)
            before, row = row, int(forest.chain[row, examples.AFTER])
        if links[node, FEATURE] != NONE:
            assert not held, "an inner node holds examples itself"
            return held
        assert len(held) == links[node, EXAMPLES]
        weights = np.zeros(self.rules.classes, np.int64)
        np.add.at(weights, forest.ledger.rows[held, ledger.LABEL], forest.ledger.rows[held, ledger.WEIGHT])
        assert np.array_equal(weights, forest.nodes.weights[node])
        live = examples_of(forest)
        while (parent := int(links[node, nodes.PARENT])) != NONE:
            feature, kind = links[parent, [FEATURE, nodes.KIND]]
            side = int(links[parent, nodes.HIGH] == node)
            for row in held:
                value = examples.value_of(live, row, feature)
                assert examples.side_of(kind, forest.nodes.threshold[parent], value) == side, "in a wrong leaf"
            node = parent
        return held

    def _check_words(self, split_on: list[int]) -> None:
        """Check the vocabulary and the names against the live examples, and the features that nodes split on."""
        forest = self._forest
        live = [
            features for index in range(len(forest.trees)) for features, _, _ in ledger.live(forest.ledger, index)
        ]
        seen, holders = np.unique(np.concatenate([*live, np.zeros(0, np.uint32)]), return_counts=True)
        cells = forest.words.cells[: forest.words.used[rows.EVER]]
        used = np.flatnonzero(cells[:, rows.KEY] != NONE)
        rows.check(forest.words, used.tolist())
        assert sorted(cells[used, rows.KEY].tolist()) == seen.tolist()
        for feature, count in zip(seen.tolist(), holders.tolist(), strict=True):
            column = int(vocabulary.find(forest.words, feature))
            assert forest.words.cells[column, vocabulary.HOLDERS] == count
            assert forest.words.cells[column, vocabulary.KIND] == self.kinds_of(np.array([feature]))[0]
        if self.names is not None:
            self.names.check_references([seen, self._declared.numbers, np.array(split_on, np.int64)])


def _enough(before: int, wanted: int) -> int:
    """Return a size of at least what is wanted, with room to grow where it was less."""
    return before if before >= wanted else 2 * wanted


def digest_of(id: Id) -> tuple[int, int]:
    """Return the digest of an id, 61 bits and 61 more; 7 and "7" are different ids."""
    text = id if isinstance(id, bytes) else str(id).encode()
    digest = hashlib.blake2b(text, digest_size=16, person=type(id).__name__.encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 3, int.from_bytes(digest[8:], "little") >> 3


def _check_promise(epsilon: float, alpha: float, beta: float, min_examples: int, criterion: str) -> None:
    """Raise ValueError where epsilon is none, or too large for what beta promises."""
    if not 0.0 <= epsilon < np.inf:
        raise ValueError(f"expected a finite epsilon of at least 0, got {epsilon}")
    if not 0.0 <= beta <= 1.0:
        raise ValueError(f"expected a beta from 0 to 1, got {beta}")
    if needed := missing(epsilon, alpha, beta, min_examples, criterion):
        raise ValueError(
            f"expected a beta of 0, which promises nothing, or {needed}; got {beta} with epsilon {epsilon}"
        )
