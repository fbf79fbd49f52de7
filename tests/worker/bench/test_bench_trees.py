import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from worker.bench.trees import table_of
from worker.commands import main


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "trees", *arguments])


def _rows(result: Result) -> dict[str, dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return {row["policy"]: row for row in map(json.loads, result.stdout.splitlines())}


def test_policies_are_compared_on_the_same_stream() -> None:
    """Each policy gets a line with what it did; the reference is never late, and the others attempt less often."""
    policies = ("--policies", "periodic,imac,reference", "--criterion", "gini")
    rows = _rows(
        _bench(
            "--data",
            "led:noise=10",
            "--examples",
            "3000",
            "--repeats",
            "1",
            "--split-confidence",
            "0.1",
            *policies,
        )
    )
    assert list(rows) == ["periodic", "imac", "reference"]
    for row in rows.values():
        assert row["examples"] == 3000
        assert 0.0 <= row["accuracy"] <= 1.0
        for baseline, kappa in (("majority", "kappa_m"), ("no_change", "kappa_temporal")):
            against = 1 - (1 - row["accuracy"]) / (1 - row[baseline])
            assert row[kappa] == pytest.approx(against, abs=2e-3)
        assert row["leaves"] == row["splits"] + 1 > 1
    assert rows["reference"]["attempts"] > 10 * rows["periodic"]["attempts"]
    assert rows["periodic"]["average_delay"] > 0
    assert rows["periodic"]["to_periodic"] == 1.0


def test_observers_of_numeric_features_are_compared() -> None:
    """Each observer gets a line, beside the first; slots take more memory than moments, and both find splits."""
    result = _bench(
        "--criterion", "gini",
        "--data", "sea", "--examples", "3000", "--repeats", "1", "--policies", "periodic",
        "--split-confidence", "0.1", "--numeric", "gaussian,quantised", "--radius-fraction", "0.3",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    gaussian, quantised = map(json.loads, result.stdout.splitlines())
    assert (gaussian["numeric"], quantised["numeric"]) == ("gaussian", "quantised")
    assert min(gaussian["splits"], quantised["splits"]) > 0
    assert quantised["state_bytes"] > gaussian["state_bytes"]
    assert gaussian["to_periodic"] == 1.0


def test_sizes_and_grace_periods_take_turns() -> None:
    """Each has its lines; with one class against the rest these have its F1; without delays they have none."""
    result = _bench(
        "--data", "led:noise=10", "--positive", "majority", "--examples", "400,900", "--grace-periods", "100,500",
        "--policies", "periodic", "--repeats", "1", "--no-delay", "--split-confidence", "0.5",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = list(map(json.loads, result.stdout.splitlines()))
    cells = [(400, 100), (400, 500), (900, 100), (900, 500)]
    assert [(row["examples"], row["grace_period"]) for row in rows] == cells
    assert [row["attempts"] for row in rows[::2]] > [row["attempts"] for row in rows[1::2]]
    assert {row["features"] for row in rows} == {24}
    assert all(0.0 <= row["f1"] <= 1.0 and row["average_delay"] is None for row in rows)
    assert "expected majority, or a class of 0" in _bench("--data", "led", "--positive", "x").output


def test_what_a_policy_does_not_serve_is_said() -> None:
    """A policy that cannot take the data gets a line with the reason, and does not stop the others."""
    rows = _rows(
        _bench(
            "--data", "led", "--examples", "500", "--repeats", "1", "--policies", "exact,periodic", "--drop-poor"
        )
    )
    assert "two classes" in rows["exact"]["refused"]
    assert rows["periodic"]["attempts"] >= 0


def test_a_recorded_set_needs_its_folder(tmp_path: Path) -> None:
    """Sets are read from the folder that is named; without it, or with unknown data, the option is at fault."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 5, 300)
    np.savez(
        tmp_path / "farm_ads.npz",
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        indices=np.concatenate([np.sort(rng.choice(20, length, replace=False)) for length in lengths]),
        labels=rng.integers(0, 2, 300),
        shape=np.array([300, 20]),
    )
    table = table_of("farm_ads", tmp_path, 100)
    assert (len(table.label), table.name) == (100, "farm_ads")
    assert _bench("--data", "farm_ads").exit_code == 2
    assert "--folder" in _bench("--data", "farm_ads").output
    assert _bench("--data", "nothing").exit_code == 2


@pytest.mark.parametrize("name", ["SEA_g", "AGR_g"])
def test_streams_of_paper_001_go_by_their_names(name: str) -> None:
    """The synthetic streams have the sizes that are asked for."""
    assert (len(table_of(name, None, 400).label), table_of(name, None, 400).name) == (400, name)
