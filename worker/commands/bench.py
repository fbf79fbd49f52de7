"""`anabranch bench`: what things cost, as JSON lines."""

from __future__ import annotations

import datetime
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from algorithms.core.crew import Crew
from algorithms.core.criteria import CRITERIA
from algorithms.forests.draws import draws
from algorithms.splits.finders import FINDERS
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import LEAST_CANDIDATES, MOST_CANDIDATES
from algorithms.trees.predict import Predict
from worker.bench.cases import Progress, Row
from worker.bench.datasets import SETS
from worker.bench.dynamic import bench_dynamic
from worker.bench.estimators import SETS as ESTIMATOR_SETS
from worker.bench.estimators import Terms as EstimatorTerms
from worker.bench.estimators import bench_estimators
from worker.bench.estimators import peers as estimator_peers
from worker.bench.floor import bench_floor
from worker.bench.forests import Terms as ForestTerms
from worker.bench.forests import bench_forests
from worker.bench.forests import river as river_forest
from worker.bench.forms import FORMS, IDS
from worker.bench.idle import KINDS, bench_idle
from worker.bench.labels import bench_labels, bench_sets
from worker.bench.moa import PREDICTIONS as MOA_PREDICTIONS
from worker.bench.moa import SETS as MOA_SETS
from worker.bench.moa import TREES as MOA_TREES
from worker.bench.moa import MoaUnavailable, bench_moa, find_moa
from worker.bench.moa import Terms as MoaTerms
from worker.bench.numbers import RECORDED, recorded
from worker.bench.observers import BASE, SIDES, TASKS, bench_observers, river_sides
from worker.bench.optimal import bench_optimal
from worker.bench.papers import PAPERS, bench_papers
from worker.bench.peers import SETS as PEER_SETS
from worker.bench.peers import Terms, bench_peers, river
from worker.bench.pipeline import bench_pipeline
from worker.bench.regression import FORGETTING, STREAMS, bench_regression, river_trees
from worker.bench.regression import SIDES as REGRESSION_SIDES
from worker.bench.regression import Terms as RegressionTerms
from worker.bench.regressor import bench_regressor
from worker.bench.regressor import scikit_learn as scikit_learn_regressor
from worker.bench.splits import bench_splits
from worker.bench.splitter import WAYS, bench_splitter, scikit_learn, table_for
from worker.bench.splitter import Terms as SplitterTerms
from worker.bench.start import SETS as START
from worker.bench.start import StartError, bench_start
from worker.bench.streams import load
from worker.bench.tables import MAJORITY, Table, against
from worker.bench.trees import CHOICES, NUMERICS, bench_trees, table_of
from worker.bench.updates import EXPECTED, plan, workload
from worker.broker import Cluster, install
from worker.commands.common import clear_errors, fail
from worker.watching import logs

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_PROGRAM = click.Path(exists=True, dir_okay=False, executable=True, path_type=Path)
_PREDICT = {each.name.lower().replace("_", "-"): each for each in Predict}
_STREAM = "An .npz with indptr, indices, labels, shape; or sparse:n,d1,d2,q; or fresh:n,d1,new."
_TIME_LIMIT = 20.0  # s; a side of a comparison that has taken longer in all is not run again


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


class _Numbers(click.ParamType[list[float]]):
    """Comma-separated numbers, none below 0."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            numbers = [float(part) for part in str(value).split(",")]
        except ValueError:
            numbers = [-1.0]
        if not all(0.0 <= number < math.inf for number in numbers):
            self.fail(f"expected numbers of at least 0, as in 0,0.1,1, got {value!r}", param, ctx)
        return numbers


_repeats = click.option(
    "--repeats", type=click.IntRange(1), default=5, show_default=True, help="Figures are medians."
)


_positive = click.option(
    "--positive",
    help=f"This class, or {MAJORITY}, is 1 and all others are 0, as in paper 002; without it classes stay.",
)


def _growth(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of when a leaf splits."""
    for option in (
        click.option("--tie-threshold", type=click.FloatRange(0.0), default=0.05, show_default=True),
        click.option(
            "--split-confidence", type=click.FloatRange(0.0, 1.0, True, True), default=1e-7, show_default=True
        ),
        click.option(
            "--grace-period", type=click.IntRange(1), default=200, show_default=True, help="n_min, or eta."
        ),
    ):
        command = option(command)
    return command


_bootstrap = click.option(
    "--bootstrap", help="A cluster to use; without it one node is started, and its data thrown away at the end."
)


@contextmanager
def _cluster(bootstrap: str | None) -> Iterator[str]:
    if bootstrap is not None:
        yield bootstrap
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        clear_errors(),
        Cluster(install(), Path(folder) / "kafka", quick=False) as cluster,
    ):
        yield cluster.bootstrap


@click.group()
def bench() -> None:
    """Measure; every command prints JSON lines, with both sides of a comparison from one run."""
    logs.configure("warning", "auto", sys.stderr)


@bench.command()
@click.option("--data", required=True, help=_STREAM)
@click.option("--finders", type=_Listed(list(FINDERS)), default=",".join(FINDERS), show_default=True)
@click.option("--criterion", type=click.Choice(list(CRITERIA)), default="entropy", show_default=True)
@click.option("--limit", type=click.IntRange(1), help="Take only so many examples.")
@click.option("--updates", default="incremental", show_default=True, help=f"What is deleted: {EXPECTED}.")
@click.option("--latency", is_flag=True, help="And the longest single event, in processor time.")
@_repeats
def splits(
    data: str,
    finders: list[str],
    criterion: str,
    limit: int | None,
    updates: str,
    latency: bool,
    repeats: int,
) -> None:
    """Insert and delete examples and ask for the best split after each, beside what counting alone costs."""
    with _naming("--data"):
        stream = load(data, limit)
    with _naming("--updates"):
        work = workload(stream, updates)
    _print(lambda progress: bench_splits(work, finders, criterion, repeats, progress, latency=latency))


@bench.command()
@click.option("--data", multiple=True, required=True, help=_STREAM)
@click.option("--alphas", type=_Numbers(), default="0.1,1,10,40", show_default=True)
@click.option("--orders", type=click.IntRange(0), default=0, show_default=True, help="So many more, at random.")
@click.option("--limit", type=click.IntRange(1), help="Take only so many examples.")
def optimal(data: tuple[str, ...], alphas: list[float], orders: int, limit: int | None) -> None:
    """Tell how often UPDENT and UPDGINI name a split that is not the best, and how far off it is."""
    if min(alphas) <= 0.0:
        raise click.BadParameter(f"expected numbers above 0, got {min(alphas):g}", param_hint="--alphas")
    with _naming("--data"):
        streams = [load(name, limit) for name in data]

    def lines(progress: Progress) -> Iterator[Row]:
        for stream in streams:
            yield from bench_optimal(stream, alphas, orders, progress)

    _print(lines)


@bench.command()
@click.option(
    "--data",
    default="sparse:10000,10,10000,0.001",
    show_default=True,
    help=_STREAM,
)
@click.option("--criterion", type=click.Choice(list(CRITERIA)), default="gini", show_default=True)
@click.option("--limit", type=click.IntRange(1), help="Take only so many examples.")
@click.option("--updates", default="incremental", show_default=True, help=f"What is deleted: {EXPECTED}.")
@_repeats
def floor(data: str, criterion: str, limit: int | None, updates: str, repeats: int) -> None:
    """Tell where each nanosecond of an exact split goes: counting, finding, growing, the index, asking."""
    with _naming("--data"):
        stream = load(data, limit)
    with _naming("--updates"):
        work = workload(stream, updates)
    _print(lambda progress: bench_floor(work, criterion, repeats, progress))


@bench.command()
@click.option(
    "--forms",
    type=_Listed(list(FORMS)),
    default=",".join(IDS),
    show_default=True,
    help=f"Of {', '.join(FORMS)}.",
)
@click.option("--keys", type=_Listed(), default="1,1000,100000", show_default=True, help="Numbers of model keys.")
@click.option("--events", type=click.IntRange(1), default=200_000, show_default=True, help="Examples in a run.")
@click.option("--partitions", type=click.IntRange(1, 1_000), default=1, show_default=True, help="Of the input.")
@click.option(
    "--threads",
    type=_Listed(),
    default="1",
    show_default=True,
    help="For partitions; as in 1,2: in turns.",
)
@click.option("--kafka", is_flag=True, help="On Apache Kafka, beside a bare consumer and at least once.")
@_bootstrap
@_repeats
def pipeline(
    forms: list[str],
    keys: list[str],
    events: int,
    partitions: int,
    threads: list[str],
    kafka: bool,
    bootstrap: str | None,
    repeats: int,
) -> None:
    """Run the whole path: log, decode, exact split model, results committed.

    On Kafka there is one key, and a line more: the latency at half of the highest rate.
    """
    with _naming("--threads"):
        crews = [Crew(int(each)).threads for each in threads]
    if kafka:
        if others := sorted(set(forms).difference(IDS)):
            raise click.UsageError(f"expected --forms of {', '.join(IDS)} with --kafka, got {', '.join(others)}")
        if partitions > 1 or crews != [1]:
            raise click.UsageError("expected --partitions and --threads without --kafka, got both; leave one out")
        from worker.bench.kafka import bench_kafka

        with _cluster(bootstrap) as address:
            _print(lambda progress: bench_kafka(address, forms, events, repeats, progress))
        return
    counts = [int(count) for count in keys]
    _print(lambda progress: bench_pipeline(forms, counts, events, repeats, progress, partitions, crews))


@bench.command()
@click.option("--data", "names", type=_Listed(list(START)), default=",".join(START), show_default=True)
@click.option("--folder", type=_FOLDER, required=True, help="Where the recorded sets are.")
@click.option("--rows", type=click.IntRange(2), default=100_000, show_default=True, help="Larger sets are cut.")
def start(names: list[str], folder: Path, rows: int) -> None:
    """Go from a file to a result by the commands that `init` prints, beside the library on the same rows."""
    try:
        with _naming("--folder"):
            _print(lambda progress: bench_start(names, folder, rows, progress))
    except StartError as error:
        fail(str(error))


@bench.command()
@click.option(
    "--examples", type=click.IntRange(1), default=1_000_000, show_default=True, help="That wait at once."
)
@click.option("--features", type=click.IntRange(1, 1_000), default=15, show_default=True, help="Of each.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
def pending(examples: int, features: int, seed: int) -> None:
    """Let examples wait for their labels: their bytes, and how fast labels are learned beside inserts."""
    from worker.bench.pending import bench_pending

    _print(lambda progress: bench_pending(examples, features, seed, progress))


@bench.command()
@click.option("--features", type=click.IntRange(1_000), default=1_000_000, show_default=True)
@click.option("--examples", type=click.IntRange(100), default=20_000, show_default=True, help="Live ones.")
@click.option("--changes", type=_FILE, help="A recorded set (.npz): what a second checkpoint of it writes.")
@_bootstrap
def state(features: int, examples: int, changes: Path | None, bootstrap: str | None) -> None:
    """Checkpoint a large model on Apache Kafka and restore it: how long the loop stops, how fast it is read."""
    from worker.bench.state import bench_changes, bench_state

    if changes is not None:
        with _naming("--changes"):
            _print(lambda progress: bench_changes(changes, progress))
        return
    with _cluster(bootstrap) as address:
        _print(lambda progress: bench_state(address, features, examples, progress))


@bench.command()
@click.option(
    "--keys", type=click.IntRange(10), default=1_000_000, show_default=True, help="Of which a tenth lives."
)
@click.option("--ones", type=click.IntRange(1), default=15, show_default=True, help="Features of an example.")
@click.option("--kind", type=click.Choice(list(KINDS)), default="split", show_default=True, help="Of the model.")
def idle(keys: int, ones: int, kind: str) -> None:
    """Let nine of ten keys expire: memory, pauses and checkpoints, beside a run that only had the living tenth."""
    _print(lambda progress: bench_idle(keys, ones, kind, progress))


@bench.command()
@click.option("--data", multiple=True, required=True, help="SEA_g and the like, a recorded set, or led:noise=10.")
@click.option("--folder", type=_FOLDER, help="Where the recorded sets are.")
@_positive
@click.option("--policies", type=_Listed(CHOICES), default="periodic,osm,imac,exact", show_default=True)
@click.option("--criterion", type=click.Choice(["entropy", "gini"]), default="entropy", show_default=True)
@click.option("--predict", type=click.Choice(list(_PREDICT)), default="majority", show_default=True)
@click.option(
    "--numeric",
    "numerics",
    type=_Listed(list(NUMERICS)),
    default="gaussian",
    show_default=True,
    help=f"Observers of numeric features: {', '.join(NUMERICS)}.",
)
@click.option("--radius-fraction", type=click.FloatRange(0.0, 100.0, True), default=0.5, show_default=True)
@click.option(
    "--candidates",
    type=click.IntRange(LEAST_CANDIDATES, MOST_CANDIDATES),
    help="K of imac; else as in the paper.",
)
@click.option("--inherit", is_flag=True, help="The bound counts what a leaf's parent saw for it.")
@click.option("--local-range", is_flag=True, help="The bound's range: of the classes that a leaf saw.")
@click.option("--drop-poor", is_flag=True, help="Leaves drop features that are surely not their best.")
@_growth
@click.option("--grace-periods", type=_Listed(), help="Several in place of one, each in turn.")
@click.option("--examples", type=_Listed(), help="Take only so many; 10000,50000: each in turn.")
@click.option("--no-delay", is_flag=True, help="Do not measure delays, which takes longer than all else.")
@_repeats
def trees(
    data: tuple[str, ...],
    folder: Path | None,
    positive: str | None,
    policies: list[str],
    criterion: str,
    predict: str,
    numerics: list[str],
    radius_fraction: float,
    candidates: int | None,
    inherit: bool,
    local_range: bool,
    drop_poor: bool,
    grace_period: int,
    split_confidence: float,
    tie_threshold: float,
    grace_periods: list[str] | None,
    examples: list[str] | None,
    no_delay: bool,
    repeats: int,
) -> None:
    """Grow a tree on each stream by each policy: attempts, delay, time, accuracy, memory."""
    sizes = [int(size) for size in examples] if examples else [None]
    tables = [_table_of(name, folder, size, positive) for name in data for size in sizes]
    options = {
        "criterion": criterion,
        "predict": _PREDICT[predict],
        "split_confidence": split_confidence,
        "tie_threshold": tie_threshold,
        "radius_fraction": radius_fraction,
        "candidates": candidates,
        "inherit": inherit,
        "local_range": local_range,
        "drop_poor": drop_poor,
    }

    def lines(progress: Progress) -> Iterator[Row]:
        for table in tables:
            for period in [int(each) for each in grace_periods or ()] or [grace_period]:
                periods = {"grace_period": period, "check_every": period}
                given = options | periods
                yield from bench_trees(table, policies, given, repeats, progress, numerics, not no_delay)

    _print(lines)


def _table_of(name: str, folder: Path | None, examples: int | None, positive: str | None) -> Table:
    """Return a table, or raise what a command says of its options."""
    with _naming("--data"):
        table = table_of(name, folder, examples)
    if positive is None:
        return table
    with _naming("--positive"):
        return against(table, positive)


@bench.command()
@click.option("--data", multiple=True, required=True, help="A recorded set, SEA_g and the like, or led:noise=10.")
@click.option("--folder", type=_FOLDER, help="Where the recorded sets are.")
@_positive
@click.option("--updates", multiple=True, help=f"{EXPECTED[0].upper()}{EXPECTED[1:]}; all three unless said.")
@click.option("--epsilons", type=_Numbers(), default="0,0.1,0.3,1", show_default=True, help="0: from scratch.")
@click.option("--betas", type=_Numbers(), help="Trees within beta of the best splits, without an epsilon.")
@click.option("--exact", is_flag=True, help="The tree that is always the greedy one.")
@click.option("--max-work", type=click.IntRange(1), help="Each epsilon once more, with rebuilds in parts.")
@click.option(
    "--latency", is_flag=True, help="Once more, one by one: median, 99 % and longest of each event (CPU)."
)
@click.option("--last", type=click.IntRange(1), help="Only the last so many events count; before: epsilon 1.")
@click.option("--times", type=click.IntRange(1), default=1, show_default=True, help="Each example so often.")
@click.option("--criterion", type=click.Choice(["entropy", "gini"]), default="gini", show_default=True)
@click.option("--alpha", type=click.FloatRange(0.0), default=0.0, show_default=True)
@click.option(
    "--min-examples", type=click.IntRange(1), default=1, show_default=True, help="k: at most so many: a leaf."
)
@click.option("--max-depth", type=click.IntRange(0), default=10, show_default=True, help="h")
@click.option("--examples", type=click.IntRange(1), help="Take only so many.")
@_repeats
def dynamic(
    data: tuple[str, ...],
    folder: Path | None,
    positive: str | None,
    updates: tuple[str, ...],
    epsilons: list[float],
    betas: list[float] | None,
    exact: bool,
    max_work: int | None,
    latency: bool,
    last: int | None,
    times: int,
    criterion: str,
    alpha: float,
    min_examples: int,
    max_depth: int,
    examples: int | None,
    repeats: int,
) -> None:
    """Keep a tree up to date under inserts and deletes, by each policy: time, accuracy, F1, rebuilds, memory."""
    tables = [_table_of(name, folder, examples, positive) for name in data]
    models = updates or ("incremental", "window:1000", "random:0.5")
    with _naming("--updates"):
        for model in models:
            plan(1, model)
    options = {"criterion": criterion, "alpha": alpha, "min_examples": min_examples, "max_depth": max_depth}
    policies: list[dict[str, Any]] = [{"guarantee": "exact"}] if exact else []
    policies += [{"beta": beta} for beta in betas or ()] + [{"epsilon": epsilon} for epsilon in epsilons]
    if max_work is not None:
        policies += [{"epsilon": epsilon, "max_work": max_work} for epsilon in epsilons]
    if last is not None and (exact or betas):
        raise click.UsageError("expected --epsilons alone with --last, got --exact or --betas; leave these out")

    def lines(progress: Progress) -> Iterator[Row]:
        for table in tables:
            yield from bench_dynamic(table, models, policies, options, repeats, progress, latency, times, last)

    _print(lines)


@bench.command()
@click.option("--data", required=True, help="A recorded set, SEA_g and the like, or led:noise=10.")
@click.option("--folder", type=_FOLDER, help="Where the recorded sets are.")
@click.option("--trees", type=click.IntRange(1, 1000), default=10, show_default=True)
@click.option("--baggings", default="none,poisson:1,poisson:6", show_default=True, help="Or as in '3 of 10'.")
@click.option("--subspaces", default="1,0.6", show_default=True, help="Shares of the features, or 'sqrt of 54'.")
@click.option(
    "--window", type=click.IntRange(1), default=1000, show_default=True, help="Examples; of the one tree, too."
)
@click.option("--epsilon", type=click.FloatRange(0.0), default=0.1, show_default=True)
@click.option("--exact", is_flag=True, help="Exact trees, without an epsilon.")
@click.option("--latency", is_flag=True, help="Single deletes and questions, too: median, 99 % and longest.")
@click.option("--criterion", type=click.Choice(["entropy", "gini"]), default="gini", show_default=True)
@click.option("--max-depth", type=click.IntRange(0), help="h; no bound unless said.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--examples", type=click.IntRange(1), help="Take only so many.")
@click.option("--growing", is_flag=True, help="Forests that grow and replace what drifts, too.")
@click.option("--inherit", is_flag=True, help="In these, new leaves begin with what their parents know.")
@click.option(
    "--threads", type=_Listed(), default="1", show_default=True, help="Each forest with so many, as in 1,2."
)
@click.option("--moa", "with_moa", is_flag=True, help="Beside MOA's adaptive random forest.")
@click.option("--jar", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="MOA's.")
@click.option("--river", "beside", is_flag=True, help="Beside river's adaptive random forest.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.0, min_open=True),
    default=300.0,
    show_default=True,
    help="River stops after so many (of CPU); ours then get the same examples.",
)
@_repeats
def forests(
    data: str,
    folder: Path | None,
    trees: int,
    baggings: str,
    subspaces: str,
    window: int,
    epsilon: float,
    exact: bool,
    latency: bool,
    criterion: str,
    max_depth: int | None,
    seed: int,
    examples: int | None,
    growing: bool,
    inherit: bool,
    threads: list[str],
    with_moa: bool,
    jar: Path | None,
    beside: bool,
    seconds: float,
    repeats: int,
) -> None:
    """Forests of trees that forget, or grow, beside one tree that forgets: accuracy, speed, memory."""
    peer = None
    try:
        theirs = find_moa(jar) if with_moa else None
    except MoaUnavailable as error:
        raise click.ClickException(str(error)) from error
    if beside:
        with _peer("bench forests --river measures beside river", "river"):
            peer = river_forest()
    with _naming("--data"):
        table = table_of(data, folder, examples)
    bagged = baggings.split(",")
    with _naming("--baggings"):
        for each in bagged:
            draws(trees, seed, 1.0, each)
    shares = [_share(each) for each in subspaces.split(",")]
    with _naming("--subspaces"):
        for share in shares:
            draws(trees, seed, share, "none")
    options: dict[str, Any] = {"window": window, "criterion": criterion}
    options |= {"guarantee": "exact"} if exact else {"epsilon": epsilon}
    if max_depth is not None:
        options["max_depth"] = max_depth
    with _naming("--threads"):
        counts = [Crew(int(each)).threads for each in threads]
    grown = {"criterion": criterion, "inherit": inherit} if growing else None
    terms = ForestTerms(trees, bagged, shares, options, seed, seconds, repeats, latency, grown, counts)
    _print(lambda progress: bench_forests(table, terms, peer, progress, theirs))


def _share(text: str) -> float | str:
    """Return a share of the features, or what is none as it is: to say so is for `draws`."""
    try:
        return float(text)
    except ValueError:
        return text


@bench.command()
@click.option("--sides", type=_Listed(list(SIDES)), default=",".join(SIDES), show_default=True)
@click.option("--tasks", type=_Listed(list(TASKS)), default=",".join(TASKS), show_default=True)
@click.option("--sizes", type=_Listed(), default="100,1000,10000,100000", show_default=True, help="Examples.")
@click.option("--ascending", is_flag=True, help="Examples come in the order of their values.")
@click.option("--river", "beside", is_flag=True, help="Beside river's splitters; slow, take small sizes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=10, show_default=True, help="Samples of each kind.")
def observers(
    sides: list[str], tasks: list[str], sizes: list[str], ascending: bool, beside: bool, seed: int, repeats: int
) -> None:
    """Observe one numeric feature for regression: merit, split point, elements, time beside E-BST's."""
    counts = [int(size) for size in sizes]
    if min(counts) < 2:
        raise click.BadParameter("expected at least 2 examples", param_hint="--sizes")
    chosen = {name: SIDES[name] for name in dict.fromkeys([BASE, *sides])}
    with _peer("--river measures beside river", "river"):
        chosen |= river_sides() if beside else {}
    _print(lambda progress: bench_observers(chosen, tasks, counts, repeats, seed, progress, ascending))


@bench.command()
@click.option(
    "--streams",
    type=_Listed([*STREAMS, *RECORDED]),
    default=",".join(STREAMS),
    show_default=True,
    help=f"Generated, or recorded: {', '.join(RECORDED)}.",
)
@click.option("--folder", type=_FOLDER, help="Where the recorded sets are.")
@click.option(
    "--sides",
    type=_Listed([*REGRESSION_SIDES, *FORGETTING]),
    default=",".join(REGRESSION_SIDES),
    show_default=True,
    help=f"Observers, or trees that forget: {', '.join(FORGETTING)}.",
)
@click.option("--examples", type=click.IntRange(2), default=50_000, show_default=True)
@_growth
@click.option("--river", "beside", is_flag=True, help="Beside river's Hoeffding trees, which run once.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@_repeats
def regression(
    streams: list[str],
    folder: Path | None,
    sides: list[str],
    examples: int,
    grace_period: int,
    split_confidence: float,
    tie_threshold: float,
    beside: bool,
    seed: int,
    repeats: int,
) -> None:
    """Grow a regression tree over each observer: errors, leaves, elements, time, memory."""
    terms = RegressionTerms(grace_period, split_confidence, tie_threshold, repeats)
    if folder is None and (named := [name for name in streams if name in RECORDED]):
        raise click.UsageError(f"expected --folder, where the recorded sets are, for {named[0]}, got none")
    try:
        made = [
            recorded(name, folder, examples) if folder and name in RECORDED else STREAMS[name](examples, seed)
            for name in streams
        ]
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if beside:
        with _peer("--river measures beside river", "river"):
            river_trees(terms)
    _print(lambda progress: bench_regression(made, sides, terms, river_trees if beside else None, progress))


@bench.command()
@click.option("--data", type=_FOLDER, required=True, help="Folder with the recorded sets.")
@click.option("--sets", type=_Listed(list(SETS)), default=",".join(PEER_SETS), show_default=True)
@click.option("--policies", type=_Listed(list(POLICIES)), default="periodic,exact", show_default=True)
@click.option(
    "--predict", type=_Listed(list(_PREDICT)), default="majority,adaptive,adaptive-present", show_default=True
)
@_growth
@click.option("--examples", type=click.IntRange(1), help="Take only so many.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.0, min_open=True),
    default=60.0,
    show_default=True,
    help="River stops after so many (of CPU) on an input; ours then get the same examples.",
)
@click.option("--peer-repeats", type=click.IntRange(1), default=1, show_default=True, help="Rounds of river.")
@_repeats
def peers(
    data: Path,
    sets: list[str],
    policies: list[str],
    predict: list[str],
    grace_period: int,
    split_confidence: float,
    tie_threshold: float,
    examples: int | None,
    seconds: float,
    peer_repeats: int,
    repeats: int,
) -> None:
    """Grow trees beside river's Hoeffding trees, on the same examples: examples per second, accuracy, leaves."""
    with _peer("bench peers measures beside river", "river"):
        peer = river()
    with _naming("--data"):
        tables = [table_of(name, data, examples) for name in sets]
    predictions = [_PREDICT[each] for each in predict]
    terms = Terms(
        policies, predictions, grace_period, split_confidence, tie_threshold, seconds, repeats, peer_repeats
    )

    def lines(progress: Progress) -> Iterator[Row]:
        for table in tables:
            yield from bench_peers(table, peer, terms, progress)

    _print(lines)


@bench.command()
@click.option("--data", default="random:0.001,random:0.01,random:0.1,single:16000", show_default=True)
@click.option("--folder", type=_FOLDER, help="Folder with the recorded sets.")
@click.option("--criterion", type=click.Choice(["gini", "entropy"]), default="gini", show_default=True)
@click.option("--depths", default="1,10,none", show_default=True, help="none: no bound.")
@click.option(
    "--ways",
    type=_Listed(list(WAYS)),
    default="ordered,map,search,either",
    show_default=True,
    help="And dense: columns are written out with all their zeros, and sorted.",
)
@click.option("--sklearn", "beside", is_flag=True, help="Beside scikit-learn's DecisionTreeClassifier.")
@click.option(
    "--dense-bytes",
    type=click.IntRange(0),
    default=1 << 28,
    show_default=True,
    help="The largest matrix from which scikit-learn's dense splitter builds as well.",
)
@click.option("--examples", type=click.IntRange(2), help="Take only so many of recorded sets.")
@_repeats
def splitter(
    data: str,
    folder: Path | None,
    criterion: str,
    depths: str,
    ways: list[str],
    beside: bool,
    dense_bytes: int,
    examples: int | None,
    repeats: int,
) -> None:
    """Build the greedy tree of a batch by each way of paper 003: seconds and nodes, by depth."""
    peer = None
    if beside:
        with _peer("bench splitter --sklearn measures beside scikit-learn", "sklearn", "scipy"):
            import sklearn.tree  # noqa: F401
        peer = scikit_learn
    with _naming("--depths"):
        bounds = [None if each == "none" else _depth(each) for each in depths.split(",")]
    with _naming("--data"):
        tables = [table_for(name, folder, examples) for name in data.split(",")]
    terms = SplitterTerms(criterion, bounds, ways, dense_bytes, repeats, _TIME_LIMIT)

    def lines(progress: Progress) -> Iterator[Row]:
        for table in tables:
            yield from bench_splitter(table, terms, peer, progress)

    _print(lines)


@bench.command()
@click.option("--data", default="random:0.001,random:0.01,random:0.1,single:16000", show_default=True)
@click.option("--folder", type=_FOLDER, help="Folder with the recorded sets.")
@click.option("--depths", default="1,10,none", show_default=True, help="none: no bound.")
@click.option("--sklearn", "beside", is_flag=True, help="Beside scikit-learn's DecisionTreeRegressor.")
@click.option("--examples", type=click.IntRange(2), help="Take only so many of recorded sets.")
@_repeats
def regressor(
    data: str, folder: Path | None, depths: str, beside: bool, examples: int | None, repeats: int
) -> None:
    """Build the greedy tree of a batch whose labels are numbers: seconds, nodes and squared error, by depth."""
    peer = None
    if beside:
        with _peer("bench regressor --sklearn measures beside scikit-learn", "sklearn", "scipy"):
            import sklearn.tree  # noqa: F401
        peer = scikit_learn_regressor
    with _naming("--depths"):
        bounds = [None if each == "none" else _depth(each) for each in depths.split(",")]
    with _naming("--data"):
        tables = [table_for(name, folder, examples) for name in data.split(",")]

    def lines(progress: Progress) -> Iterator[Row]:
        for table in tables:
            yield from bench_regressor(table, bounds, repeats, _TIME_LIMIT, peer, progress)

    _print(lines)


def _depth(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"expected whole numbers from 1, or none, got {text!r}")
    return int(text)


@bench.command()
@click.option("--data", multiple=True, default=MOA_SETS, show_default=True, help="As of `bench trees`.")
@click.option("--folder", type=_FOLDER, help="Where the recorded sets are.")
@click.option("--trees", type=_Listed(list(MOA_TREES)), default=",".join(MOA_TREES), show_default=True)
@click.option(
    "--predict",
    type=click.Choice([name for name, each in _PREDICT.items() if each in MOA_PREDICTIONS]),
    default="adaptive",
    show_default=True,
)
@_growth
@click.option("--check-every", type=click.IntRange(1), default=200, show_default=True, help="mu, of EFDT.")
@click.option("--examples", type=click.IntRange(1), help="Take only so many.")
@click.option(
    "--jar", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="MOA's, without capymoa."
)
def moa(
    data: tuple[str, ...],
    folder: Path | None,
    trees: list[str],
    predict: str,
    grace_period: int,
    split_confidence: float,
    tie_threshold: float,
    check_every: int,
    examples: int | None,
    jar: Path | None,
) -> None:
    """Grow trees beside MOA's Hoeffding trees, on the same examples: accuracy, leaves, time. Needs Java."""
    with _naming("--data"):
        tables = [table_of(name, folder, examples) for name in data]
    terms = MoaTerms(trees, _PREDICT[predict], grace_period, check_every, split_confidence, tie_threshold)
    peer = None
    try:
        peer = find_moa(jar)
    except MoaUnavailable as error:
        click.echo(f"MOA is skipped: {error}", err=True)

    def lines(progress: Progress) -> Iterator[Row]:
        for table in tables:
            yield from bench_moa(table, peer, terms, progress)

    _print(lines)


@bench.command()
@click.option("--data", type=_FOLDER, required=True, help="Folder with the recorded sets.")
@click.option("--sets", type=_Listed(list(SETS)), default=",".join(ESTIMATOR_SETS), show_default=True)
@click.option("--predict", type=_Listed(list(_PREDICT)), default="adaptive-present,majority", show_default=True)
@_growth
@click.option("--examples", type=click.IntRange(1), help="Take only so many.")
@click.option("--unlearned", type=click.IntRange(1), default=1000, show_default=True, help="Examples unlearned.")
@_repeats
def estimators(
    data: Path,
    sets: list[str],
    predict: list[str],
    grace_period: int,
    split_confidence: float,
    tie_threshold: float,
    examples: int | None,
    unlearned: int,
    repeats: int,
) -> None:
    """Learn, predict and unlearn one example at a time beside river; fit rows beside the pool that learns them."""
    with _peer("bench estimators measures beside river and with scikit-learn", "river", "sklearn", "scipy"):
        beside = estimator_peers()
    with _naming("--data"):
        tables = [table_of(name, data, examples) for name in sets]
    terms = EstimatorTerms(
        [_PREDICT[each] for each in predict], grace_period, split_confidence, tie_threshold, unlearned, repeats
    )

    def lines(progress: Progress) -> Iterator[Row]:
        for table in tables:
            yield from bench_estimators(table, beside, terms, progress)

    _print(lines)


@bench.command()
@click.option(
    "--out",
    type=_FILE,
    default="tests/benchmarks/RESULTS.md",
    show_default=True,
    help="The page; plots go beside it.",
)
@click.option("--data", type=_FOLDER, help="Folder with the recorded sets as .npz; those that are there are used.")
@click.option("--anchor", type=_PROGRAM, help="Another program to measure beside, called with: updent FILE 0.1")
@click.option("--date", help="What the page gives as its date; today unless said.")
@click.option("--quick", is_flag=True, help="Small sizes, to see that it works.")
@_repeats
def report(out: Path, data: Path | None, anchor: Path | None, date: str | None, quick: bool, repeats: int) -> None:
    """Run every experiment and write a page of tables and plots. About half an hour with all sets."""
    try:
        from worker.bench import report as made
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        fail("bench report draws with matplotlib, which is not there; pip install 'anabranch[bench]' brings it")
    from worker.bench.anchor import check
    from worker.bench.experiments import FULL, QUICK, Scope, recorded

    with _naming("--data"):
        recorded(data)
    with _naming("--anchor"):
        if anchor is not None:
            if data is None:
                raise ValueError("expected --data as well: the program runs on recorded sets")
            check(anchor)
    rows = []

    def lines(progress: Progress) -> Iterator[Row]:
        scope = Scope(QUICK if quick else FULL, repeats, _TIME_LIMIT, data, anchor, progress)
        for row in made.measure(scope):
            rows.append(row)
            yield row

    _print(lines)
    # Without the folders, which are of this machine alone.
    given = {"--data": data and data.resolve().name, "--anchor": anchor and anchor.name, "--repeats": repeats}
    said = [f"{option} {value}" for option, value in given.items() if value is not None]
    command = " ".join(["anabranch bench report", *(["--quick"] if quick else []), *said])
    made.write(out, rows, made.facts(command, date or datetime.date.today().isoformat()))
    click.echo(f"wrote {out}", err=True)


@bench.command()
@click.option("--labels", type=_Listed(), default="2,4,8", show_default=True, help="How many, K.")
@click.option("--examples", type=click.IntRange(1), default=500, show_default=True)
@click.option("--features", type=click.IntRange(1), default=5_000, show_default=True)
@click.option("--window", type=click.IntRange(1), default=250, show_default=True, help="Older ones are deleted.")
@click.option("--data", "sets", type=_Listed(list(SETS)), help="Recorded sets instead, such as poker,kdd99.")
@click.option("--folder", type=_FOLDER, help="Folder with the recorded sets.")
@_repeats
def labels(
    labels: list[str],
    examples: int,
    features: int,
    window: int,
    sets: list[str] | None,
    folder: Path | None,
    repeats: int,
) -> None:
    """Keep the best split of K labels, categories and numbers: time beside the index of two labels, memory."""
    if sets:
        if folder is None:
            raise click.BadParameter("expected a folder with the recorded sets", param_hint="--folder")
        with _naming("--folder"):
            _print(lambda progress: bench_sets(sets, folder, examples, window, repeats, progress))
        return
    numbers = [int(each) for each in labels]
    if min(numbers) < 2:
        raise click.BadParameter("expected at least 2 labels", param_hint="--labels")
    _print(lambda progress: bench_labels(numbers, examples, features, window, repeats, progress))


@bench.command()
@click.option("--paper", "papers", type=_Listed(list(PAPERS)), default=",".join(PAPERS), show_default=True)
@click.option("--folder", type=_FOLDER, help="Folder with the recorded sets.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="papers",
    show_default=True,
    help="The folder of the report; commands whose results are in it are not run again.",
)
@click.option("--full", is_flag=True, help="As in the papers, in hours; else in minutes.")
def papers(papers: list[str], folder: Path | None, out: Path, full: bool) -> None:
    """Make the tables and figures of the papers, as one report with plots."""
    _print(lambda progress: bench_papers(papers, folder, out, full=full, progress=progress))
    click.echo(f"wrote {out / 'REPORT.md'}", err=True)


@contextmanager
def _peer(what: str, *names: str) -> Iterator[None]:
    """End with a message where a peer is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or (name := error.name.partition(".")[0]) not in names:
            raise
        missing = "which" if len(names) == 1 else f"and {name}"
        fail(f"{what}, {missing} is not there; pip install 'anabranch[peers]' brings it")


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Turn a ValueError into a message about an option."""
    try:
        yield
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _print(lines: Callable[[Progress], Iterator[Row]]) -> None:
    with _progress() as progress:
        for line in lines(progress):
            click.echo(json.dumps(line))


@contextmanager
def _progress() -> Iterator[Progress]:
    """Yield a function that shows what is running, where a person watches."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: None
        return
    with console.status("") as status:
        yield status.update
