"""Rebuild a partition's models as of the committed offset: from a checkpoint, and a silent replay from there.

The models are a function of the records below an offset and of the epochs of the partition (worker/epochs.py), so
applying those records again gives the state that the last committed transaction left, whatever became of the
process that held it. Where the worker has other settings than the partition, the models that it keeps are rebuilt
by the partition's; what is to be done then is told, and left to the caller, who can commit it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

from worker.checkpoint import Attempt, Checkpointer, Saved, read_checkpoint, read_marks, returned
from worker.checkpoint.keys import new_lineage
from worker.checkpoint.reader import is_silent
from worker.checkpoint.shadow import Models
from worker.checkpoint.writer import Identity
from worker.epochs import (
    Change,
    Epoch,
    cannot_run,
    compare,
    first_epoch,
    is_note,
    next_epoch,
    replaced_by,
    taken_over,
    unpack_epochs,
)
from worker.log.port import Log, LogError, Records, TopicPartition, Watermarks
from worker.models.layouts import NewerLayoutError
from worker.models.moving import at_rest
from worker.pipeline import Pipeline
from worker.quarantine import failure
from worker.settings import Settings, fingerprint
from worker.topics import moved_keys

_BATCH = 2_000  # records at a time; results do not depend on it
_GLANCE_SECONDS = 10.0  # at the results


class Expected(NamedTuple):
    """What a restore is told."""

    settings: Settings  # the worker's
    fingerprint: str  # theirs
    partitions: int  # that the input topic has
    # Where results are, if without a committed offset they mean that it was lost: offsets of a cluster expire, and
    # without checkpoints nothing else tells that there were any.
    results: TopicPartition | None = None
    has_run: bool = False  # the worker has been ready since it was started
    # Which of the epochs that there are hold: a worker goes on from the last, a replay goes by all of them, or by
    # none where it tries other settings.
    epochs: Literal["last", "all", "none"] = "last"


class Start(NamedTuple):
    """What a restore led to."""

    offset: int  # where the partition goes live: the models hold all records below it
    is_fresh: bool  # no worker has committed there
    is_set: bool  # the group's offset was set by a person
    attempt: Attempt | None  # the last one that was made there or before
    epoch: Epoch  # that the models belong to
    is_kept: bool  # whether the epoch is in the state topic
    leftovers: tuple[Epoch, ...]  # of changes that were never made
    behind: dict[str, int]  # models that have learned less, and up to which offset
    follows: bool  # the epoch is newer than the settings of this worker
    change: Change | None  # what the settings of this worker change
    next: Epoch | None  # the epoch that begins with that
    ahead: tuple[Epoch, ...]  # that a replay comes to
    others: tuple[str, ...]  # groups whose state is in the same topic


def checkpointer_of(
    settings: Settings,
    source: TopicPartition,
    partitions: int,
    clock: Callable[[], float],
    wall_clock: Callable[[], float],
) -> Checkpointer | None:
    """Return a new checkpointer of an input partition, None where the settings want no checkpoints."""
    if settings.checkpoint is None:
        return None
    kafka = settings.log.kafka
    return Checkpointer(
        target=TopicPartition(settings.routes[source.topic].state, source.partition),
        settings=settings.checkpoint,
        identity=Identity(partitions, fingerprint(settings), version("anabranch"), settings.group),
        lineage=new_lineage(settings.group),
        clock=clock,
        wall_clock=wall_clock,
        inherits=kafka is None or kafka.guarantee == "exactly_once",
    )


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
        group = expected.settings.group
        saved, marks = yield from read_checkpoint(log, checkpoints.target, clock, restore_timeout, group)
    else:
        marks = yield from read_marks(log, pipeline.state, clock, restore_timeout)
    pipeline.skips.update(marks.skips)
    if committed is None and saved is None and expected.results is not None:
        _check_unused(log, source, expected, clock)
    if saved is not None and saved.record.partitions != expected.partitions:
        raise LogError(f"{source}: {moved_keys(saved.record.partitions, expected.partitions)}")
    kept = unpack_epochs(marks.epochs)
    known = () if expected.epochs == "none" else kept.pop(expected.settings.group, ())
    bounds = log.watermarks(source)
    history = _history(source, committed, note, saved, known, expected)
    begin, end = _range(bounds, source, committed, note, saved, expected)
    is_kept = bool(history)
    if not history:
        history = (_beginning(source.topic, begin, bounds.low, note, expected),)
    epoch, ahead = history[-1], known[:0]
    if expected.epochs == "all" and known:
        epoch, ahead = known[0], known[1:]
        begin = end = max(begin, epoch.offset)
    behind = {name: entry.first for name, entry in epoch.models.items() if entry.first < entry.joined}
    behind = {name: max(at, bounds.low) for name, at in behind.items()}
    if is_kept:
        behind = {} if saved is None else dict(saved.record.behind)
    follows, change = _what_changes(source, history, epoch, behind, end, bounds, expected)
    _have(pipeline, epoch, change, behind)
    if checkpoints is not None and saved is not None:
        pipeline.late.expect(saved.models)
        try:
            models = pipeline.migrated(saved.models)
        except NewerLayoutError:
            raise _other_layout(saved, source) from None
        if not _fits(models, pipeline, is_whole=change is None):
            raise _other_layout(saved, source)
        for _ in checkpoints.adopt(saved):
            yield end - begin
        pipeline.restore(models)
    behind = {name: at for name, at in behind.items() if change is None or name in change.kept}
    current = [model.name for model in pipeline.models if model.name not in behind]
    if current or pipeline.late.store is not None:
        yield from _replay(log, pipeline, current, begin, end, clock, restore_timeout)
    is_set = committed is not None and not note
    following = None
    if change is not None:
        following = next_epoch(epoch, change, expected.settings, source.topic, end, bounds.low)
    return Start(
        offset=end,
        is_fresh=committed is None or is_set,
        is_set=is_set,
        attempt=marks.attempt,
        epoch=epoch,
        is_kept=is_kept,
        leftovers=() if expected.epochs == "all" else known[len(history) if is_kept else 0 :],
        behind=behind,
        follows=follows,
        change=change,
        next=following,
        ahead=ahead,
        others=tuple(kept) if expected.epochs == "last" else (),
    )


class Outlook(NamedTuple):
    """What a start would do to a partition."""

    committed: int | None  # None: the group has committed nothing there
    bounds: Watermarks  # of the input
    change: Change | None
    next: Epoch | None  # the epoch that would begin

    @property
    def learns(self) -> dict[str, int]:
        """How many offsets new models would learn silently."""
        models = {} if self.next is None or self.change is None else self.next.models
        kept = [] if self.change is None else self.change.kept
        return {
            name: entry.joined - entry.first
            for name, entry in models.items()
            if name not in kept and entry.first < entry.joined
        }


def foresee(
    log: Log, source: TopicPartition, expected: Expected, clock: Callable[[], float], restore_timeout: float
) -> Outlook:
    """Return what a start would do to a partition, without doing it.

    Where no offset is kept, as in a recording, the end of the partition stands for it.

    Raises
    ------
    LogError
        What a start would end with, as far as that is known without the checkpoint.
    """
    settings = expected.settings
    state = TopicPartition(settings.routes[source.topic].state, source.partition)
    marks = returned(read_marks(log, state, clock, restore_timeout))
    known = unpack_epochs(marks.epochs).get(settings.group, ())
    committed, note, bounds = log.committed(source), log.metadata(source), log.watermarks(source)
    if committed is None and known:
        committed, note = bounds.high, known[-1].note
    history = _history(source, committed, note, None, known, expected)
    if committed is None:
        return Outlook(None, bounds, None, None)
    if not history:
        history = (_beginning(source.topic, committed, bounds.low, note, expected),)
    _, change = _what_changes(source, history, history[-1], {}, committed, bounds, expected)
    if change is None:
        return Outlook(committed, bounds, None, None)
    following = next_epoch(history[-1], change, settings, source.topic, committed, bounds.low)
    return Outlook(committed, bounds, change, following)


# --- epochs


def _history(
    source: TopicPartition,
    committed: int | None,
    note: str,
    saved: Saved | None,
    known: tuple[Epoch, ...],
    expected: Expected,
) -> tuple[Epoch, ...]:
    """Return the epochs up to the one that holds, none where a version without epochs was the last.

    Where an epoch begins there is a checkpoint, which tells that it does; one that a worker did not come to begin
    is left over.
    """
    if saved is not None:
        offset, holds = saved.record.offset, saved.record.settings
        what = f"the checkpoint at offset {offset}"
    elif committed is not None and note:
        offset, holds, what = committed, note, f"the results up to offset {committed}"
    else:
        return () if committed is None else known
    at = next((at for at, epoch in enumerate(known) if epoch.note == holds), None)
    if expected.settings.checkpoint is None and (at or (at is None and holds != expected.fingerprint)):
        raise _without_checkpoints(source, what)
    if at is None and holds != expected.fingerprint:
        raise _unknown_settings(source, what, max(offset, committed or 0), holds, expected)
    history = () if at is None else known[: at + 1]
    if committed is not None and note and note not in (holds, *(epoch.note for epoch in history)):
        raise _unknown_settings(source, f"the results up to offset {committed}", committed, note, expected)
    return history


def _beginning(topic: str, begin: int, low: int, note: str, expected: Expected) -> Epoch:
    """Return the epoch that holds where none is kept."""
    if note:
        return taken_over(expected.settings, topic, expected.fingerprint)
    return first_epoch(expected.settings, topic, begin, low, expected.fingerprint)


def _what_changes(
    source: TopicPartition,
    history: Sequence[Epoch],
    epoch: Epoch,
    behind: Mapping[str, int],
    committed: int,
    bounds: Watermarks,
    expected: Expected,
) -> tuple[bool, Change | None]:
    """Return whether the partition has newer settings than the worker, and what the worker's change, if not."""
    if expected.epochs == "all":
        return False, None
    settings = expected.settings
    is_shared = settings.log.kafka is not None
    if (newer := replaced_by(history, settings, source.topic, is_shared=is_shared)) is not None:
        if not expected.has_run:
            raise _replaced(source, newer)
        return True, None
    lost = [name for name, at in behind.items() if at < bounds.low]
    kept = compare(epoch, settings, source.topic).kept if lost else ()
    lacking = [name for name in lost if name in kept and committed > epoch.models[name].joined]
    if lacking:
        raise LogError(
            f"{source}: expected the records from offset {min(behind[name] for name in lacking)} on, which "
            f"{', '.join(lacking)} have still to learn, but those below {bounds.low} are gone; bring the topic "
            "back, or give these models other names, so that they begin anew"
        )
    change = compare(epoch, settings, source.topic, anew=lost)
    if not change.is_any:
        return False, None
    if change.format:
        forms = (epoch.format, settings.topic(source.topic).relevant())
        before, now = (json.dumps(form, sort_keys=True) if form else "msgpack" for form in forms)
        raise LogError(
            f"{source}: expected the format that the results up to offset {committed} came from ({before}), got "
            f"{now}: format, columns, reader_schema and results of a topic cannot change. Go back to those, or "
            f"make all results anew with these: {_anew(source)}"
        )
    if settings.checkpoint is None:
        raise _without_checkpoints(source, f"the results up to offset {committed}")
    if change.lost and settings.on_change == "refuse":
        raise LogError(
            f"{source}: expected settings with which no model loses what it has learned (on_change: refuse), got "
            f"some that {_lost_words(change)}; go back to those, give a changed model another name, or set "
            "on_change: apply (ANABRANCH_ON_CHANGE=apply)"
        )
    return False, change


def _lost_words(change: Change) -> str:
    changed, removed = ", ".join(change.of("changed")), ", ".join(change.of("removed"))
    return " and ".join([*([f"change {changed}"] if changed else []), *([f"remove {removed}"] if removed else [])])


def _have(pipeline: Pipeline, epoch: Epoch, change: Change | None, behind: Collection[str]) -> None:
    """Have the models of an epoch, of a change those that it keeps."""
    names = epoch.models if change is None else change.kept
    epoch = epoch._replace(models={name: epoch.models[name] for name in names})
    parsed = epoch.parsed()
    if parsed is None:
        raise cannot_run(epoch, str(pipeline.source))
    pipeline.have(parsed, epoch.parsed_bounds, epoch.parsed_pending, behind=behind)


def _replaced(source: TopicPartition, newer: Epoch) -> LogError:
    return LogError(
        f"{source}: expected the settings that hold since offset {newer.offset} or newer ones, got some that were "
        "replaced there: a worker that is started again late must not take them back. Start it with the new "
        f"settings; or, to go back to these on purpose, say so in them: revision: {newer.revision + 1}"
    )


def _range(
    bounds: Watermarks,
    source: TopicPartition,
    committed: int | None,
    note: str,
    saved: Saved | None,
    expected: Expected,
) -> tuple[int, int]:
    """Return from where to replay and where to go live.

    Workers commit each offset with a note, that of the epoch. One without was set by a person, who decides where
    to go on; nobody misses what is gone before it.
    """
    low, high = bounds
    name = str(source)
    if saved is not None:
        _check(saved, source, committed, expected)
    if committed is None:
        begin = low if expected.settings.start == "earliest" else high
        return begin, begin
    if committed > high:
        raise LogError(
            f"{name}: expected the committed offset to be at most {high}, where the topic ends, got {committed}: "
            f"this is not the topic that was read before; bring it back, or start anew: {_anew(source)}"
        )
    begin = 0 if saved is None else saved.record.offset
    if not note:
        return max(begin, low), max(committed, low)
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
        f"--group {expected.settings.group} --topic {source.topic}:{source.partition} --reset-offsets "
        f"--to-offset {offset} --execute)"
    )


def _anew(source: TopicPartition) -> str:
    """Return how a person makes all results anew."""
    new = f"{source.topic}-2"
    return (
        "another group in the settings, and other topics for results and state (as with topics: "
        f"{{{source.topic}: {{output: {new}.out, dead_letters: {new}.dead, state: {new}.state}}}})"
    )


def _fits(saved: Models, pipeline: Pipeline, *, is_whole: bool) -> bool:
    """Return whether the models can go on with a saved state, where some arrays may be missing.

    It is the whole state, or there are others in it.
    """
    expected = _layout(pipeline.migrated(pipeline.arrays()))
    saved = {name: at_rest(arrays) for name, arrays in saved.items()}
    if not is_whole:
        saved = {name: arrays for name, arrays in saved.items() if name in expected}
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


def _without_checkpoints(source: TopicPartition, what: str) -> LogError:
    return LogError(
        f"{source}: expected the settings that {what} came from, and no others before: without checkpoints "
        "nothing tells which settings held where. Set checkpoint, start once with the settings as they were, then "
        f"change them; or make all results anew with these: {_anew(source)}"
    )


def _unknown_settings(source: TopicPartition, what: str, offset: int, note: str, expected: Expected) -> LogError:
    wanted = (
        f"{source}: expected to find in the state topic which settings {what} came from ({note[:20]}), got none"
    )
    if is_note(note):
        return LogError(
            f"{wanted}: it is not the topic that was there, or what it held is gone. Bring it back, or go on with "
            f"models of these settings that learn what the input still has: {_setting(source, offset, expected)}; "
            f"or make all results anew: {_anew(source)}"
        )
    return LogError(
        f"{wanted}, and those of this worker ({expected.fingerprint[:12]}) are others: a version that kept no "
        "settings wrote it. Start once with the settings as they were, then change them; or make all results anew "
        f"with these: {_anew(source)}"
    )


def catch_up(
    log: Log,
    pipeline: Pipeline,
    behind: dict[str, int],
    end: int,
    clock: Callable[[], float],
    restore_timeout: float,
) -> Generator[int, None, None]:
    """Let models that are behind learn the records up to `end`; `behind` tells how far each is, in the end none.

    What is pending they keep each for itself until then. Yield how many offsets remain, for the one that has
    learned least.
    """
    while behind:
        begin = min(behind.values())
        names = [name for name, at in behind.items() if at == begin]
        stop = min([at for at in behind.values() if at > begin] + [end])
        for remaining in _replay(log, pipeline, names, begin, stop, clock, restore_timeout, behind=True):
            behind.update(dict.fromkeys(names, stop - remaining))
            yield end - stop + remaining
        behind.update(dict.fromkeys(names, stop))
        if stop == end:
            pipeline.late.caught_up(behind)
            behind.clear()


def follow(
    log: Log, pipeline: Pipeline, begin: int, end: int, clock: Callable[[], float], restore_timeout: float
) -> Generator[int, None, None]:
    """Let what is pending in a partition follow the records up to `end`, and no model."""
    return _replay(log, pipeline, (), begin, end, clock, restore_timeout)


def _replay(
    log: Log,
    pipeline: Pipeline,
    names: Sequence[str],
    begin: int,
    end: int,
    clock: Callable[[], float],
    restore_timeout: float,
    *,
    behind: bool = False,
) -> Generator[int, None, None]:
    """Apply the records from `begin` up to `end` to some of the models, which are behind others or not."""
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
                    _apply(pipeline, part, names, behind=behind)
                position, progress_at = records.next_offset, clock()
            if clock() - progress_at > restore_timeout:
                raise LogError(
                    f"{pipeline.source}: expected to read up to the committed offset {end}, but nothing came "
                    f"behind {position} for {restore_timeout:.0f} s; is the broker well?"
                )
            yield max(0, end - position)


def _apply(pipeline: Pipeline, records: Records, names: Sequence[str], *, behind: bool) -> None:
    """Apply records whose results are written already, so that a failure is no reason to pass one by."""
    try:
        pipeline.learn(records, names, behind=behind)
    except Exception as error:
        raise LogError(
            f"{records.source}: expected to apply again the records from offset {records.offsets[0]} up to "
            f"{records.next_offset}, whose results are written, got {failure(error)}: a defect of this version; "
            "run the version that wrote them, or leave out a model that was just added; and report it "
            f"(models: {', '.join(names)})"
        ) from error
