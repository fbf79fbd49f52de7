from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core import class_sums, rows
from algorithms.core.criteria import UNIT, make_criterion
from algorithms.core.rows import COUNT
from algorithms.trees import gain
from algorithms.trees.pool import TreePool
from algorithms.trees.ranking import rank
from tests.support.examples import budget
from worker.data import sms_spam

GIVEN = settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
UNITS = st.one_of(st.integers(0, 3).map(lambda n: n * UNIT), st.integers(0, 1 << 32))


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@GIVEN
@given(st.lists(st.tuples(UNITS, UNITS), min_size=2, max_size=5))
def test_no_part_gains_more_than_the_bound(criterion: str, classes: list[tuple[int, int]]) -> None:
    """The bound holds for any division of any class weights, and for Gini it is the gain."""
    made = make_criterion(criterion, 100)
    state = rows.make(3, len(classes))
    for k, (part, rest) in enumerate(classes):
        state.cells[:, COUNT + k] = [part + rest, part, rest]
    whole, part_score, rest_score = (gain.impurity(made, state, row) for row in range(3))
    gained = whole - part_score - rest_score
    rounding = class_sums.noise(int(state.cells[0, COUNT:].sum()), len(classes))
    most = gain.most_gain(made, state, 0, state, 1)
    assert gained <= most * (1 + 1e-9) + 2 * rounding
    if criterion == "gini":
        assert most == pytest.approx(gained, rel=1e-6, abs=4 * rounding + 1e-9)


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
def test_leaving_out_what_is_surely_worse_changes_nothing(criterion: str) -> None:
    """At any time of a stream of text best, second and gain are to the bit those of scoring every feature."""
    pool = TreePool(criterion=criterion, grace_period=1_000_000)
    numbers: dict[str, int] = {}
    for seen, (label, words) in enumerate(islice(sms_spam(), max(1_200, budget(5_574)))):
        pool.learn({numbers.setdefault(word, len(numbers)) for word in words}, label == "spam")
        if seen % 97 == 0 or seen < 20:
            forest = pool._state
            ranked = (forest.nodes, forest.features, forest.names, forest.criterion, 0)
            assert rank(*ranked, False) == rank(*ranked, True)
