"""What trees that forget take of features: no zeros, and finite values of binary and numeric ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from algorithms.core.canonical import Terms
from algorithms.core.kinds import Kind

SERVED = (Kind.BINARY, Kind.NUMERIC)
TERMS = Terms(sys.float_info.max, deletes=True, sparse=True)


def check_kinds(kinds: Iterable[Kind]) -> None:
    """Raise ValueError where a kind is none that these trees serve."""
    for kind in kinds:
        if kind not in SERVED:
            raise ValueError(
                f"expected features of the kinds BINARY and NUMERIC, got {Kind(kind).name}; declare categories as "
                "a binary feature each, and quantised features as numeric: here their values are exact"
            )
