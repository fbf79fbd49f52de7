"""Streams whose examples are taken back again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition
from worker.sources import BadLine, Entry, Example
from worker.sources.updates import Updates, parse, with_deletes


def examples(count: int, keys: int = 1) -> list[Entry]:
    """Return inserts of some keys in turn, a second apart, ids counted."""
    return [
        Example(f"key {number % keys}", {"x": ["a"], "y": 1, "id": number, "ts": 1_000 * number + 1}, number + 1)
        for number in range(count)
    ]


def steps(entries: Iterable[Entry]) -> list[tuple[str, int]]:
    """Return op and id of each event."""
    return [(each.fields.get("op", "insert"), each.fields["id"]) for each in entries if isinstance(each, Example)]


def test_a_window_deletes_what_is_older() -> None:
    """Of each key the last W examples stay; a delete has key, line and time of what it follows from."""
    entries = list(with_deletes(examples(8, keys=2), Updates(window=2)))
    told = " ".join(f"{op[0]}{number}" for op, number in steps(entries))
    assert told == "i0 i1 i2 i3 i4 d0 i5 d1 i6 d2 i7 d3"
    assert entries[5] == Example("key 0", {"op": "delete", "id": 0, "ts": 4_001}, 5)


def test_random_deletes() -> None:
    """Each next event is a delete with the probability that was said, of a live example, all alike, each once."""
    made = steps(with_deletes(examples(4_000), parse("random:0.4,seed=3")))
    inserted: set[int] = set()
    ages = Counter[str]()
    for op, number in made:
        if op == "insert":
            inserted.add(number)
            continue
        ages["older half" if number < sorted(inserted)[len(inserted) // 2] else "newer half"] += 1
        inserted.remove(number)
    deletes = sum(op == "delete" for op, _ in made)
    assert deletes / len(made) == pytest.approx(0.4, abs=0.02)
    assert ages["older half"] / deletes == pytest.approx(0.5, abs=0.04)
    assert made == steps(with_deletes(examples(4_000), parse("random:0.4,seed=3")))
    assert made != steps(with_deletes(examples(4_000), parse("random:0.4,seed=4")))


def test_what_is_no_insert_passes() -> None:
    """Bad lines, predictions and deletes of the file itself stay as and where they are."""
    others: list[Entry] = [
        BadLine(1, "why"),
        Example("k", {"op": "predict", "x": ["a"]}, 2),
        Example("k", {"op": "delete", "id": 5}, 3),
    ]
    assert list(with_deletes(others, Updates(window=1))) == others


@pytest.mark.parametrize(
    "text", ["window:0", "window:", "random:0", "random:1", "random:1.5", "windows:3", "random:.5,seed=x"]
)
def test_what_is_expected_is_said(text: str) -> None:
    """Anything else is refused with what was expected."""
    with pytest.raises(ValueError, match=r"expected window:W as in window:1000, or random:P"):
        parse(text)


def test_publish_with_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`publish --updates` numbers the examples, and the model that learns from them holds what is left."""
    monkeypatch.chdir(tmp_path)
    Path("messages.tsv").write_text("".join(f"{'ham' if n % 2 else 'spam'}\tword {n}\n" for n in range(30)))
    Path("worker.yaml").write_text(
        "log: {embedded: events.db}\nmetrics: null\nmodels:\n"
        "  spam: {kind: split, input: sms, classes: [ham, spam], features: names, emit: {snapshots: {every: 1}}}\n"
    )
    publish = ["publish", "messages.tsv", "--to", "worker.yaml", "--format", "text", "--updates", "window:10"]
    result = CliRunner().invoke(main, publish)
    assert result.exit_code == 0, result.output
    assert "50 events" in result.output
    assert CliRunner().invoke(main, ["run", "worker.yaml", "--until-end"]).exit_code == 0
    shown = CliRunner().invoke(main, ["show", "events.db", "--topic", "sms.out", "--json"])
    assert '"counts": [[5.0, 5.0]' in shown.output.splitlines()[-1]
    with EmbeddedLog(tmp_path / "events.db", create=False) as log:
        assert log.watermarks(TopicPartition("sms.dead", 0)).high == 0
    refused = CliRunner().invoke(main, [*publish[:-1], "window"])
    assert refused.exit_code == 2
    assert "expected window:W" in refused.output
