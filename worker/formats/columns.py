"""Columns to an event: which one is the label, the id and so on, and what the others are as features."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from worker.codec.reasons import Reason
from worker.codec.reference import brief
from worker.codec.survey import DEPTH, RefusedError
from worker.formats.port import Document, Shape
from worker.settings.topics import ColumnSettings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_NUMBERS, _TEXTS = {int, float}, {str}
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_UNITS: dict[str, Callable[[int | float], int]] = {
    "s": lambda time: round(time * 1_000),
    "ms": round,
    "us": lambda time: round(time // 1_000),
    "ns": lambda time: round(time // 1_000_000),
}


def to_event(columns: ColumnSettings) -> Shape:
    """Return what makes an event of a document with these columns.

    A number is the value of a feature with the column's name. True is 1. A text gives the feature COLUMN=TEXT, and
    a list of texts or ints one feature for each. Without a value, empty or false, a column gives nothing.
    """
    roles: list[Any] = [
        columns.op,
        columns.id,
        columns.time,
        columns.label,
        columns.weight,
    ]  # no column is called None
    ignored, wanted, unit = columns.ignore, columns.features, columns.time_unit

    def shape(document: Document) -> Document:
        flat = _flattened(document) if dict in map(type, document.values()) else document
        op, example, time, label, weight = [flat.pop(name, None) for name in roles]
        for name in ignored:
            flat.pop(name, None)
        if wanted is not None:
            flat = {name: flat[name] for name in wanted if name in flat}
        event: Document = {} if op is None else {"op": op}
        if example is not None and example != "":
            event["id"] = example
        if time is not None:
            event["ts"] = _time(time, unit)
        if op == "delete" and "id" in event:
            return event  # a delete has no more than its id
        if op != "label":  # a label is of features that came before
            event["x"] = _features(flat)
        if op != "predict":  # and a predict no label
            if label is not None:
                event["y"] = label if type(label) is int else _label(label)
            if weight is not None:
                event["w"] = weight
        return event

    return shape


def _features(flat: Document) -> Document | list[str]:
    """Return what an event has as x: a map of numbers, or a list of those that are 1."""
    kinds = set(map(type, flat.values()))
    if kinds <= _NUMBERS:
        return flat
    if kinds == _TEXTS:  # whether one comes twice is for the decoder to see
        return [f"{name}={content}" for name, content in flat.items() if content]
    features: Document = {}
    for name, content in flat.items():
        kind = type(content)
        if kind is str and content:
            name, content = f"{name}={content}", 1
        elif kind is not int and kind is not float:
            _add(features, name, content)
            continue
        if name in features:
            raise _repeated(name)
        features[name] = content
    return features


def _flattened(document: Document) -> Document:
    """Return a document without others inside: OUTER.INNER stands for what they hold."""
    flat: Document = {}
    waiting = [("", document, 1)]
    while waiting:
        prefix, inner, depth = waiting.pop()
        if depth > DEPTH:
            raise RefusedError(
                Reason.TOO_DEEP,
                f"expected at most {DEPTH} objects inside each other, found more; flatten the record",
            )
        for name, content in inner.items():
            if isinstance(content, dict):
                waiting.append((f"{prefix}{name}.", content, depth + 1))
            elif f"{prefix}{name}" in flat:
                raise RefusedError(
                    Reason.DUPLICATE_FIELD,
                    f"expected each column once, {brief(f'{prefix}{name}')} comes again; send it once",
                )
            else:
                flat[f"{prefix}{name}"] = content
    return flat


def _add(features: dict[str, Any], name: str, content: object) -> None:
    """Add what a column that is no number and no text gives."""
    match content:
        case None | False | "":
            return
        case True:
            _put(features, name)
        case list() if all(isinstance(each, str | int) and not isinstance(each, bool) for each in content):
            for each in content:
                _put(features, f"{name}={each}")
        case _:
            found = brief(content) if isinstance(content, bytes | list) else type(content).__name__
            raise RefusedError(
                Reason.BAD_FEATURES,
                f"expected the column {brief(name)} to be a number, a text, true, false, or a list of texts or "
                f"ints, found {found}; ignore the column, or send one of these",
            )


def _put(features: dict[str, Any], name: str) -> None:
    if name in features:
        raise _repeated(name)
    features[name] = 1


def _repeated(name: str) -> RefusedError:
    return RefusedError(
        Reason.REPEATED_FEATURE, f"expected each feature once, {brief(name)} comes again; send it once"
    )


def _label(label: object) -> object:
    """Return a label, whole numbers and truth values as ints: tables do not tell 1 and 1.0 apart."""
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return int(label) if isinstance(label, bool) else label


def _time(time: object, unit: str) -> object:
    """Return a time in ms; what is none is left for the decoder to refuse."""
    try:
        if isinstance(time, str):
            return _moment(time)
        if isinstance(time, int | float) and not isinstance(time, bool):
            return _UNITS[unit](time)
    except (ValueError, OverflowError):
        pass
    return time


def _moment(text: str) -> object:
    """Return what RFC 3339 writes, in ms; without a zone it is UTC. Parts of a ms are cut."""
    match = _TIME.fullmatch(text)
    if match is None:
        return text
    day, clock, fraction, zone = match.groups()
    time = datetime.strptime(f"{day} {clock}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=_zone(zone or "Z"))
    return (time - _EPOCH) // _MS + int((fraction or "0").ljust(3, "0")[:3])


def _zone(zone: str) -> timezone:
    if zone in "Zz":
        return UTC
    minutes = 60 * int(zone[1:3]) + int(zone[4:6])
    return timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))
