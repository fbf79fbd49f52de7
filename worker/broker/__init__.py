"""Apache Kafka on this machine, for trying things out and for tests: real nodes, started from their jars.

Nothing here speaks to Kafka: it looks after jars, folders, ports and processes.
"""

from worker.broker.cluster import Cluster
from worker.broker.errors import BrokerError, BrokerUnavailable
from worker.broker.jars import Installation, cache_folder, install
from worker.broker.node import Node

__all__ = ["BrokerError", "BrokerUnavailable", "Cluster", "Installation", "Node", "cache_folder", "install"]
