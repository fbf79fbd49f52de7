"""`bench labels`: a line for each number of labels, beside the index of two."""

import json

from click.testing import CliRunner

from worker.bench.labels import stream
from worker.commands import main


def test_each_number_of_labels_has_a_line() -> None:
    """Of both criteria, with times to those of the index of two labels; how many features a query scored."""
    options = ("--labels", "2,4", "--examples", "30", "--features", "20", "--window", "10", "--repeats", "1")
    result = CliRunner().invoke(main, ["bench", "labels", *options])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    sides = [("labels", 2), ("labels", 4)]
    others = {"gini": [("two labels", 2), ("counting", 2), ("numbers", 2)], "entropy": [("two labels", 2)]}
    assert [(row["criterion"], row["side"], row["labels"]) for row in rows] == [
        (criterion, *side) for criterion in ("gini", "entropy") for side in [*others[criterion], *sides]
    ]
    for row in rows:
        if row["side"] == "two labels":
            assert (row["updates_to_two"], row["queries_to_two"], row["looked_at"]) == (1.0, 1.0, None)
        elif row["side"] == "labels":
            assert 0 < row["looked_at"] <= 24
        assert row["us_per_update"] > 0
    assert rows[4]["state_bytes"] > rows[3]["state_bytes"]


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
