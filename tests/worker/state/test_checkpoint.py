"""Checkpoints on their own: what is written of arrays that change, and that it comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.checkpoint import Checkpointer, Saved, read_checkpoint, returned
from worker.checkpoint.keys import CheckpointRecord, Key, unpack_checkpoint, unpack_key
from worker.checkpoint.shadow import PAGE_BYTES, Shadow
from worker.checkpoint.writer import Identity, Stage
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError, OutRecord, TopicPartition
from worker.settings import CheckpointSettings

STATE = TopicPartition("state", 0)
IDENTITY = Identity(partitions=1, settings="settings", version="1")
Models = dict[str, dict[str, npt.NDArray[Any]]]


class Clock:
    """Time that passes when told to, and a little with each look."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time."""
        self.now += 0.001
        return self.now


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """Yield a log with a state topic."""
    with EmbeddedLog(tmp_path / "log.db") as opened:
        opened.create_topic("state", 1, compacted=True)
        yield opened


def checkpointer(
    clock: Clock, lineage: bytes = b"first", saved: Saved | None = None, *, inherits: bool = True, **settings: int
) -> Checkpointer:
    """Return the checkpoints of a partition that was taken over just now, perhaps with one that is there."""
    told = CheckpointSettings(**settings)
    checkpoints = Checkpointer(STATE, told, IDENTITY, lineage, clock, clock, inherits=inherits)
    if saved is not None:
        for _ in checkpoints.adopt(saved):
            pass
    return checkpoints


def read(log: EmbeddedLog, time_limit: float = 5.0) -> Saved | None:
    """Return the newest valid checkpoint."""
    return returned(read_checkpoint(log, STATE, Clock(), time_limit))[0]


def write(log: EmbeddedLog, checkpoints: Checkpointer, models: Models, offset: int) -> Sequence[OutRecord]:
    """Write a checkpoint, whole."""
    checkpoints.take(models, offset)
    records = checkpoints.records()
    log.append(records)
    return records


def assert_same(read_models: Models, models: Models) -> None:
    """Make sure that the arrays are the same, types and shapes included."""
    assert read_models.keys() == models.keys()
    for model, arrays in models.items():
        assert read_models[model].keys() == arrays.keys()
        for name, array in arrays.items():
            found = read_models[model][name]
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            assert found.tobytes() == array.tobytes()


def copied(models: Models) -> Models:
    """Return the models as they are now."""
    return {model: {name: array.copy() for name, array in arrays.items()} for model, arrays in models.items()}


def some_models(seed: int = 1) -> Models:
    """Return arrays of several types and sizes, one of them larger than a chunk of the shadow, many zeros."""
    draw = np.random.default_rng(seed)
    large = np.zeros((1_100_000, 3), np.int32)
    large[::50_000] = draw.integers(1, 9, 3)
    return {
        "one": {"counts": draw.integers(0, 9, (10_000, 2)), "flags": np.ones(13, np.bool_), "large": large},
        "two": {"empty": np.zeros((0, 4), np.float64), "text": np.frombuffer(b"abcdefghijk", np.uint8).copy()},
    }


def test_a_checkpoint_comes_back(log: EmbeddedLog) -> None:
    """What is read is what was copied, with its offset, whatever happened to the models meanwhile."""
    models = some_models()
    checkpoints = checkpointer(Clock())
    checkpoints.take(models, 17)
    kept = copied(models)
    models["one"]["counts"][:] = 5
    log.append(checkpoints.records())
    saved = read(log)
    assert saved is not None
    assert saved.record == CheckpointRecord(1, 17, 1, 1, "settings", "1", saved.record.manifests)
    assert_same(saved.models, kept)
    assert saved.obsolete == []


def test_no_checkpoint_is_none(log: EmbeddedLog) -> None:
    """An empty state topic has no checkpoint, and one with pages but without the record has none either."""
    assert read(log) is None
    checkpoints = checkpointer(Clock())
    checkpoints.take(some_models(), 1)
    log.append([record for record in checkpoints.records() if unpack_key(record.key or b"").kind != "checkpoint"])
    assert read(log) is None


def test_zeros_are_not_written(log: EmbeddedLog) -> None:
    """A page of zeros costs nothing until something is in it."""
    models: Models = {"one": {"counts": np.zeros(100 * PAGE_BYTES, np.uint8)}}
    checkpoints = checkpointer(Clock())
    kinds = [unpack_key(record.key or b"").kind for record in write(log, checkpoints, models, 0)]
    assert kinds == ["manifest", "checkpoint"]
    models["one"]["counts"][-1] = 1
    pages = [unpack_key(record.key or b"") for record in write(log, checkpoints, models, 1)]
    assert [(key.kind, key.number) for key in pages if key.kind == "page"] == [("page", 99)]


def test_only_changed_pages_are_written(log: EmbeddedLog) -> None:
    """The second checkpoint writes what changed, deletes what that replaced, and nothing else remains."""
    models = some_models()
    checkpoints = checkpointer(Clock())
    write(log, checkpoints, models, 1)
    models["one"]["counts"][9_999, 1] += 1
    records = write(log, checkpoints, models, 2)
    written = [unpack_key(record.key or b"") for record in records if record.value is not None]
    assert [key for key in written if key.kind == "page"] == [Key("page", b"first", 2, "one", "counts", 2)]
    deleted = [unpack_key(record.key or b"") for record in records if record.value is None]
    assert Key("page", b"first", 1, "one", "counts", 2) in deleted
    assert {key.kind for key in deleted} == {"page", "manifest"}
    saved = read(log)
    assert saved is not None
    assert saved.obsolete == []
    assert_same(saved.models, models)


def test_the_record_comes_after_all_that_it_needs(log: EmbeddedLog) -> None:
    """Pages, then manifests, then the record that makes them valid, then what may go."""
    checkpoints = checkpointer(Clock())
    models = some_models()
    write(log, checkpoints, models, 1)
    models["one"]["counts"] += 1
    kinds = [
        "deleted" if record.value is None else unpack_key(record.key or b"").kind
        for record in write(log, checkpoints, models, 2)
    ]
    order = ["page", "manifest", "checkpoint", "deleted"]
    assert kinds == sorted(kinds, key=order.index)
    assert set(kinds) == set(order)


@pytest.mark.slow
def test_a_checkpoint_cut_short_anywhere_leaves_the_one_before(log: EmbeddedLog, tmp_path: Path) -> None:
    """Whatever part of the second checkpoint is written, one of the two is read, whole, and the next succeeds."""
    models = some_models()
    checkpoints = checkpointer(Clock())
    write(log, checkpoints, models, 1)
    first = copied(models)
    models["one"]["counts"][::2_000] += 1
    models["one"]["large"][::90_000] += 1
    models["two"]["text"] = np.arange(200_000, dtype=np.uint8)
    checkpoints.take(models, 2)
    second, records = copied(models), checkpoints.records()
    before = log.read(STATE, 0, 10_000)
    for cut in range(len(records) + 1):
        with EmbeddedLog(tmp_path / f"cut-{cut}.db") as other:
            other.create_topic("state", 1, compacted=True)
            kept = zip(before.keys, before.values, strict=True)
            other.append([OutRecord(*STATE, key, value, (), 1) for key, value in kept])
            other.append(records[:cut])
            saved = read(other)
            assert saved is not None
            assert_same(saved.models, first if saved.record.offset == 1 else second)
            resumed = checkpointer(Clock(), b"unused", saved)
            models["one"]["flags"][:] = False
            write(other, resumed, models, 3)
            again = read(other)
            assert again is not None
            assert again.record.offset == 3
            assert again.obsolete == [], "what nobody needs is deleted, that of the unfinished one too"
            assert_same(again.models, models)


def test_an_owner_that_was_not_shut_out_cannot_hurt_the_next(log: EmbeddedLog) -> None:
    """With a lineage of its own, a new owner's checkpoint survives what the old one still writes and deletes."""
    models = some_models()
    old = checkpointer(Clock(), b"old")
    write(log, old, models, 1)
    saved = read(log)
    assert saved is not None
    new = checkpointer(Clock(), b"new", saved, inherits=False)
    models["one"]["counts"] += 1
    write(log, new, models, 5)
    stale = some_models(2)
    write(log, old, stale, 3)
    write(log, old, some_models(3), 4)
    newest = read(log)
    assert newest is not None
    assert newest.record.offset == 5
    assert_same(newest.models, models)


@pytest.mark.parametrize("kind", ["page", "manifest"])
@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_damage_is_noticed(log: EmbeddedLog, kind: str, how: str) -> None:
    """A page or manifest that is not what was written, or not there, is never taken for the state."""
    checkpoints = checkpointer(Clock())
    write(log, checkpoints, some_models(), 1)
    records = log.read(STATE, 0, 10_000)
    key, value = next(
        (key, value)
        for key, value in zip(records.keys, records.values, strict=True)
        if key is not None and value is not None and unpack_key(key).kind == kind
    )
    log.append([OutRecord(*STATE, key, None if how == "missing" else value[:-1] + b"\xfe", (), 1)])
    with pytest.raises(LogError, match="is missing or not what was written; bring the state topic back"):
        read(log)


def test_a_newer_schema_is_refused(log: EmbeddedLog) -> None:
    """A checkpoint of a newer version is not guessed at."""
    records = write(log, checkpointer(Clock()), some_models(), 1)
    key, value = next((r.key, r.value) for r in records if unpack_key(r.key or b"").kind == "checkpoint")
    newer = unpack_checkpoint(value or b"")._replace(schema=2, version="9.9")
    log.append([OutRecord(*STATE, key, newer.pack(), (), 1)])
    with pytest.raises(LogError, match=r"expected a checkpoint of schema 1 or older, found 2.*9\.9"):
        read(log)


def test_it_is_due_by_time_or_by_records() -> None:
    """A checkpoint is made after an interval or so many records, and not where nothing was consumed since."""
    clock = Clock()
    checkpoints = checkpointer(clock, interval_ms=60_000, records=100)
    models = some_models()
    assert not checkpoints.proceed(lambda: models, 10, 50)
    clock.now += 60
    assert _until_copied(checkpoints, models, 10, 50) == 10
    checkpoints.records()
    assert checkpoints.stage is Stage.WAITING
    clock.now += 600
    assert not checkpoints.proceed(lambda: models, 10, 50)
    assert checkpoints.stage is Stage.WAITING
    assert _until_copied(checkpoints, models, 11, 51) == 11
    checkpoints.records()
    assert not checkpoints.proceed(lambda: models, 12, 150)
    assert _until_copied(checkpoints, models, 13, 151) == 13


def _until_copied(checkpoints: Checkpointer, models: Models, offset: int, records: int) -> int:
    for _ in range(100):
        if checkpoints.proceed(lambda: models, offset, records):
            return checkpoints.offset
    raise AssertionError("never copied")


def test_shares_follow_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction carries a share of a checkpoint, and the next follows when the rate allows it."""
    monkeypatch.setattr("worker.checkpoint.writer.SHARE_BYTES", 250_000)
    clock = Clock()
    checkpoints = checkpointer(clock, bytes_per_second=1_000_000)
    checkpoints.take({"one": {"counts": np.arange(1_000_000, dtype=np.int64)}}, 1)
    assert checkpoints.share() == []
    clock.now += 0.25
    share = checkpoints.share()
    assert 250_000 <= sum(len(record.value or b"") for record in share) <= 250_000 + PAGE_BYTES
    assert checkpoints.share() == []
    assert checkpoints.is_writing
    assert len(share) + len(checkpoints.records()) == 123 + 2


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[int, int]]]:
    """Draw sizes and writes: for each checkpoint some arrays' lengths and what is set where."""
    steps = st.tuples(st.integers(0, 3 * PAGE_BYTES), st.integers(0, 255))
    return draw(st.lists(st.lists(steps, min_size=1, max_size=4), min_size=1, max_size=6))


@given(histories())
def test_a_shadow_follows_any_history(history: list[list[tuple[int, int]]]) -> None:
    """After arrays of any length grew, shrank and changed, the pages written so far make up the newest state."""
    shadow = Shadow()
    stored: dict[tuple[str, int, int], bytes] = {}
    lengths: dict[str, int] = {}
    arrays: dict[str, npt.NDArray[Any]] = {}
    for generation, step in enumerate(history, start=1):
        for number, (size, value) in enumerate(step):
            name = str(number)
            before = arrays.get(name, np.zeros(0, np.uint8))
            array = np.zeros(size, np.uint8)
            array[: len(before)] = before[:size]
            array[size // 2 :: 30_000] = value
            arrays[name] = array
            lengths[name] = size
        written, stale = shadow.take({"m": arrays}, generation)
        for page in written:
            stored[page.array, page.number, page.generation] = shadow.read(page)
        for page in stale:
            del stored[page.array, page.number, page.generation]
        needed = set()
        for entry in shadow.manifests()["m"].arrays:
            rebuilt = bytearray(lengths[entry.name])
            for number, of in enumerate(np.frombuffer(entry.generations, "<i8").tolist()):
                if of:
                    data = stored[entry.name, number, of]
                    needed.add((entry.name, number, of))
                    rebuilt[number * PAGE_BYTES : number * PAGE_BYTES + len(data)] = data
            assert bytes(rebuilt) == arrays[entry.name].tobytes()
        assert needed == stored.keys()


def test_a_shadow_gives_back_what_an_array_that_became_shorter_had() -> None:
    """The memory is spare at once, and given back a little at a time: while pages are written, before the next."""
    shadow = Shadow()
    large = np.ones(1_000 * PAGE_BYTES, np.uint8)
    shadow.take({"m": {"a": large, "b": large}}, 1)
    written, _ = shadow.take({"m": {"a": large[: 2 * PAGE_BYTES]}}, 2)
    spare = len(shadow._spare)
    assert spare > 20
    for page in written:
        assert shadow.read(page) == bytes([1]) * PAGE_BYTES
    assert len(shadow._spare) == spare - len(written)
    for _ in shadow.reserve({"m": {"a": large[: 2 * PAGE_BYTES]}}):
        pass
    assert not shadow._spare
