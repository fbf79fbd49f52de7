"""Streams that are made, not recorded: one file a generator, all behind `GENERATORS`."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from worker.sources.generators.agr import Agr
from worker.sources.generators.drift import drift
from worker.sources.generators.friedman import Friedman
from worker.sources.generators.led import Led
from worker.sources.generators.planes import Planes
from worker.sources.generators.port import BINARY, NUMBERS, NUMERIC, Attribute, Examples, Generator, Schema
from worker.sources.generators.rbf import Rbf
from worker.sources.generators.rtg import Rtg
from worker.sources.generators.sea import Sea

__all__ = [
    "BINARY",
    "GENERATORS",
    "NUMBERS",
    "NUMERIC",
    "Attribute",
    "Examples",
    "Generator",
    "Schema",
    "drift",
    "generate",
]

# A dataclass, whose fields are the parameters; each has a default, which tells its type.
GENERATORS: dict[str, type[Any]] = {
    "sea": Sea,
    "led": Led,
    "agr": Agr,
    "rtg": Rtg,
    "rbf": Rbf,
    "friedman": Friedman,
    "planes": Planes,
}


def generate(text: str) -> Generator:
    """Return a stream by its description.

    Parameters
    ----------
    text : str
        `NAME` or `NAME:PARAMETER=VALUE,...`, as in `led:noise=10,seed=7`; then, for each drift,
        `+NAME:...@AT` or `+NAME:...@AT/WIDTH`, with AT in examples from the start of the whole. Seeds that are not
        given are 1, then 2 after the first drift, and so on, so that no part repeats another.

    Raises
    ------
    ValueError
        With what was expected.

    Examples
    --------
    >>> stream = generate("sea:function=1+sea:function=2@15000+sea:function=3@30000/1000")
    >>> stream.take(100).value.shape
    (100, 3)
    """
    first, *others = text.split("+")
    stream = _one(first, 1)
    for number, part in enumerate(others, 2):
        described, mark, place = part.rpartition("@")
        if not mark:
            raise ValueError(
                f"expected NAME:...@AT or NAME:...@AT/WIDTH after +, got {part!r}; say where the drift is"
            )
        at, slash, width = place.partition("/")
        stream = drift(
            stream,
            _one(described, number),
            _value("the place of a drift", at, 0),
            _value("the width of a drift", width, 0) if slash else 0,
            seed=number,
        )
    return stream


def _one(text: str, seed: int) -> Generator:
    name, _, given = text.partition(":")
    if name not in GENERATORS:
        raise ValueError(f"expected one of {', '.join(GENERATORS)}, got {name!r}; see led:noise=10,seed=7")
    defaults = {field.name: field.default for field in fields(GENERATORS[name]) if field.default is not MISSING}
    values: dict[str, Any] = {}
    for pair in given.split(",") if given else ():
        parameter, _, value = pair.partition("=")
        if parameter not in defaults:
            known = ", ".join(f"{known}={_text(default)}" for known, default in defaults.items())
            raise ValueError(f"expected some of {known}, got {pair!r}; name the parameters that {name} has")
        if parameter in values:
            raise ValueError(f"expected {parameter} once, got it again; leave one out")
        values[parameter] = _value(parameter, value, defaults[parameter])
    stream: Generator = GENERATORS[name](**{"seed": seed, **values})
    return stream


def _value(parameter: str, text: str, default: Any) -> Any:
    """Return a value of the type that the default has."""
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValueError(f"expected {parameter}=true or {parameter}=false, got {text!r}; write one of these")
        return text == "true"
    try:
        return type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"expected {parameter} to be {kind}, got {text!r}; write one") from None


def _text(default: Any) -> str:
    return str(default).lower()
