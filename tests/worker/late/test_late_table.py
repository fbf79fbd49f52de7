"""What becomes of an event whose id is pending or is not, line by line of the table in worker/README.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.worker.late.test_late_labels import IDS, SOURCE, pipeline_of
from worker.codec import DeadLetter, DelayedEvaluation, Evaluation, Prediction, decode_output
from worker.codec.event import encode_batch, encode_event
from worker.late import Tally
from worker.late.pending import Waiting
from worker.log.port import Records
from worker.models.port import Outcome
from worker.pipeline import Pipeline, Processed

SPLIT = {"kind": "split", "classes": ["a", "b"], "features": "ids"}
TREE = {"kind": "tree", "classes": ["a", "b"], "features": "ids"}
PENDING = {"max": 3, "for": "10s"}


class Topic:
    """A pipeline, and the records that it has had."""

    def __init__(self, models: dict[str, dict[str, Any]], pending: dict[str, Any] | None = PENDING) -> None:
        self.pipeline: Pipeline = pipeline_of(models, pending)
        self.offset = 0

    def send(self, value: bytes | None, key: bytes = b"key", timestamp: int = 1_000) -> Processed:
        """Let it process a record."""
        records = Records(
            SOURCE, np.array([self.offset]), np.array([timestamp]), [key], [value], [()], self.offset + 1
        )
        self.offset += 1
        processed = self.pipeline.process(records)
        self.pipeline.late.check()
        for model in self.pipeline.models:
            model.check()
        return processed

    def do(self, op: str, id: Any = 7, x: Any = None, y: Any = None, **more: Any) -> Processed:
        """Let it process an event."""
        timing = {name: more.pop(name) for name in ("key", "timestamp") if name in more}
        return self.send(encode_event(x, y, op=op, id=id, **more), **timing)

    def waiting(self) -> list[Waiting]:
        """Return what waits."""
        assert self.pipeline.late.store is not None
        return [each for _, each in self.pipeline.late.store.waiting()]

    def examples(self, model: str = "split") -> list[tuple[int, int, tuple[int, ...]]]:
        """Return label, weight in units, and features of the live examples of a model that has them."""
        found = next(each for each in self.pipeline.models if each.name == model).holdings()
        assert found is not None
        return [
            (each.label, each.weight, tuple(feature for feature, _ in each.features))  # type: ignore[misc]
            for key in sorted(found)
            for each in found[key].live
        ]


def reasons(processed: Processed) -> list[tuple[str | None, str]]:
    """Return who refused something, and why."""
    letters = [decode_output(record.value or b"", record.headers) for record in processed.outputs]
    return [(letter.model, str(letter.reason)) for letter in letters if isinstance(letter, DeadLetter)]


UNIT = 1 << 20


def test_a_label_teaches_what_was_predicted() -> None:
    """With its own weight and time, under the id of the predict; the answer to the predict is as ever."""
    topic = Topic({"split": SPLIT})
    [answer] = topic.do("predict", x=[3, 5]).outputs
    assert isinstance(decode_output(answer.value or b"", answer.headers), Prediction)
    assert len(topic.waiting()) == 1
    assert topic.examples() == []
    done = topic.do("label", y="b", w=2.5)
    assert done.late == Tally(labelled=1)
    assert topic.examples() == [(1, int(2.5 * UNIT), (3, 5))]
    assert topic.waiting() == []
    assert reasons(topic.do("delete")) == []
    assert topic.examples() == []


def test_a_second_predict_takes_the_place_of_the_first() -> None:
    """Its features are learned, and it counts as new: others are older."""
    topic = Topic({"split": SPLIT})
    for named, x in ((7, [1]), (8, [2]), (9, [3]), (7, [4]), (10, [5])):
        topic.do("predict", id=named, x=x)
    assert [each.features for each in topic.waiting()] == [((3, 1.0),), ((4, 1.0),), ((5, 1.0),)]
    assert reasons(topic.do("label", id=8, y="a")) == [(None, "not-pending")]
    topic.do("label", id=7, y="a")
    assert topic.examples() == [(0, UNIT, (4,))]


def test_a_predict_without_an_id_is_not_kept() -> None:
    """Nobody could name it."""
    topic = Topic({"split": SPLIT})
    topic.do("predict", id=None, x=[1])
    assert topic.waiting() == []


def test_keys_do_not_share_ids() -> None:
    """A label goes with the key of its predict."""
    topic = Topic({"split": SPLIT})
    topic.do("predict", x=[1], key=b"one")
    assert reasons(topic.do("label", y="a", key=b"other")) == [(None, "not-pending")]
    assert reasons(topic.do("label", y="a", key=b"one")) == []


def test_an_insert_of_what_waits() -> None:
    """It is learned with its own features, and nothing waits any more."""
    topic = Topic({"split": SPLIT})
    topic.do("predict", x=[1])
    done = topic.do("insert", x=[2], y="a")
    assert done.late == Tally(settled=1)
    assert topic.examples() == [(0, UNIT, (2,))]
    assert reasons(topic.do("label", y="a")) == [(None, "not-pending")]


@pytest.mark.parametrize(
    ("rule", "refused", "held"),
    [
        ("reject", [("split", "duplicate-id")], (0, UNIT, (1,))),
        ("replace", [], (1, UNIT, (2,))),
        ("ignore", [], (0, UNIT, (1,))),
    ],
)
def test_a_label_of_a_live_id(rule: str, refused: list[tuple[str, str]], held: Any) -> None:
    """`on_duplicate` decides, as for an insert; what waited waits no more."""
    topic = Topic({"split": SPLIT | {"on_duplicate": rule}})
    topic.do("insert", x=[1], y="a")
    topic.do("predict", x=[2])
    assert reasons(topic.do("label", y="b")) == refused
    assert topic.examples() == [held]
    assert topic.waiting() == []


def test_a_label_of_a_live_id_that_does_not_wait() -> None:
    """To correct a label, delete the example and insert it: its features are in no store."""
    topic = Topic({"split": SPLIT})
    topic.do("insert", x=[1], y="a")
    assert reasons(topic.do("label", y="b")) == [(None, "not-pending")]
    assert topic.examples() == [(0, UNIT, (1,))]


def test_a_delete_of_what_waits() -> None:
    """It is forgotten without a dead letter; a live example of the id goes as well."""
    topic = Topic({"split": SPLIT, "tree": TREE | {"on_delete": "ignore"}})
    topic.do("predict", x=[1])
    done = topic.do("delete")
    assert done.late == Tally(forgotten=1)
    assert reasons(done) == []
    assert topic.waiting() == []
    assert reasons(topic.do("delete")) == [("split", "absent-id")]
    topic.do("insert", x=[1], y="a")
    topic.do("predict", x=[2])
    assert reasons(topic.do("delete")) == []
    assert (topic.waiting(), topic.examples()) == ([], [])


def test_a_kind_that_cannot_forget_says_so() -> None:
    """It does not know whether it has learned the id before; the features are forgotten all the same."""
    topic = Topic({"tree": TREE})
    topic.do("predict", x=[1])
    assert reasons(topic.do("delete")) == [("tree", "cannot-forget")]
    assert topic.waiting() == []


def test_a_tombstone_forgets_what_waits() -> None:
    """All of its key, and nothing of others."""
    topic = Topic({"split": SPLIT})
    topic.do("predict", id=1, x=[1])
    topic.do("predict", id=2, x=[2])
    topic.do("predict", id=3, x=[3], key=b"other")
    assert topic.send(None).late == Tally(forgotten=2)
    assert [each.key for each in topic.waiting()] == [b"other"]


def test_what_waits_for_too_long_goes() -> None:
    """By the clock of the partition, which needs five records and is two records late."""
    topic = Topic({"split": SPLIT})
    for timestamp in (1_000, 1_000, 1_000, 1_000, 1_000):
        topic.do("predict", id=0, x=[9], timestamp=timestamp)
    topic.do("predict", id=1, x=[1], timestamp=1_000)
    for _ in range(3):
        topic.do("insert", id=None, x=[9], y="a", timestamp=10_999)
    assert reasons(topic.do("label", id=0, y="a", timestamp=10_999)) == []
    for _ in range(2):
        topic.do("insert", id=None, x=[9], y="a", timestamp=11_000)
    done = topic.do("label", id=1, y="a", timestamp=11_000)
    assert reasons(done) == [(None, "not-pending")]
    assert (done.late.late, done.late.expired) == (1, 1)
    [letter] = [decode_output(r.value or b"", r.headers) for r in done.outputs]
    assert isinstance(letter, DeadLetter)
    assert "predicted longer ago than 10s (pending.for of the topic), or before 3 others" in letter.detail


def test_the_oldest_goes_where_the_store_is_full() -> None:
    """Of any key; a label of it is refused, and counted."""
    topic = Topic({"split": SPLIT})
    for named in range(4):
        done = topic.do("predict", id=named, x=[named], key=b"%d" % (named % 2))
    assert done.late == Tally(kept=1, crowded_out=1)
    assert reasons(topic.do("label", id=0, y="a", key=b"0")) == [(None, "not-pending")]
    assert reasons(topic.do("label", id=1, y="a", key=b"1")) == []


def test_a_window_and_keys_that_expire_leave_it_alone() -> None:
    """The store is of the topic: a label of it begins the key anew."""
    topic = Topic({"window": IDS["window"], "tree": TREE | {"expire": "1s"}}, {"max": 9, "for": "1d"})
    topic.do("predict", id=1, x=[1], timestamp=1_000)
    for at in range(9):
        topic.do("insert", id=None, x=[at], y="a", timestamp=1_000 + 5_000 * at)
    assert len(topic.waiting()) == 1
    assert reasons(topic.do("label", id=1, y="b", timestamp=50_000)) == []
    assert (1, UNIT, (1,)) in topic.examples("window")


def test_a_model_that_does_not_take_part() -> None:
    """It sees no labels; what it does changes nothing for others."""
    topic = Topic({"split": SPLIT, "without": SPLIT | {"late_labels": False}})
    topic.do("predict", x=[1])
    assert reasons(topic.do("label", y="a")) == []
    assert topic.examples() == [(0, UNIT, (1,))]
    assert topic.examples("without") == []


def test_a_label_that_a_model_does_not_take() -> None:
    """It is that model's dead letter; nothing waits any more, as what waits does not depend on models."""
    topic = Topic({"split": SPLIT, "other": SPLIT | {"classes": ["a", "c"]}})
    topic.do("predict", x=[1])
    assert reasons(topic.do("label", y="c")) == [("split", "unknown-class")]
    assert topic.examples("other") == [(1, UNIT, (1,))]
    assert topic.waiting() == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (encode_event(op="label", id=7), "missing-label"),
        (encode_event(y="a", op="label"), "missing-field"),
        (encode_event([1], "a", op="label", id=7), "bad-features"),
        (encode_batch(None, ["a", "b"], op="label"), "missing-field"),
        (encode_batch(None, None, op="label", ids=[7, 8]), "missing-label"),
        (encode_batch([[1], [2]], ["a", "b"], op="label", ids=[7, 8]), "bad-features"),
        (encode_batch(None, ["a", "b"], op="label", ids=[None, None]), "missing-field"),
    ],
)
def test_a_label_that_is_none(value: bytes, reason: str) -> None:
    """It is refused by the decoder, and the example still waits."""
    topic = Topic({"split": SPLIT})
    topic.do("predict", x=[1])
    assert reasons(topic.send(value)) == [(None, reason)]
    assert len(topic.waiting()) == 1


def test_labels_in_columns() -> None:
    """Rows are labels one by one; those that come too late are rows of a dead letter."""
    topic = Topic({"split": SPLIT})
    topic.send(encode_batch([[1], [2, 3], []], op="predict", ids=[1, "two", None]))
    done = topic.send(encode_batch(None, ["a", "b", "a"], op="label", ids=["two", 5, 1], ws=[2.0, 1.0, 1.0]))
    assert done.late == Tally(labelled=2, late=1)
    [letter] = [decode_output(r.value or b"", r.headers) for r in done.outputs if r.topic == "in.dead"]
    assert isinstance(letter, DeadLetter)
    assert [row[:2] for row in letter.rows] == [(1, "not-pending")]
    assert sorted(topic.examples()) == [(0, UNIT, (1,)), (0, 2 * UNIT, (2, 3))]


def test_without_pending_labels_are_refused_with_advice() -> None:
    """The dead letter says what to set."""
    topic = Topic({"split": SPLIT}, None)
    topic.do("predict", x=[1])
    done = topic.do("label", y="a")
    assert reasons(done) == [(None, "not-pending")]
    [letter] = [decode_output(r.value or b"", r.headers) for r in done.outputs]
    assert isinstance(letter, DeadLetter)
    assert "(pending: {max: 100000, for: 7d})" in letter.detail


def test_both_figures() -> None:
    """The answer that was given may be wrong where the one at label time is right."""
    rules = {"emit": {"every": 1}, "drift": None}
    topic = Topic({"tree": TREE | {"evaluate": rules}})
    topic.do("insert", id=None, x=[1], y="a")
    topic.do("predict", x=[1])  # a
    for _ in range(3):
        topic.do("insert", id=None, x=[1], y="b")
    done = topic.do("label", y="b")
    found = [decode_output(record.value or b"", record.headers) for record in done.outputs]
    delayed = [each for each in found if isinstance(each, DelayedEvaluation)]
    at_label = [each for each in found if type(each) is Evaluation]
    assert [(each.examples, each.total.accuracy) for each in delayed] == [(1, 0.0)]
    assert [each.examples for each in at_label] == [5]
    assert at_label[0].recent.accuracy == pytest.approx(2 / 5)  # a tie is the first class
    assert [outcome.evaluated for _, outcome in done.outcomes] == [1]
    told: list[Outcome] = [outcome for _, outcome in done.outcomes]
    assert told[0].right == 1


def test_settings_that_make_no_sense() -> None:
    """Both limits are needed, and somebody has to learn from the labels."""
    for pending, words in (
        ({"max": 3}, "for"),
        ({"for": "3d"}, "max"),
        ({"max": 0, "for": "3d"}, "greater than or equal to 1"),
        ({"max": 3, "for": "3 days"}, "time span"),
    ):
        with pytest.raises(ValidationError, match=words):
            pipeline_of({"split": SPLIT}, pending)
    with pytest.raises(ValidationError, match="late_labels: false of all"):
        pipeline_of({"split": SPLIT | {"late_labels": False}}, PENDING)
