"""The labelled examples that are alive at the end of some records, as a batch for a builder of trees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from algorithms.core.kinds import Kind
from algorithms.dynamic.samples import Sample
from worker.codec.bounds import Bounds
from worker.codec.events import DELETE, DROP, INSERT, LABEL, PREDICT
from worker.codec.reference import Event, check_key, decode
from worker.sources.example import Label, brief

MOST_CLASSES = 1000

_Content: TypeAlias = "tuple[bytes, Label | None, int, frozenset[tuple[int, float]]]"


class BatchError(Exception):
    """There is no batch to build a tree of; the message says what was expected and what came."""


class Batch(NamedTuple):
    """Examples in columns; features and labels are numbers in the order of what they stand for."""

    sample: Sample
    classes: list[int | str]  # ascending; names by their bytes
    features: list[int | str]  # the same
    kinds: dict[int, Kind]  # by the number of a feature: binary where all its values are 1


@dataclass(frozen=True, slots=True, eq=False)
class _Example:
    columns: tuple[int, ...]
    values: tuple[float, ...]
    label: Label
    weight: int
    content: _Content


@dataclass
class Gatherer:
    """Applies events in their order, as models do: what is deleted or replaced is not in the batch.

    A label makes an example of the predict with its id, however long ago that came.

    Parameters
    ----------
    events
        How many inserts, labels and deletes were applied.
    passed_over
        How many events of other kinds there were, or without effect: predicts, a second insert of a live id, a
        label of what was not predicted, a delete of what is not there.
    time
        The latest event time, ms.
    """

    events: int = 0
    passed_over: int = 0
    time: int = 1
    _columns: dict[int | str, int] = field(default_factory=dict)
    _by_id: dict[bytes, dict[int | str, _Example]] = field(default_factory=dict)  # of a key
    _by_content: dict[bytes, dict[_Content, list[_Example]]] = field(default_factory=dict)  # those without an id
    _asked: dict[bytes, dict[int | str, Event]] = field(default_factory=dict)  # predicts of a key without a label

    def add(self, key: bytes | None, value: bytes | None, timestamp: int) -> str | None:
        """Apply the events of a record; return what is wrong with the first that cannot be read."""
        bounds = Bounds()
        fault = check_key(key, bounds)
        wrong = None if fault is None else fault.detail
        for row in [] if fault is not None else decode(value, timestamp, bounds):
            if isinstance(row, Event):
                self._apply(key or b"", row)
            else:
                wrong = wrong or row.detail
        return wrong

    def _apply(self, key: bytes, event: Event) -> None:
        self.time = max(self.time, event.time)
        with_id, without = self._by_id.setdefault(key, {}), self._by_content.setdefault(key, {})
        asked = self._asked.setdefault(key, {})
        before = None if event.id is None else asked.pop(event.id, None)
        if event.op == LABEL and before is not None:
            event = replace(event, op=INSERT, features=before.features, values=before.values)
        done = False
        if event.op == PREDICT and event.id is not None:
            asked[event.id] = event
        elif event.op == DROP:
            asked.clear()
            done = bool(with_id or without)
            with_id.clear()
            without.clear()
        elif event.op == INSERT:
            done = event.id is None or event.id not in with_id
            if done and event.id is not None:
                with_id[event.id] = self._example(key, event)
            elif done:
                example = self._example(key, event)
                without.setdefault(example.content, []).append(example)
        elif event.op == DELETE and event.id is not None:
            done = with_id.pop(event.id, None) is not None
        elif event.op == DELETE:
            content = self._example(key, event).content
            alike = without.get(content, [])
            done = bool(alike)
            if done:
                alike.pop()
            if not alike:
                without.pop(content, None)
        self.events += done
        self.passed_over += not done

    def _example(self, key: bytes, event: Event) -> _Example:
        number = self._columns.setdefault
        columns = tuple([number(feature, len(self._columns)) for feature in event.features])
        assert event.label is not None  # the codec refuses others
        content = (key, event.label, event.weight, frozenset(zip(columns, event.values, strict=True)))
        return _Example(columns, event.values, event.label, event.weight, content)

    def batch(self) -> Batch:
        """Return the examples that are alive, in the order of their keys and inserts.

        Raises
        ------
        BatchError
            Where there are none, and where their labels are no classes.
        """
        live: list[_Example] = []
        for key in self._by_id:
            live += self._by_id[key].values()
            live += chain.from_iterable(self._by_content[key].values())
        classes = _classes({(type(each.label), each.label) for each in live})
        features, place = self._ordered(live)
        label: dict[Label, int] = {each: number for number, each in enumerate(classes)}
        sizes = np.fromiter((len(each.columns) for each in live), np.int64, len(live))
        entries = int(sizes.sum())
        columns = np.fromiter(chain.from_iterable(each.columns for each in live), np.int64, entries)
        values = np.fromiter(chain.from_iterable(each.values for each in live), np.float64, entries)
        sample = Sample(
            pointer=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            feature=place[columns].astype(np.uint32),
            value=values,
            label=np.array([label[each.label] for each in live], np.int64),
            weight=np.array([each.weight for each in live], np.int64),
        )
        numeric = np.unique(sample.feature[values != 1.0]).tolist()
        return Batch(sample, classes, features, dict.fromkeys(numeric, Kind.NUMERIC))

    def _ordered(self, live: list[_Example]) -> tuple[list[int | str], Any]:
        """Return the features that examples have, ascending, and the place of each column among them."""
        used = np.zeros(len(self._columns), np.bool_)
        for each in live:
            used[list(each.columns)] = True
        names = [feature for feature, there in zip(self._columns, used.tolist(), strict=True) if there]
        kinds = {type(name) for name in names}
        if len(kinds) > 1:
            raise BatchError("expected features that are all ids, or all names, got both; choose one key")
        features = sorted(names, key=lambda name: name.encode() if isinstance(name, str) else name)
        place = np.zeros(len(self._columns), np.int64)
        for at, feature in enumerate(features):
            place[self._columns[feature]] = at
        return features, place


def _classes(found: set[tuple[type, Any]]) -> list[int | str]:
    """Return the classes that labels are, ascending."""
    if not found:
        raise BatchError(
            "expected examples with a label, got none; choose other events, or a file whose rows are inserts"
        )
    labels = sorted(label for kind, label in found if kind is not str)
    names = sorted((label for kind, label in found if kind is str), key=str.encode)
    advice = "grow a tree of numbers by a model of kind regression-tree"
    if fractions := [label for kind, label in found if kind is float]:
        raise BatchError(f"expected classes as labels, integers or names, got {min(fractions)!r}; {advice}")
    if labels and names:
        raise BatchError(
            f"expected labels that are all integers or all names, got {labels[0]} and {brief(names[0])}; "
            "rename labels"
        )
    classes = [*labels, *names]
    if len(classes) == 1:
        raise BatchError(f"expected two classes or more, got {classes[0]!r} alone; there is nothing to tell apart")
    if len(classes) > MOST_CLASSES:
        numbers = f"; {advice} where they are numbers" if labels else ""
        raise BatchError(f"expected at most {MOST_CLASSES} classes, got {len(classes):,}{numbers}")
    return classes
