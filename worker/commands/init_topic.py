"""What `anabranch init` looks at where it is given no file of data: some events of a topic."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from worker.commands.common import clear_errors, open_log, read_settings
from worker.log.browse import Browser, Record, partitions_of
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError, TopicPartition, Watermarks
from worker.settings import Settings
from worker.settings.file import read_file
from worker.sources.overview import Contents
from worker.sources.topic import topic_contents
from worker.views.words import topic_word

SAMPLE = 50_000  # events; some seconds of looking
_STRETCHES = 20  # of a partition that has more
_BYTES = 256 << 20  # of records
_UNSEEN = "classes and features that only others have are not in the settings"
_SQLITE = b"SQLite format 3\0"  # which a file of an embedded log begins with
_WRITTEN = (".out", ".dead", ".state")  # topics that workers write, by their usual names


class Place(NamedTuple):
    """A log, and how settings of another file name it."""

    settings: Settings | None  # of a cluster; None: an embedded log
    path: Path | None  # of the embedded log
    log: dict[str, Any]  # as new settings name it


def is_log(path: str) -> bool:
    """Return whether a file is an embedded log, or settings that name a log."""
    if path.endswith((".yaml", ".yml")):
        return True
    with open(path, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def place_of(path: str | None, bootstrap: str | None, output: Path) -> Place:
    """Return the log that is a file, that settings name or that is a cluster."""
    if path is None:
        kafka = {"kafka": {"bootstrap": bootstrap}}
        # A model that nobody runs: all that is wanted are the settings of the log.
        model = {"kind": "split", "input": "topic", "classes": [0, 1], "features": "ids"}
        text = json.dumps({"log": kafka, "models": {"none": model}})
        return Place(Settings.model_validate_json(text, context={"folder": Path()}), None, kafka)
    if path.endswith((".yaml", ".yml")):
        settings = read_settings(Path(path))
        if settings.log.embedded is not None:
            return _embedded(settings.log.embedded, output)
        return Place(settings, None, read_file(Path(path)).data["log"])
    return _embedded(Path(path), output)


def _embedded(path: Path, output: Path) -> Place:
    # As settings have it: from their own folder.
    written = path if path.is_absolute() else Path(os.path.relpath(path, output.parent))
    return Place(None, path, {"embedded": str(written)})


def look(place: Place, topic: str | None) -> tuple[str, Contents]:
    """Return the topic and what its last events hold."""
    with clear_errors(), _opened(place) as log:
        known = list(log.topics()) if isinstance(log, EmbeddedLog) else []
        topic = topic or only(known)
        if place.settings is not None and log.partitions(topic) is None:
            raise LogError(
                f"expected the topic {topic!r} in the cluster, there is none; check its name, or look at a FILE"
            )
        sources = partitions_of(log, topic, known)
        bounds = {source: log.watermarks(source) for source in sources}
        count, most = sum(high - low for low, high in bounds.values()), -(-SAMPLE // max(1, len(sources)))
        if any(high - low > most for low, high in bounds.values()):
            click.echo(
                f"{topic_word(topic)}: looking at {_STRETCHES} stretches of its {count:,} records, some "
                f"{SAMPLE:,}; {_UNSEEN}",
                err=True,
            )
        found = topic_contents(_sample(log, bounds, most), SAMPLE, _BYTES)
        if found.skipped:
            click.echo(
                f"{topic_word(topic)}: {found.skipped:,} events of large records passed over; {_UNSEEN}", err=True
            )
        return topic, found


def _sample(log: Log, bounds: dict[TopicPartition, Watermarks], most: int) -> Iterator[Record]:
    """Yield all records of each partition, or stretches from its begin to its end: events change with time."""
    for source, (low, high) in bounds.items():
        if high - low <= most:
            yield from Browser(log, {source: Watermarks(low, high)}, notify=_notify).scan()
            continue
        each = -(-most // _STRETCHES)
        for number in range(_STRETCHES):
            start = low + (high - low - each) * number // (_STRETCHES - 1)
            yield from Browser(log, {source: Watermarks(start, start + each)}, notify=_notify).scan()


def _notify(sentence: str) -> None:
    click.echo(sentence, err=True)


def only(known: list[str]) -> str:
    """Return the only topic that holds events."""
    events = [topic for topic in known if not topic.endswith(_WRITTEN)]
    if len(events) == 1:
        return events[0]
    shown = f", one of {', '.join(map(topic_word, events))}" if events else ""
    raise click.UsageError(f"expected --topic NAME, the topic to look at{shown}; name one")


@contextmanager
def _opened(place: Place) -> Iterator[Log]:
    if place.settings is None:
        assert place.path is not None
        with EmbeddedLog(place.path, create=False) as embedded:
            yield embedded
        return
    with open_log(place.settings, role="-init") as log:
        yield log
