"""`anabranch show`: what a log holds, for people or as JSON lines."""

from __future__ import annotations

import dataclasses
import heapq
import json
from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from worker.codec import Bounds, DeadLetter, Output, Prediction, Split, Tree, decode_output
from worker.codec.reference import Event, decode
from worker.log.embedded import EmbeddedLog
from worker.log.port import Headers, LogError, Records, TopicPartition
from worker.views.output_text import (
    dead_letter_text,
    event_line,
    output_line,
    predictions_table,
    splits_table,
    tree_heading,
)
from worker.views.overview_text import PartitionRow, overview
from worker.views.tree_text import draw

_LAST = 10
_READ = 5_000  # records at a time
_POLL_SECONDS = 0.25
_OPS = ("insert", "delete", "predict", "drop")


class Record(NamedTuple):
    """A record of the topic. Its type and model come from the headers: most records are passed over unread."""

    source: TopicPartition
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def type(self) -> str:
        """The type of result; empty for an input event."""
        return (dict(self.headers).get("type") or b"").decode("utf-8", "replace")

    @property
    def model(self) -> str:
        """The model that it is of; empty where it is of none."""
        return (dict(self.headers).get("out_id") or b"").decode("utf-8", "replace").partition(":")[0]


class Filter(NamedTuple):
    """Which records are wanted; None: any."""

    key: bytes | None
    model: str | None

    def wants(self, record: Record) -> bool:
        """Return whether a record is of the key and the model."""
        return self.key in (None, record.key) and self.model in (None, record.model)


@click.command(short_help="Show what a log holds: splits, trees, predictions, dead letters.")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--topic", help="Show the records of this topic; without one, an overview of all topics.")
@click.option("--key", help="Only records of this key.")
@click.option("--model", help="Only results of this model.")
@click.option(
    "--last",
    metavar="N",
    type=click.IntRange(1),
    help=f"Of each kind the last N.  [default: {_LAST}; all as JSON]",
)
@click.option("--follow", is_flag=True, help="Go on with each record as it comes, until interrupted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--group", default="anabranch", show_default=True, help="Whose committed offsets the overview shows."
)
def show(
    log: Path,
    topic: str | None,
    key: str | None,
    model: str | None,
    last: int | None,
    follow: bool,
    as_json: bool,
    group: str,
) -> None:
    """Show what LOG, an embedded log or a recording, holds.

    Of a topic with results: the latest split and tree of each key, the last predictions and dead letters.
    Of a topic with events: the last of them.
    """
    if topic is None and (key is not None or model is not None or last is not None or follow):
        raise click.UsageError("expected --topic with --key, --model, --last and --follow; name a topic")
    wanted = Filter(None if key is None else key.encode(), model)
    console = Console(highlight=False, soft_wrap=False)
    try:
        with EmbeddedLog(log, group=group, create=False) as opened:
            if topic is None:
                _show_overview(console, opened, group, as_json=as_json)
                return
            sources = _partitions(opened, topic)
            ends = {source: opened.watermarks(source).high for source in sources}
            if follow:
                _show_lines(console, _tail(opened, ends, wanted, last or _LAST), as_json=as_json)
                _show_lines(console, _coming(opened, ends, wanted), as_json=as_json)
            elif as_json:
                records = _scan(opened, ends, wanted) if last is None else _tail(opened, ends, wanted, last)
                _show_lines(console, records, as_json=True)
            else:
                _show_summary(console, topic, _scan(opened, ends, wanted), last or _LAST)
    except KeyboardInterrupt:
        if not follow:
            raise
    except (LogError, ValueError) as error:
        raise click.ClickException(str(error)) from error


# Reading


def _partitions(log: EmbeddedLog, topic: str) -> list[TopicPartition]:
    count = log.partitions(topic)
    if count is None:
        known = ", ".join(log.topics()) or "none"
        raise LogError(f"expected a topic of the log ({known}), got {topic!r}; name one of these")
    return [TopicPartition(topic, number) for number in range(count)]


def _records(records: Records) -> Iterator[Record]:
    columns = (records.offsets.tolist(), records.timestamps.tolist(), records.keys, records.values)
    for offset, timestamp, key, value, headers in zip(*columns, records.headers, strict=True):
        yield Record(records.source, offset, timestamp, key, value, headers)


def _scan_one(log: EmbeddedLog, source: TopicPartition, end: int, wanted: Filter) -> Iterator[Record]:
    position = 0
    while position < end:
        read = log.read(source, position, _READ)
        yield from (record for record in _records(read) if record.offset < end and wanted.wants(record))
        position = read.next_offset


def _scan(log: EmbeddedLog, ends: dict[TopicPartition, int], wanted: Filter) -> Iterator[Record]:
    """Return all records up to the ends, partition by partition merged by their timestamps."""
    each = [_scan_one(log, source, end, wanted) for source, end in ends.items()]
    return heapq.merge(*each, key=attrgetter("timestamp"))


def _tail(log: EmbeddedLog, ends: dict[TopicPartition, int], wanted: Filter, last: int) -> Iterable[Record]:
    return deque(_scan(log, ends, wanted), maxlen=last)


def _coming(log: EmbeddedLog, ends: dict[TopicPartition, int], wanted: Filter) -> Iterator[Record]:
    """Yield the records that are written from now on, for ever."""
    log.assign(ends)
    while True:
        for records in log.poll(_READ, _POLL_SECONDS):
            yield from filter(wanted.wants, _records(records))


# Showing


def _show_overview(console: Console, log: EmbeddedLog, group: str, *, as_json: bool) -> None:
    rows = []
    for topic, count in log.topics().items():
        for source in (TopicPartition(topic, number) for number in range(count)):
            low, high = log.watermarks(source)
            rows.append(PartitionRow(*source, high - low, low, high, log.committed(source)))
    if as_json:
        for row in rows:
            click.echo(json.dumps(row._asdict(), ensure_ascii=False))
    elif rows:
        console.print(overview(group, rows))
    else:
        console.print("no topics; publish events first (anabranch publish)")


def _show_summary(console: Console, topic: str, records: Iterable[Record], last: int) -> None:
    """Show the latest split and tree of each key, and the last of everything else."""
    latest: dict[tuple[str, str, bytes | None], Record] = {}
    others: dict[str, deque[Record]] = {}
    for record in records:
        if record.type in ("split", "tree"):
            identity = (record.type, record.model, record.key)
            latest.pop(identity, None)  # so that the dict is in the order of the last changes
            latest[identity] = record
        else:
            others.setdefault(record.type, deque(maxlen=last)).append(record)
    if not latest and not others:
        console.print(f"no records in {topic}" if topic else "")
        return
    models = sorted({(kind, model) for kind, model, _ in latest})
    for kind, model in models:
        found = [record for identity, record in latest.items() if identity[:2] == (kind, model)]
        _show_latest(console, model, [(record.key, _decode(record)) for record in found[-last:]])
        if len(found) > last:
            console.print(f"... and {len(found) - last:,} more keys (--last N shows more)\n", style="dim")
    for kind, kept in others.items():
        if kind:
            _show_others(console, [(record.key, _decode(record)) for record in kept])
        else:
            _show_lines(console, kept, as_json=False)


def _show_latest(console: Console, model: str, found: list[tuple[bytes | None, Output]]) -> None:
    splits = [(key, output) for key, output in found if isinstance(output, Split)]
    if splits:
        console.print(splits_table(model, splits))
    for key, output in found:
        if isinstance(output, Tree):
            console.print(tree_heading(key, output))
            console.print(draw(output))
            console.print()


def _show_others(console: Console, found: list[tuple[bytes | None, Output]]) -> None:
    predictions = [(key, output) for key, output in found if isinstance(output, Prediction)]
    if predictions:
        console.print(predictions_table(predictions))
    for _, output in found:
        if isinstance(output, DeadLetter):
            console.print(dead_letter_text(output))
            console.print()


def _show_lines(console: Console, records: Iterable[Record], *, as_json: bool) -> None:
    for record in records:
        if as_json:
            click.echo(json.dumps(_as_json(record), ensure_ascii=False))
        elif not record.type:
            console.print(event_line(record.key, record.value, record.timestamp))
        else:
            output = _decode(record)
            console.print(output_line(record.key, output))
            if isinstance(output, Tree):
                console.print(draw(output))


def _decode(record: Record) -> Output:
    try:
        return decode_output(record.value or b"", record.headers)
    except ValueError as error:
        topic, partition = record.source
        raise ValueError(f"{topic}/{partition} offset {record.offset}: {error}") from error


def _as_json(record: Record) -> dict[str, Any]:
    """Return a record with its contents; bytes are given as hex."""
    fields: dict[str, Any] = {
        "topic": record.source.topic,
        "partition": record.source.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else record.key.decode("utf-8", "backslashreplace"),
        "type": record.type or "event",
    }
    if record.type:
        output = _decode(record)
        contents = dataclasses.asdict(output)
        if isinstance(output, DeadLetter):
            contents["dead_key"] = contents.pop("key")
        return fields | {name: _plain(value) for name, value in contents.items()}
    rows = decode(record.value, record.timestamp, Bounds())
    return fields | {
        "events": [_event(row) if isinstance(row, Event) else dataclasses.asdict(row) for row in rows]
    }


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _event(event: Event) -> dict[str, Any]:
    fields = dataclasses.asdict(event)
    return fields | {"op": _OPS[event.op]}
