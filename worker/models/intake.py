"""What the kinds of models have in common on the way from events to a pool: labels, features, refusals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s
from algorithms.core.events import Op
from algorithms.core.fixed_point import UNIT
from algorithms.core.names import Interner
from algorithms.core.scale import Scale
from algorithms.trees.gaussians import LARGEST_VALUE
from worker.codec import Events, Reason, Source
from worker.codec.encode import Class, Output
from worker.codec.events import (
    FLOAT_LABEL,
    IDS,
    INT_LABEL,
    NAMES,
    NO_FEATURES,
    NO_ID,
    TEXT_LABEL,
    Float64s,
    Int8s,
    Int32s,
    UInt32s,
)
from worker.log.port import Records
from worker.models.port import Refusal, Result

Bools = npt.NDArray[np.bool_]
Labels = npt.NDArray[Any]  # int32[n], numbers of classes, or float64[n]
_LISTED = 10  # classes in a message
NOTHING = np.int8(-1)  # what a pool shall do with an event that is refused


class Intake(ABC):
    """What the settings of a model say of the events that it takes.

    Parameters
    ----------
    features : str
        ``ids`` or ``names``.
    """

    def __init__(self, features: str) -> None:
        self._space = IDS if features == "ids" else NAMES

    @abstractmethod
    def labels(self, events: Events) -> Labels:
        """Return each event's label as pools take it; something that `_are_foreign` finds where it is none."""

    @abstractmethod
    def _are_foreign(self, label: Labels) -> Bools:
        """Return which labels, as `labels` returned them, are none of the model's."""

    @abstractmethod
    def _label_detail(self, events: Events, event: int) -> tuple[Reason, str]:
        """Say why an event with such a label is refused."""

    def validate(
        self,
        events: Events,
        label: Labels,
        bare: Bools,
        wrong: Bools,
        complain: Callable[[int], tuple[Reason, str]],
    ) -> tuple[Int8s, list[Refusal]]:
        """Return what the pool shall do with each event (`NOTHING` where it is refused), and what is refused.

        Parameters
        ----------
        label
            As `labels` returned.
        bare
            Events of which neither features nor label are looked at.
        wrong
            Entries of `events.value` that the model does not take.
        complain
            Says of an event with such an entry why it is refused.
        """
        alien = ~bare & (events.space != NO_FEATURES) & (events.space != self._space)
        foreign = ~bare & (events.op != Op.PREDICT) & self._are_foreign(label)
        graded = np.zeros(len(events.op), np.bool_)
        if (odd := np.flatnonzero(wrong)).size:
            graded[np.searchsorted(events.pointer, odd, side="right") - 1] = True
            graded &= ~bare
        op: Int8s = np.where(alien | foreign | graded, NOTHING, events.op)
        refusals = []
        for event in np.flatnonzero(op < 0).tolist():
            if alien[event]:
                reason, detail = Reason.WRONG_FEATURE_SPACE, self._space_detail()
            elif foreign[event]:
                reason, detail = self._label_detail(events, event)
            else:
                reason, detail = complain(event)
            refusals.append(refusal(events, event, reason, detail))
        return op, refusals

    def numbers(self, events: Events, names: Interner | None) -> UInt32s:
        """Return the features as a pool's numbers: ids as they are, names interned."""
        if names is None:
            return events.feature
        text = events.buffer.tobytes()
        starts = events.name_start.tolist()
        ends = (events.name_start + events.name_size).tolist()
        numbers = names.intern_all(text[start:end] for start, end in zip(starts, ends, strict=True))
        return np.array(numbers, np.uint32)

    def _space_detail(self) -> str:
        wanted, came = ("ids", "names") if self._space == IDS else ("names", "ids")
        return f"expected features as {wanted}, got {came}; send {wanted} or set features: {came}"


class ClassIntake(Intake):
    """Of a model whose labels are classes.

    Parameters
    ----------
    classes : sequence of int or of str
        Label 0, label 1 and so on.
    features : str
        ``ids`` or ``names``.
    """

    def __init__(self, classes: Sequence[Class], features: str) -> None:
        super().__init__(features)
        self._classes = classes

    def labels(self, events: Events) -> Int32s:
        """Return the number of each event's class; -1 where its label is none of the model's classes."""
        label = np.full(len(events.op), -1, np.int32)
        for number, name in enumerate(self._classes):
            if isinstance(name, int):
                label[(events.label_kind == INT_LABEL) & (events.label == name)] = number
                continue
            text = np.frombuffer(name.encode(), np.uint8)
            same_size = np.flatnonzero((events.label_kind == TEXT_LABEL) & (events.label_size == len(text)))
            spelled = events.buffer[events.label[same_size, np.newaxis] + np.arange(len(text))]
            label[same_size[(spelled == text).all(axis=1)]] = number
        return label

    def _are_foreign(self, label: Labels) -> Bools:
        return label < 0

    def _label_detail(self, events: Events, event: int) -> tuple[Reason, str]:
        kind = events.label_kind[event]
        came = "a floating-point number" if kind == FLOAT_LABEL else _spelled(events, event)
        listed, more = [repr(name) for name in self._classes[:_LISTED]], len(self._classes) - _LISTED
        wanted = (
            ", ".join(listed) + f" and {more} more" if more > 0 else f"{', '.join(listed[:-1])} or {listed[-1]}"
        )
        return Reason.UNKNOWN_CLASS, f"expected the label {wanted} (the model's classes), got {came}"


class NumberIntake(Intake):
    """Of a model whose labels are numbers, up to `LARGEST_VALUE` in size. An int becomes the nearest float64."""

    def labels(self, events: Events) -> Float64s:
        """Return each event's number; nan where its label is none, or too large."""
        label = np.where(events.label_kind == INT_LABEL, events.label.astype(np.float64), np.nan)
        label = np.where(events.label_kind == FLOAT_LABEL, events.label.view(np.float64), label)
        return np.where(np.abs(label) <= LARGEST_VALUE, label, np.nan)

    def _are_foreign(self, label: Labels) -> Bools:
        return np.isnan(label)

    def _label_detail(self, events: Events, event: int) -> tuple[Reason, str]:
        came = _spelled(events, event)
        if events.label_kind[event] == TEXT_LABEL:
            return (
                Reason.NOT_A_NUMBER,
                f"expected a number as the label, got the text {came}; send an int or a float",
            )
        return (
            Reason.NOT_A_NUMBER,
            f"expected a number up to {LARGEST_VALUE:g} in size as the label, got {came}; send another unit",
        )


class RangeIntake(NumberIntake):
    """Of a model whose labels are numbers of a range, and whose weights are whole numbers.

    Parameters
    ----------
    scale : Scale
        The range.
    features : str
        ``ids`` or ``names``.
    """

    def __init__(self, scale: Scale, features: str) -> None:
        super().__init__(features)
        self._scale = scale

    def labels(self, events: Events) -> Float64s:
        """Return each event's number; nan where its label is none of the range, or its weight is a fraction."""
        label = super().labels(events)
        return np.where(self._scale.holds(label) & (events.weight % UNIT == 0), label, np.nan)

    def _label_detail(self, events: Events, event: int) -> tuple[Reason, str]:
        label = super().labels(events)[event]
        if np.isnan(label):
            return super()._label_detail(events, event)
        if not self._scale.holds(label):
            wanted = f"{self._scale.low!r} to {self._scale.high!r} (label_range)"
            return Reason.OUT_OF_RANGE, f"expected a label from {wanted}, got {_spelled(events, event)}"
        came = int(events.weight[event]) / UNIT
        return (
            Reason.BAD_WEIGHT,
            f"expected a whole number as the weight, as labels are summed exactly, got {came!r}",
        )


def _spelled(events: Events, event: int) -> str:
    """Return an event's label as a person would write it."""
    kind, start = events.label_kind[event], int(events.label[event])
    if kind == TEXT_LABEL:
        text = events.buffer[start : start + int(events.label_size[event])].tobytes()
        return repr(text.decode()[:60])
    return str(start) if kind == INT_LABEL else repr(float(events.label[event].view(np.float64)))


def refusal(events: Events, event: int, reason: Reason, detail: str) -> Refusal:
    """Return the refusal of an event."""
    return Refusal(int(events.record[event]), int(events.row[event]), reason, detail)


def result_of(events: Events, event: int, seq: int, output: Output, *, keyed: bool = True) -> Result:
    """Return a result that follows from an event."""
    return Result(int(events.record[event]), int(events.row[event]), seq, output, keyed)


def source_of(records: Records, events: Events, event: int) -> Source:
    """Return where an event comes from."""
    return Source(
        topic=records.source.topic,
        partition=records.source.partition,
        offset=int(records.offsets[events.record[event]]),
        row=int(events.row[event]),
        time=int(events.time[event]),
    )


def id_digests(events: Events) -> tuple[Int64s, Int64s]:
    """Return the digests of all ids as models keep them: 61 bits and 61 more, 0 without an id."""
    three = np.uint64(3)
    return (events.id_high >> three).astype(np.int64), (events.id_low >> three).astype(np.int64)


def id_of(events: Events, event: int) -> int | str | None:
    """Return an event's id."""
    if events.id_kind[event] == NO_ID:
        return None
    start = int(events.id_start[event])
    named: int | str = msgpack.unpackb(events.buffer[start : start + int(events.id_size[event])].tobytes())
    return named
