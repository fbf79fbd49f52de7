"""`anabranch bench`: what things cost, as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console

from algorithms.criteria import CRITERIA
from algorithms.finders import FINDERS
from worker import logs
from worker.bench.pipeline import FORMS, bench_pipeline
from worker.bench.splits import bench_splits
from worker.bench.streams import load


class _Listed(click.ParamType[list[str]]):
    """Comma-separated values, each one of a few."""

    name = "list"

    def __init__(self, choices: list[str] | None = None) -> None:
        self.choices = choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        parts = str(value).split(",")
        for part in parts:
            if self.choices is not None and part not in self.choices:
                self.fail(f"expected some of {', '.join(self.choices)}, got {part!r}", param, ctx)
            if self.choices is None and not (part.isdecimal() and int(part) > 0):
                self.fail(f"expected whole numbers from 1, got {part!r}", param, ctx)
        return parts


@click.group()
def bench() -> None:
    """Measure; every command prints JSON lines, with both sides of a comparison from one run."""
    logs.configure("warning", "auto", sys.stderr)


@bench.command()
@click.option("--data", required=True, help="An .npz with indptr, indices, labels, shape; or sparse:n,d1,d2,q.")
@click.option("--finders", type=_Listed(list(FINDERS)), default=",".join(FINDERS), show_default=True)
@click.option("--criterion", type=click.Choice(list(CRITERIA)), default="entropy", show_default=True)
@click.option("--limit", type=click.IntRange(1), help="Take only so many examples.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True, help="Figures are medians.")
def splits(data: str, finders: list[str], criterion: str, limit: int | None, repeats: int) -> None:
    """Insert every example and ask for the best split after each, beside what counting alone costs."""
    try:
        stream = load(data, limit)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--data") from error
    _print(lambda progress: bench_splits(stream, finders, criterion, repeats, progress))


@bench.command()
@click.option("--forms", type=_Listed(list(FORMS)), default=",".join(FORMS), show_default=True)
@click.option("--keys", type=_Listed(), default="1,1000,100000", show_default=True, help="Numbers of model keys.")
@click.option("--events", type=click.IntRange(1), default=200_000, show_default=True, help="Examples in a run.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True, help="Figures are medians.")
def pipeline(forms: list[str], keys: list[str], events: int, repeats: int) -> None:
    """Run the whole path: embedded log, decode, exact split model, results committed."""
    counts = [int(count) for count in keys]
    _print(lambda progress: bench_pipeline(forms, counts, events, repeats, progress))


def _print(lines: Callable[[Callable[[str], None]], Iterator[dict[str, Any]]]) -> None:
    with _progress() as progress:
        for line in lines(progress):
            click.echo(json.dumps(line))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is running, where a person watches."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: None
        return
    with console.status("") as status:
        yield status.update
