import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from worker.bench.tables import against
from worker.bench.trees import table_of
from worker.commands import main


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "dynamic", *arguments])


def _rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_epsilons_are_compared_under_each_model_of_updates() -> None:
    """Each model and epsilon has a line: more slack, fewer rebuilds; times are beside those from scratch."""
    updates = ("--updates", "incremental", "--updates", "window:100", "--updates", "random:0.3")
    result = _bench(
        "--data",
        "sea",
        "--examples",
        "600",
        "--repeats",
        "1",
        *updates,
        "--epsilons",
        "0,0.2,1",
        "--max-depth",
        "4",
    )
    rows = _rows(result)
    assert [(row["updates"], row["epsilon"]) for row in rows] == [
        (model, epsilon) for model in updates[1::2] for epsilon in (0.0, 0.2, 1.0)
    ]
    for scratch, some, least in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert scratch["to_from_scratch"] == 1.0
        assert scratch["rebuilt_per_event"] > some["rebuilt_per_event"] > least["rebuilt_per_event"] > 0
        assert scratch["live"] == some["live"] == least["live"]
    assert [rows[at]["live"] for at in (0, 3)] == [600, 100]
    for row in rows:
        assert row["inserts"] == 600 <= row["events"]
        assert 0.5 < row["accuracy"] <= 1.0
        for baseline, kappa in (("majority", "kappa_m"), ("no_change", "kappa_temporal")):
            against = 1 - (1 - row["accuracy"]) / (1 - row[baseline])
            assert row[kappa] == pytest.approx(against, abs=2e-3)
        assert 0.0 < row["f1"] <= 1.0
        assert 0 < row["depth"] <= 4
        assert row["us_per_event"] > 0


def test_policies_stand_beside_each_other() -> None:
    """An exact tree predicts as one from scratch does and rebuilds far less, one within beta less still."""
    given = ("--data", "sea", "--examples", "500", "--repeats", "1", "--updates", "window:100", "--max-depth", "4")
    rows = _rows(_bench(*given, "--exact", "--betas", "0.02", "--epsilons", "0,0.1", "--latency"))
    exact, near, scratch, clock = rows
    assert (exact["guarantee"], near["beta"], scratch["epsilon"], clock["epsilon"]) == ("exact", 0.02, 0.0, 0.1)
    assert exact["accuracy"] == scratch["accuracy"]
    assert scratch["rebuilt_per_event"] > exact["rebuilt_per_event"] > near["rebuilt_per_event"]
    assert exact["scanned_per_event"] > 0 == clock["scanned_per_event"] == scratch["scanned_per_event"]
    for row in rows:
        for what in ("insert_us", "delete_us", "look_after_delete_us"):
            median, most, longest = row[what]
            assert 0 < median <= most <= longest


@pytest.mark.parametrize("data", ["led:noise=10", "sea"])
def test_rebuilds_in_parts_stand_beside_those_at_once(data: str) -> None:
    """Where rebuilds are done in parts there are fewer, whether features are binary or numbers."""
    given = ("--examples", "400", "--repeats", "1", "--updates", "window:150", "--epsilons", "0.05", "--max-work")
    at_once, in_parts = _rows(_bench("--data", data, *given, "200"))
    assert (at_once.get("max_work"), in_parts["max_work"]) == (None, 200)
    assert 0 < in_parts["rebuilt_per_event"] < at_once["rebuilt_per_event"]


def test_the_last_events_of_a_set_that_is_repeated() -> None:
    """Examples come again under new ids, so that more are live than the set has."""
    given = ("--data", "sea", "--examples", "100", "--times", "3", "--repeats", "1", "--updates", "window:250")
    [whole] = _rows(_bench(*given, "--epsilons", "0.1"))
    [last] = _rows(_bench(*given, "--epsilons", "0.1", "--last", "40", "--latency"))
    assert (whole["inserts"], whole["events"], whole["live"]) == (300, 350, 250)
    assert (last["inserts"], last["events"], last["live"]) == (300, 40, 250)
    assert last["insert_us"][0] <= last["insert_us"][2]
    refused = _bench(*given, "--last", "40", "--exact")
    assert refused.exit_code == 2
    assert "expected --epsilons alone with --last" in " ".join(refused.output.split())


def test_one_class_may_stand_against_all_others() -> None:
    """Labels are 1 for the class that is named and 0 for the rest; a class that is none is refused."""
    table = table_of("led:noise=10", None, 200)
    two = against(table, "3")
    assert two.classes == ("not 3", "3")
    assert two.label.tolist() == (table.label == 3).astype(int).tolist()
    assert np.array_equal(against(table, "majority").label, table.label == np.argmax(np.bincount(table.label)))
    with pytest.raises(ValueError, match="expected majority, or a class of 0, 1"):
        against(table, "ten")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--epsilons", "-1"),
        ("--epsilons", "some"),
        ("--updates", "window:0"),
        ("--positive", "ten"),
        ("--folder", "-"),
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
