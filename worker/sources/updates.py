"""Examples that are taken back again: two models of updates, as in the literature on trees that forget."""

from __future__ import annotations

import random
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from worker.sources.example import BadLine, Entry, Example

EXPECTED = "window:W as in window:1000, or random:P as in random:0.5 or random:0.5,seed=7"
_Name: TypeAlias = tuple[str | None, int | str]  # key and id
_WINDOW = re.compile(r"window:([1-9][0-9]{0,8})")
_RANDOM = re.compile(r"random:(0?\.(?=0*[1-9])[0-9]{1,9})(?:,seed=([0-9]{1,18}))?")


class Updates(NamedTuple):
    """When an example is deleted; one of the two holds."""

    window: int | None = None  # once its key has so many newer ones
    probability: float = 0.0  # that the next event deletes one of the live examples, all alike
    seed: int = 0


def parse(text: str) -> Updates:
    """Return what a text like ``window:1000`` means; raise ValueError with what was expected."""
    if found := _WINDOW.fullmatch(text):
        return Updates(window=int(found[1]))
    if found := _RANDOM.fullmatch(text):
        return Updates(probability=float(found[1]), seed=int(found[2] or 0))
    raise ValueError(f"expected {EXPECTED} (W from 1; P above 0 and below 1), got {text!r}")


def with_deletes(entries: Iterable[Entry], updates: Updates) -> Iterator[Entry]:
    """Yield examples, which have ids, and between them their deletes, which have the time of the example before.

    Each key has a window of its own; a random delete takes any live example, and is followed by another with the
    same probability. What is no insert passes.
    """
    # `random.random` gives the same numbers for a seed in every version of Python; its other methods may not.
    draw = random.Random(updates.seed).random
    windows: dict[str | None, deque[_Name]] = defaultdict(deque)
    live: list[_Name] = []
    for entry in entries:
        yield entry
        if isinstance(entry, BadLine) or entry.fields.get("op", "insert") != "insert":
            continue
        name = (entry.key, entry.fields["id"])
        if updates.window is not None:
            window = windows[entry.key]
            window.append(name)
            if len(window) > updates.window:
                yield _delete(window.popleft(), entry)
            continue
        live.append(name)
        while live and draw() < updates.probability:
            at = int(draw() * len(live))
            live[at], live[-1] = live[-1], live[at]
            yield _delete(live.pop(), entry)


def _delete(name: _Name, after: Example) -> Example:
    key, example_id = name
    fields: dict[str, Any] = {"op": "delete", "id": example_id}
    if "ts" in after.fields:
        fields["ts"] = after.fields["ts"]
    return Example(key, fields, after.line)
