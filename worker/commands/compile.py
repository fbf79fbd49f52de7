"""`anabranch compile`: compile the kernels ahead, so that a first worker starts at once."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_CODEC = "codec"
_TREE = "tree-"
_DYNAMIC = "dynamic-"
_REGRESSION = "regression-"


@click.command("compile")
@click.argument("kernels", nargs=-1)
def compile_kernels(kernels: tuple[str, ...]) -> None:
    """Compile KERNELS, or all, into the cache (XDG_CACHE_HOME, else ~/.cache): some minutes, once for a version.

    A kernel is called `codec`, by its finder and criterion as in `exact-entropy`, by a tree's policy and criterion
    as in `tree-imac-gini`, `dynamic-entropy` and `dynamic-gini` for trees that forget, or by a regression tree's
    observer as in `regression-qo`. Without this command it is compiled when it is first used; images and test
    machines do it ahead.
    """
    known = _kernels()
    if unknown := [name for name in kernels if name not in known]:
        raise click.BadParameter(f"expected some of {', '.join(known)}, got {', '.join(unknown)}")
    jobs = list(kernels or known)
    columns = (TextColumn("compiling kernels"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with (
        Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        ProcessPoolExecutor(min(len(jobs), os.cpu_count() or 1), mp_context=get_context("spawn")) as pool,
    ):
        task = bar.add_task("compiling", total=len(jobs))
        for done in as_completed([pool.submit(_compile, job) for job in jobs]):
            done.result()
            bar.advance(task)
    click.echo(f"{len(jobs)} kernels are compiled")


def _kernels() -> list[str]:
    from algorithms.criteria import CRITERIA
    from algorithms.finders import FINDERS
    from algorithms.regression.observers import OBSERVERS
    from algorithms.trees.policies import POLICIES

    served = {name: [finder.criterion] if finder.criterion else CRITERIA for name, finder in FINDERS.items()}
    trees = {f"{_TREE}{policy}": ("entropy", "gini") for policy in POLICIES}
    combined = [f"{name}-{each}" for name, criteria in (served | trees).items() for each in criteria]
    regression = {each.kind: f"{_REGRESSION}{name}" for name, each in reversed(OBSERVERS.items())}  # one a kind
    return [_CODEC, *combined, f"{_DYNAMIC}entropy", f"{_DYNAMIC}gini", *sorted(regression.values())]


def _compile(kernel: str) -> None:
    """Use a kernel once."""
    if kernel == _CODEC:
        from worker.codec import Bounds, decode_batch

        decode_batch([b"\x82\xa1x\x91\x01\xa1y\x01"], np.ones(1, np.int64), Bounds(), [b"key"])
        return
    if kernel.startswith(_TREE):
        from algorithms.trees.pool import TreePool

        _judge()
        policy, _, criterion = kernel.removeprefix(_TREE).partition("-")
        TreePool(policy=policy, criterion=criterion).learn([1], 0)
        return
    if kernel.startswith(_DYNAMIC):
        from algorithms.dynamic.pool import DynamicPool

        _judge()
        DynamicPool(criterion=kernel.removeprefix(_DYNAMIC)).insert([1], 0)
        return
    if kernel.startswith(_REGRESSION):
        from algorithms.regression.pool import RegressionPool

        RegressionPool(observer=kernel.removeprefix(_REGRESSION)).learn([1], 0.0)
        return
    from algorithms.splits import SplitPool

    finder, _, criterion = kernel.partition("-")
    pool = SplitPool(finder=finder, criterion=criterion)
    pool.insert([1], 0)
    pool.best()


def _judge() -> None:
    """Use what judges the guesses of all kinds of trees once."""
    from algorithms.trees.evaluation import Prequential

    Prequential(2, 1).add(np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1, np.int64), np.zeros(1))
