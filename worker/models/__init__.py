"""The kinds of models. A new kind is one file with its settings and its model, and one line here or anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from worker.codec import Bounds
from worker.models.layouts import Arrays, Migration
from worker.models.port import Model, Outcome, Refusal, Result
from worker.settings.by_kind import kind_of
from worker.settings.models import (
    DynamicTreeSettings,
    ForestSettings,
    GrowingForestSettings,
    ModelSettings,
    RegressionTreeSettings,
    SplitSettings,
    TreeSettings,
)


class Kind(NamedTuple):
    """What a kind of model consists of."""

    settings: type[ModelSettings]
    model: Callable[[str, Any, Bounds], Model]  # makes an empty one: its name, its settings, bounds
    behaviour: int = 1  # raised with each change of code or of a default that changes what comes out
    migrations: tuple[Migration, ...] = ()  # from each layout of its arrays to the next, see layouts.py


KINDS: dict[str, Kind] = {}  # by what settings tell as `kind`, and as `of` where that is there


def register(
    settings: type[ModelSettings],
    model: Callable[[str, Any, Bounds], Model],
    behaviour: int = 1,
    migrations: Sequence[Migration] = (),
) -> None:
    """Make a kind of model known, before settings are read.

    Settings, `validate`, checkpoints, metrics, pages and the suites over all kinds have it from here.

    Parameters
    ----------
    settings : type
        A subclass of `ModelSettings` whose field `kind` is a `Literal` with the kind's name. With a field `of`,
        whose section has such a field, too, it is another kind: ``forest of tree``.
    model : callable
        Makes an empty model from its name, such settings and bounds; most often a class.
    behaviour : int
        The number of its behaviour, to be raised with each change of code or of a default that changes what comes
        out: models of another number begin anew, as if their settings had changed.
    migrations : sequence of callable
        From each layout of its arrays to the next: one more with each change of their names, types or meaning, so
        that states of all versions before are taken over. Each is given the arrays and the model's settings.

    Raises
    ------
    ValueError
        Where another kind has that name.
    TypeError
        Where the settings do not tell one name.
    """
    kind, name = Kind(settings, model, behaviour, tuple(migrations)), kind_of(settings)
    if KINDS.setdefault(name, kind) != kind:
        raise ValueError(
            f"expected a kind of a new name, got {name!r}, which is {KINDS[name].settings.__qualname__}; "
            f"give {settings.__qualname__} another 'kind'"
        )


def _imported(module: str, name: str) -> Callable[[str, Any, Bounds], Model]:
    """Return what makes models of a class that is imported with the first: who reads settings does without."""

    def make(*given: Any) -> Model:
        model: Model = getattr(import_module(f"worker.models.{module}"), name)(*given)
        return model

    return make


def _split(name: str, settings: SplitSettings, bounds: Bounds) -> Model:
    """Make a model of splits: two classes and binary features have an index of their own, as have numbers."""
    if settings.target == "number":
        made = ("number_split", "NumberSplitModel")
    else:
        made = ("mixed_split", "MixedSplitModel") if settings.is_mixed else ("split", "SplitModel")
    return _imported(*made)(name, settings, bounds)


def _dynamic_tree(name: str, settings: DynamicTreeSettings, bounds: Bounds) -> Model:
    """Make a model of trees that forget, of classes or of numbers."""
    is_number = settings.target == "number"
    made = ("dynamic_number", "DynamicNumberModel") if is_number else ("dynamic", "DynamicTreeModel")
    return _imported(*made)(name, settings, bounds)


def _forests_in_one(arrays: Arrays, settings: ForestSettings) -> Arrays:  # noqa: ARG001
    """Make the second layout of forests: one pool has the trees of all numbers."""
    from algorithms.forests.earlier import in_one  # with kernels, which who reads settings does without

    return in_one(arrays)


def _forests_in_parts(arrays: Arrays, settings: ForestSettings) -> Arrays:
    """Make the third layout of forests: a few pools have parts of the trees."""
    from algorithms.forests.earlier import in_parts

    return in_parts(arrays, settings.trees)


def _grown_in_parts(arrays: Arrays, settings: GrowingForestSettings) -> Arrays:
    """Make the second layout of forests of trees that grow: a few pools have parts of the trees."""
    from algorithms.forests.earlier import grown_in_parts

    return grown_in_parts(arrays, settings.trees, settings.of.policy)


register(SplitSettings, _split, behaviour=1)
register(TreeSettings, _imported("tree", "TreeModel"), behaviour=1)
register(DynamicTreeSettings, _dynamic_tree, behaviour=1)
register(
    ForestSettings,
    _imported("forest", "ForestModel"),
    behaviour=1,
    migrations=[_forests_in_one, _forests_in_parts],
)
register(
    GrowingForestSettings,
    _imported("growing_forest", "GrowingForestModel"),
    behaviour=1,
    migrations=[_grown_in_parts],
)
register(RegressionTreeSettings, _imported("regression_tree", "RegressionTreeModel"), behaviour=1)


def make_model(name: str, settings: ModelSettings, bounds: Bounds) -> Model:
    """Make the model that the settings describe, empty."""
    return KINDS[kind_of(type(settings))].model(name, settings, bounds)


__all__ = ["KINDS", "Kind", "Model", "Outcome", "Refusal", "Result", "make_model", "register"]
