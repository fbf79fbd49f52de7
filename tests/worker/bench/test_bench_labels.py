"""`bench labels`: a line for each number of labels, beside the index of two."""

import gzip
import json
from pathlib import Path

from click.testing import CliRunner

from worker.bench.labels import stream
from worker.commands import main


def test_each_number_of_labels_has_a_line() -> None:
    """Of both criteria and all kinds of features, with times to those of the index of two labels."""
    options = ("--labels", "2,4", "--examples", "30", "--features", "20", "--window", "10", "--repeats", "1")
    result = CliRunner().invoke(main, ["bench", "labels", *options])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    names = [
        "labels",
        "mixed",
        "mixed, categories",
        "mixed, numbers",
        "two, nothing tells",
        "mixed, nothing tells",
    ]
    sides = [("two labels", 2), *((name, k) for name in names for k in ((2,) if "two" in name else (2, 4)))]
    others = {"gini": [("counting", 2), ("numbers", 2)], "entropy": []}
    assert [(row["criterion"], row["side"], row["labels"]) for row in rows] == [
        (criterion, *side)
        for criterion in ("gini", "entropy")
        for side in [sides[0], *others[criterion], *sides[1:]]
    ]
    for row in rows:
        assert row["us_per_update"] > 0
        assert (row["us_in_batches"] is None) == (row["side"] == "labels")
        if row["side"] == "two labels":
            assert (row["updates_to_two"], row["queries_to_two"], row["batches_to_two"]) == (1.0, 1.0, 1.0)
        assert (row["looked_at"] is not None) == (row["side"].startswith(("labels", "mixed")))
    assert rows[4]["state_bytes"] > rows[3]["state_bytes"]


def test_recorded_sets_have_a_line_each(tmp_path: Path) -> None:
    """Counting alone stands beside looks; a set without a folder is refused."""
    header = ",".join(f"{what}{card}" for card in range(1, 6) for what in "SR")
    lines = [",".join(str((row * card) % 4 + 1) for card in range(1, 11)) + f",{row % 3}" for row in range(30)]
    text = "\n".join([f"{header},ORD", *lines]) + "\n"
    (tmp_path / "poker_train25k.csv.gz").write_bytes(gzip.compress(text.encode()))
    options = ["bench", "labels", "--data", "poker", "--window", "20", "--repeats", "1"]
    result = CliRunner().invoke(main, [*options, "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["side"], row["labels"], row["criterion"]) for row in rows] == [
        ("poker", 3, "gini"),
        ("poker", 3, "entropy"),
    ]
    for row in rows:
        assert row["us_in_batches"] > 0 < row["us_counting"]
        assert 10 < row["questions"] <= 40
    for wrong, message in (
        (options, "expected a folder"),
        ([*options, "--folder", str(tmp_path / "..")], "poker_tr"),
    ):
        assert message in CliRunner().invoke(main, wrong).output


def test_a_stream_is_the_same_each_time() -> None:
    """Labels are among the K, and most examples have the feature of theirs."""
    made = stream(3, 200, 50)
    assert made == stream(3, 200, 50)
    assert {each.label for each in made} == {0, 1, 2}
    assert sum(each.label in each.features for each in made) > 120


def test_one_label_is_refused() -> None:
    """There is nothing to tell apart."""
    result = CliRunner().invoke(main, ["bench", "labels", "--labels", "1"])
    assert result.exit_code == 2
    assert "expected at least 2 labels" in result.output
