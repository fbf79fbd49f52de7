"""Regression trees in arrays without gaps, see core/packing.py."""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.packing import Numbers, keys_of, numbers_of, packed_rows
from algorithms.regression.elements import FIRST, HIGH, LOW, NEXT, ROOT, SIZE, Elements
from algorithms.regression.state import Features, Forest, Intervals, Models, Targets
from algorithms.trees.packing import numbers_of_keys, packed_nodes, renamed


def packed(forest: Forest, keys: Int32s, names: Numbers | None = None) -> Forest:
    """Return trees in arrays that have room for no more than them. O(what is in use and what ever was).

    Parameters
    ----------
    forest : Forest
        What is packed.
    keys : Int32s
        Of the trees, rising: the first becomes 0, the next 1.
    names : Numbers, optional
        The new numbers of the names of features, where these have names.
    """
    trees = numbers_of_keys(keys, len(forest.trees))
    nodes, features = numbers_of(forest.nodes.rows), numbers_of(forest.features.rows)
    owner, item = keys_of(forest.features.rows, features)
    return forest._replace(
        trees=trees.packed(forest.trees),
        nodes=packed_nodes(forest.nodes, nodes, features, trees, names),
        targets=Targets(nodes.packed(forest.targets.numbers), nodes.packed(forest.targets.tried)),
        features=Features(
            packed_rows(forest.features.rows, features, nodes.of(owner), renamed(item, names)),
            features.packed(forest.features.moments),
            features.packed(forest.features.kind),
        ),
        elements=_packed_elements(forest.elements, features),
        models=Models(nodes.packed(forest.models.leaves), features.packed(forest.models.features)),
        intervals=Intervals(nodes.packed(forest.intervals.leaves), trees.packed(forest.intervals.trees)),
    )


def _packed_elements(state: Elements, features: Numbers) -> Elements:
    elements = Numbers(state.weight != 0)
    links, heads = elements.packed(state.links), features.packed(state.heads)
    own = links[: len(elements)]
    own[:, NEXT] = elements.of(own[:, NEXT])
    for column in (LOW, HIGH):
        own[:, column] = _referring(elements, own[:, column])
    seen = np.flatnonzero(heads[: len(features), SIZE] > 0)
    heads[seen, FIRST] = elements.of(heads[seen, FIRST])
    heads[seen, ROOT] = _referring(elements, heads[seen, ROOT])
    return Elements(
        key=elements.packed(state.key),
        links=links,
        weight=elements.packed(state.weight),
        numbers=elements.packed(state.numbers),
        used=elements.used,
        heads=heads,
        radius=features.packed(state.radius),
    )


def _referring(elements: Numbers, reference: Int64s) -> Int64s:
    """Return references to inner nodes, from 0 on, and to elements, below, with the new numbers of their rows."""
    is_inner = reference >= 0
    row = elements.of(np.where(is_inner, reference, -1 - reference))
    return np.where(is_inner, row, -1 - row)
