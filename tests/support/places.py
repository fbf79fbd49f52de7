"""Where things are, wherever a test is."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
