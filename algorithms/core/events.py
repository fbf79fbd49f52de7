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


class Status(IntEnum):
    """What became of an event; codes behind `SKIPPED` are refusals, which change nothing."""

    APPLIED = 0
    IGNORED = 1  # an example of weight 0; a repeated id, with on_duplicate "ignore"
    ALREADY_DROPPED = 2  # a delete of an example that the window had dropped before
    SKIPPED = 3  # the caller had refused the event before
    DUPLICATE_ID = 4
    ABSENT_ID = 5
    ABSENT_EXAMPLE = 6
    CANNOT_FORGET = 7  # a delete: a tree that only grows cannot undo an example
    TOO_MANY_KEYS = 8
    TOO_MANY_LIVE_IDS = 9
    COUNT_OVERFLOW = 10
    WRONG_LABEL = 11
    WRONG_WEIGHT = 12
    WRONG_VALUE = 13  # not finite, too large, or no category
    REPEATED_FEATURE = 14


# The same as plain numbers, for kernels.
INSERT, DELETE, PREDICT, DROP = (int(op) for op in Op)
APPLIED, IGNORED, ALREADY_DROPPED, SKIPPED = range(4)
DUPLICATE_ID, ABSENT_ID, ABSENT_EXAMPLE, CANNOT_FORGET = range(4, 8)
TOO_MANY_KEYS, TOO_MANY_LIVE_IDS, COUNT_OVERFLOW, WRONG_LABEL, WRONG_WEIGHT = range(8, 13)
