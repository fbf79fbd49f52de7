import importlib.util
import json
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from algorithms.trees.predict import Predict
from worker.bench.moa import RULES, Moa, MoaUnavailable, Terms, bench_moa, find_moa, write_arff
from worker.bench.tables import Table, csr, generated
from worker.broker import BrokerUnavailable
from worker.broker.jars import find_java
from worker.commands import main
from worker.sources.generators import BINARY, NUMERIC

TERMS = Terms(["HoeffdingTree", "EFDT"], Predict.MAJORITY, 50, 60, 1e-3, 0.05)
# Instead of Java: notes what it is told, and writes what the real one would.
_PROGRAM = """\
#!{python}
import json, pathlib, sys
task = sys.argv[4]
with open({notes!r}, "a") as notes:
    notes.write(json.dumps([sys.argv[1:4], task, pathlib.Path("table.arff").read_text()]) + "\\n")
if "EFDT" in task and {fails}:
    sys.exit("no such tree")
seconds = 0.5 if "NoChange" in task else 2.0
columns = "classifications correct (percent),tree size (leaves),evaluation time (cpu seconds)"
pathlib.Path("out.csv").write_text(f"{{columns}}\\n50.0,7.0,9.0\\n62.5,3.0,{{seconds}}\\n")
"""


def _peer(folder: Path, *, fails: bool = False) -> Moa:
    program = folder / "java"
    program.write_text(_PROGRAM.format(python=sys.executable, notes=str(folder / "notes"), fails=fails))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Moa("1.2.3", program, folder / "moa.jar")


def _notes(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "notes").read_text().splitlines()]


def _small() -> Table:
    """Return examples whose nominal feature says which of three classes it is."""
    label = np.arange(300) % 3
    value = np.stack([label, np.arange(300) % 7 / 4, np.arange(300) % 2], axis=1)
    pointer, feature, values = csr(value)
    kinds = np.array([3, NUMERIC, BINARY])
    return Table("small", pointer, feature, values, label, kinds, ("a", "b", "c"), ("x", "y", "z"))


def test_lines_of_both_sides(tmp_path: Path) -> None:
    """Each of MOA's trees gets a line, and ours one for each form of the bound, with how much better it is."""
    rows = list(bench_moa(_small(), _peer(tmp_path), TERMS))
    assert [row["side"] for row in rows] == ["moa", *["anabranch"] * len(RULES)] * 2
    for tree, own in (("HoeffdingTree", rows[:4]), ("EFDT", rows[4:])):
        theirs, *ours = own
        assert {row["tree"] for row in own} == {tree}
        assert {row["examples"] for row in own} == {300}
        told = {name: theirs[name] for name in ("accuracy", "leaves", "cpu_seconds", "reading_seconds")}
        assert told == {"accuracy": 0.625, "leaves": 3, "cpu_seconds": 2.0, "reading_seconds": 0.5}
        for row, rules in zip(ours, RULES, strict=True):
            assert {name: row[name] for name in rules} == rules
            assert row["leaves"] == 3
            assert row["accuracy"] > 0.7
            assert row["accuracy_above_moa"] == pytest.approx(row["accuracy"] - 0.625, abs=1e-3)
    assert rows[0]["versions"]["moa"] == "1.2.3"


def test_what_moa_is_told(tmp_path: Path) -> None:
    """It gets our parameters by its own names, and the examples in a file beside which it runs."""
    list(bench_moa(_small(), _peer(tmp_path), TERMS._replace(prediction=Predict.ADAPTIVE)))
    commands, tasks, files = zip(*_notes(tmp_path), strict=True)
    assert list(commands) == [["-cp", str(tmp_path / "moa.jar"), "moa.DoTask"]] * 3
    learners = [task.partition("-l (")[2].partition(")")[0] for task in tasks]
    assert learners == [
        "functions.NoChange",
        "trees.HoeffdingTree -g 50 -c 0.001 -t 0.05 -l NBAdaptive",
        "trees.EFDT -g 50 -c 0.001 -t 0.05 -l NBAdaptive -R 60",
    ]
    assert len(set(files)) == 1


def test_a_table_as_arff(tmp_path: Path) -> None:
    """Zeros are written out, categories are whole numbers, and numbers keep all their digits."""
    table = _small()
    write_arff(table, tmp_path / "table.arff")
    head, _, data = (tmp_path / "table.arff").read_text().partition("@data\n")
    assert head.splitlines()[1:] == [
        "@attribute f0 {0,1,2}",
        "@attribute f1 numeric",
        "@attribute f2 {0,1}",
        "@attribute class {c0,c1,c2}",
    ]
    assert data.splitlines()[:4] == ["0,0,0,c0", "1,0.25,1,c1", "2,0.5,0,c2", "0,0.75,1,c0"]
    assert len(data.splitlines()) == 300
    numbers = generated("rbf", 50)
    write_arff(numbers, tmp_path / "table.arff")
    rows = (tmp_path / "table.arff").read_text().partition("@data\n")[2].splitlines()
    read = [float(each) for row in rows for each in row.split(",")[:-1] if float(each) != 0.0]
    assert read == numbers.value.tolist()


def test_a_sparse_table_as_arff(tmp_path: Path) -> None:
    """Rows of few entries have these alone, by the number of the feature, and their class."""
    table = _small()._replace(
        pointer=np.array([0, 2, 2, 3]),
        feature=np.array([1, 30, 7], np.uint32),
        value=np.array([1.0, 1.0, 0.25]),
        label=np.array([2, 0, 1]),
        kinds=np.array([NUMERIC if at == 7 else BINARY for at in range(40)]),
    )
    write_arff(table, tmp_path / "table.arff")
    rows = (tmp_path / "table.arff").read_text().partition("@data\n")[2].splitlines()
    assert rows == ["{1 1, 30 1, 40 c2}", "{40 c0}", "{7 0.25, 40 c1}"]


def test_a_tree_that_moa_cannot_grow(tmp_path: Path) -> None:
    """Its line tells what MOA said, and all others have their figures."""
    rows = list(bench_moa(_small(), _peer(tmp_path, fails=True), TERMS))
    assert "no such tree" in rows[4]["refused"]
    assert [("accuracy" in row) for row in rows] == [True] * 4 + [False] + [True] * 3
    assert not any("accuracy_above_moa" in row for row in rows[5:])


def test_without_moa(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said how to get MOA, or Java, and our own lines are there all the same."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    arguments = ["bench", "moa", "--data", "sea", "--examples", "300", "--trees", "HoeffdingTree"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "MOA is skipped: expected MOA, found no package capymoa" in result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["side"] for row in rows] == ["anabranch"] * len(RULES)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(MoaUnavailable, match=r"expected Java .* JAVA_HOME"):
        find_moa(Path("moa.jar"))


def test_moa_itself() -> None:
    """MOA's tree and ours split a leaf of two classes alike."""
    if importlib.util.find_spec("capymoa") is None:
        pytest.skip("pip install --no-deps capymoa")
    try:
        find_java()
    except BrokerUnavailable as error:
        pytest.skip(str(error))
    rows = list(bench_moa(generated("sea", 3_000), find_moa(), TERMS._replace(trees=["HoeffdingTree"])))
    theirs, *_, ours = rows
    assert theirs["leaves"] == ours["leaves"] > 1
    assert ours["accuracy"] == pytest.approx(theirs["accuracy"], abs=0.02)
