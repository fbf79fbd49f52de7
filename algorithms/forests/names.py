"""Hashes of features by their names, which do not depend on how names are numbered."""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import UInt32s
from algorithms.core.names import Interner, Names
from algorithms.forests.draws import hash_names
from algorithms.forests.ledger import Hashes


def hashes_of(names: Interner | None, shown: Names, feature: UInt32s) -> Hashes:
    """Return two hashes of each of some features; an id is its own."""
    if names is None:
        return Hashes(feature, feature)
    hashes = Hashes(np.zeros_like(feature), np.zeros_like(feature))
    hash_names(shown, feature, hashes.first, hashes.second)
    return hashes
