"""`anabranch publish --recording`: records as they were recorded, to another log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from worker.commands.common import fail, until_signalled
from worker.commands.publish_target import Target
from worker.log.browse import Browser, Record
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError, OutRecord, TopicPartition, Watermarks
from worker.publishing.publisher import write
from worker.recordings.pacing import Pacing
from worker.views.words import topic_word


def publish_recording(
    path: Path, target: Target, *, speed: float | None, limit: int | None, timestamp: int | None
) -> None:
    """Publish topics of a recording, and tell what was done.

    Parameters
    ----------
    path
        The recording.
    target
        Where to.
    speed
        How many times as fast as it was recorded; None: as fast as it goes.
    limit
        How many records; None: all.
    timestamp
        For records that have none, ms since the epoch.
    """
    done = 0
    try:
        with until_signalled() as stopped, EmbeddedLog(path, create=False) as recording:
            topics = _topics(recording, path, target)
            _check_other_file(path, target)
            with target.opened(topics, stopped) as log:
                bounds: dict[TopicPartition, Watermarks] = {}
                for topic in topics:
                    count = target.prepare(log, topic, recording.partitions(topic))
                    for number in range(count):
                        source = TopicPartition(topic, number)
                        bounds[source] = recording.watermarks(source)
                pacing = Pacing(speed, notify=_notify_wait)
                with _progress(sum(high - low for low, high in bounds.values())) as (passed, published):
                    records = islice(Browser(recording, bounds).scan(passed), limit)
                    for batch in pacing.batches(records, stopped):
                        if stopped():
                            raise LogError("stopped before the end of the recording")
                        done += write(log, [_out(record, path, timestamp) for record in batch])
                        published(done)
    except LogError as error:
        written = f"\n{_records(done)} before that went to {', '.join(topics)}" if done else ""
        fail(f"{error}{written}")
    click.echo(f"{_records(done)} of {path} to {', '.join(map(topic_word, topics))} of {target.name}")
    click.echo(target.next_steps(topics[0]))


def _topics(recording: EmbeddedLog, path: Path, target: Target) -> list[str]:
    """Return the topics to be published: the one that was named, else the inputs of the settings."""
    held = recording.topics()
    wanted = target.inputs if target.topic is None else [target.topic]
    found = [topic for topic in wanted if topic in held]
    if found:
        return found
    if not wanted:
        raise click.UsageError("expected --topic NAME, the topic of the recording to publish; name one")
    raise LogError(
        f"expected a recording of {' or '.join(wanted)}, {path} holds {', '.join(held) or 'no topics'}; "
        "say which one with --topic"
    )


def _check_other_file(path: Path, target: Target) -> None:
    file = target.log_path if target.settings is None else target.settings.log.embedded
    if file is not None and file.exists() and file.samefile(path):
        raise LogError(f"{path}: is the log to publish to as well; name another recording or another log")


def _out(record: Record, path: Path, timestamp: int | None) -> OutRecord:
    """Return a record as it is; only one without a timestamp gets one."""
    source = record.source
    time = record.timestamp if record.timestamp >= 1 else timestamp
    if time is None:
        raise LogError(
            f"{path}: expected a timestamp of each record, {source.topic}/{source.partition} offset "
            f"{record.offset} has none ({record.timestamp}); say with --timestamp MS which one to take"
        )
    return OutRecord(*source, record.key, record.value, record.headers, time)


def _notify_wait(seconds: float) -> None:
    click.echo(f"the next record is due in {seconds:,.0f} s", err=True)


@contextmanager
def _progress(total: int) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Show on a terminal how far it has come.

    Yields what is to be told how many offsets were passed, and what is told the count of records published.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.fields[records]:,} records"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total, records=0)
        yield (
            lambda offsets: progress.advance(task, offsets),
            lambda records: progress.update(task, records=records),
        )


def _records(number: int) -> str:
    return f"{number:,} record" + ("" if number == 1 else "s")
