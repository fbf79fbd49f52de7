"""Labelled sparse streams to measure on: recorded sets, and the generator of paper 000."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int8s, Int64s, UInt32s


class Stream(NamedTuple):
    """Examples in CSR form, in stream order."""

    name: str
    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[ones]
    label: Int8s  # int8[n], 0 or 1
    features: int  # ids are below this


def sparse(n: int, d1: int, d2: int, q: float, seed: int = 0) -> Stream:
    """Return paper 000's `sparse(n, d1, d2, q)`: d1 features copy the label and are flipped with probabilities
    drawn from [0, 1], d2 are on with probability q. Section 6.
    """  # noqa: D205  (one sentence)
    random = np.random.default_rng(seed)
    flip = random.random(d1)
    label = random.integers(0, 2, n)
    informative = (random.random((n, d1)) < flip) != label[:, np.newaxis].astype(bool)
    rows = []
    for row in informative:
        noise = random.choice(d2, random.binomial(d2, q), replace=False) + d1
        rows.append(np.concatenate([np.flatnonzero(row), np.sort(noise)]))
    return stream_of(f"sparse:{n},{d1},{d2},{q}", rows, label, d1 + d2)


def fresh(n: int, d1: int, new: int, seed: int = 0) -> Stream:
    """Return n examples, each with d1 features of `sparse` and `new` ones that no example had before."""
    known = sparse(n, d1, 0, 0.0, seed)
    ones = np.diff(known.pointer)
    pointer = known.pointer + new * np.arange(n + 1)
    feature = np.empty(pointer[-1], np.uint32)
    feature[np.arange(known.pointer[-1]) + np.repeat(new * np.arange(n), ones)] = known.feature
    last = pointer[1:, np.newaxis] - np.arange(new, 0, -1)
    feature[last] = d1 + np.arange(n * new).reshape(n, new)
    return known._replace(name=f"fresh:{n},{d1},{new}", pointer=pointer, feature=feature, features=d1 + n * new)


def stream_of(name: str, rows: list[npt.NDArray[np.int64]], label: npt.NDArray[np.int64], features: int) -> Stream:
    """Return a stream of the features that each example has, in order."""
    pointer = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=pointer[1:])
    return Stream(name, pointer, np.concatenate(rows).astype(np.uint32), label.astype(np.int8), features)


def load(data: str, limit: int | None = None) -> Stream:
    """Return a stream by its description.

    Parameters
    ----------
    data : str
        `sparse:n,d1,d2,q`, `fresh:n,d1,new`, or the path of an `.npz` with the arrays indptr, indices, labels
        and shape.
    limit : int, optional
        Take only so many examples.

    Raises
    ------
    ValueError
        With what was expected.
    """
    kind, _, numbers = data.partition(":")
    stream = _generated(kind, numbers) if kind in _GENERATED else _recorded(Path(data))
    return stream if limit is None else first(stream, limit)


def first(stream: Stream, n: int) -> Stream:
    """Return the first n examples of a stream, all of them where there are fewer."""
    pointer = stream.pointer[: n + 1]
    return stream._replace(pointer=pointer, feature=stream.feature[: pointer[-1]], label=stream.label[:n])


def between(stream: Stream, begin: int, end: int) -> Stream:
    """Return examples `begin` to `end` of a stream."""
    pointer = stream.pointer[begin : end + 1]
    return stream._replace(
        pointer=pointer - pointer[0],
        feature=stream.feature[pointer[0] : pointer[-1]],
        label=stream.label[begin:end],
    )


class _Generator(NamedTuple):
    numbers: str  # that follow its name
    kinds: tuple[type, ...]  # of these numbers
    example: str
    make: Callable[..., Stream]


_GENERATED = {
    "sparse": _Generator("n,d1,d2,q", (int, int, int, float), "10000,10,10000,0.001", sparse),
    "fresh": _Generator("n,d1,new", (int, int, int), "100000,10,100", fresh),
}


def _generated(kind: str, numbers: str) -> Stream:
    maker = _GENERATED[kind]
    try:
        return maker.make(*(of(each) for of, each in zip(maker.kinds, numbers.split(","), strict=True)))
    except ValueError as error:
        raise ValueError(
            f"expected {kind}:{maker.numbers} as in {kind}:{maker.example}, got {f'{kind}:{numbers}'!r}"
        ) from error


def _recorded(path: Path) -> Stream:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return Stream(
                name=path.stem,
                pointer=arrays["indptr"].astype(np.int64),
                feature=arrays["indices"].astype(np.uint32),
                label=arrays["labels"].astype(np.int8),
                features=int(arrays["shape"][1]),
            )
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(
            f"expected {', '.join(f'{kind}:{each.numbers}' for kind, each in _GENERATED.items())} or an .npz file "
            f"with indptr, indices, labels, shape, got {str(path)!r}; it says: {error}"
        ) from error
