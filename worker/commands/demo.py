"""`anabranch demo`: the main job on real input, in a minute, with nothing to set up."""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from worker import demo as events
from worker.codec import DeadLetter, Evaluation, Output, Prediction, Split, Tree, decode_output
from worker.commands.common import clear_errors, in_transactions_of, until_signalled
from worker.commands.running import worker_on
from worker.log.embedded import EmbeddedLog
from worker.transaction import Transaction
from worker.views.fitting import fitted
from worker.views.output_text import counted_words
from worker.views.split_text import split_line
from worker.views.tree_text import draw
from worker.watching import logs

_PORT = 9464
_STEP = 100  # records in a transaction: small, so that there is something to watch


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Of the metrics page. [default: 9464, or any free one]"
)
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep the log in this folder.")
@click.option("--serve", is_flag=True, help="Stay afterwards, so that the metrics page can be looked at.")
def demo(port: int | None, keep: Path | None, serve: bool) -> None:
    """Learn from 5,574 text messages, forget some, and show what came of it."""
    logs.configure("warning", "auto", sys.stderr)
    console = Console()
    with tempfile.TemporaryDirectory() as scratch, clear_errors():
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "demo.db"
        path.unlink(missing_ok=True)
        _run(console, path, _free_port() if port is None else port, serve)
    if keep:
        console.print(
            f"\nThe log stays in [bold]{escape(str(path))}[/]. Look inside: anabranch show {escape(str(path))}"
        )


def _free_port() -> int:
    """Return the usual port of the metrics page, or 0 (any) where somebody else listens there."""
    with socket.socket() as probe:
        return _PORT if probe.connect_ex(("127.0.0.1", _PORT)) else 0


def _run(console: Console, path: Path, port: int, serve: bool) -> None:
    settings = in_transactions_of(_STEP, events.settings(path, port))
    with EmbeddedLog(path, group=settings.group) as log, until_signalled() as stop:
        log.create_topic(events.TOPIC, 1)
        total = log.append(events.records())
        outputs: list[Output] = []
        columns = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("learning", total=total)

            def committed(transaction: Transaction) -> None:
                new = [decode_output(record.value or b"", record.headers) for record in transaction.outputs]
                outputs.extend(new)
                for split in new:
                    if isinstance(split, Split):
                        line = Text(f"{split.model}  ", "cyan").append_text(split_line(split))
                        bar.console.print(fitted(line, bar.console.width))
                bar.advance(task, transaction.records)

            with worker_on(log, settings, committed) as (worker, url):
                bar.console.print(f"{total:,} events in [bold]{escape(str(path))}[/]; metrics on [bold]{url}[/]")
                bar.console.print(
                    "The split after each event that changes it; tree: a node that splits, for good (kernels not "
                    "compiled yet take a minute):"
                )
                started = time.perf_counter()
                worker.run(stop, until_end=True)
                seconds = time.perf_counter() - started
                bar.stop()
                _report(console, outputs, total, seconds)
                if serve:
                    console.print(f"Metrics stay on [bold]{url}[/] until Ctrl-C.")
                while serve and not stop():
                    worker.run_once()


def _report(console: Console, outputs: list[Output], total: int, seconds: float) -> None:
    console.print(f"\n{total:,} events in {seconds:.1f} s. At the end, by model:\n")
    latest = {output.model: output for output in outputs if isinstance(output, Tree)}
    for model, tree in sorted(latest.items(), reverse=True):
        console.print(f"[bold]{model}[/], the last snapshot, after {tree.version:,} events{counted_words(tree)}")
        console.print(draw(tree))
        console.print()
    for evaluation in [output for output in outputs if isinstance(output, Evaluation)][-1:]:
        console.print(
            f"[bold]{evaluation.model}[/] guessed every message before it learned it: "
            f"{evaluation.recent.accuracy:.1%} right of the last {evaluation.window:,}, "
            f"{evaluation.total.accuracy:.1%} of all; always the more frequent class would be "
            f"{evaluation.total.majority:.1%}, the last one {evaluation.total.no_change:.1%}"
        )
    for answer in outputs:
        if isinstance(answer, Prediction):
            shares = " and ".join(
                f"{label} {weight / max(sum(answer.weights), 1e-9):.0%}"
                for label, weight in zip(events.CLASSES, answer.weights, strict=True)
            )
            console.print(
                f"asked {escape(repr(answer.id))}: [bold]{answer.model}[/] says [bold]{answer.label}[/] ({shares})"
            )
    console.print("\nrefused, and kept in the dead-letter topic:")
    letters = Table("where", "refused by", "why", box=box.SIMPLE)
    for letter in outputs:
        if isinstance(letter, DeadLetter):
            letters.add_row(
                f"{letter.source.topic}/{letter.source.partition} offset {letter.source.offset}",
                letter.model or "the codec",
                Text(letter.detail),
            )
    console.print(letters)
