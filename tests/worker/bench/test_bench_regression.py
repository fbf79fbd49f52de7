import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from algorithms.core.kinds import Kind
from worker.bench.numbers import recorded
from worker.bench.regression import SIDES, Terms, bench_regression, friedman, run_peer, words
from worker.commands import main


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "regression", *arguments])


def test_observers_are_compared_on_the_same_streams() -> None:
    """Every observer's tree beats the mean, fewer elements take less memory, and words need no observer."""
    result = _bench("--examples", "3000", "--repeats", "1", "--split-confidence", "0.05", "--tie-threshold", "0.3")
    assert result.exit_code == 0, result.output
    rows = list(map(json.loads, result.stdout.splitlines()))
    assert [(row["data"], row["side"]) for row in rows] == [
        *(("friedman", side) for side in SIDES),
        *(("words", side) for side in ("qo", "qo-linear", "qo-adaptive", "qo-interval")),
        *(("friedman_drift", side) for side in SIDES),
    ]
    for row in rows:
        assert row["examples"] == 3000
        assert row["r2"] < 1.0
        assert row["r2"] > (0.1 if row["data"] != "friedman_drift" else -1.0)
        assert row["mae"] < row["rmse"]
        assert row["leaves"] > 1
        assert row["us_per_example"] > 0
    by_side = {row["side"]: row for row in rows if row["data"] == "friedman"}
    assert by_side["qo"]["elements"] < by_side["qo-0.01"]["elements"] < by_side["ebst"]["elements"]
    assert by_side["qo"]["state_bytes"] < by_side["ebst"]["state_bytes"]
    assert by_side["qo-adaptive"]["rmse"] < 0.9 * by_side["qo"]["rmse"]
    assert next(row for row in rows if row["data"] == "words")["elements"] == 0
    with_intervals = [row for row in rows if row["side"] == "qo-interval"]
    assert [row["data"] for row in with_intervals] == ["friedman", "words", "friedman_drift"]
    for row in with_intervals:
        assert 0.87 < row["least_coverage"] <= row["coverage"] <= row["most_coverage"] < 0.93
    assert with_intervals[2]["coverage_of_the_hundreds_after"][0] < 0.85
    assert 200 <= with_intervals[2]["holds_again_after"] < 600
    assert {key for row in rows if row["side"] == "qo" for key in row if "coverage" in key} == set()


def test_trees_that_forget_are_beside_them() -> None:
    """On the same streams there are trees of all examples and of a window: these recover from a drift."""
    arguments = ("--streams", "friedman_drift,words", "--sides", "qo,forgets,forgets-1000")
    result = _bench("--examples", "3000", "--repeats", "1", *arguments)
    assert result.exit_code == 0, result.output
    rows = list(map(json.loads, result.stdout.splitlines()))
    assert [row["side"] for row in rows] == 2 * ["qo", "forgets", "forgets-1000"]
    assert [row["elements"] for row in rows if row["side"] == "forgets-1000"] == [1_000, 1_000]
    by_side = {row["side"]: row for row in rows if row["data"] == "friedman_drift"}
    assert by_side["forgets-1000"]["rmse"] < by_side["forgets"]["rmse"]
    assert all(row["leaves"] > 10 for row in rows if row["side"] != "qo")


def test_trees_with_a_guarantee_do_less_than_one_from_scratch() -> None:
    """An exact tree predicts what one built after each event does, and one that is near does less for it."""
    sides = ["forgets-exact", "forgets-beta", "forgets-scratch"]
    result = _bench("--examples", "1200", "--repeats", "1", "--streams", "friedman", "--sides", ",".join(sides))
    assert result.exit_code == 0, result.output
    exact, near, scratch = map(json.loads, result.stdout.splitlines())
    assert [exact["side"], near["side"], scratch["side"]] == sides
    assert exact["rmse"] == scratch["rmse"]
    assert near["rebuilt_per_example"] < exact["rebuilt_per_example"] < 0.5 * scratch["rebuilt_per_example"]
    assert scratch["scanned_per_example"] == 0


def test_a_peer_learns_what_is_present_after_it_predicted() -> None:
    """A regressor gets each example as a dict, is asked first and told then; its first word is not evaluated."""

    class Last:
        n_leaves = 1

        def __init__(self) -> None:
            self.seen: list[tuple[dict[int, float], float]] = []

        def predict_one(self, x: dict[int, float]) -> float:  # noqa: ARG002
            return self.seen[-1][1] if self.seen else 0.0

        def learn_one(self, x: dict[int, float], y: float) -> None:
            self.seen.append((x, y))

    stream = words(300, 1)
    last = Last()
    _, evaluated = run_peer(last, stream)
    measures = evaluated.measures()
    assert (measures.weight, measures.abstained) == (299.0, 1.0)
    assert measures.mae == pytest.approx(np.abs(np.diff(stream.y)).mean())
    assert [y for _, y in last.seen] == stream.y.tolist()
    assert last.seen[7][0] == dict.fromkeys(stream.feature[stream.pointer[7] : stream.pointer[8]].tolist(), 1.0)
    *_, row = bench_regression([stream], ["qo"], Terms(200, 1e-7, 0.05, 1), lambda terms: {"last": Last()})
    assert (row["side"], row["leaves"], row["mae"]) == ("last", 1, pytest.approx(measures.mae, rel=1e-3))


def test_streams_are_what_they_say() -> None:
    """Friedman's function has ten uniform features, five of which say nothing; words are in order, each once."""
    stream = friedman(5000, 3)
    x = stream.value.reshape(-1, 10)
    assert 0.0 <= x.min() <= x.max() <= 1.0
    told = np.abs([np.corrcoef(x[:, j], stream.y)[0, 1] for j in range(10)])
    assert told[[0, 1, 3, 4]].min() > 0.2 > 0.1 > told[5:].max()
    assert stream.kind == Kind.NUMERIC
    texts = words(500, 3)
    for at in range(500):
        assert (np.diff(texts.feature[texts.pointer[at] : texts.pointer[at + 1]]) > 0).all()
    assert texts.feature.max() < 2000
    again: dict[str, Any] = words(500, 3)._asdict()
    assert all(np.array_equal(each, again[name]) for name, each in texts._asdict().items())


def test_recorded_sets_are_streams(tmp_path: Path) -> None:
    """Numbers are features, texts are binary ones, of a time the hour and day; what has no label is left out."""
    lines = [
        "traffic_volume,holiday,temp,weather_main,date_time",
        "5545,None,288.5,Clouds,2012-10-02 09:00",
        "NA,None,1.0,Clouds,2012-10-02 10:00",
        "4516,Labor Day,,Rain,2012-10-06 00:00",
        "17,None,1.0,Clouds,2012-10-02 11:00",
    ]
    with gzip.open(tmp_path / "metro_traffic.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    stream = recorded("metro_traffic", tmp_path, 2)
    assert stream.y.tolist() == [5545.0, 4516.0]
    assert stream.pointer.tolist() == [0, 4, 8]
    assert dict(zip(stream.feature[:4].tolist(), stream.value[:4].tolist(), strict=True)) == {
        0: 288.5,
        1: 1.0,
        2: 9.0,
        3: 1.0,
    }
    assert stream.binary == {1, 4, 5}
    made = _bench("--streams", "metro_traffic", "--folder", str(tmp_path), "--repeats", "1", "--sides", "qo")
    assert json.loads(made.stdout)["examples"] == 3
    for arguments, wanted in (
        (["--streams", "ccpp"], "expected --folder"),
        (["--streams", "ccpp", "--folder", str(tmp_path)], "expected the file ccpp.csv.gz"),
    ):
        result = _bench(*arguments)
        assert result.exit_code != 0
        assert wanted in result.output


@pytest.mark.skipif(find_spec("river") is not None, reason="river is installed")
def test_without_river_it_is_said_how_to_get_it() -> None:
    """--river without river ends with a message, not a traceback."""
    result = _bench("--river", "--examples", "50", "--repeats", "1")
    assert result.exit_code != 0
    assert "anabranch[peers]" in result.output
