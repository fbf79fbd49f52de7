"""The topics that a worker needs: what is missing, what is unfit, what is created."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.support.about import ABOUT
from tests.support.workers import worker_on
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError
from worker.loop import Worker
from worker.settings import Settings, load
from worker.topics import create_topics, input_partitions, lacking_topics, missing_topics
from worker.watching.http import Pages
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard

TEXT = """\
log: {embedded: log.db}
models:
  spam: {kind: split, input: sms, classes: [ham, spam], features: names}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a settings file."""
    path = tmp_path / "worker.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def settings(path: Path) -> Settings:
    """Return the settings of the file."""
    return load(path, {})


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """Yield the log of the settings, with an input of three partitions."""
    with EmbeddedLog(tmp_path / "log.db") as opened:
        opened.create_topic("sms", 3)
        yield opened


def test_what_is_missing_is_created(log: EmbeddedLog, settings: Settings) -> None:
    """What the worker writes has the partitions of its input; the topic for checkpoints is compacted."""
    assert [topic.name for topic in missing_topics(log, settings)] == ["sms.out", "sms.dead", "sms.state"]
    create_topics(log, settings)
    assert missing_topics(log, settings) == []
    assert [log.partitions(topic) for topic in ("sms.out", "sms.dead", "sms.state")] == [3, 3, 3]
    assert [log.is_compacted(topic) for topic in ("sms.out", "sms.dead", "sms.state")] == [False, False, True]


def test_without_checkpoints_there_is_no_state_topic(log: EmbeddedLog, settings: Settings) -> None:
    """A worker that makes no checkpoints needs no topic for them."""
    plain = settings.model_copy(update={"checkpoint": None})
    assert [topic.name for topic in missing_topics(log, plain)] == ["sms.out", "sms.dead"]


def test_an_input_must_be_there_and_keep_every_event(log: EmbeddedLog, settings: Settings) -> None:
    """A missing input is named with its models, and a compacted one is refused."""
    other = Settings.model_validate_json(settings.model_dump_json().replace('"sms"', '"mail"'))
    with pytest.raises(LogError, match="expected the topic 'mail', the input of model spam; there is none"):
        input_partitions(log, other)
    log.create_topic("mail", 1, compacted=True)
    with pytest.raises(LogError, match=r"to keep every event; it is compacted.*cleanup.policy"):
        input_partitions(log, other)


@pytest.mark.parametrize("topic", ["sms.out", "sms.dead", "sms.state"])
def test_a_topic_of_another_size_is_refused(log: EmbeddedLog, settings: Settings, topic: str) -> None:
    """What follows from partition n goes to partition n, so there must be as many."""
    log.create_topic(topic, 2)
    with pytest.raises(LogError, match=rf"'{topic}'.*to have 3 partitions, as its input does; it has 2"):
        missing_topics(log, settings)


@pytest.mark.parametrize(("topic", "policy"), [("sms.out", "delete"), ("sms.state", "compact")])
def test_a_topic_of_another_policy_is_refused(
    log: EmbeddedLog, settings: Settings, topic: str, policy: str
) -> None:
    """Results must all be kept, and checkpoints must not all be kept."""
    log.create_topic(topic, 3, compacted=policy == "delete")
    with pytest.raises(LogError, match=rf"'{topic}'.*to have cleanup.policy={policy}"):
        missing_topics(log, settings)


def test_create_shows_what_it_will_do_first(log: EmbeddedLog, path: Path) -> None:
    """The command lists what is missing and creates nothing where the answer is no."""
    told = CliRunner().invoke(main, ["topics", "create", str(path)], input="n\n")
    assert told.exit_code == 1
    assert told.output.index("sms.state") < told.output.index("create those that are missing?")
    assert log.partitions("sms.out") is None
    told = CliRunner().invoke(main, ["topics", "create", str(path), "--yes"])
    assert told.exit_code == 0, told.output
    assert "created: sms.out, sms.dead, sms.state" in told.output
    assert "all topics are there" in CliRunner().invoke(main, ["topics", "create", str(path)]).output
    assert "missing" not in CliRunner().invoke(main, ["topics", "list", str(path)]).output


def test_create_makes_inputs_when_told(log: EmbeddedLog, path: Path) -> None:
    """Input topics belong to others, so they are created only with the number of partitions said."""
    path.write_text(TEXT.replace("sms", "mail"))
    refused = CliRunner().invoke(main, ["topics", "create", str(path), "--yes"])
    assert refused.exit_code == 1
    assert "there is none; publish events to it first" in refused.output
    told = CliRunner().invoke(main, ["topics", "create", str(path), "--yes", "--inputs", "4"])
    assert told.exit_code == 0, told.output
    assert [log.partitions(topic) for topic in ("mail", "mail.out")] == [4, 4]


def test_unfit_topics_are_all_named(log: EmbeddedLog, path: Path) -> None:
    """The command ends with a line for each topic that is not as it must be, and creates nothing beside them."""
    log.create_topic("sms.out", 2)
    log.create_topic("sms.state", 3)
    told = CliRunner().invoke(main, ["topics", "create", str(path), "--yes"])
    assert told.exit_code == 1
    assert "'sms.out' (results of sms) to have 3 partitions" in told.output
    assert "'sms.state' (checkpoints of sms) to have cleanup.policy=compact" in told.output
    assert log.partitions("sms.dead") is None


def test_create_can_be_run_again(log: EmbeddedLog, path: Path) -> None:
    """It says what is there, and where an input is not as large as one that it would create."""
    del log
    again = [CliRunner().invoke(main, ["topics", "create", str(path), "--yes", "--inputs", "3"]) for _ in range(2)]
    assert [told.exit_code for told in again] == [0, 0]
    assert "there already: sms, partitions: 3\n" in again[1].output
    assert re.findall(r"(sms\.\w+).* there", again[1].output) == ["sms.out", "sms.dead", "sms.state"]
    assert again[1].output.endswith("all topics are there\n")
    other = CliRunner().invoke(main, ["topics", "create", str(path), "--yes", "--inputs", "12"])
    assert other.exit_code == 0
    assert "partitions: 3, not the 12 of --inputs, which is for missing ones" in other.output


# --- workers that wait for them


def _in_a_cluster(settings: Settings, seconds: float) -> Settings:
    """Return settings that say that topics are made by others, and how long to wait for them."""
    kafka = {"bootstrap": "nowhere:1", "topic_wait_seconds": seconds}
    told = settings.model_dump(mode="json", exclude_unset=True) | {"log": {"kafka": kafka}}
    return Settings.model_validate_json(json.dumps(told))


def test_topics_are_waited_for_within_a_bound(tmp_path: Path, settings: Settings) -> None:
    """Each look tells what is still missing; after the last one an error names topics, uses and the command."""
    waiting = _in_a_cluster(settings, 10.0)
    with EmbeddedLog(tmp_path / "log.db") as log:
        now = 100.0
        looks = lacking_topics(log, waiting, lambda: now)
        assert next(looks) == (("sms", "sms.out", "sms.dead", "sms.state"), 10.0)
        log.create_topic("sms", 1)
        log.create_topic("sms.out", 1)
        now = 109.0
        assert next(looks) == (("sms.dead", "sms.state"), 1.0)
        now = 110.0
        with pytest.raises(LogError, match=r"'sms.dead' \(refused.*'sms.state'.*after 10 s .*create SETTINGS$"):
            next(looks)
        create_topics(log, settings)
        assert list(lacking_topics(log, waiting, lambda: now)) == []


def test_topics_that_are_unfit_are_not_waited_for(tmp_path: Path, settings: Settings) -> None:
    """Nothing that is missing keeps a person from hearing at once that a topic beside it is not as it must be."""
    looks = partial(lacking_topics, settings=_in_a_cluster(settings, 60.0), clock=time.monotonic)
    with EmbeddedLog(tmp_path / "input.db") as log:
        log.create_topic("sms", 1, compacted=True)
        with pytest.raises(
            LogError, match=r"'sms', the input of model spam, to keep every event; it is compacted"
        ):
            next(looks(log))
    with EmbeddedLog(tmp_path / "written.db") as log:
        log.create_topic("sms", 3)
        log.create_topic("sms.dead", 2)
        with pytest.raises(LogError, match=r"'sms.dead'.*to have 3 partitions, as its input does; it has 2"):
            next(looks(log))


def test_a_missing_input_is_created_by_a_person_with_a_number(tmp_path: Path, settings: Settings) -> None:
    """Where an input is missing, the command in the error has the option for it; at 0 s nothing is waited for."""
    with (
        EmbeddedLog(tmp_path / "log.db") as log,
        pytest.raises(LogError, match=r"'sms' \(the input of model spam\).*SETTINGS --inputs PARTITIONS$"),
    ):
        next(lacking_topics(log, _in_a_cluster(settings, 0.0), time.monotonic))


def test_an_embedded_log_is_not_waited_for(tmp_path: Path, settings: Settings) -> None:
    """What it lacks is the worker's to create, and a missing input a person's mistake."""
    with EmbeddedLog(tmp_path / "log.db") as log:
        assert list(lacking_topics(log, settings, time.monotonic)) == []
        with pytest.raises(LogError, match="publish events to it first"):
            worker_on(log, settings).join()


def test_a_worker_waits_and_says_so_once(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It joins once the topics are there; until then one line of the log and the pages name those that are not."""
    monkeypatch.setattr("worker.loop._TOPICS_SECONDS", 0.0)
    board = StatusBoard(Status(0.0))
    pages = Pages(CollectorRegistry(), board, 30.0, time.monotonic, ABOUT)
    seen: list[tuple[int, bytes]] = []
    with EmbeddedLog(tmp_path / "log.db") as log, capture_logs() as lines:
        worker = Worker(
            log, _in_a_cluster(settings, 60.0), WorkerListener(Metrics(CollectorRegistry(), "0"), board)
        )

        def look() -> bool:
            if board.status.state == "waiting":
                seen.append(pages.get("/readyz", "")[::2])
                assert pages.get("/livez", "").status == 200
                assert b"waiting for the topics sms" in pages.get("/", "").body
                if len(seen) == 2:
                    log.create_topic("sms", 2)
                elif len(seen) == 3:
                    create_topics(log, settings)
            return False

        worker.join(look)
        assert log.owned is not None
    assert [json.loads(body)["why"] for _, body in seen] == [
        "the worker is waiting for the topics sms, sms.out, sms.dead, sms.state",
        "the worker is waiting for the topics sms, sms.out, sms.dead, sms.state",
        "the worker is waiting for the topics sms.out, sms.dead, sms.state",
    ]
    assert {status for status, _ in seen} == {503}
    said = [line for line in lines if line["event"].startswith("waiting")]
    assert [(line["log_level"], line["topics"][0]) for line in said] == [("warning", "sms")]
    assert board.status.phase == "restoring"


def test_a_worker_that_waits_can_be_stopped(tmp_path: Path, settings: Settings) -> None:
    """A signal ends the wait without an error, and the group is not joined."""
    with EmbeddedLog(tmp_path / "log.db") as log:
        worker_on(log, _in_a_cluster(settings, 60.0)).run(lambda: True)
        assert log.owned is None
