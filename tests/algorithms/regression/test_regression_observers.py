"""The contract of observers, over every one of them, against the oracle in naive_regression.py."""

import math
import random
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.regression.elements import BIT, ROOT
from algorithms.regression.observer import Observer
from algorithms.regression.observers import OBSERVERS
from tests.oracles.naive_regression import NaiveObserver, Point, exact_merit
from tests.support.examples import budget

Example = tuple[float, float, int]  # value, label, weight in units

KINDS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in OBSERVERS),
    ("qo", {"radius": 0.25}),
    ("qo", {"fraction": 1 / 3, "most": 6}),
    ("tebst", {"decimals": 1}),
    ("ebst", {"most": 7}),
    ("tebst", {"decimals": 1, "most": 5}),
]
WEIGHTS = (UNIT, UNIT, 3 * UNIT, UNIT // 2, round(0.3 * UNIT), 1)

pytestmark = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join([kind[0], *kind[1]]))
Kind = tuple[str, dict[str, Any]]


class Pair:
    """A differential harness: an observer beside its oracle, compared after every batch."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.observer = Observer(kind[0], **kind[1])
        self.twin = NaiveObserver(*kind)

    def feed(self, examples: Sequence[Example]) -> None:
        """Observe examples as one batch; raise AssertionError where observer and oracle differ."""
        feed(self.observer, examples)
        for x, y, weight in examples:
            self.twin.observe(x, y, weight)
        self.observer.check()
        assert words(self.observer) == self.twin.best_split()
        assert elements(self.observer) == [described(point) for point in self.twin.in_order()]

    def restored(self) -> None:
        """Go on with a copy of the observer's state in a new one."""
        arrays = {name: array.copy() for name, array in self.observer.arrays().items()}
        self.observer = Observer(self.kind[0], **self.kind[1]).restore(arrays)


def feed(observer: Observer, examples: Sequence[Example]) -> None:
    """Observe examples as one batch."""
    observer.observe(
        [x for x, _, _ in examples], [y for _, y, _ in examples], np.array([w for _, _, w in examples]) / UNIT
    )


def words(observer: Observer) -> tuple[str, ...] | None:
    """Return the best split as hexadecimal text."""
    found = observer.best_split()
    if found is None:
        return None
    return tuple(float(each).hex() for each in (found.threshold, found.merit, *found.low, *found.high))


def elements(observer: Observer) -> list[tuple[str, int, str, str]]:
    """Return the elements in order: prototype, weight, mean and M_2."""
    arrays = observer.arrays()
    used = np.flatnonzero(arrays["elements.weight"])
    numbers = arrays["elements.numbers"][used]
    order = np.argsort(numbers[:, 0])
    return [
        (float(x).hex(), int(weight), float(mean).hex(), float(squares).hex())
        for (x, mean, squares), weight in zip(numbers[order], arrays["elements.weight"][used][order], strict=True)
    ]


def described(point: Point) -> tuple[str, int, str, str]:
    """Return an element of the oracle in the same words."""
    return (point.x.hex(), point.seen.weight, point.seen.mean.hex(), point.seen.squares.hex())


def stream(seed: int, n: int, weights: Sequence[int] = WEIGHTS) -> list[Example]:
    """Return examples whose label follows the value, with some values again and again."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        x = rng.choice([rng.gauss(0, 2), rng.gauss(0, 2), round(rng.gauss(0, 2)) / 2])
        found.append((x + 0.0, (x > 0.7) * 3 + x / 4 + rng.gauss(0, 0.5), rng.choice(weights)))
    return found


def test_long_streams_agree_with_the_oracle(kind: Kind) -> None:
    """Elements, thresholds, merits and both sides are the oracle's to the bit, also of a restored copy."""
    pair = Pair(kind)
    examples = stream(1, budget(3000))
    at = 0
    for size in (1, 2, 40, budget(1000), 1, budget(3000)):
        pair.feed(examples[at : at + size])
        pair.restored()
        at += size


NUMBERS = st.sampled_from([-1e140, -7.0, -1.0, -0.25, -5e-324, 0.0, 1e-9, 0.1, 0.25, 0.29, 0.3, 2.0, 1e9, 1e140])


@settings(
    max_examples=budget(150),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_history_leads_to_what_the_oracle_says(kind: Kind, data: st.DataObject) -> None:
    """Whatever values, labels and weights come, observer and oracle agree to the bit."""
    pair = Pair(kind)
    number = st.one_of(NUMBERS, st.floats(-1e3, 1e3)).map(lambda x: x + 0.0)
    example = st.tuples(number, number, st.sampled_from(WEIGHTS))
    for _ in range(data.draw(st.integers(1, 3))):
        pair.feed(data.draw(st.lists(example, max_size=60)))
        pair.restored()


@settings(
    max_examples=budget(150),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_merits_are_exact_but_for_rounding(kind: Kind, data: st.DataObject) -> None:
    """The merit is that of the split's definition in rational numbers, and no threshold has a better one."""
    offset, scale = data.draw(st.sampled_from([(0.0, 1.0), (1e9, 1.0), (-1e9, 1e-3), (0.0, 1e-9), (0.0, 1e100)]))
    label = st.integers(-50, 50).map(lambda y: offset + y * scale)
    value = st.integers(-30, 30).map(lambda x: x / 8)
    weight = st.sampled_from([UNIT, UNIT, 3 * UNIT, UNIT // 2])
    examples = data.draw(st.lists(st.tuples(value, label, weight), min_size=2, max_size=60))
    pair = Pair(kind)
    pair.feed(examples)
    found = pair.observer.best_split()
    points = pair.twin.in_order()
    if found is None:
        assert len(points) < 2
        return
    cuts = [
        exact_merit(
            [each for point in points[:at] for each in point.labels],
            [each for point in points[at:] for each in point.labels],
        )
        for at in range(1, len(points))
    ]
    lower = found.threshold
    at = sum(point.x <= lower for point in points)
    slack = Fraction(1e-10 * pair.observer.total().variance)
    assert abs(Fraction(found.merit) - cuts[at - 1]) <= slack
    assert max(cuts) - cuts[at - 1] <= 2 * slack


@pytest.mark.parametrize(("offset", "scale"), [(1e9, 1.0), (-1e9, 0.01), (0.0, 1e-9), (0.0, 1e-100), (1e12, 1.0)])
def test_labels_far_from_0_or_tiny_are_split_rightly(kind: Kind, offset: float, scale: float) -> None:
    """Small differences between labels of 1e9, and labels of 1e-9, find the threshold that labels of 1 find."""
    rng = random.Random(4)
    examples = [(x, (x > 0) + rng.gauss(0, 0.02)) for x in (rng.uniform(-2, 2) for _ in range(400))]
    splits = []
    for a, b in ((0.0, 1.0), (offset, scale)):
        observer = Observer(kind[0], **kind[1])
        observer.observe([x for x, _ in examples], [a + b * y for _, y in examples])
        splits.append(observer.best_split())
    plain, moved = splits
    assert plain is not None
    assert moved is not None
    assert abs(plain.threshold) < (1.5 if "most" in kind[1] else 0.6)
    assert moved.threshold == plain.threshold
    assert moved.merit == pytest.approx(scale**2 * plain.merit, rel=1e-3 if offset == 1e12 else 1e-5, abs=0.0)
    assert moved.high.mean - moved.low.mean == pytest.approx(scale * (plain.high.mean - plain.low.mean), rel=1e-3)


def test_batches_of_any_size_give_the_same_bytes(kind: Kind) -> None:
    """Batches of 1, 7 and 1000 leave the same state, byte for byte, and find the same split."""
    examples = stream(2, budget(1000))
    seen = []
    for size in (1, 7, 1000):
        observer = Observer(kind[0], **kind[1])
        for at in range(0, len(examples), size):
            feed(observer, examples[at : at + size])
        seen.append((words(observer), {name: array.tobytes() for name, array in observer.arrays().items()}))
    assert seen[0] == seen[1] == seen[2]


def test_sorted_input_makes_no_deeper_tree_than_any_other(kind: Kind) -> None:
    """Ascending, descending and shuffled values lead to the same tree, at most 64 levels deep."""
    values = [at / 16 for at in range(-budget(2000), budget(2000))]
    shuffled = values.copy()
    random.Random(3).shuffle(shuffled)
    if ("radius" not in kind[1]) if kind[0] == "qo" else ("most" in kind[1]):
        return  # what settles the radius, or is kept, is what came first
    depths = []
    for order in (values, values[::-1], shuffled):
        observer = Observer(kind[0], **kind[1])
        observer.observe(order, np.zeros(len(order)))
        observer.check()
        depths.append(depths_of(observer))
    assert depths[0] == depths[1] == depths[2]
    assert max(depths[0]) <= 64


def depths_of(observer: Observer) -> list[int]:
    """Return how many inner nodes are above each element, in order."""
    arrays = observer.arrays()
    links = arrays["elements.links"]
    found, todo = [], [(int(arrays["elements.heads"][0, ROOT]), 0)]
    while todo:
        at, depth = todo.pop()
        if at < 0:
            found.append(depth)
        else:
            todo += [(int(links[at, BIT - 1]), depth + 1), (int(links[at, BIT - 2]), depth + 1)]
    return found


def test_reading_changes_no_state(kind: Kind) -> None:
    """To look for a split leaves every array as it is."""
    observer = Observer(kind[0], **kind[1])
    feed(observer, stream(5, 200))
    before = {name: array.tobytes() for name, array in observer.arrays().items()}
    assert observer.best_split() == observer.best_split()
    assert observer.total().weight > 0
    observer.check()
    assert {name: array.tobytes() for name, array in observer.arrays().items()} == before


def test_equal_merits_go_to_the_lowest_threshold(kind: Kind) -> None:
    """Of splits that are worth the same to the bit the lowest is taken."""
    observer = Observer(kind[0], **kind[1])
    observer.observe([1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0])
    found = observer.best_split()
    assert found is not None
    assert found.merit == 0.0
    assert found.threshold == (1.5 if kind[0] == "qo" else 1.0)


def test_the_scales_of_weights_and_labels_change_no_threshold(kind: Kind) -> None:
    """Weights times 8, and labels times 2^-30, leave the threshold; the merit follows the labels."""
    examples = stream(6, 300, (UNIT, 2 * UNIT, UNIT // 2))
    splits = []
    for by_weight, by_label in ((1, 1.0), (8, 1.0), (1, 2.0**-30)):
        observer = Observer(kind[0], **kind[1])
        feed(observer, [(x, y * by_label, w * by_weight) for x, y, w in examples])
        splits.append(observer.best_split())
    plain, heavy, small = splits
    assert plain is not None
    assert heavy is not None
    assert small is not None
    assert (heavy.threshold, heavy.merit) == (plain.threshold, plain.merit)
    assert (small.threshold, small.merit) == (plain.threshold, plain.merit * 2.0**-60)


def test_unit_weights_have_the_variance_of_the_paper(kind: Kind) -> None:
    """With weights of 1 variances are those of statistics.variance, n - 1 below the root."""
    rng = random.Random(8)
    examples = [(float(x), x * x + rng.gauss(0, 1)) for x in range(-5, 6)]
    observer = Observer(kind[0], **kind[1])
    observer.observe(*zip(*examples, strict=True))
    found = observer.best_split()
    assert found is not None
    ys = [y for _, y in examples]
    sides = [[y for x, y in examples if (x <= found.threshold) == low] for low in (True, False)]
    assert observer.total().variance == pytest.approx(statistics.variance(ys))
    if "most" not in kind[1]:
        parts = sum(len(side) / len(ys) * (statistics.variance(side) if len(side) > 1 else 0) for side in sides)
        assert found.merit == pytest.approx(statistics.variance(ys) - parts)


def test_nothing_to_split_is_none(kind: Kind) -> None:
    """Without two different elements there is no split, and no error."""
    observer = Observer(kind[0], **kind[1])
    assert observer.best_split() is None
    assert observer.total() == (0.0, 0.0, 0.0)
    observer.observe(3.0, 1.0)
    observer.observe([], [])
    observer.observe([3.0, 9.0], [2.0, 8.0], [2.0, 0.0])
    assert observer.best_split() is None
    assert (observer.size, observer.total().weight) == (1, 3.0)


def test_what_is_no_number_is_refused_and_changes_nothing(kind: Kind) -> None:
    """NaN, infinities, too large numbers, wrong weights and shapes are refused with what was expected."""
    observer = Observer(kind[0], **kind[1])
    observer.observe([1.0, 2.0], [1.0, 2.0])
    before = {name: array.tobytes() for name, array in observer.arrays().items()}
    wrong: list[tuple[Any, Any, Any, str]] = [
        ([1.0, math.nan], [0.0, 0.0], 1.0, "finite values up to 1e\\+140 in size, got nan at 1"),
        ([math.inf], [0.0], 1.0, "finite values"),
        ([-2e140], [0.0], 1.0, "finite values"),
        ([1.0], [math.nan], 1.0, "finite labels"),
        ([1.0], [-math.inf], 1.0, "finite labels"),
        ([1.0], [0.0], -1.0, "finite weights of at least 0"),
        ([1.0], [0.0], math.nan, "finite weights"),
        ([1.0], [0.0], 1e300, "total weight below"),
        ([1.0], [0.0], [1.0, 2.0], "a weight for each"),
        ([1.0, 2.0], [0.0], 1.0, "a label for each value"),
        ([[1.0]], [[0.0]], 1.0, "one dimension"),
    ]
    for x, y, weight, reason in wrong:
        with pytest.raises(ValueError, match=reason):
            observer.observe(x, y, weight)
    assert {name: array.tobytes() for name, array in observer.arrays().items()} == before
