"""Why an event is refused: the codes that dead letters and metrics carry.

They are a contract: add, never rename.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A reason code of a dead letter. The comment is what a person should understand by it."""

    # The bytes
    TOO_LARGE = "too-large"  # the record is larger than bounds.record_bytes
    MALFORMED = "malformed"  # not one whole msgpack value: truncated, trailing bytes, a reserved code, bad UTF-8
    TOO_DEEP = "too-deep"  # nested deeper than any event needs
    TOO_MANY_ELEMENTS = "too-many-elements"  # more features, rows or map entries than bounds allow
    UNSUPPORTED_TYPE = "unsupported-type"  # an extension or timestamp type somewhere inside
    # The shape of the event
    NOT_A_MAP = "not-a-map"
    BAD_FIELD_NAME = "bad-field-name"  # a key of the event's map that is not a string
    UNKNOWN_FIELD = "unknown-field"
    DUPLICATE_FIELD = "duplicate-field"
    MISSING_FIELD = "missing-field"  # x, or a column that a batch must have
    BAD_OP = "bad-op"
    BAD_ID = "bad-id"
    BAD_FEATURES = "bad-features"  # x has none of the forms, an element is no feature, or a label has features
    REPEATED_FEATURE = "repeated-feature"
    BAD_VALUE = "bad-value"  # a feature value that is not a finite number
    BAD_LABEL = "bad-label"
    MISSING_LABEL = "missing-label"
    UNEXPECTED_LABEL = "unexpected-label"  # a label on a predict
    BAD_WEIGHT = "bad-weight"
    BAD_TIME = "bad-time"  # not an int, out of range, or too far ahead of the record's timestamp
    BAD_BATCH = "bad-batch"  # the columns of a batch do not fit together
    NO_KEY = "no-key"  # the record has no key, so no model to go to
    KEY_TOO_LONG = "key-too-long"
    # The schema that the record is written with
    UNKNOWN_SCHEMA = "unknown-schema"  # the registry has none of this id
    UNUSABLE_SCHEMA = "unusable-schema"  # it is of another format, or no event can be read with it
    # The event against what is pending
    NOT_PENDING = "not-pending"  # a label of an id that is not, or no more, or of a topic where nothing is
    # The event against the model
    WRONG_FEATURE_SPACE = "wrong-feature-space"  # names sent to a model of ids, or ids to one of names
    NOT_BINARY = "not-binary"  # a value other than 0 or 1 for a binary feature
    NOT_A_CATEGORY = "not-a-category"  # a value of a nominal feature that is no whole number below 2^32
    CANNOT_FORGET = "cannot-forget"  # a delete sent to a tree that only grows
    UNKNOWN_CLASS = "unknown-class"  # a label that is not among the model's classes
    NOT_A_NUMBER = "not-a-number"  # a label that is no number, or too large, sent to a model of numbers
    OUT_OF_RANGE = "out-of-range"  # a label that is not within the range of the model's labels
    DUPLICATE_ID = "duplicate-id"
    ABSENT_ID = "absent-id"  # a delete of an id that is not live
    ABSENT_EXAMPLE = "absent-example"  # a delete by value of an example that is not there
    TOO_MANY_KEYS = "too-many-keys"
    TOO_MANY_LIVE_IDS = "too-many-live-ids"
    COUNT_OVERFLOW = "count-overflow"  # the sum of weights, or of labels, would pass 2^62 units
    # Anabranch itself
    DEFECT = "defect"  # processing the record fails, and on_defect says to pass it by
