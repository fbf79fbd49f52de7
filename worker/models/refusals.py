"""Why pools refuse events, in words that several kinds of models share."""

from __future__ import annotations

from worker.codec import Reason

DUPLICATE_ID = (
    Reason.DUPLICATE_ID,
    "expected a new id, this one is live; delete it first, or set on_duplicate to replace or ignore",
)
ABSENT_ID = (Reason.ABSENT_ID, "expected the id of a live example to delete, this one is not live")
ABSENT_EXAMPLE = (
    Reason.ABSENT_EXAMPLE,
    "expected an example that is there to be deleted; with these features, label and weight none can be",
)
TOO_MANY_KEYS = (
    Reason.TOO_MANY_KEYS,
    "expected a known key, this one is new and no more fit (bounds.keys); tombstones make room",
)
TOO_MANY_LIVE_IDS = (
    Reason.TOO_MANY_LIVE_IDS,
    "expected an example without an id, no more with one fit (bounds.live_ids); deletes make room",
)
COUNT_OVERFLOW = (
    Reason.COUNT_OVERFLOW,
    "expected the weights of a key to sum to less than 2^42, with this one they would not",
)
