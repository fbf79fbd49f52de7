"""`bench papers`: what is run, that it goes on where it was broken off, and what the page says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

from tests.support.places import ROOT
from worker.bench.line_plot import line_plot
from worker.bench.papers import FIGURES, PAPERS, Figure, Plot, bench_papers, lines_of, run_command, table_of
from worker.commands import main

FIGURE = Figure(
    "000",
    "figure 9, by n",
    "it grows",
    "splits --data FOLDER/x --repeats 1",
    "splits --data FOLDER/x",
    (Plot("n", "seconds", "time (s)", ("finder",)),),
)
SVG = "{http://www.w3.org/2000/svg}"


class Runner:
    """Writes rows in place of a command, or fails."""

    def __init__(self, rows: Sequence[dict[str, Any]], problem: str | None = None) -> None:
        self.rows, self.problem = rows, problem
        self.commands: list[list[str]] = []

    def __call__(self, arguments: Sequence[str], file: Path) -> str | None:
        """Run it."""
        self.commands.append(list(arguments))
        file.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        return self.problem


ROWS = [
    {"finder": finder, "n": n, "seconds": n * (1 + at), "kept": "all", "machine": "m"}
    for at, finder in enumerate(("a", "b"))
    for n in (10, 100)
]


def test_the_commands_of_the_page_are_those_of_the_report() -> None:
    """What PAPERS.md names for a table or figure is a full command here, or the quick one."""
    page = (ROOT / "algorithms" / "PAPERS.md").read_text("utf-8")
    named = set(re.findall(r"`anabranch bench ([^`]+)`", page))
    known = {command for figure in FIGURES for command in (figure.full, figure.quick)}
    assert named - known == {"papers --folder FOLDER"}
    assert {figure.full for figure in FIGURES} - named == set()
    assert {figure.paper for figure in FIGURES} == set(PAPERS)


@pytest.mark.parametrize("command", sorted({each for f in FIGURES for each in (f.quick, f.full) if each}))
def test_each_command_can_be_given(command: str, tmp_path: Path) -> None:
    """Its name and all its options are known, and have values that they take."""
    context = main.make_context("anabranch", ["bench", *shlex.split(command.replace("FOLDER", str(tmp_path)))])
    while isinstance(context.command, click.Group):
        given = [*context._protected_args, *context.args]
        name, found, rest = context.command.resolve_command(context, given)
        assert found is not None
        context = found.make_context(name, rest, parent=context)
    assert context.command.name == command.split()[0]


def test_a_figure_is_made_once(tmp_path: Path) -> None:
    """Its command is run with the folder; a second run takes what is there, and makes the same page."""
    runner = Runner(ROWS)
    figure = FIGURE._replace(quick="dynamic --data x --folder FOLDER")

    def made() -> list[dict[str, Any]]:
        found = bench_papers(["000"], tmp_path, tmp_path / "out", full=False, run=runner, figures=[figure])
        return list(found)

    (row,) = made()
    assert row["rows"] == 4
    assert runner.commands == [["dynamic", "--data", "x", "--folder", str(tmp_path)]]
    page = (tmp_path / "out" / "REPORT.md").read_text()
    assert "### Figure 9, by n\n\nThe paper: it grows.\n\n`anabranch bench dynamic --data x" in page
    assert "![time (s)](000-figure-9-by-n-0.svg)" in page
    assert "| a | 10 | 10 |\n| a | 100 | 100 |\n| b | 10 | 20 |\n" in page
    assert "In all rows: kept all." in page
    assert made() == [row]
    assert len(runner.commands) == 1
    assert (tmp_path / "out" / "REPORT.md").read_text() == page


def test_a_command_that_fails_is_told_and_run_again(tmp_path: Path) -> None:
    """What it printed before it failed is not taken; figures of one command are told alike, and it ran once."""
    failing, good = Runner(ROWS[:1], "no such set"), Runner(ROWS)
    figures = [FIGURE._replace(quick="state"), FIGURE._replace(quick="state", title="figure 10")]
    first, second = bench_papers(["000"], None, tmp_path, full=False, run=failing, figures=figures)
    assert (first["problem"], first["rows"]) == (second["problem"], second["rows"]) == ("no such set", 0)
    assert len(failing.commands) == 1
    assert (tmp_path / "REPORT.md").read_text().count("Not made: no such set.") == 2
    first, second = bench_papers(["000"], None, tmp_path, full=False, run=good, figures=figures)
    assert (first["rows"], second["rows"], len(good.commands)) == (4, 4, 1)
    assert "problem" not in first


def test_what_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A figure without a quick form, one without its sets, and one of whose rows there are none."""
    runner = Runner(ROWS)
    figures = [
        FIGURE._replace(quick=None),
        FIGURE._replace(quick="dynamic --folder FOLDER"),
        FIGURE._replace(quick="state", where={"finder": "c"}),
    ]
    rows = list(bench_papers(["000"], None, tmp_path, full=False, run=runner, figures=figures))
    assert [row.get("problem") for row in rows] == [
        "the full form alone has it",
        "it needs the recorded sets; say --folder",
        None,
    ]
    assert "Not made: the command printed no such rows." in (tmp_path / "REPORT.md").read_text()
    assert runner.commands == [["state"]]


def test_rows_of_an_experiment_alone(tmp_path: Path) -> None:
    """Several figures of one command have their rows each; a report goes to a folder beside the page."""
    runner = Runner(ROWS)
    figures = [FIGURE._replace(quick="report --quick", where={"finder": name}) for name in "ab"]
    rows = list(bench_papers(["000"], None, tmp_path, full=False, run=runner, figures=figures))
    assert [row["rows"] for row in rows] == [2, 2]
    assert runner.commands == [["report", "--quick", "--out", f"{tmp_path}/splits/RESULTS.md"]]


def test_a_command_runs(tmp_path: Path) -> None:
    """A real one prints its rows into the file; one that is none says why."""
    assert (
        run_command(["splitter", "--data", "single:16", "--depths", "1", "--repeats", "1"], tmp_path / "a") is None
    )
    assert {json.loads(line)["side"] for line in (tmp_path / "a").read_text().splitlines()} >= {"ordered", "map"}
    said = run_command(["splitter", "--data", "none"], tmp_path / "b")
    assert said is not None
    assert "random:SHARE" in said


def test_the_command_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Papers may be chosen; without sets, what needs none is made."""
    made = partial(bench_papers, figures=[FIGURE._replace(quick="state")], run=Runner(ROWS))
    monkeypatch.setattr("worker.commands.bench.bench_papers", made)
    result = CliRunner().invoke(main, ["bench", "papers", "--paper", "000,004", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert f"wrote {tmp_path}/REPORT.md" in result.stderr
    assert [json.loads(line)["rows"] for line in result.stdout.splitlines()] == [4]
    assert CliRunner().invoke(main, ["bench", "papers", "--paper", "005"]).exit_code == 2


def test_lines_are_means_by_x() -> None:
    """Rows with the same x are one point; without a bound a depth is a name."""
    plot = Plot("depth", "seconds", "time", ("side", "kind"))
    rows = [{"side": "s", "depth": None, "seconds": y} for y in (1.0, 3.0)] + [{"side": "s", "depth": 1}]
    assert lines_of(plot, rows) == {"s": {"none": 2.0}}
    assert table_of([{"a": 1.0}]) == "| a |\n| --- |\n| 1 |\n\n\n"


def _places(svg: str) -> list[list[tuple[float, float]]]:
    paths = [path.get("d", "") for path in ElementTree.fromstring(svg).iter(f"{SVG}path") if path.get("fill")]
    return [[(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)] for path in paths]


@pytest.mark.parametrize(
    ("line", "even"),
    [
        ({1: 1.0, 10: 10.0, 100: 100.0}, True),  # both axes are logarithmic
        ({0: 0.0, 1: 1.0, 2: 2.0}, True),
        ({"a": 5.0, "b": 10.0, "none": 15.0}, True),
        ({0: 0.0, 1: 1.0, 4: 4.0}, False),
        ({1: 7.0}, True),
        ({1: 0.0, 2: 0.0}, True),
    ],
)
def test_points_are_where_their_values_are(line: dict[Any, float], even: bool) -> None:
    """In even steps where values are, or their logarithms; within the plot; larger values stand higher."""
    (points,) = _places(line_plot("t", "x", "y", {"<a & b>": line}))
    xs, ys = [x for x, _ in points], [y for _, y in points]
    assert len(points) == len(line)
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)
    assert all(70 <= x <= 460 and 30 <= y <= 310 for x, y in points)
    steps = [right - left for left, right in pairwise(xs)]
    assert (max(steps, default=0) - min(steps, default=0) < 0.2) == even


def test_a_plot_says_what_it_shows() -> None:
    """Title, axes, names of lines, each line in a colour for light and one for dark."""
    lines = {"one": {1: 1.0, 2: 3.0}, "<two>": {1: 2.0, 2: 2.0}}
    svg = line_plot("Title & more", "examples", "time (s)", lines)
    words = [each.text for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert {"Title & more", "examples", "time (s)", "one", "<two>"} <= set(words)
    assert svg.count(".l1{color:") == 2
    assert line_plot("Title & more", "examples", "time (s)", lines) == svg
