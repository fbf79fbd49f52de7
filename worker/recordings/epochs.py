"""Which settings held where: kept in a recording beside the input, and followed by a replay."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, TypeAlias

from worker.checkpoint import read_marks, returned
from worker.codec.bounds import Bounds
from worker.epochs import Epoch, cannot_run, unpack_epochs
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError, OutRecord, TopicPartition
from worker.settings import Settings
from worker.settings.topics import WITH_SCHEMAS

_RESTORE_TIMEOUT_SECONDS = 120.0  # longer than transaction.timeout.ms, which ends a forgotten transaction
History: TypeAlias = Mapping[TopicPartition, tuple[Epoch, ...]]  # of each input partition


class Copied(NamedTuple):
    """What was copied of a state topic."""

    skips: int
    epochs: int


def copy_marks(log: Log, recording: EmbeddedLog, settings: Settings, source: TopicPartition, count: int) -> Copied:
    """Copy what the state topic says of how an input partition is to be read: skips, and the group's epochs.

    Parameters
    ----------
    log : Log
        What is recorded.
    recording : EmbeddedLog
        Where to.
    settings : Settings
        Which name the group and the topics.
    source : TopicPartition
        The input partition.
    count : int
        How many the topic has.
    """
    route = settings.routes[source.topic]
    target = TopicPartition(route.state, source.partition)
    marks = returned(read_marks(log, target, time.monotonic, _RESTORE_TIMEOUT_SECONDS))
    epochs = unpack_epochs(marks.epochs).get(settings.group, ())
    now = int(time.time() * 1000)
    records = [OutRecord(*target, skip.key, skip.pack(), (), skip.time) for skip in marks.skips.values()]
    for epoch in epochs:  # results may have another name by now
        records += epoch._replace(results=route.results).records(settings.group, target, now)
    if records:
        recording.create_topic(target.topic, count, compacted=True)
        recording.append(records)
    return Copied(len(marks.skips), len(epochs))


def history(
    recording: EmbeddedLog, group: str, states: Collection[str]
) -> dict[TopicPartition, tuple[Epoch, ...]]:
    """Return the epochs of a group in a recording, by input partition; none where it does not hold any.

    Parameters
    ----------
    recording : EmbeddedLog
        What is replayed.
    group : str
        Whose.
    states : collection of str
        The state topics; those that are not in the recording are passed over.
    """
    found = {}
    for state in states:
        for number in range(recording.partitions(state) or 0):
            epochs = _kept(recording, TopicPartition(state, number)).get(group, ())
            if epochs:
                found[TopicPartition(_input(epochs), number)] = epochs
    return found


def recorded_settings(recording: EmbeddedLog) -> tuple[Settings, History]:
    """Return settings to replay a recording by the epochs that it holds, and these.

    The settings name its group, its topics and all models that there were; which hold where the epochs tell.

    Raises
    ------
    LogError
        Where it holds none, or of more than one group, or models that this version does not have.
    """
    found: dict[str, dict[TopicPartition, tuple[Epoch, ...]]] = {}
    topics: dict[str, dict[str, Any]] = {}
    for state in (topic for topic in recording.topics() if recording.is_compacted(topic)):
        for number in range(recording.partitions(state) or 0):
            for group, epochs in _kept(recording, TopicPartition(state, number)).items():
                source = TopicPartition(_input(epochs), number)
                found.setdefault(group, {})[source] = epochs
                output, dead_letters = epochs[-1].results
                form = epochs[-1].format
                if "reader_schema" in form:  # of which only a digest is kept
                    raise LogError(
                        f"expected settings with the reader_schema of {source.topic}, which a recording does not "
                        "hold: anabranch replay SETTINGS RECORDING OUTPUT"
                    )
                topics[source.topic] = {"output": output, "dead_letters": dead_letters, "state": state, **form}
    if len(found) != 1:
        groups = f"those of {', '.join(sorted(found))}" if found else "none"
        raise LogError(
            f"expected a recording that holds the settings of one group, got {groups}; name settings of your own: "
            "anabranch replay SETTINGS RECORDING OUTPUT"
        )
    [(group, histories)] = found.items()
    told: dict[str, Any] = {
        "log": {"embedded": "unused"},
        "group": group,
        "topics": topics,
        "models": _all_models(histories),
        "bounds": _widest(histories),
    }
    if any(topic.get("format") in WITH_SCHEMAS for topic in topics.values()):
        told["registry"] = {"url": "http://unused"}  # a recording holds the schemas
    return Settings.model_validate_json(json.dumps(told)), histories


def groups_of(recording: EmbeddedLog) -> set[str]:
    """Return the groups of which a recording holds epochs."""
    return {
        group
        for state in recording.topics()
        if recording.is_compacted(state)
        for number in range(recording.partitions(state) or 0)
        for group in _kept(recording, TopicPartition(state, number))
    }


def _kept(recording: EmbeddedLog, target: TopicPartition) -> dict[str, tuple[Epoch, ...]]:
    return unpack_epochs(returned(read_marks(recording, target, time.monotonic, _RESTORE_TIMEOUT_SECONDS)).epochs)


def _input(epochs: tuple[Epoch, ...]) -> str:
    return str(next(iter(epochs[-1].models.values())).settings["input"])


def _all_models(histories: History) -> dict[str, Any]:
    """Return the settings of all models that there ever were, under names of no meaning."""
    models: dict[str, Any] = {}
    for source, epochs in histories.items():
        for epoch in epochs:
            if epoch.parsed() is None:
                raise cannot_run(epoch, f"the recording of {source}")
            for name, entry in epoch.models.items():
                models[f"{name}\0{entry.identity}"] = dict(entry.settings)
    return {f"model-{number}": told for number, told in enumerate(models.values(), 1)}


def _widest(histories: History) -> dict[str, int]:
    """Return bounds that no model of any epoch exceeds."""
    widest = asdict(Bounds())
    for bounds in (asdict(epoch.parsed_bounds) for epochs in histories.values() for epoch in epochs):
        widest = {name: max(bound, bounds[name]) for name, bound in widest.items()}
    return widest
