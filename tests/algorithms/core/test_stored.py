"""The names of arrays in checkpoints: each of them is written down here, as checkpoints outlive the code."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from algorithms.core.arrays import Int64s
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.core.stored import flattened, rebuilt, stored
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.pool import DynamicPool
from algorithms.forests.growing import GrowingForestPool
from algorithms.forests.pool import ForestPool
from algorithms.mixed.pool import MixedSplitPool
from algorithms.regression.baselines import Comparison
from algorithms.regression.evaluation import Prequential as RegressionPrequential
from algorithms.regression.observer import Observer
from algorithms.regression.observers import OBSERVERS
from algorithms.regression.pool import RegressionPool
from algorithms.splits.finders import FINDERS
from algorithms.splits.pool import SplitPool
from algorithms.splits.shards import ShardedPool
from algorithms.trees.drift import DriftWatch
from algorithms.trees.evaluation import Prequential
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import TreePool
from worker.models.keys import Keys

_NAMES = "start size references text orphans counts"
_LEDGER = ["ledger: table rows features heads counts"]
_SPLITS = ["heads alive", "slots: table rows chain heads counts"]
_EXACT = "boxes lists state others stack bounds counts"
_BINS = "ladder rules first bins points groups table keys nodes lists pending counts"
_FINDERS = {"exact": _EXACT, "updent": _BINS, "updgini": _BINS, "baseent": "nothing", "basegini": "nothing"}
_NODES = ["nodes.rows: table cells used", "nodes: links numbers prior"]
_TREES = [
    "trees alive",
    *_NODES,
    "features.rows: table cells used",
    "features: about gain",
    "features.values: table cells used",
    "features.gaussians: moments following used",
    "features.quantised: mean weight radius about below",
]
_IMAC = "set looked size row score threshold branches used"
_POLICIES = {
    "periodic": ["policy: tried"],
    "osm": ["policy: next"],
    "imac": [f"policy: {_IMAC}"],
    "efdt": ["policy: tried"],
    "efdt-imac": [f"policy.leaves: {_IMAC}", "policy: tried"],
    "hat-imac": [f"policy.leaves: {_IMAC}", "policy.windows: sums buckets ones", "policy: counts"],
    "hat": ["policy: tried", "policy.windows: sums buckets ones", "policy: counts"],
    "exact": ["policy.slots: table rows chain heads counts", f"policy.finder: {_EXACT}", "policy: pair"],
}
_ELEMENTS = ["elements: key links weight numbers used heads radius"]
_DYNAMIC = [
    "trees alive",
    "nodes: links threshold weights used",
    *_LEDGER,
    "values chain",
    "words: table cells used",
    f"names: {_NAMES}",
]
_REGRESSION = [
    "trees alive",
    *_NODES,
    "targets: numbers tried",
    "features.rows: table cells used",
    "features: moments kind",
    *_ELEMENTS,
    f"names: {_NAMES}",
]


def _in_parts(parts: int, groups: list[str]) -> list[str]:
    """Return the names of the trees of a forest, whose names of features are the forest's."""
    return [
        f"trees.{part}.{group}" if ":" in group else f"trees.{part}: {group}"
        for part in range(parts)
        for group in [*groups, "names: references orphans counts"]
    ]


# Of each kind of state how it is made, and the names of its arrays in the order in which they are written.
KINDS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    **{
        f"split {finder}": (
            partial(SplitPool, finder=finder, criterion=FINDERS[finder].criterion or "entropy"),
            [*_SPLITS, f"finder: {names}", *_LEDGER],
        )
        for finder, names in _FINDERS.items()
    },
    "split, names": (
        partial(SplitPool, names=True),
        [*_SPLITS, f"finder: {_EXACT}", *_LEDGER, f"names: {_NAMES}"],
    ),
    "split, shards": (
        partial(ShardedPool, shards=1),
        ["last", "0: heads alive", *(f"0.{names}" for names in (_SPLITS[1], f"finder: {_EXACT}", *_LEDGER))],
    ),
    **{
        f"tree {policy}": (partial(TreePool, policy=policy), [*_TREES, *names])
        for policy, names in _POLICIES.items()
    },
    "tree, names": (partial(TreePool, names=True), [*_TREES, "policy: tried", f"names: {_NAMES}"]),
    **{
        f"dynamic tree, {kind.name.lower()}": (partial(DynamicPool, default=kind, names=True), _DYNAMIC)
        for kind in (Kind.BINARY, Kind.NUMERIC)
    },
    "dynamic tree, numbers": (partial(DynamicNumberPool, Scale(0.0, 1.0, 1.0), names=True), _DYNAMIC),
    "dynamic tree, in parts": (
        partial(DynamicPool, max_work=1 << 15, names=True),
        [*_DYNAMIC, "aside: heads counted", "aside.seen: table cells used"],
    ),
    "dynamic tree of numbers, in parts": (
        partial(DynamicPool, max_work=1 << 15, default=Kind.NUMERIC, names=True),
        [
            *_DYNAMIC,
            "aside: heads counted",
            "aside.seen: table cells used",
            "aside.values: cells used keys rows taken longest",
        ],
    ),
    **{
        f"mixed splits, {kind.name.lower()}": (
            partial(MixedSplitPool, default=kind, names=True),
            [
                "heads numbers totals alive",
                "questions: table rows links floor used value weight following blocks",
                *_LEDGER,
                "values",
                f"names: {_NAMES}",
            ],
        )
        for kind in (Kind.BINARY, Kind.NUMERIC)
    },
    **{
        f"dynamic tree{what}, exact": (
            partial(make, guarantee="exact", names=True),
            [
                *_DYNAMIC,
                "slack: floor seen old lightest beside counts",
                "slack.rivals: heads cells used",
                "slack.columns: features floors sizes lost extremes",
                "slack.bands: of heads edges least floors sums before gone whole used",
            ],
        )
        for what, make in (("", DynamicPool), (", numbers", partial(DynamicNumberPool, Scale(0.0, 1.0, 1.0))))
    },
    "forest": (
        partial(ForestPool, trees=20, names=True),
        ["keys alive", *_LEDGER, f"names: {_NAMES}", *_in_parts(4, _DYNAMIC[:-1])],
    ),
    "growing forest": (
        partial(GrowingForestPool, trees=9, names=True),
        [
            "keys places",
            "windows: sums buckets ones",
            "alive",
            f"names: {_NAMES}",
            *_in_parts(2, [*_TREES, "policy: tried"]),
        ],
    ),
    **{
        f"regression tree, {observer}": (partial(RegressionPool, observer=observer, names=True), _REGRESSION)
        for observer in OBSERVERS
    },
    "regression tree, linear leaves": (
        partial(RegressionPool, predict="linear", names=True),
        [*_REGRESSION[:-1], "models: leaves features", _REGRESSION[-1]],
    ),
    "regression tree, intervals": (
        partial(RegressionPool, interval=0.9, names=True),
        [*_REGRESSION[:-1], "intervals: leaves trees", _REGRESSION[-1]],
    ),
    "observer": (partial(Observer, "qo"), ["counts moments", *_ELEMENTS]),
    "evaluation": (
        partial(Prequential, 2, 5),
        ["confusion windowed loss compared labels window marks size examples"],
    ),
    "drift": (DriftWatch, ["drift.window: sums buckets ones", "drift: counts"]),
    "evaluation of regression": (
        partial(RegressionPrequential, 5),
        ["weight sums window weights size examples"],
    ),
    "evaluation of regression beside baselines": (
        partial(Comparison, 5),
        [
            "labels: weight numbers",
            *(f"{side}: weight sums window weights size examples" for side in ("model", "mean", "no_change")),
        ],
    ),
    "keys": (Keys, [f"keys: {_NAMES}"]),
}


def spelled(groups: list[str]) -> list[str]:
    """Return the names that groups stand for: a common beginning, a colon, the ends."""
    return [f"{start}.{end}" if start else end for start, ends in map(_parted, groups) for end in ends.split()]


def _parted(group: str) -> tuple[str, str]:
    start, colon, ends = group.partition(":")
    return (start, ends) if colon else ("", start)


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_of_arrays_are_these(kind: str) -> None:
    """No array has another name than these, and all are in their order."""
    make, names = KINDS[kind]
    assert list(make().arrays()) == spelled(names)


def test_no_kind_is_left_out() -> None:
    """Every finder, policy and observer has its names here."""
    assert set(_FINDERS) == set(FINDERS)
    assert set(_POLICIES) == set(POLICIES)


@stored("cells", "used")
class Before(NamedTuple):
    """A class of an earlier version."""

    cells: Int64s
    used: Int64s


@stored("cells", None, "used")
class After(NamedTuple):
    """The same class with its fields renamed, and one more that is not stored."""

    counts: Int64s
    memo: int
    ends: Int64s


@stored("inner", "alive")
class Whole(NamedTuple):
    """A class around one of them."""

    part: Before | After
    alive: Int64s


def test_a_renamed_field_keeps_its_name_in_checkpoints() -> None:
    """Arrays stored before a field was renamed are restored to it, and stored under the same names again."""
    one, two, three = np.arange(3), np.arange(2), np.arange(1)
    arrays = flattened(Whole(Before(one, two), three), "pool")
    assert list(arrays) == ["pool.inner.cells", "pool.inner.used", "pool.alive"]
    empty: Int64s = np.zeros(0, np.int64)
    restored = rebuilt(Whole(After(empty, 7, empty), empty), arrays, "pool")
    assert restored == Whole(After(one, 7, two), three)
    again = flattened(restored, "pool")
    assert list(again) == list(arrays)
    assert all(again[name] is array for name, array in arrays.items())


@pytest.mark.parametrize(
    "names", [("cells",), ("cells", "cells"), ("cells", ""), ("cells", "a.b"), ("a", "b", "c")]
)
def test_names_that_do_not_fit_are_refused(names: tuple[str, ...]) -> None:
    """A class is not made with a name too few or too many, twice, empty, or with a dot."""

    class Rows(NamedTuple):
        cells: Int64s
        used: Int64s

    with pytest.raises(TypeError, match=r"expected .* Rows, got \("):
        stored(*names)(Rows)


def test_what_has_no_names_is_not_stored() -> None:
    """A class that does not say what its arrays are called cannot be stored by accident."""

    class Unnamed(NamedTuple):
        cells: Int64s

    with pytest.raises(TypeError, match="expected a class with @stored names for its arrays, got Unnamed"):
        flattened(Unnamed(np.zeros(1, np.int64)))
