import os
import subprocess
import sys

import numba
import pytest

from tests.support.places import ROOT

# Estimators are left out: they have no kernels but those of their pools.
SUITES = {
    "core": ["tests/algorithms/core"],
    "dynamic": ["tests/algorithms/dynamic"],
    "forests": ["tests/algorithms/forests"],
    "splits": ["tests/algorithms/splits"],
    "trees": ["tests/algorithms/trees"],
    "regression": ["tests/algorithms/regression"],
    "codec": ["tests/worker/codec/test_codec_twin.py", "tests/worker/codec/test_codec_golden.py"],
    "extremes": ["tests/test_extremes.py"],
}


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="the compiler is off already")
@pytest.mark.parametrize("suite", SUITES)
def test_kernels_do_the_same_as_plain_python(suite: str) -> None:
    """With the compiler off the same tests pass, so nothing relies on silent overflow or its typing.

    Two variants of each do: criteria and policies share most of what they run, and Python takes its time.
    """
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *SUITES[suite]],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "VARIANTS": "2", "THOROUGH": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
