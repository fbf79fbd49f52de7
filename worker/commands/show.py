"""`anabranch show`: what a log holds, for people or as JSON lines."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from worker.codec import (
    AnyTree,
    DeadLetter,
    DelayedEvaluation,
    Drift,
    Evaluation,
    Output,
    Prediction,
    RegressionDelayedEvaluation,
    RegressionEvaluation,
    RegressionPrediction,
    RegressionSplit,
    Split,
    Tree,
    all_joined,
)
from worker.commands.common import clear_errors, fail, open_log, read_settings, show_command
from worker.log.browse import Browser, Filter, Record, partitions_of
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, TopicPartition, Watermarks
from worker.safe_text import json_line
from worker.views import tree_dot, tree_svg
from worker.views.fitting import fitted
from worker.views.output_text import (
    baselines_table,
    dead_letter_text,
    delayed_table,
    drifts_table,
    errors_table,
    evaluations_table,
    event_line,
    forest_table,
    intervals_table,
    output_line,
    predictions_table,
    regression_predictions_table,
    regression_splits_table,
    splits_table,
    tree_heading,
)
from worker.views.overview_text import PartitionRow, overview
from worker.views.record_json import as_object, result_of, tree_object
from worker.views.tree_text import draw
from worker.views.words import key_word, model_word, topic_word

_LAST = 10  # of each kind
_EVALUATIONS = ("evaluation", "delayed-evaluation")
_LOOKED_AT = 1_000  # records, for the keys and models that there are
_SETTINGS = (".yaml", ".yml")  # suffixes


class _Shown(NamedTuple):
    """The log that is looked at."""

    log: Log
    topics: Sequence[str]  # that it is known to hold
    missing: Sequence[str]  # that the settings name and it does not hold
    group: str
    dead: Mapping[str, str]  # the topic of dead letters beside each of results
    states: Sequence[str]  # topics of saved models


class _Summary(NamedTuple):
    """What is told of a topic."""

    # By type, model and key (or partition), in the order of the last changes; a tree may come in parts.
    latest: dict[tuple[str, str, bytes | int | None], list[Record]]
    others: dict[str, deque[Record]]  # the last ones, by type


@click.command(short_help="Show what a log holds: splits, trees, predictions, evaluations, dead letters.")
@click.argument("log", metavar="LOG|SETTINGS", type=click.Path(path_type=Path))
@click.option("--topic", help="Show the records of this topic; without one, an overview of all topics.")
@click.option("--key", help="Only records of this key.")
@click.option("--model", help="Only results of this model.")
@click.option(
    "--last",
    metavar="N",
    type=click.IntRange(1),
    help="Only the last N records, read from the end of the topic.  "
    f"[default: all are read, and of each kind the last {_LAST} shown; all as JSON]",
)
@click.option("--follow", is_flag=True, help="Go on with each record as it comes, until interrupted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--format",
    "drawing",
    type=click.Choice(["svg", "dot", "json"]),
    help="The last snapshot of one tree in this format, and nothing else: --key, --model and --tree say which.",
)
@click.option("--tree", metavar="N", type=click.IntRange(0), help="Of forests: draw the tree with this number.")
@click.option(
    "--group",
    help="Whose committed offsets the overview shows.  [default: that of SETTINGS, else anabranch]",
)
def show(
    log: Path,
    topic: str | None,
    key: str | None,
    model: str | None,
    last: int | None,
    follow: bool,
    as_json: bool,
    drawing: Literal["svg", "dot", "json"] | None,
    tree: int | None,
    group: str | None,
) -> None:
    """Show what a log holds.

    LOG is the file of an embedded log, or a recording; SETTINGS, a file that ends in .yaml, names the log.

    Of a topic with results: the latest split and tree of each key, the last predictions and dead letters.
    Of a topic with events: the last of them.
    """
    chosen = any(each is not None for each in (key, model, last, drawing, tree))
    if topic is None and (chosen or follow):
        raise click.UsageError(
            "expected --topic with --key, --model, --last, --follow, --format and --tree; name a topic"
        )
    if tree is not None and (follow or as_json):
        raise click.UsageError("expected --tree without --follow and --json; leave one out")
    if drawing and (follow or as_json):
        raise click.UsageError("expected --format without --follow and --json; leave one out")
    wanted = Filter(None if key is None else key.encode(), model)
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        with clear_errors(), _opened(log, group) as shown:
            if topic is None:
                _show_overview(console, shown, as_json=as_json)
                return
            sources = partitions_of(shown.log, topic, shown.topics)
            bounds = {source: shown.log.watermarks(source) for source in sources}
            if topic in shown.states and not as_json:
                console.print(f"{topic_word(topic)} holds saved models, which only a worker reads")
                return
            browser = Browser(shown.log, bounds, wanted, lambda told: click.echo(told, err=True))
            if drawing:
                _draw(drawing, topic, browser.scan() if last is None else browser.tail(last), tree)
            elif follow:
                _show_lines(console, browser.tail(last or _LAST), as_json=as_json)
                _show_lines(console, browser.coming(), as_json=as_json)
            elif as_json:
                _show_lines(console, browser.scan() if last is None else browser.tail(last), as_json=True)
            else:
                if last is not None:
                    summary = _summary(browser.tail(last), last)
                else:
                    with _progress(topic, sum(high - low for low, high in bounds.values())) as passed:
                        summary = _summary(browser.scan(passed), _LAST)
                _show_summary(console, topic, summary, last or _LAST, tree)
                if not any(summary) and wanted != Filter():
                    _show_what_there_is(console, shown.log, bounds)
                if not any(summary) and topic in shown.dead and key is None and model is None:
                    _show_refusals(console, log, shown, shown.dead[topic])
    except KeyboardInterrupt:
        if not follow:
            raise
    except ValueError as error:
        fail(str(error))


@contextmanager
def _opened(path: Path, group: str | None) -> Iterator[_Shown]:
    """Open a file of an embedded log, or the log that a settings file names."""
    if path.suffix not in _SETTINGS:
        group = group or "anabranch"
        with EmbeddedLog(path, group=group, create=False) as log:
            topics = list(log.topics())
            dead = {topic: f"{topic.removesuffix('.out')}.dead" for topic in topics if topic.endswith(".out")}
            states = [topic for topic in topics if topic.endswith(".state")]
            yield _Shown(log, topics, [], group, dead, states)
        return
    settings = read_settings(path)
    if settings.log.kafka is not None:
        from worker.watching import logs  # takes its time, and a file has nothing to log

        logs.configure("warning", "auto", sys.stderr)
    if group is not None:
        settings = settings.model_copy(update={"group": group})
    named = list(settings.routes)
    for route in settings.routes.values():
        named += [*route.results, *([] if settings.checkpoint is None else [route.state])]
    with open_log(settings, role="-show") as opened:
        missing = [topic for topic in named if opened.partitions(topic) is None]
        there = [topic for topic in named if topic not in missing]
        dead = {route.output: route.dead_letters for route in settings.routes.values()}
        states = [] if settings.checkpoint is None else [route.state for route in settings.routes.values()]
        yield _Shown(opened, there, missing, settings.group, dead, states)


@contextmanager
def _progress(topic: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far a topic has been read; yield what is to be told how many offsets were passed."""
    console = Console(stderr=True)
    said = f"all of {topic_word(topic)} (for its end: --last N)"
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(said, total=total)
        yield lambda offsets: progress.advance(task, offsets)


def _show_overview(console: Console, shown: _Shown, *, as_json: bool) -> None:
    rows = []
    for topic in shown.topics:
        for source in partitions_of(shown.log, topic, shown.topics):
            low, high = shown.log.watermarks(source)
            rows.append(PartitionRow(*source, high - low, low, high, shown.log.committed(source)))
    if as_json:
        for row in rows:
            click.echo(json_line(row._asdict()))
        return
    if rows:
        console.print(overview(shown.group, rows))
    if shown.missing:
        console.print(f"not there yet: {', '.join(map(topic_word, shown.missing))} (anabranch topics create)")
    elif not rows:
        console.print("no topics; publish events first (anabranch publish)")


def _draw(
    drawing: Literal["svg", "dot", "json"], topic: str, records: Iterable[Record], number: int | None
) -> None:
    """Write the one tree that there is among records, or the one of a forest with this number."""
    found = [parts for (kind, *_), parts in _summary(records, 1).latest.items() if kind == "tree"]
    if len(found) != 1:
        which = ", ".join(f"{model_word(parts[0].model)} of {key_word(parts[0].key)}" for parts in found[:_LAST])
        more = f" and {len(found) - _LAST:,} more" if len(found) > _LAST else ""
        got = (
            f"{len(found):,}: {which}{more}; choose by --model and --key" if found else "none; set emit.snapshots"
        )
        fail(f"expected one tree in {topic_word(topic)}, got {got}")
    ((first, *_),) = found
    trees = [tree for tree in _whole(found[0]) if isinstance(tree, AnyTree)]
    chosen = [tree for tree in trees if number in (None, getattr(tree, "tree", None))]
    if len(chosen) != 1:
        of_key = f"{model_word(first.model)} of {key_word(first.key)}"
        what = f"a forest with the trees 0 to {len(trees) - 1}" if len(trees) > 1 else "one tree without a number"
        fail(f"expected --tree with the number of one of the trees that there are; {of_key} is {what}")
    (tree,), key = chosen, first.key
    match drawing:
        case "svg":
            click.echo(tree_svg.draw(tree, key), nl=False)
        case "dot":
            click.echo(tree_dot.draw(tree, key), nl=False)
        case "json":
            click.echo(json_line(tree_object(key, tree)))


def _show_what_there_is(console: Console, log: Log, bounds: Mapping[TopicPartition, Watermarks]) -> None:
    """Tell of the keys and models near the end of a topic, where those that were asked for are not in it."""
    records = list(Browser(log, bounds).tail(_LOOKED_AT))
    keys = sorted({key_word(record.key) for record in records})
    models = sorted({model_word(record.model) for record in records if record.model})
    for what, found in (("keys", keys), ("models", models)):
        if found:
            more = f" and {len(found) - _LAST:,} more" if len(found) > _LAST else ""
            console.print(f"{what} of its last records: {', '.join(found[:_LAST])}{more}", soft_wrap=True)


def _show_refusals(console: Console, path: Path, shown: _Shown, dead: str) -> None:
    """Tell of the dead letters beside a topic without results, which may be why."""
    if dead not in shown.topics:
        return
    bounds = {each: shown.log.watermarks(each) for each in partitions_of(shown.log, dead, shown.topics)}
    count = sum(high - low for low, high in bounds.values())
    first = next(iter(Browser(shown.log, bounds, Filter(None, None), lambda _: None).scan()), None)
    if first is None:
        console.print(f"{topic_word(dead)} has no dead letters either")
        return
    console.print(f"{topic_word(dead)} has {count:,}, the first:")
    _show_others(console, [(first.key, result_of(first))])
    # Not folded: a command is copied as it is.
    console.print(f"all of them: {show_command(path, dead)}", soft_wrap=True)


def _summary(records: Iterable[Record], last: int) -> _Summary:
    """Return the latest split and tree of each key, evaluation of each partition, and the last of all else."""
    summary = _Summary({}, {})
    for record in records:
        if record.type in ("split", "tree", *_EVALUATIONS):
            place = record.source.partition if record.type in _EVALUATIONS else record.key
            identity = (record.type, record.model, place)
            before = summary.latest.pop(identity, [])
            follows = record.type == "tree" and before and before[-1].event == record.event
            summary.latest[identity] = [*before, record] if follows else [record]
        else:
            summary.others.setdefault(record.type, deque(maxlen=last)).append(record)
    return summary


def _show_summary(console: Console, topic: str, summary: _Summary, last: int, tree: int | None) -> None:
    latest, others = summary
    if not latest and not others:
        console.print(f"no such records in {topic_word(topic)}")
        return
    models = sorted({(kind, model) for kind, model, _ in latest})
    for kind, model in models:
        found = [parts for identity, parts in latest.items() if identity[:2] == (kind, model)]
        _show_latest(console, model, [(parts[0].key, _whole(parts)) for parts in found[-last:]], tree)
        if len(found) > last:
            console.print(f"... and {len(found) - last:,} more keys (--last N shows more)\n", style="dim")
    for kind, kept in others.items():
        if kind:
            _show_others(console, [(record.key, result_of(record)) for record in kept])
        else:
            _show_lines(console, kept, as_json=False)


def _whole(parts: list[Record]) -> list[Output]:
    """Return the result that one record holds, or several with parts of a tree, or the trees of a forest."""
    results = [result_of(record) for record in parts]
    trees: list[Any] = [result for result in results if isinstance(result, AnyTree)]
    return all_joined(trees) if trees else results[:1]


def _show_latest(
    console: Console, model: str, latest: list[tuple[bytes | None, list[Output]]], number: int | None
) -> None:
    found = [(key, each) for key, outputs in latest for each in outputs]
    splits = [(key, output) for key, output in found if isinstance(output, Split)]
    if splits:
        console.print(splits_table(model, splits))
    of_numbers = [(key, output) for key, output in found if isinstance(output, RegressionSplit)]
    if of_numbers:
        console.print(regression_splits_table(model, of_numbers))
    delayed = [
        output for _, output in found if isinstance(output, DelayedEvaluation | RegressionDelayedEvaluation)
    ]
    if delayed:
        console.print(delayed_table(delayed))
        return  # of a type of records of its own
    evaluations = [output for _, output in found if isinstance(output, Evaluation)]
    if evaluations:
        console.print(evaluations_table(evaluations))
        console.print(baselines_table(evaluations))
    errors = [output for _, output in found if isinstance(output, RegressionEvaluation)]
    if errors:
        console.print(errors_table(errors))
        if (intervals := intervals_table(errors)) is not None:
            console.print(intervals)
    for key, outputs in latest:
        forest = [output for output in outputs if isinstance(output, Tree) and output.tree is not None]
        if forest:
            console.print(forest_table(key, forest))
            console.print()
        for output in outputs:
            if isinstance(output, AnyTree) and (not forest or (output in forest and output.tree == number)):
                console.print(tree_heading(key, output))
                console.print(draw(output))
                console.print()


def _show_others(console: Console, found: list[tuple[bytes | None, Output]]) -> None:
    predictions = [(key, output) for key, output in found if isinstance(output, Prediction)]
    if predictions:
        console.print(predictions_table(predictions))
    values = [(key, output) for key, output in found if isinstance(output, RegressionPrediction)]
    if values:
        console.print(regression_predictions_table(values))
    drifts = [output for _, output in found if isinstance(output, Drift)]
    if drifts:
        console.print(drifts_table(drifts))
    for _, output in found:
        if isinstance(output, DeadLetter):
            console.print(dead_letter_text(output))
            console.print()


def _show_lines(console: Console, records: Iterable[Record], *, as_json: bool) -> None:
    for record in records:
        if as_json:
            click.echo(json_line(as_object(record)))
        elif not record.type:
            _print_line(console, event_line(record.key, record.value, record.timestamp))
        else:
            output = result_of(record)
            _print_line(console, output_line(record.key, output))
            if isinstance(output, AnyTree):
                console.print(draw(output))


def _print_line(console: Console, line: Text) -> None:
    """Print a line: on a terminal cut at its width, into a file or pipe whole."""
    if console.is_terminal:
        console.print(fitted(line, console.width))
    else:
        console.print(line, soft_wrap=True)
