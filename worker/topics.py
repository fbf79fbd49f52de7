"""The topics that a worker needs: its inputs, which must be there, and those it writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from worker.log.port import Log, LogError
from worker.settings import Settings


class Topic(NamedTuple):
    """A topic that the worker writes."""

    name: str
    partitions: int  # as many as the input has: what follows from partition n goes to partition n
    compacted: bool
    use: str  # for a person


def input_partitions(log: Log, settings: Settings) -> dict[str, int]:
    """Return how many partitions each input topic has.

    Raises
    ------
    LogError
        Where there is no such topic, or where it is compacted.
    """
    counts = {}
    for topic in settings.routes:
        readers = ", ".join(name for name, model in settings.models.items() if model.input == topic)
        count = log.partitions(topic)
        if count is None:
            raise LogError(
                f"expected the topic {topic!r}, the input of model {readers}; there is none; "
                "publish events to it first, or correct the model's input"
            )
        if log.is_compacted(topic):
            raise LogError(
                f"expected the topic {topic!r}, the input of model {readers}, to keep every event; it is "
                "compacted, which drops all but the last one of each key; set its cleanup.policy to delete"
            )
        counts[topic] = count
    return counts


def written_topics(log: Log, settings: Settings) -> Iterator[Topic]:
    """Yield the topics that the worker writes; errors as `input_partitions`."""
    counts = input_partitions(log, settings)
    for topic, route in settings.routes.items():
        yield Topic(route.output, counts[topic], compacted=False, use=f"results of {topic}")
        yield Topic(route.dead_letters, counts[topic], compacted=False, use=f"refused events of {topic}")
        if settings.checkpoint is not None:
            yield Topic(route.state, counts[topic], compacted=True, use=f"checkpoints of {topic}")


def missing_topics(log: Log, settings: Settings) -> list[Topic]:
    """Return those that are not there yet.

    Raises
    ------
    LogError
        Where an input is missing or unfit, or where a topic is there and not as it must be.
    """
    missing = []
    for topic in written_topics(log, settings):
        count = log.partitions(topic.name)
        if count is None:
            missing.append(topic)
        elif count != topic.partitions:
            raise LogError(
                f"expected the topic {topic.name!r} ({topic.use}) to have {topic.partitions} partitions, as its "
                f"input does; it has {count}; delete it, or name another one in the settings (topics)"
            )
        elif log.is_compacted(topic.name) != topic.compacted:
            wanted = "compact" if topic.compacted else "delete"
            raise LogError(
                f"expected the topic {topic.name!r} ({topic.use}) to have cleanup.policy={wanted}; it has not; "
                "correct that, or name another topic in the settings (topics)"
            )
        elif topic.compacted and log.expires(topic.name):
            raise LogError(
                f"expected the topic {topic.name!r} ({topic.use}) to keep the last record of each key for good; "
                "its cleanup.policy deletes old ones too, and a restart would not find its checkpoint; set it to "
                f"compact alone: kafka-configs.sh --alter --entity-type topics --entity-name {topic.name} "
                "--add-config cleanup.policy=compact"
            )
    return missing


def create_topics(log: Log, settings: Settings) -> list[Topic]:
    """Create those that are not there yet and return them; errors as `missing_topics`."""
    missing = missing_topics(log, settings)
    for topic in written_topics(log, settings):  # all: one that only a recording holds is made anew beside it
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


def moved_keys(before: int, now: int | None) -> str:
    """Return what to tell a person whose input topic has another number of partitions than it had."""
    return (
        f"expected {before} partitions, as there were before, found {now}: keys have moved to other partitions "
        "than their models; publish the events to a new topic with the partitions wanted, and point models there"
    )
