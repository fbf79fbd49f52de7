"""The inputs by which paper 002, section 4, shows what no such algorithm can do without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from algorithms.dynamic.pool import DynamicPool

PROMISES: list[dict[str, Any]] = [{"guarantee": "exact"}, {"beta": 0.04}, {"epsilon": 0.0}]
NAMES = ["exact", "beta", "from scratch"]


@pytest.mark.parametrize("promise", PROMISES, ids=NAMES)
def test_a_tree_remembers_every_bit_of_a_matrix(promise: dict[str, Any]) -> None:
    """Theorem 4.1: a matrix goes in, all but two of its groups go out, and the tree tells one bit of it.

    The example whose features are all 1 gets the label A[row, column], for any row and column: so the state holds
    the whole matrix. Only splits on the column are within 1/24 of the best gain.
    """
    random = np.random.default_rng(4)
    rows, columns, k = 3, 4, 2
    matrix = random.integers(0, 2, (rows, columns))
    bits = int(np.ceil(np.log2(rows + columns) + 1))

    def group(i: int) -> list[tuple[list[int], int]]:
        """Return features and labels of the 2 k examples of a group, which its number in binary tells apart."""
        number = [columns + bit for bit in range(bits) if i >> bit & 1]
        found = []
        for h in range(2 * k):
            if i < rows:
                present = [j for j in range(columns) if matrix[i, j] == (h >= k)]
            else:
                present = [j for j in range(columns) if j != i - rows and h % 2 == 1]
            found.append((present + number, int(h >= k)))
        return found

    for row in range(rows):
        for column in range(columns):
            pool = DynamicPool(min_examples=k, **promise)
            for i in range(rows + columns):
                for features, label in group(i):
                    pool.insert(features, label=label)
            for i in set(range(rows + columns)) - {row, rows + column}:
                for features, label in group(i):
                    pool.delete(features, label=label)
            told = pool.predict(list(range(columns + bits)))
            assert int(np.argmax(told)) == matrix[row, column]
            assert min(told) == 0  # the leaf holds one label
            assert pool.tree().feature[0] == column
            pool.check()


@pytest.mark.parametrize("promise", PROMISES, ids=NAMES)
def test_a_tree_finds_the_feature_that_the_adversary_chose(promise: dict[str, Any]) -> None:
    """Theorem 4.2: one of d features tells the label; then all that was inserted goes, and another one does."""
    random = np.random.default_rng(5)
    k, d = 3, 12
    pool = DynamicPool(min_examples=k, **promise)
    for feature in random.permutation(d).tolist():
        examples = [([], 0)] * k + [([feature], 1)] * k
        for features, label in examples:
            pool.insert(features, label=label)
        for _ in range(3):
            asked = sorted(random.permutation(d)[: d // 2].tolist())
            assert int(np.argmax(pool.predict(asked))) == (feature in asked)
        for features, label in examples:
            pool.delete(features, label=label)
    assert pool.sizes().examples == 0
    pool.check()
