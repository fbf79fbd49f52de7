"""What people call features and labels, as the byte strings and numbers that pools take, and back.

A feature's name says of which type it was, so that 7, "7" and b"7" are three features, and nothing is lost::

    b"b" + bytes            bytes, as they are
    b"i" + 8 bytes          a whole number, big-endian and shifted: names are in the order of the numbers
    b"s" + UTF-8            text, lone surrogates included

Pools break ties by the bytes of names. So they do by numbers, and by code points of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

LARGEST_VALUE = 1e140  # what trees count at most
_SHIFT = 1 << 63  # whole numbers of 64 bits, with a sign
_CACHE = 1 << 16  # encoded names that are kept

Feature = str | int | bytes
Label = Any  # whatever is hashable


class Entries(NamedTuple):
    """One example, as pools take it: what is absent is left out."""

    names: list[bytes]
    values: list[float]


def encoded(feature: Any) -> bytes:
    """Return the name of a feature as a pool takes it.

    Raises
    ------
    ValueError
        Where it is no text, whole number of 64 bits or bytes.
    """
    if isinstance(feature, str):
        return b"s" + str.encode(feature, "utf-8", "surrogatepass")
    if isinstance(feature, bytes):
        return b"b" + feature
    if isinstance(feature, Integral) and not isinstance(feature, bool):
        shifted = int(feature) + _SHIFT
        if not 0 <= shifted < 2 * _SHIFT:
            raise ValueError(f"expected a whole number of 64 bits as a feature, got {feature!r}; name it by text")
        return b"i" + shifted.to_bytes(8, "big")
    raise ValueError(
        f"expected a feature named by text, a whole number or bytes, got {feature!r}; a list names the features "
        "that are present, a dict gives values: of a row of numbers make dict(enumerate(row))"
    )


def decoded(name: bytes) -> Feature:
    """Return the feature that `encoded` made this name of."""
    kind, rest = name[:1], name[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    return rest if kind == b"b" else int.from_bytes(rest, "big") - _SHIFT


def mapping_of(x: Any) -> Any:
    """Return an example as a mapping or a plain collection: rows of CSR matrices and of pandas are made mappings.

    Raises
    ------
    ValueError
        Where it is neither these nor a dict, list, tuple, set or frozenset.
    """
    if isinstance(x, Mapping | list | tuple | Set):
        return x
    if hasattr(x, "tocsr"):  # scipy's sparse rows, without the need for scipy
        row = x.tocsr(copy=True)
        if len(row.shape) == 2 and row.shape[0] != 1:
            raise ValueError(f"expected one row, got a matrix of {row.shape[0]}; give them one by one")
        row.sum_duplicates()
        if len(row.data) and (row.data == 1).all():
            return dict.fromkeys(row.indices.tolist(), True)  # words that are present, rather than numbers
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    if hasattr(x, "to_dict") and hasattr(x, "index") and not hasattr(x, "columns"):
        if not x.index.is_unique:
            raise ValueError("expected a row that names each feature once, got a row with repeated names")
        return x.to_dict()
    hint = {
        np.ndarray: "make dict(enumerate(row)) of a row of numbers",
        str: "make a list of words, as text.split()",
    }
    said = next((each for kind, each in hint.items() if isinstance(x, kind)), "make a dict or a list of it")
    raise ValueError(
        "expected an example as a dict from features to values, or as a list, tuple or set of those that are "
        f"present, got {type(x).__name__}; {said}"
    )


def is_numeric(x: Any) -> bool:
    """Return whether an example has values that are numbers; an empty mapping may have them later."""
    if not isinstance(x, Mapping):
        return False
    if not x:
        return True
    values = x.values()
    return any(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in values)


class Encoder:
    """Makes entries of examples. What it keeps is a cache and no state."""

    def __init__(self) -> None:
        self._known: dict[str | bytes, bytes] = {}

    def _name(self, feature: Any) -> bytes:
        name = encoded(feature)
        # Numbers are not kept: True and 1.0 would be found in the place of 1, if that came before.
        if isinstance(feature, str | bytes):
            if len(self._known) >= _CACHE:
                self._known.clear()
            self._known[feature] = name
        return name

    def entries(self, x: Any, numeric: bool) -> Entries:
        """Return the entries of an example.

        Parameters
        ----------
        x : Mapping or collection
            As `mapping_of` returns it.
        numeric : bool
            Whether values may be any numbers, or only those that say present or absent.

        Raises
        ------
        ValueError
            Where a feature or a value is none; it says what to do.
        """
        try:
            # To ask for a Mapping takes long, for a row of a few numbers.
            is_mapping = type(x) is dict or isinstance(x, Mapping)
            return self._of_mapping(x, numeric) if is_mapping else self._of_names(x)
        except TypeError as error:  # an unhashable feature
            raise ValueError(f"expected features named by text, whole numbers or bytes, got {x!r}") from error

    def _of_names(self, x: Iterable[Any]) -> Entries:
        """Return the entries of features that are present; one that is named twice is present once."""
        known = self._known
        names = [known.get(feature) or self._name(feature) for feature in x]
        if len(set(names)) < len(names):
            names = list(dict.fromkeys(names))
        return Entries(names, [1.0] * len(names))

    def _of_mapping(self, x: Mapping[Any, Any], numeric: bool) -> Entries:
        known = self._known
        names: list[bytes] = []
        values: list[float] = []
        categories = False
        for feature, value in x.items():
            if type(value) is float or type(value) is int:
                number: Any = value
                if not numeric and value != 0 and value != 1:
                    raise ValueError(_not_binary(feature, value))
            elif isinstance(value, str):
                feature, number, categories = _category(feature, value), 1.0, True
            else:
                number = _odd(feature, value, numeric)
            if not -LARGEST_VALUE <= number <= LARGEST_VALUE:
                raise ValueError(_not_finite(feature, value))
            if number:
                names.append(known.get(feature) or self._name(feature))
                values.append(number)
            elif feature not in known:
                self._name(feature)  # a wrong name is wrong where it is absent, too
        if categories and len(set(names)) < len(names):
            raise ValueError(f"expected each feature once, got one twice, as a value and as name=value, in {x!r}")
        return Entries(names, values)


def _odd(feature: Any, value: Any, numeric: bool) -> Any:
    """Return the number that a value of a rarer type is."""
    if value is None:
        return 0.0
    if isinstance(value, bool | np.bool_):
        return 1.0 if value else 0.0
    if isinstance(value, Real):
        try:
            number = float(value)
        except OverflowError:  # of a fraction
            number = np.inf
        if not numeric and number not in (0.0, 1.0):
            raise ValueError(_not_binary(feature, value))
        return number
    raise ValueError(
        f"expected a number, text, True, False or None as the value of the feature {feature!r}, got {value!r}"
    )


def _category(feature: Any, value: str) -> str | bytes:
    """Return the binary feature that says that a feature has a value which is text."""
    if isinstance(feature, bytes):
        return feature + b"=" + value.encode("utf-8", "surrogatepass")
    encoded(feature)  # what is no name is none before a "=" either
    return f"{feature}={value}"


def _not_binary(feature: Any, value: Any) -> str:
    return (
        f"expected True or False, 1 or 0, as the value of the feature {feature!r}, since features are present or "
        f"absent here, got {value!r}; make a tree with features='numeric' for numbers, or compare: x > 3"
    )


def _not_finite(feature: Any, value: Any) -> str:
    return (
        f"expected a finite number up to {LARGEST_VALUE:g} in size as the value of the feature {feature!r}, got "
        f"{value!r}; leave the feature out, or give None, where its value is not known"
    )
