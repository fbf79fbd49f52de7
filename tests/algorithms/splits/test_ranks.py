"""The best features of split models, ranked, against the oracle in naive.py."""

from dataclasses import replace

import numpy as np
import pytest

from algorithms.core.criteria import UNIT
from tests.algorithms.splits.test_splits import HALF, of
from tests.oracles.naive import KINDS, Mix, Pair, Stream, ids, words
from tests.support.examples import budget

pytestmark = pytest.mark.parametrize("kind", KINDS, ids="-".join)
Kind = tuple[str, str]


@pytest.mark.parametrize("named", [False, True])
def test_the_best_features_are_ranked_as_by_the_oracle(kind: Kind, named: bool) -> None:
    """The k best and those near the best, for any k and alpha, also while most features wait."""
    pair = Pair(of(kind, names=named, verify_deletes=True))
    stream = Stream(31)
    mix = Mix((words if named else ids)(300), longest=25, weights=(UNIT, UNIT, HALF))
    for deletes in (0.1, 0.6, 0.2):
        for events in stream.batches(stream.take(budget(300), replace(mix, deletes=deletes))):
            pair.feed(events)
            before = {name: array.copy() for name, array in pair.pool.arrays().items()}
            for k in (1, 2, 30, 1000):
                assert [
                    (row.feature, row.score.hex(), row.present) for row in pair.pool.top(0, k)
                ] == pair.twin.top(0, k)
            for alpha in (0.0, 1e-3, 0.05, 1.0):
                assert pair.pool.within(0, alpha) == pair.twin.within(0, alpha)
            for name, array in pair.pool.arrays().items():
                if name not in ("finder.stack", "finder.bounds"):
                    assert np.array_equal(array, before[name]), "a look at the ranks changed the state"
    pair.check()


def test_ties_rank_by_feature(kind: Kind) -> None:
    """Where a hundred features tie to the bit, the k lowest are the k best, and all are within nothing."""
    pool = of(kind).pool()
    for ten in reversed(range(0, 100, 10)):
        pool.insert(range(ten + 9, ten - 1, -1), 0)
    pool.insert([], 1)
    assert [row.feature for row in pool.top(0, 7)] == list(range(7))
    assert pool.within() == list(range(100))


def test_an_index_without_a_split_ranks_nothing(kind: Kind) -> None:
    """Nothing is best in a node that is empty or pure, or where all examples have all features."""
    pool = of(kind).pool()
    assert (pool.top(3), pool.within(3)) == ([], [])
    pool.insert([1], 0)
    assert (pool.top(), pool.within(0, 1.0)) == ([], [])
    pool.insert([1], 1)
    assert (pool.top(), pool.within(0, 1.0)) == ([], [])
    pool.insert([], 1)
    assert [row.feature for row in pool.top()] == pool.within(0, 1.0) == [1]


def test_ranks_name_bad_arguments(kind: Kind) -> None:
    """No rank below the first, no share below nothing, no negative key."""
    pool = of(kind).pool()
    for call, message in (
        (lambda: pool.top(0, 0), "expected k"),
        (lambda: pool.top(-1), "the number of a key"),
        (lambda: pool.within(0, -0.1), "alpha of at least 0"),
        (lambda: pool.within(0, float("nan")), "alpha of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
