"""Where `anabranch publish` writes to: an embedded log, or the log that a settings file names."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import click

from algorithms.core.kinds import Kind
from worker.commands.common import open_log, read_settings, show_command
from worker.log.browse import Browser
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError, TopicPartition
from worker.publishing.partitioners import PARTITIONERS, Partitioner
from worker.settings import Settings
from worker.settings.models import ExampleSettings
from worker.sources.topic import topic_contents

_LOOKED_AT = 1_000  # events of before
_BYTES = 8 << 20  # of their records


@dataclass(frozen=True)
class Target:
    """Where records are to go, as the command line says it.

    Parameters
    ----------
    log_path
        The file of an embedded log, None where settings name the log.
    settings_file, settings
        The file, and what it says; None where there is none.
    topic
        The topic that was named.
    partitions
        How many it is to have.
    partitioner
        Which partition a key goes to.
    """

    log_path: Path | None
    settings_file: Path | None
    settings: Settings | None
    topic: str | None
    partitions: int | None
    partitioner: Partitioner

    @property
    def is_named(self) -> bool:
        """Whether there is one."""
        return self.log_path is not None or self.settings is not None

    @property
    def inputs(self) -> list[str]:
        """The input topics of the settings."""
        return [] if self.settings is None else list(self.settings.routes)

    @property
    def name(self) -> str:
        """What messages call the log."""
        if self.settings is None:
            return str(self.log_path)
        kafka = self.settings.log.kafka
        return str(self.settings.log.embedded) if kafka is None else kafka.bootstrap

    def the_topic(self) -> str:
        """Return the topic that was named, else the only input of the settings."""
        if self.topic is not None:
            return self.topic
        if len(self.inputs) == 1:
            return self.inputs[0]
        several = f" (the models' inputs are {', '.join(self.inputs)})" if self.inputs else ""
        raise click.UsageError(f"expected --topic NAME, the topic to publish to{several}; name one")

    @contextmanager
    def opened(self, topics: Sequence[str], stopped: Callable[[], bool]) -> Iterator[Log]:
        """Open the log, to write to these topics; `stopped` ends waiting for brokers that are away."""
        if self.settings is None:
            assert self.log_path is not None
            with EmbeddedLog(self.log_path) as embedded:
                yield embedded
            return

        def pulse() -> None:
            if stopped():
                raise LogError("stopped while no broker answered")

        # A name of its own, as one that writes under the worker's would shut the worker out.
        role = f"-publish-{'-'.join(topics)}"
        with open_log(self.settings, pulse, role=role, create=True) as log:
            yield log

    def prepare(self, log: Log, topic: str, partitions: int | None) -> int:
        """Return how many partitions the topic has. In an embedded log it is made where it is missing.

        Raises `LogError` where it has another number of partitions than is wanted, and where a cluster lacks it.
        """
        count = log.partitions(topic)
        if self.settings is None or self.settings.log.kafka is None:
            count = partitions or count or 1
            log.create_topic(topic, count)
        elif count is None:
            raise LogError(
                f"expected the topic {topic!r} at {self.name}; there is none; {self._advice(topic, partitions)}"
            )
        elif partitions not in (None, count):
            raise LogError(
                f"expected the topic {topic!r} at {self.name} to have {partitions} partitions, it has {count}; "
                "publish to a topic with as many"
            )
        return count

    def records(self, log: Log, topic: str, partitions: int) -> int:
        """Return how many records an embedded log has in the topic; 0 of Kafka, where a topic has a past."""
        if self.settings is not None and self.settings.log.kafka is not None:
            return 0
        bounds = (log.watermarks(TopicPartition(topic, number)) for number in range(partitions))
        return sum(high - low for low, high in bounds)

    def known_features(self, log: Log | None, topic: str) -> set[str]:
        """Return features that the topic's last events have, and those that its models take as numbers."""
        known: set[str] = set()
        for model in self.settings.models.values() if self.settings is not None else ():
            if model.input == topic and isinstance(model, ExampleSettings):
                kinds = model.feature_kinds[1].items()
                known |= {each.decode() for each, kind in kinds if isinstance(each, bytes) and kind != Kind.BINARY}
        count = None if log is None else log.partitions(topic)
        if log is not None and count:
            bounds = {each: log.watermarks(each) for each in (TopicPartition(topic, n) for n in range(count))}
            found = topic_contents(Browser(log, bounds).tail(_LOOKED_AT), _LOOKED_AT, _BYTES)
            known |= {feature for feature in found.features if isinstance(feature, str)}
        return known

    def _advice(self, topic: str, partitions: int | None) -> str:
        if topic in self.inputs:
            file = shlex.quote(str(self.settings_file))
            return f"create it first: anabranch topics create {file} --inputs {partitions or 'N'}"
        return f"create it with the tools of Kafka, or publish to an input of the models: {', '.join(self.inputs)}"

    def next_steps(self, topic: str) -> str:
        """Return what can be done with the events of the topic."""
        route = None if self.settings is None else self.settings.routes.get(topic)
        output = f"{topic}.out" if route is None else route.output
        if self.settings is not None and route is None:
            inputs = ", ".join(self.inputs)
            return f"no model of {self.settings_file} reads {topic}: set it as the input of one (now {inputs})"
        if self.settings is None:
            run = f"SETTINGS, with a model whose input is {topic} (anabranch init writes them)"
        else:
            run = f"{shlex.quote(str(self.settings_file))} --until-end"
        where = self.settings_file or self.log_path
        assert where is not None
        return f"next: anabranch run {run}; then\n      {show_command(where, output)}"


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say where records go; the command is given them as `target`."""

    @click.option("--log", "log_path", metavar="FILE", type=click.Path(path_type=Path), help="An embedded log.")
    @click.option(
        "--to",
        "settings_file",
        metavar="SETTINGS",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Instead of --log: the log that SETTINGS name, Kafka or embedded.",
    )
    @click.option(
        "--topic",
        help="The topic. An embedded log makes it where it is missing, Kafka has to have it."
        "  [default: the input topic of SETTINGS]",
    )
    @click.option("--partitions", type=click.IntRange(1), help="Of a new topic.  [default: 1]")
    @click.option(
        "--partitioner",
        type=click.Choice(list(PARTITIONERS)),
        default="crc32",
        show_default=True,
        help="How keys choose partitions: crc32 as clients of librdkafka do, murmur2 as Java clients do.",
    )
    @wraps(command)
    def with_target(
        *,
        log_path: Path | None,
        settings_file: Path | None,
        topic: str | None,
        partitions: int | None,
        partitioner: str,
        **others: object,
    ) -> None:
        if log_path is not None and settings_file is not None:
            raise click.UsageError("expected --log or --to, got both; leave one out")
        settings = None if settings_file is None else read_settings(settings_file)
        target = Target(log_path, settings_file, settings, topic, partitions, PARTITIONERS[partitioner])
        command(target=target, **others)

    return with_target
