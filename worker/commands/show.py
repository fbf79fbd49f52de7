"""`anabranch show`: what a log holds, for people or as JSON lines."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from worker.codec import DeadLetter, Output, Prediction, Split, Tree
from worker.log.browse import Filter, Record, coming, partitions_of, scan, tail
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError
from worker.views.output_text import (
    dead_letter_text,
    event_line,
    output_line,
    predictions_table,
    splits_table,
    tree_heading,
)
from worker.views.overview_text import PartitionRow, overview
from worker.views.record_json import as_object, result_of
from worker.views.tree_text import draw

_LAST = 10  # of each kind


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
    console = Console(highlight=False)
    try:
        with EmbeddedLog(log, group=group, create=False) as opened:
            if topic is None:
                _show_overview(console, opened, group, as_json=as_json)
                return
            sources = partitions_of(opened, topic)
            ends = {source: opened.watermarks(source).high for source in sources}
            if follow:
                _show_lines(console, tail(opened, ends, wanted, last or _LAST), as_json=as_json)
                _show_lines(console, coming(opened, ends, wanted), as_json=as_json)
            elif as_json:
                records = scan(opened, ends, wanted) if last is None else tail(opened, ends, wanted, last)
                _show_lines(console, records, as_json=True)
            else:
                _show_summary(console, topic, scan(opened, ends, wanted), last or _LAST)
    except KeyboardInterrupt:
        if not follow:
            raise
    except (LogError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _show_overview(console: Console, log: EmbeddedLog, group: str, *, as_json: bool) -> None:
    rows = []
    for topic in log.topics():
        for source in partitions_of(log, topic):
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
        console.print(f"no such records in {topic}")
        return
    models = sorted({(kind, model) for kind, model, _ in latest})
    for kind, model in models:
        found = [record for identity, record in latest.items() if identity[:2] == (kind, model)]
        _show_latest(console, model, [(record.key, result_of(record)) for record in found[-last:]])
        if len(found) > last:
            console.print(f"... and {len(found) - last:,} more keys (--last N shows more)\n", style="dim")
    for kind, kept in others.items():
        if kind:
            _show_others(console, [(record.key, result_of(record)) for record in kept])
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
            click.echo(json.dumps(as_object(record), ensure_ascii=False))
        elif not record.type:
            _print_line(console, event_line(record.key, record.value, record.timestamp))
        else:
            output = result_of(record)
            _print_line(console, output_line(record.key, output))
            if isinstance(output, Tree):
                console.print(draw(output))


def _print_line(console: Console, line: Text) -> None:
    """Print a line: on a terminal cut at its width, into a file or pipe whole."""
    if console.is_terminal:
        console.print(line, no_wrap=True, overflow="ellipsis")
    else:
        console.print(line, soft_wrap=True)
