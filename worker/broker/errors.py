"""What goes wrong with nodes of one's own; messages say what was expected, what came and what to do."""

from __future__ import annotations


class BrokerError(Exception):
    """A node did not start, a port is taken, or a folder is not to be used."""


class BrokerUnavailable(BrokerError):
    """Kafka cannot be run here at all: no Java, no Maven, or the jars are not to be had."""
