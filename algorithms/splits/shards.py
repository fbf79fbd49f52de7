"""A split pool in S shards by feature, for a model that is too hot or too large for one thread.

Every shard is a `SplitPool` that gets **all events, each with its part of the features**::

    event  insert {3, 7, 9}, label 1         shard 0: insert {3, 9}, label 1    best 9, second 3
                                      ->     shard 1: insert {},     label 1    best 4, second 8    ->  merge
                                             shard 2: insert {7},    label 1    best 7, second 5

So the totals of every shard are the node's, and its scores are final: the best of the whole is the best of the
shards' bests, and the second best is among their firsts and seconds. Statuses depend on totals, ids and the order
of live examples, of which each shard has all; so every shard refuses what any refuses, and nothing has to be asked
before an event. Two things would break that, and are done here instead:

* *Examples without an id* are told apart in the store by a digest of their content, of which a shard sees a part.
  The digest of the whole example is made here and given to the shards.
* *A delete by value without a store* is judged by counts, of which one shard may object and another not. It is
  refused with a ValueError before any event of its batch is applied: such deletes need `verify_deletes`, a window
  or ids.

*On change* is for the merge to see. The shards answer after every event then, second best included, and where a
shard has near ties only that is a search each time: the dear way to run shards, 3 to 15 times as long as one pool
with two. Every n events and every so many ms are known to each shard, which answers when it is due. Without
answers, at 1,000 features an example, one pool took 25.8 us of one thread an example, each of two shards 13.1, of
four 7.2.

Features go to shards by hash. By range, the frequent ones, whose ids tend to be low, would meet in one shard.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, int64
from algorithms.core.cadence import Emit, When
from algorithms.core.events import Events, Op
from algorithms.core.example_store import content_key
from algorithms.core.hashing import mix
from algorithms.core.jit import inlined, jit
from algorithms.splits.finders import FINDERS
from algorithms.splits.kernel import (
    ALIVE,
    EVENTS,
    SPLIT_DUE,
    SPLIT_PERIOD,
    TREE_DUE,
    TREE_PERIOD,
    Decisions,
)
from algorithms.splits.pool import Ranked, Split, SplitCalls, SplitPool, check_events
from algorithms.splits.slots import EVER, GRAIN, KEY, N0, N1, NONE

_DROP = int(Op.DROP)
_MOST = 256
_EACH_EVENT = Emit(When.EVERY, 1)


class ShardedPool(SplitCalls):
    """The split models of a `SplitPool`, their features spread over shards that run in threads.

    Answers are those of the single pool, to the bit. The threads end when the pool is forgotten.

    Parameters
    ----------
    shards : int
        How many, from 1 to 256.
    splits, trees : Emit
        When a decision is due.
    **settings
        Those of `SplitPool`. Features must be ids, and the finder exact or a scan: what an approximate one
        answers depends on the other features that it sees.
    """

    def __init__(
        self,
        *,
        shards: int,
        splits: Emit = Emit(When.CHANGE),  # noqa: B008  (a constant)
        trees: Emit = Emit(),  # noqa: B008
        **settings: Any,
    ) -> None:
        if not 1 <= shards <= _MOST:
            raise ValueError(f"expected from 1 to {_MOST} shards, got {shards}")
        if settings.get("names"):
            raise ValueError(
                "expected features that are ids: a sharded pool takes no names, intern them before it"
            )
        finder = FINDERS.get(settings.get("finder", "exact"))
        if finder is not None and finder.approximate is not None:
            raise ValueError(f"expected an exact finder for shards, got the approximate {settings['finder']!r}")
        rules = {SPLIT_DUE: splits, TREE_DUE: trees}
        self._watched = sum(bit for bit, emit in rules.items() if emit.when == When.CHANGE)
        asked = [_EACH_EVENT if emit.when == When.CHANGE else emit for emit in rules.values()]
        self._shards = [SplitPool(splits=asked[0], trees=asked[1], **settings) for _ in range(shards)]
        for shard in self._shards:
            shard.rules = shard.rules._replace(keyed=True)
        self._tracked = self._shards[0].rules.tracked
        self._last = np.full(1, NONE, np.int64)  # int64[keys], the best feature when last looked at
        self._threads = ThreadPoolExecutor(shards)

    def apply(self, events: Events, *, checked: bool = False) -> Decisions:
        """Apply events in order and return what was due, as `SplitPool.apply` does.

        Raises
        ------
        ValueError
            Where they are no such events, or a delete is by value and nothing keeps the live examples; none is
            applied.
        """
        if not checked:
            check_events(events, None)
        keyed = self._keyed(events)

        def answer(number: int) -> Decisions:
            return self._shards[number].apply(_part(keyed, number, len(self._shards)), checked=True)

        return self._merged(keyed, list(self._threads.map(answer, range(len(self._shards)))))

    def _keyed(self, events: Events) -> Events:
        """Return the events with the digests of anonymous examples' contents in the place of ids."""
        anonymous = events.named == 0
        if not self._tracked:
            if np.any(anonymous & (events.op == Op.DELETE)):
                raise ValueError(
                    "a sharded pool cannot judge a delete by value from counts: set verify_deletes or a window, "
                    "or give examples ids"
                )
            return events
        keyed = events._replace(id_high=events.id_high.copy(), id_low=events.id_low.copy())
        _digest(keyed)
        return keyed

    def _merged(self, events: Events, parts: list[Decisions]) -> Decisions:
        """Return the decisions of the whole. All shards report the same events."""
        one = parts[0]
        features = np.stack([part.feature for part in parts] + [part.runner_up for part in parts])
        scores = np.stack([part.score for part in parts] + [part.runner_up_score for part in parts])
        rows = np.arange(len(one.event))
        best, second = _two_best(features, scores)
        feature = features[best, rows]
        present = np.stack([part.present for part in parts])[best, rows]  # best is not the row of a runner-up
        behind = np.stack([part.present for part in parts] + [part.next_present for part in parts])
        changed = np.zeros(len(feature), np.bool_)
        self._reserve(int(events.key.max(initial=0)) + 1)
        _note_changes(self._last, events.key, events.op, one.event, feature, changed)
        due = (one.due & ~self._watched) | np.where(changed, self._watched, 0)
        kept = due != 0
        asked = np.arange(len(one.asked))
        guides = np.stack([part.guide for part in parts])
        guide_scores = np.stack([part.guide_score for part in parts])
        guide, _ = _two_best(guides, guide_scores)
        return Decisions(
            status=one.status,
            event=one.event[kept],
            due=due[kept].astype(np.int8),
            feature=feature[kept],
            runner_up=features[second, rows][kept],
            totals=one.totals[kept],
            present=present[kept],
            events=one.events[kept],
            score=scores[best, rows][kept],
            runner_up_score=scores[second, rows][kept],
            impurity=one.impurity[kept],
            next_present=behind[second, rows][kept],
            asked=one.asked,
            leaf=np.stack([part.leaf for part in parts])[guide, asked],
            weights=np.stack([part.weights for part in parts])[guide, asked],
            guide=guides[guide, asked],
            guide_score=guide_scores[guide, asked],
            changes=int(np.count_nonzero(changed)),
        )

    def _reserve(self, keys: int) -> None:
        if keys > len(self._last):
            more = np.full(max(keys, 2 * len(self._last)) - len(self._last), NONE, np.int64)
            self._last = np.concatenate([self._last, more])

    # --- looking

    def best(self, key: int = 0) -> Split:
        """Return the best split of a key now."""
        parts = [shard.best(key) for shard in self._shards]
        candidates = [(part.feature, part.score, part.present) for part in parts]
        candidates += [(part.runner_up, part.runner_up_score, (0, 0)) for part in parts]
        first, second, *_ = sorted(candidates, key=lambda row: (row[0] is None, row[1], row[0]))
        return Split(first[0], first[1], second[0], second[1], parts[0].totals, first[2])

    def top(self, key: int = 0, k: int = 10, limit: float = np.inf) -> list[Ranked]:  # noqa: D102  (inherited)
        rows = [row for shard in self._shards for row in shard.top(key, k, limit)]
        return sorted(rows, key=lambda row: (row.score, row.feature))[:k]

    # --- state

    def sweep(self, interned: Int64s | UInt32s) -> None:
        """Do nothing: there are no names."""

    def are_alive(self, keys: Int32s) -> npt.NDArray[np.bool_]:
        """Return which of these keys have learned something since they were last dropped."""
        return self._shards[0].are_alive(keys)

    @property
    def alive(self) -> int:
        """How many keys have learned something since they were last dropped."""
        return self._shards[0].alive

    @property
    def slots(self) -> int:
        """How many (key, feature) pairs are counted."""
        return sum(shard.slots for shard in self._shards)

    @property
    def live_examples(self) -> int:
        """How many live examples the example store holds."""
        return self._shards[0].live_examples

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state."""
        return sum(array.nbytes for array in self.arrays().values())

    def features(self, key: int) -> int:
        """Return how many features a key has seen."""
        return sum(shard.features(key) for shard in self._shards)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays (not copied); the names of a shard's begin with its number."""
        named: dict[str, npt.NDArray[Any]] = {"last": self._last}
        for number, shard in enumerate(self._shards):
            named.update({f"{number}.{name}": array for name, array in shard.arrays().items()})
        return named

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings and shards returned (not copied)."""
        self._last = arrays["last"]
        for number, shard in enumerate(self._shards):
            start = f"{number}."
            shard.restore({name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)})
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        first = self._shards[0].arrays()
        for number, shard in enumerate(self._shards):
            shard.check()
            arrays = shard.arrays()
            # All of a head but LAST, which is the best of the shard.
            others = [EVENTS, ALIVE, SPLIT_PERIOD, TREE_PERIOD]
            assert np.array_equal(arrays["heads"][:, others], first["heads"][:, others])
            assert np.array_equal(
                arrays["slots.heads"][:, [N0, N1, GRAIN]], first["slots.heads"][:, [N0, N1, GRAIN]]
            )
            keys = arrays["slots.rows"][: arrays["slots.counts"][EVER], KEY]
            held = (keys[keys >= 0] & 0xFFFFFFFF).tolist()
            assert all(_home(feature, len(self._shards)) == number for feature in held), (
                "a feature is in another shard"
            )


@inlined
def _home(feature: int, shards: int) -> int:
    """Return the shard that a feature belongs to."""
    return (mix(feature, 0) * shards) >> 32


def _part(events: Events, number: int, shards: int) -> Events:
    """Return all events, each with those of its features that belong to a shard."""
    part = events._replace(pointer=np.empty_like(events.pointer), feature=np.empty_like(events.feature))
    _select(events, number, shards, part)
    return part


@jit
def _select(events: Events, number: int, shards: int, part: Events) -> None:
    end = 0
    part.pointer[0] = 0
    for event in range(events.key.size):
        for at in range(events.pointer[event], events.pointer[event + 1]):
            part.feature[end] = events.feature[at]  # without a branch, which would be guessed wrong half the time
            end += _home(int64(events.feature[at]), shards) == number
        part.pointer[event + 1] = end


@jit
def _digest(events: Events) -> None:
    """Write the digests of the contents of anonymous examples to the columns of the ids."""
    for event in range(events.key.size):
        if events.named[event] == 0:
            high, low = content_key(
                events.feature,
                events.pointer[event],
                events.pointer[event + 1],
                int64(events.label[event]),
                events.weight[event],
            )
            events.id_high[event] = high
            events.id_low[event] = low


@inlined
def _precedes(feature: int, score: float, other: int, other_score: float) -> bool:
    """Return whether a candidate is better than another: by score, then by feature, NONE last."""
    if feature == NONE or other == NONE:
        return feature != NONE
    return score < other_score or (score == other_score and feature < other)


def _two_best(features: Int64s, scores: Float64s) -> tuple[Int64s, Int64s]:
    """Return for each column which row holds the best candidate and which the second best."""
    best, second = np.zeros((2, features.shape[1]), np.int64)
    _choose(features, scores, best, second)
    return best, second


@jit
def _choose(features: Int64s, scores: Float64s, best: Int64s, second: Int64s) -> None:
    rows, columns = features.shape
    for k in range(columns):
        first, next_ = 0, 0
        for row in range(1, rows):
            if _precedes(features[row, k], scores[row, k], features[first, k], scores[first, k]):
                first, next_ = row, first
            elif next_ == first or _precedes(
                features[row, k], scores[row, k], features[next_, k], scores[next_, k]
            ):
                next_ = row
        best[k] = first
        second[k] = next_


@jit
def _note_changes(
    last: Int64s, key: Int32s, op: Int8s, event: Int64s, feature: Int64s, changed: npt.NDArray[np.bool_]
) -> None:
    """Mark the decisions that name another best feature than the one before them, and note it in `last`.

    `key` and `op` are of all events, `event` and `feature` of the decisions.
    """
    row = 0
    for at in range(op.size):
        if op[at] == _DROP:
            last[key[at]] = NONE
        elif row < event.size and event[row] == at:
            changed[row] = feature[row] != last[key[at]]
            last[key[at]] = feature[row]
            row += 1
