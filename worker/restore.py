"""Rebuild a partition's models as of the committed offset: from a checkpoint, and a silent replay from there.

The models are a function of the records below an offset, so applying those again gives the state that the
last committed transaction left, whatever became of the process that held it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any, Literal, NamedTuple

from worker.checkpoint import Attempt, Checkpointer, Saved, read_checkpoint, read_marks
from worker.checkpoint.reader import is_silent
from worker.checkpoint.shadow import Models
from worker.log.port import Log, LogError, Records, TopicPartition
from worker.pipeline import Pipeline
from worker.quarantine import failure
from worker.topics import moved_keys

_BATCH = 2_000  # records at a time; results do not depend on it
_GLANCE_SECONDS = 10.0  # at the results


class Expected(NamedTuple):
    """What a restore is told."""

    settings: str  # fingerprint of those that the worker runs with
    group: str
    partitions: int  # that the input topic has
    start: Literal["earliest", "latest"]  # where to begin where nothing was ever committed
    # Where results are, if without a committed offset they mean that it was lost: offsets of a cluster expire, and
    # without checkpoints nothing else tells that there were any.
    results: TopicPartition | None = None


class Start(NamedTuple):
    """What a restore led to."""

    offset: int  # where the partition goes live: the models hold all records below it
    is_fresh: bool  # no worker has committed there
    is_set: bool  # the group's offset was set by a person
    attempt: Attempt | None  # the last one that was made there or before


def restore(
    log: Log,
    pipeline: Pipeline,
    checkpoints: Checkpointer | None,
    expected: Expected,
    clock: Callable[[], float],
    restore_timeout: float,
) -> Generator[int, None, Start]:
    """Rebuild the models without writing or counting anything; yield how many offsets remain at each step.

    Parameters
    ----------
    log : Log
        Whose group's offset is looked up.
    pipeline : Pipeline
        An empty one.
    checkpoints : Checkpointer, optional
        Of the partition, a new one; None where no checkpoints are made.
    expected : Expected
        What must hold.
    clock : callable
        Seconds, monotonic.
    restore_timeout : float
        For how many seconds nothing may come before it is given up.

    Raises
    ------
    LogError
        Where the models cannot be rebuilt as they were, with what to do about it.
    """
    source = pipeline.source
    # First the offset: once it is stable, no transaction of a former owner can still end, and whatever such
    # a one wrote to the state topic lies below the high watermark that is asked for next.
    committed = log.committed(source)
    note = "" if committed is None else log.metadata(source)
    saved = None
    if checkpoints is not None:
        saved, marks = yield from read_checkpoint(log, checkpoints.target, clock, restore_timeout)
    else:
        marks = yield from read_marks(log, pipeline.state, clock, restore_timeout)
    pipeline.skips.update(marks.skips)
    if committed is None and saved is None and expected.results is not None:
        _check_unused(log, source, expected, clock)
    begin, end = _range(log, source, committed, note, saved, expected)
    if checkpoints is not None and saved is not None:
        if not _fits(saved.models, pipeline):
            raise _other_layout(saved, source)
        for _ in checkpoints.adopt(saved):
            yield end - begin
        pipeline.restore(saved.models)
    yield from _replay(log, pipeline, begin, end, clock, restore_timeout)
    is_set = committed is not None and not note
    return Start(end, committed is None or is_set, is_set, marks.attempt)


def _range(
    log: Log, source: TopicPartition, committed: int | None, note: str, saved: Saved | None, expected: Expected
) -> tuple[int, int]:
    """Return from where to replay and where to go live.

    Workers commit each offset with a note, the fingerprint of their settings. One without was set by a person, who
    decides where to go on; nobody misses what is gone before it.
    """
    low, high = log.watermarks(source)
    name = str(source)
    if saved is not None:
        _check(saved, source, committed, expected)
    if committed is None:
        begin = low if expected.start == "earliest" else high
        return begin, begin
    if committed > high:
        raise LogError(
            f"{name}: expected the committed offset to be at most {high}, where the topic ends, got {committed}: "
            f"this is not the topic that was read before; bring it back, or start anew: {_anew(source)}"
        )
    begin = 0 if saved is None else saved.record.offset
    if not note:
        return max(begin, low), max(committed, low)
    if note != expected.settings:
        raise _other_settings(source, f"the results up to offset {committed}", note, expected.settings)
    if low > begin and committed > begin:
        raise LogError(
            f"{name}: expected the records from offset {begin} on, to rebuild the models up to the committed "
            f"offset {committed}, but those below {low} are gone; bring the topic back, or go on with models that "
            f"lack those records: {_setting(source, max(committed, low), expected)}; "
            "without checkpoints each start asks for that again"
        )
    if committed < low:
        raise LogError(
            f"{name}: expected the records from the committed offset {committed} on, but those below {low} are "
            "gone, unread: keep them for longer than a worker may be away (retention.ms); to go on without them: "
            f"{_setting(source, low, expected)}"
        )
    return begin, committed


def _check(saved: Saved, source: TopicPartition, committed: int | None, expected: Expected) -> None:
    """Raise where a checkpoint and the committed offset cannot belong together."""
    record = saved.record
    if record.partitions != expected.partitions:
        raise LogError(f"{source}: {moved_keys(record.partitions, expected.partitions)}")
    if record.settings != expected.settings:
        raise _other_settings(
            source, f"the checkpoint at offset {record.offset}", record.settings, expected.settings
        )
    if committed is None or committed < record.offset:
        raise LogError(
            f"{source}: expected a committed offset from {record.offset} on, where the last checkpoint is, got "
            f"{'none' if committed is None else committed}: it was reset, or it expired while no worker ran "
            "(offsets.retention.minutes), or the group is another one. Go on where the results end, or at the "
            f"checkpoint with some results twice: {_setting(source, record.offset, expected)}; "
            f"or start anew: {_anew(source)}"
        )


def _check_unused(log: Log, source: TopicPartition, expected: Expected, clock: Callable[[], float]) -> None:
    """Raise where there are results, though no offset tells of them."""
    assert expected.results is not None
    low, high = log.watermarks(expected.results)
    if low < high and not is_silent(log, expected.results, low, high, clock, _GLANCE_SECONDS):
        raise LogError(
            f"{source}: expected a committed offset, as there are results in {expected.results}, got none: it "
            "expired while no worker ran (offsets.retention.minutes), or the group is another one. Go on where "
            f"the results end: {_setting(source, 'OFFSET', expected)}; or make all of them anew: {_anew(source)}"
        )


def _setting(source: TopicPartition, offset: int | str, expected: Expected) -> str:
    """Return how a person sets the group's offset."""
    return (
        "once no worker of the group has run for session.timeout.ms, set its offset (kafka-consumer-groups.sh "
        f"--group {expected.group} --topic {source.topic}:{source.partition} --reset-offsets "
        f"--to-offset {offset} --execute)"
    )


def _anew(source: TopicPartition) -> str:
    """Return how a person makes all results anew."""
    new = f"{source.topic}-2"
    return (
        "another group in the settings, and other topics for results and state (as with topics: "
        f"{{{source.topic}: {{output: {new}.out, dead_letters: {new}.dead, state: {new}.state}}}})"
    )


def _fits(saved: Models, pipeline: Pipeline) -> bool:
    """Return whether the models can go on with a saved state, where some arrays may be missing."""
    expected = _layout(pipeline.arrays())
    for model in pipeline.models:
        for name in model.LATER.difference(saved.get(model.name, ())):
            expected[model.name].pop(name, None)
    return _layout(saved) == expected


def _layout(models: Models) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return what must agree between a saved state and the code that is to go on with it."""
    return {
        model: {name: (array.dtype.str, array.shape[1:]) for name, array in arrays.items()}
        for model, arrays in models.items()
    }


def _other_layout(saved: Saved, source: TopicPartition) -> LogError:
    return LogError(
        f"{source}: expected a checkpoint with the arrays of this version, found others, "
        f"made by Anabranch {saved.record.version}; run that version, or delete the state topic and create it "
        "anew (anabranch topics create), and the models are rebuilt from the input as far as that is kept"
    )


def _other_settings(source: TopicPartition, what: str, came_from: str, now: str) -> LogError:
    return LogError(
        f"{source}: expected the settings that {what} came from ({came_from[:12]}), got others "
        f"({now[:12]}); go back to those, or make all results anew with these: {_anew(source)}"
    )


def _replay(
    log: Log, pipeline: Pipeline, begin: int, end: int, clock: Callable[[], float], restore_timeout: float
) -> Generator[int, None, None]:
    """Apply the records from `begin` up to `end`."""
    if begin >= end:
        return
    with closing(log.reader()) as reader:
        reader.assign({pipeline.source: begin})
        position, progress_at = begin, clock()
        while position < end:
            for records in reader.poll(_BATCH, 0.05):
                if records.keys:
                    part = records.part(0, int((records.offsets < end).sum()))
                    while not pipeline.has_schemas(part):  # as long as it takes: the registry is waited for
                        yield max(0, end - position)
                    _apply(pipeline, part)
                position, progress_at = records.next_offset, clock()
            if clock() - progress_at > restore_timeout:
                raise LogError(
                    f"{pipeline.source}: expected to read up to the committed offset {end}, but nothing came "
                    f"behind {position} for {restore_timeout:.0f} s; is the broker well?"
                )
            yield max(0, end - position)


def _apply(pipeline: Pipeline, records: Records) -> None:
    """Apply records whose results are written already, so that a failure is no reason to pass one by."""
    try:
        pipeline.process(records)
    except Exception as error:
        raise LogError(
            f"{records.source}: expected to apply again the records from offset {records.offsets[0]} up to "
            f"{records.next_offset}, whose results are written, got {failure(error)}: a defect of this version; "
            "run the version that wrote them, and report it"
        ) from error
