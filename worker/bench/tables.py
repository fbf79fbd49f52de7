"""Labelled streams with values to measure trees on, in CSR form: made ones here, recorded ones in `datasets`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int64s, UInt32s
from worker.sources.generators import NUMBERS, generate

_CHUNK = 10_000  # examples held as a dense matrix at a time


class Table(NamedTuple):
    """Examples in CSR form, in stream order, and what their features are. A feature that is absent is 0."""

    name: str
    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[entries], ascending in each example, all below d
    value: Float64s  # float64[entries], none is 0
    label: Int64s  # int64[n], from 0, below len(classes)
    kinds: Int64s  # int64[d], NUMERIC, or how many values a nominal feature has (BINARY: 2): 0, 1, ...
    names: tuple[str, ...]  # of the features; empty where they have none
    classes: tuple[str, ...]  # what the labels stand for


def generated(text: str, n: int) -> Table:
    """Return the first n examples of a generator.

    Parameters
    ----------
    text : str
        As `worker.sources.generators.generate` takes it: `agr:function=3`.
    n : int
        0 or more.

    Raises
    ------
    ValueError
        With what was expected.
    """
    stream = generate(text)
    if stream.schema.classes == NUMBERS:
        raise ValueError(f"expected a stream of classes, got {text!r}, whose labels are numbers; name another")
    sizes = [min(_CHUNK, n - start) for start in range(0, max(n, 1), _CHUNK)]
    # One chunk after the other is made sparse, so that no more than one of them is ever dense.
    parts = [(csr(examples.value), examples.label) for examples in map(stream.take, sizes)]
    pointer = np.zeros(n + 1, np.int64)
    np.cumsum(np.concatenate([np.diff(part) for (part, _, _), _ in parts]), out=pointer[1:])
    attributes = stream.schema.attributes
    return Table(
        name=text,
        pointer=pointer,
        feature=np.concatenate([feature for (_, feature, _), _ in parts]),
        value=np.concatenate([value for (_, _, value), _ in parts]),
        label=np.concatenate([label for _, label in parts]).astype(np.int64),
        kinds=np.array([attribute.values for attribute in attributes], np.int64),
        names=tuple(attribute.name for attribute in attributes),
        classes=tuple(str(label) for label in range(stream.schema.classes)),
    )


def csr(value: npt.NDArray[Any]) -> tuple[Int64s, UInt32s, Float64s]:
    """Return pointer, feature and value of a dense matrix [n, d], its zeros left out."""
    present = value != 0
    pointer = np.zeros(len(value) + 1, np.int64)
    np.cumsum(np.count_nonzero(present, axis=1), out=pointer[1:])
    return pointer, np.nonzero(present)[1].astype(np.uint32), value[present].astype(np.float64)


def first(table: Table, n: int) -> Table:
    """Return the first n examples of a table, all of them where there are fewer."""
    pointer = table.pointer[: n + 1]
    end = pointer[-1]
    return table._replace(
        pointer=pointer, feature=table.feature[:end], value=table.value[:end], label=table.label[:n]
    )


MAJORITY = "majority"  # the class of most labels, by this name


def against(table: Table, positive: str) -> Table:
    """Return a table whose label is 1 for one class and 0 for all others, as paper 002 makes them.

    Parameters
    ----------
    table : Table
        Of any number of classes.
    positive : str
        A class, or `MAJORITY`, the most frequent one.

    Raises
    ------
    ValueError
        Where the class is unknown.
    """
    if positive == MAJORITY and MAJORITY not in table.classes:
        positive = table.classes[int(np.argmax(np.bincount(table.label)))]
    if positive not in table.classes:
        raise ValueError(f"expected {MAJORITY}, or a class of {', '.join(table.classes)}, got {positive!r}")
    label = (table.label == table.classes.index(positive)).astype(np.int64)
    return table._replace(label=label, classes=(f"not {positive}", positive))


class _Recipe(NamedTuple):
    """A stream of paper 001: how many examples it has there, its concepts, and how wide its drifts are."""

    examples: int
    concepts: tuple[str, ...]
    width: float = 0.0  # as a share of all examples


# Table 1, with the commands that its authors published. Though its name says drift, their SEA has none.
PAPER_001 = {
    "SEA_g": _Recipe(5_000_000, ("sea:balance=true",)),
    "LED_g": _Recipe(1_000_000, ("led:drift=1", "led:drift=3", "led:drift=5", "led:drift=7"), 0.05),
    "AGR_g": _Recipe(
        10_000_000, tuple(f"agr:function={function},balance=true" for function in (1, 2, 1, 4)), 0.00005
    ),
    "RBF": _Recipe(2_000_000, ("rbf:classes=15,attributes=200,centroids=100",)),
    "RTG": _Recipe(10_000_000, ("rtg:classes=25,nominals=200,numerics=200",)),
}


def paper_001(name: str, n: int | None = None) -> str:
    """Return the description of a synthetic stream of paper 001, for `generate`.

    Parameters
    ----------
    name : str
        A key of `PAPER_001`.
    n : int, optional
        How many examples it is to have; places and widths of drifts shrink in proportion. As many as in the
        paper, unless given.
    """
    recipe = PAPER_001[name]
    n = recipe.examples if n is None else n
    start, *others = recipe.concepts
    drifts = [
        f"+{concept}@{n * number // len(recipe.concepts)}/{round(n * recipe.width)}"
        for number, concept in enumerate(others, 1)
    ]
    return start + "".join(drifts)
