"""The adapter for Apache Kafka. Nothing outside this folder knows the client library."""

from worker.log.kafka.log import KafkaLog
from worker.log.kafka.properties import Properties, refused_properties

__all__ = ["KafkaLog", "Properties", "refused_properties"]
