"""Late labels while models come, change and go, and while the limits of what waits change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.recordings import (
    CLICKS,
    WORDS,
    mixed,
    sample,
    understood,
    waiting,
    with_labels,
    write,
)
from tests.worker.state.test_epochs import NEW, SOURCES, Desk, die, offset_of, part
from worker.checkpoint.keys import unpack_key
from worker.codec import decode_output
from worker.commands import main
from worker.log.port import TopicPartition
from worker.loop import Worker
from worker.models import KINDS

RECORDS = list(with_labels(mixed(300, seed=5), seed=5))
FIRST, SECOND, LAST = 160, 120, len(RECORDS) - 280


class Waits(Desk):
    """A desk whose topics wait for labels."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        super().__init__(folder, **changes)
        self.told = yaml.safe_load(waiting(yaml.safe_dump(self.told, sort_keys=False)))
        self.models = self.told["models"]

    def publish(self, count: int) -> None:
        """Publish so many more records."""
        with self.log() as log:
            log.append(RECORDS[self.published : self.published + count])
        self.published += count

    def run(self, count: int = 0, made: Callable[[Worker], None] = lambda worker: None) -> list[dict[bytes, Any]]:
        """Publish so many records, and let a worker read to the end; return what its models hold."""
        workers: list[Worker] = []

        def kept(worker: Worker) -> None:
            workers.append(worker)
            made(worker)

        held = super().run(count, kept)
        for partition in workers[-1].partitions.values():
            partition.pipeline.late.check()
        return held


def undisturbed(folder: Path, told: dict[str, Any]) -> tuple[dict[TopicPartition, list[Any]], list[Any]]:
    """Return what a worker makes of all records that had these settings from the first on."""
    folder.mkdir()
    desk = Waits(folder)
    desk.told = copy.deepcopy(told) | {"log": {"embedded": "log.db"}}
    desk.models = desk.told["models"]
    held = desk.run(len(RECORDS))
    return desk.outputs(), held


def _kinds(outputs: dict[TopicPartition, list[Any]], models: list[str]) -> set[bytes | None]:
    return {dict(row[2])["type"] for found in part(outputs, models).values() for row in found}


@pytest.mark.slow
def test_models_come_change_and_go_while_examples_wait(tmp_path: Path) -> None:
    """The others write what they write without the changes; a new one what one writes that was always there."""
    desk = Waits(tmp_path)
    before = copy.deepcopy(desk.told)
    desk.run(FIRST)
    desk.models["late"] = {**NEW, "evaluate": {"window": 20, "emit": {"every": 5}}}
    desk.models["latest"] = {**NEW, "start": "latest"}
    del desk.models["forgetting"]
    added = desk.ends()
    desk.run(SECOND)
    desk.models["clicks"] |= {"criterion": "entropy"}
    desk.models["late"]["emit"] = {"snapshots": {"every": 7}}
    changed = desk.ends()
    held = desk.run(LAST)
    outputs = desk.outputs()
    expected, _ = undisturbed(tmp_path / "before", before)
    kept = sorted({"", *before["models"]} - {"clicks", "forgetting"})
    assert part(outputs, kept) == part(expected, kept)
    after, same = undisturbed(tmp_path / "after", desk.told)
    assert part(outputs, ["clicks"], changed) == part(after, ["clicks"], changed)
    assert part(outputs, ["late"], changed) == part(after, ["late"], changed)
    assert b"delayed-evaluation" in _kinds(part(outputs, ["late"], changed), ["late"])
    assert [model for model in held if model[b"name"] != "latest"] == [
        model for model in same if model[b"name"] != "latest"
    ]
    assert added != changed


def _changed(desk: Waits) -> None:
    """Let a model come that learns what was before it, and limits of one topic become others."""
    desk.models["late"] = {**NEW, "evaluate": {"window": 20, "emit": {"every": 5}}}
    desk.told["topics"][CLICKS]["pending"]["max"] = 12


@pytest.mark.slow
@pytest.mark.parametrize("share", [1, 1_000_000], ids=["record by record", "at once"])
def test_death_while_a_new_model_learns_from_late_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    """A worker may die at any step: what a model has pending for itself is in its checkpoints too."""
    monkeypatch.setattr("worker.loop.SHARE_BYTES", share)
    monkeypatch.setattr("worker.restore._BATCH", 7)
    told = {"checkpoint": {"records": 5, "bytes_per_second": 1 << 40}, "transaction": {"records": 20}}
    lives = []
    for name in ("lives", "dies"):
        (tmp_path / name).mkdir()
        desk = Waits(tmp_path / name, **told)
        desk.run(FIRST)
        _changed(desk)
        desk.publish(SECOND)
        if name == "dies":
            die(desk, 4 if share > 1 else 12)
        lives.append((desk.run(LAST), desk.outputs()))
    assert lives[0] == lives[1]


def test_labels_are_waited_for_from_an_offset_on(tmp_path: Path) -> None:
    """Before, they are refused; then other limits hold; in the end they are refused again, and nothing waits."""
    desk = Waits(tmp_path)
    topics = copy.deepcopy(desk.told["topics"])
    del desk.told["topics"]
    desk.run(FIRST)
    begun = desk.ends()
    desk.told["topics"] = topics
    held = desk.run(SECOND)
    assert held
    fewer = desk.ends()
    desk.told["topics"] = copy.deepcopy(topics)
    for topic in desk.told["topics"].values():
        topic["pending"]["max"] = 1
    desk.run(100)
    gone = desk.ends()
    del desk.told["topics"]
    desk.run(LAST - 100)
    late = part(desk.outputs(), [""])
    refused = {"before": 0, "begun": 0, "fewer": 0, "gone": 0}
    for target, found in late.items():
        source = TopicPartition(target.topic.rpartition(".")[0], target.partition)
        for row in found:
            letter = decode_output(row[1], row[2])
            if getattr(letter, "reason", "") == "not-pending":
                offset = offset_of(row)
                when = (
                    "before"
                    if offset < begun[source]
                    else "begun"
                    if offset < fewer[source]
                    else "fewer"
                    if offset < gone[source]
                    else "gone"
                )
                refused[when] += 1
                is_told = "no 'pending'" in letter.detail  # type: ignore[union-attr]
                assert is_told == (when in ("before", "gone"))
    assert all(refused.values())
    assert [dict(epoch.pending) for epoch in desk.epochs(SOURCES[0])] == [
        {},
        {"max": 30, "for": "2m"},
        {"max": 1, "for": "2m"},
        {},
    ]
    with desk.log() as log:
        state = log.read(TopicPartition(f"{WORDS}.state", 0), 0, 100_000)
    named = [
        unpack_key(key or b"") for key, value in zip(state.keys, state.values, strict=True) if value is not None
    ]
    assert {key.model for key in named if key.kind == "page"} <= set(desk.models)


@pytest.mark.slow
def test_a_recording_is_replayed_by_what_was_waited_for(tmp_path: Path) -> None:
    """A replay follows the limits of each time, and the models that came meanwhile."""
    desk = Waits(tmp_path)
    topics = desk.told.pop("topics")
    desk.run(80)
    desk.told["topics"] = topics
    desk.run(FIRST - 80)
    _changed(desk)
    desk.run(SECOND)
    desk.models["late"]["late_labels"] = False
    desk.run(LAST)
    settings = desk.settings
    assert settings.models["late"].late_labels is False
    recording = tmp_path / "recording.db"
    done = CliRunner().invoke(main, ["record", str(desk.folder / "worker.yaml"), str(recording)])
    assert done.exit_code == 0, done.output
    for at, options in enumerate(([], ["--batch", "7"], ["--batch", "5", "--restore-every", "3"])):
        output = tmp_path / f"{at}.db"
        expect = ["--expect", str(desk.folder / "log.db")]
        said = CliRunner().invoke(main, ["replay", str(recording), str(output), *expect, *options])
        assert said.exit_code == 0, said.output


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_replays_the_same(tmp_path: Path, kind: str) -> None:
    """A model of each kind that is registered learns the same from late labels, however its input is batched."""
    settings, recording, expected = (tmp_path / name for name in ("kind.yaml", "mixed.db", "expected.db"))
    models = {topic: sample(kind, topic) for topic in (WORDS, CLICKS)}
    told = yaml.safe_dump({"log": {"embedded": "mixed.db"}, "models": models}, sort_keys=False)
    settings.write_text(waiting(told))
    write(recording, understood(kind, with_labels(mixed(200))), {WORDS: 2, CLICKS: 2})
    runs = (["--batch", "1000"], ["--batch", "1"], ["--batch", "7", "--restore-every", "2"])
    for at, options in enumerate(runs):
        output = tmp_path / f"{at}.db" if at else expected
        expect = ["--expect", str(expected)] if at else []
        said = CliRunner().invoke(main, ["replay", str(settings), str(recording), str(output), *expect, *options])
        assert said.exit_code == 0, said.output
