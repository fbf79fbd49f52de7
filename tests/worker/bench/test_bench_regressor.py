from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from worker.bench.regressor import Grown, bench_regressor, scikit_learn
from worker.bench.splitter import table_for
from worker.commands import main


def test_each_depth_has_a_line_with_what_was_built() -> None:
    """Deeper trees have more nodes and less error; without a bound there is none, as no two examples are alike."""
    arguments = ["bench", "regressor", "--data", "single:80", "--depths", "1,2,none", "--repeats", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["side"], row["depth"], row["nodes"]) for row in rows] == [
        ("anabranch", 1, 3),
        ("anabranch", 2, rows[1]["nodes"]),
        ("anabranch", None, 19),
    ]
    assert rows[0]["mse"] > rows[1]["mse"] > rows[2]["mse"] == 0.0


def test_sides_take_turns_and_a_slow_one_is_left_out() -> None:
    """The ratio is to our side."""
    calls: list[str] = []

    def build() -> Grown:
        calls.append("peer")
        return Grown(5, 0.25)

    rows = list(
        bench_regressor(
            table_for("single:80", None, None), [1], 3, 0.0, lambda table: {"peer": lambda depth: build}
        )
    )
    assert [(row["side"], row["nodes"], row["repeats"]) for row in rows][1] == ("peer", 5, 1)
    assert calls == ["peer"]
    assert rows[0]["to_anabranch"] == 1.0


def test_scikit_learn_builds_the_same_tree() -> None:
    """Its tree has as many nodes and the same error, where no splits tie."""
    pytest.importorskip("sklearn")
    rows = list(bench_regressor(table_for("random:0.01", None, None), [3], 1, 60.0, scikit_learn))
    assert {row["nodes"] for row in rows} == {rows[0]["nodes"]}
    assert [row["mse"] for row in rows] == pytest.approx([rows[0]["mse"]] * 3)
