"""The command `publish` in tests, and what it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.support.contents import contents
from worker.codec import Bounds, decode_batch
from worker.codec.events import INSERT
from worker.codec.reference import Event
from worker.commands.publish import publish
from worker.log.embedded import EmbeddedLog
from worker.log.port import Records, TopicPartition

NOW = 1_700_000_000_000


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(publish, [str(argument) for argument in arguments], input=stdin)


def published(folder: Path, name: str, text: str, *options: str) -> list[Event]:
    """Publish a file that is as it should be, and return the events that a worker reads."""
    log = folder / "events.db"
    log.unlink(missing_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    result = run(folder / name, "--log", log, "--topic", "t", "--timestamp", NOW, *options)
    assert result.exit_code == 0, result.output
    return events_of(log)


def records_of(log: Path, topic: str = "t") -> list[Records]:
    """Return the records of each partition of a topic."""
    with EmbeddedLog(log, create=False) as opened:
        count = opened.partitions(topic) or 0
        return [opened.read(TopicPartition(topic, number), 0, 100_000) for number in range(count)]


def events_of(log: Path, topic: str = "t") -> list[Event]:
    """Return the events of a topic, as a worker reads them."""
    found = []
    for records in records_of(log, topic):
        events, faults = decode_batch(records.values, records.timestamps, Bounds(), records.keys)
        assert not faults
        found += [event for _, _, event in contents(events)]
    return found


def insert(features: tuple[Any, ...], label: int | float | str, **more: Any) -> Event:
    """Return what an insert is read as; its features are binary unless values are given."""
    values = more.pop("values", (1.0,) * len(features))
    return Event(INSERT, more.pop("time", NOW), label=label, features=features, values=values, **more)
