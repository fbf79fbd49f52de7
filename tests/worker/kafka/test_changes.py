"""Settings that change on real Kafka: models come, change and go by restarts, one worker after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from uuid import uuid4

import pytest
import yaml

from tests.faults import LARGEST_BYTES
from tests.support.recordings import WORDS, every_kind, mixed
from tests.support.workers import worker_on
from tests.worker.kafka.test_kafka_worker import HASTY, make_ready, until
from tests.worker.state.test_epochs import NEW, model_of, offset_of
from worker.audit import audit
from worker.broker import Cluster
from worker.log.embedded import EmbeddedLog
from worker.log.kafka import KafkaLog
from worker.log.port import Log, TopicPartition
from worker.loop import Worker
from worker.settings import Settings
from worker.topics import create_topics

PARTITIONS = 2
Row = tuple[Any, ...]


class Site:
    """A topic on Kafka and what workers with changing settings make of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.bootstrap = cluster.bootstrap
        self.topic = f"in-{uuid4().hex[:10]}"
        models = yaml.safe_load(every_kind())["models"]
        chosen = ("everything", "recent", "tree", "forgetting")
        self.models: dict[str, Any] = {name: models[name] | {"input": self.topic} for name in chosen}
        self.models["fifth"] = NEW | {"input": self.topic, "policy": "periodic", "period": 10}
        self.records = [
            record._replace(topic=self.topic)
            for record in mixed(1_200, seed=3)
            if record.topic == WORDS and len(record.value or b"") < LARGEST_BYTES
        ]
        self.sent = 0
        with self.log("creator") as log:
            log.create_topic(self.topic, PARTITIONS)
            create_topics(log, self.settings)

    @property
    def settings(self) -> Settings:
        """The settings as they are told now."""
        return self.told({"kafka": {"bootstrap": self.bootstrap}})

    def told(self, log: dict[str, Any], models: dict[str, Any] | None = None) -> Settings:
        """Return settings on a log."""
        return Settings.model_validate_json(
            json.dumps(
                {
                    "log": log,
                    "group": f"group-{self.topic}",
                    "models": models or self.models,
                    "bounds": {"keys": 6, "live_ids": 150},
                    "transaction": {"interval_ms": 50, "records": 40},
                    "checkpoint": {"records": 30, "bytes_per_second": 1 << 40},
                    "metrics": None,
                }
            )
        )

    @contextmanager
    def log(self, instance: str) -> Iterator[KafkaLog]:
        """Open the log as one instance of the group."""
        properties: dict[str, Any] = {"bootstrap.servers": self.bootstrap, **HASTY}
        with closing(KafkaLog(properties, group=f"group-{self.topic}", instance=instance)) as log:
            yield log

    def send(self, count: int) -> None:
        """Publish so many more records."""
        with self.log("publisher") as log:
            log.commit(self.records[self.sent : self.sent + count], {})
        self.sent += count

    def is_read(self, log: Log) -> bool:
        """Return whether all that was published is committed."""
        sources = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        return all((log.committed(source) or 0) >= log.watermarks(source).high - 1 for source in sources)

    def run(self, count: int) -> None:
        """Publish so many records, and let a worker read them all and end."""
        self.send(count)
        with self.log("one") as log, self.log("judge") as judge:
            worker = worker_on(log, self.settings)
            make_ready(worker)
            until(worker, lambda: self.is_read(judge), 60)
            worker.finish()

    def ends(self) -> list[int]:
        """Return where each partition ends."""
        with self.log("judge") as log:
            return [log.watermarks(TopicPartition(self.topic, number)).high for number in range(PARTITIONS)]

    def outputs(self) -> list[list[Row]]:
        """Return results, then dead letters, of each partition."""
        with self.log("judge") as log:
            return [_rows(log, TopicPartition(f"{self.topic}.{use}", n)) for use, n in _targets()]

    def undisturbed(self, folder: Any, models: dict[str, Any]) -> list[list[Row]]:
        """Return what one worker makes of all records, with these models from the first on, on an embedded log.

        Its input has the offsets of the one on Kafka, with their gaps.
        """
        settings = self.told({"embedded": "unused"}, models)
        with EmbeddedLog(folder / f"{uuid4().hex}.db", group=settings.group) as log:
            log.create_topic(self.topic, PARTITIONS)
            with self.log("judge") as kafka:
                for number in range(PARTITIONS):
                    source = TopicPartition(self.topic, number)
                    with closing(kafka.reader()) as reader:
                        low, high = kafka.watermarks(source)
                        reader.assign({source: low})
                        while low < high:
                            for records in reader.poll(10_000, 0.5):
                                log.record(records)
                                low = records.next_offset
            worker_on(log, settings).run(lambda: False, until_end=True)
            return [_rows(log, TopicPartition(f"{self.topic}.{use}", n)) for use, n in _targets()]


def _targets() -> list[tuple[str, int]]:
    return [(use, number) for use in ("out", "dead") for number in range(PARTITIONS)]


def _rows(log: Log, target: TopicPartition) -> list[Row]:
    found: list[Row] = []
    low, high = log.watermarks(target)
    if low == high:
        return found
    with closing(log.reader()) as reader:
        reader.assign({target: low})
        while low < high:
            for records in reader.poll(10_000, 0.5):
                low = records.next_offset
                found += zip(
                    records.keys, records.values, records.headers, records.timestamps.tolist(), strict=True
                )
    return found


def _part(outputs: list[list[Row]], models: Sequence[str], keep: Callable[[int, int], bool]) -> list[list[Row]]:
    """Return the results of some models for the offsets of each partition that are to be kept."""
    return [
        [row for row in rows if model_of(row) in models and keep(number, offset_of(row))]
        for (_, number), rows in zip(_targets(), outputs, strict=True)
    ]


def _always(_number: int, _offset: int) -> bool:
    return True


@pytest.fixture
def site(kafka: Cluster) -> Site:
    """Return a topic and five models."""
    return Site(kafka)


def test_five_models_by_restarts(site: Site, tmp_path: Any) -> None:
    """One is added, one changed, one removed, a shadow is switched: the others write what they would have."""
    before = dict(site.models)
    site.run(120)
    site.models["shadow"] = NEW | {"input": site.topic, "shadow": True}
    added = site.ends()
    site.run(120)
    site.models["tree"] = site.models["tree"] | {"delta": 0.2}
    changed = site.ends()
    site.run(120)
    del site.models["recent"]
    removed = site.ends()
    site.run(80)
    site.models["shadow"] = NEW | {"input": site.topic}
    switched = site.ends()
    site.run(80)
    outputs = site.outputs()
    expected, after = site.undisturbed(tmp_path, before), site.undisturbed(tmp_path, site.models)

    others = ["", "everything", "forgetting", "fifth"]
    assert _part(outputs, others, _always) == _part(expected, others, _always)
    assert sum(map(len, _part(outputs, others, _always))) > 300
    assert _part(outputs, ["recent"], _always) == _part(expected, ["recent"], lambda n, at: at < removed[n])
    assert _part(outputs, ["tree"], lambda n, at: at < changed[n]) == _part(
        expected, ["tree"], lambda n, at: at < changed[n]
    )
    assert _part(outputs, ["tree"], lambda n, at: at >= changed[n]) == _part(
        after, ["tree"], lambda n, at: at >= changed[n]
    )
    shadow = _part(outputs, ["shadow"], _always)
    silent = [[row for row in rows if offset_of(row) < switched[n % PARTITIONS]] for n, rows in enumerate(shadow)]
    kinds = {dict(row[2])["type"] for rows in silent for row in rows}
    assert kinds == {b"evaluation"}
    assert all(offset_of(row) >= added[n % PARTITIONS] for n, rows in enumerate(silent) for row in rows)
    loud = [[row for row in rows if offset_of(row) >= switched[n % PARTITIONS]] for n, rows in enumerate(shadow)]
    assert loud == _part(after, ["shadow"], lambda n, at: at >= switched[n])
    assert len({dict(row[2])["type"] for rows in loud for row in rows}) > 2


def test_workers_of_one_group_are_restarted_one_after_the_other(site: Site, tmp_path: Any) -> None:
    """While some have the new settings and some the old ones, partitions move between them, and none goes back."""
    before = site.settings
    site.models["late"] = NEW | {"input": site.topic}
    after = site.settings
    seen: list[list[tuple[int, str]]] = []

    def work(*workers: Worker) -> None:
        """Let them share out the partitions and read what there is."""
        site.send(60)
        with site.log("judge") as judge:

            def settled() -> bool:
                owned = sum(len(worker.partitions) for worker in workers)
                return owned == PARTITIONS and all(each.is_ready for each in workers) and site.is_read(judge)

            for _ in range(2_000):
                for worker in workers:
                    worker.run_once()
                if settled():
                    break
            assert settled()
        for worker in workers:
            worker.commit()
        seen.append(
            sorted(
                (source.partition, each.epoch.note if each.epoch else "")
                for worker in workers
                for source, each in worker.partitions.items()
            )
        )

    with ExitStack() as stack:

        def started(instance: str, settings: Settings) -> tuple[Worker, ExitStack]:
            own = stack.enter_context(ExitStack())
            worker = worker_on(own.enter_context(site.log(instance)), settings)
            worker.join()
            return worker, own

        one, log_one = started("one", before)
        two, log_two = started("two", before)
        work(one, two)
        two.finish()
        log_two.close()
        work(one)  # its partitions have gone to the other, which is not restarted yet
        two, log_two = started("two", after)
        work(one, two)  # one of them is under the new settings now
        two.finish()
        log_two.close()
        work(one)  # which the other, of the old ones, goes on with
        two, log_two = started("two", after)
        work(one, two)
        one.finish()
        log_one.close()
        work(two)
        one, log_one = started("one", after)
        work(one, two)
    notes = [{note for _, note in each} for each in seen]
    assert [len(each) for each in notes[:3]] == [1, 1, 2]
    assert notes[2] == notes[3]
    new = dict(seen[2])
    for each in seen[3:]:
        assert all(note == new[number] for number, note in each if new[number].startswith("epoch"))
    assert all(note.startswith("epoch 2") for note in notes[-1])
    outputs = site.outputs()
    expected = site.undisturbed(tmp_path, dict(before.model_dump(mode="json", exclude_defaults=True)["models"]))
    kept = ["", *before.models]
    assert _part(outputs, kept, _always) == _part(expected, kept, _always)


def test_an_audit_beside_a_worker(site: Site) -> None:
    """The state of a group that is at work can be audited; nothing is left of what was deleted."""
    site.send(400)
    with site.log("one") as log, site.log("auditor") as own:
        worker = worker_on(log, site.settings)
        make_ready(worker)
        until(worker, lambda: site.is_read(own), 60)
        found = audit(own, site.settings, (), sample=5)
        assert found.ids
        assert not found.live
        assert {finding.model for finding in found.findings} == {*site.models}
        assert [finding.left for finding in found.findings if finding.model in ("everything", "forgetting")] == (
            2 * PARTITIONS * [()]
        )
        worker.run_once()  # nobody has shut it out
        worker.finish()
