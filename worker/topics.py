"""The topics that a worker needs: its inputs, which must be there, and those it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from worker.log.port import Log, LogError, TopicPartition
from worker.settings import Settings


class Topic(NamedTuple):
    """A topic that the worker writes."""

    name: str
    input: str
    partitions: int  # as many as the input has: what follows from partition n goes to partition n
    compacted: bool
    use: str  # for a person


class Lacking(NamedTuple):
    """Topics that are waited for."""

    topics: tuple[str, ...]
    seconds: float  # that are left


def input_partitions(log: Log, settings: Settings) -> dict[str, int]:
    """Return how many partitions each input topic has.

    Raises
    ------
    LogError
        Where there is no such topic, or where it is compacted.
    """
    counts = _inputs_there(log, settings)
    for topic in settings.routes.keys() - counts:
        raise LogError(
            f"expected the topic {topic!r}, the input of model {_readers(settings, topic)}; there is none; "
            "publish events to it first, or correct the model's input"
        )
    return counts


def _inputs_there(log: Log, settings: Settings) -> dict[str, int]:
    counts = {}
    for topic in settings.routes:
        if (count := log.partitions(topic)) is None:
            continue
        if log.is_compacted(topic):
            raise LogError(
                f"expected the topic {topic!r}, the input of model {_readers(settings, topic)}, to keep every "
                "event; it is compacted, which drops all but the last one of each key; set its cleanup.policy to "
                "delete"
            )
        counts[topic] = count
    return counts


def written_topics(log: Log, settings: Settings) -> list[Topic]:
    """Return the topics that the worker writes; errors as `input_partitions`."""
    return list(_written(settings, input_partitions(log, settings)))


def _written(settings: Settings, counts: Mapping[str, int]) -> Iterator[Topic]:
    for topic, count in counts.items():
        route = settings.routes[topic]
        yield Topic(route.output, topic, count, compacted=False, use=f"results of {topic}")
        yield Topic(route.dead_letters, topic, count, compacted=False, use=f"refused events of {topic}")
        if settings.checkpoint is not None:
            yield Topic(route.state, topic, count, compacted=True, use=f"checkpoints of {topic}")


def missing_topics(log: Log, settings: Settings) -> list[Topic]:
    """Return those that are not there yet.

    Raises
    ------
    LogError
        Where an input is missing or unfit, or where topics are there and not as they must be: all of them, one a
        line.
    """
    return _missing(log, written_topics(log, settings))


def _missing(log: Log, topics: Iterable[Topic]) -> list[Topic]:
    missing, faults = [], []
    grown: dict[str, str] = {}  # inputs, and what to tell of them: no topic of theirs shall be deleted
    for topic in topics:
        count = log.partitions(topic.name)
        if count is None:
            missing.append(topic)
        elif count < topic.partitions and _is_used(log, topic.name, count):
            grown[topic.input] = f"the topic {topic.input!r}: {moved_keys(count, topic.partitions)}"
        elif (fault := _fault(log, topic, count)) is not None:
            faults.append((topic.input, fault))
    if faults or grown:
        raise LogError("\n".join([*grown.values(), *(fault for input_, fault in faults if input_ not in grown)]))
    return missing


def _is_used(log: Log, topic: str, partitions: int) -> bool:
    bounds = (log.watermarks(TopicPartition(topic, number)) for number in range(partitions))
    return any(low < high for low, high in bounds)


def _fault(log: Log, topic: Topic, count: int) -> str | None:
    """Return what is wrong with a topic that is there, None where it is as it must be."""
    if count != topic.partitions:
        return (
            f"expected the topic {topic.name!r} ({topic.use}) to have {topic.partitions} partitions, as its "
            f"input does; it has {count}; delete it, or name another one in the settings (topics)"
        )
    if log.is_compacted(topic.name) != topic.compacted:
        wanted = "compact" if topic.compacted else "delete"
        return (
            f"expected the topic {topic.name!r} ({topic.use}) to have cleanup.policy={wanted}; it has not; "
            "correct that, or name another topic in the settings (topics)"
        )
    if topic.compacted and log.expires(topic.name):
        return (
            f"expected the topic {topic.name!r} ({topic.use}) to keep the last record of each key for good; "
            "its cleanup.policy deletes old ones too, and a restart would not find its checkpoint; set it to "
            f"compact alone: kafka-configs.sh --alter --entity-type topics --entity-name {topic.name} "
            "--add-config cleanup.policy=compact"
        )
    return None


def create_topics(log: Log, settings: Settings) -> list[Topic]:
    """Create those that are not there yet and return them; errors as `missing_topics`."""
    written = written_topics(log, settings)
    missing = _missing(log, written)
    for topic in written:  # all: one that only a recording holds is made anew beside it
        log.create_topic(topic.name, topic.partitions, compacted=topic.compacted)
    return missing


def prepare_topics(log: Log, settings: Settings) -> None:
    """Create what is missing in an embedded log; in a cluster, where it is not ours to decide, require it.

    Raises
    ------
    LogError
        As `missing_topics`, and where a cluster lacks a topic.
    """
    if settings.log.embedded is not None:
        create_topics(log, settings)
    elif missing := missing_topics(log, settings):
        names = ", ".join(f"{topic.name!r} ({topic.use})" for topic in missing)
        raise LogError(f"expected the topics {names}; create them first: anabranch topics create SETTINGS")


def lacking_topics(log: Log, settings: Settings, clock: Callable[[], float]) -> Iterator[Lacking]:
    """Yield, once for each look, the topics that a cluster lacks; end when it has all of them.

    The caller sleeps between two looks. An embedded log is not waited for: what it lacks is made by the worker, or
    by a person who publishes to it first.

    Raises
    ------
    LogError
        Where it still lacks some `log.kafka.topic_wait_seconds` after the first look; at once where those that are
        there are not as they must be.
    """
    kafka = settings.log.kafka
    until: float | None = None
    while kafka is not None and (lacking := _lacking(log, settings)):
        now = clock()
        until = now + kafka.topic_wait_seconds if until is None else until
        if now >= until:
            names = ", ".join(f"{name!r} ({use})" for name, use in lacking.items())
            inputs = " --inputs PARTITIONS" if lacking.keys() & settings.routes.keys() else ""
            raise LogError(
                f"expected the topics {names}; they are not there after {kafka.topic_wait_seconds:g} s "
                f"(log.kafka.topic_wait_seconds); create them: anabranch topics create SETTINGS{inputs}"
            )
        yield Lacking(tuple(lacking), until - now)


def _lacking(log: Log, settings: Settings) -> dict[str, str]:
    """Return what is not there, inputs too, and what for."""
    inputs = {topic: f"the input of model {_readers(settings, topic)}" for topic in settings.routes}
    written = {topic.name: topic.use for topic in _written(settings, dict.fromkeys(settings.routes, 0))}
    lacking = {name: use for name, use in (inputs | written).items() if log.partitions(name) is None}
    if lacking:  # what is there and unfit is told before anything is waited for
        _missing(log, _written(settings, _inputs_there(log, settings)))
    return lacking


def _readers(settings: Settings, topic: str) -> str:
    return ", ".join(name for name, model in settings.models.items() if model.input == topic)


def moved_keys(before: int, now: int | None) -> str:
    """Return what to tell a person whose input topic has another number of partitions than it had."""
    return (
        f"expected {before} partitions, as there were before, found {now}: keys have moved to other partitions "
        "than their models; publish the events to a new topic with the partitions wanted, and point models there"
    )
