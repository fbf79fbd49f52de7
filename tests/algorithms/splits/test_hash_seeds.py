"""Answers and state do not depend on the hashes of strings, which Python draws anew for each process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.oracles.naive import KINDS
from tests.support.places import ROOT

_DIGESTS = """
import hashlib
from tests.oracles.naive import KINDS, Mix, Settings, Stream, outcomes, words
from tests.support.examples import budget
events = Stream(1).take(budget(400), Mix(words(120), ids=0.3, indexes=2, drops=0.01))
for finder, criterion in KINDS:
    pool = Settings(finder=finder, criterion=criterion, names=True, window=50).pool()
    got = [outcomes(pool, events[at : at + 20]) for at in range(0, len(events), 20)]
    state = [array.tobytes() for array in pool.arrays().values()]
    print(finder, criterion, hashlib.sha256(repr((got, state)).encode()).hexdigest())
"""


@pytest.mark.slow
def test_hash_seeds_change_nothing() -> None:
    """Two processes with different string hashes give the same answers and the same state, byte for byte."""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second
    assert len(first.splitlines()) == len(KINDS)
