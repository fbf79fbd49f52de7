import numpy as np
import pytest

from algorithms.core.events import Op
from algorithms.core.kinds import Kind
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from tests.algorithms.trees.test_trees import EXACT, of
from tests.oracles.naive import ids
from tests.oracles.naive_trees import KINDS
from tests.oracles.tree_parts import Event
from tests.oracles.tree_streams import Mix, Stream, outcomes, pool_columns
from tests.support.examples import budget

LIMITED = [kind for kind in KINDS if POLICIES[kind[0]].limits]

pytestmark = pytest.mark.parametrize("kind", LIMITED, ids="-".join)
TreeKind = tuple[str, str]

PLAIN = Mix(dict.fromkeys(ids(60), Kind.BINARY), dense=0.3, indexes=4, others=0.02)
MIXED = Mix({each: list(Kind)[each % 4] for each in range(30)}, indexes=4, others=0.02)


class Limited:
    """Settings of pools with a limit of memory."""

    def __init__(self, kind: TreeKind, limit: int) -> None:
        self.mix = PLAIN if kind in EXACT else MIXED
        self.settings = of(kind, self.mix, predict=Predict.MAJORITY if kind in EXACT else Predict.ADAPTIVE)
        self.limit = limit

    def pool(self) -> TreePool:
        """Return a new pool."""
        return TreePool(**vars(self.settings), memory_limit=self.limit)


def observed(pool: TreePool) -> int:
    """Return the bytes of what leaves saw."""
    parts = ("features.", "policy.slots.", "policy.finder.")
    return sum(array.nbytes for name, array in pool.arrays().items() if name.startswith(parts))


def test_the_limit_is_kept_and_leaves_sleep(kind: TreeKind) -> None:
    """What leaves saw never takes more than the limit; trees grow on, and every invariant holds."""
    made = Limited(kind, 40_000)
    pool, free = made.pool(), made.settings.pool()
    stream = Stream(1, made.mix)
    most = 0
    fixed = observed(pool)  # arrays that are there from the start: edges, stacks
    for _ in range(8):
        events = stream.take(budget(250))
        outcomes(free, events)
        outcomes(pool, events)
        pool.check()
        most = max(most, pool.asleep)
        assert observed(pool) <= 40_000 + fixed
    if budget(10) == 10:
        assert most > 0, "a stream like this does not exercise the limit"
        assert observed(free) > 40_000
    assert pool.sizes().events == free.sizes().events


def test_the_limit_acts_at_events_and_not_between_batches(kind: TreeKind) -> None:
    """With a limit, too, batches of any size and a restore in between give the same trees."""
    made = Limited(kind, 30_000)
    events = Stream(2, made.mix).take(budget(700))
    seen = []
    for size in (1, 7, 1000):
        pool = made.pool()
        got = []
        for at in range(0, len(events), size):
            got += outcomes(pool, events[at : at + size])
            if size == 7:
                pool = made.pool().restore({name: array.copy() for name, array in pool.arrays().items()})
        seen.append((got, pool.asleep, [pool_columns(pool, key) for key in range(4)]))
    assert seen[0] == seen[1] == seen[2]


def test_a_sleeper_predicts_and_counts_classes(kind: TreeKind) -> None:
    """All class weights stay exact, whoever sleeps."""
    made = Limited(kind, 20_000)
    pool = made.pool()
    events = [event for event in Stream(3, made.mix).take(budget(500)) if event.op == Op.INSERT]
    outcomes(pool, events)
    asked = outcomes(pool, [Event(Op.PREDICT, event.x, key=event.key) for event in events[-50:]])
    assert all(each.predicted >= 0 for each in asked)
    assert sum(pool.sizes(key).events for key in range(4)) == len(events)
    pool.check()


def test_an_example_longer_than_the_limit_is_still_learned(kind: TreeKind) -> None:
    """The limit gives way to the longest example, and to nothing else."""
    pool = Limited(kind, 1).pool()
    for label in (0, 1, 0, 1):
        outcomes(pool, [Event(Op.INSERT, dict.fromkeys(range(200), 1.0), label)])
        pool.check()
    assert pool.sizes().events == 4
    assert np.all(pool.predict([1]) > 0)
