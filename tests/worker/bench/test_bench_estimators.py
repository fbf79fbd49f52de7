"""`bench estimators`, with peers of our own in the place of river and scikit-learn; and with these."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from algorithms.estimators.online import TreeClassifier
from algorithms.trees.predict import Predict
from worker.bench import estimators
from worker.bench.estimators import Example, Peers, Terms, bench_estimators
from worker.bench.tables import Table, csr, generated
from worker.commands import main
from worker.sources.generators import BINARY

TERMS = Terms([Predict.MAJORITY], 50, 1e-3, 0.05, unlearned=20, repeats=3)
TASKS = ["learn_one", "predict, then learn", "partial_fit", "unlearn_one"]


class _Slow:
    """A tree of river's that learns nothing and takes its time, and notes what it was told and fed with."""

    made: list[_Slow]

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters
        self.learned: list[Example] = []
        self.made.append(self)

    def learn_one(self, x: dict[str, Any], y: int) -> None:
        start = time.process_time()
        while time.process_time() - start < 2e-3:
            pass
        self.learned.append((x, y))

    def predict_one(self, x: dict[str, Any]) -> None:  # noqa: ARG002
        return None


class _Fitted:
    """An adapter that hands nothing on, and notes the rows that it was given."""

    made: list[_Fitted]

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters
        self.rows: list[tuple[Any, list[int]]] = []
        self.made.append(self)

    def partial_fit(self, rows: Any, labels: Any, classes: Any) -> None:
        assert set(labels.tolist()) <= set(classes.tolist())
        self.rows.append((rows, labels.tolist()))


def _score(examples: list[Example], model: Any) -> None:
    for x, y in examples:
        model.predict_one(x)
        model.learn_one(x, y)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Peers:
    """Return peers that note what they are given in their class's `made`."""
    monkeypatch.setattr(_Slow, "made", [], raising=False)
    monkeypatch.setattr(_Fitted, "made", [], raising=False)
    return Peers({"river": "1.2.3"}, _Slow, TreeClassifier, _Fitted, _score, lambda *given: given)


def _words(n: int) -> Table:
    """Return examples of words, the first of which says the class."""
    value = (np.random.default_rng(7).random((n, 12)) < 0.3).astype(np.float64)
    pointer, feature, values = csr(value)
    label = value[:, 0].astype(np.int64)
    return Table("words", pointer, feature, values, label, np.full(12, BINARY, np.int64), (), ("0", "1"))


def test_both_sides_of_each_task(beside: Peers) -> None:
    """Each task has a line for each side; that of ours says how many times the other's time it took."""
    rows = list(bench_estimators(_words(40), beside, TERMS))
    assert [row["task"] for row in rows] == [task for task in TASKS for _ in range(2)]
    assert [row["side"] for row in rows] == [
        *("river", "anabranch") * 2,
        *("pool", "partial_fit"),
        *("learn_one", "unlearn_one"),
    ]
    for other, ours in zip(rows[:4:2], rows[1:4:2], strict=True):
        assert other["us_per_example"] > 2000
        assert 0.0 < ours["to_river"] < 1.0
        assert ours["us_per_example"] / other["us_per_example"] == pytest.approx(ours["to_river"], rel=0.5)
    assert rows[5]["to_pool"] < 1.0, "an adapter that does nothing"
    assert rows[7]["to_learn_one"] > 0.0
    assert [row["examples"] for row in rows] == [40] * 6 + [20] * 2
    for row in rows:
        assert row["repeats"] == 3
        assert row["versions"]["river"] == "1.2.3"
        assert row["machine"]


def test_what_the_sides_are_told(beside: Peers) -> None:
    """River gets our parameters by its own names, and the same dicts: words are present."""
    table = _words(12)
    list(bench_estimators(table, beside, TERMS._replace(repeats=1, predictions=[Predict.ADAPTIVE_PRESENT])))
    told = {"grace_period": 50, "delta": 1e-3, "tau": 0.05, "split_criterion": "info_gain"}
    assert [tree.parameters for tree in _Slow.made] == [told | {"leaf_prediction": "nba"}] * 2
    ours = {"grace_period": 50, "split_confidence": 1e-3, "tie_threshold": 0.05}
    assert [tree.parameters for tree in _Fitted.made] == [ours | {"leaf_prediction": "adaptive_present"}]
    expected = [
        (
            dict.fromkeys(map(str, table.feature[table.pointer[row] : table.pointer[row + 1]].tolist()), True),
            int(table.label[row]),
        )
        for row in range(12)
    ]
    assert [tree.learned for tree in _Slow.made] == [expected] * 2


def test_columns_are_whole_and_rows_dense(beside: Peers) -> None:
    """Where columns are named each example has them all; rows of `partial_fit` are dense, in batches."""
    table = generated("agr:function=1", 8)
    list(bench_estimators(table, beside, TERMS._replace(repeats=1)))
    assert [sorted(x) for x, _ in _Slow.made[0].learned] == [sorted(table.names)] * 8
    ((rows, labels),) = _Fitted.made[0].rows
    assert labels == table.label.tolist()
    assert rows.tolist() == [[x[name] for name in table.names] for x, _ in _Slow.made[0].learned]


def test_a_long_stream_is_fitted_short_as_well(beside: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """`partial_fit` has lines for the first rows, where what its first call does counts, and for all."""
    monkeypatch.setattr(estimators, "SHORT", 10)
    rows = [row for row in bench_estimators(_words(30), beside, TERMS) if row["task"] == "partial_fit"]
    assert [(row["side"], row["examples"]) for row in rows] == [
        *(("pool", 10), ("partial_fit", 10)),
        *(("pool", 30), ("partial_fit", 30)),
    ]


# --- the command


@pytest.mark.parametrize("name", ["river", "sklearn"])
def test_without_a_peer_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Before anything is read or measured, the message names what is missing and the extra to install."""
    for each in ("river", "sklearn"):
        monkeypatch.setitem(sys.modules, each, None if each == name else type(sys)(each))
    result = CliRunner().invoke(main, ["bench", "estimators", "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert f"{name} is not there; pip install 'anabranch[peers]'" in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_the_other_commands_need_neither() -> None:
    """The command line does not import what only this comparison needs."""
    code = "import sys, worker.commands; sys.exit(bool({'river', 'sklearn'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_with_river_and_scikit_learn(tmp_path: Path) -> None:
    """The lines of a recorded set, and a missing set is the option's fault."""
    pytest.importorskip("river", reason="pip install 'anabranch[peers]'")
    pytest.importorskip("sklearn", reason="pip install 'anabranch[peers]'")
    table = _words(400)
    shape = np.array([400, len(table.kinds)])
    path = tmp_path / "farm_ads.npz"
    np.savez(path, indptr=table.pointer, indices=table.feature, labels=table.label, shape=shape)
    arguments = ["bench", "estimators", "--data", str(tmp_path), "--predict", "majority", "--repeats", "1"]
    result = CliRunner().invoke(main, [*arguments, "--sets", "farm_ads", "--unlearned", "50"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["task"] for row in rows] == [task for task in TASKS for _ in range(2)]
    missing = CliRunner().invoke(main, [*arguments, "--sets", "electricity"])
    assert missing.exit_code == 2
    assert "electricity.csv.gz" in missing.stderr
