"""What commands do with topics of other formats."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.support.format_runs import TIMESTAMP, examples, settings_of, started
from tests.support.other_formats import known, written
from worker.commands.publish import publish
from worker.commands.replay import replay
from worker.commands.show import show
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord


def _log(folder: Path, topic: dict[str, str], values: list[bytes]) -> Path:
    path = folder / "log.db"
    settings = settings_of(path, topic)
    (folder / "worker.yaml").write_text(json.dumps(settings.model_dump(mode="json", exclude_defaults=True)))
    with EmbeddedLog(path) as log:
        log.create_topic("in", 1)
        log.append(OutRecord("in", 0, b"k", value, (), TIMESTAMP) for value in values)
        started(log, settings, known()).run(lambda: False, until_end=True)
    return path


def _shown(*arguments: object) -> str:
    result = CliRunner().invoke(show, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_results_as_json_are_shown_and_compared_as_others_are(tmp_path: Path) -> None:
    """What people see of results does not depend on their format, and a replay gives their bytes."""
    values = [written(event, "json") for event in examples(60)] + [b"{"]
    for name, topic in (("json", {"format": "json", "results": "json"}), ("msgpack", {"format": "json"})):
        (tmp_path / name).mkdir()
        _log(tmp_path / name, topic, values)
    for arguments in (["--topic", "in.out"], ["--topic", "in.dead"], ["--topic", "in.out", "--json"]):
        ours, theirs = (_shown(tmp_path / name / "log.db", *arguments) for name in ("json", "msgpack"))
        assert ours == theirs
        assert ours
    folder = tmp_path / "json"
    files = [str(folder / name) for name in ("worker.yaml", "log.db", "again.db")]
    result = CliRunner().invoke(replay, [*files, "--expect", files[1]])
    assert result.exit_code == 0, result.output


def test_input_of_other_formats_is_shown_as_it_is(tmp_path: Path) -> None:
    """A JSON event is shown as its text, one with a schema by the schema's id; neither is called malformed."""
    path = tmp_path / "log.db"
    with EmbeddedLog(path) as log:
        log.create_topic("in", 1)
        values = [b'{"x": ["free"], "y": "spam"}', b'{"x": ', written({"x": ["a"], "y": "ham"}, "avro")]
        log.append(OutRecord("in", 0, b"k", value, (), TIMESTAMP) for value in values)
    text = _shown(path, "--topic", "in", "--last", "9")
    assert '{"x": ["free"], "y": "spam"}' in text
    assert "written with schema 1, " in text
    assert "malformed" not in text
    objects = [json.loads(line) for line in _shown(path, "--topic", "in", "--json").splitlines()]
    assert [each.get("json") for each in objects] == [{"x": ["free"], "y": "spam"}, None, None]
    assert (objects[1]["text"], objects[2]["schema"]) == ('{"x": ', 1)


def test_publish_does_not_write_what_the_worker_would_refuse(tmp_path: Path) -> None:
    """It writes msgpack events, and says so where the settings say that the topic has others."""
    _log(tmp_path, {"format": "json"}, [])
    file = tmp_path / "sms.tsv"
    file.write_text("ham\tsee you\n")
    result = CliRunner().invoke(publish, [str(file), "--to", str(tmp_path / "worker.yaml"), "--format", "text"])
    assert result.exit_code == 2
    assert "expected a topic with format msgpack" in result.output
    assert "'in' has format json" in " ".join(result.output.split())
