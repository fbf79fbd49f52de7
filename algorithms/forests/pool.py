"""`ForestPool`: any number of forests of trees that forget, one for each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import example_store
from algorithms.core.aging import AgingPool
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, extended, filled
from algorithms.core.cadence import Emit, When
from algorithms.core.canonical import Canonicaliser, batch_of
from algorithms.core.events import Batch, Events, OnDuplicate
from algorithms.core.fixed_point import MAX_TOTAL, PER_UNIT
from algorithms.core.given import whole
from algorithms.core.jit import direct
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES
from algorithms.core.schema import Feature, Schema
from algorithms.core.stored import Arrays
from algorithms.dynamic import vocabulary
from algorithms.dynamic.builder import UNBOUNDED
from algorithms.dynamic.canonical import TERMS
from algorithms.dynamic.pool import DynamicPool, Sizes
from algorithms.dynamic.state import REBUILDS, REBUILT, TREE_COLUMNS
from algorithms.forests import ledger as kernel
from algorithms.forests.draws import MOST_SEED, MOST_TREES, Draws, draws, of_copy, ticket, times
from algorithms.forests.ledger import ALIVE, COPIES, KEY_COLUMNS, NONE, WEIGHT, Hashes, Ledger, Plan, Rules
from algorithms.forests.names import hashes_of
from algorithms.forests.parts import Parts
from algorithms.forests.thinning import Poll, Said, count, read, thin
from algorithms.trees.snapshot import Tree

_MOVES, _EVENTS = 2048, 1 << 14  # moves of a plan, and of all trees: when it is full the trees act
_KNOWN_BY = [example_store.HIGH, example_store.LOW, example_store.WEIGHT]  # columns of a row
_TOLD_BY = [example_store.HIGH, example_store.LOW, example_store.LABEL, example_store.WEIGHT, example_store.OWNER]
_PLACED_BY = [example_store.HIGH, example_store.LOW, example_store.START, example_store.LENGTH]
_NUMBERS = 1 << 31  # of trees: below
_VOTES = 1 << 16  # moves of a plan times classes, about
# Trees that examples come to, and leave, in a plan, and moves times trees: where there are fewer, no thread is
# waited for, as waking one takes some 50 us.
_APART, _ASKED_APART = 64, 1 << 11


class Answers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    snapshots: list[tuple[int, int, list[Tree]]]  # where they were due: event, events applied, the trees then
    predicted: Int32s  # int32[n], the class predicted, -1: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], of inserts where `evaluate` is set: -log2 of the share given to the true class
    rebuilt: Int64s  # int64[n], how many examples subtrees were rebuilt from, over all trees
    asked: Int64s  # int64[p], the events that were predictions
    votes: Int64s  # int64[p, c], what each was answered with: a tree has 2^20 to divide among the classes

    @property
    def leaf(self) -> Int64s:
        """int64[p], 0: there is no one node that answers."""
        return np.zeros(len(self.asked), np.int64)

    @property
    def weights(self) -> Float64s:
        """float64[p, c], the votes in trees: a class that all of ten trees are sure of has 10."""
        return np.multiply(self.votes, PER_UNIT, dtype=np.float64)

    @property
    def shares(self) -> Float64s:
        """float64[p, c], the share of each class in the votes; all 0 where nothing is known."""
        total = self.votes.sum(axis=1, keepdims=True)
        shares: Float64s = self.votes / np.maximum(total, 1)
        return shares


class LiveExample(NamedTuple):
    """A live example of a forest, as far as its trees see it."""

    id: tuple[int, int] | None  # the digest of its id
    label: int
    weight: int  # in units of 2^-20, as it was given
    features: dict[int | bytes, float]  # those that some tree sees which has it


class _Part:
    """A part of the trees, and what they are told and say."""

    def __init__(self, parts: Parts[DynamicPool], part: int, draws: Draws, plan: Plan, said: Said) -> None:
        self._pool, self._at = parts.pools[part], (part, len(parts))
        self._draws, self._plan, self._said = draws, plan, said
        self._thin, self._read = direct(thin), direct(read)
        most = len(plan.op) * parts.size(part)
        self._told = Batch(
            key=np.zeros(most, np.int32),
            op=np.zeros(most, np.int8),
            label=np.zeros(most, np.int32),
            weight=np.zeros(most, np.int64),
            time=np.ones(most, np.int64),  # nothing in a tree is due by time
            pointer=np.zeros(most + 1, np.int64),
            feature=np.zeros(0, np.uint32),
            value=np.zeros(0),
            kind=np.zeros(0, np.int8),
            bits=np.zeros(0, np.int64),
            named=np.ones(most, np.int8),
            id_high=np.zeros(most, np.int64),
            id_low=np.zeros(most, np.int64),
            clock=np.zeros((0, 3), np.int64),
        )
        self._out = self._pool._out(most, 0)

    def act(self, batch: Batch, hashes: Hashes) -> None:
        """Let the trees do what is planned."""
        plan, pool = self._plan, self._pool
        events, entries, asked = self._thin(self._draws, plan, batch, hashes, self._told, *self._at)
        if entries > len(self._told.feature):
            self._make_room(entries)
            self._thin(self._draws, plan, batch, hashes, self._told, *self._at)
        if asked > len(self._out.shares):
            self._out = self._out._replace(
                shares=np.zeros((2 * asked, pool._classes)), leaf=np.zeros(2 * asked, np.int64)
            )
        if events or not plan.used[0]:
            pool._cover(events)
            told = Batch._make((self._told.key[:events], *self._told[1:]))  # the kernel goes as far as keys do
            for _ in pool._run(told, self._out):
                raise AssertionError("trees have nothing to tell")
        assert not self._read(plan, self._out, self._said, *self._at), "the ledger knows what a tree can do"

    def _make_room(self, entries: int) -> None:
        """Make room for so many features."""
        value = np.zeros(2 * entries)
        self._told = self._told._replace(
            feature=np.zeros(2 * entries, np.uint32),
            value=value,
            kind=np.zeros(2 * entries, np.int8),
            bits=value.view(np.int64),
        )


class ForestPool(AgingPool[Ledger, Answers, Float64s]):
    """Any number of forests under inserts and deletes, one for each key.

    The trees are those of a few `DynamicPool`, see parts.py. Which features a tree sees, and how many times
    its weight an example weighs in it, are hashes, see draws.py. Live examples, ids, copies and the window are
    kept once, by the ledger. Beside it each tree has a row and the features of each example that is drawn there: a
    live example costs 120 bytes in the ledger, and in each tree that has it 120 bytes and the features that it
    sees.

    Parameters
    ----------
    trees : int
        T, 1 to 1000.
    subspace : float or str
        The share of the features that a tree sees, or ``sqrt of D`` for 1 / sqrt(D).
    bagging : str
        ``none``: each example is in each tree. ``poisson:1``, ``poisson:6``: it weighs so many times its weight
        there, 0 among them. ``k of T`` as in ``3 of 10``: it is in exactly k trees.
    seed : int
        Another one, another forest.
    epsilon, alpha, beta, guarantee, min_examples, max_depth, criterion, max_work
        Of each tree, as of `DynamicPool`. With the guarantee ``exact`` what is looked through is, to the bit, the
        forest that would be built from the live examples alone.
    classes, default, kinds, on_duplicate, names, max_keys, max_live_ids
        As of `DynamicPool`.
    window : int, optional
        Keep only the last so many examples of each key, wherever they are.
    span : int, optional
        In ms: keep examples for so long, see ages.py. Events tell what the clock shows.
    evaluate : bool
        Predict every example before it is learned.
    snapshots : Emit
        When `Answers` has the trees of a forest; at a change is nearly always, so that this is not served.
    threads : int
        How many run parts of the trees at the same time, 1 to 64; there are two parts, or four from 20 trees on.
        All that comes out is the same with any number of threads.
    """

    _ALIVE = ALIVE

    def __init__(
        self,
        *,
        trees: int = 10,
        subspace: float | str = 0.6,
        bagging: str = "poisson:6",
        seed: int = 0,
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
        max_keys: int = 1 << 30,
        max_live_ids: int = 1 << 30,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
        max_work: int | None = None,
        threads: int = 1,
    ) -> None:
        trees = whole("trees", trees, 1, MOST_TREES)
        drawn = draws(trees, whole("a seed", seed, 0, MOST_SEED), subspace, bagging)
        self.count = trees
        make = partial(
            DynamicPool,
            epsilon=epsilon,
            alpha=alpha,
            beta=beta,
            guarantee=guarantee,
            min_examples=min_examples,
            max_depth=max_depth,
            criterion=criterion,
            classes=classes,
            default=default,
            kinds=kinds,
            names=names,
            max_work=max_work,
        )
        self.parts: Parts[DynamicPool] = Parts(trees, threads, make)
        if window is not None and window < 1:
            raise ValueError(f"expected a window of at least 1 example, got {window}")
        if snapshots.when == When.CHANGE or snapshots.argument < 1:
            raise ValueError("expected snapshots every n events or ms of event time, 1 at least, or never")
        self.rules = Rules(
            draws=drawn,
            classes=classes,
            window=window or 0,
            span=span or 0,
            on_duplicate=int(on_duplicate),
            evaluated=evaluate,
            max_weight=MAX_TOTAL // drawn.most,
            max_keys=max_keys,
            max_live_ids=max_live_ids,
            snapshot_when=int(snapshots.when),
            snapshot_argument=snapshots.argument,
        )
        self._classes = classes
        state = Ledger(
            keys=np.zeros((1, KEY_COLUMNS), np.int64),
            alive=np.zeros(1, np.int64),
            store=example_store.make(1, aged=span is not None),
            names=NO_NAMES,
        )
        super().__init__(state, names=names, kinds=Schema(default, kinds or {}))
        self.parts.share(self.names, self._schema)
        self._canonical = Canonicaliser(TERMS)
        self._enter, self._count = direct(kernel.enter), direct(count)
        moves = min(_MOVES, max(min(_EVENTS // trees, _VOTES // classes), kernel.MOVES))
        self._plan = Plan(
            event=np.zeros(moves, np.int64),
            op=np.zeros(moves, np.int8),
            high=np.zeros(moves, np.int64),
            low=np.zeros(moves, np.int64),
            times=np.zeros((moves, trees), np.int8),
            used=np.zeros(2, np.int64),
            due=np.zeros(1, np.int8),
        )
        self._said = Said(
            votes=np.zeros((len(self.parts), moves, classes), np.int64),
            rebuilt=np.zeros((len(self.parts), moves), np.int64),
        )
        self._parts = [_Part(self.parts, part, drawn, self._plan, self._said) for part in range(len(self.parts))]

    def _numbers(self, key: int) -> range:
        """Return the numbers that the trees of a key have among all."""
        return range(key * self.count, (key + 1) * self.count)

    # --- events

    def apply(self, events: Events, *, checked: bool = False) -> Answers:
        """Apply events in order, see `Pool.apply`.

        O(trees) each, and what each tree that has the example needs for it.
        """
        events = self._begin(events, checked)
        made = self._canonical(events, self._schema.known)
        batch = batch_of(events, made)
        hashes = hashes_of(self.names, self._state.names, made.feature)
        n = len(made.op)
        status = np.zeros(n, np.int8)
        poll = Poll(
            predicted=filled(n, NONE, np.int32),
            loss=np.zeros(n),
            rebuilt=np.zeros(n, np.int64),
            votes=np.zeros((len(made.asked), self._classes), np.int64),
            sums=np.zeros(self._classes, np.int64),
            weights=np.zeros(self._classes),
            counts=np.zeros(1, np.int64),
        )
        snapshots: list[tuple[int, int, list[Tree]]] = []
        for event in self._run(batch, (hashes, status)):
            self._act(batch, hashes, poll)
            if self._plan.due[0]:
                self._plan.due[0] = 0
                key = int(batch.key[event])
                poll.rebuilt[event] += self.look(key)
                snapshots.append((event, int(self._state.keys[key, kernel.EVENTS]), self.trees(key)))
        self._act(batch, hashes, poll)
        np.maximum(status, made.status, out=status)  # to the kernel, what was refused is `SKIPPED`
        return Answers(status, snapshots, poll.predicted, poll.loss, poll.rebuilt, made.asked, poll.votes)

    def _act(self, batch: Batch, hashes: Hashes, poll: Poll) -> None:
        """Let the trees do what is planned, and count the votes."""
        used = self._plan.used
        if not used[0] and len(batch.op):
            return  # of no events the kernels are loaded all the same
        if used[1] >= _APART or used[0] * self.count >= _ASKED_APART:
            self.parts.run([partial(part.act, batch, hashes) for part in self._parts])
        else:
            for part in self._parts:
                part.act(batch, hashes)
        self._count(self._plan, batch, self._said, poll)
        used[:] = 0

    def _show_names(self) -> None:
        super()._show_names()
        self.parts.show_names()

    def _prediction(self, answers: Answers) -> Float64s:
        weights: Float64s = answers.weights[0]
        return weights

    def _step(self, batch: Any, out: Any, *at: Any) -> tuple[Any, ...]:
        return self._enter(self._state, self.rules, batch, *out, self._plan, *at)

    @property
    def _heads(self) -> Int64s:
        return self._state.keys

    def _reserve(self, keys: int) -> None:
        if keys * self.count > _NUMBERS:
            raise ValueError(
                f"expected keys below {_NUMBERS // self.count:,} in forests of {self.count:,} trees, "
                f"got {keys - 1:,}; give keys numbers from 0"
            )
        super()._reserve(keys)

    def _grow_keys(self, keys: int) -> None:
        ledger = self._state
        self._state = ledger._replace(
            keys=extended(ledger.keys, keys), store=example_store.grown(ledger.store, keys)
        )
        self.parts.reserve(keys)

    def _enlarge(self, short: int, key: int, ones: int) -> None:  # noqa: ARG002  (only rows can be short)
        self._state = self._state._replace(store=example_store.with_rows(self._state.store))

    # --- looking

    def tree(self, number: int, key: int = 0) -> Tree:
        """Return the tree with a number, from 0, of a key's forest; one that has learned nothing has no nodes."""
        return self.parts.tree(self._numbers(key)[number])

    def trees(self, key: int = 0) -> list[Tree]:
        """Return all trees of a key's forest."""
        with self._looked_through(key):
            return [self.parts.tree(number) for number in self._numbers(key)]

    def look(self, key: int = 0) -> int:
        """Look through all trees of a key, as a record does; return how many examples were rebuilt."""
        return sum(pool.look(*self.parts.local(part, [key])) for part, pool in enumerate(self.parts.pools))

    @contextmanager
    def _looked_through(self, key: int) -> Iterator[None]:
        """Have the trees of a key as a look at all of them would leave them; nothing is changed."""
        with ExitStack() as stack:
            for part, pool in enumerate(self.parts.pools):
                stack.enter_context(pool.looked_through(*self.parts.local(part, [key])))
            yield

    def sizes(self, key: int = 0) -> Sizes:
        """Return how large a forest is and what it did, its nodes and rebuilds over all trees. O(its nodes)."""
        homes = [self.parts.home(number) for number in self._numbers(key)] if self._is_known(key) else []
        done = np.array([pool._heads[at] for pool, at in homes]).reshape(-1, TREE_COLUMNS)  # before anybody looks
        with self._looked_through(key):
            each = [pool.sizes(at) for pool, at in homes]
        events, examples = 0, 0
        if homes:
            events = int(self._state.keys[key, kernel.EVENTS])
            examples = int(self._state.store.heads[key, example_store.LIVES])
        return Sizes(
            events=events,
            examples=examples,
            nodes=sum(sizes.nodes for sizes in each),
            leaves=sum(sizes.leaves for sizes in each),
            rebuilds=int(done[:, REBUILDS].sum()),
            rebuilt=int(done[:, REBUILT].sum()),
        )

    def _is_known(self, key: int) -> bool:
        return 0 <= key < len(self._heads)

    def live_weights(self, key: int = 0) -> Int64s:
        """Return int64[c], the weight of a key's live examples of each class, in units. O(all live examples)."""
        rows = self._state.store.rows
        mine = (rows[:, example_store.STATE] == example_store.LIVE) & (rows[:, example_store.OWNER] >> 1 == key)
        weights = np.zeros(self._classes, np.int64)
        np.add.at(weights, rows[mine, example_store.LABEL], rows[mine, example_store.WEIGHT])
        return weights

    def live(self, key: int = 0) -> list[LiveExample]:
        """Return a key's live examples, in the order of arrival. O(all that its trees hold)."""
        seen: dict[tuple[int, int], dict[int | bytes, float]] = {}
        for number in self._numbers(key) if self._is_known(key) else ():
            pool, at = self.parts.home(number)
            store = pool._state.store
            for row in pool._live_rows(at):
                high, low, start, length = store.rows[row, _PLACED_BY].tolist()
                features = self._features(store.features[start : start + length].tolist())
                values = pool._state.values[start : start + length].tolist() or [1.0] * length
                seen.setdefault((high, low), {}).update(zip(features, values, strict=True))  # type: ignore[arg-type]
        found = []
        for row, copy in self._copies(self._live_rows(key)):
            high, low, label, weight, owner = self._state.store.rows[row, _TOLD_BY].tolist()
            id = (high, low) if owner & 1 else None
            known = id or (int(of_copy(high, copy, 1)), int(of_copy(low, copy, 2)))
            found.append(LiveExample(id, label, weight, seen.get(known, {})))
        return found

    @property
    def node_count(self) -> int:
        """How many nodes all trees have."""
        return self.parts.node_count

    @property
    def live_examples(self) -> int:
        """How many live examples there are, each counted once."""
        return int(self._state.store.heads[:, example_store.LIVES].sum())

    @property
    def slots(self) -> int:
        """How many features live examples have, over all trees of all keys. O(what each part has)."""
        found = [vocabulary.features(pool._state.words) for pool in self.parts.pools]
        return len(np.unique(np.concatenate(found)))

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split."""
        return self.parts.depth

    # --- state

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied); those of the trees begin with ``trees.``."""
        return super().arrays() | self.parts.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        super().restore(arrays)
        self.parts.restore(arrays, self.names, self._schema)
        self.parts.reserve(len(self._heads))
        return self

    # --- invariants

    def _check(self) -> list[npt.NDArray[Any]]:
        ledger, rows = self._state, self._state.store.rows
        example_store.check(ledger.store)
        assert not self._plan.used.any()
        assert not self._plan.due[0]
        expected: dict[tuple[int, int, int], int] = {}
        for key in range(len(ledger.keys)):
            live = self._live_rows(key)
            assert ledger.keys[key, WEIGHT] == sum(int(rows[row, example_store.WEIGHT]) for row in live)
            if not ledger.keys[key, ALIVE]:
                assert not ledger.keys[key].any()
            for row, copy in self._copies(live):
                high, low, weight = rows[
                    row, [example_store.HIGH, example_store.LOW, example_store.WEIGHT]
                ].tolist()
                drawn = self._times(high, low, copy)
                if not rows[row, example_store.OWNER] & 1:
                    high, low = of_copy(high, copy, 1), of_copy(low, copy, 2)
                for number, often in zip(self._numbers(key), drawn, strict=True):
                    if often:
                        expected[number, high, low] = often * weight
                assert not self.rules.draws.chosen or sum(drawn) == self.rules.draws.chosen
        assert expected == _in_trees(self.parts), "a tree has not the examples that it was drawn"
        owners = (self.parts.living() // self.count).astype(np.int32)
        assert self.are_alive(owners).all(), "a tree is alive whose forest is not"
        return self.parts.check()

    def _times(self, high: int, low: int, copy: int) -> list[int]:
        """Return how many times its weight an example weighs in each tree."""
        drawn, found = ticket(high, low, copy), list[int]()
        for number in range(self.count):
            found.append(int(times(self.rules.draws, number, drawn, sum(found))))
        return found

    def _live_rows(self, key: int) -> list[int]:
        """Return the rows of a key's live examples, oldest first."""
        found, row = [], int(self._state.store.heads[key, example_store.OLDEST])
        while row != NONE:
            found.append(row)
            row = int(self._state.store.rows[row, example_store.NEWER])
        return found

    def _copies(self, live: list[int]) -> list[tuple[int, int]]:
        """Return live rows, each with which copy it is: of a key in their order."""
        rows = self._state.store.rows
        numbers: dict[tuple[int, ...], int] = {}
        found = []
        for row in live:
            digest = tuple(rows[row, [example_store.OWNER, example_store.HIGH, example_store.LOW]].tolist())
            found.append((row, numbers.get(digest, 0)))
            numbers[digest] = numbers.get(digest, 0) + 1
            if rows[row, example_store.ELDER] == NONE:
                assert rows[row, COPIES] == numbers[digest], "copies are counted wrongly"
        return found


def _in_trees(parts: Parts[DynamicPool]) -> dict[tuple[int, int, int], int]:
    """Return tree and digest of each example, with its weight there."""
    columns = [example_store.OWNER, example_store.HIGH, example_store.LOW, example_store.WEIGHT]
    found: dict[tuple[int, int, int], int] = {}
    for part, pool in enumerate(parts.pools):
        store = pool._state.store
        live = store.rows[store.rows[:, example_store.STATE] == example_store.LIVE][:, columns]
        live[:, 0] = parts.numbers(part, live[:, 0] >> 1)
        own = {(tree, high, low): weight for tree, high, low, weight in live.tolist()}
        assert len(own) == len(live) == store.counts[example_store.NAMED]
        found |= own
    return found
