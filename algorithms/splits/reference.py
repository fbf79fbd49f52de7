"""Algorithms 1 and 2 of paper 000 as they stand there, on sorted sets: to be read beside the paper.

`UpdEnt` and `UpdGini` are what updent.py and updgini.py are compared with; they take some hundred times longer.
Names are the paper's: c[k] is c_k, n_j1 = c_j10 + c_j11, rho = c_j01 / n_j0, and T, L, U are the search trees
of a bin. Where the paper is silent or cannot be meant, these readings are taken:

* Line 9 of Algorithm 1 tests n_j1 - c_j11 < n - c_1, that is, rho < 1.
* A feature that all examples have (n_j0 = 0) has rho = 0, and is no candidate: it does not split.
* There is no bin 0 in Algorithm 1: -1 and 1 are neighbours.
* Examples may be deleted and have weights. Counters go down as they go up, in units of 2^-20. A feature whose rho
  comes back to 0 or 1 goes to -inf or inf at once, as it left there at once.
* The candidates of a tree are the entries with the smallest key up to rounding, so that the bound
  holds for scores of any size; of equal scores the first feature is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

from sortedcontainers import SortedSet

from algorithms.core.criteria import UNIT, make_criterion, rounding, score
from algorithms.core.events import Status
from algorithms.splits.pool import Split

Feature: TypeAlias = int | bytes

_INF = 1 << 30  # the index of the bins at the ends
_FARTHEST = 64.0  # -log2 of less than any share of weights below 2^62


class Tree:
    """A search tree: features by a key."""

    def __init__(self) -> None:
        self._sorted: Any = SortedSet()  # of (key, feature)
        self._keys: dict[Feature, float] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, j: Feature) -> bool:
        return j in self._keys

    def key(self, j: Feature) -> float:
        """Return the key of a feature."""
        return self._keys[j]

    def add(self, j: Feature, key: float) -> None:
        """Put in a feature."""
        self._sorted.add((key, j))
        self._keys[j] = key

    def remove(self, j: Feature) -> None:
        """Take out a feature."""
        self._sorted.remove((self._keys.pop(j), j))

    def ascending(self) -> Iterator[tuple[float, Feature]]:
        """Yield keys and features from the smallest key."""
        return iter(self._sorted)

    def descending(self) -> Iterator[tuple[float, Feature]]:
        """Yield keys and features from the largest key."""
        return reversed(self._sorted)


class _Reference:
    """What both algorithms share; a subclass says what its bins are and how a feature leaves one."""

    _criterion: ClassVar[str]

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha
        self.c = [0, 0]  # c_0, c_1
        self.counts: dict[Feature, list[int]] = {}  # j -> [c_j10, c_j11]
        self.a: dict[Feature, int] = {}
        self.b: dict[Feature, int] = {}
        self.T: dict[int, Tree] = {}
        self.L: dict[int, Tree] = {}
        self.U: dict[int, Tree] = {}
        self._impurity = make_criterion(self._criterion, 1)

    # --- as in `SplitPool`

    def insert(self, features: Sequence[Feature], label: int, *, weight: float = 1.0) -> Status:
        """Learn one example."""
        units = round(weight * UNIT)
        self.process([(features, label, units)])
        return Status.APPLIED

    def delete(self, features: Sequence[Feature], label: int, *, weight: float = 1.0) -> Status:
        """Forget one example; it is refused where the counts show that it is not there."""
        units = round(weight * UNIT)
        n = self.c[label] - units
        if n < 0 or any(j not in self.counts or self.counts[j][label] < units for j in features):
            return Status.ABSENT_EXAMPLE
        if any(counts[label] - units * (j in features) > n for j, counts in self.counts.items()):
            return Status.ABSENT_EXAMPLE
        self.process([(features, label, -units)])
        return Status.APPLIED

    def best(self) -> Split:
        """Return the best of the candidates, and the best if that one were not there."""
        first = self._arg_min(None)
        second = self._arg_min(first) if first is not None else None
        a, b = self.counts[first] if first is not None else (0, 0)
        return Split(first, self._score(first), second, self._score(second), (self.c[0], self.c[1]), (a, b))

    def trees(self) -> int:
        """Return how many trees T_i hold something."""
        return len(self.T)

    # --- the algorithm

    def process(self, changes: Iterable[tuple[Iterable[Feature], int, int]]) -> None:
        """Count examples in one step.

        Parameters
        ----------
        changes : iterable of (features, label, units)
            What is counted, in units of 2^-20; negative: taken away.
        """
        before: dict[Feature, list[int]] = {}
        for features, label, units in changes:
            self.c[label] += units  # line 1
            for j in features:
                counts = self.counts.setdefault(j, [0, 0])
                before.setdefault(j, list(counts))
                counts[label] += units  # line 3
        for j, counts in before.items():  # line 2
            if self.counts[j] != counts:
                self._take_out(j)
                self._place(j)  # lines 4 and 5
        self._restore_invariant()

    def _restore_invariant(self) -> None:
        raise NotImplementedError

    def _arg_min(self, excluded: Feature | None) -> Feature | None:
        """Return the best candidate; lines 19 and 20 of Algorithm 1, 10 and 11 of Algorithm 2."""
        if 0 in self.c:
            return None  # a pure node needs no split
        n = sum(self.c)
        slack = rounding(*self.c) + 2.0**-40 * n / UNIT
        candidates = set()
        for tree in self.T.values():
            entries = ((key, j) for key, j in tree.ascending() if j != excluded and sum(self.counts[j]) < n)
            smallest = next(entries, None)
            if smallest is None:
                continue
            candidates.add(smallest[1])
            for key, j in entries:
                if key > smallest[0] + slack:
                    break
                candidates.add(j)
        return min(candidates, key=lambda j: (self._score(j), j), default=None)

    def _score(self, j: Feature | None) -> float:
        a, b = self.counts[j] if j is not None else (0, 0)
        return float(score(self._impurity, a, b, *self.c))

    def _shares(self, j: Feature) -> tuple[float, float]:
        """Return rho and 1 - rho: floats would not tell the latter from 0 where rho is almost 1."""
        c_j00, c_j01 = (self.c[k] - self.counts[j][k] for k in (0, 1))
        n_j0 = c_j00 + c_j01
        return (c_j01 / n_j0, c_j00 / n_j0) if n_j0 else (0.0, 1.0)

    def _place(self, j: Feature) -> None:
        """Put a feature that is in no tree into those of one bin; forget one that never occurs."""
        if self.counts[j] == [0, 0]:
            del self.counts[j]
            return
        i = self.ind(j)
        self.a[j] = self.b[j] = i
        self.T.setdefault(i, Tree()).add(j, self.K(j, i))
        self.L.setdefault(i, Tree()).add(j, self._low_key(j, i))
        self.U.setdefault(i, Tree()).add(j, self._high_key(j, i))

    def _take_out(self, j: Feature) -> None:
        """Take a feature out of all its trees, and delete the empty ones."""
        if j not in self.a:
            return
        for i in self._run(j):
            self._remove(self.T, i, j)
        self._remove(self.L, self.a.pop(j), j)
        self._remove(self.U, self.b.pop(j), j)

    def _remove(self, trees: dict[int, Tree], i: int, j: Feature) -> None:
        trees[i].remove(j)
        if not trees[i]:
            del trees[i]

    def _run(self, j: Feature) -> Iterator[int]:
        i = self.a[j]
        yield i
        while i != self.b[j]:
            i = self._next(i)
            yield i

    def _next(self, i: int) -> int:
        return i + 1

    def _below(self, i: int) -> list[Feature]:
        """Return the violating features in L_i: those with s_i n_j1 - c_j11 < s_i n - c_1 (Proposition 4.3)."""
        limit = self._low_limit(i) + self._margin()
        found = []
        for key, j in self.L[i].ascending() if i in self.L else ():
            if key >= limit:
                break
            if self._is_below(j, i):
                found.append(j)
        return found

    def _above(self, i: int) -> list[Feature]:
        """Return the violating features in U_i: those with t_i n_j1 - c_j11 > t_i n - c_1."""
        limit = self._high_limit(i) - self._margin()
        found = []
        for key, j in self.U[i].descending() if i in self.U else ():
            if key <= limit:
                break
            if self._is_above(j, i):
                found.append(j)
        return found

    def _margin(self) -> float:
        """Return more than the rounding error of keys and limits; what is so near is looked at itself."""
        return sum(self.c) * 2.0**-48

    def _low_key(self, j: Feature, i: int) -> float:
        return self._distance(self.s(i), i, *self.counts[j])

    def _high_key(self, j: Feature, i: int) -> float:
        return self._distance(self.t(i), i, *self.counts[j])

    def _low_limit(self, i: int) -> float:
        return self._distance(self.s(i), i, *self.c)

    def _high_limit(self, i: int) -> float:
        return self._distance(self.t(i), i, *self.c)

    # --- bins

    def s(self, i: int) -> float:
        """Return the lower end of B_i."""
        raise NotImplementedError

    def t(self, i: int) -> float:
        """Return the upper end of B_i."""
        raise NotImplementedError

    def ind(self, j: Feature) -> int:
        """Return the index of a bin with the feature's rho in it."""
        raise NotImplementedError

    def K(self, j: Feature, i: int) -> float:  # noqa: N802  (the paper's name)
        """Return the feature's part of H(D | j, mu_i) or G(D | j, mu_i)."""
        raise NotImplementedError

    def _distance(self, theta: float, i: int, zeros: int, ones: int) -> float:  # noqa: ARG002  (for UpdEnt)
        """Return theta n_j1 - c_j11, or for the totals theta n - c_1."""
        return theta * (zeros + ones) - ones

    def _is_below(self, j: Feature, i: int) -> bool:
        return self._shares(j)[0] < self.s(i)

    def _is_above(self, j: Feature, i: int) -> bool:
        return self._shares(j)[0] > self.t(i)

    # --- invariants

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the paper holds. O(everything)."""
        assert self.a.keys() == self.b.keys() == self.counts.keys()
        runs = {j: list(self._run(j)) for j in self.counts}
        for j, (c_j10, c_j11) in self.counts.items():
            assert 0 <= c_j10 <= self.c[0]
            assert 0 <= c_j11 <= self.c[1]
            assert c_j10 + c_j11 > 0, "a feature that never occurs was kept"
            assert not self._is_below(j, self.a[j]), "rho is below the bins"
            assert not self._is_above(j, self.b[j]), "rho is above the bins"
            assert len(runs[j]) == 1 or self._may_run(self.a[j], self.b[j])
            assert all(self.T[i].key(j) == self.K(j, i) for i in runs[j]), "a key is stale"
            assert self.L[self.a[j]].key(j) == self._low_key(j, self.a[j])
            assert self.U[self.b[j]].key(j) == self._high_key(j, self.b[j])
        for trees, total in ((self.T, sum(map(len, runs.values()))), (self.L, len(runs)), (self.U, len(runs))):
            assert all(trees.values()), "an empty tree was kept"
            assert sum(map(len, trees.values())) == total, "a feature is in a tree too many"

    def _may_run(self, a: int, b: int) -> bool:
        """Return whether a feature may be in all the bins from a to b."""
        raise NotImplementedError


def _h(a: float, b: float) -> float:
    """Return -a log2(a / (a + b)) - b log2(b / (a + b))."""
    return sum(x * math.log2((a + b) / x) for x in (a, b) if x > 0.0)


class UpdEnt(_Reference):
    """Algorithm 1: the best split by conditional entropy, within a factor of 1 + alpha.

    The bins are -inf, ..., -2, -1, 1, 2, ..., inf. Those above 0 are the mirror images of those below: rho and
    1 - rho, the labels 0 and 1 change places. Their keys are mirrored, too, L as much as U.
    """

    _criterion = "entropy"

    def _restore_invariant(self) -> None:
        for i in (-_INF, _INF):  # lines 6 to 11
            for j in [*self._below(i), *self._above(i)]:
                self._take_out(j)
                self._place(j)
        for i in sorted(self.L, reverse=True):  # line 12
            for j in self._below(i):  # line 13
                self._lower(j)
        for i in sorted(self.U):  # line 15
            for j in self._above(i):  # line 16
                self._raise(j)

    def _lower(self, j: Feature) -> None:
        if self._at_an_end(j):
            self._take_out(j)
            self._place(j)
            return
        while self._is_below(j, self.a[j]):
            self._remove(self.L, self.a[j], j)
            self.a[j] = -1 if self.a[j] == 1 else self.a[j] - 1  # line 14
            self.T.setdefault(self.a[j], Tree()).add(j, self.K(j, self.a[j]))
            self.L.setdefault(self.a[j], Tree()).add(j, self._low_key(j, self.a[j]))

    def _raise(self, j: Feature) -> None:
        if self._at_an_end(j):
            self._take_out(j)
            self._place(j)
            return
        while self._is_above(j, self.b[j]):
            self._remove(self.U, self.b[j], j)
            self.b[j] = self._next(self.b[j])  # line 17
            self.T.setdefault(self.b[j], Tree()).add(j, self.K(j, self.b[j]))
            self.U.setdefault(self.b[j], Tree()).add(j, self._high_key(j, self.b[j]))

    def _at_an_end(self, j: Feature) -> bool:
        return 0.0 in self._shares(j)

    def _next(self, i: int) -> int:
        return 1 if i == -1 else i + 1

    def _power(self, k: int) -> float:
        """Return 2^-((1 + alpha)^k), s_-k and 1 - t_k; 0 for the bins at the ends."""
        return 0.0 if k == _INF else 2.0 ** -min((1.0 + self.alpha) ** k, _FARTHEST)

    def s(self, i: int) -> float:
        """Return the lower end of B_i; for i > 0, 1 minus that."""
        return self._power(-i) if i < 0 else self._power(i - 1 if i < _INF else i)

    def t(self, i: int) -> float:
        """Return the upper end of B_i; for i > 0, 1 minus that."""
        return self._power(-i - 1 if i > -_INF else -i) if i < 0 else self._power(i)

    def ind(self, j: Feature) -> int:
        """Return the index of a bin with the feature's rho in it."""
        rho, rest = self._shares(j)
        if rho == 0.0:
            return -_INF
        if rest == 0.0:
            return _INF
        return -self._level(rho) if rho < rest else self._level(rest)

    def _level(self, share: float) -> int:
        """Return ceil(log_(1 + alpha) log_(1/2) share), at least 1, and right at the ends of bins."""
        k = max(1, math.ceil(math.log(-math.log2(share), 1.0 + self.alpha)) if share < 0.5 else 1)
        while share < self._power(k):
            k += 1
        while k > 1 and share >= self._power(k - 1):
            k -= 1
        return k

    def K(self, j: Feature, i: int) -> float:  # noqa: N802  (the paper's name)
        """Return K(c_j10, c_j11, mu_i) of Proposition 4.1; at mu = 0 and 1 the rest of C and K is 0."""
        a, b = (count / UNIT for count in self.counts[j])
        if abs(i) == _INF:
            return _h(a, b)
        mu = self._power(abs(i))
        rare, common = (b, a) if i < 0 else (a, b)
        return _h(a, b) + rare * math.log2(mu) + common * math.log1p(-mu) / math.log(2.0)

    def _distance(self, theta: float, i: int, zeros: int, ones: int) -> float:
        # Mirrored, (1 - theta) n_j1 - c_j10 is what theta n_j1 - c_j11 is, but for its sign.
        return theta * (zeros + ones) - ones if i < 0 else zeros - theta * (zeros + ones)

    def _is_below(self, j: Feature, i: int) -> bool:
        rho, rest = self._shares(j)
        return rho < self.s(i) if i < 0 else rest > self.s(i)

    def _is_above(self, j: Feature, i: int) -> bool:
        rho, rest = self._shares(j)
        return rho > self.t(i) if i < 0 else rest < self.t(i)

    def _may_run(self, a: int, b: int) -> bool:
        return -_INF < a <= b < _INF


class UpdGini(_Reference):
    """Algorithm 2: the best split by the Gini index, within a factor of 1 + alpha.

    The bins are 0, 1, ..., l. They overlap, and a feature is in exactly one.
    """

    _criterion = "gini"

    def _restore_invariant(self) -> None:
        for i in sorted(self.T):  # line 6
            for j in [*self._below(i), *self._above(i)]:
                self._take_out(j)
                self._place(j)  # lines 7 and 8

    def _may_run(self, a: int, b: int) -> bool:
        return a == b

    @property
    def beta(self) -> float:
        """The distance of every second bin."""
        return self.alpha / (self.alpha + 2.0)

    def s(self, i: int) -> float:
        """Return the lower end of B_i."""
        return (i / 2 - 0.25) * self.beta

    def t(self, i: int) -> float:
        """Return the upper end of B_i."""
        return (i / 2 + 0.75) * self.beta

    def ind(self, j: Feature) -> int:
        """Return the index of a bin with the feature's rho in it: Equation 5.2, exact at the steps of floor."""
        rho = self._shares(j)[0]
        i = math.floor(2.0 * rho / self.beta)
        return next(k for k in (i + 1, i, i - 1) if k / 2 * self.beta <= rho)

    def K(self, j: Feature, i: int) -> float:  # noqa: N802  (the paper's name)
        """Return K(c_j10, c_j11, mu_i) of Proposition 5.1."""
        a, b = (count / UNIT for count in self.counts[j])
        mu = (i / 2 + 0.25) * self.beta
        return 2.0 * a * b / (a + b) - (2.0 * a * mu if mu >= 0.5 else 2.0 * b * (1.0 - mu))
