"""Golden recordings with kernels compiled for other processors. It takes minutes: `make processors`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from algorithms.core import cache, jit, target
from tests.support.places import ROOT

GOLDEN_TESTS = ("tests/worker/recordings/test_replay.py", "tests/worker/state/test_golden_checkpoints.py")


@pytest.mark.processors
@pytest.mark.timeout(1800)
@pytest.mark.skipif(jit.IS_OFF or target.processor().name != "x86-64-v3", reason="compiles for x86-64")
@pytest.mark.parametrize("name", ["x86-64", "haswell", "znver2"])
def test_every_processor_writes_the_golden_bytes(tmp_path: Path, name: str) -> None:
    """With kernels compiled for it alone, from nothing, replays and restored checkpoints give the kept bytes."""
    environ = os.environ | {
        target.VARIABLE: name,
        cache.VARIABLE: str(tmp_path / "kernels"),
        "XDG_CACHE_HOME": str(tmp_path / "nothing"),
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "1500", *GOLDEN_TESTS]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environ)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    indices = list((tmp_path / "kernels").rglob("*.nbi"))
    assert len(indices) > 12
    for index in indices:
        assert name.encode() in index.read_bytes(), f"{index.name} is not for {name}"
        assert b"x86-64-v3" not in index.read_bytes()
