"""What callers give, checked in one place for all pools: errors say what was expected, and what came.

A number may be Python's or numpy's; True, False (but as labels), None and text are no numbers. Where an error is
raised nothing has been changed, and no name interned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import UInt32s
from algorithms.core.events import Events
from algorithms.core.fixed_point import MAX_TOTAL, UNIT
from algorithms.core.names import Interner

_LAST_KEY = (1 << 31) - 2  # one more than it can be counted in an int32, which numbers of keys are
_LAST_OP = 3
_LAST_ID = (1 << 32) - 1  # of features
_HUGE = 1 << 1000  # whole numbers beyond it are refused
_ORDINARY = 1e300  # less than it

# The columns of events, but for the label, which each pool has its own.
_DTYPES: dict[str, type] = {
    "key": np.int32,
    "op": np.int8,
    "weight": np.int64,
    "time": np.int64,
    "named": np.int8,
    "id_high": np.int64,
    "id_low": np.int64,
    "pointer": np.int64,
    "feature": np.uint32,
    "value": np.float64,
}


# --- one at a time


def _plain(given: Any) -> Any:
    """Return numpy's number as Python's."""
    return given.item() if isinstance(given, np.generic) else given


def is_number(given: Any) -> bool:
    """Return whether something is a number of Python's, which True and False are not here."""
    return isinstance(given, int | float) and not isinstance(given, bool)


def whole(what: str, given: Any, least: int, most: int) -> int:
    """Return a whole number; raise ValueError where it is none, or too large."""
    if type(given) is int and least <= given <= most:  # as nearly always; the rest takes ten times as long
        return given
    number = _plain(given)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not is_number(number) or isinstance(number, float) or not least <= number <= most:
        raise ValueError(f"expected {what}, a whole number from {least} to {most}, got {given!r}")
    return int(number)


def number(what: str, given: Any, most: float) -> float:
    """Return a number; raise ValueError where it is none, not finite or too large."""
    found = _plain(given)
    if not is_number(found) or not abs(found) <= most:
        raise ValueError(f"expected {what}, a finite number up to {most:g} in size, got {given!r}")
    return float(found)


def key_of(given: Any) -> int:
    """Return the number of a key; raise ValueError where it is none."""
    return whole("the number of a key", given, 0, _LAST_KEY)


def label_of(given: Any, classes: int) -> int:
    """Return the number of a class; raise ValueError where it is none. True is 1: comparisons tell two classes."""
    if type(given) is int and 0 <= given < classes:
        return given
    found = _plain(given)
    return int(found) if isinstance(found, bool) else whole("a label", given, 0, classes - 1)


def fixed_point_of(given: Any, least: int = 0) -> int:
    """Return a weight in units of 2^-20; raise ValueError where it is none, below `least` units or too large."""
    if type(given) is float and given == 1.0:
        return UNIT
    found = _plain(given)
    fits = is_number(found) and 0 <= found < MAX_TOTAL // UNIT
    units = round(found * UNIT) if fits else -1
    if not least <= units < MAX_TOTAL:
        from_ = "2^-20" if least else "0"
        raise ValueError(f"expected a weight, a number from {from_} to less than 2^42, got {given!r}")
    return units


def _features(x: Any, names: Interner | None) -> list[int] | list[bytes]:
    """Return the features of an example as a pool takes them; raise ValueError where they are none."""
    if isinstance(x, str | bytes | bytearray) or not isinstance(x, Iterable):
        raise ValueError(f"expected a list of features, or a mapping of features to values, got {x!r}")
    if names is None:
        found: Any = [
            each if type(each) is int and 0 <= each <= _LAST_ID else whole("a feature id", each, 0, _LAST_ID)
            for each in x
        ]
    else:
        found = list(x)
        for name in found:
            if not isinstance(name, bytes):
                raise ValueError(f"expected a feature's name in bytes, as this pool has names, got {name!r}")
    if len(set(found)) < len(found):
        twice = next(feature for at, feature in enumerate(found) if feature in found[:at])
        raise ValueError(f"expected each feature of an example once, got {twice!r} twice")
    return found


def _numbers(features: Any, names: Interner | None) -> UInt32s:
    return np.array(features if names is None else names.intern_all(features), np.uint32)


def features_of(x: Iterable[Any], names: Interner | None) -> UInt32s:
    """Return the numbers of the features that are present in an example; raise ValueError where they are none."""
    if isinstance(x, Mapping):
        raise ValueError(f"expected a list of the features that are present, without values, got {x!r}")
    return _numbers(_features(x, names), names)


def number_of(feature: int | bytes, names: Interner | None) -> int:
    """Return the number of a feature: an id is its own, a name is interned; raise ValueError where it is none."""
    return int(features_of([feature], names)[0])


def entries_of(x: Mapping[Any, float] | Iterable[Any], names: Interner | None) -> tuple[UInt32s, npt.NDArray[Any]]:
    """Return the features of one example, with their values, or those that are present.

    Raises
    ------
    ValueError
        Where they are none. Values may be any numbers, nan among them: what is too large is for the pool to say.
    """
    features = _features(x, names)
    if not isinstance(x, Mapping):
        return _numbers(features, names), np.ones(len(features))
    values = _at_once(list(x.values()))
    if values is not None:
        return _numbers(features, names), values
    values = np.ones(len(features))
    for at, (feature, given) in enumerate(x.items()):
        found = _plain(given)
        if not is_number(found) or (isinstance(found, int) and abs(found) > _HUGE):
            raise ValueError(f"expected a number as the value of the feature {feature!r}, got {given!r}")
        values[at] = found
    return _numbers(features, names), values


def _at_once(given: list[Any]) -> npt.NDArray[Any] | None:
    """Return numbers of Python's as an array; None where each is to be looked at, as one is huge, or is none."""
    if not {float, int}.issuperset(map(type, given)):
        return None
    try:
        values = np.array(given, np.float64)
    except OverflowError:
        return None
    return values if np.abs(values).max(initial=0.0) <= _ORDINARY else None


def id_of(given: Any) -> int | str | bytes:
    """Return the id of an example; raise ValueError where it is none."""
    found = _plain(given)
    if not isinstance(found, int | str | bytes) or isinstance(found, bool):
        raise ValueError(f"expected an id that is a whole number, text or bytes, got {given!r}")
    return found


def digest_of(id: int | str | bytes) -> tuple[int, int]:
    """Return the digest of an id, 61 bits and 61 more; 7 and "7" are different ids."""
    text = id if isinstance(id, bytes) else str(id).encode()
    digest = hashlib.blake2b(text, digest_size=16, person=type(id).__name__.encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 3, int.from_bytes(digest[8:], "little") >> 3


# --- many


def check_columns(events: Events, label: type, names: Interner | None) -> None:
    """Raise ValueError unless the columns of events fit together and no kernel can be led astray by them.

    Labels, weights and values are for the pools, which refuse an event of many.

    Parameters
    ----------
    events : Events
        Of any number.
    label : type
        Of the labels.
    names : Interner, optional
        Of the pool.
    """
    columns = events._asdict()
    clock = columns.pop("clock")
    if clock.shape not in ((0, 3), (len(events.key), 3)) or clock.dtype != np.int64:
        raise ValueError(f"expected a clock of int64 with 3 columns for all events or none, got {clock.shape}")
    for name, column in columns.items():
        dtype = np.dtype(_DTYPES.get(name, label))
        if not isinstance(column, np.ndarray) or column.dtype != dtype or column.ndim != 1:
            came = f"{column.dtype} of {column.ndim}" if isinstance(column, np.ndarray) else type(column).__name__
            raise ValueError(f"expected the column {name} as an array of {dtype} of 1 dimension, got {came}")
    n, pointer, entries = len(events.key), events.pointer, len(events.feature)
    for name, column in columns.items():
        length = {"pointer": n + 1, "feature": entries, "value": entries}.get(name, n)
        if len(column) != length:
            raise ValueError(f"expected {length} rows in the column {name}, got {len(column)}")
    if pointer[0] != 0 or pointer[-1] != entries or (pointer[1:] < pointer[:-1]).any():
        raise ValueError(f"expected a pointer that ascends from 0 to {entries}, got {pointer.tolist()[:9]}")
    bounds: list[tuple[str, npt.NDArray[Any], int, int]] = [
        ("keys", events.key, 0, _LAST_KEY),
        ("ops", events.op, -128, _LAST_OP),
    ]
    if names is not None:
        bounds.append(("features", events.feature, 0, len(names.arrays.size) - 1))
    for name, column, least, most in bounds:
        if column.size and not least <= int(column.min()) <= int(column.max()) <= most:
            raise ValueError(f"expected {name} from {least} to {most}, got {column.min()} to {column.max()}")
