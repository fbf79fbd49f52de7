"""What trees elsewhere get wrong, one test each, over every policy and criterion."""

import pickle
import random
import sys
from dataclasses import replace

import numpy as np
import pytest

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op
from algorithms.core.kinds import Kind
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from algorithms.trees.snapshot import Tree
from tests.algorithms.trees.test_trees import MIXES, mixes_of, of
from tests.oracles.naive_trees import KINDS
from tests.oracles.tree_parts import Event, Feature, Settings
from tests.oracles.tree_streams import Stream, outcomes, pool_columns
from tests.support.examples import budget

pytestmark = pytest.mark.parametrize("kind", KINDS, ids="-".join)
TreeKind = tuple[str, str]


def labelled(count: int, seed: int = 0, *, first: int = 3) -> list[Event]:
    """Return examples whose label one feature tells, among others that say nothing."""
    rng = random.Random(seed)
    events = []
    for _ in range(count):
        label = rng.randrange(2)
        x: dict[Feature, float] = {10 + each: 1.0 for each in range(5) if rng.random() < 0.5}
        events.append(Event(Op.INSERT, x | ({first: 1.0} if label else {}), label))
    return events


def grown(settings: Settings, events: list[Event]) -> TreePool:
    """Return a pool that learned the events."""
    pool = settings.pool()
    outcomes(pool, events)
    pool.check()
    return pool


def shape(tree: Tree) -> list[tuple[object, ...]]:
    """Return the splits of a tree, without its weights."""
    return list(zip(tree.parent.tolist(), tree.branch.tolist(), tree.feature, tree.kind, strict=True))


def test_an_example_without_the_split_feature_goes_somewhere(kind: TreeKind) -> None:
    """Absent is a value like any other, and features never seen do no harm."""
    pool = grown(of(kind), labelled(200))
    assert pool.tree().feature[0] == 3
    assert np.argmax(pool.predict([3])) == 1
    assert np.argmax(pool.predict([])) == np.argmax(pool.predict([99, 100])) == 0


def test_what_is_absent_may_say_nothing(kind: TreeKind) -> None:
    """Where leaves listen to what is present alone, an empty example is as likely of a class as any other is."""
    events = [Event(Op.INSERT, {1: 1.0, 2: 1.0}, 0), Event(Op.INSERT, {2: 1.0}, 1), Event(Op.INSERT, {2: 1.0}, 1)]
    silent = grown(of(kind, predict=Predict.ADAPTIVE_PRESENT, max_depth=0), events)
    assert silent.predict([]) == pytest.approx([1.0, 2.0])
    assert silent.predict([99]) == pytest.approx([1.0, 2.0])
    assert np.argmax(silent.predict([1])) == 0
    assert grown(of(kind, predict=Predict.ADAPTIVE, max_depth=0), events).predict([])[0] < 0.9


def test_a_pure_leaf_does_not_split(kind: TreeKind) -> None:
    """Examples of one class alone lead to no attempt, however many they are."""
    pool = grown(of(kind), [replace(event, label=1) for event in labelled(300)])
    assert (pool.sizes().attempts, pool.sizes().splits) == (0, 0)


def test_a_feature_that_says_nothing_is_not_split_on(kind: TreeKind) -> None:
    """No gain is no split, not even where the bound allows a tie; nor is a feature that all examples have."""
    events = [Event(Op.INSERT, {1: 1.0, 2: 1.0} if k & 1 else {2: 1.0}, k >> 1 & 1) for k in range(400)]
    if kind[0].endswith(("imac", "exact")):  # which look in between, when feature 1 does seem to say something
        events = [replace(event, x={2: 1.0}) for event in events]
    assert grown(of(kind, tie_threshold=0.9), events).sizes().splits == 0


def test_looking_changes_nothing(kind: TreeKind) -> None:
    """Predictions, snapshots and sizes leave every byte of the state as it was."""
    for name in mixes_of(kind):
        mix = replace(MIXES[name], others=0.0)
        events = Stream(3, mix).take(budget(200))
        pool = grown(of(kind, mix, predict=Predict.ADAPTIVE), events)
        before = {each: array.copy() for each, array in pool.arrays().items()}
        outcomes(pool, [replace(event, op=Op.PREDICT) for event in events])
        pool.tree()
        pool.sizes()
        pool.predict({4000: 1.0}, key=0)
        after = pool.arrays()
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[each], after[each]) for each in before)


def test_nothing_recurses(kind: TreeKind) -> None:
    """A tree far deeper than the stack is grown, predicted with, drawn, copied, checked and dropped."""
    depth = budget(300)
    chain = [tuple(range(level + more)) for level in range(depth) for more in (0, 1)]
    events = [Event(Op.INSERT, dict.fromkeys(x, 1.0), at & 1) for at, x in enumerate(chain)]
    settings = of(kind, grace_period=2, split_confidence=0.9)
    pool = settings.pool()
    limit, frame, used = sys.getrecursionlimit(), sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    outcomes(pool, events[:4])  # compiled by now
    sys.setrecursionlimit(used + (depth if depth > 200 else 150))
    try:
        outcomes(pool, events[4:])
        tree = pool.tree()
        assert tree.depth.max() == depth
        copied = settings.pool().restore(pickle.loads(pickle.dumps(pool.arrays())))
        assert copied.predict(range(depth)).tolist() == pool.predict(range(depth)).tolist()
        pool.check()
        pool.drop()
        pool.check()
    finally:
        sys.setrecursionlimit(limit)
    assert copied.tree().depth.max() == depth


def test_ties_go_to_the_lowest_feature(kind: TreeKind) -> None:
    """Of features that are the same the lowest id is split on, whichever came first."""
    for order in ((4, 7, 9), (9, 7, 4), (7, 4, 4294967295)):
        same: dict[Feature, float] = dict.fromkeys(order, 1.0)
        events = [Event(Op.INSERT, same if label else {}, label) for label in (0, 1, 1, 0) * 75]
        assert grown(of(kind), events).tree().feature[0] == 4


def test_the_scale_of_weights_does_not_matter(kind: TreeKind) -> None:
    """All weights times the same number give the same splits, also beyond 2^31 examples, and exact sums."""
    for name in mixes_of(kind):
        mix = replace(MIXES[name], weights=(UNIT, 2 * UNIT, 3 * UNIT), others=0.0, indexes=1)
        events = Stream(6, mix).take(budget(400))
        trees = []
        for scale in (1.0, 2.0**-10, 4.0, 2.0**22):
            scaled = [replace(event, weight=int(event.weight * scale)) for event in events]
            pool = grown(of(kind, mix, predict=Predict.NAIVE_BAYES), scaled)
            tree = pool.tree()
            trees.append(shape(tree))
            leaves = [at for at, feature in enumerate(tree.feature) if feature is None]
            if Kind.NUMERIC not in mix.kinds.values() and len(leaves) == 1:
                assert tree.weight[leaves].sum() == sum(event.weight for event in scaled)
        assert trees[0] == trees[1] == trees[2] == trees[3], name


def test_an_example_of_weight_n_counts_as_n_in_the_class_weights(kind: TreeKind) -> None:
    """Weights are exact to a 2^-20th, and past 2^31 examples."""
    pool = of(kind).pool()
    pool.learn([1], 1, weight=2.0**33)
    pool.learn([1], 0, weight=2.0**-20)
    assert pool.predict([1]).tolist() == [2.0**-20, 2.0**33]


def test_weight_zero_is_no_example(kind: TreeKind) -> None:
    """Examples of weight 0 among others change nothing; a tree is not begun by one."""
    events = labelled(200)
    nothing = [replace(event, weight=0) for event in labelled(200, 1)]
    mixed = [event for pair in zip(nothing, events, strict=True) for event in pair]
    assert pool_columns(grown(of(kind), mixed), 0) == pool_columns(grown(of(kind), events), 0)
    assert grown(of(kind), nothing).alive == 0


def test_feature_0_and_the_highest_are_features_like_any_other(kind: TreeKind) -> None:
    """The ids at both ends can be split on."""
    for first in (0, 4294967295):
        assert grown(of(kind), labelled(200, first=first)).tree().feature[0] == first


def test_a_rare_feature_may_be_split_on(kind: TreeKind) -> None:
    """A feature of one example in two hundred is found where it alone tells the label."""
    rng = random.Random(4)
    events = []
    for k in range(2000):
        x: dict[Feature, float] = {10 + each: 1.0 for each in range(3) if rng.random() < 0.5}
        if k % 200 == 7:
            x[7] = 1.0
        events.append(Event(Op.INSERT, x, int(7 in x)))
    assert grown(of(kind, tie_threshold=0.02, grace_period=400), events).tree().feature[0] == 7


def test_an_empty_tree_knows_nothing_and_says_so(kind: TreeKind) -> None:
    """Predicting with a tree that has learned nothing is no error: class weights are 0, no class is predicted."""
    pool = of(kind).pool()
    assert pool.predict([1, 2]).tolist() == [0.0, 0.0]
    assert pool.predict([], key=7).tolist() == [0.0, 0.0]
    assert outcomes(pool, [Event(Op.PREDICT, {1: 1.0}, key=3)])[0].predicted == -1
    assert (pool.tree().feature, pool.tree(5).feature, pool.alive) == ([], [], 0)
    assert pool.sizes(99).events == 0
    pool.check()
