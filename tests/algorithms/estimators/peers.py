"""river, scikit-learn and pandas: without them tests skip, or fail with REQUIRE_PEERS=1."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest


def needed(module: str) -> Any:
    """Return a module; where it is not installed skip the test, or fail with REQUIRE_PEERS=1."""
    if os.environ.get("REQUIRE_PEERS") == "1":
        return import_module(module)
    return pytest.importorskip(module, reason="pip install 'anabranch[peers]'")
