"""Settings that change: models that are kept, added, changed, removed, each by a restart with other settings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.support.about import ABOUT
from tests.support.model_contents import model_contents
from tests.support.recordings import CLICKS, PARTITIONS, WORDS, mixed, some_kinds
from tests.support.workers import worker_on
from tests.worker.state.test_crash import Plain
from worker.checkpoint import read_marks, returned
from worker.checkpoint.keys import unpack_key
from worker.codec import decode_output
from worker.epochs import Epoch, ModelEntry, unpack_epochs
from worker.log.embedded import EmbeddedLog
from worker.log.port import LARGEST_RECORD, LogError, OutRecord, OwnershipLost, TopicPartition
from worker.loop import Worker
from worker.restore import catch_up
from worker.settings import KafkaSettings, LogSettings, Settings, load
from worker.topics import create_topics
from worker.views.status_html import status_page
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard, comparisons

TOPICS = (WORDS, CLICKS)
SOURCES = [TopicPartition(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
RECORDS = list(mixed(400, seed=5))
Row = tuple[Any, ...]


class Desk:
    """A log and settings that change: each run of a worker publishes some records and reads them all."""

    kind: type[EmbeddedLog] = EmbeddedLog

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.told: dict[str, Any] = yaml.safe_load(some_kinds())
        self.told |= {"log": {"embedded": "log.db"}, "metrics": None, "transaction": {"records": 30}} | changes
        self.models: dict[str, Any] = self.told["models"]
        self.published = 0
        with self.log() as log:
            for topic in TOPICS:
                log.create_topic(topic, PARTITIONS)

    def log(self, group: str | None = None) -> EmbeddedLog:
        """Open the log, as a member of the group."""
        return self.kind(self.folder / "log.db", group=group or self.told.get("group", "anabranch"))

    @property
    def settings(self) -> Settings:
        """The settings as they are told now."""
        path = self.folder / "worker.yaml"
        path.write_text(yaml.safe_dump(self.told))
        return load(path, {})

    def publish(self, count: int) -> None:
        """Publish so many more records."""
        with self.log() as log:
            log.append(RECORDS[self.published : self.published + count])
        self.published += count

    def run(self, count: int = 0, made: Callable[[Worker], None] = lambda worker: None) -> list[dict[bytes, Any]]:
        """Publish so many records, and let a worker read to the end; return what its models hold."""
        self.publish(count)
        with self.log() as log:
            worker = worker_on(log, self.settings)
            made(worker)
            worker.run(lambda: False, until_end=True)
            return contents(worker)

    def ends(self) -> dict[TopicPartition, int]:
        """Return where each input partition ends."""
        with self.log() as log:
            return {source: log.watermarks(source).high for source in SOURCES}

    def epochs(self, source: TopicPartition) -> tuple[Epoch, ...]:
        """Return the epochs of a partition."""
        with self.log() as log:
            state = TopicPartition(f"{source.topic}.state", source.partition)
            return unpack_epochs(returned(read_marks(log, state, float, 5.0)).epochs)["anabranch"]

    def outputs(self) -> dict[TopicPartition, list[Row]]:
        """Return all results and dead letters."""
        with self.log() as log:
            return {
                TopicPartition(f"{source.topic}.{use}", source.partition): list(
                    rows(log, TopicPartition(f"{source.topic}.{use}", source.partition))
                )
                for source in SOURCES
                for use in ("out", "dead")
            }


def rows(log: EmbeddedLog, source: TopicPartition) -> Iterable[Row]:
    """Yield all records of a partition."""
    if log.partitions(source.topic) is None:
        return
    records = log.read(source, 0, 1_000_000)
    yield from zip(records.keys, records.values, records.headers, records.timestamps.tolist(), strict=True)


def contents(worker: Worker) -> list[dict[bytes, Any]]:
    """Return what all models hold."""
    found = []
    for _, partition in sorted(worker.partitions.items()):
        for model in partition.pipeline.models:
            model.check()
            found.append({b"name": model.name} | model_contents(model))
    return found


def model_of(row: Row) -> str:
    """Return whose result it is, "" for the decoder's."""
    return str(decode_output(row[1], row[2]).model or "")


def offset_of(row: Row) -> int:
    """Return the offset of the record that it follows from."""
    return int(decode_output(row[1], row[2]).source.offset)


def part(
    outputs: dict[TopicPartition, list[Row]],
    models: Sequence[str],
    ends: dict[TopicPartition, int] | None = None,
) -> dict[TopicPartition, list[Row]]:
    """Return the subsequence of some models, perhaps from the offsets of their inputs on."""
    least = {} if ends is None else {(source.topic, source.partition): end for source, end in ends.items()}
    return {
        target: [
            row
            for row in found
            if model_of(row) in models
            and offset_of(row) >= least.get((target.topic.rpartition(".")[0], target.partition), 0)
        ]
        for target, found in outputs.items()
    }


def undisturbed(
    folder: Path, told: dict[str, Any], count: int
) -> tuple[dict[TopicPartition, list[Row]], list[Any]]:
    """Return what a worker makes of so many records that had these settings from the first on."""
    folder.mkdir()
    desk = Desk(folder)
    desk.told = told | {"log": {"embedded": "log.db"}}
    desk.models = desk.told["models"]
    held = desk.run(count)
    return desk.outputs(), held


NEW = {"kind": "tree", "input": WORDS, "classes": ["ham", "spam"], "features": "names", "policy": "exact"} | {
    "delta": 0.3,
    "on_delete": "ignore",
    "evaluate": {"window": 20, "emit": {"every": 15}},
    "emit": {"snapshots": {"every": 10}},
}


@pytest.mark.slow
def test_models_come_change_and_go(tmp_path: Path) -> None:
    """The others' results are those of a run without the changes; the new ones' those of a run that had them."""
    desk = Desk(tmp_path)
    before = copy.deepcopy(desk.told)
    names = set(desk.models)
    desk.run(120)
    desk.models["late"] = {**NEW, "start": "earliest"}
    desk.models["later"] = {**NEW, "start": "latest"}
    added = desk.ends()
    desk.run(80)
    desk.models["clicks"] |= {"criterion": "entropy"}
    changed = desk.ends()
    desk.run(80)
    del desk.models["recent"]
    removed = desk.ends()
    desk.run(60)
    held = desk.run(60)
    outputs = desk.outputs()
    expected, _ = undisturbed(tmp_path / "before", before, 400)
    kept = sorted({"", *names} - {"clicks", "recent"})
    assert part(outputs, kept) == part(expected, kept)
    # What was removed wrote what it would have written, up to there.
    for target, found in part(outputs, ["recent"]).items():
        end = removed[TopicPartition(target.topic.rpartition(".")[0], target.partition)]
        assert found == [row for row in part(expected, ["recent"])[target] if offset_of(row) < end]
    after, same = undisturbed(tmp_path / "after", {**desk.told, "start": "earliest"}, 400)
    for name, since in (("late", added), ("clicks", changed)):
        assert sum(map(len, part(after, [name], since).values())) > 20
        recent = part(outputs, [name])
        if name == "clicks":
            old = part(expected, [name])
            for target, found in recent.items():
                end = since[TopicPartition(target.topic.rpartition(".")[0], target.partition)]
                assert found[: len(found) - len(part(after, [name], since)[target])] == [
                    row for row in old[target] if offset_of(row) < end
                ]
                assert (
                    found[len([row for row in old[target] if offset_of(row) < end]) :]
                    == part(after, [name], since)[target]
                )
        else:
            assert recent == part(after, [name], since)
    # One that begins at the end has seen only what came since.
    desk_of_late = [model for model in held if model[b"name"] == "later"]
    assert desk_of_late != [model for model in same if model[b"name"] == "later"]
    assert [model for model in held if model[b"name"] != "later"] == [
        model for model in same if model[b"name"] != "later"
    ]
    # What was removed is in no state any more.
    with desk.log() as log:
        state = log.read(TopicPartition(f"{WORDS}.state", 0), 0, 100_000)
    named = [
        unpack_key(key or b"") for key, value in zip(state.keys, state.values, strict=True) if value is not None
    ]
    assert {key.model for key in named if key.kind in ("page", "manifest")} == {
        name for name, model in desk.models.items() if model["input"] == WORDS
    }
    assert [epoch.number for epoch in desk.epochs(TopicPartition(WORDS, 0))] == [1, 2, 3]
    assert [epoch.number for epoch in desk.epochs(TopicPartition(CLICKS, 0))] == [1, 2]


class Died(BaseException):
    """The end of a worker's life."""


def deaths(count: int) -> Callable[[Worker], None]:
    """Return what lets a worker die at the so-manieth step of bringing partitions up, commits included."""
    left = count

    def made(worker: Worker) -> None:
        commit, log = worker.commit, worker._log

        def dying(step: Callable[..., Any], *, done: bool) -> Callable[..., Any]:
            def call(*given: Any) -> Any:
                nonlocal left
                left -= 1
                if left == 0 and not done:
                    raise Died
                result = step(*given)
                if left == 0:
                    raise Died
                return result

            return call

        worker.commit = dying(commit, done=False)  # type: ignore[method-assign]
        log.commit = dying(log.commit, done=True)  # type: ignore[method-assign]
        log.reader = dying(log.reader, done=True)  # type: ignore[method-assign]

    return made


def die(desk: Desk, stride: int, deadly: Callable[[int], Callable[[Worker], None]] = deaths) -> None:
    """Let workers die at ever later steps, until a worker lives: there is no later step then.

    How many steps there are depends on time too, so no test counts them.
    """
    at, lives = 1, False
    while not lives:
        try:
            desk.run(0, deadly(at))
            lives = True
        except Died:
            at += max(stride, at // 3)
    assert at > stride, "no worker died"


@pytest.mark.slow
@pytest.mark.parametrize("share", [1, 1_000_000], ids=["record by record", "at once"])
def test_death_around_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    """A worker may die at any step of a change: before it restarts under the old settings, after under the new."""
    monkeypatch.setattr("worker.loop.SHARE_BYTES", share)
    monkeypatch.setattr("worker.restore._BATCH", 7)
    told = {"checkpoint": {"records": 5, "bytes_per_second": 1 << 40}, "transaction": {"records": 20}}
    desk = Desk(tmp_path, **told)
    desk.run(150)
    desk.models["late"] = {**NEW}
    desk.models["clicks"] |= {"criterion": "entropy"}
    del desk.models["recent"]
    desk.publish(60)
    die(desk, 4 if share > 1 else 8)
    held = desk.run(190)
    after, same = undisturbed(tmp_path / "after", desk.told, 400)
    assert held == same
    names = sorted({"", *desk.models} - {"clicks", "late"})
    assert part(desk.outputs(), names) == part(after, names)
    for source in SOURCES:
        assert [epoch.number for epoch in desk.epochs(source)] == [1, 2]
    [joined] = {epoch.models["late"].joined for epoch in desk.epochs(SOURCES[0])[1:]}
    late = part(desk.outputs(), ["late"])[TopicPartition("words.out", 0)]
    assert late == [
        row for row in part(after, ["late"])[TopicPartition("words.out", 0)] if offset_of(row) >= joined
    ]


@pytest.mark.slow
def test_timing_and_bounds_change_and_the_state_stays(tmp_path: Path) -> None:
    """What only says when results are written, and bounds, change from the committed offset on."""
    desk = Desk(tmp_path)
    before = copy.deepcopy(desk.told)
    desk.run(200)
    ends = desk.ends()
    desk.models["everything"]["emit"] = {"splits": {"every": 3}, "snapshots": "change"}
    desk.models["tree"]["evaluate"]["emit"] = {"every": 4}
    desk.models["tree"]["emit"] = {"splits": "never", "snapshots": {"every": 6}}
    desk.models["forgetting"]["emit"] = {"snapshots": {"every": 5}}
    desk.models["forgetting-clicks"]["emit"] = {"snapshots": {"every": 4}}
    held = desk.run(200)
    expected, _ = undisturbed(tmp_path / "before", before, 400)
    after, same = undisturbed(tmp_path / "after", desk.told, 400)
    assert held == same
    for name in desk.models:
        found, old = part(desk.outputs(), [name]), part(expected, [name])
        new = part(after, [name], ends)
        for target, rows_ in found.items():
            end = ends[TopicPartition(target.topic.rpartition(".")[0], target.partition)]
            assert rows_ == [row for row in old[target] if offset_of(row) < end] + new[target], name
    assert sum(map(len, part(after, ["tree"], ends).values())) > 10
    assert {epoch.models["tree"].first for epoch in desk.epochs(SOURCES[0])} == {0}
    # Bounds: a smaller record is refused from here on, before it was taken.
    at = desk.ends()
    desk.told["bounds"] |= {"features": 2}
    desk.published = 0
    desk.run(400)
    letters = [
        row
        for target, found in part(desk.outputs(), [""], at).items()
        for row in found
        if b"features" in row[1] and target.topic.endswith(".dead")
    ]
    assert letters


def test_going_back_on_one_machine(tmp_path: Path) -> None:
    """On an embedded log nobody else can have older settings: they may be taken back at any time."""
    desk = Desk(tmp_path)
    before = sum(model["input"] == SOURCES[0].topic for model in desk.models.values())
    desk.run(50)
    desk.models["late"] = NEW
    desk.run(50)
    del desk.models["late"]
    desk.run(50)
    assert [len(epoch.models) for epoch in desk.epochs(SOURCES[0])] == [before, before + 1, before]


class Shared(Desk):
    """A desk whose settings say that there are other workers."""

    guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once"

    @property
    def settings(self) -> Settings:
        """The settings as they are told now."""
        kafka = KafkaSettings(bootstrap="nowhere:9092", guarantee=self.guarantee)
        return super().settings.model_copy(update={"log": LogSettings(kafka=kafka)})

    def prepared(self) -> Shared:
        """Create the topics, as somebody does in a cluster."""
        with self.log() as log:
            create_topics(log, self.settings)
        return self


def test_an_older_worker_never_flips_back(tmp_path: Path) -> None:
    """One that is started late is refused, one that runs goes on by the newer settings; `revision` goes back."""
    desk = Shared(tmp_path).prepared()
    desk.run(50)
    old = copy.deepcopy(desk.told)
    desk.models["late"] = NEW
    desk.run(50)
    new = copy.deepcopy(desk.told)
    desk.told = old
    with pytest.raises(LogError, match=r"to go back to these on purpose, say so in them: revision: 1$"):
        desk.run(10)

    def running(worker: Worker) -> None:
        worker._has_run = True

    with capture_logs() as lines:
        held = desk.run(30, running)
    assert "late" in [model[b"name"] for model in held]
    assert sum("newer settings than this worker" in line["event"] for line in lines) == 4 - PARTITIONS
    assert [epoch.number for epoch in desk.epochs(SOURCES[0])] == [1, 2]
    desk.told = old | {"revision": 1}
    assert "late" not in [model[b"name"] for model in desk.run(30)]
    desk.told = new
    with pytest.raises(LogError, match=r"say so in them: revision: 2$"):
        desk.run(10)
    assert [epoch.revision for epoch in desk.epochs(SOURCES[0])] == [0, 0, 1]


class Loose(Shared):
    """A desk whose log writes without transactions."""

    kind = Plain
    guarantee = "at_least_once"


def deaths_while_writing(count: int) -> Callable[[Worker], None]:
    """Return what lets a worker die before it writes for the so-manieth time."""
    left = count

    def made(worker: Worker) -> None:
        log = worker._log
        assert isinstance(log, EmbeddedLog)
        append = log.append

        def dying(records: Iterable[OutRecord]) -> int:
            nonlocal left
            left -= 1
            if left == 0:
                raise Died
            return append(records)

        log.append = dying  # type: ignore[method-assign]

    return made


@pytest.mark.slow
def test_death_around_a_change_at_least_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without transactions results may come again; none is missing, none differs, and the models are right."""
    monkeypatch.setattr("worker.loop.SHARE_BYTES", 20_000)
    monkeypatch.setattr("worker.restore._BATCH", 7)
    told = {"checkpoint": {"records": 5, "bytes_per_second": 1 << 40}, "transaction": {"records": 20}}
    desk = Loose(tmp_path, **told).prepared()
    desk.run(150)
    desk.models["late"] = {**NEW}
    desk.models["clicks"] |= {"criterion": "entropy"}
    del desk.models["recent"]
    desk.publish(60)
    die(desk, 3, deaths_while_writing)
    held = desk.run(190)
    after, same = undisturbed(tmp_path / "after", desk.told, 400)
    assert held == same
    names = sorted({"", *desk.models} - {"clicks", "late"})
    found = {target: list(dict.fromkeys(rows_)) for target, rows_ in part(desk.outputs(), names).items()}
    assert found == part(after, names)
    assert [epoch.number for epoch in desk.epochs(SOURCES[0])] == [1, 2]


@pytest.mark.slow
def test_what_was_learned_silently_is_not_learned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints on the way: a worker that dies while new models learn goes on where the last one was."""
    monkeypatch.setattr("worker.restore._BATCH", 7)
    monkeypatch.setattr("worker.loop._RESTORE_SECONDS", 1e-4)
    desk = Desk(tmp_path, checkpoint={"records": 20, "bytes_per_second": 1 << 40})
    desk.run(300)
    desk.models["late"] = NEW
    steps = catch_up

    def interrupted(*given: Any) -> Iterator[int]:
        for at, remaining in enumerate(steps(*given)):
            if at == 8:
                raise Died
            yield remaining

    with monkeypatch.context() as patch:
        patch.setattr("worker.loop.catch_up", interrupted)
        with capture_logs() as lines, pytest.raises(Died):
            desk.run()
    first = next(line for line in lines if "learn what was before them" in line["event"])
    with capture_logs() as lines:
        held = desk.run(100)
    again = [line for line in lines if "have learned" in line["event"] and _place(line) == _place(first)]
    assert [line["offsets"] for line in again] == [pytest.approx(first["offsets"] - 45, abs=20)]
    assert held == undisturbed(tmp_path / "after", desk.told, 400)[1]


def _place(line: Mapping[str, Any]) -> tuple[str, int]:
    return line["topic"], line["partition"]


def test_models_that_would_lose_something(tmp_path: Path) -> None:
    """A change that loses what was learned is told as a warning, or refused where the settings say so."""
    desk = Desk(tmp_path, on_change="refuse")
    desk.run(50)
    desk.models["late"] = NEW
    with capture_logs() as lines:
        desk.run(10)
    said = [line for line in lines if line["event"].startswith("settings change")]
    assert {(line["log_level"], line["event"], tuple(line["added"])) for line in said} == {
        ("info", "settings change", ("late",))
    }
    assert [line["offsets_to_learn"] for line in said] == [line["offset"] for line in said]
    desk.models["late"] = NEW | {"delta": 0.2}
    del desk.models["recent"]
    with pytest.raises(
        LogError, match=r"got some that change late and remove recent; .*ANABRANCH_ON_CHANGE=apply"
    ):
        desk.run(10)
    desk.told["on_change"] = "apply"
    with capture_logs() as lines:
        desk.run(10)
    said = [line for line in lines if line["event"].startswith("settings change")]
    assert {(line["log_level"], *line["changed"], *line["removed"]) for line in said} == {
        ("warning", "late", "recent")
    }


def test_the_format_of_a_topic_cannot_change(tmp_path: Path) -> None:
    """Nobody could say how to read a record again; the message says what was there, and the old format goes on."""
    desk = Desk(tmp_path)
    desk.run(50)
    for added in (False, True):  # before and after the first change
        topic = SOURCES[0].topic
        desk.told["topics"] = {topic: {"results": "json"}}
        with pytest.raises(LogError, match=r'\(msgpack\), got \{"results": "json"\}: .* Go back to those'):
            desk.run(10)
        desk.told["topics"] = {}
        desk.run(10)
        if not added:
            desk.models["late"] = NEW
            desk.run(10)


def test_without_checkpoints_settings_cannot_change(tmp_path: Path) -> None:
    """Nothing could tell later which settings held where; nothing of it is silent."""
    desk = Desk(tmp_path, checkpoint=None)
    desk.run(50)
    desk.run(10)
    desk.models["late"] = NEW
    with pytest.raises(LogError, match="without checkpoints nothing tells which settings held where"):
        desk.run(10)


def test_a_kind_that_behaves_otherwise_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version whose kind has a higher number replaces its models; the older one says that it cannot run them."""
    from worker import models

    desk = Desk(tmp_path)
    desk.run(100)
    with monkeypatch.context() as patch:
        newer = {name: kind._replace(behaviour=2 if name == "tree" else 1) for name, kind in models.KINDS.items()}
        for name, kind in newer.items():
            patch.setitem(models.KINDS, name, kind)
        with capture_logs() as lines:
            desk.run(50)
        assert {tuple(line["changed"]) for line in lines if "settings change" in line["event"]} == {
            ("tree",),
            ("tree-clicks",),
        }
    with capture_logs() as lines:
        desk.run(10)  # on one machine it is the worker's choice again
    assert any("changed" in line for line in lines)


def test_records_that_a_new_model_was_to_learn_go_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeat of an interrupted silent replay begins with what is left, and the epoch says so."""
    monkeypatch.setattr("worker.restore._BATCH", 7)
    desk = Desk(tmp_path)
    desk.run(150)
    desk.models["late"] = NEW
    source = TopicPartition(WORDS, 0)
    steps = catch_up

    def interrupted(*given: Any) -> Iterator[int]:
        for at, remaining in enumerate(steps(*given)):
            if at == 2:
                raise Died
            yield remaining

    monkeypatch.setattr("worker.loop.catch_up", interrupted)
    with pytest.raises(Died):
        desk.run()
    monkeypatch.setattr("worker.loop.catch_up", steps)
    with desk.log() as log:
        log.truncate(source, 20)
    with capture_logs() as lines:
        desk.run(20)
    assert [line["begun_anew"] for line in lines if "begun_anew" in line] == [["late"]]
    entries = [epoch.models["late"] for epoch in desk.epochs(source)[1:]]
    joined = entries[0].joined
    assert [(entry.first, entry.joined) for entry in entries] == [(0, joined), (20, joined)]
    assert [line["offsets"] for line in lines if "have learned" in line["event"]][-1] > 0


def test_a_shadow_learns_and_only_its_evaluations_are_written(tmp_path: Path) -> None:
    """It is compared with the models of its input; without the flag it goes on with its state, and writes all."""
    desk = Desk(tmp_path)
    desk.models["shadow"] = NEW | {"shadow": True, "on_delete": "reject"}
    board, registry = StatusBoard(Status(0.0)), CollectorRegistry()
    desk.publish(300)
    with desk.log() as log:
        listener = WorkerListener(Metrics(registry, "0"), board, count().__next__)
        Worker(log, desk.settings, listener).run(lambda: False, until_end=True)
    page = status_page(board.status, {}, 0.0, ABOUT)
    assert "<td>shadow (shadow)</td>" in page
    beside = {each.beside: each for each in comparisons(board.status.models)}
    judged = {name for name, told in desk.models.items() if {"classes", "evaluate"} <= told.keys()}
    assert set(beside) == {name for name in judged if desk.models[name]["input"] == WORDS} - {"shadow"}
    assert len(beside) >= 2
    for name, each in beside.items():
        assert registry.get_sample_value(
            "anabranch_shadow_lead", {"model": "shadow", "beside": name}
        ) == pytest.approx(each.accuracy - each.theirs)
        assert f"<td>shadow</td><td>{name}</td><td>{each.accuracy:.4f}</td>" in page
    silent = part(desk.outputs(), ["shadow"])
    assert {dict(row[2])["type"] for rows_ in silent.values() for row in rows_} == {b"evaluation"}
    ends = desk.ends()
    desk.models["shadow"].pop("shadow")
    held = desk.run(100)
    after, same = undisturbed(tmp_path / "after", desk.told, 400)
    assert held == same
    assert part(desk.outputs(), ["shadow"], ends) == part(after, ["shadow"], ends)
    assert part(after, ["shadow"], ends) != part(silent, ["shadow"], ends)


def test_what_a_setting_is_called_does_not_matter() -> None:
    """A model is the same by another name of a setting, and where a default is told; a model is its settings."""
    plain = {key: value for key, value in NEW.items() if key not in ("emit", "evaluate")}
    told = [
        plain | {"grace_period": 7, "tau": 0.05},
        plain | {"period": 7, "criterion": "entropy"},
        plain | {"period": 7, "start": "latest", "emit": {"splits": "never"}, "shadow": True},
    ]
    first, second, third = (ModelEntry(each, 1, 0, 0) for each in told)
    assert first.identity == second.identity == third.identity
    assert first.timing == second.timing != third.timing
    assert first.identity != ModelEntry(plain | {"period": 8}, 1, 0, 0).identity
    assert first.identity != first._replace(behaviour=2).identity
    # A default that is told ends a word in the log about others: the state stays, and the telling is kept.
    unsaid, said = (
        ModelEntry(plain | {"policy": "osm", "attributes": each | {"numeric": ["size"]}}, 1, 0, 0)
        for each in ({}, {"default": "binary"})
    )
    assert (unsaid.identity, unsaid.timing) != (said.identity, said.timing)
    assert unsaid.identity == said.identity
    parsed = [entry.parsed() for entry in (unsaid, said)]
    assert [settings is not None and settings.names_all_features for settings in parsed] == [True, False]


@pytest.mark.slow
def test_state_is_found_by_group(tmp_path: Path) -> None:
    """Another group in the same topics begins as a new one, says so, and neither hurts the other's state."""
    desk = Desk(tmp_path)
    desk.run(100)
    del desk.models["recent"]
    with capture_logs() as lines:
        desk.told["group"] = "second"
        theirs = desk.run(50)
    said = [line["groups"] for line in lines if "beside theirs" in line["event"]]
    assert said == [["anabranch"]] * len(SOURCES)
    desk.told["group"] = "anabranch"
    with capture_logs() as lines:
        ours = desk.run()
    assert not [line for line in lines if "beside theirs" in line["event"]]
    assert ours == theirs
    for group in ("second", "anabranch"):
        desk.told["group"] = group
        held = desk.run(20 if group == "second" else 0)
    with desk.log() as log:
        for source in SOURCES:
            log.truncate(source, log.watermarks(source).high)
    for group in ("second", "anabranch"):  # from their checkpoints alone
        desk.told["group"] = group
        assert desk.run() == held


def test_epochs_of_any_size_come_back() -> None:
    """Settings with very many names are kept in records of bounded size; an epoch that lacks one is none."""
    names = [f"feature-{number}" for number in range(120_000)]
    entry = ModelEntry(NEW | {"attributes": {"numeric": names}}, 1, 3, 7)
    epochs = [
        Epoch(number, 7, 0, {"keys": 5}, {"late": entry, "other": entry}, ("out", "dead"), {}).noted()
        for number in (1, 2)
    ]
    target = TopicPartition("words.state", 0)
    records = [record for epoch in epochs for record in epoch.records("group", target, 5)]
    assert len(records) > 8
    assert max(record.size for record in records) < LARGEST_RECORD
    kept = {record.key or b"": record.value or b"" for record in records}
    assert unpack_epochs(kept) == {"group": tuple(epochs)}
    kept.pop(records[-1].key or b"")
    assert unpack_epochs(kept) == {"group": (epochs[0],)}


def test_a_partition_that_is_lost_in_the_middle_of_a_change(tmp_path: Path) -> None:
    """Who no longer owns it does not go on with it, and whoever has it makes the change."""
    desk = Desk(tmp_path)
    desk.run(100)
    desk.models["late"] = NEW
    desk.publish(30)
    with desk.log() as log, desk.log() as other:
        worker, commit = worker_on(log, desk.settings), log.commit

        def lost(outputs: Any, offsets: Any, metadata: Any = "") -> None:
            if all(source.topic == CLICKS for source in offsets):  # nothing changes there, and it may be its turn
                commit(outputs, offsets, metadata)
                return
            log.commit = commit  # type: ignore[method-assign]
            raise OwnershipLost("somebody else has it")

        log.commit = lost  # type: ignore[method-assign]
        with capture_logs() as lines:
            worker.run(lambda: False, until_end=True)
        held = contents(worker)
        assert sum(line["event"].startswith("ownership lost") for line in lines) == 1
        assert sum(line["event"].startswith("settings change") for line in lines) == PARTITIONS + 1
        assert other.committed(SOURCES[0])
    assert held == undisturbed(tmp_path / "after", desk.told, 130)[1]
