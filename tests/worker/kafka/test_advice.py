"""What messages about offsets, partitions and settings advise, followed to the letter on real Kafka."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import yaml
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from structlog.testing import capture_logs

from tests.support.logs import TIME_LIMIT
from tests.worker.kafka.test_kafka_worker import Place, examples, make_ready, open_transaction, until
from worker.broker import Cluster
from worker.checkpoint.keys import unpack_key
from worker.log.kafka.reader import KafkaReader
from worker.log.port import LogError, OutRecord
from worker.models.split import SplitModel
from worker.settings import Settings
from worker.topics import create_topics

_TOOL = re.compile(
    r"kafka-consumer-groups\.sh --group (\S+) --topic (\S+):(\d+) --reset-offsets --to-offset (\w+) --execute"
)


@pytest.fixture
def place(kafka: Cluster) -> Place:
    """Return topics of one partition and settings for workers on them."""
    return Place(kafka)


def _ask(place: Place, call: Callable[[AdminClient], Mapping[Any, Future[Any]]]) -> None:
    """Wait for what an administrator asks of the brokers, who wait until the group has no member any more."""
    admin = AdminClient({"bootstrap.servers": place.bootstrap})  # kept: without it no answer comes
    deadline = time.monotonic() + TIME_LIMIT
    while True:
        try:
            for future in call(admin).values():
                answer = future.result(TIME_LIMIT)
                for at in getattr(answer, "topic_partitions", ()):
                    if at.error is not None:
                        raise KafkaException(at.error)
        except KafkaException as error:
            busy = error.args[0].code() in (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _follow(place: Place, advice: str, offset: int | None = None) -> int:
    """Do what Kafka's tool does when the command of a message is run; return the offset that was set."""
    found = _TOOL.search(advice)
    assert found is not None, advice
    group, topic, partition, told = found.groups()
    offset = int(told) if offset is None else offset
    at = At(topic, int(partition), offset)
    _ask(place, lambda admin: admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [at])]))
    return offset


def _lose_records(place: Place, below: int) -> None:
    """Delete what lies below an offset, as retention does."""
    _ask(place, lambda admin: admin.delete_records([At(place.topic, 0, below)]))


def _delete(place: Place, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""
    _ask(place, lambda admin: admin.delete_topics([topic]))
    with place.log("creator") as log:
        until_gone = time.monotonic() + TIME_LIMIT
        while log.partitions(topic) is not None:
            assert time.monotonic() < until_gone
            time.sleep(0.2)


def _set_config(place: Place, topic: str, name: str, value: str) -> None:
    """Do what kafka-configs.sh does with --alter --add-config."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    _ask(place, lambda admin: admin.incremental_alter_configs([resource]))


def _lose_offsets(place: Place) -> None:
    """Forget the group, as brokers do when it was away for offsets.retention.minutes."""
    _ask(place, lambda admin: admin.delete_consumer_groups([place.settings.group]))


def _work(place: Place, events: int, settings: Settings | None = None) -> None:
    """Publish so many events, and run a worker until it has committed them."""
    place.send(events)
    with place.worker(settings=settings) as worker:
        make_ready(worker)
        (partition,) = worker.partitions.values()
        until(worker, lambda: partition.position >= place.sent)
        worker.finish()


def _told(place: Place, settings: Settings | None = None) -> str:
    """Return what a start ends with."""
    with place.worker(settings=settings) as worker, pytest.raises(LogError) as told:
        make_ready(worker)
    return str(told.value)


def _changed(place: Place, **changes: Any) -> Settings:
    return Settings.model_validate(place.settings.model_dump(exclude_unset=True) | changes)


def _anew(place: Place, advice: str, settings: Settings | None = None) -> Settings:
    """Return settings with another group and the topics that a message names, which are made."""
    fields = re.search(r"topics: (\{.*\})\)", advice)
    assert fields is not None, advice
    for_ = yaml.safe_load(fields[1])[place.topic]
    with place.log("creator") as log:
        for name, compacted in zip(for_.values(), (False, False, True), strict=True):
            log.create_topic(name, 1, compacted=compacted)
    told = (settings or place.settings).model_dump(exclude_unset=True)
    return Settings.model_validate(told | {"group": f"{place.settings.group}-2", "topics": {place.topic: for_}})


def test_records_that_were_never_read_are_gone(place: Place) -> None:
    """The offset that the message names is where the worker goes on, with the models that it had."""
    _work(place, 30)
    results = place.results()
    place.send(20)
    _lose_records(place, 40)
    told = _told(place)
    assert "expected the records from the committed offset 3" in told
    assert _follow(place, told) == 40
    with place.worker() as worker, capture_logs() as lines:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 41)  # all but those at offsets 31 to 39
    assert [line["offset"] for line in lines if "set by hand" in line["event"]] == [40]
    assert place.results()[: len(results)] == results
    # From here on everything is as it always was.
    with place.worker() as worker, capture_logs() as lines:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 41)
    assert not [line for line in lines if "set by hand" in line["event"]]


def test_records_that_a_restore_needs_are_gone(kafka: Cluster) -> None:
    """Without checkpoints the models are rebuilt from the beginning of the topic, or from what is left of it."""
    place = Place(kafka, checkpoint=None)
    _work(place, 30)
    _lose_records(place, 10)
    told = _told(place)
    assert "expected the records from offset 0 on, to rebuild the models" in told
    _follow(place, told)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 20


@pytest.mark.parametrize("where", ["at the checkpoint", "at the end"])
def test_offsets_have_expired(place: Place, where: str) -> None:
    """With a checkpoint the worker goes on there, or where a person says that the results end."""
    _work(place, 30)
    results = place.results()
    _lose_offsets(place)
    told = _told(place)
    assert "where the last checkpoint is, got none" in told
    end = place.log_end()
    set_ = _follow(place, told, None if where == "at the checkpoint" else end)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 30
        assert next(iter(worker.partitions.values())).position >= set_
    assert place.results()[: len(results)] == results


def test_offsets_have_expired_and_nothing_else_tells(kafka: Cluster) -> None:
    """Without checkpoints results tell that there was an offset; none of them is made twice without a word."""
    place = Place(kafka, checkpoint=None)
    _work(place, 30)
    results = place.results()
    _lose_offsets(place)
    told = _told(place)
    assert f"as there are results in {place.topic}.out/0, got none" in told
    _follow(place, told, place.log_end())
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 30
    assert place.results() == results


def _gini(place: Place, **changes: Any) -> Settings:
    """Return settings with a model that is another one."""
    model = place.settings.models["spam"].model_dump(exclude_unset=True) | {"criterion": "gini"}
    return _changed(place, models={"spam": model}, **changes)


def test_all_results_anew(kafka: Cluster) -> None:
    """Without checkpoints other settings need another group and topics, which the message names."""
    place = Place(kafka, checkpoint=None)
    _work(place, 30)
    told = _told(place, _gini(place))
    assert "without checkpoints nothing tells which settings held where" in told
    place.settings = _anew(place, told, _gini(place))
    with place.worker() as worker:
        make_ready(worker)
        (partition,) = worker.partitions.values()
        until(worker, lambda: partition.position >= 30)
        assert examples(worker) == 30


def test_settings_change_once_there_are_checkpoints(kafka: Cluster) -> None:
    """As the message says: set checkpoint, start once with the settings as they were, then change them."""
    place = Place(kafka, checkpoint=None)
    _work(place, 30)
    assert "Set checkpoint, start once with the settings as they were" in _told(place, _gini(place))
    place.settings = _changed(place, checkpoint={"records": 20})
    with place.log("creator") as log:
        log.create_topic(place.state.topic, 1, compacted=True)
    _work(place, 10)
    results = place.results()
    place.settings = _gini(place)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 40, "learned silently"
        worker.finish()
    assert place.results() == results
    _work(place, 10)
    assert len(place.results()) > len(results)


def test_settings_that_were_replaced(place: Place) -> None:
    """A worker that is late with its settings ends and says how to go back to them on purpose."""
    _work(place, 30)
    before, after = place.settings, _gini(place)
    _work(place, 10, after)
    told = _told(place, before)
    found = re.search(r"say so in them: (revision: \d+)$", told)
    assert found is not None, told
    place.settings = before
    place.settings = _changed(place, **yaml.safe_load(found[1]))
    _work(place, 10)
    assert "got some that were replaced there" in _told(place, after)


def test_a_state_topic_that_was_lost(place: Place) -> None:
    """Once settings have changed it tells which held where; a person may go on with what the input still has."""
    _work(place, 30)
    place.settings = _gini(place)
    _work(place, 10)
    results = place.results()
    _delete(place, place.state.topic)
    with place.log("creator") as log:
        log.create_topic(place.state.topic, 1, compacted=True)
    told = _told(place)
    assert "Bring it back, or go on with models of these settings that learn what the input still has" in told
    _follow(place, told)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 40
    assert place.results()[: len(results)] == results


def test_models_that_would_lose_something(place: Place) -> None:
    """Where a change is to be refused the message names the setting that makes it."""
    _work(place, 30)
    told = _told(place, _gini(place, on_change="refuse"))
    found = re.search(r"set (on_change: apply) \(", told)
    assert found is not None, told
    _work(place, 10, _gini(place, **yaml.safe_load(found[1])))


def test_an_input_that_has_grown(place: Place) -> None:
    """Each start says that keys have moved, and no message says to delete what would tell so."""
    _work(place, 30)
    _ask(place, lambda admin: admin.create_partitions([NewPartitions(place.topic, 3)]))
    for _ in range(2):
        told = _told(place)
        assert f"the topic '{place.topic}': expected 1 partitions, as there were before, found 3" in told
        assert "delete" not in told
    found = re.search(r"publish the events to a new topic", told)
    assert found is not None
    model = place.settings.models["spam"].model_dump(exclude_unset=True) | {"input": f"{place.topic}-wide"}
    wide = _changed(place, models={"spam": model})
    place.topic = f"{place.topic}-wide"
    with place.log("creator") as log:
        log.create_topic(place.topic, 3)
        for topic in ("out", "dead", "state"):
            log.create_topic(f"{place.topic}.{topic}", 3, compacted=topic == "state")
    place.settings, place.sent = wide, 0
    place.send(10, 2)
    with place.worker() as worker:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 10)


def test_a_topic_that_is_too_small_and_was_never_used(place: Place) -> None:
    """Where nothing was ever written no keys can have moved: the topic may go, and is created anew."""
    place.topic = f"{place.topic}-new"
    model = place.settings.models["spam"].model_dump(exclude_unset=True) | {"input": place.topic}
    place.settings = _changed(place, models={"spam": model})
    with place.log("creator") as log:
        log.create_topic(place.topic, 2)
        log.create_topic(f"{place.topic}.out", 1)
    told = _told(place)
    assert "to have 2 partitions, as its input does; it has 1; delete it" in told
    _delete(place, f"{place.topic}.out")
    with place.log("creator") as log:
        create_topics(log, place.settings)
    place.sent = 0
    place.send(10, 1)
    with place.worker() as worker:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 10)


@pytest.mark.parametrize("damage", ["a page is gone", "arrays of another version"])
def test_a_checkpoint_that_cannot_be_read(place: Place, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both messages say the same: with the state topic anew the models are rebuilt from the input."""
    _work(place, 30)
    results = place.results()
    if damage == "a page is gone":
        with place.log("vandal") as log, closing(log.reader()) as reader:
            bounds = log.watermarks(place.state)
            reader.assign({place.state: bounds.low})
            pages = []
            position = bounds.low
            while position < bounds.high:
                for records in reader.poll(100, 1.0):
                    position = records.next_offset
                    pages += [key for key in records.keys if key and unpack_key(key).kind == "page"]
            log.commit([OutRecord(*place.state, page, None, (), 1_000) for page in pages], {})
        told = _told(place)
        assert "is missing or not what was written" in told
    else:
        with monkeypatch.context() as patch:
            patch.setattr(SplitModel, "LATER", frozenset())
            honest = SplitModel.arrays
            patch.setattr(SplitModel, "arrays", lambda self: honest(self) | {"another": np.zeros(1)})
            told = _told(place)
        assert "expected a checkpoint with the arrays of this version, found others" in told
    assert re.search(r"delete (it|the state topic) and create it anew \(anabranch topics create\)", told)
    _delete(place, place.state.topic)
    with place.log("creator") as log:
        create_topics(log, place.settings)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 30
    assert place.results() == results
    _work(place, 10)


def test_another_topic_of_the_same_name(place: Place) -> None:
    """Brokers forget offsets with a topic: the checkpoint tells that it was another, and all begins anew."""
    _work(place, 30)
    _delete(place, place.topic)
    with place.log("creator") as log:
        log.create_topic(place.topic, 1)
    place.sent = 0
    place.send(10)
    told = _told(place)
    assert "where the last checkpoint is, got none" in told
    assert "or start anew: another group in the settings" in told
    place.settings = _anew(place, told)
    with place.worker() as worker:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 10)


def test_an_input_that_is_compacted(place: Place) -> None:
    """Once its policy is delete, as the message says, the worker starts."""
    _set_config(place, place.topic, "cleanup.policy", "compact")
    told = _told(place)
    found = re.search(r"set its (cleanup\.policy) to (delete)", told)
    assert found is not None, told
    _set_config(place, place.topic, found[1], found[2])
    _work(place, 10)


def test_a_state_topic_that_expires(place: Place) -> None:
    """The command of the message makes it one that keeps checkpoints."""
    _set_config(place, place.state.topic, "cleanup.policy", "compact,delete")
    _set_config(place, place.state.topic, "retention.ms", "86400000")
    told = _told(place)
    found = re.search(r"--entity-type topics --entity-name (\S+) --add-config (\S+)=(\S+)", told)
    assert found is not None, told
    _set_config(place, *found.groups())
    _work(place, 10)


def test_a_format_that_changes(place: Place) -> None:
    """Go back to the format that was, or make all results anew, as with other settings without checkpoints."""
    _work(place, 30)
    told = _told(place, _changed(place, topics={place.topic: {"results": "json"}}))
    assert "format, columns, reader_schema and results of a topic cannot change. Go back to those" in told
    _work(place, 10)
    assert "make all results anew with these" in told


def test_records_that_a_new_model_needs_are_gone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that was stopped while it learned, its offset set beyond by hand, begins anew by another name."""
    _work(place, 30)
    results = place.results()
    spam = place.settings.models["spam"].model_dump(exclude_unset=True)
    place.settings = _changed(place, models={"spam": spam, "late": spam | {"criterion": "gini"}})
    with monkeypatch.context() as patch, place.worker() as worker:
        patch.setattr("worker.loop.catch_up", _crash)
        with pytest.raises(RuntimeError, match="it crashes"):
            make_ready(worker)
    place.send(10)
    at = ConsumerGroupTopicPartitions(place.settings.group, [At(place.topic, 0, 36)])
    _ask(place, lambda admin: admin.alter_consumer_group_offsets([at]))
    _lose_records(place, 20)
    told = _told(place)
    assert "expected the records from offset 0 on, which late have still to learn, but those below 20 are" in told
    assert "or give these models other names, so that they begin anew" in told
    place.settings = _changed(place, models={"spam": spam, "later": spam | {"criterion": "gini"}})
    with place.worker() as worker:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 40 + 20)
    assert place.results()[: len(results)] == results


def _crash(*_given: Any) -> Any:
    """Do what a worker does that ends while a model learns."""
    raise RuntimeError("it crashes")


def test_an_offset_beyond_the_end(place: Place) -> None:
    """Where a shorter topic came back under the name with the offsets of the one that was: all begins anew."""
    _work(place, 30)
    _delete(place, place.topic)
    with place.log("creator") as log:
        log.create_topic(place.topic, 1)
    place.sent = 0
    place.send(10)
    at = At(place.topic, 0, 31)
    group = ConsumerGroupTopicPartitions(place.settings.group, [at])
    _ask(place, lambda admin: admin.alter_consumer_group_offsets([group]))
    told = _told(place)
    assert f"expected the committed offset to be at most {place.log_end()}, where the topic ends, got 31" in told
    place.settings = _anew(place, told)
    with place.worker() as worker:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 10)


def test_a_checkpoint_of_a_newer_schema(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version refuses what a newer one wrote, and the newer one goes on."""
    with monkeypatch.context() as newer:
        newer.setattr("worker.checkpoint.writer.SCHEMA", 2)
        _work(place, 30)
    told = _told(place)
    assert "expected a checkpoint of schema 1 or older, found 2" in told
    assert "run that version, or a newer one" in told
    monkeypatch.setattr("worker.checkpoint.reader.SCHEMA", 2)
    monkeypatch.setattr("worker.checkpoint.writer.SCHEMA", 2)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 30
    _work(place, 10)


def test_an_output_that_is_compacted(place: Place) -> None:
    """Once its policy is what the message says, the worker starts."""
    output = f"{place.topic}.out"
    _set_config(place, output, "cleanup.policy", "compact")
    found = re.search(r"to have (cleanup\.policy)=(\w+); it has not; correct that", _told(place))
    assert found is not None
    _set_config(place, output, *found.groups())
    _work(place, 10)


def test_topics_that_are_not_there(place: Place) -> None:
    """The command that the message names creates them."""
    _work(place, 10)
    before = place.settings.model_dump(exclude_unset=True)
    others = {use: f"{place.topic}-2.{use}" for use in ("output", "dead_letters", "state")}
    kafka = before["log"]["kafka"] | {"topic_wait_seconds": 0}
    place.settings = _changed(place, topics={place.topic: others}, group=f"{place.topic}-2", log={"kafka": kafka})
    assert "create them: anabranch topics create SETTINGS" in _told(place)
    with place.log("creator") as log:
        create_topics(log, place.settings)
    _work(place, 10)


def test_an_input_that_is_not_there(place: Place) -> None:
    """Once there are events in it, or the command has created it as the message says, the worker starts."""
    place.topic = f"{place.topic}-new"
    model = place.settings.models["spam"].model_dump(exclude_unset=True) | {"input": place.topic}
    before = place.settings.model_dump(exclude_unset=True)
    kafka = before["log"]["kafka"] | {"topic_wait_seconds": 0}
    place.settings = _changed(place, models={"spam": model}, log={"kafka": kafka})
    assert "create them: anabranch topics create SETTINGS --inputs PARTITIONS" in _told(place)
    with place.log("creator") as log, pytest.raises(LogError, match="publish events to it first") as told:
        create_topics(log, place.settings)
    assert f"{place.topic!r}, the input of model spam" in str(told.value)
    with place.log("creator") as log:
        log.create_topic(place.topic, 1)
        create_topics(log, place.settings)
    place.sent = 0
    _work(place, 10)


def test_a_transaction_that_stays_open_on_the_state_topic(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is started again once it is over goes on."""
    _work(place, 30)
    with monkeypatch.context() as patch, open_transaction(place):
        patch.setattr("worker.loop.RESTORE_TIMEOUT", 2.0)
        assert "start again once it is over (transaction.timeout.ms)" in _told(place)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 30


def test_a_replay_to_which_nothing_comes(kafka: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after a while rather than wait for ever, and a start with brokers that are well goes on."""
    place = Place(kafka, checkpoint=None)
    _work(place, 20)
    with monkeypatch.context() as patch:
        patch.setattr("worker.loop.RESTORE_TIMEOUT", 1.0)
        patch.setattr(KafkaReader, "poll", lambda *_given: [])
        assert "is the broker well?" in _told(place)
    with place.worker() as worker:
        make_ready(worker)
        assert examples(worker) == 20
