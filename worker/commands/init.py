"""`anabranch init`: a look at a file, settings that fit it, and the commands to go on."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path, PurePath

import click
from rich.console import Console

from worker.commands.common import fail, read_settings
from worker.commands.publish_columns import as_options, column_options, file_options, named_format, no_columns
from worker.commands.publish_source import file_source, lines_source, show_progress
from worker.publishing.publisher import judged
from worker.safe_text import printable_lines
from worker.settings.drafting import DraftError, draft
from worker.sources import FORMATS, Columns, SourceError
from worker.sources.layout import Layout
from worker.sources.overview import Contents, contents, whole_table
from worker.views.contents_text import columns_table, features_words, labels_table
from worker.watching import logs

_EXAMPLES = """\b
Examples:
  anabranch init clicks.csv --label clicked
  anabranch init a9a.libsvm --topic adult --bootstrap 127.0.0.1:9092
"""


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default="worker.yaml",
    show_default=True,
    help="The settings file to write.",
)
@click.option("--force", is_flag=True, help="Write it over another.")
@click.option("--topic", help="The topic of the events.  [default: the file's name]")
@click.option("--log", "log_path", metavar="FILE", default="events.db", show_default=True, help="An embedded log.")
@click.option("--bootstrap", metavar="HOST:PORT", help="Instead of --log: a Kafka cluster.")
@file_options
@column_options
def init(
    file: str,
    output: Path,
    force: bool,
    topic: str | None,
    log_path: str,
    bootstrap: str | None,
    format_name: str | None,
    encoding: str,
    columns: Columns,
) -> None:
    """Look at FILE, show what is in it, and write settings that fit it and the commands to go on.

    All of the file is read, so that what its first rows do not tell is known too. Nothing is published.
    """
    logs.configure("warning", "auto", sys.stderr)
    if output.exists() and not force:
        fail(f"{output}: expected no file there yet, got one; say --output with another name, or --force")
    name = named_format(file, format_name)
    topic = topic or _topic_of(file)
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        layout, columns = _columns(file, name, columns, encoding)
        found, notes = _contents(file, name, columns, encoding)
        for note in notes:
            click.echo(printable_lines(note), err=True)
        _show(console, layout, found)
        text = draft(found, topic, {"kafka": {"bootstrap": bootstrap}} if bootstrap else {"embedded": log_path})
    except (SourceError, DraftError) as error:
        fail(str(error))
    if found.first_bad is not None:
        bad = found.first_bad
        console.print(
            f"lines that are no events: {found.bad:,}, the first is line {bad.line}: {bad.why}", style="red"
        )
    output.write_text(text, "utf-8")
    read_settings(output)
    click.echo(f"{output}: written. Go on with")
    more = as_options(columns)
    more += [f"--format {format_name}"] if format_name else []
    more += [f"--encoding {encoding}"] if encoding != "utf-8" else []
    more += ["--skip-bad"] if found.bad else []
    settings = shlex.quote(str(output))
    for command in (
        *([f"topics create {settings} --inputs 1 --yes"] if bootstrap else []),
        " ".join(["publish", shlex.quote(file), "--to", settings, *more]),
        f"run {settings} --until-end",
        f"show {settings} --topic {topic}.out",
    ):
        click.echo(f"  anabranch {command}")


def _show(console: Console, layout: Layout | None, found: Contents) -> None:
    """Show what was seen."""
    if layout is None and not found.events:
        return
    if layout is None:
        console.print(features_words(found))
    else:
        console.print(columns_table(layout))
    console.print(labels_table(found))


def _topic_of(file: str) -> str:
    """Return the name of a topic that is like the file's."""
    stem = PurePath(file.removesuffix(".gz")).stem
    return re.sub(r"[^a-zA-Z0-9_-]+", "-", stem).strip("-")[:200] or "events"


def _columns(file: str, name: str, columns: Columns, encoding: str) -> tuple[Layout | None, Columns]:
    """Return what the columns of a table are by all of its rows, and what has to be said so that they are."""
    rows = FORMATS[name].rows
    if rows is None:
        label = columns.label if name == "npz" else None
        if columns != Columns(label=label):
            raise no_columns(name)
        return None, columns
    with ExitStack() as stack:
        lines, source = lines_source(file, encoding, stack)
        advance = stack.enter_context(show_progress(source, "rows"))
        layout, said = whole_table(lines, columns, rows(lines, columns), lambda: advance(lines.number))
    return layout, said


def _contents(file: str, name: str, columns: Columns, encoding: str) -> tuple[Contents, list[str]]:
    """Return what the events of the file hold, and what is worth telling of it."""
    with ExitStack() as stack:
        source = file_source(file, name, columns, encoding, stack)
        advance = stack.enter_context(show_progress(source, "events"))
        found = contents(judged(source.entries, source.size), advance)
        return found, list(source.notes.values())
