"""Sides of a comparison, and how they are measured: in turns, in the same rounds."""

from __future__ import annotations

import math
import platform
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from algorithms.trees.evaluation import Measures
from worker.bench.updates import Workload

Progress: TypeAlias = Callable[[str], None]  # told what is about to run
Row: TypeAlias = dict[str, Any]  # a result, ready for JSON


class Case(NamedTuple):
    """One side of a comparison: who does the work, and what takes the time."""

    finder: str  # or a floor
    criterion: str | None
    work: Workload
    seconds: Callable[[], float]  # do all of it anew and return how long it took
    options: Mapping[str, Any] = MappingProxyType({})  # of the finder's pool; they are in the result


def measured(
    cases: Sequence[Case],
    bases: Sequence[str],
    repeats: int,
    progress: Progress,
    time_limit: float = math.inf,
) -> Iterator[Row]:
    """Yield one line for each case.

    Parameters
    ----------
    cases : sequence of Case
        In each round every one of them runs once; figures are medians over the rounds.
    bases : sequence of str
        A line says how many times the time of these finders, on the same workload, its case took.
    repeats : int
        Rounds.
    progress : callable
        Called with what is about to run.
    time_limit : float
        Seconds; a case that has taken more in all is not run again.
    """
    taken: list[list[float]] = [[] for _ in cases]
    for repeat in range(repeats):
        for case, runs in zip(cases, taken, strict=True):
            if sum(runs) <= time_limit:
                progress(f"{case.work.data}, {case.work.updates}: {case.finder}, round {repeat + 1} of {repeats}")
                runs.append(case.seconds())
    base = {(id(case.work), case.finder): runs for case, runs in zip(cases, taken, strict=True)}
    for case, runs in zip(cases, taken, strict=True):
        median = statistics.median(runs)
        row: Row = {
            "data": case.work.data,
            "updates": case.work.updates,
            "finder": case.finder,
            "criterion": case.criterion,
            "examples": case.work.examples,
            "events": case.work.events,
            "features": case.work.features,
            "ones": case.work.ones,
            "seconds": significant(median),
            "us_per_example": significant(median / case.work.examples * 1e6),
            "ns_per_one": significant(median / max(case.work.ones, 1) * 1e9),
            "repeats": len(runs),
            **case.options,
        }
        for name in bases:
            row["to_" + name.replace("-", "_")] = significant(_ratio(runs, base[id(case.work), name]))
        yield row


def _ratio(taken: list[float], base: list[float]) -> float:
    """Return the median of the ratios round by round, which cancels the machine's drift."""
    return statistics.median(mine / other for mine, other in zip(taken, base, strict=False))


def significant(figure: float) -> float:
    """Return a figure with the four digits that a measurement can claim."""
    return float(f"{figure:.4g}")


def against_baselines(measures: Measures) -> Row:
    """Return the accuracies that cost nothing and the kappas against them, None where there is none."""
    names = ("majority", "no_change", "kappa_m", "kappa_temporal")
    figures = {name: getattr(measures, name) for name in names}
    return {name: None if math.isnan(figure) else significant(figure) for name, figure in figures.items()}


def machine() -> str:
    """Return what the figures were measured on."""
    return f"{platform.machine()} {platform.system()} Python {platform.python_version()}"
