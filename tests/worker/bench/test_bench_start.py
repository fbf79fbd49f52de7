"""From a file to a result by the printed commands, beside the library, on small sets of the recorded forms."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from worker.bench import start
from worker.commands import main

ROWS = 400


def _bench(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "start", "--folder", str(folder), *arguments])


def _zipped(path: Path, lines: list[str]) -> None:
    with gzip.open(path, "wt") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small set in the form of each recorded one; its label follows a feature."""
    folder = tmp_path_factory.mktemp("sets")
    random = np.random.default_rng(1)
    label = random.integers(2, size=ROWS)
    names = "date,day,period,nswprice,nswdemand,vicprice,vicdemand,transfer,class"
    prices = [[*random.random(7).round(4), (y + random.random()).round(4)] for y in label]
    rows = [",".join(map(str, row)) + f",{'UP' if y else 'DOWN'}" for row, y in zip(prices, label, strict=True)]
    _zipped(folder / "electricity.csv.gz", [names, *rows])
    bits = [",".join(map(str, row)) for row in random.integers(2, size=(ROWS, 37))]
    protocols, attacks = ["udp", "tcp"], ["smurf.", "normal."]
    kdd = [f"{n % 9},{protocols[y]},http,SF,{bits[n]},{attacks[y]}" for n, y in enumerate(label)]
    _zipped(folder / "kddcup99_10pct.csv.gz", kdd)
    beginnings = ["ham\tsee", "spam\twin"]
    _zipped(folder / "sms_spam_raw.tsv.gz", [f"{beginnings[y]} you at {n}" for n, y in enumerate(label)])
    value = random.integers(-5, 300, size=(ROWS, 54)) * np.where(np.arange(54) < 10, 1, 0)
    value[:, 20] = label
    np.savez(folder / "covtype.npz", X=value.astype(np.int16), y=label + 1)
    ones = np.stack([2 * np.arange(ROWS) % 7 + 2, label + 20], axis=1)
    pointer = np.arange(0, 2 * ROWS + 1, 2, dtype=np.int32)
    np.savez(folder / "spam_katakis.npz", indptr=pointer, indices=ones.ravel().astype(np.int32), labels=label)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", start.SETS)
def test_three_commands_beside_the_library(sets: Path, name: str) -> None:
    """What the commands lead to is what the library does with the same rows, and nothing is refused."""
    result = _bench(sets, "--data", name, "--rows", "300")
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)
    assert [command.split()[1] for command in row["commands"]] == ["init", "publish", "run"]
    assert (row["rows"], row["refused"]) == (300, 0)
    assert row["points"] == pytest.approx(0.0, abs=0.01)
    assert row["accuracy"] > row["majority"]


def test_what_is_missing(tmp_path: Path) -> None:
    """A folder without the file of a set is told."""
    assert "expected the file covtype.npz in" in _bench(tmp_path, "--data", "covertype").stderr


def test_a_command_that_fails(tmp_path: Path) -> None:
    """All that it said is told."""
    _zipped(tmp_path / "sms_spam_raw.tsv.gz", ["ham\tsee you"] * 9)
    result = _bench(tmp_path, "--data", "sms")
    assert result.exit_code == 1
    assert "anabranch init sms_spam_raw.tsv.gz --format text ended with 1" in result.stderr
    assert "expected 2 to 1,000 classes, got 1" in result.stderr
