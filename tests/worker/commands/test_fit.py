"""The command `fit`: which examples make the tree, that it is the oracle's, and how it comes out."""

from __future__ import annotations

import json
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from algorithms.core.criteria import UNIT
from algorithms.core.kinds import Kind
from tests.oracles.naive_dynamic import Example, Terms, build
from worker.codec.event import encode_batch, encode_event
from worker.codec.tree_parts import cut
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition

NOW = 1_700_000_000_000


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["fit", *map(str, arguments)])


def tree_of(*arguments: object) -> dict[str, Any]:
    """Return the tree that the command prints as JSON."""
    result = run(*arguments, "--draw", "json", "--timestamp", NOW)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def log_of(path: Path, *events: dict[str, Any] | bytes | None, key: bytes = b"k") -> Path:
    """Return a log with events of a key in the topic `t`; bytes are a record's value as it is."""
    with EmbeddedLog(path) as log:
        log.create_topic("t", 1)
        values = [encode_event(**each) if isinstance(each, dict) else each for each in events]
        log.append([OutRecord("t", 0, key, value, (), NOW) for value in values])
    return path


def test_the_tree_is_the_oracles(tmp_path: Path) -> None:
    """Names and ids, numbers and what is only present: each node is that of the builder in plain Python."""
    rng = random.Random(4)
    names = ["b", "a", "é", "aa"]
    rows = [
        (
            {name: rng.choice([-1.5, 2.0, 3.0]) if name < "b" else 1.0 for name in names if rng.random() < 0.6},
            label,
        )
        for label in rng.choices(["yes", "no", "maybe"], k=60)
    ]
    path = log_of(tmp_path / "r.db", *({"x": x, "y": y} for x, y in rows))
    place = {name: at for at, name in enumerate(sorted(names, key=str.encode))}
    classes = ["maybe", "no", "yes"]
    terms = Terms(classes=3, criterion="entropy", kinds={0: Kind.NUMERIC, 1: Kind.NUMERIC}, max_depth=4)
    examples = [Example({place[name]: value for name, value in x.items()}, classes.index(y)) for x, y in rows]
    expected = list(build(terms, examples, 0, count()).preorder())
    tree = tree_of(path, "--criterion", "entropy", "--max-depth", 4)
    assert tree["classes"] == classes
    ordered = sorted(names, key=str.encode)
    found = [None if at is None else tree["names"][at] for at in tree["feature"]]
    assert found == [None if node.feature is None else ordered[int(node.feature)] for node in expected]
    assert [at or 0.0 for at in tree["threshold"]] == [node.threshold for node in expected]
    counts = [[each / UNIT for each in terms.counts(node.all_examples())] for node in expected]
    assert tree["counts"] == counts
    assert len(expected) > 5


def test_what_is_deleted_is_not_in_the_tree(tmp_path: Path) -> None:
    """Deletes by id and by value, tombstones, and second inserts of an id are what they are to a model."""
    live: list[dict[str, Any]] = [{"x": [1], "y": 0}, {"x": [2], "y": 1}, {"x": [1], "y": 0, "id": "c"}]
    events = [
        None,  # a tombstone of nothing
        {"x": [3], "y": 7},
        None,
        {"x": [1], "y": 1, "id": "a"},
        {"x": [1], "y": 1},
        *live,
        {"x": [9], "y": 5, "id": "c"},  # refused: the id is alive
        {"op": "delete", "id": "a"},
        {"op": "delete", "x": [1], "y": 1},
        {"op": "delete", "x": [1], "y": 1},  # there is none left
        {"op": "delete", "id": "unknown"},
        {"op": "predict", "x": [4]},
    ]
    tree = tree_of(log_of(tmp_path / "all.db", *events))
    alone = tree_of(log_of(tmp_path / "live.db", *live))
    assert tree["classes"] == [0, 1]
    assert tree["version"] == 9
    assert alone["version"] == 3
    for column in ("node", "feature", "counts", "classes", "threshold"):
        assert tree[column] == alone[column]


def test_a_label_makes_an_example_of_its_predict(tmp_path: Path) -> None:
    """With its own weight; not where the predict has another key, was deleted, dropped, or learned already."""
    asked = [{"op": "predict", "id": n, "x": [n]} for n in range(6)]
    labels: list[dict[str, Any]] = [{"op": "label", "id": n, "y": n % 2} for n in range(6)]
    events = [
        {"op": "predict", "id": 9, "x": [9]},
        None,
        *asked,
        {"op": "predict", "id": 0, "x": [7]},  # takes the place of the first
        {"op": "delete", "id": 4},
        {"x": [8], "y": 1, "id": 5},
        *labels[:2],
        labels[2] | {"w": 2.0},
        *labels[3:],
        *labels[:1],  # a second time
        {"op": "label", "id": 9, "y": 7},
    ]
    path = log_of(tmp_path / "late.db", *events)
    log_of(path, {"op": "label", "id": 4, "y": 7}, key=b"other")
    same = [([7], 0, 1.0), ([1], 1, 1.0), ([2], 0, 2.0), ([3], 1, 1.0), ([8], 1, 1.0)]
    expected = log_of(tmp_path / "inserts.db", *({"x": x, "y": y, "w": w} for x, y, w in same))
    tree, alone = tree_of(path), tree_of(expected)
    for column in ("node", "feature", "counts", "classes", "threshold"):
        assert tree[column] == alone[column]
    assert tree["version"] == 5


def test_one_key_of_several(tmp_path: Path) -> None:
    """Examples of all keys make one tree, or those of the key that is named; an id belongs to its key."""
    path = log_of(tmp_path / "r.db", {"x": [1], "y": 0, "id": 5}, {"x": [2], "y": 1})
    log_of(path, {"x": [3], "y": 1, "id": 5}, {"x": [1], "y": 0}, {"x": [1], "y": 0}, key=b"other")
    assert tree_of(path)["counts"][0] == [3, 2]
    assert tree_of(path, "--only-key", "other")["counts"][0] == [2, 1]
    result = run(path, "--only-key", "none")
    assert result.exit_code == 1
    assert "expected examples with a label, got none" in result.output


def test_columnar_records_and_weights(tmp_path: Path) -> None:
    """A record in columns is its rows, and weights are those of the examples."""
    batch = encode_batch([[1], [2], [1]], [0, 1, 0], ws=[1.0, 2.5, 1.0])
    tree = tree_of(log_of(tmp_path / "r.db", batch))
    assert tree["counts"] == [[2, 2.5], [0, 2.5], [2, 0]]


def test_how_a_tree_grows(tmp_path: Path) -> None:
    """Leaves, drawn features and drawn examples are those of `build_tree`; the snapshot tells of them."""
    path = log_of(tmp_path / "r.db", *({"x": [1 + n % 7, 10 + n % 5], "y": n % 3} for n in range(40)))
    whole = tree_of(path)
    few = tree_of(path, "--max-leaves", 4)
    assert few["feature"].count(None) == 4
    assert few["parameters"]["max_leaves"] == 4
    assert whole["feature"].count(None) > 4
    drawn = [
        tree_of(path, "--max-features", 1, "--max-depth", 1, "--seed", seed)["feature"][0] for seed in range(9)
    ]
    assert len(set(drawn)) > 2
    bootstrap = tree_of(path, "--bootstrap", "--seed", 5)
    assert sum(bootstrap["counts"][0]) == 40
    assert bootstrap["counts"][0] != whole["counts"][0]


def test_a_file(tmp_path: Path) -> None:
    """A table is read as `publish` reads it; the tree is drawn."""
    path = tmp_path / "clicks.csv"
    path.write_text("clicked,age,country\n1,20,nz\n0,40,nz\n1,25,au\n0,50,au\n")
    result = run(path, "--label", "clicked")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "fit: tree of clicks  version 4, 3 nodes"
    assert lines[1].startswith("age")
    assert "32.5" in result.stdout
    for drawing, start in (("svg", "<svg"), ("dot", "digraph")):
        assert run(path, "--label", "clicked", "--draw", drawing).stdout.startswith(start)


@pytest.mark.parametrize("drawing", [(), ("--format", "svg"), ("--format", "json")])
def test_the_snapshot_is_what_show_reads(tmp_path: Path, drawing: tuple[str, ...]) -> None:
    """The record in the log has the same tree, drawn alike."""
    path, log = tmp_path / "a.svm", tmp_path / "trees.db"
    path.write_text("".join(f"{n % 3} {n % 3 + 1}:1 9:{n}.5\n" for n in range(20)))
    written = run(path, "-o", log, "--timestamp", NOW)
    assert written.exit_code == 0, written.output
    assert written.stdout.splitlines()[-1] == f"next: anabranch show {log} --topic a.out"
    shown = CliRunner().invoke(main, ["show", str(log), "--topic", "a.out", *drawing])
    assert shown.exit_code == 0, shown.output
    direct = run(path, "--timestamp", NOW, *(("--draw", drawing[1]) if drawing else ()))
    assert shown.stdout.rstrip("\n") == direct.stdout.rstrip("\n")


def test_a_large_tree_is_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that is too large for a record is put together again by `show`."""
    monkeypatch.setattr("worker.commands.fit.cut", lambda tree: cut(tree, most=200))
    path, log = tmp_path / "a.svm", tmp_path / "trees.db"
    path.write_text("".join(f"{n % 2} 1:{n + 1}\n" for n in range(40)))
    assert run(path, "-o", log).exit_code == 0
    shown = CliRunner().invoke(main, ["show", str(log), "--topic", "a.out", "--format", "json"])
    assert len(json.loads(shown.stdout)["node"]) == 79
    with EmbeddedLog(log, create=False) as opened:
        assert opened.watermarks(TopicPartition("a.out", 0)).high > 5


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        (
            "a.svm",
            "1.5 1:1\n2 1:2\n",
            (),
            "expected classes as labels, integers or names, got 1.5; grow a tree of num",
        ),
        ("a.svm", "1 1:1\n1 1:2\n", (), "expected two classes or more, got 1 alone"),
        ("a.csv", "y,a\n1,1\nred,1\n", (), "expected labels that are all integers or all names, got 1 and 'red'"),
        (
            "a.svm",
            "".join(f"{n} 1:1\n" for n in range(1001)),
            (),
            "expected at most 1000 classes, got 1,001; grow",
        ),
        ("a.svm", "1 1:1\n0 x\n", (), "a.svm:2: "),
        ("a.csv", "a,b\n1,2\n", (), "expected to be told the label's column, as none is called"),
        ("a.csv", "a,y\n1,0\n2,\n", (), "fill it in correct the line, or go on past such lines with --skip-bad"),
        ("a.csv", "y,w\n" + "0,2e9\n1,2e9\n" * 2_000, ("--weight", "w"), "expected weights below"),
        ("a.svm", "1 1:1\n", ("--alpha", "nan"), "expected a finite number, got nan"),
        ("a.svm", "1 1:1\n", ("--seed", 1 << 70), "is not in the range"),
        ("a.svm", "1 1:1\n", ("--max-depth", 1 << 70), "is not in the range"),
        ("a.svm", "1 1:1\n", ("--timestamp", 1 << 70), "is not in the range"),
        ("a.svm", "1 1:1\n", ("--label", "y"), "expected no options about columns"),
        ("a.xyz", "1 1:1\n", (), "say --format"),
        ("a.yaml", "log: {}\n", (), "expected a file of examples or a recording, got settings"),
        ("a.svm", "1 1:1\n", ("-o", "t.db", "--draw", "svg"), "expected --draw or --output, got both"),
    ],
)
def test_what_makes_no_tree_is_told(
    tmp_path: Path, name: str, text: str, options: tuple[str, ...], message: str
) -> None:
    """A message says what was expected, what came, and what to do."""
    (tmp_path / name).write_text(text)
    result = run(tmp_path / name, *options)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert isinstance(result.exception, SystemExit), "a traceback"
    assert "publish" not in result.output


def test_numbers_as_labels_are_told(tmp_path: Path) -> None:
    """More than fifty different ones are hardly classes; names are, and few numbers."""
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{n} {n + 1}:1\n" for n in range(51)))
    result = run(path)
    assert result.exit_code == 0
    assert "labels are classes here, and these are 51 different numbers" in result.stderr
    assert "kind regression-tree" in result.stderr
    for label in (str, lambda n: n % 50, lambda n: f"name {n}"):
        table = tmp_path / "a.csv"
        table.write_text("y,a\n" + "".join(f"{label(n)},{n}\n" for n in range(51)))
        result = run(table)
        assert result.exit_code == 0
        assert ("labels are classes" in result.stderr) == (label is str)


def test_what_is_no_event_is_passed_over(tmp_path: Path) -> None:
    """Of a recording it is told, as a worker goes on too; of a file only where that is asked for."""
    path = log_of(tmp_path / "r.db", {"x": [1], "y": 0}, b"junk", {"x": [2], "y": 1})
    result = run(path)
    assert result.exit_code == 0
    assert "passed over 1 record with what is no event, the first: t/0 offset 1: " in result.stderr
    result = run(log_of(tmp_path / "json.db", b'{"x": [1], "y": 0}', b'{"x": [2], "y": 1}'))
    assert result.exit_code == 1
    assert "expected events as msgpack in t, got none, the first record: t/0 offset 0: " in result.output
    lines = tmp_path / "a.svm"
    lines.write_text("1 1:1\n0 x\n0 2:1\n")
    result = run(lines, "--skip-bad")
    assert result.exit_code == 0
    assert "passed over 1 line\n" in result.stderr


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two logs of the same tree hold the same record."""
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{n % 2} {n + 1}:1\n" for n in range(10)))
    records = []
    for name in ("one.db", "two.db"):
        assert run(path, "-o", tmp_path / name, "--timestamp", NOW).exit_code == 0
        with EmbeddedLog(tmp_path / name, create=False) as log:
            read = log.read(TopicPartition("a.out", 0), 0, 10)
            records.append((read.values, read.keys, read.headers, read.timestamps.tolist()))
    assert records[0] == records[1]
    assert records[0][3] == [NOW]
