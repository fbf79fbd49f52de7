"""The best split of examples with K labels, and with categories: paper 000, sections 4 and 7.

Each label has an index of its own, in one `SplitPool`: this label against the rest. All of them see every event::

    classes  a b c      index 0   a | b c      the best features of each index, best first
                        index 1   b | a c      -> those that were seen are scored with all K labels
                        index 2   c | a b      -> the rest scores no better than the ends of the lists tell

That is the threshold algorithm of Fagin, Lotem and Naor. Let s_k be the score of a feature in index k, and g_k its
gain there. With Gini its score is half the sum of the s_k. With entropy it is at least that, and its gain is at
most the sum of the g_k: see `_least`. Lists are read to four times their length until nothing beyond their ends
can be best.

A category is a binary feature of its own, COLUMN=VALUE, as `publish` makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from algorithms.core import class_sums
from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.class_sums import noise
from algorithms.core.criteria import Criterion, make_criterion
from algorithms.core.events import OnDuplicate, Status
from algorithms.core.fixed_point import UNIT
from algorithms.core.given import whole
from algorithms.core.jit import jit
from algorithms.core.pool import Id
from algorithms.splits import slots
from algorithms.splits.pool import SplitPool
from algorithms.splits.slots import C1, N1, NONE

Example: TypeAlias = "Mapping[str | bytes, Any] | Iterable[Any]"

_FIRST, _TIMES = 8, 4  # how long lists are at first, and how many times as long then


class LabelSplit(NamedTuple):
    """The best split of a key's examples."""

    feature: int | bytes | None  # None: they have one label, or no feature parts them
    score: float  # weight times impurity after the split; of the node itself where there is none
    impurity: float  # of the node
    totals: tuple[int, ...]  # weights of the labels, in units of 2^-20
    present: tuple[int, ...]  # where the feature is present
    looked_at: int  # how many features were scored with all labels


class LabelSplits:
    """Any number of nodes with K labels, one for each key: the exact best split after every event.

    An event costs K times what it costs `SplitPool`, and so does the memory. A query reads the K lists and scores
    some of their features, at worst all, where many nearly tie. Ties go to the lowest feature. A score is that of
    a tree's node, to the bit.

    Parameters
    ----------
    classes : int
        K; labels are 0 to K - 1.
    criterion : str
        ``gini`` or ``entropy``.
    names : bool
        Features are byte strings (or str, in UTF-8), otherwise ids below 2^32. Categories need names.
    window, verify_deletes, on_duplicate
        As of `SplitPool`.
    """

    def __init__(
        self,
        classes: int,
        *,
        criterion: str = "gini",
        names: bool = False,
        window: int | None = None,
        verify_deletes: bool = False,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
    ) -> None:
        self._classes = whole("classes", classes, 2, 1000)
        if criterion not in ("gini", "entropy"):
            raise ValueError(f"expected the criterion gini or entropy, got {criterion!r}")
        self._criterion = criterion
        self._pool = SplitPool(
            criterion=criterion,
            names=names,
            window=window,
            verify_deletes=verify_deletes,
            on_duplicate=on_duplicate,
        )
        self._named, self._has_window = names, window is not None

    # --- events

    def insert(self, x: Example, label: int, *, weight: float = 1.0, id: Id | None = None, key: int = 0) -> Status:
        """Learn an example.

        Parameters
        ----------
        x : Mapping or Iterable
            The features that are present, or a mapping: 1 and true are present, 0 and false absent, a text is a
            category.
        label : int
            0 to K - 1.
        weight : float
            Below 2^42.
        id : int, str or bytes, optional
            Names the example, so that it can be deleted by that alone.
        key : int
            Whose examples it belongs to.

        Raises
        ------
        ValueError
            Where the example is not one. Nothing has changed.
        """
        return self._apply(self._pool.insert, x, label, weight, id, key)

    def delete(
        self, x: Example = (), label: int = 0, *, weight: float = 1.0, id: Id | None = None, key: int = 0
    ) -> Status:
        """Forget an example, by its id or else by value, as it was given to `insert`.

        With a window an id is needed: which of two alike examples goes would not be the same one in each index.
        """
        if id is None and self._has_window:
            raise ValueError("expected an id of the example to delete, as there is a window; name examples by ids")
        return self._apply(self._pool.delete, x, label, weight, id, key)

    def drop(self, key: int = 0) -> None:
        """Forget a key."""
        first = self._first(key)
        for k in range(self._classes):
            self._pool.drop(first + k)

    def _first(self, key: int) -> int:
        """Return the number of the first index of a key; they follow each other."""
        return whole("a key", key, 0, (1 << 30) // self._classes) * self._classes

    def _apply(self, change: Any, x: Example, label: int, weight: float, id: Id | None, key: int) -> Status:
        label = whole("a label", label, 0, self._classes - 1)
        features, first = self._features(x), self._first(key)
        # The index of the label comes first: what it takes, the others take. They know less of the example, as the
        # rest of the labels are one to them; and what it refuses changes none.
        order = sorted(range(self._classes), key=lambda k: k != label)
        for k in order:
            status: Status = change(features, int(k == label), weight=weight, id=id, key=first + k)
            if status != Status.APPLIED and k == label:
                return status
        return Status.APPLIED

    def _features(self, x: Example) -> list[Any]:
        """Return the binary features that are present in an example."""
        features: list[Any] = []
        for feature, value in x.items() if isinstance(x, Mapping) else ((each, 1) for each in x):
            if isinstance(value, str):
                if not self._named or not isinstance(feature, str | bytes):
                    raise ValueError(f"expected names of features with categories, got {feature!r} with {value!r}")
                name = feature if isinstance(feature, bytes) else feature.encode()
                features.append(name + b"=" + value.encode())
            elif value in (0, 1):
                features += [feature] if value else []
            else:
                raise ValueError(f"expected 0, 1 or a category as the value of {feature!r}, got {value!r}")
        return [each.encode() if isinstance(each, str) else each for each in features]

    # --- looking

    def best(self, key: int = 0) -> LabelSplit:
        """Return the best split of a key now; no state is changed."""
        first = self._first(key)
        self._pool.best(first + self._classes - 1)  # makes room for the key
        heads = self._pool.counted.heads
        totals = heads[first : first + self._classes, N1].copy()
        criterion = make_criterion(self._criterion, int(totals.sum()) // UNIT)
        impurity = float(class_sums.impurity(criterion, totals))
        slack = 4.0 * float(noise(int(totals.sum()), self._classes))
        length = _FIRST
        best: tuple[float, int | bytes] | None = None
        present = np.zeros_like(totals)
        seen: set[int | bytes] = set()
        are_all = int(np.count_nonzero(totals)) < 2
        while not are_all:
            ends, gains = [], []  # of the ends of the lists
            new: list[int | bytes] = []
            for k in np.flatnonzero(totals).tolist():
                ranked = self._pool.top(first + k, length)
                are_all = len(ranked) < length  # as each index has all features that part the examples
                if ranked:
                    ends.append(ranked[-1].score)
                    two = np.array([totals.sum() - totals[k], totals[k]])
                    gains.append(float(class_sums.impurity(criterion, two)) - ends[-1])
                new += [each.feature for each in ranked]
            new = [each for each in dict.fromkeys(new) if each not in seen]
            seen.update(new)
            counts, scores = np.empty((len(new), self._classes), np.int64), np.empty(len(new))
            _score_all(criterion, self._pool.counted, first, self._numbers(new), totals, counts, scores)
            for at, scored in enumerate(zip(scores.tolist(), new, strict=True)):
                if best is None or scored < best:
                    best, present = scored, counts[at]
            are_all = are_all or (best is not None and best[0] < _least(ends, gains, impurity) - slack)
            length *= _TIMES
        return LabelSplit(
            feature=None if best is None else best[1],
            score=impurity if best is None else best[0],
            impurity=impurity,
            totals=tuple(totals.tolist()),
            present=tuple(present.tolist()),
            looked_at=len(seen),
        )

    def _numbers(self, features: list[Any]) -> Int64s:
        """Return the numbers of features that are counted."""
        names = self._pool.names
        return np.array(features if names is None else names.find_all(features), np.int64)

    @property
    def nbytes(self) -> int:
        """How many bytes the state has."""
        return self._pool.nbytes

    def check(self) -> None:
        """Raise AssertionError unless the indexes are whole, and all count the same examples."""
        self._pool.check()
        heads = self._pool.counted.heads
        for first in range(0, len(heads) - self._classes + 1, self._classes):
            sums = {int(row[slots.N0] + row[N1]) for row in heads[first : first + self._classes]}
            assert sums == {int(heads[first : first + self._classes, N1].sum())}


def _least(ends: list[float], gains: list[float], impurity: float) -> float:
    """Return what a feature scores at least whose scores and gains in the indexes are no better than these.

    Let H(p) be the entropy of shares p_k, and h(p_k) that of p_k and 1 - p_k. Then H(p) is at least half the sum
    of the h(p_k): with f(x) = -x log x and d(x) = f(x) - f(1 - x), the d(p_k) sum to 0 or more. For d is concave
    on [0, 1/2], and 0 at both ends: where all shares are there, none is below 0; else those of all but the largest
    sum to at least d of their sum, which is -d of the largest.

    The gain is the mean over the branches of the divergence of their shares p from q, those of the node. The
    divergences of the (p_k, 1 - p_k) sum to it, and K - 1 times that of the shares (1 - p_k) / (K - 1), which is
    not below 0. So the gain is at most the sum of the gains. With Gini both hold too, the first with equality.
    """
    return max(0.5 * sum(ends), impurity - sum(gains))


@jit
def _score_all(
    criterion: Criterion,
    counted: slots.Slots,
    first: int,
    features: Int64s,
    totals: Int64s,
    counts: Int64s,
    scores: Float64s,
) -> None:
    """Write the weights of all labels where each of some features is present, and its score."""
    for at in range(features.size):
        for k in range(totals.size):
            slot = slots.lookup(counted, first + k, features[at])
            counts[at, k] = counted.rows[slot, C1] if slot != NONE else 0
        scores[at] = class_sums.score(criterion, counts[at], totals)
