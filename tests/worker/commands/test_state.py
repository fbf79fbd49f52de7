"""`anabranch state`: what models hold of a key, of a group's state and of a recording, and how it is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from worker.audit import digest_of
from worker.codec.event import encode_event
from worker.commands import main
from worker.commands.running import worker_on
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition
from worker.settings import load

_BASE: dict[str, Any] = {"input": "t", "classes": ["a", "b"], "features": "names"}
MODELS: dict[str, Any] = {
    "split": _BASE | {"kind": "split", "expire": "30d"},
    "forgets": _BASE | {"kind": "dynamic-tree", "epsilon": 0},
    "grown": _BASE | {"kind": "tree", "on_delete": "ignore"},
}
_NOW = 1_700_000_000_000


def _learn(path: Path) -> None:
    """Let a worker learn all that there is."""
    settings = load(path, {})
    assert settings.log.embedded is not None
    with (
        EmbeddedLog(settings.log.embedded, group=settings.group) as log,
        worker_on(log, settings) as (worker, _),
    ):
        worker.run(lambda: False, until_end=True)


def _settings(folder: Path, **told: Any) -> Path:
    path = folder / "worker.yaml"
    log = {"log": {"embedded": str(folder / "log.db")}, "metrics": {"port": None}}
    path.write_text(yaml.safe_dump({**log, "models": MODELS, **told}))
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Return the settings of a worker that has learned six examples of two keys, in two partitions."""
    path = _settings(tmp_path)
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic("t", 2)
        log.append(
            OutRecord(
                "t", n % 2, b"key %d" % (n % 2), encode_event([f"w{n}", "w"], "ab"[n > 2], id=n), (), _NOW + n
            )
            for n in range(12)
        )
    _learn(path)
    return path


def _state(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["state", *map(str, arguments)])


def _lines(*arguments: object) -> list[dict[str, Any]]:
    result = _state(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


def test_keys_are_listed_with_what_models_hold(settings: Path) -> None:
    """Each model has a line for each key, with the partition where it is; the last use where keys expire."""
    found = _lines("list", settings)
    assert [(row["model"], row["partition"], row["key"]) for row in found] == [
        (model, number, f"key {number}") for number in (0, 1) for model in ("forgets", "grown", "split")
    ]
    assert [row["events"] for row in found] == [6] * 6
    assert [row.get("idle_since") for row in found[:3]] == [None, None, _NOW + 6], "by the clock"
    assert [row["key"] for row in _lines("list", settings, "--model", "split")] == ["key 0", "key 1"]
    short = _state("list", settings, "--limit", 4).output
    assert len(short.splitlines()) == 5
    assert "2 more; see them with --limit 6" in short


def test_a_recording_tells_the_same(settings: Path, tmp_path: Path) -> None:
    """What a recording's records lead to is what the group's state holds, settings included."""
    recording = tmp_path / "rec.db"
    assert CliRunner().invoke(main, ["record", str(settings), str(recording)]).exit_code == 0
    assert _lines("list", recording) == _lines("list", settings)
    assert _lines("show", recording, "key 1") == _lines("show", settings, "key 1")


def test_a_key_is_shown_by_those_models_that_have_it(settings: Path) -> None:
    """Where live examples are kept, their number is told."""
    shown = _state("show", settings, "key 1")
    assert shown.exit_code == 0
    assert "split: 6 live examples kept, 0 ids remembered" in shown.output
    assert "grown, t/1, key 1: events 6" in shown.output
    assert [row["model"] for row in _lines("show", settings, "key 1", "--model", "grown")] == ["grown"]
    assert _lines("show", settings, b"key 1".hex(), "--hex") == _lines("show", settings, "key 1")


def test_all_that_is_held_of_a_key_is_exported(settings: Path, tmp_path: Path) -> None:
    """Examples have their features, labels and weights, and digests where they had ids; no file is overwritten."""
    file = tmp_path / "key.json"
    assert _state("export", settings, "key 0", file).output == f"what 3 models hold of the key: {file}\n"
    told = json.loads(file.read_text())
    assert told["key"] == "key 0"
    by_model = {each["model"]: each for each in told["held"]}
    high, low = digest_of(4)
    [example] = [each for each in by_model["split"]["live"] if "w4" in each["x"]]
    assert example == {"id": f"{high:016x}{low:016x}", "label": 1, "weight": 1.0, "x": {"w": 1.0, "w4": 1.0}}
    assert by_model["forgets"]["live"] == by_model["split"]["live"]
    assert "live" not in by_model["grown"]
    again = _state("export", settings, "key 0", file)
    assert again.exit_code == 1
    assert f"expected {file} not to exist; remove it or name another" in again.output


def test_a_key_is_reset_by_a_tombstone(settings: Path) -> None:
    """It is published to the key's partition; once the worker has read it, no model holds the key."""
    dry = _state("reset", settings, "key 1", "--dry-run").output
    assert dry == "would publish a tombstone to t/1, key key 1\n"
    assert len(_lines("list", settings)) == 6
    assert _state("reset", settings, "key 1").output == "published a tombstone to t/1, key key 1\n"
    _learn(settings)
    assert {row["key"] for row in _lines("list", settings)} == {"key 0"}


def test_an_example_is_forgotten_by_a_delete(settings: Path) -> None:
    """Once the worker has read it, an audit finds nothing of the example, whose id is a number or text."""
    told = _state("forget", settings, "key 0", "4")
    assert told.output == "published a delete of 4 to t/0, key key 0\n"
    _learn(settings)
    live = {row["model"]: len(row["live"]) for row in _lines("show", settings, "key 0") if "live" in row}
    assert live == {"split": 5, "forgets": 5}
    audit = CliRunner().invoke(main, ["audit", str(settings), "--id", "4"])
    assert "split (split), t/0 below offset 7: nothing left" in audit.output


def test_only_what_is_there_is_forgotten(tmp_path: Path, settings: Path) -> None:
    """An unknown key, an id that no model has and a topic in another format are told, and nothing is published."""
    unknown = _state("reset", settings, "key 2")
    assert unknown.exit_code == 1
    assert "expected a key that models hold something of, 'key 2' is none; anabranch state list has them" in (
        unknown.output
    )
    only_kept = {name: model for name, model in MODELS.items() if name != "grown"}
    kept = _settings(tmp_path, models=only_kept)
    _learn(kept)
    for arguments in (["17"], ["4", "--text-id"]):
        result = _state("forget", kept, "key 0", *arguments)
        assert result.exit_code == 1
        assert "there is none; check the id (--text-id where 17 is text)" in result.output
    assert _state("show", kept, "zz", "--hex").exit_code == 2
    with EmbeddedLog(tmp_path / "log.db") as log:
        assert log.watermarks(TopicPartition("t", 0)).high == 6


def test_a_delete_is_not_written_in_a_format_that_is_not_read(tmp_path: Path) -> None:
    """Events of the topic are JSON: the message says who can send the delete; a tombstone is one in any format."""
    path = _settings(tmp_path, topics={"t": {"format": "json"}}, models={"split": MODELS["split"]})
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic("t", 1)
        log.append([OutRecord("t", 0, b"k", b'{"x": ["w"], "y": "a", "id": 1}', (), _NOW)])
    _learn(path)
    refused = _state("forget", path, "k", "1")
    assert refused.exit_code == 1
    assert "expected an input with format msgpack, which is what is published, got json of 't'" in refused.output
    assert _state("reset", path, "k").output == "published a tombstone to t/0, key k\n"
