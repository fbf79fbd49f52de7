"""`anabranch compile`: compile the kernels ahead, so that a first worker starts at once."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from worker.views.fitting import Column, Sheet

_CODEC = "codec"
_LATE = "late-labels"
_TREE = "tree-"
_MIXED = "mixed"
_NUMBERS = "numbers"
_DYNAMIC = "dynamic"
_EXACT = "dynamic-exact"
_DYNAMIC_NUMBERS = "dynamic-number"
_EXACT_NUMBERS = "dynamic-number-exact"
_REGRESSION = "regression-"
_FOREST = "forest"
_GROWING = "forest-tree"
_CORES = os.cpu_count() or 1
_FEW_CORES = 4
_SPLITS = "exact"
_SAME = {_LATE: _CODEC, _FOREST: _EXACT, _GROWING: f"{_TREE}periodic", _NUMBERS: _SPLITS}


class Cost(NamedTuple):
    """What it takes to have a kernel."""

    name: str
    seconds: float  # of CPU: what compiling took, then or now
    is_kept: bool  # it was there before
    files: list[Path]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.stat().st_size for file in self.files)


@click.command("compile")
@click.argument("kernels", nargs=-1)
@click.option(
    "--list", "only_list", is_flag=True, help="Say which are kept, what they took, and how large; compile nothing."
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Copy them to this folder too: for a package or an image, which finds them there by ANABRANCH_KERNELS.",
)
def compile(kernels: tuple[str, ...], only_list: bool, into: Path | None) -> None:
    """Compile KERNELS, or all, where they are not kept yet: some minutes, once for a version.

    A kernel is called `codec`, by the finder of splits as in `exact` (`updent` serves `updgini` too, `baseent`
    `basegini`), `mixed` for splits of more labels and features, `numbers` for splits of labels that are numbers,
    by a tree's policy as in `tree-imac`, `dynamic` for trees that forget, `dynamic-exact` for those with a
    `guarantee` or a `beta` alone, `dynamic-number` and `dynamic-number-exact` for those of labels that are
    numbers, `forest` for what forests have beside `dynamic`, `forest-tree` for what forests of trees that grow
    have beside those trees, whatever their policy, or by a regression tree's observer as in `regression-qo`; each
    serves all criteria. Without it a kernel is compiled when it is first used; images and test machines do it
    ahead. They are kept in the folder that ANABRANCH_KERNELS names, else in XDG_CACHE_HOME, else in ~/.cache.
    """
    known = all_kernels()
    if unknown := [name for name in kernels if name not in known]:
        raise click.BadParameter(f"expected some of {', '.join(known)}, got {', '.join(unknown)}")
    costs = _costs(list(kernels or known), only_list)
    columns = [Column("kernel"), Column("CPU s", is_number=True), Column("kB", is_number=True), Column("")]
    rows = []
    for cost in sorted(costs, key=lambda cost: -cost.seconds):
        said = "kept" if cost.is_kept else "not kept" if only_list else "compiled"
        figures = [f"{cost.seconds:.1f}", f"{cost.size / 1000:,.0f}"] if cost.files else ["", ""]
        rows.append([cost.name, *figures, said])
    Console().print(Sheet(columns, rows))
    if into is not None:
        from algorithms.core.cache import copy

        copy([file for cost in costs for file in cost.files], into)


def _costs(kernels: list[str], only_list: bool) -> list[Cost]:
    columns = (TextColumn("compiling kernels"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    families = _families(kernels)
    with (
        Progress(*columns, console=console, disable=only_list or not console.is_terminal) as bar,
        # Other processes, so that what compiling takes of memory is given back.
        ProcessPoolExecutor(
            min(len(families), _CORES),
            mp_context=get_context("spawn"),
            initializer=_end_with,
            initargs=(os.getpid(),),
        ) as pool,
    ):
        task = bar.add_task("compiling", total=len(kernels))
        costs = []
        for done in as_completed([pool.submit(_family_costs, family, only_list) for family in families]):
            costs += done.result()
            bar.update(task, completed=len(costs))
        return costs


def _end_with(parent: int) -> None:
    """End this process once its parent is no more, which may have been killed: nobody else would."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _families(kernels: list[str]) -> list[list[str]]:
    """Return the kernels by what they have in common, which one process compiles once; large families first.

    That is nearly all of a forest's kernel beside that of its trees, and a third of a second policy's. Where there
    are cores enough others have a process each.
    """
    families: dict[str, list[str]] = {}
    for name in kernels:
        family = _SAME.get(name, name)
        if _CORES <= _FEW_CORES:
            family = family.partition("-")[0]
        families.setdefault(family, []).append(name)
    return sorted(families.values(), key=len, reverse=True)


def _family_costs(family: list[str], only_look: bool) -> list[Cost]:
    return [_cost(kernel, only_look) for kernel in family]


def _cost(kernel: str, only_look: bool) -> Cost:
    """Use a kernel once and return what that took."""
    from algorithms.core import cache

    cache.used.clear()
    is_kept = True
    try:
        with cache.kept_only():
            use(kernel)
    except cache.NotKeptError:
        is_kept = False
        if not only_look:
            use(kernel)
    return Cost(kernel, sum(map(cache.cost, cache.used)), is_kept, list(cache.used))


def all_kernels() -> list[str]:
    """Return the names of all kernels."""
    from algorithms.regression.observers import OBSERVERS
    from algorithms.splits.finders import FINDERS
    from algorithms.trees.policies import POLICIES

    # One for a kind of state, by the name that comes first.
    finders = {each.kind: name for name, each in reversed(FINDERS.items())}
    observers = {each.kind: f"{_REGRESSION}{name}" for name, each in reversed(OBSERVERS.items())}
    trees = [f"{_TREE}{policy}" for policy in POLICIES]
    dynamic = [_DYNAMIC, _EXACT, _DYNAMIC_NUMBERS, _EXACT_NUMBERS, _FOREST]
    others = [_MIXED, _NUMBERS, *trees, *dynamic, _GROWING, *sorted(observers.values())]
    return [_CODEC, _LATE, *sorted(finders.values()), *others]


def use(kernel: str) -> None:
    """Use a kernel once, and what is loaded ahead with it, for when something has grown."""
    from algorithms.core.jit import load_ahead

    _call(kernel)
    load_ahead()


def _call(kernel: str) -> None:
    if kernel == _CODEC:
        from worker.codec import Bounds, decode_batch

        decode_batch([b"\x82\xa1x\x91\x01\xa1y\x01"], np.ones(1, np.int64), Bounds(), [b"key"])
        # What is loaded ahead for any kind of model.
        import worker.models.dynamic
        import worker.models.dynamic_number
        import worker.models.forest
        import worker.models.growing_forest
        import worker.models.mixed_split
        import worker.models.number_split
        import worker.models.regression_tree
        import worker.models.split
        import worker.models.tree
        import worker.pipeline  # noqa: F401

        return
    if kernel == _LATE:
        from worker.codec import Bounds, decode_batch
        from worker.late.pending import PendingExamples
        from worker.log.port import Records, TopicPartition

        none = np.zeros(0, np.int64)
        events, _ = decode_batch([], none, Bounds(), [])
        store = PendingExamples(1, 1)
        store.resolve(Records(TopicPartition("any", 0), none, none, [], [], [], 0), events)
        store.limit(1, 2)
        return
    if kernel.startswith(_TREE):
        from algorithms.trees.pool import TreePool

        _evaluate()
        TreePool(policy=kernel.removeprefix(_TREE)).insert([1], 0)
        return
    if kernel == _MIXED:
        from algorithms.mixed.pool import MixedSplitPool

        mixed = MixedSplitPool(names=True)
        mixed.insert([b"a"], 0)
        mixed.best()
        return
    if kernel == _NUMBERS:
        from algorithms.core.scale import Scale
        from algorithms.splits.numbers import NumberSplitPool

        pool = NumberSplitPool(Scale(0.0, 1.0, 1.0), names=True)
        pool.insert([b"a"], 0.0)
        pool.best()
        pool.warm_up()
        return
    if kernel == _DYNAMIC:
        from algorithms.dynamic.pool import DynamicPool

        _evaluate()
        DynamicPool().insert([1], 0)
        return
    if kernel == _EXACT:
        from algorithms.dynamic.pool import DynamicPool

        _evaluate()
        grown = DynamicPool(guarantee="exact")
        for label in (0, 1):
            grown.insert([label], label)
        grown.tree()  # which waits for a look
        return
    if kernel in (_DYNAMIC_NUMBERS, _EXACT_NUMBERS):
        from algorithms.core.scale import Scale
        from algorithms.dynamic.numbers import DynamicNumberPool

        _evaluate_numbers()
        kept = DynamicNumberPool(Scale(0.0, 1.0, 1.0), guarantee="exact" if kernel == _EXACT_NUMBERS else None)
        for label in (0, 1):
            kept.insert([label], float(label))
        kept.tree()  # which waits for a look, where something is promised
        return
    if kernel == _FOREST:
        from algorithms.forests.pool import ForestPool

        _evaluate()
        forest = ForestPool(trees=1, guarantee="exact", names=True)
        for label in (0, 1):
            forest.insert([b"a"] * label, label)
        forest.trees()  # which wait for a look
        return
    if kernel == _GROWING:
        from algorithms.forests.growing import GrowingForestPool

        _evaluate()
        growing = GrowingForestPool(trees=1, names=True)
        growing.insert([b"a"], 0)
        growing.warm_up()
        return
    if kernel.startswith(_REGRESSION):
        from algorithms.regression.pool import RegressionPool

        _evaluate_numbers()
        numbers = RegressionPool(observer=kernel.removeprefix(_REGRESSION))
        numbers.insert([1], 0.0)
        numbers.warm_up()
        return
    from algorithms.splits.finders import FINDERS
    from algorithms.splits.pool import SplitPool

    splits = SplitPool(finder=kernel, criterion=FINDERS[kernel].criterion or "entropy", names=True)
    splits.insert([b"a"], 0)
    splits.best()
    splits.warm_up()


def _evaluate_numbers() -> None:
    """Use what evaluates the predictions of all trees of numbers once."""
    from algorithms.regression.baselines import Comparison
    from algorithms.regression.evaluation import evaluated

    Comparison(1).guess(np.zeros(1, np.int32), np.zeros(1), np.ones(1, np.int64))
    evaluated(np.zeros(1), np.zeros(1), np.ones(1, np.int64))


def _evaluate() -> None:
    """Use what evaluates the predictions of all kinds of trees once."""
    from algorithms.trees.drift import DriftWatch
    from algorithms.trees.evaluation import Prequential

    DriftWatch().add(np.zeros(1, np.bool_))
    Prequential(2, 1).add(np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1, np.int64), np.zeros(1))
