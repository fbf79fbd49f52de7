"""From the key of a record to its partition, as the clients of Kafka choose it.

The events of one key must all go to one partition, or several of them each get a model of it. So whoever
publishes to a topic that others publish to as well has to choose as they do.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

Partitioner: TypeAlias = Callable[[bytes, int], int]  # of a key, among so many partitions

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995


def crc32(key: bytes, partitions: int) -> int:
    """Return the partition that librdkafka chooses by default: clients in C, Python, Go, .NET, Node and others."""
    return zlib.crc32(key) % partitions


def murmur2(key: bytes, partitions: int) -> int:
    """Return the partition that the Java client chooses by default, and with it Kafka Streams and Connect."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


PARTITIONERS: dict[str, Partitioner] = {"crc32": crc32, "murmur2": murmur2}


@lru_cache(maxsize=1 << 16)  # some microseconds a key, and the same ones come again and again
def _murmur2(data: bytes) -> int:
    """Return MurmurHash2 (Appleby, 2008), 32 bits, with the seed of Kafka's clients."""
    value = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = (int.from_bytes(data[at : at + 4], "little") * _FACTOR) & _MASK
        word = ((word ^ (word >> 24)) * _FACTOR) & _MASK
        value = ((value * _FACTOR) & _MASK) ^ word
    if rest := data[whole:]:
        value = ((value ^ int.from_bytes(rest, "little")) * _FACTOR) & _MASK
    value = ((value ^ (value >> 13)) * _FACTOR) & _MASK
    return value ^ (value >> 15)
