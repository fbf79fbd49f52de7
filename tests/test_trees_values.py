"""What trees do that holds for some policies only: values other than 0 and 1, and a true split time."""

from dataclasses import replace

import pytest

from algorithms.criteria import UNIT
from algorithms.splits import Op
from algorithms.trees.kinds import Kind
from tests.naive import budget
from tests.naive_trees import KINDS, Event, Mix, Stream, outcomes, pool_columns
from tests.test_trees import EXACT, MIXES, mixes_of, of
from tests.test_trees_habits import grown, shape

VALUED = [kind for kind in KINDS if kind not in EXACT]
TreeKind = tuple[str, str]


@pytest.mark.parametrize("kind", EXACT, ids="-".join)
def test_the_exact_policy_grows_the_reference_tree(kind: TreeKind) -> None:
    """The exact policy splits when VFDT with n_min = 1 does, on the same feature: its delay is 0."""
    for name in mixes_of(kind):
        events = Stream(4, MIXES[name]).take(budget(800))
        reference = of(("periodic", kind[1]), MIXES[name], period=1).pool()
        pool = of(kind, MIXES[name]).pool()
        assert outcomes(pool, events) == outcomes(reference, events)
        for index in range(MIXES[name].indexes):
            assert pool_columns(pool, index) == pool_columns(reference, index)
            assert pool.sizes(index).attempts <= reference.sizes(index).attempts


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_a_category_never_seen_is_answered_by_the_node_above(kind: TreeKind) -> None:
    """A prediction stops where it lacks a branch; learning the example makes the branch."""
    events = [Event(Op.INSERT, {5: float(k % 3)}, int(k % 3 == 1)) for k in range(90)]
    pool = grown(of(kind, kinds={5: Kind.NOMINAL}), events)
    assert (pool.tree().feature[0], pool.sizes().leaves) == (5, 3)
    whole = pool.tree().weight[0] / UNIT
    assert pool.predict({5: 7}).tolist() == whole.tolist()
    pool.learn({5: 7}, 1)
    assert pool.sizes().leaves == 4
    assert pool.predict({5: 7}).tolist() == [0.0, 1.0]
    pool.check()


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_tiny_and_huge_values_split_alike(kind: TreeKind) -> None:
    """Values around 1e-9 and 1e9 give the splits that values around 1 give: no epsilon is absolute."""
    mix = Mix(dict.fromkeys(range(5), Kind.NUMERIC), others=0.0)
    events = Stream(9, mix).take(budget(400))
    trees = []
    for scale in (1.0, 2.0**-30, 2.0**30):
        scaled = [replace(event, x={f: v * scale for f, v in event.x.items()}) for event in events]
        pool = grown(of(kind, mix), scaled)
        trees.append((shape(pool.tree()), (pool.tree().threshold / scale).tolist()))
    assert trees[0] == trees[1] == trees[2]
    assert budget(10) < 10 or len(trees[0][0]) > 1
