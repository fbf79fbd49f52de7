"""`bench report`: every experiment in one run, as lines of JSON, a page and plots."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from algorithms.splits.finders import FINDERS
from worker.bench import anchor
from worker.bench.cases import Row, machine
from worker.bench.experiments import EXPERIMENTS, LARGEST, SETS, Scope
from worker.bench.figures import View, draw, name_of, series
from worker.bench.sides import criteria_of, warm_up


class Section(NamedTuple):
    """What the page shows of an experiment."""

    title: str
    text: str  # names in braces are keys of the first row
    views: tuple[View, ...]
    verdict: Callable[[Sequence[Row]], str | None] = lambda rows: None


_SECONDS = ("seconds", "time (s)")
_MICROSECONDS = ("us_per_example", "time per example (µs)")
_TO_COUNTING = ("to_count_only", "times count-only")


def _width_verdict(rows: Sequence[Row]) -> str | None:
    ratios = {row["features"]: row["to_count_only"] for row in rows if row["finder"] == "exact"}
    reference = min(ratios, key=lambda features: abs(features - 100_000))
    worst = max(ratios.values()) / ratios[reference]
    return _judged(f"exact to count-only, largest ratio over its ratio at {reference:,} features", worst, 3.0)


def _deletes_verdict(rows: Sequence[Row]) -> str | None:
    of = {row["updates"]: row["to_inserts"] for row in rows if "to_inserts" in row}
    updates = next(updates for updates in of if updates.startswith("window:"))
    return _judged(f"{updates} to inserts alone, cost of an example", of[updates], 2.5)


def _hard_verdict(rows: Sequence[Row]) -> str | None:
    if rows[0]["data"] != LARGEST:
        return None
    worst = max((row for row in rows if row["finder"] == "exact"), key=lambda row: float(row["to_largest"]))
    return _judged(f"cost of a one on {worst['data']} ({name_of(worst)}) to {LARGEST}", worst["to_largest"], 5.0)


def _judged(what: str, ratio: float, target: float) -> str:
    return f"{what}: **{ratio:.2f}**, target at most {target:g}: {'met' if ratio <= target else 'MISSED'}."


SECTIONS: dict[str, Section] = {
    "alpha": Section(
        "Guarantee",
        "{data} of paper 000, {examples:,} examples. The approximate finders promise a score of at most "
        "(1 + alpha) times the best; the others have no alpha and their lines are level.",
        (View("alpha", "alpha", "alpha", *_SECONDS),),
    ),
    "trees": Section(
        "Search trees",
        "The same stream at its end: how many trees, of features with nearly equal entropy or Gini, hold any.",
        (View("trees", "alpha", "alpha", "trees", "non-empty trees"),),
    ),
    "examples": Section(
        "Examples",
        "sparse(n, 10, 10000, 0.001), longer and longer.",
        (View("examples", "examples", "examples n", *_SECONDS),),
    ),
    "points": Section(
        "Along the stream",
        "{data}: the time of one example and the number of search trees as the stream goes on, alpha 0.1.",
        (
            View("points", "examples", "examples so far", *_MICROSECONDS),
            View("points-trees", "examples", "examples so far", "trees", "non-empty trees"),
        ),
    ),
    "features": Section(
        "Features and density",
        "sparse({examples}, 10, d, 10/d): the ones stay, the features grow, the density falls.",
        (
            View("features", "features", "features d", *_SECONDS),
            View("density", "density", "density (share of ones)", *_SECONDS),
        ),
    ),
    "width": Section(
        "Millions of features",
        "sparse({examples}, 10, d, 10/d), entropy: 15 ones an example. Scans where they end in reasonable time.",
        (
            View("width", "features", "features d", *_MICROSECONDS),
            View("width-ratio", "features", "features d", *_TO_COUNTING),
        ),
        _width_verdict,
    ),
    "deletes": Section(
        "Forgetting",
        "{data}, {examples:,} examples: time per inserted example, its delete included, with a query after every "
        "insert and every delete. *Checked* deletes are looked up among the live examples first; random:0.5 "
        "deletes as often as it inserts.",
        (
            View("deletes", "updates", "", *_MICROSECONDS),
            View("deletes-ratio", "updates", "", "to_inserts", "times inserts alone"),
        ),
        _deletes_verdict,
    ),
    "hard": Section(
        "Hard streams",
        "Noise, ties, a perfect feature that comes and goes, counts that cross a bucket's edge at each event.",
        (
            View("hard", "data", "", "ns_per_one", "time per one (ns)"),
            View("hard-ratio", "data", "", *_TO_COUNTING),
        ),
        _hard_verdict,
    ),
    "sets": Section(
        "Recorded sets",
        "Every example inserted, a query after each. Scans where they end in reasonable time.",
        (
            View("sets", "data", "", *_MICROSECONDS),
            View("sets-dense", "data", "", *_TO_COUNTING),
            View("sets-hash", "data", "", "to_count_hash", "times count-hash"),
            View("sets-anchor", "data", "", "to_anchor", f"times the {anchor.NAME}"),
        ),
    ),
    "along": Section(
        "Along recorded sets",
        "The time so far as a set goes on, a query after each example, alpha 0.1. Scans where they end in "
        "reasonable time.",
        tuple(
            View(f"along-{name}", "examples", "examples so far", f"so_far_{name}", f"{name}: time so far (s)")
            for name in SETS
        ),
    ),
    "kinds": Section(
        "Every kind of model",
        "Events of one key as msgpack, from bytes to results, without a log: the text messages of the demo, and "
        "two generated streams. Each example is predicted, then learned; of `split` it is learned alone. Models "
        "that forget keep the last 1,000. Forests have ten trees. Labels of friedman are numbers.",
        (
            View("kinds", "data", "", *_MICROSECONDS),
            View("kinds-quality", "data", "", "quality", "accuracy; of friedman R2"),
            View("kinds-state", "data", "", "state_bytes", "bytes of state"),
        ),
    ),
}


def measure(scope: Scope) -> Iterator[Row]:
    """Run all experiments; yield their rows, each with the name of its experiment."""
    warm_up([(finder, criterion) for finder in FINDERS for criterion in criteria_of(finder)], scope.progress)
    for name, experiment in EXPERIMENTS.items():
        for row in experiment(scope):
            yield {"bench": "report", "experiment": name, **row, "machine": machine()}


def facts(command: str, date: str) -> dict[str, str]:
    """Return what a reader must know of a run: where, of what, when, how."""
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}",
        "commit": _commit(),
        "date": date,
        "command": f"`{command}`",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{platform.machine()} {named[0]}" if named else platform.machine()


def _commit() -> str:
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def write(page: Path, rows: Sequence[Row], about: Mapping[str, str]) -> None:
    """Write the page, and its plots beside it."""
    page.parent.mkdir(parents=True, exist_ok=True)
    parts = ["# Benchmarks\n", _INTRODUCTION, _list(about)]
    for name, section in SECTIONS.items():
        of = [row for row in rows if row["experiment"] == name]
        if of:
            parts += [f"## {section.title}\n", f"{section.text.format_map(of[0])}\n", *_body(page, section, of)]
    page.write_text("\n".join(parts), encoding="utf-8")


_INTRODUCTION = """\
What it costs to know the best split after every event, beside what merely counting costs. *count-only* adds to
a dense array, *count-hash* to the counters in the pool's own storage; neither does anything else. What is compared
ran in turns in the same rounds; figures are medians over the rounds, ratios are taken round by round. What is too
slow for that ran fewer rounds. Times are of one machine, ratios travel better.
"""


def _list(about: Mapping[str, str]) -> str:
    return "".join(f"* {name}: {value}\n" for name, value in about.items())


def _body(page: Path, section: Section, rows: Sequence[Row]) -> Iterator[str]:
    verdict = section.verdict(rows)
    if verdict is not None:
        yield f"{verdict}\n"
    for view in section.views:
        lines = series(view, rows)
        if lines:
            plot = page.with_name(f"{page.stem.lower()}-{view.name}.svg")
            draw(plot, view, lines)
            yield f"![{view.y_label}]({plot.name})\n"
            yield _table(view, lines)


def _table(view: View, lines: Mapping[str, Mapping[Any, float]]) -> str:
    """Return a table of what is drawn: a row for each x, a column for each finder."""
    xs = list(dict.fromkeys(x for line in lines.values() for x in line))
    head = [f"{view.x_label or view.x}: {view.y_label}", *lines]
    body = [[_number(x), *(_number(line.get(x)) for line in lines.values())] for x in xs]
    rule = ["---", *("---:" for _ in lines)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, rule, *body])


def _number(value: Any) -> str:
    """Return a figure with three digits that count, a count with separators, a name as it is."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
