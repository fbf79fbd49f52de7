from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from worker.bench.splitter import Side, Terms, bench_splitter, table_for
from worker.commands import main


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "splitter", *arguments])


def _rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_way_and_depth_has_a_line_and_the_same_tree() -> None:
    """Ratios are to the first way; deeper trees have more nodes."""
    rows = _rows(_bench("--data", "random:0.002,single:80", "--depths", "1,2", "--repeats", "2"))
    ways = ["ordered", "map", "search", "either"]
    assert [(row["data"], row["depth"], row["side"]) for row in rows] == [
        (data, depth, way) for data in ("random:0.002", "single:80") for depth in (1, 2) for way in ways
    ]
    for start in range(0, len(rows), 4):
        assert len({row["nodes"] for row in rows[start : start + 4]}) == 1
        assert rows[start]["to_ordered"] == 1.0
    assert [rows[at]["nodes"] for at in (0, 4)] == [3, 5]
    assert rows[0]["density"] == pytest.approx(0.002, rel=0.1)
    assert (rows[-1]["examples"], rows[-1]["features"], rows[-1]["entries"]) == (10, 80, 80)


def test_the_dense_way_builds_the_same_tree(tmp_path: Path) -> None:
    """Of numbers, and of binary features, which are zeros and ones to it."""
    rng = np.random.default_rng(1)
    words = np.sort(rng.integers(0, 2**31, 60).reshape(20, 3) % 8 + np.array([0, 8, 16]), axis=1).astype(np.uint32)
    pointer, label = np.arange(0, 61, 3), rng.integers(0, 2, 20)
    np.savez(tmp_path / "a9a.npz", indptr=pointer, indices=words.ravel(), labels=label, shape=np.array([20, 24]))
    data = ("--data", "single:80,a9a", "--folder", str(tmp_path))
    rows = _rows(
        _bench(*data, "--depths", "3,none", "--repeats", "1", "--ways", "ordered,dense", "--examples", "20")
    )
    assert [row["side"] for row in rows] == ["ordered", "dense"] * 4
    for sparse, dense in zip(rows[::2], rows[1::2], strict=True):
        assert sparse["nodes"] == dense["nodes"] > 5


def test_recorded_sets_are_binary_or_numbers(tmp_path: Path) -> None:
    """Words that are present, counts of words and sensors, as their files hold them."""
    pointer, words = np.array([0, 1, 1, 3]), np.array([0, 0, 2], np.uint32)
    shape = np.array([3, 3])
    np.savez(tmp_path / "a9a.npz", indptr=pointer, indices=words, labels=np.array([1, 0, 1]), shape=shape)
    np.savez(
        tmp_path / "news20_bydate_train_counts.npz",
        indptr=pointer,
        indices=words,
        counts=np.array([1, 3, 2], np.uint16),
        labels=np.array([4, 9, 4]),
        shape=shape,
    )
    np.savez(tmp_path / "gas_sensor_drift_8of10.npz", X=np.array([[1.5, 0.0], [0.0, -2.0]]), gas=np.array([2, 6]))
    options = ("--folder", str(tmp_path), "--depths", "none", "--ways", "ordered", "--repeats", "1")
    rows = _rows(_bench("--data", "a9a,news20_counts,gas_sensor", *options))
    assert [(row["binary"], row["classes"], row["entries"], row["nodes"]) for row in rows] == [
        (True, 2, 3, 3),
        (False, 2, 3, 3),
        (False, 2, 2, 3),
    ]
    assert rows[0]["depth"] is None
    assert table_for("news20_counts", tmp_path, None).classes == ("4", "9")
    assert table_for("a9a", tmp_path, 2).label.tolist() == [1, 0]


def test_another_library_takes_turns_and_a_slow_side_is_not_run_again() -> None:
    """Lines have their times to the others; a side is run again until it has taken too long."""
    runs: list[str] = []

    def side(name: str) -> Side:
        return Side(name, lambda: len(runs.append(name) or runs))  # type: ignore[func-returns-value]

    terms = Terms("gini", [1], ["ordered"], 0, 3, 0.0)
    rows = list(
        bench_splitter(table_for("single:16", None, None), terms, lambda *_: [lambda _: side("other-one")])
    )
    assert runs == ["other-one"]
    sides = ["ordered", "ordered columns", "other-one"]
    assert [(row["side"], row["repeats"]) for row in rows] == [(side, 1) for side in sides]
    assert rows[2]["to_other_one"] == 1.0
    assert rows[0]["to_other_one"] * rows[2]["to_ordered"] == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--depths", "0"], "--depths: expected whole numbers from 1, or none, got '0'"),
        (["--data", "random:2"], "random:SHARE or single:FEATURES, got 'random:2'"),
        (["--data", "a9a"], "expected --folder with the file of a9a, got none; name the folder"),
    ],
)
def test_what_cannot_be_measured_is_told(arguments: list[str], problem: str) -> None:
    """The message says what was expected and what to do."""
    result = _bench(*arguments)
    assert result.exit_code != 0
    assert problem in " ".join(result.output.split())


def test_beside_scikit_learn() -> None:
    """Both build trees of the same size from a small matrix, sparse and dense."""
    pytest.importorskip("sklearn", reason="pip install 'anabranch[peers]'")
    rows = _rows(
        _bench("--data", "random:0.01", "--depths", "1", "--ways", "ordered", "--repeats", "1", "--sklearn")
    )
    theirs = ["scikit-learn", "scikit-learn rows", "scikit-learn dense"]
    assert [row["side"] for row in rows] == ["ordered", "ordered columns", *theirs]
    assert [row["nodes"] for row in rows] == [3] * 5
    assert rows[0]["to_scikit_learn"] > 0
