"""Bad events through a whole worker: each one becomes a dead letter, and nothing else happens."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest
from prometheus_client import CollectorRegistry

from tests.support.hostile import HOSTILE, HOSTILE_ROWS, TIMESTAMP, batch
from tests.support.model_contents import model_contents
from worker.codec import DeadLetter, Output, Prediction, Reason, Split, Tree, decode_output
from worker.codec.event import encode_batch, encode_event
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition
from worker.loop import Worker
from worker.models import Model
from worker.settings import Settings
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard

KEY = b"k"
SOURCE = TopicPartition("in", 0)
IDS: dict[str, Any] = {"kind": "split", "input": "in", "classes": [0, 1], "features": "ids"}
NAMES: dict[str, Any] = {"kind": "split", "input": "in", "classes": ["ham", "spam"], "features": "names"}
ALWAYS = {"emit": {"splits": "change", "snapshots": {"every": 3}}}


class Sent(NamedTuple):
    """A record to be sent."""

    value: bytes | None
    key: bytes | None = KEY


class Running:
    """A worker of one model over a log of its own, fed by hand."""

    def __init__(self, path: Path, model: dict[str, Any], records: int = 5_000, **bounds: int) -> None:
        settings = {
            "log": {"embedded": str(path)},
            "models": {"m": model},
            "bounds": bounds,
            "transaction": {"records": records},
        }
        self.log = EmbeddedLog(path)
        self.log.create_topic("in", 1)
        self.registry = CollectorRegistry()
        listener = WorkerListener(Metrics(self.registry, "0"), StatusBoard(Status(0.0)))
        self.worker = Worker(self.log, Settings.model_validate_json(json.dumps(settings)), listener)
        self.worker.join()
        while not self.worker.is_ready:
            self.worker.run_once()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    @property
    def model(self) -> Model:
        """The model, as it is now."""
        return self.worker.partitions[SOURCE].pipeline.models[0]

    def contents(self) -> dict[bytes, Any]:
        """Return what the model holds, after a check of its invariants."""
        self.model.check()
        return model_contents(self.model)

    def send(self, *sent: Sent) -> tuple[list[Output], list[DeadLetter]]:
        """Process records to the end; return the results and the dead letters that they led to."""
        before = [self.log.watermarks(TopicPartition(topic, 0)).high for topic in ("in.out", "in.dead")]
        self.log.append(OutRecord("in", 0, key, value, (), TIMESTAMP) for value, key in sent)
        end = self.log.watermarks(SOURCE).high
        while self.worker.partitions[SOURCE].position < end:
            self.worker.run_once()
        self.worker.commit()
        assert self.log.committed(SOURCE) == end
        results, letters = (
            list(self._read(topic, start)) for topic, start in zip(("in.out", "in.dead"), before, strict=True)
        )
        return results, [letter for letter in letters if isinstance(letter, DeadLetter)]

    def _read(self, topic: str, start: int) -> Iterator[Output]:
        records = self.log.read(TopicPartition(topic, 0), start, 100_000)
        for key, value, headers in zip(records.keys, records.values, records.headers, strict=True):
            output = decode_output(value or b"", headers)
            assert not isinstance(output, DeadLetter) or key == output.key
            yield output

    def counted(self, metric: str) -> dict[str, float]:
        """Return a counter by reason."""
        return {
            sample.labels["reason"]: sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == metric
        }


def _good(number: int, **fields: Any) -> Sent:
    return Sent(encode_event([1 + number % 5, 10 + number % 3, 100 + number], number % 2, **fields))


POPULATION = [*(_good(number) for number in range(30)), *(_good(number, id=number) for number in range(30, 40))]
DELETES = [_delete for number in range(0, 30, 7) for _delete in (_good(number, op="delete"),)]


def _assert_letter(letter: DeadLetter, sent: Sent, offset: int, reason: Reason, model: str | None) -> None:
    assert (letter.reason, letter.model) == (reason, model)
    assert (letter.source.topic, letter.source.partition, letter.source.offset) == ("in", 0, offset)
    assert letter.source.time == TIMESTAMP
    assert letter.detail.startswith("expected")
    assert 20 < len(letter.detail) <= 400
    assert letter.key == (None if sent.key is None else sent.key[:1_024])
    if sent.value is None or len(sent.value) <= 900_000:
        assert (letter.value, letter.sha256) == (sent.value, None)
    else:
        assert letter.value == sent.value[:900_000]
        assert letter.sha256 == hashlib.sha256(sent.value).digest()
    assert letter.size == (None if sent.value is None else len(sent.value))


@pytest.mark.parametrize("finder", ["exact", "baseent"])
def test_every_hostile_record_becomes_a_dead_letter_and_changes_nothing(tmp_path: Path, finder: str) -> None:
    """Each bad record gives one dead letter with its bytes, reason and position; the model stays as it was."""
    with Running(tmp_path / "log.db", IDS | ALWAYS | {"finder": finder}) as running:
        running.send(*POPULATION, *DELETES)
        before, start = running.contents(), running.log.watermarks(SOURCE).high
        hostile = [Sent(value) for _, value, _ in HOSTILE]
        results, letters = running.send(*hostile)
        assert results == []
        assert len(letters) == len(HOSTILE)
        for number, (sent, letter) in enumerate(zip(hostile, letters, strict=True)):
            _assert_letter(letter, sent, start + number, HOSTILE[number][2], None)
            assert (letter.rows, letter.refused) == ([], 0)
        assert running.contents() == before
        assert sum(running.counted("anabranch_records_rejected_total").values()) == len(HOSTILE)

        (answer,), letters = running.send(Sent(encode_event([1], op="predict", id="still there?")))
        assert isinstance(answer, Prediction)
        assert answer.known
        assert letters == []


@pytest.mark.slow
@pytest.mark.parametrize("case", HOSTILE_ROWS, ids=lambda case: case[0])
def test_a_bad_row_is_refused_and_its_record_otherwise_read(
    tmp_path: Path, case: tuple[str, bytes, Reason]
) -> None:
    """Of a columnar record with one bad row the model sees the other row, and a dead letter lists the bad one."""
    _, value, reason = case
    named = b"\xa1b" in value
    with Running(tmp_path / "log.db", NAMES | {"classes": [0, 1]} if named else IDS) as running:
        running.send(Sent(encode_event([], 1, id=1)))  # what some of the good rows delete
        start = running.log.watermarks(SOURCE).high
        _, (letter, *others) = running.send(Sent(value))
        _assert_letter(letter, Sent(value), start, reason, None)
        assert [(row, why) for row, why, _ in letter.rows] == [(1, reason)]
        assert (letter.source.row, letter.refused) == (1, 1)
        seen = running.contents()[KEY].events - 1
        refused = [(other.model, [row for row, _, _ in other.rows]) for other in others]
        assert (seen, refused) in ((1, []), (0, [("m", [0])]))


@dataclass(frozen=True)
class Case:
    """An event that is readable and does not suit the model."""

    name: str
    reason: Reason
    bad: Sent
    model: dict[str, Any] = field(default_factory=lambda: IDS)
    before: Sequence[Sent] = tuple(POPULATION)
    bounds: dict[str, int] = field(default_factory=dict)
    by_model: bool = True  # the model refuses it, not the decoder


SPAM = Sent(encode_event(["free", "win"], "spam", id="a"))
HEAVY = Sent(encode_batch([[1, 2]] * 2_047, [0] * 2_047, ws=[2.0**31] * 2_047))
# Feature 1 in 3 of 3 examples: whoever takes away an example without it leaves 1 in 3 of 2.
EVERYWHERE = [Sent(encode_event([1, 2 + number], 1)) for number in range(3)]

CASES = [
    Case("class", Reason.UNKNOWN_CLASS, Sent(encode_event([1], 2))),
    Case("class below", Reason.UNKNOWN_CLASS, Sent(encode_event([1], -1))),
    Case("class as float", Reason.UNKNOWN_CLASS, Sent(encode_event([1], 1.0))),
    Case("class as text", Reason.UNKNOWN_CLASS, Sent(encode_event([1], "1"))),
    Case("class name", Reason.UNKNOWN_CLASS, Sent(encode_event(["free"], "Spam")), NAMES, (SPAM,)),
    Case("class name too long", Reason.UNKNOWN_CLASS, Sent(encode_event(["free"], "spam ")), NAMES, (SPAM,)),
    Case("class empty", Reason.UNKNOWN_CLASS, Sent(encode_event(["free"], "")), NAMES, (SPAM,)),
    Case("class number", Reason.UNKNOWN_CLASS, Sent(encode_event(["free"], 1)), NAMES, (SPAM,)),
    Case("delete of a class", Reason.UNKNOWN_CLASS, Sent(encode_event([1], 7, op="delete"))),
    Case("names to ids", Reason.WRONG_FEATURE_SPACE, Sent(encode_event(["free"], 1))),
    Case("predict names of ids", Reason.WRONG_FEATURE_SPACE, Sent(encode_event(["free"], op="predict"))),
    Case("ids to names", Reason.WRONG_FEATURE_SPACE, Sent(encode_event([1], "spam")), NAMES, (SPAM,)),
    Case("delete ids", Reason.WRONG_FEATURE_SPACE, Sent(encode_event([1], "spam", op="delete")), NAMES, (SPAM,)),
    Case("value 2", Reason.NOT_BINARY, Sent(encode_event({1: 1, 2: 2.0}, 1))),
    Case("value one half of a name", Reason.NOT_BINARY, Sent(encode_event({"free": 0.5}, "ham")), NAMES, (SPAM,)),
    Case("value -1 predicted", Reason.NOT_BINARY, Sent(encode_event({1: -1}, op="predict"))),
    Case("duplicate", Reason.DUPLICATE_ID, Sent(encode_event([1], 0, id=35))),
    Case("duplicate name", Reason.DUPLICATE_ID, Sent(encode_event(["new"], "ham", id="a")), NAMES, (SPAM,)),
    Case("absent id", Reason.ABSENT_ID, Sent(encode_event(op="delete", id=41))),
    Case("an int is no text", Reason.ABSENT_ID, Sent(encode_event(op="delete", id="35"))),
    Case("id of another key", Reason.ABSENT_ID, Sent(encode_event(op="delete", id=35), b"other")),
    Case("absent example", Reason.ABSENT_EXAMPLE, Sent(encode_event([1, 999], 1, op="delete"))),
    Case("absent weight", Reason.ABSENT_EXAMPLE, Sent(encode_event([1], 1, op="delete", w=1_000))),
    Case("absent example of no key", Reason.ABSENT_EXAMPLE, Sent(encode_event([1], 1, op="delete"), b"new")),
    Case("overfull", Reason.ABSENT_EXAMPLE, Sent(encode_event([2], 1, op="delete")), before=EVERYWHERE),
    Case(
        "overfull, finer", Reason.ABSENT_EXAMPLE, Sent(encode_event([2], 1, op="delete", w=0.5)), before=EVERYWHERE
    ),
    Case("nothing left", Reason.ABSENT_EXAMPLE, Sent(encode_event([], 1, op="delete")), before=EVERYWHERE),
    Case(
        "one that the counts would allow",
        Reason.ABSENT_EXAMPLE,
        Sent(encode_event([1, 10], 1, op="delete")),
        IDS | {"verify_deletes": True},
    ),
    Case(
        "the right example with another weight",
        Reason.ABSENT_EXAMPLE,
        Sent(encode_event([1, 10, 100], 0, op="delete", w=0.5)),
        IDS | {"verify_deletes": True},
    ),
    Case(
        "by value what has an id",
        Reason.ABSENT_EXAMPLE,
        Sent(encode_event(["free", "win"], "spam", op="delete")),
        NAMES | {"verify_deletes": True},
        (SPAM,),
    ),
    Case("keys", Reason.TOO_MANY_KEYS, Sent(encode_event([1], 1), b"second"), bounds={"keys": 1}),
    Case("live ids", Reason.TOO_MANY_LIVE_IDS, Sent(encode_event([1], 1, id="new")), bounds={"live_ids": 10}),
    Case("overflow", Reason.COUNT_OVERFLOW, Sent(encode_event([1], 1, w=2.0**31)), before=(HEAVY,)),
    Case("overflow, other label", Reason.COUNT_OVERFLOW, Sent(encode_event([3], 1, w=2.0**31)), before=(HEAVY,)),
    Case("no key", Reason.NO_KEY, Sent(encode_event([1], 1), None), by_model=False),
    Case("no key nor value", Reason.NO_KEY, Sent(None, None), by_model=False),
    Case("long key", Reason.KEY_TOO_LONG, Sent(encode_event([1], 1), b"k" * 1_025), by_model=False),
    Case("tombstone of a long key", Reason.KEY_TOO_LONG, Sent(None, b"k" * 1_025), by_model=False),
]


@pytest.mark.parametrize("finder", ["exact", "baseent"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_event_that_does_not_suit_the_model_changes_nothing(tmp_path: Path, case: Case, finder: str) -> None:
    """Each such event gives one dead letter with its reason, and the model stays as it was."""
    with Running(tmp_path / "log.db", case.model | ALWAYS | {"finder": finder}, **case.bounds) as running:
        _, letters = running.send(*case.before)
        assert letters == []
        before, start = running.contents(), running.log.watermarks(SOURCE).high
        results, letters = running.send(case.bad)
        assert results == []
        (letter,) = letters
        _assert_letter(letter, case.bad, start, case.reason, "m" if case.by_model else None)
        assert running.contents() == before

        (answer,), letters = running.send(Sent(msgpack.packb({"op": "predict", "x": []})))
        assert isinstance(answer, Prediction)
        assert answer.known
        assert letters == []


def test_a_tombstone_of_an_unknown_key_is_no_fault(tmp_path: Path) -> None:
    """Dropping a model that is not there changes nothing and is no mistake."""
    with Running(tmp_path / "log.db", IDS) as running:
        running.send(*POPULATION)
        before = running.contents()
        assert running.send(Sent(None, b"nobody")) == ([], [])
        assert running.contents() == before


def test_an_ignored_duplicate_leaves_no_trace(tmp_path: Path) -> None:
    """With on_duplicate ignore a second insert of an id gives no dead letter and no result."""
    with Running(tmp_path / "log.db", NAMES | ALWAYS | {"on_duplicate": "ignore"}) as running:
        running.send(SPAM)
        before = running.contents()
        assert running.send(Sent(encode_event(["other"], "ham", id="a"))) == ([], [])
        assert running.contents() == before


def test_a_replacement_puts_the_new_example_in_place_of_the_old(tmp_path: Path) -> None:
    """With on_duplicate replace the model holds what it would hold had it only seen the second."""
    new = Sent(encode_event(["other"], "ham", id="a"))
    with (
        Running(tmp_path / "a.db", NAMES | {"on_duplicate": "replace"}) as replaced,
        Running(tmp_path / "b.db", NAMES) as only,
    ):
        assert replaced.send(SPAM, new)[1] == []
        only.send(new)
        ours, theirs = replaced.contents()[KEY], only.contents()[KEY]
        assert (ours.totals, ours.counts, ours.live) == (theirs.totals, theirs.counts, theirs.live)


def test_a_refused_event_makes_no_room_and_takes_none(tmp_path: Path) -> None:
    """At the bound on keys a refused one is forgotten: after a tombstone another takes the place."""
    first, second, third = (Sent(encode_event([1], 1), key) for key in (b"1", b"2", b"3"))
    with Running(tmp_path / "log.db", IDS, keys=1) as running:
        _, letters = running.send(first, second, Sent(None, b"2"), third, Sent(None, b"1"), third, second)
        assert [letter.source.offset for letter in letters] == [1, 3, 6]
        assert list(running.contents()) == [b"3"]


def test_rows_that_the_model_refuses_share_a_dead_letter(tmp_path: Path) -> None:
    """Rows refused by the decoder and by the model give one dead letter each party; the rest is applied."""
    value = msgpack.packb(
        {
            "n": 5,
            "ptr": struct.pack("<6I", 0, 1, 2, 4, 5, 6),
            "i": struct.pack("<6I", 1, 2, 3, 3, 4, 5),
            "y": [0, 1, 1, 2, "x"],
            "ids": ["a", "a", "b", "c", "d"],
        }
    )
    with Running(tmp_path / "log.db", IDS) as running:
        _, (by_decoder, by_model) = running.send(Sent(value))
        assert (by_decoder.model, [(row, why) for row, why, _ in by_decoder.rows]) == (
            None,
            [(2, Reason.REPEATED_FEATURE)],
        )
        assert (by_model.model, [(row, why) for row, why, _ in by_model.rows]) == (
            "m",
            [(1, Reason.DUPLICATE_ID), (3, Reason.UNKNOWN_CLASS), (4, Reason.UNKNOWN_CLASS)],
        )
        assert (by_model.source.row, by_model.refused, by_model.value) == (1, 3, value)
        assert running.contents()[KEY].counts == {1: (1 << 20, 0)}


def test_a_row_refused_for_its_value_leaves_the_others(tmp_path: Path) -> None:
    """A value other than 1 in one row of a columnar record refuses that row alone."""
    value = batch(v=struct.pack("<4d", 1, 1, 1, 3))
    with Running(tmp_path / "log.db", IDS) as running:
        _, (letter,) = running.send(Sent(value))
        assert [(row, why) for row, why, _ in letter.rows] == [(1, Reason.NOT_BINARY)]
        assert running.contents()[KEY].totals == (1 << 20, 0)


def _moved(outputs: Iterable[Output], offsets: dict[int, int]) -> list[Output]:
    """Return results as if their events had stood at other offsets."""
    return [
        output._replace(source=output.source._replace(offset=offsets[output.source.offset])) for output in outputs
    ]


@pytest.mark.parametrize("records", [1, 7, 5_000])
def test_good_events_among_bad_ones_give_what_they_give_alone(tmp_path: Path, records: int) -> None:
    """Results of a batch with bad records in it are those of the good ones, offsets aside."""
    good = [
        *POPULATION,
        *DELETES,
        Sent(encode_event([1, 10], op="predict")),
        Sent(encode_event(op="delete", id=33)),
    ]
    bad = [
        *(
            case.bad
            for case in CASES
            if case.model == IDS and not case.bounds and case.before == tuple(POPULATION)
        ),
        *(Sent(value) for _, value, _ in HOSTILE[:: max(1, len(HOSTILE) // 40)] if len(value) < 100_000),
    ]
    # Bad ones only where they are bad: the ids that they repeat or miss are judged after the population.
    sent: list[Sent] = []
    offsets: dict[int, int] = {}
    for number, event in enumerate(good):
        offsets[len(sent)] = number
        sent.append(event)
        if number >= len(POPULATION) - 1:
            sent += bad
    with (
        Running(tmp_path / "mixed.db", IDS | ALWAYS, records) as mixed,
        Running(tmp_path / "good.db", IDS | ALWAYS, records) as alone,
    ):
        expected, none = alone.send(*good)
        assert none == []
        got, letters = mixed.send(*sent)
        assert any(isinstance(output, Split) for output in got)
        assert any(isinstance(output, Tree) for output in got)
        assert _moved(got, offsets) == expected
        assert len(letters) == len(sent) - len(good)
        assert mixed.contents() == alone.contents()
