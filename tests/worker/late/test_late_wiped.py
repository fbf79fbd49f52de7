"""What waited and is forgotten is in no array any more: checkpoints are copies of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.worker.late.test_late_table import PENDING, TREE, Topic
from worker.audit import digest_of
from worker.codec import Bounds
from worker.models import KINDS
from worker.settings.topics import PendingSettings

NAME, NUMBER, VALUE = "a diagnosis that nobody else has", 4_000_000_007, 1234.0625
NAMES = TREE | {"features": "names", "attributes": {"default": "numeric"}, "evaluate": {}, "policy": "periodic"}
IDS = TREE | {"attributes": {"default": "numeric"}, "evaluate": {}, "policy": "periodic"}

# How an example goes without being learned.
WAYS: dict[str, Callable[[Topic], Any]] = {
    "delete": lambda topic: topic.do("delete", id="somebody"),
    "tombstone": lambda topic: topic.send(None),
    "max": lambda topic: [topic.do("predict", id=each, x=[]) for each in range(3)],
    "for": lambda topic: [
        topic.do("insert", id=None, x=[], y="a", timestamp=at)
        for at in (1_000, 1_000, 90_000, 90_000, 90_000, 90_000)
    ],
    "a label that no model takes": lambda topic: topic.do("label", id="somebody", y="none of them"),
}


def _traces(topic: Topic) -> list[str]:
    """Return the arrays that hold the name, the feature's number, the value or the id's digest."""
    found = []
    for model, arrays in topic.pipeline.arrays().items():
        for array_name, array in arrays.items():
            name, raw = f"{model} {array_name}", array.tobytes()
            if NAME.encode() in raw:
                found.append(f"{name}: the name")
            if array.dtype == np.uint32 and (array == NUMBER).any():
                found.append(f"{name}: the number")
            if np.float64(VALUE).tobytes() in raw:
                found.append(f"{name}: the value")
            if array.dtype == np.int64 and np.isin(array, digest_of("somebody")).any():
                found.append(f"{name}: the id")
    return found


def test_a_second_predict_wipes_the_first() -> None:
    """The id is there, its features are not."""
    topic = Topic({"tree": NAMES})
    topic.do("predict", id="somebody", x={NAME: VALUE})
    topic.do("predict", id="somebody", x=[])
    assert _traces(topic) == ["~pending pending.examples.rows: the id"]


def test_a_key_whose_examples_go_with_a_smaller_max_is_wiped() -> None:
    """Nothing that still waits is of that key, so its bytes are in no checkpoint."""
    topic = Topic({"tree": IDS}, PENDING | {"max": 4})
    for key, named in ((b"key", 1), (b"the key of somebody", "somebody"), (b"key", 2), (b"key", 3)):
        topic.do("predict", id=named, x=[1], key=key)
    models = {"tree": KINDS["tree"].settings.model_validate({"input": "in", **IDS})}
    limits = PendingSettings.model_validate({"max": 2, "for": "10s"})
    topic.pipeline.have(models, Bounds(), limits, kept=list(models))
    topic.pipeline.late.check()
    assert [each.key for each in topic.waiting()] == [b"key", b"key"]
    of_store = topic.pipeline.late.arrays()["~pending"].values()
    assert not any(b"somebody" in array.tobytes() for array in of_store)


def test_what_was_due_does_not_wait_again_with_a_longer_span() -> None:
    """It goes some at a time; what had not gone by the change was due all the same."""
    topic = Topic({"tree": IDS}, PENDING | {"max": 100})
    for each in range(40):
        topic.do("predict", id=each, x=[1])
    for timestamp in (1_000, 90_000, 90_000, 90_000):
        topic.do("insert", id=None, x=[], y="a", timestamp=timestamp)
    assert len(topic.waiting()) > 5
    models = {"tree": KINDS["tree"].settings.model_validate({"input": "in", **IDS})}
    limits = PendingSettings.model_validate({"max": 100, "for": "1d"})
    topic.pipeline.have(models, Bounds(), limits, kept=list(models))
    topic.pipeline.late.check()
    assert topic.waiting() == []
    assert topic.pipeline.late.store is not None
    assert not topic.pipeline.late.arrays()["~given tree"]["said"].any()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("space", ["names", "ids"])
def test_what_is_forgotten_is_wiped(way: str, space: str) -> None:
    """In the store of the partition, in the names of features, and in what models answered."""
    topic = Topic({"tree": NAMES if space == "names" else IDS})
    topic.do("insert", id=None, x=["cough"] if space == "names" else [1], y="b")
    x: Any = {NAME: VALUE} if space == "names" else {NUMBER: VALUE}
    topic.do("predict", id="somebody", x=x)
    assert len(_traces(topic)) == 3
    given = topic.pipeline.late.arrays()["~given tree"]["said"]
    assert given.any(), "what was answered"
    WAYS[way](topic)
    assert _traces(topic) == []
    if way != "max":
        assert not topic.pipeline.late.arrays()["~given tree"]["said"].any()
