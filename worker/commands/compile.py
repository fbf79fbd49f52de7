"""`anabranch compile`: compile the kernels ahead, so that a first worker starts at once."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_CODEC = ("codec", "")


@click.command("compile")
def compile_kernels() -> None:
    """Compile every kernel into the cache (XDG_CACHE_HOME, else ~/.cache): about a minute, once for a version.

    Without it, a kernel is compiled when it is first used. Images and test machines do it ahead.
    """
    from algorithms.criteria import CRITERIA
    from algorithms.finders import FINDERS

    jobs = [_CODEC]
    for finder, made in FINDERS.items():
        jobs += [(finder, made.criterion)] if made.criterion else [(finder, criterion) for criterion in CRITERIA]
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


def _compile(job: tuple[str, str]) -> None:
    """Use a kernel once."""
    if job == _CODEC:
        from worker.codec import Bounds, decode_batch

        decode_batch([b"\x82\xa1x\x91\x01\xa1y\x01"], np.ones(1, np.int64), Bounds(), [b"key"])
        return
    from algorithms.splits import SplitPool

    pool = SplitPool(finder=job[0], criterion=job[1])
    pool.insert([1], 0)
    pool.best()
