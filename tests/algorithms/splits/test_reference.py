"""UPDENT and UPDGINI: the bound of paper 000 on every prefix, and reference and production side by side."""

import math
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT, make_criterion, score
from algorithms.core.events import Status
from algorithms.splits import count_groups, updent, updgini
from algorithms.splits.count_groups import LOWER, MIDDLE, START, UPPER
from algorithms.splits.pool import SplitPool
from algorithms.splits.reference import Tree, UpdEnt, UpdGini
from tests.oracles.naive import REFERENCES
from tests.support.examples import budget
from worker.bench.streams import sparse

ALPHAS = [0.01, 0.1, 1.0, 10.0, 40.0]
CRITERION = {"updent": "entropy", "updgini": "gini"}

Example: TypeAlias = tuple[list[int], int, float]  # features, label, weight
Step: TypeAlias = tuple[bool, Example]  # is it an insert?


class Trio:
    """A differential harness: reference, production finder and a plain scan; `step` compares them."""

    def __init__(self, finder: str, alpha: float) -> None:
        self.alpha = alpha
        self.reference = REFERENCES[finder](alpha)
        # No decision is asked for, so that only `best` looks.
        self.pool = SplitPool(finder=finder, criterion=CRITERION[finder], alpha=alpha, splits=Emit(When.NEVER))
        self.criterion = make_criterion(CRITERION[finder], 1)

    def step(self, is_insert: bool, example: Example) -> None:
        """Insert or delete an example: both answer alike, and within the bound."""
        features, label, weight = example
        for each in (self.reference, self.pool):
            change = each.insert if is_insert else each.delete
            assert change(features, label, weight=weight) == Status.APPLIED
        expected, got = self.reference.best(), self.pool.best()
        assert got == expected
        assert got.score <= (1 + self.alpha) * self.least(None) * (1 + 1e-12)
        assert got.runner_up_score <= (1 + self.alpha) * self.least(got.feature) * (1 + 1e-12)

    def least(self, excluded: object) -> float:
        """Return the best score by looking at every feature but one; without any, the node's own."""
        c0, c1 = self.reference.c
        points = {
            (a, b)
            for j, (a, b) in self.reference.counts.items()
            if j != excluded and 0 < c0 and 0 < c1 and a + b < c0 + c1
        }
        return min(float(score(self.criterion, *point, c0, c1)) for point in points or {(0, 0)})

    def check(self) -> None:
        """Raise AssertionError unless all invariants hold, and both have the same trees."""
        self.reference.check()
        self.pool.check()
        finder = self.pool._state.finder
        assert count_groups.trees(finder, 0) == self.reference.trees()


# --- streams


def inserts(examples: Iterator[Example]) -> Iterator[Step]:
    """Return the inserts of examples."""
    return ((True, example) for example in examples)


def generated() -> Iterator[Step]:
    """Yield the paper's sparse(n, d1, d2, q)."""
    stream = sparse(budget(250), 5, 300, 0.01, seed=4)
    for row, label in enumerate(stream.label.tolist()):
        features = stream.feature[stream.pointer[row] : stream.pointer[row + 1]].tolist()
        yield True, (features, label, 1.0)


def zipf(seed: int = 0) -> Iterator[Example]:
    """Yield examples like text: a few features are frequent, most are rare, some tell the label."""
    rng = random.Random(seed)
    while True:
        label = int(rng.random() < 0.3)
        features = {int(400 ** rng.random()) - 1 for _ in range(rng.randint(0, 12))}
        features |= {500 + k for k in range(4) if rng.random() < 0.1 + 0.2 * k * label}
        yield sorted(features), label, 1.0


def noise() -> Iterator[Step]:
    """Yield labels that no feature tells anything about."""
    rng = random.Random(1)
    for _ in range(budget(200)):
        yield True, (sorted(rng.sample(range(60), 5)), rng.randrange(2), 1.0)


def perfect() -> Iterator[Step]:
    """Yield noise with one feature that is the label, another that is its opposite, then exceptions to both."""
    for at, (_, (features, label, weight)) in enumerate(noise()):
        yield True, ([*features, 100 if label else 101], label, weight)
        if at > budget(150):
            yield True, ([100, 101], label, 1.0)


def identical() -> Iterator[Step]:
    """Yield features that are the same in all examples, which some lack; taken back in the end."""
    rng = random.Random(2)
    examples = [(list(range(40)) * (rng.random() < 0.6), rng.randrange(2), 1.0) for _ in range(budget(80))]
    yield from inserts(iter(examples))
    yield from ((False, example) for example in examples)


def toggled() -> Iterator[Step]:
    """Yield the totals going up and down around powers of two, so that every rho crosses ends of bins."""
    for features in ([1, 2], [1], [3], [2, 3], []):
        for label in (0, 1):
            yield True, (features, label, 1.0)
    for power in (4, 8, 16, 32) if budget(10) > 1 else (4,):
        for label in (1, 0):
            for _ in range(power):
                yield True, ([4] * (power == 8), label, 1.0)
            for _ in range(3):
                yield from ((is_insert, ([], label, 1.0)) for is_insert in (False, True, True, False))
    for label in (1, 0):
        for _ in range(budget(30)):
            yield False, ([], label, 1.0)
            yield False, ([], label, 1.0) if label else ([], 1 - label, 1.0)
            yield True, ([], 1, 1.0)


def to_nothing_and_back() -> Iterator[Step]:
    """Yield weighted text, mostly deletes of it, all of them, and other text again."""
    rng = random.Random(3)
    live: list[Example] = []
    source = zipf(7)
    for deletes in (0.1, 0.7, 1.0, 0.2):
        for _ in range(budget(120)):
            if live and rng.random() < deletes:
                yield False, live.pop(rng.randrange(len(live)))
            elif deletes < 1.0:
                features, label, _ = next(source)
                live.append((features, label, rng.choice([1.0, 1.0, 0.5, 3.0, 0.3])))
                yield True, live[-1]
        while deletes == 1.0 and live:
            yield False, live.pop()


def text() -> Iterator[Step]:
    """Yield a stretch of text."""
    source = zipf()
    return inserts(next(source) for _ in range(budget(200)))


STREAMS = [generated, text, noise, perfect, identical, toggled, to_nothing_and_back]


@pytest.mark.wide(16)
@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("finder", REFERENCES)
@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.__name__)
def test_every_prefix_keeps_the_bound(stream: Callable[[], Iterator[Step]], finder: str, alpha: float) -> None:
    """After every event both answers are the same and within (1 + alpha), the runner-up among the rest, too."""
    trio = Trio(finder, alpha)
    for at, (is_insert, example) in enumerate(stream()):
        trio.step(is_insert, example)
        if at % 20 == 0:
            trio.check()
    trio.check()


@pytest.mark.parametrize("finder", REFERENCES)
def test_answers_may_be_approximate(finder: str) -> None:
    """With an alpha that is far too large some answer is worse than the best, else nothing is tested here."""
    trio = Trio(finder, 40.0)
    rng, worst = random.Random(0), 1.0
    for _ in range(150):
        features = [j for j in range(12) if rng.random() < (j + 1) / 14]
        trio.step(True, (features, int(rng.random() < 0.2 + 0.1 * (3 in features)), 1.0))
        worst = max(worst, trio.pool.best().score / (trio.least(None) or 1.0))
    assert 1.01 < worst <= 41.0


@pytest.mark.parametrize("finder", REFERENCES)
def test_events_without_a_query_leave_the_same_state(finder: str) -> None:
    """Whether and when the best split is asked for changes no later answer."""
    asked = SplitPool(finder=finder, criterion=CRITERION[finder], splits=Emit(When.NEVER))
    left_alone = SplitPool(finder=finder, criterion=CRITERION[finder], splits=Emit(When.NEVER))
    for is_insert, (features, label, weight) in to_nothing_and_back():
        for pool in (asked, left_alone):
            (pool.insert if is_insert else pool.delete)(features, label, weight=weight)
        asked.best()
    assert asked.best() == left_alone.best()
    for pool in (asked, left_alone):
        pool.check()
    assert count_groups.trees(asked._state.finder, 0) == count_groups.trees(left_alone._state.finder, 0)


@pytest.mark.parametrize("finder", REFERENCES)
def test_a_refused_delete_changes_no_run(finder: str) -> None:
    """A delete that the counts refuse, after the features were touched, leaves them in the bins they were in."""
    trio = Trio(finder, 0.1)
    for is_insert, example in text():
        trio.step(is_insert, example)
    heavy = max(trio.reference.counts, key=lambda j: sum(trio.reference.counts[j]))
    c0 = trio.reference.c[0] / UNIT
    before = trio.pool._state.finder.counts.tolist()[: count_groups.OF_PENDING]
    for _ in range(40):
        refused = trio.pool.delete([heavy], 0, weight=c0 - 0.5)
        assert refused == trio.reference.delete([heavy], 0, weight=c0 - 0.5) == Status.ABSENT_EXAMPLE
    trio.pool.delete([], 0, weight=c0 - 0.5)
    assert trio.pool._state.finder.counts.tolist()[: count_groups.OF_PENDING] == before
    trio.step(True, ([], 1, 1.0))
    trio.check()


# --- intervals


@pytest.mark.parametrize("alpha", [0.001, *ALPHAS, 100.0])
@pytest.mark.parametrize("finder", REFERENCES)
def test_the_ladder_has_the_papers_bins(finder: str, alpha: float) -> None:
    """Every share has a bin that it lies in, and it is the one that the paper's formula names."""
    module = {"updent": updent, "updgini": updgini}[finder]
    ladder, middle = module.ladder(alpha)
    state = module.make(1, 1, alpha)
    assert state.rules[MIDDLE] == middle
    reference: Any = REFERENCES[finder](alpha)
    rng = random.Random(0)
    for _ in range(budget(300)):
        size = rng.choice([10, 1000, 1 << 40, 1 << 61])
        c0, c1 = rng.randint(1, size), rng.randint(1, rng.choice([10, size]))
        a, b = rng.randint(0, c0), rng.randint(0, c1)
        reference.c, reference.counts = [c0, c1], {0: [a, b]}
        rank = int(count_groups.rank_of(state, a, b, c0, c1))
        i = reference.ind(0)
        levels = middle - 1
        ends = {-(1 << 30): 0, 1 << 30: len(ladder) - 1}
        named = i if finder == "updgini" else ends.get(i, levels + 1 + i if i < 0 else levels + i)
        assert rank == named
        rho, rest = reference._shares(0)
        share = rest if rank >= middle else rho
        assert ladder[rank, LOWER] <= share <= ladder[rank, UPPER]


@pytest.mark.parametrize("alpha", [0.001, *ALPHAS, 100.0])
def test_bins_of_entropy_are_a_chain_of_powers(alpha: float) -> None:
    """Each bin starts where its neighbour ends, at 2^-((1 + alpha)^i), down to less than any share."""
    ladder, middle = updent.ladder(alpha)
    lower, upper = ladder[1:middle, LOWER], ladder[1:middle, UPPER]
    assert upper[-1] == 0.5
    assert np.array_equal(lower[1:], upper[:-1])
    assert 0.0 < lower[0] <= 2.0**-62
    for k, (share, before) in enumerate(pairwise([0.5, *lower[::-1]])):
        assert before == pytest.approx(2.0 ** -min((1 + alpha) ** (k + 1), 64.0), rel=1e-9)
        assert before < share
    assert np.array_equal(ladder[middle:, START], ladder[:middle, START][::-1])


@pytest.mark.parametrize("alpha", [0.001, *ALPHAS, 100.0])
def test_bins_of_gini_overlap_by_half(alpha: float) -> None:
    """B_i is ((i/2 - 1/4) beta, (i/2 + 3/4) beta), and the last reaches beyond 1."""
    ladder, _ = updgini.ladder(alpha)
    beta = alpha / (alpha + 2.0)
    assert np.array_equal(ladder[:, START], np.arange(len(ladder)) / 2 * beta)
    assert ladder[-1, START] <= 1.0 < len(ladder) / 2 * beta
    for i in (0, 1, len(ladder) - 1):
        assert ladder[i, LOWER] == pytest.approx((i / 2 - 1 / 4) * beta)
        assert ladder[i, UPPER] == pytest.approx((i / 2 + 3 / 4) * beta)
    assert ladder[-1, UPPER] > 1.0


@pytest.mark.parametrize("alpha", [0.0, -1.0, 0.0009, 101.0, math.inf, math.nan])
def test_an_alpha_out_of_range_is_refused(alpha: float) -> None:
    """What was expected and what came is named."""
    with pytest.raises(ValueError, match=r"expected an alpha from 0.001 to 100, got"):
        SplitPool(finder="updent", alpha=alpha)


# --- the reference by itself


def test_a_search_tree_orders_by_key_then_feature() -> None:
    """Features come from the smallest key or from the largest, and are found by name."""
    tree = Tree()
    for j, key in ((3, 1.0), (1, 1.0), (2, 0.5)):
        tree.add(j, key)
    assert [j for _, j in tree.ascending()] == [2, 1, 3]
    assert [j for _, j in tree.descending()] == [3, 1, 2]
    tree.remove(1)
    assert 1 not in tree
    assert (len(tree), tree.key(3)) == (2, 1.0)


@pytest.mark.parametrize("kind", [UpdEnt, UpdGini])
def test_the_reference_refuses_what_is_not_there(kind: type[UpdEnt] | type[UpdGini]) -> None:
    """A delete of an absent feature, label or weight changes nothing."""
    reference = kind()
    reference.insert([1, 2], 0)
    reference.insert([2, 3], 1)
    for features, label, weight in (([4], 0, 1.0), ([3], 0, 1.0), ([1], 0, 2.0), ([1], 0, 1.0), ([], 1, 3.0)):
        assert reference.delete(features, label, weight=weight) == Status.ABSENT_EXAMPLE
    assert reference.delete([1, 2], 0) == Status.APPLIED
    assert reference.delete([3, 2], 1) == Status.APPLIED
    reference.check()
    assert (reference.trees(), reference.counts, reference.best().feature) == (0, {}, None)


def test_a_feature_leaves_the_ends_and_comes_back() -> None:
    """Rho goes from 0 to a bin, widens over others, and returns to 0 in one jump."""
    reference = UpdEnt(0.1)
    reference.insert([1], 0)
    reference.insert([], 0)
    assert (reference.a[1], reference.b[1]) == (-(1 << 30), -(1 << 30))
    reference.insert([], 1)
    assert reference.a[1] == reference.b[1] == 1  # rho = 1/2
    for _ in range(6):
        reference.insert([], 0)
    assert (reference.a[1] < -1, reference.b[1]) == (True, 1)
    assert reference.trees() == -reference.a[1] + 1
    reference.delete([], 1)
    assert (reference.a[1], reference.trees()) == (-(1 << 30), 1)
    reference.check()


# --- any history


class History(RuleBasedStateMachine):
    """Inserts and deletes of weighted examples over few features, where counts and scores tie often."""

    finder = "updent"

    @initialize(alpha=st.sampled_from(ALPHAS))
    def begin(self, alpha: float) -> None:
        """Begin with nothing."""
        self.trio = Trio(self.finder, alpha)
        self.live: list[Example] = []

    @rule(
        features=st.lists(st.integers(0, 7), unique=True, max_size=6),
        label=st.integers(0, 1),
        weight=st.sampled_from([1.0, 1.0, 1.0, 0.5, 2.0, 0.3, 2.0**-20, 1000.0]),
        times=st.sampled_from([1, 1, 1, 5]),
    )
    def insert(self, features: list[int], label: int, weight: float, times: int) -> None:
        """Insert an example, maybe several times."""
        for _ in range(times):
            self.live.append((features, label, weight))
            self.trio.step(True, self.live[-1])

    @rule(choice=st.integers(0, 1 << 16), times=st.sampled_from([1, 1, 4]))
    def delete(self, choice: int, times: int) -> None:
        """Delete some that are live."""
        for _ in range(min(times, len(self.live))):
            self.trio.step(False, self.live.pop(choice % len(self.live)))

    @invariant()
    def holds(self) -> None:
        """All invariants hold."""
        if hasattr(self, "trio"):
            self.trio.check()


@pytest.mark.parametrize("finder", REFERENCES)
def test_any_history_keeps_the_bound(finder: str) -> None:
    """Whatever is inserted and deleted with whatever weights, both agree within the bound."""
    run_state_machine_as_test(
        type("Machine", (History,), {"finder": finder}),
        settings=settings(
            max_examples=budget(100),
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
