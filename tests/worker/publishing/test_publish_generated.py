import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.contents import contents
from tests.support.places import ROOT
from worker.codec import Bounds, decode_batch
from worker.codec.events import INSERT
from worker.codec.reference import Event
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition
from worker.publishing import publisher
from worker.sources.generators import GENERATORS, generate

NOW = 1_700_000_000_000
README = (ROOT / "worker" / "README.md").read_text("utf-8")


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def _publish(folder: Path, *arguments: object) -> list[Event]:
    """Publish what is as it should be, and return the events that a worker reads."""
    log = folder / "events.db"
    log.unlink(missing_ok=True)
    result = _run("publish", *arguments, "--log", log, "--topic", "t", "--timestamp", NOW)
    assert result.exit_code == 0, result.output
    with EmbeddedLog(log, create=False) as opened:
        records = opened.read(TopicPartition("t", 0), 0, 100_000)
    events, faults = decode_batch(records.values, records.timestamps, Bounds(), records.keys)
    assert not faults
    return [event for _, _, event in contents(events)]


def _expected(text: str, n: int, *, ids: bool) -> list[Event]:
    """Return the events that the examples of a generator stand for."""
    stream = generate(text)
    value, label = stream.take(n)
    names: list[Any] = [number if ids else each.name for number, each in enumerate(stream.schema.attributes)]
    events = []
    for row, y in zip(value.tolist(), label.tolist(), strict=True):
        present = [(name, number) for name, number in zip(names, row, strict=True) if number]
        features, values = tuple(name for name, _ in present), tuple(number for _, number in present)
        events.append(Event(INSERT, NOW, label=y, features=features, values=values))
    return events


@pytest.mark.parametrize("text", [*GENERATORS, "rtg:numerics=0,nominals=2,values=2", "sea+sea:function=3@20/10"])
@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--names"], False),
        (["--ids"], True),
        (["--ids", "--packed"], True),
        (["--ids", "--batch", "7"], True),
        (["--names", "--batch", "7"], False),
    ],
)
def test_events_are_the_examples(tmp_path: Path, text: str, options: list[str], ids: bool) -> None:
    """Every form holds the examples of the generator, with their values, by name or by number."""
    assert _publish(tmp_path, "--generate", text, "--events", 60, *options) == _expected(text, 60, ids=ids)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sea", r'{"key": "t", "x": {"attrib1": 6\.\d+, "attrib2": 1\.\d+, "attrib3": 6\.\d+}, "y": 1}'),
        ("agr", r'{"key": "t", "x": {"salary": 1088\d+\.\d+, "age": 57\.0, "elevel": 1, "car": 1, .*}, "y": 1}'),
        ("led", r'{"key": "t", "x": \[\d+(, \d+)*\], "y": \d}'),
    ],
)
def test_what_goes_by_what(text: str, shown: str) -> None:
    """Attributes go by name with their values; where all are binary, the numbers of those present are listed."""
    result = _run("publish", "--generate", text, "--topic", "t", "--dry-run")
    assert result.exit_code == 0
    assert re.fullmatch(shown, result.stdout.splitlines()[0])


def test_dry_run(tmp_path: Path) -> None:
    """A dry run needs no end, and prints events that can be published from a file."""
    for options in (["--ids"], ["--names"]):
        arguments = ["--generate", "agr:seed=7", *options]
        result = _run("publish", *arguments, "--topic", "t", "--dry-run")
        (tmp_path / "events.jsonl").write_text(result.stdout)
        assert len(result.stdout.splitlines()) == 5
        assert _publish(tmp_path, tmp_path / "events.jsonl") == _publish(tmp_path, *arguments, "--events", 5)


def test_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream goes on over chunks, and ends after as many events as were asked for."""
    arguments = ["--generate", "led:seed=7", "--limit", 2_500, "--number-ids"]
    whole = _publish(tmp_path, *arguments)
    monkeypatch.setattr(publisher, "CHUNK_EVENTS", 333)
    assert _publish(tmp_path, *arguments) == whole
    assert [event.id for event in whole] == list(range(2_500))


def test_labels_and_keys() -> None:
    """Classes can be renamed, and the key chosen."""
    arguments = ["--generate", "sea", "--map-label", "0=below,1=above", "--key-value", "k"]
    result = _run("publish", *arguments, "--topic", "t", "--dry-run")
    shown = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["y"] for event in shown] == [["below", "above"][y] for y in generate("sea").take(5).label]
    assert {event["key"] for event in shown} == {"k"}


def test_what_it_says(tmp_path: Path) -> None:
    """It ends with what was written."""
    log = tmp_path / "events.db"
    result = _run("publish", "--generate", "led", "--events", 1_000, "--log", log, "--topic", "t", "--batch", 500)
    assert result.stdout.startswith(f"1,000 events in 2 records to t (1 partition) of {log}\n")
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected FILE, --generate STREAM or --recording FILE, got none; name one"),
        (
            ["a.txt", "--generate", "sea"],
            "expected FILE, --generate STREAM or --recording FILE, got two; leave one out",
        ),
        (["--generate", "sea"], "expected --events N with --generate, as the stream has no end"),
        (["--generate", "sea", "--events", "9"], "expected --log FILE"),
        (["--generate", "sae", "--events", "9"], "Invalid value for --generate: expected one of sea, led"),
        (["--generate", "sea", "--events", "0"], "0 is not in the range x>=1"),
        (["--generate", "sea", "--format", "csv"], "expected no options about a file's format or columns"),
        (["--generate", "sea", "--label", "y"], "expected no options about a file's format or columns"),
        (["--generate", "sea", "--packed"], "for --packed, sea gives names; say --ids as well"),
        (["--generate", "led", "--packed", "--names"], "for --packed, led gives names; say --ids as well"),
        (["--generate", "led", "--packed", "--batch", "9"], "expected --packed or --batch, got both"),
        (["a.txt", "--ids"], "expected --ids and --names with --generate alone, got a file"),
    ],
)
def test_usage(arguments: list[str], message: str) -> None:
    """Options that mean nothing together are refused before anything is made."""
    result = _run("publish", *arguments, "--topic", "t")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's stream drifts, and the split that is best before is another one after."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANABRANCH_METRICS__PORT", "null")
    section = README.partition("## Streams to try it on")[2].partition("\n## ")[0]
    shell, code = (block for _, block in re.findall(r"```(sh|python)\n(.*?)```", section, re.DOTALL))
    settings, _, commands = shell.partition("END\n")[2].partition("END\n")
    (tmp_path / "led.yaml").write_text(settings)
    for command in commands.replace("\\\n", "").splitlines():
        result = _run(*command.partition("#")[0].split()[1:])
        assert result.exit_code == 0, result.output
    assert "#11" in result.stdout
    shown = _run("show", "led.db", "--topic", "led.out", "--json").stdout.splitlines()
    splits = [json.loads(line) for line in shown]
    before = [split["feature"] for split in splits if split["source"]["offset"] < 8_000]
    assert before[-1] == 4
    assert splits[-1]["feature"] == 11
    exec(compile(code, "README.md", "exec"), {})
