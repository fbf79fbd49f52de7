"""`bench papers`: the tables and figures of the five papers, each by a command of `bench`, as one page with plots.

::

    figures of PAPERS -> a command each, run once -> COMMAND.jsonl, kept -> tables and plots -> REPORT.md

What a command printed stays in its file: a run that was broken off goes on with the next command.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from worker.bench.cases import Progress, Row
from worker.bench.line_plot import Lines, line_plot

PAPERS = ("000", "001", "002", "003", "004")
_FOLDER, _OUT = "FOLDER", "OUT"  # in commands: the folder with the recorded sets, and where the report goes
_HIDDEN = {"bench", "machine", "experiment", "versions", "parameters"}

Run: TypeAlias = Callable[[Sequence[str], Path], "str | None"]  # a command into a file; what went wrong


class Plot(NamedTuple):
    """What is drawn: keys of the rows, and what to call them."""

    x: str
    y: str
    y_label: str
    lines: tuple[str, ...]  # keys that tell lines apart


class Figure(NamedTuple):
    """A table or figure of a paper."""

    paper: str
    title: str
    says: str  # what the paper has
    quick: str | None  # the command in minutes, without `anabranch bench`; None: it has no quick form
    full: str
    plots: tuple[Plot, ...] = ()
    where: Mapping[str, Any] = MappingProxyType({})  # rows with these values alone

    def command(self, *, full: bool) -> str | None:
        """Return the command of a form."""
        return self.full if full else self.quick


_REPORT_QUICK, _REPORT = "report --quick", "report --data FOLDER"
_SECONDS = "time (s)"
_POLICIES = "--policies periodic,osm,imac"
_BY_FINDER = ("finder", "criterion")


_SETS_OF_002 = (
    " ".join(
        f"--data {name}"
        for name in ("electricity", "covertype", "kdd99", "noaa", "poker", "insects", "wing_beats")
    )
    + " --folder FOLDER --positive majority"
)
_FORGETTING = "--updates window:1000 --updates random:0.5 --epsilons 0,0.1,0.3,1"


def _rtg(*attributes: int) -> str:
    """Return trees of paper 001's classes, over so many nominal and as many numeric attributes."""
    return " ".join(f"--data rtg:classes=25,nominals={each},numerics={each}" for each in attributes)


_WITHOUT_DELAYS = "--no-delay --repeats 1"  # which would take hours


def _of_trees(data: str, more: str = "") -> tuple[str, str]:
    command = f"trees --data {data} {_POLICIES}"
    quick = " --no-delay" if "--no-delay" in more else ""
    return f"{command} --examples 20000 --repeats 1{quick}", f"{command} {more}".strip()


FIGURES: tuple[Figure, ...] = (
    Figure(
        "000",
        "figure 1, by alpha",
        "time falls with alpha, then is level",
        _REPORT_QUICK,
        _REPORT,
        (Plot("alpha", "seconds", _SECONDS, _BY_FINDER),),
        {"experiment": "alpha"},
    ),
    Figure(
        "000",
        "trees that are not empty",
        "figure 2b has them by n",
        _REPORT_QUICK,
        _REPORT,
        (Plot("alpha", "trees", "trees", _BY_FINDER),),
        {"experiment": "trees"},
    ),
    Figure(
        "000",
        "figure 2, by n",
        "time grows with n",
        _REPORT_QUICK,
        _REPORT,
        (Plot("examples", "seconds", _SECONDS, _BY_FINDER),),
        {"experiment": "examples"},
    ),
    Figure(
        "000",
        "figures 2b and 3, along the stream",
        "an example takes longer and longer, UPDGINI's less at first; UPDENT's trees become fewer, UPDGINI has 10",
        _REPORT_QUICK,
        _REPORT,
        (
            Plot("examples", "us_per_example", "time of an example (µs)", _BY_FINDER),
            Plot("examples", "trees", "trees", _BY_FINDER),
        ),
        {"experiment": "points"},
    ),
    Figure(
        "000",
        "figure 5, 20News",
        "the scans' time so far is convex, the finders' nearly straight",
        None,
        _REPORT,
        (Plot("examples", "so_far_news20_bigram", "time so far (s)", _BY_FINDER),),
        {"experiment": "along", "data": "news20_bigram"},
    ),
    Figure(
        "000",
        "figure 6, the other sets",
        "as figure 5",
        None,
        _REPORT,
        tuple(
            Plot("examples", f"so_far_{name}", f"{name}: time so far (s)", _BY_FINDER)
            for name in ("farm_ads", "victorian_eltec", "imdb")
        ),
        {"experiment": "along"},
    ),
    Figure(
        "000",
        "figure 4, by d and by density",
        "scans grow with d, the finders hardly",
        _REPORT_QUICK,
        _REPORT,
        (
            Plot("features", "seconds", _SECONDS, _BY_FINDER),
            Plot("density", "seconds", _SECONDS, _BY_FINDER),
        ),
        {"experiment": "features"},
    ),
    Figure(
        "000",
        "table 2, recorded sets",
        "Farm: UPDENT 2.75 s, BASEENT 5.52, UPDGINI 2.44, BASEGINI 3.78; 20News: UPDENT 39.35, UPDGINI 31.51",
        None,
        _REPORT,
        (),
        {"experiment": "sets"},
    ),
    Figure(
        "000",
        "section 6, splits that are not the best",
        "none with alpha 0.1, but 21 of 72,309 of UPDGINI on SRAA, off by a factor of 1.003; some with alpha 40",
        "optimal --data sparse:2000,10,2000,0.005 --orders 1",
        "optimal --data FOLDER/farm_ads.npz --data FOLDER/victorian_eltec.npz --data FOLDER/imdb.npz "
        "--data sparse:10000,10,10000,0.001 --orders 3",
    ),
    Figure(
        "000",
        "more than two labels",
        "",
        "labels --examples 100 --window 50 --repeats 1",
        "labels",
        (
            Plot("labels", "us_per_query", "time of a query (µs)", ("side", "criterion")),
            Plot("labels", "us_in_batches", "time of an event in a batch (µs)", ("side", "criterion")),
        ),
    ),
    Figure(
        "000",
        "categories and numbers",
        "",
        "labels --data poker,kdd99 --folder FOLDER --examples 2000 --window 500 --repeats 1",
        "labels --data poker,kdd99,covertype --folder FOLDER --examples 25000 --window 2000",
    ),
    Figure("001", "table 2, LED_g", "4,999, 2,652 and 186 attempts", *_of_trees("LED_g", "--examples 1000000")),
    Figure(
        "001",
        "table 2, SEA_g",
        "25,436, 18,172 and 3,414 attempts",
        *_of_trees("SEA_g", "--examples 5000000 --repeats 1"),
    ),
    Figure(
        "001",
        "table 2, AGR_g",
        "33,229, 20,496 and 9,688 attempts",
        *_of_trees("AGR_g", f"--examples 10000000 {_WITHOUT_DELAYS}"),
    ),
    Figure(
        "001",
        "table 2, RBF",
        "10,008, 1,649 and 105 attempts",
        *_of_trees("RBF", f"--examples 2000000 {_WITHOUT_DELAYS}"),
    ),
    # A tenth of what the paper takes, as that is 5 GB; the other streams are as long as there.
    Figure(
        "001",
        "table 2, RTG",
        "35,949, 9,565 and 2,499 attempts",
        *_of_trees("RTG", f"--examples 1000000 {_WITHOUT_DELAYS}"),
    ),
    Figure("001", "table 2, Covertype", "2,853, 1,237 and 492 attempts", *_of_trees("covertype --folder FOLDER")),
    Figure("001", "table 2, KDD99", "4,231, 105 and 113 attempts", *_of_trees("kdd99 --folder FOLDER")),
    Figure("001", "another set: electricity", "", *_of_trees("electricity --folder FOLDER")),
    Figure("001", "beyond the paper: MOA's trees", "", None, "moa --folder FOLDER"),
    Figure(
        "001",
        "figure 1, by attributes and by examples",
        "the time of VFDT and OSM rises more steeply than that of IMAC",
        f"trees {_rtg(5, 20)} --examples 2000,10000 {_POLICIES} --no-delay --repeats 1",
        f"trees {_rtg(10, 25, 50, 100, 200)} --examples 20000,50000,100000 {_POLICIES} --no-delay --repeats 3",
        (
            Plot("features", "seconds", _SECONDS, ("policy", "examples")),
            Plot("examples", "seconds", _SECONDS, ("policy", "features")),
            Plot("features", "attempts", "attempts", ("policy", "examples")),
        ),
    ),
    Figure(
        "002",
        "tables 2, 4 and 5, FuDyADT",
        "with epsilon 0.5: F1 82.12 % in 0.76 s, 90.37 in 30.78, 99.91 in 10.49, 81.92 in 0.66, 88.34 in 36.41",
        f"dynamic {_SETS_OF_002} --updates incremental --epsilons 0.5,1 --examples 5000 --repeats 1",
        f"dynamic {_SETS_OF_002} --updates incremental --epsilons 0.15,0.3,0.5,1 --repeats 3",
    ),
    Figure(
        "002",
        "tables 2, 3, 4 and 5, EFDT and HAT",
        "EFDT: F1 72.05 % in 1.65 s, 83.64 in 42.47, 97.98 in 17.72, 80.78 in 0.73, 79.69 in 16.26; HAT alike",
        f"trees {_SETS_OF_002} --policies efdt,hat --grace-periods 100,500,1000 --examples 5000 --repeats 1",
        f"trees {_SETS_OF_002} --policies efdt,hat --grace-periods 100,500,1000 --repeats 3",
    ),
    Figure(
        "002",
        "figures 1 and 2, electricity",
        "F1 falls by 0.1, time by three orders",
        "dynamic --data electricity --folder FOLDER --positive DOWN --examples 2000 --updates window:100 "
        "--updates random:0.5 --epsilons 0,0.1,0.3,1 --repeats 1",
        "dynamic --data electricity --folder FOLDER --positive DOWN --examples 10000 --updates window:100 "
        "--updates random:0.5 --epsilons 0,0.1,0.3,1",
        (Plot("epsilon", "f1", "F1", ("updates",)), Plot("epsilon", "us_per_event", "time (µs)", ("updates",))),
    ),
    Figure(
        "002",
        "figures 1 to 5, the other sets",
        "F1 falls little, time by orders",
        f"dynamic {_SETS_OF_002} {_FORGETTING} --examples 1500 --repeats 1",
        f"dynamic {_SETS_OF_002} {_FORGETTING} --examples 5000 --repeats 1",
        (
            Plot("epsilon", "f1", "F1", ("data", "updates")),
            Plot("epsilon", "us_per_event", "time (µs)", ("data", "updates")),
        ),
    ),
    Figure(
        "003",
        "figure 2, 20 Newsgroups",
        "sparse 58 to 188 times as fast as dense",
        "splitter --data news20_counts --folder FOLDER --ways ordered,dense --depths 1,3 --examples 2000 "
        "--repeats 1",
        "splitter --data news20_counts --folder FOLDER --ways ordered,dense --depths 1,10 --sklearn",
        (Plot("depth", "seconds", _SECONDS, ("side",)),),
    ),
    Figure(
        "003",
        "figure 4, adult",
        "sparse twice as fast where shallow, slower where deep",
        "splitter --data a9a --folder FOLDER --ways ordered,dense --depths 1,3,10 --repeats 1",
        "splitter --data a9a --folder FOLDER --ways ordered,dense --depths 1,3,10,none --sklearn",
        (Plot("depth", "seconds", _SECONDS, ("side",)),),
    ),
    Figure(
        "003",
        "figure 6, by density",
        "sparse is faster below 0.2",
        "splitter --data random:0.01,random:0.1,random:0.2,random:0.5 --depths 3 --ways ordered,either,dense "
        "--repeats 1",
        "splitter --data random:0.01,random:0.1,random:0.2,random:0.5,random:1 --depths 20 "
        "--ways ordered,either,dense --sklearn",
        (Plot("density", "seconds", _SECONDS, ("side",)),),
    ),
    Figure(
        "003",
        "MAP beside SEARCH and ORDERED, columns of one entry",
        "equation 8 takes the better of MAP and SEARCH",
        "splitter --data single:4000 --ways ordered,map,search,either --depths 1,5 --repeats 1",
        "splitter --data single:16000 --ways ordered,map,search,either",
    ),
    Figure(
        "004",
        "figures 1 to 6, observers",
        "the order of merit: E-BST, TE-BST, QO with 0.01, a third, a half",
        "observers --sizes 100,1000,10000 --repeats 2",
        "observers",
        (
            Plot("examples", "merit_to_ebst", "merit to E-BST's", ("observer",)),
            Plot("examples", "elements", "elements", ("observer",)),
            Plot("examples", "observe_ns_per_example", "time of an example (ns)", ("observer",)),
            Plot("examples", "split_us", "time of a split (µs)", ("observer",)),
        ),
    ),
    Figure(
        "004",
        "the largest size",
        "QO is faster than both trees",
        None,
        "observers --sizes 1000000 --repeats 1 --tasks lin",
    ),
    Figure(
        "004",
        "beyond the paper: river's observers",
        "",
        None,
        "observers --river --sizes 1000,10000 --repeats 1",
    ),
    Figure(
        "004",
        "beyond the paper: trees of numbers",
        "",
        "regression --examples 5000 --repeats 1",
        "regression",
    ),
)


def run_command(arguments: Sequence[str], file: Path) -> str | None:
    """Run a command of `bench` into a file; return the end of what it said where it failed."""
    with file.open("wb") as out:
        command = [sys.executable, "-m", "worker", "bench", *arguments]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1] if said else f"it ended with {done.returncode}"


def bench_papers(
    papers: Sequence[str],
    folder: Path | None,
    out: Path,
    *,
    full: bool,
    progress: Progress = lambda step: None,
    run: Run = run_command,
    figures: Sequence[Figure] = FIGURES,
) -> Iterator[Row]:
    """Make the figures of papers and write the report; yield a line for each figure.

    Parameters
    ----------
    papers : sequence of str
        Of `PAPERS`.
    folder : Path, optional
        With the recorded sets; without it figures that need one are left out.
    out : Path
        A folder: ``REPORT.md``, plots, and what commands printed. A command whose file is there is not run again.
    full : bool
        In full, which takes hours.
    progress : callable
        Called with what is about to run.
    run : callable
        Runs a command.
    figures : sequence of Figure
        All there are.
    """
    out.mkdir(parents=True, exist_ok=True)
    page = [_introduction(full=full)]
    problems: dict[str, str] = {}  # by command
    for paper in papers:
        page.append(f"## Paper {paper}\n")
        for figure in figures:
            if figure.paper != paper:
                continue
            command = figure.command(full=full)
            line: Row = {"bench": "papers", "paper": paper, "figure": figure.title, "command": command}
            problem, rows = "the full form alone has it", []
            if command is not None and _FOLDER in command and folder is None:
                problem = "it needs the recorded sets; say --folder"
            elif command is not None:
                kept = out / f"{hashlib.sha256(command.encode()).hexdigest()[:12]}.jsonl"
                if not kept.exists() and command not in problems:
                    progress(command)
                    problems[command] = _run(command, folder, out, kept, run)
                problem = problems.get(command, "")
                rows = _rows(kept, figure.where) if kept.exists() else []
            page += _part(figure, command, problem, rows, out)
            (out / "REPORT.md").write_text("\n".join(page), "utf-8")
            yield line | {"rows": len(rows)} | ({"problem": problem} if problem else {})


def _run(command: str, folder: Path | None, out: Path, kept: Path, run: Run) -> str:
    """Run a command; what it printed is kept once it is whole. Return what went wrong."""
    whole = [
        *shlex.split(command),
        *(["--out", f"{_OUT}/splits/RESULTS.md"] if command.startswith("report") else []),
    ]
    arguments = [
        re.sub(rf"^{_FOLDER}(?=/|$)", lambda _: str(folder), each).replace(_OUT, str(out)) for each in whole
    ]
    partial = kept.with_suffix(".part")
    problem = run(arguments, partial)
    if problem is None:
        partial.rename(kept)
    return problem or ""


def _rows(file: Path, where: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [row for row in rows if all(row.get(key) == value for key, value in where.items())]


# --- the page


def _introduction(*, full: bool) -> str:
    form = "--full" if full else "quick form"
    return (
        "# Tables and figures of the papers\n\n"
        f"Made by `anabranch bench papers` ({form}). `algorithms/PAPERS.md` tells where the papers are read "
        "differently. Times are of one machine; ratios travel better.\n"
    )


def _part(figure: Figure, command: str | None, problem: str, rows: Sequence[Row], out: Path) -> list[str]:
    """Return what the page has of a figure, and write its plots."""
    part = [f"### {figure.title[0].upper()}{figure.title[1:]}\n"]
    if figure.says:
        part.append(f"The paper: {figure.says}.\n")
    if command is not None:
        part.append(f"`anabranch bench {command}`\n")
    if problem or not rows:
        return [*part, f"Not made: {problem or 'the command printed no such rows'}.\n"]
    for number, plot in enumerate(figure.plots):
        lines = lines_of(plot, rows)
        if lines:
            words = re.sub(r"[^a-z0-9]+", "-", figure.title.lower()).strip("-")
            name = f"{figure.paper}-{words}-{number}.svg"
            label = plot.x.replace("_", " ")
            (out / name).write_text(
                line_plot(f"{figure.title}: {plot.y_label}", label, plot.y_label, lines), "utf-8"
            )
            part.append(f"![{plot.y_label}]({name})\n")
    return [*part, table_of(rows)]


def lines_of(plot: Plot, rows: Iterable[Row]) -> Lines:
    """Return the lines of a plot, the mean where several rows have one x; without a bound, a depth is "none"."""
    found: dict[str, dict[Any, list[float]]] = {}
    for row in rows:
        y = row.get(plot.y)
        if isinstance(y, int | float) and plot.x in row:
            x = "none" if row[plot.x] is None else row[plot.x]
            name = ", ".join(str(row[key]) for key in plot.lines if row.get(key) is not None)
            found.setdefault(name, {}).setdefault(x, []).append(y)
    return {name: {x: sum(ys) / len(ys) for x, ys in line.items()} for name, line in found.items()}


def table_of(rows: Sequence[Row]) -> str:
    """Return rows as a table; what is the same in all of them stands below it."""
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in _HIDDEN]
    alike = [key for key in keys if len(rows) > 1 and all(row.get(key) == rows[0].get(key) for row in rows)]
    shown = [key for key in keys if key not in alike]
    body = [shown, ["---"] * len(shown), *([_cell(row.get(key)) for key in shown] for row in rows)]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in body)
    told = ", ".join(f"{key} {_cell(rows[0][key])}" for key in alike)
    return f"{table}\n{f'In all rows: {told}.' if told else ''}\n"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(each)}" for key, each in value.items())
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return (
        f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).replace("|", "\\|")
    )
