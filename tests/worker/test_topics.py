"""The topics that a worker needs: what is missing, what is unfit, what is created."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError
from worker.settings import Settings, load
from worker.topics import create_topics, input_partitions, missing_topics

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
    assert told.output.index("sms.state") < told.output.index("create these?")
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
