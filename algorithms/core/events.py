"""What events ask for, the same for all kinds of models."""

from __future__ import annotations

from enum import IntEnum


class Op(IntEnum):
    """What an event asks for."""

    INSERT = 0
    DELETE = 1
    PREDICT = 2
    DROP = 3  # forget the whole index


class OnDuplicate(IntEnum):
    """What to do with an insert whose id is live."""

    REJECT = 0
    IGNORE = 1
    REPLACE = 2
