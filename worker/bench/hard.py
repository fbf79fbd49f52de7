"""Streams made to be hard for an exact index, which lives on skew, signal and counts that move slowly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.core.events import Op
from worker.bench.streams import sparse, stream_of
from worker.bench.updates import Workload, deal, workload

_ONES = 100  # features of an example


def hard(n: int, d: int) -> Iterator[Workload]:
    """Yield each of them, of about n events over d features, 100 in an example (fewer where d is below 200)."""
    ones = min(_ONES, d // 2)
    yield noise(n, d, ones)
    yield words(n, d, ones)
    yield twins(n, d, ones)
    yield sweep(n, d, ones)
    yield swing(n, d, ones)
    yield edge(n, ones)


def noise(n: int, d: int, ones: int) -> Workload:
    """Return features that tell nothing, all equally frequent: one is best by chance, and not for long."""
    return workload(sparse(n, 0, d, ones / d)._replace(name="noise"))


def words(n: int, d: int, ones: int, seed: int = 0) -> Workload:
    """Return noise again, with features as frequent as words are."""
    random = np.random.default_rng(seed)
    share = np.cumsum(1.0 / (np.arange(d) + 20.0))
    drawn = np.searchsorted(share, random.random((n, ones)) * share[-1])
    rows = [np.unique(row) for row in drawn]
    return workload(stream_of("noisy words", rows, random.integers(0, 2, n), d))


def twins(n: int, d: int, ones: int, seed: int = 0) -> Workload:
    """Give each example both labels in turn, so that all features tie where the scores are worst."""
    random = np.random.default_rng(seed)
    # One feature out of each of so many ranges: no repeats.
    width = d // ones
    rows = np.arange(ones) * width + random.integers(0, width, (n // 2, ones))
    return workload(stream_of("twins", list(np.repeat(rows, 2, axis=0)), np.tile([0, 1], n // 2), d))


def sweep(n: int, d: int, ones: int) -> Workload:
    """Return twins again, in the order of their ids: those that leave a tie are the lowest of it."""
    blocks = np.arange(n // 2) % (d // ones)
    rows = blocks[:, np.newaxis] * ones + np.arange(ones)
    return workload(stream_of("sweep", list(np.repeat(rows, 2, axis=0)), np.tile([0, 1], n // 2), d))


def swing(n: int, d: int, ones: int, seed: int = 0) -> Workload:
    """Bring and take away a perfect feature: rare features may wait, must not, may wait again."""
    random = np.random.default_rng(seed)
    n //= 2  # each insert is deleted
    phase = max(n // 20, 1)
    label = random.integers(0, 2, n)
    perfect = np.where(np.arange(n) // phase % 2 == 0, label, random.integers(0, 2, n))
    width = d // ones
    others = 1 + np.arange(ones - 1) * width + random.integers(0, width, (n, ones - 1))
    rows = [np.append(0, row) if on else row for on, row in zip(perfect, others, strict=True)]
    return workload(stream_of("swing", rows, label, d), f"window:{phase}")


def edge(n: int, ones: int, height: int = 64) -> Workload:
    """Make all features of an example cross the edge of a bucket at each event, to and fro."""
    rows = [np.arange(ones) + label * ones for label in (0, 1)]
    stream = stream_of("edge", rows, np.array([0, 1]), 2 * ones)
    example = np.tile([0, 1], height)  # the counts are now at the edge: 64 begins an octave
    op = np.full(2 * height, Op.INSERT)
    rounds = max(n // 4, 1)
    return deal(
        stream,
        f"to and fro at {height}",
        np.append(op, np.tile([Op.DELETE, Op.DELETE, Op.INSERT, Op.INSERT], rounds)).astype(np.int8),
        np.append(example, np.tile([0, 1, 0, 1], rounds)),
    )
