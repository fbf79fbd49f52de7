import json
import statistics
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from worker.bench.observers import (
    DISTRIBUTIONS,
    SIDES,
    TASKS,
    Sample,
    achieved,
    bench_observers,
    draw,
    ranks,
    watched,
)
from worker.commands import main


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "observers", *arguments])


def _rows(result: Result) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the lines of the only task and size by side, and the line of ranks."""
    assert result.exit_code == 0, result.output
    *rows, last = map(json.loads, result.stdout.splitlines())
    return {row["observer"]: row for row in rows}, last


@pytest.mark.slow
def test_observers_are_compared_on_the_same_samples() -> None:
    """Slots are fewer than values, the narrower the radius the more, and merits stay near those of E-BST."""
    rows, last = _rows(_bench("--sizes", "500", "--tasks", "cub", "--repeats", "2"))
    assert list(rows) == list(SIDES)
    assert all(row["samples"] == len(DISTRIBUTIONS) * 2 * 2 for row in rows.values())
    assert rows["ebst"]["elements"] == 500
    assert 500 > rows["tebst"]["elements"] > rows["qo-0.01"]["elements"] > rows["qo-deviation/3"]["elements"]
    assert rows["qo-first/3"]["elements"] > rows["qo-first/2"]["elements"] > 2
    assert rows["ebst"]["split_difference"] == 0.0
    for row in rows.values():
        assert 0.9 < row["achieved_to_ebst"] <= 1.0 + 1e-9
        assert row["merit_to_ebst"] == pytest.approx(row["achieved_to_ebst"], abs=0.02)
        assert row["observe_to_ebst"] > 0
    assert last["ranked"] == len(DISTRIBUTIONS)
    assert set(last["mean_ranks"]) == {"merit", "elements", "observe", "split"}
    assert last["mean_ranks"]["elements"]["ebst"] == len(SIDES)
    for means in last["mean_ranks"].values():
        assert sum(means.values()) == pytest.approx(len(SIDES) * (len(SIDES) + 1) / 2, abs=0.01)


def test_the_base_is_always_measured() -> None:
    """Whatever sides are named, E-BST is what they are compared with, and the same seed draws the same samples."""
    arguments = ("--sizes", "50", "--tasks", "lin", "--repeats", "1", "--sides", "qo-0.01", "--seed", "3")
    first, again = _rows(_bench(*arguments))[0], _rows(_bench(*arguments))[0]
    assert list(first) == ["ebst", "qo-0.01"]
    kept = ("merit", "elements", "split_difference", "achieved_to_ebst")
    assert [first["qo-0.01"][key] for key in kept] == [again["qo-0.01"][key] for key in kept]


def test_the_order_of_examples_changes_no_merit_of_what_keeps_all_values() -> None:
    """In ascending order E-BST finds the same splits, but for rounding."""
    arguments = ("--sizes", "60", "--tasks", "lin", "--repeats", "2", "--sides", "ebst")
    drawn, ascending = _rows(_bench(*arguments))[0]["ebst"], _rows(_bench(*arguments, "--ascending"))[0]["ebst"]
    assert (drawn["ascending"], ascending["ascending"]) == (False, True)
    assert ascending["merit"] == pytest.approx(drawn["merit"], rel=1e-3)


def test_equal_figures_share_a_rank() -> None:
    """The lowest is 1, and the mean of their ranks goes to equal ones."""
    assert ranks(np.array([3.0, 1.0, 3.0, 9.0])).tolist() == [2.5, 1.0, 2.5, 4.0]


def test_what_a_threshold_achieves_is_the_variance_reduction_of_the_sample() -> None:
    """The reduction is that of the definition, and of E-BST it is the merit itself."""
    rng = np.random.default_rng(1)
    sample = draw(DISTRIBUTIONS[0], "cub", 0.1, 200, rng)
    found = watched(SIDES["ebst"], sample)
    assert achieved(sample, found.threshold) == pytest.approx(found.merit, rel=1e-9)
    low = [y for x, y in zip(*sample, strict=True) if x <= 0.5]
    high = [y for x, y in zip(*sample, strict=True) if x > 0.5]
    parts = (len(low) * statistics.variance(low) + len(high) * statistics.variance(high)) / 200
    assert achieved(sample, 0.5) == pytest.approx(statistics.variance(sample.y.tolist()) - parts)
    assert achieved(sample, 1e9) == -np.inf


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda each: each.name)
def test_samples_are_drawn_as_the_table_says(distribution: Any) -> None:
    """Means and deviations are those of Table 1; noise moves a tenth of the values, and no label."""
    plain = draw(distribution, "lin", 0.0, 20_000, np.random.default_rng(5))
    means, spreads = zip(*distribution.parts, strict=True)
    if distribution.uniform:
        assert spreads[0] * 0.99 < plain.x.max() <= spreads[0]
        means, spreads = (0.0,), (spreads[0] / 3**0.5,)
    mean = statistics.mean(means)
    variance = statistics.mean(s**2 + (m - mean) ** 2 for m, s in zip(means, spreads, strict=True))
    assert plain.x.mean() == pytest.approx(mean, abs=0.05 * variance**0.5)
    assert plain.x.std() == pytest.approx(variance**0.5, rel=0.05)
    assert abs(np.corrcoef(plain.x, plain.y)[0, 1]) == pytest.approx(1.0)
    noisy = draw(distribution, "lin", 0.1, 20_000, np.random.default_rng(5))
    assert (noisy.y == plain.y).all()
    moved = noisy.x != plain.x
    assert moved.mean() == pytest.approx(0.1, abs=0.01)
    assert (noisy.x - plain.x)[moved].std() == pytest.approx(distribution.noise, rel=0.1)


def test_other_observers_can_be_measured_beside() -> None:
    """A side is anything that observes a sample and names a threshold."""

    class Middle:
        def observe(self, sample: Sample) -> None:
            self._middle = float(np.median(sample.x))

        def best(self) -> tuple[float, float]:
            return self._middle, 1.0

        def size(self) -> int:
            return 1

    sides = {"ebst": SIDES["ebst"], "middle": lambda sample: Middle()}
    *_, row, last = bench_observers(sides, TASKS[:1], [40], 1, 0)
    assert (row["observer"], row["elements"], row["merit"]) == ("middle", 1.0, 1.0)
    assert 0.5 < row["achieved_to_ebst"] < 1.0
    assert last["mean_ranks"]["elements"] == {"ebst": 2.0, "middle": 1.0}


@pytest.mark.skipif(find_spec("river") is not None, reason="river is installed")
def test_without_river_it_is_said_how_to_get_it() -> None:
    """--river without river ends with a message, not a traceback."""
    result = _bench("--river", "--sizes", "50", "--repeats", "1")
    assert result.exit_code != 0
    assert "anabranch[peers]" in result.output


def test_a_sample_of_one_is_refused() -> None:
    """A size that cannot be split is named."""
    result = _bench("--sizes", "1")
    assert result.exit_code != 0
    assert "at least 2 examples" in result.output
