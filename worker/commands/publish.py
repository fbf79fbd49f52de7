"""`anabranch publish`: a file, a generated stream or a recording, as events of a topic."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import click
from click.core import ParameterSource

from worker.codec.reference import LATEST
from worker.commands.common import until_signalled
from worker.commands.publish_columns import check_columns, column_options, file_options, named_format
from worker.commands.publish_recording import publish_recording
from worker.commands.publish_source import Source, file_source, generated_source, show_progress
from worker.commands.publish_target import Target, target_options
from worker.log.port import LogError
from worker.publishing.fitting import fitting
from worker.publishing.publisher import Form, chunks, finish, make_records, write
from worker.safe_text import json_line, printable_lines
from worker.sources import FORMATS, BadLine, Columns, Entry, Example, SourceError
from worker.sources.example import Label
from worker.sources.example import label as read_label
from worker.sources.generators import GENERATORS, Generator, generate
from worker.sources.updates import Updates, parse, with_deletes
from worker.watching import logs

_SHOWN_BAD = 5  # bad lines that are told one by one; the rest are counted
_DRY = 5
_OF_RECORDINGS = {"recording", "speed", "log_path", "settings_file", "topic", "limit", "timestamp"}


def _labels(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[Label, Label]:
    labels: dict[Label, Label] = {}
    for pair in ",".join(values).split(",") if values else ():
        old, equals, new = pair.rpartition("=")
        if not equals or not old or not new:
            raise click.BadParameter(f"expected OLD=NEW, got {pair!r}; write ham=0,spam=1")
        labels[read_label(old)] = read_label(new)
    return labels


def _updates(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Updates | None:
    try:
        return None if value is None else parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


_EXAMPLES = """\b
Examples:
  anabranch publish sms.txt --log events.db --topic sms
  anabranch publish sms.txt --to worker.yaml
  anabranch publish clicks.csv --label clicked --id request --time at \\
      --key campaign --log events.db --topic clicks --partitions 4
  anabranch publish a9a.libsvm --map-label -1=0,+1=1 --batch 1000 \\
      --log events.db --topic adult
  anabranch publish --generate led:noise=10,seed=7 --events 100000 \\
      --log events.db --topic led
  anabranch publish --recording sms.db --to worker.yaml --speed 10
"""


@click.command(
    short_help="Turn a file, a generated stream or a recording into events of a topic.", epilog=_EXAMPLES
)
@click.argument("file", required=False)
@click.option(
    "--generate",
    "described",
    metavar="STREAM",
    help=f"Instead of FILE: one of {', '.join(GENERATORS)}, as in led:noise=10,seed=7; drifts as in"
    " sea:function=1+sea:function=2@15000/1000.",
)
@click.option(
    "--recording",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Instead of FILE: a recording, whose records stay as they are, each in its partition.",
)
@click.option(
    "--speed",
    metavar="X",
    type=click.FloatRange(min=0, min_open=True),
    help="--recording: in the time it took, by the records' timestamps, divided by X.  [default: at once]",
)
@target_options
@file_options
@column_options
@click.option("--key-value", metavar="TEXT", help="One key for all.  [default: the topic's name]")
@click.option(
    "--as",
    "default_op",
    type=click.Choice(["insert", "predict", "delete", "label"]),
    default="insert",
    show_default=True,
    help="What events are of which the file does not say it. Predicts need no label, labels no features.",
)
@click.option("--number-ids", is_flag=True, help="Ids 0, 1, 2, ... in the order of the file.")
@click.option(
    "--updates",
    metavar="MODEL",
    callback=_updates,
    help="Delete examples again, by id: window:W once their key has W newer ones; random:P[,seed=S] any, each next"
    " event with probability P.",
)
@click.option(
    "--map-label",
    "--labels",
    "labels",
    metavar="OLD=NEW,...",
    multiple=True,
    callback=_labels,
    help="Rename labels.",
)
@click.option(
    "--ids/--names",
    default=None,
    help="--generate: what attributes go by.  [default: names; ids where all are binary]",
)
@click.option("--packed", is_flag=True, help="Pack integer features: quicker to read.")
@click.option("--batch", type=click.IntRange(1, 65_536), help="Columnar records of up to so many events.")
@click.option("--limit", "--events", metavar="N", type=click.IntRange(1), help="Stop after N events.")
@click.option(
    "--timestamp", metavar="MS", type=click.IntRange(1, LATEST), help="For events without a time, instead of now."
)
@click.option("--skip-bad", is_flag=True, help="Count lines that are no events, and go on.")
@click.option("--dry-run", is_flag=True, help=f"Print the first {_DRY} events as JSON and write nothing.")
def publish(
    file: str | None,
    described: str | None,
    recording: Path | None,
    speed: float | None,
    target: Target,
    format_name: str | None,
    encoding: str,
    columns: Columns,
    default_op: str,
    key_value: str | None,
    number_ids: bool,
    updates: Updates | None,
    labels: dict[Label, Label],
    ids: bool | None,
    packed: bool,
    batch: int | None,
    limit: int | None,
    timestamp: int | None,
    skip_bad: bool,
    dry_run: bool,
) -> None:
    """Turn a file, a generated stream or a recording into events of a topic.

    FILE may be - for standard input, and gzip is understood. A file goes in chunk by chunk, each in one
    transaction. At a line that is no event it stops, and nothing of that line's chunk is written.
    """
    logs.configure("warning", "auto", sys.stderr)
    if recording is not None:
        _check_recording(target)
        publish_recording(recording, target, speed=speed, limit=limit, timestamp=timestamp)
        return
    _check_pairs(columns, key_value, batch, speed, packed=packed)
    if file is not None and described is None:
        format_name = named_format(file, format_name)
        columns = replace(columns, unlabelled=default_op not in ("insert", "label"))
        _check_file(format_name, columns, ids=ids, number_ids=number_ids, packed=packed)
        columns = replace(columns, identified=default_op == "label" and not number_ids and updates is None)
        source = partial(file_source, file, format_name, columns, encoding)
    elif described is not None and file is None:
        stream = _stream(described)
        ids = stream.schema.is_binary if ids is None else ids
        _check_stream(described, format_name, columns, ids=ids, packed=packed, endless=not limit and not dry_run)
        source = partial(generated_source, described, stream, ids, limit)
    else:
        got = "none; name one" if file is None else "two; leave one out"
        raise click.UsageError(f"expected FILE, --generate STREAM or --recording FILE, got {got}")
    _check_target(target, dry_run=dry_run)
    topic = target.the_topic() if target.is_named else target.topic or "topic"  # the last where nothing is written
    _check_format(target, topic)
    form = Form(topic, 1, topic if key_value is None else key_value, packed, batch, target.partitioner)
    clock: Callable[[], int] = (lambda: timestamp) if timestamp else (lambda: time.time_ns() // 1_000_000)
    done = _Done()
    try:
        with ExitStack() as stack:
            opened = source(stack)
            finished = finish(opened.entries, labels, number_ids=number_ids or updates is not None, op=default_op)
            entries: Iterator[Entry] = islice(finished, limit)
            stopped = stack.enter_context(until_signalled())
            log = None if dry_run else stack.enter_context(target.opened([topic], stopped))
            if format_name is not None and FORMATS[format_name].is_table:
                opened.known.update(target.known_features(log, topic))  # before the first row is read
            if target.settings is not None:
                entries = fitting(entries, target.settings, topic)
            if updates is not None:
                entries = with_deletes(entries, updates)
            if log is None:
                _print_events(opened, list(islice(entries, _DRY)), form, clock(), skip_bad=skip_bad)
                return
            form = replace(form, partitions=target.prepare(log, topic, target.partitions))
            done.before = target.records(log, topic, form.partitions)
            advance = stack.enter_context(show_progress(opened))
            for chunk in chunks(entries, opened.size):
                if stopped():
                    raise LogError(f"stopped before the end of {opened.name}")
                made = make_records(chunk, form, clock())
                _judge(opened, made.bad, done, skip_bad=skip_bad)
                done.records += write(log, made.records)
                done.events += made.events
                advance(done.events)
    except (LogError, SourceError) as error:
        written = f"\n{_count(done.events, 'event')} before that went to {topic}" if done.events else ""
        raise click.ClickException(printable_lines(f"{error}{written}")) from error
    _print_end(opened, done, form, target)


def _check_pairs(
    columns: Columns, key_value: str | None, batch: int | None, speed: float | None, *, packed: bool
) -> None:
    """Refuse options that exclude each other, or mean nothing without a recording."""
    if speed is not None:
        raise click.UsageError("expected --speed with --recording alone; leave it out")
    if columns.key is not None and key_value is not None:
        raise click.UsageError("expected --key or --key-value, got both; leave one out")
    if packed and batch is not None:
        raise click.UsageError("expected --packed or --batch, got both; columnar records are packed anyway")


def _check_format(target: Target, topic: str) -> None:
    """Refuse to write msgpack events where the worker reads others, which it would all refuse."""
    format = "msgpack" if target.settings is None else target.settings.topic(topic).format
    if format != "msgpack":
        raise click.UsageError(
            f"expected a topic with format msgpack, which is what publish writes; {topic!r} has format {format}; "
            "publish to another input, or write to this one with a producer of that format"
        )


def _check_target(target: Target, *, dry_run: bool) -> None:
    """Refuse to publish to nowhere."""
    if not target.is_named and not dry_run:
        raise click.UsageError(
            "expected --log FILE, an embedded log to write to, or --to SETTINGS; name one, or --dry-run"
        )


def _check_recording(target: Target) -> None:
    """Refuse what means nothing to a recording, whose records stay as they are."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name not in _OF_RECORDINGS:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else "FILE"
            raise click.UsageError(
                f"expected no {name} with --recording, whose records stay as they are; leave it out"
            )
    if not target.is_named:
        raise click.UsageError("expected --to SETTINGS, the log to publish to, or --log FILE; name one")


@dataclass
class _Done:
    """What has been done so far, and how many records there were before."""

    before: int = 0
    events: int = 0
    records: int = 0
    skipped: int = 0


def _check_file(format_name: str, columns: Columns, *, ids: bool | None, number_ids: bool, packed: bool) -> None:
    """Refuse options that contradict each other or mean nothing to the format."""
    check_columns(format_name, columns)
    if format_name == "parquet" and (columns.header is not None or columns.delimiter is not None):
        raise click.UsageError(
            "expected no --header and --delimiter with Parquet, which has neither; leave them out"
        )
    if ids is not None:
        raise click.UsageError("expected --ids and --names with --generate alone, got a file; leave them out")
    if number_ids and (columns.id is not None or format_name == "jsonl"):
        raise click.UsageError("expected --number-ids where the file has no ids; leave it out")
    if packed and not FORMATS[format_name].has_ids:
        raise click.UsageError(f"expected integer features for --packed, {format_name} gives names; leave it out")


def _stream(described: str) -> Generator:
    """Return a generated stream by its description."""
    try:
        return generate(described)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--generate") from error


def _check_stream(
    described: str, format_name: str | None, columns: Columns, *, ids: bool, packed: bool, endless: bool
) -> None:
    """Refuse options that mean nothing to a generated stream."""
    if format_name is not None or columns != Columns():
        raise click.UsageError(
            "expected no options about a file's format or columns with --generate; leave them out"
        )
    if packed and not ids:
        raise click.UsageError(
            f"expected integer features for --packed, {described} gives names; say --ids as well"
        )
    if endless:
        raise click.UsageError("expected --events N with --generate, as the stream has no end; say how many")


def _judge(source: Source, bad: list[BadLine], done: _Done, *, skip_bad: bool) -> None:
    """Stop at the first bad line, or tell of the first few and count."""
    if bad and not skip_bad:
        raise SourceError(
            f"{source.name}:{bad[0].line}: {bad[0].why}\n"
            "nothing of its chunk was written; correct the line, or go on past such lines with --skip-bad"
        )
    for entry in bad[: max(0, _SHOWN_BAD - done.skipped)]:
        click.echo(printable_lines(f"{source.name}:{entry.line}: {entry.why}"), err=True)
    done.skipped += len(bad)


def _print_events(source: Source, entries: list[Entry], form: Form, now: int, *, skip_bad: bool) -> None:
    """Print events as JSON lines that `--format jsonl` reads."""
    _print_notes(source)
    bad = make_records(entries, form, now).bad
    _judge(source, bad, _Done(), skip_bad=skip_bad)
    skipped = {each.line for each in bad}
    for entry in entries:
        if isinstance(entry, Example) and entry.line not in skipped:
            key = form.key if entry.key is None else entry.key
            click.echo(json_line({"key": key, **entry.fields}))


def _print_notes(source: Source) -> None:
    for note in source.notes.values():
        click.echo(printable_lines(note), err=True)


def _print_end(source: Source, done: _Done, form: Form, target: Target) -> None:
    _print_notes(source)
    if done.skipped:
        click.echo(f"skipped {_count(done.skipped, 'line')} of {source.name}", err=True)
    records = "" if form.batch is None else f" in {_count(done.records, 'record')}"
    partitions = _count(form.partitions, "partition")
    # A file that is published again is learned again.
    behind = f", behind {_count(done.before, 'record')} from before" if done.before else ""
    click.echo(f"{_count(done.events, 'event')}{records} to {form.topic} ({partitions}) of {target.name}{behind}")
    click.echo(target.next_steps(form.topic))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
