"""How much tests try."""

from __future__ import annotations

import os

from algorithms.core.jit import IS_OFF

THOROUGH = os.environ.get("THOROUGH") == "1"  # `make thorough`: all models, all variants, most random examples


def budget(examples: int) -> int:
    """Return how many examples to try: a tenth for `make fast`, and where the compiler is off and kernels slow."""
    few = IS_OFF or os.environ.get("TESTS") == "few"
    return max(1, examples // 10) if few else examples
