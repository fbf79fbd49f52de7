"""Metrics, the page and the commands tell of what waits for its label, and of labels that came."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from tests.support.about import ABOUT
from worker.codec.event import encode_event
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.loop import Worker
from worker.settings import load
from worker.views.status_html import status_page
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard

_TREE = {"kind": "tree", "input": "t", "classes": ["a", "b"], "features": "names"}
MODELS = {
    "tree": _TREE | {"evaluate": {"emit": {"every": 2}}},
    "number": {"kind": "regression-tree", "input": "t", "features": "names", "evaluate": {"emit": {"every": 2}}},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return settings, and a log where some labels come, and others are too late."""
    path = tmp_path / "worker.yaml"
    told: dict[str, Any] = {
        "log": {"embedded": "log.db"},
        "models": MODELS,
        "topics": {"t": {"pending": {"max": 5, "for": "1d"}}},
    }
    path.write_text(yaml.safe_dump(told))
    values = [encode_event(["w", f"n{number}"], op="predict", id=number) for number in range(8)]
    values += [encode_event(op="label", id=number, y="a") for number in (1, 4, 5)]
    values += [encode_event(op="label", id=6, y=1.5), encode_event(op="delete", id=3)]
    values += [encode_event(["w"], op="predict", id=number) for number in (7, 8, 9)]
    values += [encode_event(["w"], 2.5, id=8), encode_event(["w"], 2.5)]
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic("t", 1)
        log.append(OutRecord("t", 0, b"key", value, (), 1_000) for value in values)
    return path


def _run(path: Path) -> tuple[CollectorRegistry, Status]:
    settings, registry, board = load(path, {}), CollectorRegistry(), StatusBoard(Status(0.0))
    with EmbeddedLog(path.parent / "log.db", group=settings.group) as log:
        listener = WorkerListener(Metrics(registry, "0"), board, count().__next__)
        Worker(log, settings, listener).run(lambda: False, until_end=True)
    return registry, board.status


def test_metrics_and_the_page(path: Path) -> None:
    """How many wait, how many labels came, in time or not, and how good the answers were that were given."""
    registry, status = _run(path)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"anabranch_{name}", labels)

    assert value("pending_examples", topic="t", partition="0") == 2
    assert (value("pending_bytes", topic="t", partition="0") or 0) > 1_000
    assert value("late_labels_total", topic="t", fate="learned") == 3
    assert value("late_labels_total", topic="t", fate="not-pending") == 1
    assert value("pending_gone_total", topic="t", why="deleted") == 1
    assert value("pending_gone_total", topic="t", why="inserted") == 1
    assert value("pending_gone_total", topic="t", why="crowded-out") == 3
    assert value("events_rejected_total", topic="t", reason="not-pending") == 1
    assert value("prequential_accuracy", model="tree", over="delayed") == 0.0
    assert value("prequential_accuracy", model="tree", over="all") == 0.5
    assert value("prequential_majority", model="tree", over="delayed") is None
    page = status_page(status, {}, 0.0, ABOUT)
    assert "<th>examples that wait for labels</th>" in page
    assert "Answers given, judged by labels that came later, over the window" in page


def test_show_has_both_figures(path: Path) -> None:
    """In a table of its own, and a line each."""
    _run(path)
    log = str(path.parent / "log.db")
    said = CliRunner().invoke(main, ["show", log, "--topic", "t.out"], env={"COLUMNS": "120"})
    assert said.exit_code == 0, said.output
    assert "delayed evaluation: of answers given" in said.output
    assert "evaluation: every example was predicted, then learned" in said.output
    said = CliRunner().invoke(main, ["show", log, "--topic", "t", "--json"])
    ops = [event["op"] for line in said.output.splitlines() for event in json.loads(line)["events"]]
    assert ops.count("label") == 4


def test_validate_tells_of_a_change(path: Path) -> None:
    """Before a start: what waits goes on by other limits, or goes."""
    _run(path)
    told = yaml.safe_load(path.read_text())
    told["topics"]["t"]["pending"]["max"] = 4
    path.write_text(yaml.safe_dump(told))
    said = CliRunner().invoke(main, ["validate", str(path), "--against", str(path.parent / "log.db")])
    assert said.exit_code == 0, said.output
    assert "  tree: kept\n  pending: others from here on\n" in said.output
    del told["topics"]
    path.write_text(yaml.safe_dump(told))
    said = CliRunner().invoke(main, ["validate", str(path), "--against", str(path.parent / "log.db")])
    assert "  pending: what waits for its label goes\n" in said.output


def test_publish_writes_labels(tmp_path: Path) -> None:
    """Rows of a file become labels, without their features."""
    (tmp_path / "labels.csv").write_text("id,label,age\np1,a,3\np2,b,4\n")
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic("t", 1)
    told = ["publish", str(tmp_path / "labels.csv"), "--log", str(tmp_path / "log.db"), "--topic", "t"]
    said = CliRunner().invoke(main, [*told, "--as", "label"])
    assert said.exit_code == 0, said.output
    said = CliRunner().invoke(main, ["show", str(tmp_path / "log.db"), "--topic", "t", "--json"])
    events = [event for line in said.output.splitlines() for event in json.loads(line)["events"]]
    assert [(event["op"], event["id"], event["label"]) for event in events] == [
        ("label", "p1", "a"),
        ("label", "p2", "b"),
    ]


def test_a_label_that_comes_twice_has_its_id_all_the_same(tmp_path: Path) -> None:
    """Ids of labels need not differ, unlike those of inserts; where no column is called id, it is asked for."""
    path = tmp_path / "labels.csv"
    path.write_text("id,label\np1,a\np1,b\n")
    said = CliRunner().invoke(main, ["publish", str(path), "--dry-run", "--as", "label"])
    assert said.exit_code == 0, said.output
    assert [json.loads(line)["id"] for line in said.stdout.splitlines() if line.startswith("{")] == ["p1", "p1"]
    path.write_text("request,label\np1,a\np2,b\n")
    said = CliRunner().invoke(main, ["publish", str(path), "--dry-run", "--as", "label"])
    assert said.exit_code == 1
    assert "expected to be told the id's column" in said.output
    numbered = ["--number-ids", "--ignore", "request"]
    said = CliRunner().invoke(main, ["publish", str(path), "--dry-run", "--as", "label", *numbered])
    assert said.exit_code == 0, said.output
