import os
import subprocess
import sys

import numba
import pytest

from tests.support.places import ROOT

SUITES = {
    "dynamic": ["dynamic", "dynamic_build"],
    "splits": ["criteria", "hashing", "ledger", "names", "reference", "shards", "splits", "splits_stateful"],
    "trees": [
        *("adwin", "trees", "trees_evaluation", "trees_habits", "trees_hat", "trees_memory", "trees_ranking"),
        *("trees_theorems", "trees_values"),
    ],
    "extremes": ["extremes", "given"],
    "regression": [f"regression_{part}" for part in ("elements", "evaluation", "observers", "trees")],
}


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="the compiler is off already")
@pytest.mark.parametrize("suite", SUITES)
def test_kernels_do_the_same_as_plain_python(suite: str) -> None:
    """With the compiler off the same tests pass, so nothing relies on silent overflow or its typing."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + [f"tests/test_{name}.py" for name in SUITES[suite]],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
