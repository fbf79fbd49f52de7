"""Keys go to the partitions that Kafka's own clients choose."""

from __future__ import annotations

import random
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tests.support.logs import TIME_LIMIT
from worker.broker import Cluster
from worker.log.kafka import KafkaLog
from worker.publishing.partitioners import PARTITIONERS, crc32, murmur2

# From the unit tests of Apache Kafka's Java client (UtilsTest), whose hash is signed.
HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("partitions", [1, 3, 12, 1_000])
def test_murmur2(partitions: int) -> None:
    """The hash is the one that the Java client's own tests expect."""
    expected = [(value & 0x7FFFFFFF) % partitions for value in HASHES.values()]
    assert [murmur2(key, partitions) for key in HASHES] == expected


def test_crc32() -> None:
    """The default is the checksum that is known from zip files."""
    assert [crc32(key, 4) for key in (b"", b"a", b"sms", "zoë".encode())] == [0, 3, 3, 0]
    assert crc32(b"123456789", 1 << 32) == 0xCBF43926


@pytest.mark.parametrize(("name", "property"), [("crc32", "consistent_random"), ("murmur2", "murmur2_random")])
def test_as_the_client_does(kafka: Cluster, name: str, property: str) -> None:
    """The client, left to choose, puts the same keys into the same partitions."""
    topic, partitions = f"keys-{uuid4().hex[:12]}", 7
    with KafkaLog({"bootstrap.servers": kafka.bootstrap}, group=topic, instance="one") as log:
        log.create_topic(topic, partitions)
    draw = random.Random(7)
    keys = [draw.randbytes(length) for length in range(1, 40) for _ in range(3)]
    chosen: dict[bytes, int] = {}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": property})
    for key in keys:
        producer.produce(
            topic, b"", key, on_delivery=lambda _, sent: chosen.update({sent.key(): sent.partition()})
        )
    assert producer.flush(TIME_LIMIT) == 0
    assert chosen == {key: PARTITIONERS[name](key, partitions) for key in keys}
