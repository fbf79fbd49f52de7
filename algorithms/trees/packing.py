"""Trees in arrays without gaps, see core/packing.py: how a pool of which most is gone becomes small again.

What the exact policy keeps beside its slots makes it quick and decides nothing, so it stays behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.kinds import NOMINAL, NUMERIC, QUANTISED
from algorithms.core.names import Interner
from algorithms.core.packing import Numbers, keys_of, numbers_of, owners_of, packed_rows, packed_table
from algorithms.core.rows import EVER, NONE
from algorithms.splits import exact
from algorithms.splits.slots import BEST, CHAIN, KEY, MARK, NO_MARK, Slots
from algorithms.trees.gaussians import Gaussians
from algorithms.trees.nodes import ALTERNATES, FEATURE, FIRST, OBSERVED, ROOTS, TREE, Nodes
from algorithms.trees.observers import KIND, PART, Features
from algorithms.trees.policies.adwin import Windows
from algorithms.trees.policies.efdt_imac import EfdtImac
from algorithms.trees.policies.exact import Exact
from algorithms.trees.policies.hat import Hat
from algorithms.trees.policies.hat_imac import HatImac
from algorithms.trees.policies.imac import Imac
from algorithms.trees.quantised import FIRST as FIRST_SLOT
from algorithms.trees.quantised import Quantised
from algorithms.trees.state import LEARNED, Forest


def numbers_of_keys(keys: Int32s, capacity: int) -> Numbers:
    """Return the new numbers of keys, which rise; so many had room."""
    in_use = np.zeros(capacity, np.bool_)
    in_use[keys] = True
    return Numbers(in_use, least=1)


def packed_names(names: Interner) -> tuple[Interner, Numbers]:
    """Return the names of features in arrays with room for no more than them, and their new numbers.

    They are in the same order, so those that the settings name stay the first.
    """
    names.sweep(np.zeros(0, np.int64))  # what was released last
    numbers, made = Numbers(names.arrays.size >= 0), Interner()
    made.share(len(names.beside))
    made.intern_all(map(names.name, numbers.kept.tolist()))
    made.arrays.references[: len(numbers)] = names.arrays.references[numbers.kept]
    for new, old in zip(made.beside, names.beside, strict=True):
        new.references[: len(numbers)] = old.references[numbers.kept]
    return made, numbers


def renamed(features: Int64s, names: Numbers | None) -> Int64s:
    """Return the new numbers of features, NONE that of `NONE`; ids stay what they are."""
    return features if names is None else names.of(features)


def packed(forest: Forest, keys: Int32s, names: Numbers | None = None) -> Forest:
    """Return trees in arrays that have room for no more than them. O(what is in use and what ever was).

    Parameters
    ----------
    forest : Forest
        Others that it has stay behind.
    keys : Int32s
        Of the trees, rising: the first becomes 0, the next 1.
    names : Numbers, optional
        The new numbers of the names of features, where these have names.
    """
    trees = numbers_of_keys(keys, len(forest.trees))
    nodes = numbers_of(forest.nodes.rows, trees.of(forest.nodes.links[:, TREE]) != NONE)
    features = numbers_of(forest.features.rows, nodes.of(owners_of(forest.features.rows)) != NONE)
    heads = trees.packed(forest.trees)
    return forest._replace(
        trees=heads,
        alive=np.array([np.count_nonzero(heads[:, LEARNED])], np.int64),
        nodes=packed_nodes(forest.nodes, nodes, features, trees, names),
        features=_packed_features(forest.features, features, nodes, names),
        policy=_packed_policy(forest.policy, nodes, features, names),
    )


def packed_nodes(state: Nodes, nodes: Numbers, features: Numbers, trees: Numbers, names: Numbers | None) -> Nodes:
    """Return nodes without gaps, given the new numbers of all that they refer to."""
    owner, item = keys_of(state.rows, nodes)
    is_root, is_top = owner == ROOTS, owner == ALTERNATES
    is_child = ~(is_root | is_top)
    item[is_root], item[is_top] = trees.of(item[is_root]), nodes.of(item[is_top])
    owner[is_child] = nodes.of(owner[is_child])
    links = nodes.packed(state.links)
    own = links[: len(nodes)]
    for column, numbers in ((FIRST, nodes), (OBSERVED, features), (TREE, trees)):
        own[:, column] = numbers.of(own[:, column])
    own[:, FEATURE] = renamed(own[:, FEATURE], names)
    return Nodes(
        packed_rows(state.rows, nodes, owner, item), links, nodes.packed(state.numbers), nodes.packed(state.prior)
    )


def _packed_features(state: Features, features: Numbers, nodes: Numbers, names: Numbers | None) -> Features:
    owner, item = keys_of(state.rows, features)
    about = features.packed(state.about)
    kind, part = about[: len(features), KIND], about[: len(features), PART]
    values = numbers_of(state.values, features.of(owners_of(state.values)) != NONE)
    is_normal = np.zeros(len(state.gaussians.following), np.bool_)
    is_normal[part[kind == NUMERIC]] = True
    normals = Numbers(is_normal)
    part[kind == NOMINAL] = values.of(part[kind == NOMINAL])
    part[kind == NUMERIC] = normals.of(part[kind == NUMERIC])
    feature, value = keys_of(state.values, values)
    return Features(
        rows=packed_rows(state.rows, features, nodes.of(owner), renamed(item, names)),
        about=about,
        gain=features.packed(state.gain),
        values=packed_rows(state.values, values, features.of(feature), value),
        gaussians=Gaussians(
            normals.packed(state.gaussians.moments), normals.packed(state.gaussians.following), normals.used
        ),
        quantised=_packed_slots(state.quantised, values, features, kind == QUANTISED),
    )


def _packed_slots(state: Quantised, values: Numbers, features: Numbers, quantised: Any) -> Quantised:
    if not len(state.radius):
        return state
    about = features.packed(state.about)
    first = about[: len(features), FIRST_SLOT]
    first[quantised] = values.of(first[quantised])
    return state._replace(
        mean=values.packed(state.mean),
        weight=values.packed(state.weight),
        radius=features.packed(state.radius),
        about=about,
    )


def _packed_policy(policy: Any, nodes: Numbers, features: Numbers, names: Numbers | None) -> Any:
    if isinstance(policy, Exact):
        return _packed_indexes(policy, nodes, names)
    if isinstance(policy, Imac):
        return _packed_candidates(policy, nodes, features)
    if isinstance(policy, EfdtImac):
        return EfdtImac(_packed_candidates(policy.leaves, nodes, features), nodes.packed(policy.tried))
    if isinstance(policy, HatImac):
        leaves = _packed_candidates(policy.leaves, nodes, features)
        return policy._replace(leaves=leaves, windows=_packed_windows(policy.windows, nodes))
    if isinstance(policy, Hat):
        windows = _packed_windows(policy.windows, nodes)
        return policy._replace(tried=nodes.packed(policy.tried), windows=windows)
    return type(policy)(*(nodes.packed(array) for array in policy))


def _packed_windows(windows: Windows, nodes: Numbers) -> Windows:
    sums, buckets, ones = windows
    return Windows(nodes.packed(sums), nodes.packed(buckets), nodes.packed(ones))


def _packed_indexes(policy: Exact, nodes: Numbers, names: Numbers | None) -> Exact:
    state = policy.slots
    leaf = state.rows[:, KEY] >> 32  # of a free one -1, as `NONE`
    leaf[state.counts[EVER] :] = NONE
    slots = Numbers(nodes.of(leaf) != NONE)
    rows, chain, heads = slots.packed(state.rows), slots.packed(state.chain), nodes.packed(state.heads)
    owner = nodes.of(leaf[slots.kept])
    item = renamed(rows[: len(slots), KEY] & 0xFFFFFFFF, names)
    rows[: len(slots), KEY] = owner << 32 | item
    rows[: len(slots), MARK] = NO_MARK
    chain[: len(slots)] = slots.of(chain[: len(slots)])
    for column in (CHAIN, BEST):
        heads[: len(nodes), column] = slots.of(heads[: len(nodes), column])
        heads[len(nodes) :, column] = NONE
    return Exact(
        slots=Slots(packed_table(len(rows), owner, item), rows, chain, heads, slots.used),
        finder=exact.make(len(heads), len(rows)),
        pair=np.full((len(heads), 2), NONE, np.int64),
    )


def _packed_candidates(policy: Imac, nodes: Numbers, features: Numbers) -> Imac:
    of_node = policy.set[nodes.kept]
    in_use = np.zeros(len(policy.size), np.bool_)
    in_use[of_node[of_node != NONE]] = True
    sets = Numbers(in_use, least=4)
    chosen = nodes.packed(policy.set)
    chosen[:] = NONE
    chosen[: len(nodes)] = sets.of(of_node)
    row = sets.packed(policy.row)
    own = row[: len(sets)]
    has = np.arange(row.shape[1]) < policy.size[sets.kept, None]
    own[has] = features.of(own[has])
    own[~has] = 0
    return Imac(
        set=chosen,
        looked=nodes.packed(policy.looked),
        size=sets.packed(policy.size),
        row=row,
        score=sets.packed(policy.score),
        threshold=sets.packed(policy.threshold),
        branches=sets.packed(policy.branches),
        used=sets.used,
    )
