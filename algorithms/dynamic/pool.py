"""`DynamicPool`: any number of trees that forget, in one set of arrays; one kernel call a batch.

What does not depend on what labels are is in `LivePool`; numbers.py has the pool of those that are numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core import example_store, rows
from algorithms.core.aging import AgingPool
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, extended, filled
from algorithms.core.cadence import Emit
from algorithms.core.canonical import Canonicaliser, batch_of
from algorithms.core.criteria import make_criterion
from algorithms.core.events import ASK, LOOK, Batch, Events, OnDuplicate, Status
from algorithms.core.jit import direct
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES
from algorithms.core.pool import MEMO, Answered
from algorithms.core.schema import Feature, Schema
from algorithms.core.stored import Arrays, flattened, rebuilt
from algorithms.dynamic import (
    aside,
    bands,
    columns,
    examples,
    indexes,
    nodes,
    rivals,
    segment,
    slack,
    values,
    vocabulary,
)
from algorithms.dynamic import events as kernel
from algorithms.dynamic.builder import UNBOUNDED, check_terms
from algorithms.dynamic.canonical import TERMS, check_kinds
from algorithms.dynamic.exact import knows_beside
from algorithms.dynamic.feasibility import policy_of, work_of
from algorithms.dynamic.nodes import DEPTH, EXAMPLES, FEATURE, FIRST, NONE
from algorithms.dynamic.slack import NO_SLACK, NoSlack, Slack
from algorithms.dynamic.splitter import Way
from algorithms.dynamic.state import (
    ALIVE,
    ENTRIES,
    EVENTS,
    REBUILDS,
    REBUILT,
    ROOT,
    TREE_COLUMNS,
    Forest,
    Out,
    Rules,
    examples_of,
)
from algorithms.dynamic.subtrees import child_of, value_at
from algorithms.dynamic.terms import EPSILON, EXACT, Terms
from algorithms.dynamic.variance import Variance
from algorithms.trees.snapshot import Tree


class Answers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    snapshots: list[tuple[int, int, Tree]]  # where they were due: event, events applied, the tree then
    predicted: Int32s  # int32[n], the class predicted, -1: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], of inserts where `evaluate` is set: -log2 of the share given to the true class
    rebuilt: Int64s  # int64[n], how many examples subtrees were rebuilt from
    scanned: Int64s  # int64[n], how many examples were in nodes whose splits were looked for anew beside these
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


A = TypeVar("A", bound=Answered)
P = TypeVar("P")  # what one prediction is


class LivePool(AgingPool[Forest, A, P], Generic[A, P]):
    """What pools of trees that forget have in common, whatever labels they learn.

    Parameters
    ----------
    rules : Rules
        The settings, as kernels see them.
    criterion : NamedTuple
        A `Criterion` of classes, or the `Variance` of numbers.
    sums : int
        How many a node keeps of its labels, see labels.py; a feature has `rules.classes` of them.
    schema : Schema
        The kinds of features.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    memo : str, optional
        The name of the criterion, where it has a memo.
    """

    _ALIVE = ALIVE

    def __init__(
        self, rules: Rules, criterion: Any, sums: int, schema: Schema, *, names: bool, memo: str | None = None
    ) -> None:
        self.rules = rules
        self._classes = rules.classes
        self._plain = schema.all == {Kind.BINARY}
        made = example_store.make(1, aged=rules.span > 0)
        has_binary = Kind.BINARY in schema.all
        is_number = isinstance(criterion, Variance)
        self._has_floors = rules.terms.policy != EPSILON
        floors: Slack | NoSlack = NO_SLACK
        if self._has_floors:
            floors = slack.make(
                8,
                rules.classes,
                has_binary=has_binary,
                has_numeric=not self._plain,
                of_numbers=is_number,
                is_exact=rules.terms.policy == EXACT,
            )
        forest = Forest(
            trees=np.zeros((1, TREE_COLUMNS), np.int64),
            alive=np.zeros(1, np.int64),
            nodes=nodes.make(8, sums),
            store=made,
            values=np.zeros(0 if self._plain else len(made.features)),
            chain=np.zeros((len(made.rows), 2), np.int32),
            words=vocabulary.make(16),
            slack=floors,
            aside=aside.make(
                1, len(made.rows), rules.classes, is_bounded=rules.max_work > 0, is_plain=self._plain
            ),
            names=NO_NAMES,
            criterion=criterion,
        )
        self._scratch = segment.make(8, 64, 16, rules.classes, self._plain, keeps_columns=self._has_floors)
        super().__init__(forest, names=names, kinds=schema, criterion=memo)
        self._canonical = Canonicaliser(TERMS)
        self._apply = direct(kernel.apply)
        self._is_copy = False  # whether the state is one to look at, which counts on its own who holds a name

    # --- events

    def apply(self, events: Events, *, checked: bool = False) -> A:
        """Apply events in order, see `Pool.apply`.

        O(depth log features + features) each; rebuilds amortise as in paper 002.
        """
        events = self._as_learned(self._begin(events, checked))
        made = self._canonical(events, self._schema.known)
        batch = batch_of(events, made)
        n, asked = len(made.op), made.asked
        out = self._out(n, len(asked))
        snapshots: list[tuple[int, int, Any]] = []
        for event in self._run(batch, out):
            key = int(batch.key[event])
            snapshots.append((event, int(self._heads[key, EVENTS]), self.tree(key)))
        np.maximum(out.status, made.status, out=out.status)  # to the kernel, what was refused is `SKIPPED`
        return self._answers(batch, asked, out, snapshots)

    def _as_learned(self, events: Events) -> Events:
        """Return events with labels and weights as kernels take them."""
        return events

    @abstractmethod
    def _out(self, events: int, predictions: int) -> Out:
        """Return where kernels write what so many events lead to."""

    @abstractmethod
    def _answers(self, batch: Batch, asked: Int64s, out: Out, snapshots: list[tuple[int, int, Any]]) -> A:
        """Return what a batch has led to; `asked` are the events that were predictions."""

    def _step(self, batch: Any, out: Any, *at: Any) -> tuple[Any, ...]:
        return self._apply(self._state, self.rules, self._scratch, batch, out, *at)

    @property
    def _heads(self) -> Int64s:
        return self._state.trees

    def _grow_keys(self, keys: int) -> None:
        forest = self._state
        self._state = forest._replace(
            trees=extended(forest.trees, keys),
            store=example_store.grown(forest.store, keys),
            aside=aside.with_trees(forest.aside, keys),
        )

    def _enlarge(self, short: int, key: int, ones: int) -> None:
        forest = self._state
        if short == kernel.ROWS:
            book, chain = examples.with_rows(forest.store, forest.chain)
            larger = aside.with_examples(forest.aside, len(book.rows))
            self._state = forest._replace(store=book, chain=chain, aside=larger)
        elif short == kernel.CONTENT:
            book, values = examples.with_features(forest.store, forest.values, ones)
            self._state = forest._replace(store=book, values=values)
        elif short == kernel.WORDS:
            more = 2 * max(ones, len(forest.words.cells))
            self._state = forest._replace(words=rows.grown(forest.words, more))
        elif short == kernel.NODES:
            self._state = _with_nodes(forest, 2 * len(forest.nodes.links))
        elif short == kernel.INDEXES:
            known = forest.slack._replace(indexes=indexes.enlarged(forest.slack.indexes))
            self._state = forest._replace(slack=known)
        elif short == kernel.SEEN:
            more = int(forest.words.used[rows.USED]) + ones
            self._state = forest._replace(aside=aside.with_features(forest.aside, more))
        elif short == kernel.VALUES:
            self._state = forest._replace(aside=aside.with_values(forest.aside))
        else:
            self._enlarge_scratch(key, ones)

    def _enlarge_scratch(self, key: int, ones: int) -> None:
        forest = self._state
        self._scratch = segment.make(
            _enough(len(self._scratch.rows), int(forest.store.heads[key, example_store.LIVES]) + 1),
            _enough(len(self._scratch.column), int(forest.trees[key, ENTRIES]) + ones),
            len(forest.words.cells),
            self.rules.classes,
            self._plain,
            keeps_columns=self._has_floors,
        )

    # --- state

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        known = flattened(self._state.slack, "slack") if self._has_floors else {}
        if aside.is_bounded(self._state.aside):
            known = flattened(self._state.aside, "aside")
            if aside.has_values(self._state.aside):
                known |= flattened(self._state.aside.values, "aside.values")
        return super().arrays() | known

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        if self._has_floors:
            arrays = slack.with_later(arrays, "slack", self._state.slack)
            held = rebuilt(self._state.slack, arrays, "slack")
            has_indexes = bool(held.indexes.following.size)
            empty = indexes.make(len(held.floor), has_indexes=has_indexes)
            self._state = self._state._replace(slack=held._replace(indexes=empty))
        if aside.is_bounded(self._state.aside):
            self._state = self._state._replace(aside=self._aside_of(arrays))
        elif "aside.heads" in arrays and arrays["aside.heads"].any():  # its examples are in two subtrees
            raise ValueError(
                "expected a state of which nothing is built aside, got one with rebuilds under way; "
                "restore it in a pool with a max_work"
            )
        return super().restore(arrays)

    def _aside_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> aside.Aside:
        """Return what is built aside in a saved state; where nothing is told of it, nothing is."""
        if "aside.heads" not in arrays:
            trees, examples_ = len(arrays["trees"]), len(arrays["chain"])
            return aside.make(trees, examples_, self._classes, is_bounded=True, is_plain=self._plain)
        made = rebuilt(self._state.aside, arrays, "aside")
        if aside.has_values(made):
            made = made._replace(values=rebuilt(made.values, arrays, "aside.values"))
        return made

    # --- looking

    @abstractmethod
    def tree(self, key: int = 0) -> Any:
        """Return a tree as columns, its weights those of now; one that has learned nothing has no nodes.

        It is what a look at all of it would leave, and nothing is changed by looking: where the tree waits for a
        look, nodes are copied. O(nodes of all trees) then, and what the look costs.
        """

    def _snapshot(self, key: int) -> Tree:
        """Return a tree as columns, of which the weights are sums of labels as nodes have them."""
        with self.looked_through(key):
            found = nodes.snapshot(self._state.nodes, self._root(key))
        return found._replace(feature=self._features(found.feature))

    def awaits_look(self, *keys: int) -> bool:
        """Return whether a look could change one of some trees. O(their nodes)."""
        return bool((self._see(ASK, keys).status != Status.APPLIED).any())

    def look(self, *keys: int) -> int:
        """Look through all of some trees, as a record does; return how many examples were rebuilt.

        O(nodes), and what is scanned and rebuilt; nothing where trees do not wait for looks.
        """
        return int(self._see(LOOK, keys).rebuilt.sum())

    @contextmanager
    def looked_through(self, *keys: int) -> Iterator[None]:
        """Have some trees as a look at all of them would leave them, and then as they are: nothing is changed.

        Where one of them waits for a look, the nodes of all trees are copied, once.
        """
        if not self.awaits_look(*keys):
            yield
            return
        own, is_copy = self._state, self._is_copy
        parts = ("trees", "nodes", "slack", "chain", "names")
        self._state, self._is_copy = own._replace(**{part: _copied(getattr(own, part)) for part in parts}), True
        try:
            self.look(*keys)
            yield
        finally:
            self._state, self._is_copy = own, is_copy

    def _see(self, op: int, keys: Iterable[int]) -> Out:
        """Apply `LOOK` or `ASK` to those of some trees that have learned something."""
        self._show_names()  # which a state that was just restored does not have yet
        seen = np.array([key for key in keys if self._has_floors and self._root(key) != NONE], np.int32)
        out = self._out(len(seen), 0)
        if not len(seen):
            return out
        asked = Events.of(
            np.full(len(seen), op, np.int8),
            np.zeros(len(seen), self._LABEL),
            np.zeros(len(seen) + 1, np.int64),
            np.zeros(0, np.uint32),
            key=seen,
        )
        events = self._as_learned(asked)
        told = list(self._run(batch_of(events, self._canonical(events, self._schema.known)), out))
        assert not told, "a look by hand has nothing to tell"
        return out

    def _show_names(self) -> None:
        if not self._is_copy:
            super()._show_names()

    def _root(self, key: int) -> int:
        trees = self._state.trees
        return int(trees[key, ROOT]) if 0 <= key < len(trees) and trees[key, ALIVE] else NONE

    def sizes(self, key: int = 0) -> Sizes:
        """Return how large a tree is, as `tree` returns it, and what it did. O(its nodes)."""
        if self._root(key) == NONE:
            return Sizes(0, 0, 0, 0, 0, 0)
        events, rebuilds, rebuilt = self._state.trees[key, [EVENTS, REBUILDS, REBUILT]].tolist()  # before a look
        with self.looked_through(key):
            own = nodes.preorder(self._state.nodes, self._root(key))
            leaves = int(np.count_nonzero(self._state.nodes.links[own, FEATURE] == NONE))
        return Sizes(
            events=events,
            examples=int(self._state.store.heads[key, example_store.LIVES]),
            nodes=len(own),
            leaves=leaves,
            rebuilds=rebuilds,
            rebuilt=rebuilt,
        )

    @property
    def node_count(self) -> int:
        """How many nodes all trees have, those that wait for a look as they are."""
        return int(self._state.nodes.used[nodes.USED])

    @property
    def live_examples(self) -> int:
        """How many live examples there are."""
        return int(self._state.store.heads[:, example_store.LIVES].sum())

    @property
    def slots(self) -> int:
        """How many features live examples have, over all trees."""
        return int(self._state.words.used[rows.USED])

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split; nodes that wait for a look are as they are."""
        links = self._state.nodes.links[: self._state.nodes.used[nodes.EVER]]
        return int(links[links[:, FEATURE] >= NONE, DEPTH].max(initial=0))

    # --- invariants

    def _check(self) -> list[npt.NDArray[Any]]:
        forest, links = self._state, self._state.nodes.links
        example_store.check(forest.store)
        reached: list[int] = []
        for key in range(len(forest.trees)):
            lives = int(forest.store.heads[key, example_store.LIVES])
            if not forest.trees[key, ALIVE]:
                assert not forest.trees[key].any()
                assert not forest.aside.heads[key : key + 1].any()
                assert lives == 0
                continue
            own = nodes.preorder(forest.nodes, int(forest.trees[key, ROOT]))
            reached += own
            assert links[own[0], nodes.PARENT] == NONE
            assert links[own[0], DEPTH] == 0
            made, going = self._check_aside(key)
            reached += made
            held = [row for node in own if node not in going for row in self._check_leaf(node)]
            held += [row for node in {*made, *going} for row in self._listed(node)]
            assert sorted(held) == sorted(self._live_rows(key)), "an example is in no leaf, or in two"
            assert forest.store.rows[held, example_store.LENGTH].sum() == forest.trees[key, ENTRIES]
            for node in own:
                if self.rules.max_work:
                    continue  # what is due may wait
                if not self._has_floors:
                    assert links[node, nodes.EDITS] <= self.rules.epsilon * links[node, nodes.BUILT]
                    assert links[node, nodes.EDITED_WEIGHT] <= self.rules.epsilon * links[node, nodes.BUILT_WEIGHT]
                else:
                    assert len(own) == 1 or links[node, EXAMPLES] > 0, "a side is empty"
                    self._check_beside(node)
        nodes.check(forest.nodes, reached, self._joined)
        if self._has_floors:
            blocks = forest.slack.counts[reached, slack.BLOCK]
            rivals.check(forest.slack.rivals, (blocks[blocks > 0] - 1).tolist())
            owned = forest.slack.indexes.of[reached]
            assert np.count_nonzero(forest.slack.indexes.of) == np.count_nonzero(owned), "of a node that is gone"
            indexes.check(forest.slack.indexes, (owned[owned > 0] - 1).tolist())
            unused = sorted({*range(len(links))} - {*reached})
            if len(forest.slack.old):
                assert not forest.slack.old[unused].any()
                assert not forest.slack.lightest[unused].any()
                assert (forest.slack.old[reached] <= forest.nodes.weights[reached]).all()
            columns.check(forest.slack.columns, unused)
            owned = forest.slack.bands.of
            assert not owned[unused if len(owned) else []].any()
            bands.check(forest.slack.bands, (owned[owned > 0] - 1).tolist())
        first = forest.aside.heads[:, aside.FOUND]
        busy = forest.aside.heads[:, aside.STAGE] != aside.IDLE
        rows.check(
            forest.aside.seen, [row for at in first[busy].tolist() for row in rows.chain(forest.aside.seen, at)]
        )
        self._check_values(first[busy].tolist())
        split_on = links[reached, FEATURE]
        return [self._check_words(), split_on[split_on != NONE]]

    @abstractmethod
    def _sums(self, label: Int64s, weight: Int64s) -> list[int]:
        """Return what a node keeps of the labels of examples."""

    def _joined(self, low: Int64s, high: Int64s) -> Int64s:
        """Return what a node keeps of its labels by what its two children do."""
        return low + high

    def _check_beside(self, node: int) -> None:
        """Check how many examples have the values beside the threshold of a node, where that counts."""
        forest, links, known = self._state, self._state.nodes.links, self._state.slack
        is_kept = links[node, nodes.KIND] != Kind.BINARY
        is_kept = is_kept and bool(knows_beside(known.columns, node, links[node, FEATURE]))
        if self.rules.terms.policy != EXACT or links[node, FEATURE] == NONE or not is_kept:
            assert not known.counts[node, [slack.AT_BELOW, slack.AT_ABOVE]].any()
            assert not known.beside[node].any()
            return
        values = sorted(
            float(examples.value_of(examples_of(forest), row, links[node, FEATURE]))
            for leaf in nodes.preorder(forest.nodes, node)
            for row in self._check_leaf(leaf)
        )
        below, above = known.beside[node].tolist()
        sides = [slack.AT_BELOW, slack.AT_ABOVE]
        assert below <= forest.nodes.threshold[node] < above
        assert not any(below < value < above for value in values)
        assert [values.count(below), values.count(above)] == known.counts[node, sides].tolist()
        assert 0 < min(known.counts[node, sides])

    def _check_aside(self, key: int) -> tuple[list[int], set[int]]:
        """Check what is built aside of a tree; return nodes that are not in it, and those of it that will go."""
        forest, links = self._state, self._state.nodes.links
        if not self.rules.max_work or not forest.aside.heads[key].any():
            return [], set()
        stage, old, new, at_work, _, waiting, first, to_wipe = forest.aside.heads[key].tolist()
        if stage == aside.FREEING:
            assert (new, at_work, waiting, first, to_wipe) == (NONE, NONE, NONE, NONE, 0)
            return self._going(old), set()
        made, goes = nodes.preorder(forest.nodes, new), nodes.preorder(forest.nodes, old)
        held = {row: node for node in [*made, *goes] for row in self._listed(node)}
        passed = self._check_routes(new, list(held))
        self._check_routes(old, list(held))
        for row, node in held.items():
            assert node in passed[row] or (stage == aside.GATHERING and node in goes), "in a wrong list"
        while waiting != NONE:
            assert waiting in made
            assert links[waiting, FEATURE] == NONE
            waiting = int(links[waiting, nodes.LOW])
        counted = rows.chain(forest.aside.seen, first)
        if stage == aside.WIPING:
            assert len(counted) <= to_wipe
        else:
            numeric = sum(bool(self._tops([row])) for row in counted)
            assert 2 * len(counted) + 2 * numeric + self._nodes_of_values(counted) == to_wipe
        self._check_seen(key, stage, at_work, first)
        return made, set(goes)

    def _tops(self, counted: list[int]) -> list[int]:
        """Return the tops of the tries of features that are counted."""
        if not aside.has_values(self._state.aside):
            return []
        tops = self._state.aside.seen.cells[counted][:, [aside.NEGATIVE, aside.POSITIVE]] - 1
        return [int(top) for top in tops.ravel() if top != NONE]

    def _nodes_of_values(self, counted: list[int]) -> int:
        cells, todo, found = self._state.aside.values.cells, self._tops(counted), 0
        while todo:
            node = todo.pop()
            found += 1
            if cells[node, values.BIT] >= 0:
                todo += cells[node, [values.LOW, values.HIGH]].tolist()
        return found

    def _check_values(self, chains: list[int]) -> None:
        """Check the values of all features that are counted."""
        counted = [row for first in chains for row in rows.chain(self._state.aside.seen, first)]
        values.check(self._state.aside.values, self._state.store.rows, self._tops(counted))

    def _check_routes(self, top: int, held: list[int]) -> dict[int, list[int]]:
        """Check the counts of a subtree that these examples belong to; return the nodes on the way of each."""
        forest, links = self._state, self._state.nodes.links
        expected = {node: [0] * (1 + self._classes) for node in nodes.preorder(forest.nodes, top)}
        passed: dict[int, list[int]] = {}
        for row in held:
            node = top
            label, weight = forest.store.rows[row, [example_store.LABEL, example_store.WEIGHT]].tolist()
            while node != NONE:
                expected[node][0] += 1
                expected[node][1 + label] += weight
                passed.setdefault(row, []).append(node)
                is_leaf = links[node, FEATURE] == NONE
                node = NONE if is_leaf else int(child_of(forest, node, value_at(forest, row, node)))
        for node, counts in expected.items():
            assert [int(links[node, EXAMPLES]), *forest.nodes.weights[node].tolist()] == counts
        return passed

    def _going(self, todo: int) -> list[int]:
        """Return the nodes that are still to be given back."""
        links, found = self._state.nodes.links, []
        while todo != NONE:
            found += nodes.preorder(self._state.nodes, todo)
            todo = int(links[todo, nodes.PARENT])
        return found

    def _check_seen(self, key: int, stage: int, at_work: int, first: int) -> None:
        """Check what was counted of the examples of a node that is scanned."""
        forest = self._state
        if stage != aside.SCANNING:
            assert stage == aside.WIPING or first == NONE
            return
        expected: dict[int, list[int]] = {}
        entries: dict[int, list[float]] = {}
        for row in self._listed(at_work):
            start, length = forest.store.rows[row, [example_store.START, example_store.LENGTH]]
            label, weight = forest.store.rows[row, [example_store.LABEL, example_store.WEIGHT]].tolist()
            for at in range(start, start + length) if forest.aside.counted[row] else ():
                feature = int(forest.store.features[at])
                counts = expected.setdefault(feature, [0] * (1 + self._classes))
                counts[0] += 1
                counts[1 + label] += weight
                if self.kinds_of(np.array([feature]))[0] != Kind.BINARY:
                    entries.setdefault(feature, []).append(float(forest.values[at]))
        cells = forest.aside.seen.cells
        before = NONE
        for row in rows.chain(forest.aside.seen, first):
            assert int(rows.owner_of(forest.aside.seen, row)) == key
            assert cells[row, aside.BEFORE] == before + 1
            feature = int(rows.item_of(forest.aside.seen, row))
            found = cells[row, [aside.HOLDERS, *range(aside.WEIGHTS, aside.WEIGHTS + self._classes)]].tolist()
            assert expected.pop(feature) == found
            keys = [key for top in self._tops([row]) for key in values.found(forest.aside.values, top)]
            assert sorted(map(values.key_of, np.array(entries.get(feature, [])))) == sorted(keys)
            before = row
        assert not expected, "a feature was not counted"

    def _listed(self, node: int) -> list[int]:
        """Return the examples in the list of a node."""
        held, before, row = [], NONE, int(self._state.nodes.links[node, FIRST])
        while row != NONE:
            assert self._state.chain[row, examples.BEFORE] == before
            held.append(row)
            before, row = row, int(self._state.chain[row, examples.AFTER])
        return held

    def _live_rows(self, key: int) -> list[int]:
        found, row = [], int(self._state.store.heads[key, example_store.OLDEST])
        while row != NONE:
            found.append(row)
            row = int(self._state.store.rows[row, example_store.NEWER])
        return found

    def _check_leaf(self, node: int) -> list[int]:
        """Return the examples of a node, whose list and weights must be right and who must belong there."""
        forest, links = self._state, self._state.nodes.links
        held = self._listed(node)
        if links[node, FEATURE] != NONE:
            assert not held, "an inner node holds examples itself"
            return held
        assert len(held) == links[node, EXAMPLES]
        label, weight = forest.store.rows[held][:, [example_store.LABEL, example_store.WEIGHT]].T
        assert self._sums(label, weight) == forest.nodes.weights[node].tolist()
        live = examples_of(forest)
        while (parent := int(links[node, nodes.PARENT])) != NONE:
            feature, kind = links[parent, [FEATURE, nodes.KIND]]
            side = int(links[parent, nodes.HIGH] == node)
            for row in held:
                value = examples.value_of(live, row, feature)
                assert examples.side_of(kind, forest.nodes.threshold[parent], value) == side, "in a wrong leaf"
            node = parent
        return held

    def _check_words(self) -> npt.NDArray[np.uint32]:
        """Check the vocabulary against the live examples; return their features, each once."""
        forest = self._state
        live = [
            features
            for key in range(len(forest.trees))
            for features, _, _ in example_store.live(forest.store, key)
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
        return seen


class DynamicPool(LivePool[Answers, Float64s]):
    """Any number of trees under inserts and deletes, one for each key.

    Parameters
    ----------
    epsilon : float, optional
        FuDyADT of paper 002: a subtree built from s examples is rebuilt after more than epsilon s inserts and
        deletes, and so in weight. 0: after each. 0.1 unless `guarantee` or `beta` says when instead.
    alpha : float
        A node whose impurity is at most half of it stays a leaf.
    beta : float
        Above 0 what is looked through is promised to be feasible (paper 002, definition 3.1): a node with an
        impurity of at least alpha is split, and its split gains at most beta less than the best. Without an
        epsilon it is rebuilt where floors cannot tell that it is; with one, which must be below
        1 / (min_examples + 1), alpha / 5 and beta / 12.5, and the criterion Gini, by the clock alone.
    guarantee : str, optional
        ``exact``: what is looked through is, to the bit, the tree that `build_tree` makes of the live examples.
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
        Keep only the last so many examples of each key.
    span : int, optional
        In ms: keep examples for so long, see ages.py. Events tell what the clock shows.
    on_duplicate : OnDuplicate
        What an insert of a live id does.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    evaluate : bool
        Predict every example before it is learned.
    max_work : int, optional
        Entries of examples, about, that one event may touch to rebuild subtrees. What is more is spread over the
        next events of the key, while the old subtree answers; see parts.py. So what a beta beside an epsilon
        promises, and that with an epsilon of 0 the tree is the one that would be built from scratch, does not
        hold meanwhile. None: one event may then take as long as building the whole tree. So it always is with a
        guarantee, or a beta without an epsilon.
    max_keys, max_live_ids : int
        Bounds; what would pass them is refused.
    snapshots : Emit
        When `Answers` has a tree's snapshot; at a change means after a rebuild that had or made an inner node.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        alpha: float = 0.0,
        beta: float = 0.0,
        guarantee: str | None = None,
        min_examples: int = 1,
        max_depth: int = UNBOUNDED,
        criterion: str = "gini",
        classes: int = 2,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        window: int | None = None,
        span: int | None = None,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
        names: bool = False,
        evaluate: bool = False,
        max_work: int | None = None,
        max_keys: int = 1 << 30,
        max_live_ids: int = 1 << 30,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
    ) -> None:
        check_terms(criterion, classes, alpha, min_examples, max_depth)
        check_kinds([default, *(kinds or {}).values()])
        policy, epsilon = policy_of(guarantee, epsilon, alpha, beta, min_examples, criterion)
        schema = Schema(default, kinds or {})
        rules = rules_of(
            Terms(float(alpha), min_examples, max_depth, int(Way.ORDERED), policy=policy, beta=float(beta)),
            epsilon=epsilon,
            max_work=work_of(max_work, policy),
            classes=classes,
            window=window,
            span=span,
            on_duplicate=on_duplicate,
            evaluate=evaluate,
            max_keys=max_keys,
            max_live_ids=max_live_ids,
            snapshots=snapshots,
        )
        made = make_criterion(criterion, MEMO)
        super().__init__(rules, made, classes, schema, names=names, memo=criterion)

    def _out(self, events: int, predictions: int) -> Out:
        return Out(
            status=np.zeros(events, np.int8),
            predicted=filled(events, NONE, np.int32),
            loss=np.zeros(events),
            rebuilt=np.zeros(events, np.int64),
            scanned=np.zeros(events, np.int64),
            shares=np.zeros((predictions, self._classes)),
            leaf=np.zeros(predictions, np.int64),
            weights=np.zeros(self._classes),
            counts=np.zeros(1, np.int64),
            told=np.zeros(1, np.int64),
        )

    def _answers(
        self,
        batch: Batch,  # noqa: ARG002
        asked: Int64s,
        out: Out,
        snapshots: list[tuple[int, int, Tree]],
    ) -> Answers:
        return Answers(
            out.status, snapshots, out.predicted, out.loss, out.rebuilt, out.scanned, asked, out.shares, out.leaf
        )

    def _prediction(self, answers: Answers) -> Float64s:
        return answers.weights[0]

    def tree(self, key: int = 0) -> Tree:
        """Return a tree as columns, its weights those of its classes now; see `LivePool.tree`."""
        return self._snapshot(key)

    def _heaviest(self) -> int:
        return int(self._state.nodes.weights.sum(axis=1).max())

    def _sums(self, label: Int64s, weight: Int64s) -> list[int]:
        weights = np.zeros(self._classes, np.int64)
        np.add.at(weights, label, weight)
        return weights.tolist()


def rules_of(
    terms: Terms,
    *,
    epsilon: float,
    max_work: int,
    classes: int,
    window: int | None,
    span: int | None,
    on_duplicate: OnDuplicate,
    evaluate: bool,
    max_keys: int,
    max_live_ids: int,
    snapshots: Emit,
) -> Rules:
    """Return settings of a pool as its kernels see them; raise ValueError where they are none."""
    if window is not None and window < 1:
        raise ValueError(f"expected a window of at least 1 example, got {window}")
    if snapshots.argument < 1:
        raise ValueError("expected n or ms of at least 1 for snapshots every so often")
    return Rules(
        epsilon=epsilon,
        terms=terms,
        max_work=max_work,
        classes=classes,
        window=window or 0,
        span=span or 0,
        on_duplicate=int(on_duplicate),
        evaluated=evaluate,
        max_keys=max_keys,
        max_live_ids=max_live_ids,
        snapshot_when=int(snapshots.when),
        snapshot_argument=snapshots.argument,
    )


def _enough(before: int, wanted: int) -> int:
    """Return a size of at least what is wanted, with room to grow where it was less."""
    return before if before >= wanted else 2 * wanted


def _with_nodes(forest: Forest, capacity: int) -> Forest:
    """Return a state with room for so many nodes."""
    larger = forest._replace(nodes=nodes.grown(forest.nodes, capacity))
    return larger if forest.slack is NO_SLACK else larger._replace(slack=slack.grown(forest.slack, capacity))


def _copied(part: Any) -> Any:
    """Return copies of the arrays of a NamedTuple, and of those in it."""
    if isinstance(part, np.ndarray):
        return part.copy()
    return type(part)(*map(_copied, part))
