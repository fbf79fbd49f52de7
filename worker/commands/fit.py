"""`anabranch fit`: the greedy tree of a file or recording, drawn, or written as a snapshot that `show` reads."""

from __future__ import annotations

import math
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import click
from rich.console import Console

from algorithms.forests.draws import MOST_SEED
from worker.codec import Source as Place
from worker.codec import Tree, cut, to_record
from worker.codec.reference import LATEST
from worker.commands.common import clear_errors, fail, show_command
from worker.commands.init import topic_of
from worker.commands.init_topic import is_log, only
from worker.commands.publish_columns import check_columns, column_options, file_options, named_format, no_columns
from worker.commands.publish_source import file_source, show_progress
from worker.log.browse import Browser, Filter, partitions_of
from worker.log.embedded import EmbeddedLog
from worker.models.classifier import TREE_SEQ
from worker.models.tree_results import TreeResults
from worker.publishing.publisher import Form, chunks, finish, make_records, write
from worker.safe_text import json_line, printable_lines
from worker.sources import Columns, SourceError
from worker.sources.batch import Batch, BatchError, Gatherer
from worker.views import tree_dot, tree_svg
from worker.views.output_text import tree_heading
from worker.views.record_json import tree_object
from worker.views.tree_text import draw
from worker.views.words import topic_word
from worker.watching import logs

_MODEL = "fit"
_MANY_NUMBERS = 50  # as labels: more are hardly classes
_MOST = 1 << 30  # of options that count something
_SHOWN_BAD = 5  # bad lines that are told one by one; the rest are counted

_EXAMPLES = """\b
Examples:
  anabranch fit clicks.csv --label clicked --max-depth 4
  anabranch fit a9a.libsvm --criterion entropy --draw svg > tree.svg
  anabranch fit sms.db --topic sms --only-key sms
  anabranch fit sms.db --topic sms -o trees.db
"""


class Terms(NamedTuple):
    """By what a tree is built, see `build_tree`."""

    criterion: str
    max_depth: int | None  # None: no bound
    min_examples: int
    alpha: float
    max_leaves: int | None
    max_features: int | None
    bootstrap: bool
    seed: int


class _Lines(NamedTuple):
    """A file, and how it is read."""

    file: str
    format: str
    columns: Columns
    encoding: str
    skip_bad: bool


def _finite(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"expected a finite number, got {value}")
    return value


@click.command(short_help="Build the greedy tree of a file or recording.", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE|RECORDING", type=click.Path(exists=True, dir_okay=False))
@click.option("--topic", help="RECORDING: the topic with the events.  [default: the only one]  FILE: its name.")
@click.option("--only-key", "wanted", metavar="TEXT", help="Only examples of this key.  [default: all]")
@file_options
@column_options
@click.option("--skip-bad", is_flag=True, help="Count lines that are no events, and go on.")
@click.option("--criterion", type=click.Choice(["gini", "entropy"]), default="gini", show_default=True)
@click.option("--max-depth", type=click.IntRange(0, _MOST), help="A node so deep is a leaf.  [default: no bound]")
@click.option(
    "--min-examples",
    metavar="N",
    type=click.IntRange(1, _MOST),
    default=1,
    show_default=True,
    help="A node of at most N examples is a leaf.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0),
    callback=_finite,
    default=0.0,
    show_default=True,
    help="A node whose impurity is at most half of it is a leaf.",
)
@click.option(
    "--max-leaves", type=click.IntRange(1, _MOST), help="Grow where a split gains most, to so many leaves."
)
@click.option("--max-features", metavar="K", type=click.IntRange(1, _MOST), help="Draw K features for each node.")
@click.option("--bootstrap", is_flag=True, help="Draw as many examples as there are, with replacement.")
@click.option("--seed", type=click.IntRange(0, MOST_SEED), default=0, show_default=True, help="Of what is drawn.")
@click.option(
    "--draw",
    "drawing",
    type=click.Choice(["svg", "dot", "json"]),
    help="Print the tree in this format.  [default: as text]",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Instead: write the tree to this embedded log, as a snapshot in the topic NAME.out.",
)
@click.option(
    "--timestamp", metavar="MS", type=click.IntRange(1, LATEST), help="For events without a time, instead of now."
)
def fit(
    file: str,
    topic: str | None,
    wanted: str | None,
    format_name: str | None,
    encoding: str,
    columns: Columns,
    skip_bad: bool,
    criterion: str,
    max_depth: int | None,
    min_examples: int,
    alpha: float,
    max_leaves: int | None,
    max_features: int | None,
    bootstrap: bool,
    seed: int,
    drawing: Literal["svg", "dot", "json"] | None,
    output: Path | None,
    timestamp: int | None,
) -> None:
    """Build the greedy tree of the examples in a file or recording, by the builder of paper 003.

    FILE is read as `publish` reads it. Of a RECORDING (or any embedded log) events are applied in their order:
    an example that was deleted is not in the tree, and a label that came later makes an example of its predict.
    Examples of all keys make one tree, unless --only-key chooses.

    Labels are classes. A feature whose values are all 1 is binary, others are numeric.
    """
    logs.configure("warning", "auto", sys.stderr)
    if output is not None and drawing is not None:
        raise click.UsageError("expected --draw or --output, got both; leave one out")
    gatherer = Gatherer()
    key = None if wanted is None else wanted.encode()
    try:
        with clear_errors():
            if _is_recording(file):
                if format_name is not None or columns != Columns():
                    raise no_columns("a recording")
                topic = _read_recording(gatherer, Path(file), topic, key)
            else:
                name = named_format(file, format_name)
                check_columns(name, columns)
                lines = _Lines(file, name, replace(columns, published=False), encoding, skip_bad)
                topic = topic or topic_of(file)
                _read_file(gatherer, lines, topic, key, timestamp or time.time_ns() // 1_000_000)
            terms = Terms(criterion, max_depth, min_examples, alpha, max_leaves, max_features, bootstrap, seed)
            batch = gatherer.batch()
            _note_numbers(batch)
            tree = _built(gatherer, batch, terms, topic)
            key = topic.encode() if key is None else key
            if output is not None:
                _write(output, topic, key, tree)
                return
    except (SourceError, BatchError) as error:
        fail(str(error))
    _print(key, tree, drawing)


def _is_recording(file: str) -> bool:
    if file.endswith((".yaml", ".yml")):
        raise click.UsageError(
            "expected a file of examples or a recording, got settings; make a recording first (anabranch record)"
        )
    return is_log(file)


def _read_recording(gatherer: Gatherer, path: Path, topic: str | None, key: bytes | None) -> str:
    """Apply the events of a topic; return its name."""
    unreadable, first = 0, ""
    with EmbeddedLog(path, create=False) as log:
        known = list(log.topics())
        topic = topic or only(known)
        sources = partitions_of(log, topic, known)
        bounds = {source: log.watermarks(source) for source in sources}
        browser = Browser(log, bounds, Filter(key), lambda told: click.echo(told, err=True))
        for record in browser.scan():
            wrong = gatherer.add(record.key, record.value, record.timestamp)
            if wrong is not None:
                unreadable += 1
                first = first or f"{record.source} offset {record.offset}: {wrong}"
    if unreadable and not gatherer.events and not gatherer.passed_over:
        raise BatchError(
            f"expected events as msgpack in {topic}, got none, the first record: {first}; fit reads no topic of "
            "another format, but the files that such events came from"
        )
    if unreadable:
        told = (
            f"passed over {unreadable:,} record{'' if unreadable == 1 else 's'} with what is no event, the first:"
        )
        click.echo(printable_lines(f"{told} {first}"), err=True)
    return topic


def _read_file(gatherer: Gatherer, lines: _Lines, topic: str, key: bytes | None, now: int) -> None:
    """Apply the events of a file; raise `SourceError` at a line that is none, unless such lines are skipped."""
    form = Form(topic, 1, topic)
    skipped = 0
    with ExitStack() as stack:
        source = file_source(lines.file, lines.format, lines.columns, lines.encoding, stack)
        advance = stack.enter_context(show_progress(source))
        done = 0
        for chunk in chunks(finish(source.entries, {}, number_ids=False), source.size):
            made = make_records(chunk, form, now)
            if made.bad and not lines.skip_bad:
                first = made.bad[0]
                advice = "correct the line, or go on past such lines with --skip-bad"
                raise SourceError(f"{source.name}:{first.line}: {first.why}\n{advice}")
            for bad in made.bad[: max(0, _SHOWN_BAD - skipped)]:
                click.echo(printable_lines(f"{source.name}:{bad.line}: {bad.why}"), err=True)
            skipped += len(made.bad)
            for record in made.records:
                if key in (None, record.key):
                    gatherer.add(record.key, record.value, record.timestamp)
            done += made.events
            advance(done)
    if skipped:
        click.echo(f"passed over {skipped:,} line{'' if skipped == 1 else 's'}", err=True)


def _note_numbers(batch: Batch) -> None:
    """Tell where labels look like what a tree of classes cannot learn well."""
    if len(batch.classes) > _MANY_NUMBERS and isinstance(batch.classes[0], int):
        click.echo(
            f"labels are classes here, and these are {len(batch.classes):,} different numbers; to learn numbers, "
            "use a model of kind regression-tree",
            err=True,
        )


def _built(gatherer: Gatherer, batch: Batch, terms: Terms, topic: str) -> Tree:
    """Return the tree of a batch as a snapshot."""
    from algorithms.dynamic.builder import UNBOUNDED, build_tree  # loads the compiler

    depth = UNBOUNDED if terms.max_depth is None else terms.max_depth
    options = terms._replace(max_depth=depth)._asdict()
    try:
        tree = build_tree(batch.sample, classes=len(batch.classes), kinds=batch.kinds, **options)
    except ValueError as error:  # of the examples: options were looked at before
        raise BatchError(str(error)) from error
    names = [name.encode() if isinstance(name, str) else name for name in batch.features]
    tree = tree._replace(feature=[None if each is None else names[int(each)] for each in tree.feature])
    source = Place(topic, 0, max(0, gatherer.events + gatherer.passed_over - 1), 0, gatherer.time)
    named = any(isinstance(name, bytes) for name in names)
    results = TreeResults(_MODEL, batch.classes, named, terms._asdict())
    return results.record(gatherer.events, tree, source)


def _write(path: Path, topic: str, key: bytes, tree: Tree) -> None:
    """Write a tree to an embedded log, and tell how to see it."""
    name = f"{topic}.out"
    with EmbeddedLog(path) as log:
        log.create_topic(name, log.partitions(name) or 1)
        write(log, [to_record(part, name, key, seq) for seq, part in enumerate(cut(tree), TREE_SEQ)])
    click.echo(f"{len(tree.node):,} node{'' if len(tree.node) == 1 else 's'} to {topic_word(name)} of {path}")
    click.echo(f"next: {show_command(path, name)}")


def _print(key: bytes, tree: Tree, drawing: str | None) -> None:
    match drawing:
        case "svg":
            click.echo(tree_svg.draw(tree, key), nl=False)
        case "dot":
            click.echo(tree_dot.draw(tree, key), nl=False)
        case "json":
            click.echo(json_line(tree_object(key, tree)))
        case _:
            console = Console(highlight=False, markup=False, emoji=False)
            console.print(tree_heading(key, tree))
            console.print(draw(tree))
