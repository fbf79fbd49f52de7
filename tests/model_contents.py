"""What a split model holds, as plain values that do not depend on where in its arrays things lie."""

from __future__ import annotations

from typing import Any, NamedTuple

from algorithms import ledger, slots
from algorithms.ledger import Ledger
from algorithms.names import Interner, Names
from algorithms.slots import Slots
from algorithms.splits import ALIVE, EVENTS, LAST, SPLIT_PERIOD, TREE_PERIOD
from worker.models import Model

Feature = int | bytes


class Example(NamedTuple):
    """A live example, or what is remembered of one that the window dropped."""

    id: tuple[int, int] | None  # its digest
    label: int
    weight: int
    features: frozenset[Feature]


class Instance(NamedTuple):
    """The model of one key."""

    totals: tuple[int, int]
    counts: dict[Feature, tuple[int, int]]
    events: int
    last: Feature | None
    periods: tuple[int, int]
    live: list[Example]  # oldest first
    dropped: list[tuple[int, int] | None]  # digests of ids


def model_contents(model: Model) -> dict[bytes, Instance]:
    """Return what a split model holds, by key."""
    arrays = model.arrays()

    def part(name: str, kind: Any) -> Any:
        return kind(**{field: arrays[f"{name}.{field}"] for field in kind._fields})

    keys = Interner(part("keys", Names))
    names = Interner(part("names", Names)) if "names.start" in arrays else None
    rows = part("slots", Slots).rows
    heads = part("slots", Slots).heads
    book: Ledger = part("ledger", Ledger)

    def feature(number: int) -> Feature:
        return number if names is None else names.name(number)

    counts: dict[int, dict[Feature, tuple[int, int]]] = {}
    for row in rows[: arrays["slots.counts"][slots.HIGH]]:
        if row[slots.KEY] >= 0:
            of_key = counts.setdefault(int(row[slots.KEY]) >> 32, {})
            of_key[feature(int(row[slots.KEY]) & 0xFFFFFFFF)] = (int(row[slots.C0]), int(row[slots.C1]))

    def examples(index: int, first: int) -> list[Example]:
        found = []
        at = int(book.heads[index, first])
        while at != ledger.NONE:
            row = book.rows[at].tolist()
            start, stop = row[ledger.START], row[ledger.START] + row[ledger.LENGTH]
            found.append(
                Example(
                    (row[ledger.HIGH], row[ledger.LOW]) if row[ledger.OWNER] & 1 else None,
                    row[ledger.LABEL],
                    row[ledger.WEIGHT],
                    frozenset(feature(number) for number in book.features[start:stop].tolist()),
                )
            )
            at = row[ledger.NEWER]
        return found

    found = {}
    for index, head in enumerate(arrays["heads"].tolist()):
        if head[ALIVE]:
            found[keys.name(index)] = Instance(
                totals=(int(heads[index, slots.N0]), int(heads[index, slots.N1])),
                counts=counts.get(index, {}),
                events=head[EVENTS],
                last=None if head[LAST] == slots.NONE else feature(head[LAST]),
                periods=(head[SPLIT_PERIOD], head[TREE_PERIOD]),
                live=examples(index, ledger.OLDEST),
                dropped=[example.id for example in examples(index, ledger.FIRST_DROPPED)],
            )
    return found
