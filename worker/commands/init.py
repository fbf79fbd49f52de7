"""`anabranch init`: a look at a file or a topic, settings that fit it, and the commands to go on."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import Any

import click
from rich.console import Console

from worker.commands.common import fail, read_settings
from worker.commands.init_topic import Place, is_log, look, place_of
from worker.commands.publish_columns import as_options, check_columns, column_options, file_options, named_format
from worker.commands.publish_source import file_source, lines_source, show_progress
from worker.publishing.publisher import judged
from worker.safe_text import printable_lines
from worker.settings import MetricsSettings
from worker.settings.drafting import DraftError, draft
from worker.sources import FORMATS, Columns, SourceError
from worker.sources.example import brief
from worker.sources.layout import Layout
from worker.sources.overview import Contents, contents, whole_table
from worker.views.contents_text import columns_table, features_table, keys_words, labels_table
from worker.watching import logs

_EXAMPLES = """\b
Examples:
  anabranch init clicks.csv --label clicked
  anabranch init a9a.libsvm --topic adult --bootstrap 127.0.0.1:9092
  anabranch init events.db --topic clicks
  anabranch init --bootstrap 127.0.0.1:9092 --topic clicks
  anabranch init kafka.yaml --topic clicks --output clicks.yaml
"""


@click.command(epilog=_EXAMPLES)
@click.argument(
    "file", metavar="[FILE|LOG|SETTINGS]", required=False, type=click.Path(exists=True, dir_okay=False)
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default="worker.yaml",
    show_default=True,
    help="The settings file to write.",
)
@click.option("--force", is_flag=True, help="Write it over another.")
@click.option(
    "--topic",
    help="FILE: the topic that its events go to.  [default: the file's name]  Else: the topic to look at.",
)
@click.option(
    "--log", "log_path", metavar="LOG", default="events.db", show_default=True, help="FILE: an embedded log."
)
@click.option("--bootstrap", metavar="HOST:PORT", help="A Kafka cluster: FILE's, or the topic's.")
@click.option("--forest", is_flag=True, help="Of trees that vote: right more often, and slower.")
@file_options
@column_options
def init(
    file: str | None,
    output: Path,
    force: bool,
    topic: str | None,
    log_path: str,
    bootstrap: str | None,
    forest: bool,
    format_name: str | None,
    encoding: str,
    columns: Columns,
) -> None:
    """Look at data, show what is in it, and write settings that fit it and the commands to go on.

    Of a FILE all is read, so that what its first rows do not tell is known too. Of a topic that is there already
    the last events are read: of a LOG (the file of an embedded log, or a recording), of the log that SETTINGS
    name, or at --bootstrap where no FILE is named. Nothing is published.
    """
    logs.configure("warning", "auto", sys.stderr)
    if output.exists() and not force:
        fail(f"{output}: expected no file there yet, got one; say --output with another name, or --force")
    if file is None and (bootstrap is None or topic is None):
        raise click.UsageError(
            "expected FILE, LOG or SETTINGS to look at, or --bootstrap HOST:PORT with --topic NAME, got neither; "
            "name one"
        )
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        if file is None or is_log(file):
            _check_no_columns(columns, format_name)
            _init_topic(console, place_of(file, bootstrap, output), topic, output, forest)
            return
        log = {"kafka": {"bootstrap": bootstrap}} if bootstrap else {"embedded": log_path}
        _init_file(console, file, topic or topic_of(file), log, output, forest, format_name, encoding, columns)
    except (SourceError, DraftError) as error:
        fail(str(error))


def _check_no_columns(columns: Columns, format_name: str | None) -> None:
    if columns != Columns() or format_name is not None:
        raise click.UsageError(
            "expected no options about a file's format or columns with a topic, whose events say what they are; "
            "leave them out"
        )


def _init_topic(console: Console, place: Place, topic: str | None, output: Path, forest: bool) -> None:
    topic, found = look(place, topic)
    _show(console, None, found)
    _write(console, output, found, draft(found, topic, place.log, forest=forest))
    settings = shlex.quote(str(output))
    _print_commands(
        *([] if place.settings is None else [f"topics create {settings} --yes"]),
        f"run {settings} --until-end",
        f"show {settings} --topic {topic}.out",
    )


def _init_file(
    console: Console,
    file: str,
    topic: str,
    log: dict[str, Any],
    output: Path,
    forest: bool,
    format_name: str | None,
    encoding: str,
    columns: Columns,
) -> None:
    name = named_format(file, format_name)
    layout, columns, useless = _columns(file, name, columns, encoding)
    found, notes = _contents(file, name, columns, encoding)
    if useless:
        notes.append(
            f"{file}: left out, as nearly every row has a value of its own, or the number of the row, or a date "
            f"that is no ISO 8601: {', '.join(map(brief, useless))}; say --nominal, --numeric, --text, --id or "
            "--key to take one all the same"
        )
    for note in notes:
        click.echo(printable_lines(note), err=True)
    _show(console, layout, found)
    _write(console, output, found, draft(found, topic, log, forest=forest))
    more = as_options(columns)
    more += [f"--format {format_name}"] if format_name else []
    more += [f"--encoding {encoding}"] if encoding != "utf-8" else []
    more += ["--skip-bad"] if found.bad else []
    settings = shlex.quote(str(output))
    _print_commands(
        *([f"topics create {settings} --inputs 1 --yes"] if "kafka" in log else []),
        " ".join(["publish", shlex.quote(file), "--to", settings, *more]),
        f"run {settings} --until-end",
        f"show {settings} --topic {topic}.out",
    )


def _show(console: Console, layout: Layout | None, found: Contents) -> None:
    """Show what was seen."""
    if layout is not None:
        console.print(columns_table(layout))
    if found.events:
        if layout is None:
            console.print(features_table(found))
        console.print(labels_table(found))
        if keys := keys_words(found):
            console.print(keys)


def _write(console: Console, output: Path, found: Contents, text: str) -> None:
    """Write the settings; tell before of what is no event."""
    if found.bad:
        told = f"{found.unit} that are no events: {found.bad:,}, the first is {found.first_bad}"
        console.print(told, style="red")
    output.write_text(text, "utf-8")
    read_settings(output)
    click.echo(f"{output}: written. Go on with")


def _print_commands(*commands: str) -> None:
    for command in commands:
        click.echo(f"  anabranch {command}")
    page = MetricsSettings()
    click.echo(f"Without --until-end the worker goes on, and draws its trees at http://{page.host}:{page.port}/")


def topic_of(file: str) -> str:
    """Return the name of a topic that is like the file's."""
    stem = PurePath(file.removesuffix(".gz")).stem
    return re.sub(r"[^a-zA-Z0-9_-]+", "-", stem).strip("-")[:200] or "events"


def _columns(file: str, name: str, columns: Columns, encoding: str) -> tuple[Layout | None, Columns, list[str]]:
    """Return what `whole_table` does, of a file without columns nothing but what was said."""
    rows = FORMATS[name].rows
    if rows is None:
        check_columns(name, columns)
        return None, columns, []
    with ExitStack() as stack:
        lines, source = lines_source(file, encoding, stack)
        advance = stack.enter_context(show_progress(source, "rows"))
        return whole_table(lines, columns, rows(lines, columns), lambda: advance(lines.number))


def _contents(file: str, name: str, columns: Columns, encoding: str) -> tuple[Contents, list[str]]:
    """Return what the events of the file hold, and what is worth telling of it."""
    with ExitStack() as stack:
        source = file_source(file, name, columns, encoding, stack)
        advance = stack.enter_context(show_progress(source, "events"))
        found = contents(judged(source.entries, source.size), advance)
        return found, list(source.notes.values())
