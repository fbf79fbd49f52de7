"""`bench forests`: lines of one tree, of forests, and of river beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from worker.bench.forests import Peer, Terms, bench_forests
from worker.bench.moa import Moa
from worker.bench.trees import table_of
from worker.commands import main


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "forests", *arguments])


def _rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_forests_stand_beside_one_tree() -> None:
    """There is a line for the tree, and for each bagging and subspace, with settings and baselines."""
    sizes = ("--examples", "600", "--window", "100", "--trees", "4", "--repeats", "1", "--max-depth", "5")
    ways = ("--baggings", "none,2 of 4", "--subspaces", "1,sqrt of 3")
    rows = _rows(_bench("--data", "sea", *sizes, *ways))
    assert [(row["side"], row.get("bagging"), row.get("subspace")) for row in rows] == [
        ("tree", None, None),
        *(("forest", bagging, share) for bagging in ("none", "2 of 4") for share in (1.0, "sqrt of 3")),
    ]
    for row in rows:
        assert (row["examples"], row["window"], row["max_depth"]) == (600, 100, 5)
        assert 0.5 < row["accuracy"] <= 1.0
        assert row["examples_per_second"] > 0
        against = 1 - (1 - row["accuracy"]) / (1 - row["no_change"])
        assert row["kappa_temporal"] == pytest.approx(against, abs=2e-3)
    whole, half = rows[1], rows[3]
    assert whole["accuracy"] == rows[0]["accuracy"], "trees that see everything are all alike"
    assert whole["nodes"] == 4 * rows[0]["nodes"]
    assert half["rebuilt_per_example"] < whole["rebuilt_per_example"]


def test_single_calls_are_timed_of_exact_trees_too() -> None:
    """Deletes, the first question after each and another one: a median, a high quantile and the longest."""
    sizes = ("--examples", "80", "--window", "60", "--trees", "4", "--repeats", "1", "--baggings", "2 of 4")
    rows = _rows(_bench("--data", "sea", *sizes, "--subspaces", "1", "--exact", "--latency"))
    assert [row["guarantee"] for row in rows] == ["exact"] * 2
    for row in rows:
        for what in ("delete", "look_after_delete", "look"):
            middle, high, longest = row[f"{what}_us"]
            assert 0 < middle <= high <= longest


def test_forests_that_grow_have_lines_of_their_own() -> None:
    """They keep no window, and tell of drifts instead of rebuilds."""
    sizes = ("--examples", "500", "--window", "60", "--trees", "3", "--repeats", "1", "--baggings", "poisson:1")
    how = ("--growing", "--inherit", "--criterion", "entropy")
    rows = _rows(_bench("--data", "sea", *sizes, "--subspaces", "1", *how))
    assert [row["side"] for row in rows] == ["tree", "forest", "growing"]
    assert (rows[2]["criterion"], rows[2]["inherit"]) == ("entropy", True)
    grown = rows[2]
    assert {"drifts", "warnings", "bagging", "state_bytes"} <= grown.keys()
    assert not {"window", "epsilon", "rebuilt_per_example"} & grown.keys()
    assert 0.6 < grown["accuracy"] <= 1.0


def test_threads_are_sides_of_one_run() -> None:
    """Each forest has a line for each number of them, which says the same of all but time."""
    sizes = ("--examples", "400", "--window", "60", "--trees", "3", "--repeats", "1", "--baggings", "poisson:1")
    rows = _rows(_bench("--data", "sea", *sizes, "--subspaces", "1", "--growing", "--threads", "1,2"))
    assert [(row["side"], row.get("threads")) for row in rows] == [
        ("tree", None),
        *((side, threads) for side in ("forest", "growing") for threads in (1, 2)),
    ]
    times = {"threads", "cpu_seconds", "wall_seconds", "examples_per_second"}
    for one, two in (rows[1:3], rows[3:5]):
        assert {name for name in one if one[name] != two[name]} <= times
        assert min(one["wall_seconds"], two["wall_seconds"]) > 0


def test_moa_is_a_side_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its figures are those that it wrote; without it the command ends and says what was expected."""
    told = {"classifications correct (percent)": "75.0", "evaluation time (cpu seconds)": "0.5"}
    asked: list[str] = []

    def answer(peer: Moa, folder: Path, learner: str) -> dict[str, str]:
        assert peer.jar == tmp_path
        assert (folder / "table.arff").is_file()
        asked.append(learner)
        return told

    monkeypatch.setattr("worker.bench.forests.evaluated", answer)
    terms = Terms(2, ["none"], [1.0], {"window": 50}, 0, 1.0, 1)
    rows = bench_forests(table_of("sea", None, 400), terms, moa=Moa("5.6", tmp_path, tmp_path))
    row = next(rows)
    assert (row["side"], row["accuracy"], row["examples_per_second"]) == ("moa", 0.75, 800.0)
    assert asked == ["functions.NoChange", "meta.AdaptiveRandomForest -s 2"]
    monkeypatch.setattr("worker.bench.moa.importlib.util.find_spec", lambda name: None)
    result = _bench("--data", "sea", "--moa")
    assert result.exit_code == 1
    assert "expected MOA" in result.output


class _Last:
    """A peer that predicts the last label again."""

    def __init__(self, n_models: int, seed: int) -> None:
        self.made = (n_models, seed)
        self._last: int | None = None

    def predict_one(self, x: Any) -> int | None:
        """Return the last label."""
        assert isinstance(x, dict)
        return self._last

    def learn_one(self, x: Any, y: int) -> None:
        """Note a label."""
        assert x is not None
        self._last = y


def test_a_peer_gets_the_same_examples() -> None:
    """The peer's line comes first; ours say how many times its rate they reach, on as many examples."""
    terms = Terms(2, ["none"], [1.0], {"window": 50}, 0, 1e-9, 1)
    rows = list(bench_forests(table_of("sea", None, 400), terms, Peer("1.0", _Last)))
    assert [(row["side"], row["examples"], row["of"]) for row in rows] == [
        ("river", 1, 400),
        ("tree", 1, 400),
        ("forest", 1, 400),
    ]
    rows = list(bench_forests(table_of("sea", None, 400), terms._replace(seconds=99.0), Peer("1.0", _Last)))
    assert rows[0]["accuracy"] == rows[0]["no_change"]
    assert all(row["times_river"] > 0 for row in rows[1:])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--baggings", "poisson:0"),
        ("--baggings", "3 of 4"),
        ("--subspaces", "0"),
        ("--subspaces", "some"),
        ("--threads", "65"),
        ("--threads", "two"),
    ],
)
def test_wrong_options_are_named(option: str, value: str) -> None:
    """What cannot be measured is refused before anything runs."""
    result = _bench("--data", "sea", option, value)
    assert result.exit_code == 2
    assert option in result.output


def test_a_recorded_set_needs_its_folder(tmp_path: Path) -> None:
    """Without the folder, or where the set is not in it, the option is at fault."""
    assert "--folder" in _bench("--data", "electricity").output
    assert _bench("--data", "electricity", "--folder", str(tmp_path)).exit_code == 2
