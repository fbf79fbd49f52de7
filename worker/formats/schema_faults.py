"""Why a record is refused for the schema that it is written with."""

from __future__ import annotations

from worker.codec.reasons import Reason
from worker.formats.port import Refused


class UnusableError(Exception):
    """What was expected of a schema, what it is, and what to do."""


def unknown_schema(number: int) -> Refused:
    """Return why a record whose schema nobody knows is refused."""
    return Refused(
        Reason.UNKNOWN_SCHEMA,
        f"expected the id of a schema in the registry, found {number}, which it does not have; "
        "register the schema before events are written with it",
    )


def unusable_schema(number: int, what: str) -> Refused:
    """Return why a record is refused whose schema is not one to read events with."""
    return Refused(Reason.UNUSABLE_SCHEMA, f"expected schema {number} to be {what}")
