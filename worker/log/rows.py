"""How a record lies in the file of an embedded log, and the way between rows and columns.

A record's row id is ``partition id << 40 | offset``, so the records of a partition lie next to each
other in one B-tree: reading on from an offset is one range scan, without an index and without a sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgpack
import numpy as np

from worker.log.port import Headers, Records, TopicPartition

OFFSET_BITS = 40  # 10^12 offsets in a partition and 2^23 partitions fit a signed 64-bit row id

Row: TypeAlias = tuple[int, int, bytes | None, bytes | None, bytes | None]  # a row of `records`


def headers_packer() -> Callable[[Headers], bytes]:
    """Return what packs headers for rows; names keep their bytes, also those that are no UTF-8."""
    pack: Callable[[Headers], bytes] = msgpack.Packer(unicode_errors="surrogateescape").pack
    return pack


def pack_rows(partition: int, records: Records) -> Iterator[Row]:
    """Yield the rows that hold `records` in the partition of this id, offsets kept."""
    first = partition << OFFSET_BITS
    pack = headers_packer()
    columns = (records.offsets.tolist(), records.timestamps.tolist(), records.keys, records.values)
    for offset, timestamp, key, value, headers in zip(*columns, records.headers, strict=True):
        yield first | offset, timestamp, key, value, pack(headers) if headers else None


def unpack_rows(partition: int, source: TopicPartition, rows: list[Row], next_offset: int) -> Records:
    """Return the records in `rows` of the partition of this id."""
    ids, timestamps, keys, values, packed = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return Records(
        source=source,
        offsets=np.array(ids, dtype=np.int64) - (partition << OFFSET_BITS),
        timestamps=np.array(timestamps, dtype=np.int64),
        keys=keys,
        values=values,
        # Events seldom have headers, so the usual column is made without a look at each record.
        headers=[_unpacked(each) for each in packed] if any(packed) else ((),) * len(packed),
        next_offset=next_offset,
    )


def _unpacked(packed: bytes | None) -> Headers:
    if packed is None:
        return ()
    headers: Headers = msgpack.unpackb(packed, use_list=False, unicode_errors="surrogateescape")
    return headers
