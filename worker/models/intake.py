"""What the kinds of models have in common on the way from events to a pool: classes, features, refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgpack
import numpy as np
import numpy.typing as npt

from algorithms.core.events import Op
from algorithms.core.names import Interner
from worker.codec import Events, Reason, Source
from worker.codec.encode import Class, Output
from worker.codec.events import IDS, INT_LABEL, NAMES, NO_FEATURES, NO_ID, TEXT_LABEL, Int8s, Int32s, UInt32s
from worker.log.port import Records
from worker.models.port import Refusal, Result

Bools = npt.NDArray[np.bool_]
_LISTED = 10  # classes in a message
NOTHING = np.int8(-1)  # what a pool shall do with an event that is refused


class Intake:
    """What the settings of a model say of the events that it takes.

    Parameters
    ----------
    classes : sequence of int or of str
        Label 0, label 1 and so on.
    features : str
        ``ids`` or ``names``.
    """

    def __init__(self, classes: Sequence[Class], features: str) -> None:
        self._classes = classes
        self._space = IDS if features == "ids" else NAMES

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

    def validate(
        self,
        events: Events,
        label: Int32s,
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
        unknown = ~bare & (events.op != Op.PREDICT) & (label < 0)
        graded = np.zeros(len(events.op), np.bool_)
        if (odd := np.flatnonzero(wrong)).size:
            graded[np.searchsorted(events.pointer, odd, side="right") - 1] = True
            graded &= ~bare
        op: Int8s = np.where(alien | unknown | graded, NOTHING, events.op)
        refusals = []
        for event in np.flatnonzero(op < 0).tolist():
            if alien[event]:
                reason, detail = Reason.WRONG_FEATURE_SPACE, self._space_detail()
            elif unknown[event]:
                reason, detail = Reason.UNKNOWN_CLASS, self._class_detail(events, event)
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

    def _class_detail(self, events: Events, event: int) -> str:
        kind, start = events.label_kind[event], int(events.label[event])
        if kind == TEXT_LABEL:
            text = events.buffer[start : start + int(events.label_size[event])].tobytes()
            came = repr(text.decode()[:60])
        else:
            came = str(start) if kind == INT_LABEL else "a floating-point number"
        listed, more = [repr(name) for name in self._classes[:_LISTED]], len(self._classes) - _LISTED
        wanted = (
            ", ".join(listed) + f" and {more} more" if more > 0 else f"{', '.join(listed[:-1])} or {listed[-1]}"
        )
        return f"expected the label {wanted} (the model's classes), got {came}"


def binary_detail(value: float) -> str:
    """Return why a value of a binary feature is refused."""
    return f"expected 0 or 1 as the value of a binary feature, got {value!r}"


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


def id_of(events: Events, event: int) -> int | str | None:
    """Return an event's id."""
    if events.id_kind[event] == NO_ID:
        return None
    start = int(events.id_start[event])
    named: int | str = msgpack.unpackb(events.buffer[start : start + int(events.id_size[event])].tobytes())
    return named
