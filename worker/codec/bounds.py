"""Bounds on what comes from outside; each is a setting (`bounds:` in the settings file)."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Bounds:
    """What a record may at most hold; anything beyond goes to the dead letters."""

    record_bytes: Annotated[int, Ge(1), Le(64 << 20)] = 8 << 20
    features: Annotated[int, Ge(1), Le(1 << 24)] = 65_536  # of one event
    rows: Annotated[int, Ge(1), Le(1 << 24)] = 65_536  # of one columnar record
    elements: Annotated[int, Ge(1), Le(1 << 26)] = 4_194_304  # features of all rows of one record
    name_bytes: Annotated[int, Ge(1), Le(1 << 16)] = 256  # of a feature name or a class name
    id_bytes: Annotated[int, Ge(1), Le(1 << 16)] = 256  # of an example's id
    key_bytes: Annotated[int, Ge(1), Le(1 << 16)] = 1_024  # of a model key
    ahead_ms: Annotated[int, Ge(0)] = 86_400_000  # how far `ts` may lie after the record's timestamp
    keys: Annotated[int, Ge(1), Le(1 << 30)] = 1_000_000  # of one model name in one partition
    live_ids: Annotated[int, Ge(1), Le(1 << 30)] = 10_000_000  # of one model name in one partition
    dead_letter_bytes: Annotated[int, Ge(64)] = 900_000  # original bytes kept; the rest is cut, with a digest
