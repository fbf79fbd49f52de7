"""What the client would say of its properties, asked without a client, and told without their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import KafkaException, Producer

_END = "anabranch.end"  # no property: the client stops at it, and is never made
_NO_NUMBER = "Invalid value for"  # how the client refuses what is no number; of other kinds it quotes the value
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LOADS = "plugin.library.paths"  # which the client loads as soon as it is told of them


class Fault(NamedTuple):
    """What is wrong with a property."""

    expected: str
    about_name: bool = False
    meant: str | None = None  # the name that may have been meant


def faults(properties: Mapping[str, str | None]) -> dict[str, Fault]:
    """Return those of the properties that the client does not take; of a value of None only the name counts."""
    return {name: fault for name, value in properties.items() if (fault := _fault(name, value)) is not None}


def _fault(name: str, value: str | None) -> Fault | None:
    if name == _LOADS:
        return None
    said = _said(name, value or "")
    if said.startswith(("No such", "Internal property")):
        dotted = name.replace("_", ".")
        known = dotted != name and not _said(dotted, "").startswith(("No such", "Internal property"))
        return Fault("the name of a property of librdkafka", about_name=True, meant=dotted if known else None)
    if said.startswith("Java"):
        what = "a property of librdkafka, not one of clients in Java (see sasl.username, ssl.ca.location)"
        return Fault(what, about_name=True)
    if value is None:
        return None
    if "\0" in value:
        return Fault("a value without the character NUL, where the client would end it")
    # The client reads a number as far as it is one: of 1e5 it would take the 1, and 010 for 8.
    if _said(name, "!").startswith(_NO_NUMBER):
        is_whole = _said(name, "inf").startswith(_NO_NUMBER)
        if not (_WHOLE if is_whole else _NUMBER).fullmatch(value):
            return Fault("a whole number in digits" if is_whole else "a number in digits")
    if not said:
        return None
    if found := re.search(r"outside allowed range (\S+)\.\.(\S+)", said):
        return Fault(f"a number from {found[1]} to {found[2]}")
    return Fault("a value that the client takes, see CONFIGURATION.md of librdkafka")


def _said(name: str, value: str) -> str:
    """Return what the client says against a property, nothing where it takes it."""
    try:
        Producer({name: value, _END: ""})
    except KafkaException as failure:
        said: str = failure.args[0].str()
        return "" if _END in said and name != _END else said
    except (TypeError, ValueError) as failure:  # of functions, and of text that is no UTF-8
        return str(failure)
    raise AssertionError("the client took a property that there is not")
