"""Why pools refuse events, in words for people; a pool refuses no event for anything else."""

from __future__ import annotations

from algorithms.core.events import Status
from worker.codec import Reason

REFUSALS = {
    Status.DUPLICATE_ID: (
        Reason.DUPLICATE_ID,
        "expected a new id, this one is live; delete it first, or set on_duplicate to replace or ignore",
    ),
    Status.ABSENT_ID: (Reason.ABSENT_ID, "expected the id of a live example to delete, this one is not live"),
    Status.ABSENT_EXAMPLE: (
        Reason.ABSENT_EXAMPLE,
        "expected an example that is there to be deleted; with these features, label and weight none can be",
    ),
    Status.REPEATED_FEATURE: (
        Reason.REPEATED_FEATURE,
        "expected each feature once, got FEATURE=CATEGORY, the name of a category, beside the nominal FEATURE",
    ),
    Status.TOO_MANY_KEYS: (
        Reason.TOO_MANY_KEYS,
        "expected a known key, this one is new and no more fit (bounds.keys); tombstones make room",
    ),
    Status.TOO_MANY_LIVE_IDS: (
        Reason.TOO_MANY_LIVE_IDS,
        "expected an example without an id, no more with one fit (bounds.live_ids); deletes make room",
    ),
    Status.COUNT_OVERFLOW: (
        Reason.COUNT_OVERFLOW,
        "expected the weights of a key to sum to less than 2^42 (of labels that are numbers: 2^62 / units in the "
        "range, and in trees 2^31), with this one they would not",
    ),
    Status.CANNOT_FORGET: (
        Reason.CANNOT_FORGET,
        "expected no delete, a tree only grows; send a tombstone to drop the key's tree, or set on_delete: ignore",
    ),
}
