import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from algorithms.trees.predict import Predict
from worker.bench.peers import Example, Peer, Terms, bench_peers
from worker.bench.tables import Table, csr, generated
from worker.commands import main
from worker.sources.generators import BINARY

TERMS = Terms(["periodic"], [Predict.MAJORITY], 50, 1e-3, 0.05, seconds=60.0, repeats=1, peer_repeats=1)
INPUTS = ["ones, numeric", "ones, nominal", "dense, numeric", "dense, nominal"]


class _Majority:
    """A peer that guesses the class that it has seen most, and notes what it was told and fed with."""

    made: list["_Majority"]

    def __init__(self, pause: float = 0.0, **parameters: Any) -> None:
        self.pause = pause
        self.parameters = parameters
        self.seen: Counter[int] = Counter()
        self.predicted: list[Example] = []
        self.learned: list[tuple[Example, int]] = []
        self.made.append(self)

    @property
    def n_leaves(self) -> int | None:
        return 1 if self.learned else None

    def predict_one(self, x: Example) -> int | None:
        self.predicted.append(x)
        return max(self.seen, key=lambda label: (self.seen[label], -label)) if self.seen else None

    def learn_one(self, x: Example, y: int) -> None:
        start = time.process_time()
        while time.process_time() - start < self.pause:
            pass
        self.seen[y] += 1
        self.learned.append((x, y))


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Peer:
    """Return a peer whose trees are noted in `_Majority.made`."""
    monkeypatch.setattr(_Majority, "made", [], raising=False)
    return Peer("1.2.3", _Majority)


def _sparse(n: int) -> Table:
    """Return examples whose feature 3 says the class, among others that say nothing."""
    rng = np.random.default_rng(7)
    value = (rng.random((n, 30)) < 0.2).astype(np.float64)
    label = rng.integers(0, 2, n)
    value[:, 3] = label
    pointer, feature, values = csr(value)
    return Table("sparse", pointer, feature, values, label, np.full(30, BINARY, np.int64), (), ("0", "1"))


def _set(folder: Path, n: int) -> None:
    """Write `_sparse` as a recorded set."""
    table = _sparse(n)
    shape = np.array([n, len(table.kinds)])
    np.savez(folder / "farm_ads.npz", indptr=table.pointer, indices=table.feature, labels=table.label, shape=shape)


def test_both_sides_of_a_set(peer: Peer) -> None:
    """Each input of the peer gets a line, and ours beside it one with how it compares on the same examples."""
    rows = list(bench_peers(_sparse(600), peer, TERMS))
    theirs, ours = rows[::2], rows[1::2]
    assert [row["side"] for row in rows] == ["river", "anabranch"] * 4
    assert [row["input"] for row in theirs] == [row["beside"] for row in ours] == INPUTS
    seen = Counter(_sparse(600).label.tolist())
    for their, our in zip(theirs, ours, strict=True):
        assert their["examples"] == our["examples"] == their["of"] == 600
        assert their["leaves"] == 1
        assert their["accuracy"] < 0.6
        assert our["leaves"] == 2
        # Two periods, and then the feature that says it all.
        assert our["accuracy"] > 0.85
        assert our["accuracy_above_river"] == pytest.approx(our["accuracy"] - their["accuracy"], abs=1e-3)
        ratio = our["examples_per_second"] / their["examples_per_second"]
        assert our["times_river"] == pytest.approx(ratio, rel=1e-2)
        assert their["versions"]["river"] == "1.2.3"
        assert our["parameters"]["grace_period"] == their["parameters"]["grace_period"] == 50
    assert [learner.seen for learner in _Majority.made] == [seen] * 4


def test_what_the_peer_is_told(peer: Peer) -> None:
    """The peer gets our parameters by its own names, once where two of ours are one of its own."""
    predictions = [Predict.MAJORITY, Predict.ADAPTIVE, Predict.ADAPTIVE_PRESENT]
    terms = TERMS._replace(predictions=predictions, tie_threshold=0.02)
    rows = list(bench_peers(_sparse(60), peer, terms))
    told = [learner.parameters for learner in _Majority.made]
    assert [each.pop("leaf_prediction") for each in told] == ["mc"] * 4 + ["nba"] * 4
    assert [set(each.pop("nominal_attributes")) for each in told] == [set(), set(range(30))] * 4
    for each in told:
        assert each == {"grace_period": 50, "delta": 1e-3, "tau": 0.02, "split_criterion": "info_gain"}
    said = ["mc", "majority"] * 4 + ["nba", "adaptive", "adaptive-present"] * 4
    assert [row["predict"] for row in rows] == said


def test_what_the_peer_is_fed_with(peer: Peer) -> None:
    """Ones are what is present; dense adds a 0 for each other feature that some example had so far."""
    table = _sparse(40)
    list(bench_peers(table, peer, TERMS))
    ones, dense = _Majority.made[0], _Majority.made[2]
    seen: set[int] = set()
    for row, (present, filled) in enumerate(zip(ones.predicted, dense.predicted, strict=True)):
        features = table.feature[table.pointer[row] : table.pointer[row + 1]].tolist()
        seen.update(features)
        assert present == dict.fromkeys(features, 1.0)
        assert filled == {feature: float(feature in features) for feature in seen}
    for learner in (ones, dense):
        assert learner.learned == list(zip(learner.predicted, table.label.tolist(), strict=True))


def test_columns_with_names_are_all_there(peer: Peer) -> None:
    """A set with named columns is fed whole, and only so; a policy of ours that does not serve it is refused."""
    table = generated("led", 30)
    rows = list(bench_peers(table, peer, TERMS._replace(policies=["exact", "periodic"])))
    assert "two classes" in rows[0]["refused"]
    assert [row.get("input") for row in rows[1::2]] == INPUTS[2:]
    assert [row.get("policy") for row in rows[2::2]] == ["periodic"] * 2
    for learner in _Majority.made:
        assert [sorted(x) for x in learner.predicted] == [list(range(len(table.kinds)))] * 30


def test_ours_take_for_a_number_what_the_peer_does(peer: Peer) -> None:
    """Where the peer is not told that a feature has categories, neither are ours."""
    rng = np.random.default_rng(5)
    value = np.stack([rng.integers(0, 4, 400), rng.integers(0, 2, 400)], axis=1)
    pointer, feature, values = csr(value)
    label = (value[:, 0] > 1).astype(np.int64)
    table = Table("made", pointer, feature, values, label, np.array([4, BINARY]), ("place", "open"), ("0", "1"))
    rows = list(bench_peers(table, peer, TERMS))
    leaves = {row["beside"]: row["leaves"] for row in rows[1::2]}
    assert leaves == {"dense, numeric": 2, "dense, nominal": 4}


def test_a_peer_that_is_slow_stops(peer: Peer) -> None:
    """After its time the peer gets no more examples, further rounds get as many, and so do ours."""
    slow = peer._replace(tree=lambda **parameters: _Majority(0.02, **parameters))
    rows = list(bench_peers(_sparse(100), slow, TERMS._replace(seconds=0.05, peer_repeats=3)))
    for their, our in zip(rows[::2], rows[1::2], strict=True):
        assert 1 <= their["examples"] == our["examples"] <= 3
        assert their["of"] == 100
    rounds = [len(learner.learned) for learner in _Majority.made]
    assert rounds == [row["examples"] for row in rows[::2] for _ in range(3)]


def test_without_river_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is read or measured, the message names the extra to install."""
    monkeypatch.setitem(sys.modules, "river", None)
    result = CliRunner().invoke(main, ["bench", "peers", "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert "pip install 'anabranch[peers]'" in result.stderr
    assert result.stdout == ""


def test_the_other_commands_need_no_river() -> None:
    """The command line does not import what only this comparison needs."""
    code = "import sys, worker.commands, worker.bench.peers; sys.exit('river' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- with river


def test_river_itself(tmp_path: Path) -> None:
    """River finds the same split as ours where it is told what is absent; a missing set is the option's fault."""
    pytest.importorskip("river", reason="pip install 'anabranch[peers]'")
    _set(tmp_path, 600)
    arguments = ["--sets", "farm_ads", "--policies", "periodic", "--grace-period", "50", "--repeats", "1"]
    result = CliRunner().invoke(main, ["bench", "peers", "--data", str(tmp_path), *arguments])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["side"] for row in rows] == ["river", "anabranch"] * 4 + ["river", "anabranch", "anabranch"] * 4
    leaves = {(row["predict"], row["input"]): row["leaves"] for row in rows if row["side"] == "river"}
    for predict in ("mc", "nba"):
        # Where only ones are told, all that a feature's observer saw is present: river has nothing to split by.
        assert [leaves[predict, given] for given in INPUTS] == [1, 1, 2, 2]
    assert {row["leaves"] for row in rows if row["side"] == "anabranch"} == {2}
    assert {row["examples"] for row in rows} == {600}
    missing = CliRunner().invoke(main, ["bench", "peers", "--data", str(tmp_path), "--sets", "spam_katakis"])
    assert missing.exit_code == 2
    assert "spam_katakis.npz" in missing.stderr
