"""Records that brokers take and the Python client cannot write, sent by the C library beneath it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import cimpl

_TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP, _HEADERS = 1, 3, 4, 5, 7, 8, 10  # rd_kafka_vtype_t
_COPY = 2
_NULL = -1  # the size of a header's value


class WildRecord(NamedTuple):
    """A record as it lies at a broker."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]
    timestamp: int  # any but 0, which the library takes for now


def send_wild(bootstrap: str, topic: str, records: Iterable[WildRecord]) -> None:
    """Write records to the first partition of a topic."""
    library = ctypes.CDLL(cimpl.__file__)  # finds what it is linked with
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.rd_kafka_conf_new.restype = pointer
    library.rd_kafka_new.restype = pointer
    library.rd_kafka_headers_new.restype = pointer
    error = ctypes.create_string_buffer(512)
    conf = pointer(library.rd_kafka_conf_new())
    assert library.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), error, size(512)) == 0
    producer = pointer(library.rd_kafka_new(0, conf, error, size(512)))
    assert producer, error.value
    for key, value, headers, timestamp in records:
        held = pointer(library.rd_kafka_headers_new(size(8)))
        for name, content in headers:
            length = _NULL if content is None else len(content)
            library.rd_kafka_header_add(held, name, ctypes.c_ssize_t(len(name)), content, ctypes.c_ssize_t(length))
        failed = library.rd_kafka_producev(
            producer,
            *(_TOPIC, topic.encode()),
            *(_PARTITION, ctypes.c_int32(0)),
            *(_VALUE, value, size(len(value or b""))),
            *(_KEY, key, size(len(key or b""))),
            *(_FLAGS, _COPY),
            *(_TIMESTAMP, ctypes.c_int64(timestamp)),
            *(_HEADERS, held),
            0,
        )
        assert failed == 0, confluent_kafka.KafkaError(failed)
    assert library.rd_kafka_flush(producer, 10_000) == 0
    library.rd_kafka_destroy(producer)
