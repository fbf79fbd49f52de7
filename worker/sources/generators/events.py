"""Generated examples as events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from worker.sources.example import Example
from worker.sources.generators.port import NUMERIC, Generator

_BATCH = 1_000


def events(stream: Generator, *, ids: bool) -> Iterator[Example]:
    """Yield the examples of a stream without end; zeros are left out, as absent means 0.

    Parameters
    ----------
    stream : Generator
        Where they come from.
    ids : bool
        Whether attributes go by their numbers, from 0, instead of their names. Where all are binary, those present
        are listed; else they have values, whole numbers where they are nominal.
    """
    features = _features(stream, ids=ids)
    number = 0
    while True:
        batch = stream.take(_BATCH)
        for row, label in zip(batch.value.tolist(), batch.label.tolist(), strict=True):
            number += 1
            yield Example(None, {"x": features(row), "y": label}, number)


def _features(stream: Generator, *, ids: bool) -> Callable[[list[float]], Any]:
    """Return what makes features of a row."""
    attributes = stream.schema.attributes
    names: list[Any] = [number if ids else attribute.name for number, attribute in enumerate(attributes)]
    types = [float if attribute.values == NUMERIC else int for attribute in attributes]

    def listed(row: list[float]) -> list[Any]:
        return [name for name, value in zip(names, row, strict=True) if value]

    def valued(row: list[float]) -> dict[Any, Any]:
        return {name: kind(value) for name, kind, value in zip(names, types, row, strict=True) if value}

    def packed(row: list[float]) -> dict[str, list[Any]]:
        present = valued(row)
        return {"i": list(present), "v": list(present.values())}

    if stream.schema.is_binary:
        return listed
    return packed if ids else valued
