"""How the nodes are set up: for one machine, quick to start, quick to notice that one of them is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from worker.broker.ports import HOST

# Relative to the node's folder, which so may have any name and be moved.
DATA = "data"

# What a node prints is its log file; the list of some 400 settings at each start would bury the rest.
LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c{1})%n
logger.settings.name = org.apache.kafka.common.config.AbstractConfig
logger.settings.level = WARN
"""


def node_properties(
    number: int, port: int, controllers: Sequence[int], listeners: Mapping[str, int]
) -> dict[str, str]:
    """Return the properties of a node.

    Parameters
    ----------
    number : int
        The node's id, from 1.
    port : int
        Where clients reach it.
    controllers : sequence of int
        The controllers' ports, node 1 first; their number is the size of the cluster.
    listeners : mapping of str to int
        Further ports of the node, by security protocol.
    """
    copies = str(min(3, len(controllers)))
    enough = str(min(2, len(controllers)))  # copies that a committed record has, so that one node may be lost
    properties = {
        "node.id": number,
        "process.roles": "broker,controller",
        "listeners": ",".join(
            f"{protocol}://{HOST}:{at}"
            for protocol, at in {"PLAINTEXT": port, "CONTROLLER": controllers[number - 1], **listeners}.items()
        ),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", *(f"{protocol}:{protocol}" for protocol in ("PLAINTEXT", *listeners))]
        ),
        # Voters in the settings rather than in the data, so that a folder can be started on other ports.
        "controller.quorum.voters": ",".join(
            f"{voter}@{HOST}:{controller}" for voter, controller in enumerate(controllers, 1)
        ),
        "log.dirs": DATA,
        "default.replication.factor": copies,
        "min.insync.replicas": enough,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": enough,
        "unclean.leader.election.enable": "false",
        "auto.create.topics.enable": "false",
        # A record's age counts from its timestamp: events of long ago would be gone some minutes after they came.
        "log.retention.ms": -1,
        # Each partition of these is a few files to open at each start; 50 are for clusters.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 4,
        # A group is ready once its first member is there, and members may choose to be missed soon.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1_000,
        "group.consumer.min.session.timeout.ms": 1_000,
        "group.consumer.min.heartbeat.interval.ms": 100,
        # How long a node that is gone keeps its partitions, and one that was killed waits at its next start.
        "broker.session.timeout.ms": 3_000,
        "broker.heartbeat.interval.ms": 500,
        # Of the heap, allocated at start; 128 MiB otherwise.
        "log.cleaner.dedupe.buffer.size": 8 << 20,
    }
    return {name: str(value) for name, value in properties.items()}
