"""The run of extremes, over a few rounds of every kind; `python -m tests.extremes` drives it for an hour."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from algorithms.core.cache import VARIABLE
from tests import extremes
from tests.support.examples import budget
from tests.support.places import ROOT
from worker.models.split import SplitModel

OFF = bool(numba.config.DISABLE_JIT)
# With the compiler on only what other tests use too: a kind takes a minute to compile.
COMPILED = [
    *("split", "tree-periodic", "tree-osm-gini", "tree-imac-gini", "tree-efdt-entropy", "tree-hat-entropy"),
    *("tree-efdt-imac-gini", "tree-hat-imac-gini"),
    *("tree-exact-entropy", "dynamic", "regression", "forest-tree-periodic", *extremes.others()),
]

OVERRUN = """
import numpy as np
from typing import NamedTuple
from algorithms.core.arrays import Float64s
from algorithms.core.jit import dispatch, inlined, jit

class State(NamedTuple):
    numbers: Float64s

@inlined
def _at(state, at):
    return state.numbers[at]

at = dispatch("Return a number.", {State: _at})

@jit
def outer(state, k):
    return at(state, k) + 1.0

print(outer(State(np.zeros(8)[:4]), 4))  # what lies behind the array is its own memory: nothing ends the process
"""


@pytest.mark.parametrize("kind", list(extremes.chosen([] if OFF else COMPILED)))
def test_extremes_leave_every_kind_as_it_should_be(kind: str) -> None:
    """Nothing fails, states are right after each batch, and every number that is written is possible."""
    rounds = 1 if kind.startswith("split-mixed") else budget(3)  # those take as long as all others together
    assert sum(extremes.one_round(kind, 0, number) for number in range(rounds)) > 0


@pytest.mark.skipif(OFF, reason="nothing is compiled")
def test_an_overrun_in_compiled_code_is_caught_where_bounds_are_checked(tmp_path: Path) -> None:
    """A planted one, behind an inlined function and a dispatch, is an IndexError; unchecked it reads on."""
    (tmp_path / "overrun.py").write_text(OVERRUN)
    told = []
    for checks in ("0", "1"):
        run = subprocess.run(
            [sys.executable, str(tmp_path / "overrun.py")],
            env={**os.environ, "NUMBA_BOUNDSCHECK": checks, "XDG_CACHE_HOME": str(tmp_path), VARIABLE: ""},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        told.append((run.returncode, run.stdout.strip(), "IndexError: index is out of bounds" in run.stderr))
    assert told == [(0, "1.0", False), (1, "", True)]
    assert len(list((tmp_path / "anabranch" / "kernels").iterdir())) == 2, "neither is taken for the other"


def test_what_a_model_raises_is_told_with_what_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error out of a kernel ends no other round, is never swallowed, and makes the run fail."""

    def overrun(*_: Any) -> None:
        raise IndexError("index is out of bounds")

    monkeypatch.setattr(SplitModel, "apply", overrun)
    monkeypatch.setattr(sys, "argv", ["extremes", "--seed", "5", "--kinds", "split-exact-gini", "--round", "3"])
    with pytest.raises(SystemExit, match="1"):
        extremes.main()
    told = capsys.readouterr()
    assert "--seed 5 --kinds split-exact-gini --round 3 failed:" in told.err
    assert "IndexError: index is out of bounds" in told.err
    assert "split-exact-gini: 1 rounds, 0 events applied" in told.out
