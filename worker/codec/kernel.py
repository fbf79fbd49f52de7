"""The fast decoder's kernel: a batch of msgpack records in one buffer, straight into `Events` columns.

It never judges. A record that it does not wholly understand, or finds anything wrong with, is left
(`LEFT`) for the reference decoder, so only what is plainly good has to be recognised here.

Reads never pass the buffer's end, although no bounds are checked by the compiler: `head` looks at up
to 9 bytes, `PADDING` zeros follow the last record, and whatever it found is refused if it passes `stop`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core.jit import inlined, jit
from worker.codec.events import (
    DELETE,
    DROP,
    FLOAT_LABEL,
    IDS,
    INSERT,
    INT_ID,
    INT_LABEL,
    LABEL,
    NAMES,
    NO_FEATURES,
    NO_ID,
    NO_LABEL,
    PREDICT,
    TEXT_ID,
    TEXT_LABEL,
    WEIGHT_UNIT,
    Events,
    Int32s,
    Int64s,
    UInt8s,
    UInt64s,
)
from worker.codec.wire import (
    ARRAY,
    BIN,
    FLOAT,
    INT,
    MAP,
    NIL,
    STR,
    Bools,
    Int,
    feature_id,
    fold,
    folded,
    head,
    is_utf8,
    number_of,
    skip,
    u32,
    u64,
)

PADDING = 16
LEFT, FULL_ROWS, FULL_ONES = -1, -2, -3  # what reading a record may return instead of its number of events
TOMBSTONE, SKIPPED = -1, -2  # in place of a record's size

# Slots of `Scratch.at`, and the folded names that lead to them.
OP, ID, X, Y, W, TS, N, PTR, I, V, ALL_IDS = range(11)  # noqa: E741  (the field is called i)
_FIELDS = tuple(folded(name) for name in ("op", "id", "x", "y", "w", "ts", "n", "ptr", "i", "v", "ids"))
_OPS = tuple(folded(name) for name in ("insert", "delete", "predict", "label"))
_I_NAME, _V_NAME = folded("i"), folded("v")


class Pieces(NamedTuple):
    """What is to be read: one piece a record, or one for each good row of a record that was left."""

    start: Int64s  # int64[n], where the value starts in the buffer
    size: Int64s  # int64[n], its bytes, or TOMBSTONE or SKIPPED
    record: Int32s  # int32[n], what `Events.record` will say
    row: Int32s  # int32[n], the row of the piece's first event
    timestamp: Int64s  # int64[n], ms
    trusted: Bools  # bool[n], written by the codec itself: size and repeats are known to be good
    left: Bools  # bool[n], set by the kernel for pieces that it leaves


class Limits(NamedTuple):
    """The numbers of `Bounds` that the kernel compares with."""

    record_bytes: int
    features: int
    rows: int
    elements: int
    name_bytes: int
    id_bytes: int
    ahead_ms: int


class Scratch(NamedTuple):
    """Working memory; its content means nothing between two records."""

    at: Int64s  # int64[11], where each field's value starts, -1 without it
    hashes: UInt64s  # uint64[f], of the features of one event
    table: Int32s  # int32[a power of two >= 2f], open addressing


@jit
def fill(pieces: Pieces, piece: Int, events: Int, limits: Limits, out: Events, scratch: Scratch) -> Any:
    """Read the pieces from `piece` on and write their events behind the first `events` of `out`.

    Returns
    -------
    tuple
        (status, piece, events): FULL_ROWS or FULL_ONES where `out` must grow before `piece` is read
        again, else 0 with all pieces read.
    """
    while piece < pieces.size.size:
        size = pieces.size[piece]
        if size != SKIPPED:
            if events + 1 > out.op.size:
                return FULL_ROWS, piece, events
            if size == TOMBSTONE:
                _plain(out, events, DROP, pieces.timestamp[piece])
                wrote = 1
            elif size > limits.record_bytes and not pieces.trusted[piece]:
                wrote = LEFT
            else:
                wrote = _record(pieces, piece, events, limits, out, scratch)
            if wrote < LEFT:
                return wrote, piece, events
            if wrote == LEFT:
                pieces.left[piece] = True
            else:
                for k in range(wrote):
                    out.record[events + k] = pieces.record[piece]
                    out.row[events + k] = pieces.row[piece] + k
                events += wrote
        piece += 1
    return 0, piece, events


@inlined
def _record(pieces: Pieces, piece: Int, events: Int, limits: Limits, out: Events, scratch: Scratch) -> Int:
    b, at = out.buffer, scratch.at
    start = pieces.start[piece]
    stop = start + pieces.size[piece]
    if not _locate(b, start, stop, at):
        return LEFT
    op = INSERT
    if at[OP] >= 0:
        kind, size, p = head(b, at[OP], stop)
        if kind != STR:
            return LEFT
        name = fold(b, p, size)
        op = INSERT if name == _OPS[0] else DELETE if name == _OPS[1] else PREDICT if name == _OPS[2] else DROP
        if name == _OPS[3]:
            op = LABEL
        if op == DROP:
            return LEFT
    if op == PREDICT and (at[Y] >= 0 or at[W] >= 0):
        return LEFT
    if op == LABEL and (at[X] >= 0 or at[Y] < 0):
        return LEFT
    if at[N] >= 0:
        return _columns(pieces, piece, events, op, stop, limits, out, scratch)
    if at[PTR] >= 0 or at[I] >= 0 or at[V] >= 0 or at[ALL_IDS] >= 0:
        return LEFT
    _plain(out, events, op, pieces.timestamp[piece])
    if at[ID] >= 0 and _id(b, at[ID], stop, limits, out, events) < 0:
        return LEFT
    by_id = op in (DELETE, LABEL) and out.id_kind[events] != NO_ID
    if at[Y] >= 0:
        if _label(b, at[Y], stop, limits, out, events) < 0:
            return LEFT
    elif op != PREDICT and not by_id:
        return LEFT
    if at[W] >= 0:
        kind, number, p = head(b, at[W], stop)
        out.weight[events] = _weight(number_of(kind, number))
        if out.weight[events] == 0:
            return LEFT
    if at[TS] >= 0:
        kind, number, p = head(b, at[TS], stop)
        if kind != INT or not _good_time(number, pieces.timestamp[piece], limits):
            return LEFT
        out.time[events] = number
    if at[X] >= 0:
        return _features(b, at[X], stop, pieces.trusted[piece], limits, out, events, scratch)
    return 1 if by_id else LEFT


@inlined
def _sparse(b: UInt8s, at: Int64s, op: Int, ids: Int, n: Int, stop: Int, limits: Limits) -> Any:
    """Find the columns of features: (whether they are good, pointer, features, their count, values, their width).

    All are absent, and that is good, of deletes by id, and must be so of labels.
    """
    pointer, features, count, values, width = np.int64(-1), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if at[PTR] < 0 or at[I] < 0:
        by_id = op in (DELETE, LABEL) and ids >= 0
        good = by_id and at[PTR] < 0 and at[I] < 0 and at[V] < 0
        return good, pointer, features, count, values, width
    kind, size, pointer = head(b, at[PTR], stop)
    good = op != LABEL and kind == BIN and size == 4 * (n + 1)
    kind, size, features = head(b, at[I], stop)
    count = size >> 2
    good = good and kind == BIN and size == 4 * count and count <= limits.elements
    if at[V] >= 0:
        kind, size, values = head(b, at[V], stop)
        width = np.int64(4 if size == 4 * count else 8)
        good = good and kind == BIN and size == width * count
    if good:
        good = u32(b, pointer) == 0 and u32(b, pointer + 4 * n) == count
        for k in range(n):
            good = good and u32(b, pointer + 4 * k) <= u32(b, pointer + 4 * k + 4)
    return good, pointer, features, count, values, width


@inlined
def _labels(b: UInt8s, at: Int64s, n: Int, stop: Int) -> Any:
    """Find the column of labels: (whether it is good, its start or -1, bytes of a label or 0 in an array)."""
    if at[Y] < 0:
        return True, np.int64(-1), np.int64(0)
    kind, size, labels = head(b, at[Y], stop)
    if kind == BIN and (size == n or size == 8 * n):
        return True, labels, np.int64(1 if size == n else 8)
    return kind == ARRAY and size == n, labels, np.int64(0)


@jit
def _columns(
    pieces: Pieces, piece: Int, events: Int, op: Int, stop: Int, limits: Limits, out: Events, scratch: Scratch
) -> Int:
    """Read a record of columns: return its number of events, or what `fill` returns instead.

    Longer than other functions here, as a row takes its next value from each of eight columns in one loop.
    """
    b, at, timestamp = out.buffer, scratch.at, pieces.timestamp[piece]
    kind, n, p = head(b, at[N], stop)
    if kind != INT or n < 0 or n > limits.rows or at[ID] >= 0 or at[X] >= 0:
        return LEFT
    if op in (INSERT, LABEL) and at[Y] < 0:
        return LEFT
    ids = np.int64(-1)
    if at[ALL_IDS] >= 0:
        kind, size, ids = head(b, at[ALL_IDS], stop)
        if kind != ARRAY or size != n:
            return LEFT
    good, pointer, features, count, values, width = _sparse(b, at, op, ids, n, stop, limits)
    if not good:
        return LEFT
    good, labels, label_width = _labels(b, at, n, stop)
    if not good:
        return LEFT
    weights, packed_weights = np.int64(-1), False
    if at[W] >= 0:
        kind, size, weights = head(b, at[W], stop)
        packed_weights = kind == BIN
        if not (packed_weights and size == 8 * n) and not (kind == ARRAY and size == n):
            return LEFT
    times, time = np.int64(-1), np.int64(0)
    if at[TS] >= 0:
        kind, time, p = head(b, at[TS], stop)
        if kind == BIN and time == 8 * n:
            times = p
        elif kind != INT or not _good_time(time, timestamp, limits):
            return LEFT
    if events + n > out.op.size:
        return FULL_ROWS
    if out.pointer[events] + count > out.feature.size:
        return FULL_ONES
    for k in range(n):
        event = events + k
        _plain(out, event, op, timestamp)
        if ids >= 0:
            ids = _id_or_nil(b, ids, stop, limits, out, event)
            if ids < 0:
                return LEFT
        if (pointer < 0 or labels < 0) and op in (DELETE, LABEL) and out.id_kind[event] == NO_ID:
            return LEFT
        if label_width == 1:
            out.label_kind[event] = INT_LABEL
            out.label[event] = b[labels + k]
        elif label_width == 8:
            if not _float_label(u64(b, labels + 8 * k), out, event):
                return LEFT
        elif labels >= 0:
            labels = _label(b, labels, stop, limits, out, event)
            if labels < 0:
                return LEFT
        if weights >= 0:
            if packed_weights:
                weight = np.int64(u64(b, weights + 8 * k)).view(np.float64)
            else:
                kind, number, weights = head(b, weights, stop)
                weight = number_of(kind, number)
            out.weight[event] = _weight(weight)
            if out.weight[event] == 0:
                return LEFT
        if times >= 0:
            time = np.int64(u64(b, times + 8 * k))
            if not _good_time(time, timestamp, limits):
                return LEFT
        if time > 0:
            out.time[event] = time
        if pointer >= 0:
            first = u32(b, pointer + 4 * k)
            size = u32(b, pointer + 4 * k + 4) - first
            if size > limits.features:
                return LEFT
            if not _gather(
                b,
                stop,
                True,
                features + 4 * first,
                size,
                values + width * first,
                width,
                False,
                limits,
                out,
                event,
                scratch,
            ):
                return LEFT
    return n


# The parts of an event


@inlined
def _plain(out: Events, event: Int, op: Int, timestamp: Int) -> None:
    """Write an event that has nothing but an operation and a time."""
    out.op[event] = op
    out.time[event] = max(timestamp, 1)
    out.weight[event] = WEIGHT_UNIT
    out.id_kind[event] = NO_ID
    out.id_high[event] = 0
    out.id_low[event] = 0
    out.id_start[event] = 0
    out.id_size[event] = 0
    out.label_kind[event] = NO_LABEL
    out.label[event] = 0
    out.label_size[event] = 0
    out.space[event] = NO_FEATURES
    out.pointer[event + 1] = out.pointer[event]


@inlined
def _id_or_nil(b: UInt8s, p: Int, stop: Int, limits: Limits, out: Events, event: Int) -> Int:
    kind, _, after = head(b, p, stop)
    return after if kind == NIL else _id(b, p, stop, limits, out, event)


@inlined
def _id(b: UInt8s, p: Int, stop: Int, limits: Limits, out: Events, event: Int) -> Int:
    """Write the id at `p`; return where it ends, -1 where it is none."""
    kind, number, after = head(b, p, stop)
    if kind == STR and number <= limits.id_bytes and is_utf8(b, after, after + number):
        out.id_kind[event] = TEXT_ID
        out.id_high[event], out.id_low[event] = _digest_text(b, after, number)
        after += number
    elif kind == INT:
        out.id_kind[event] = INT_ID
        out.id_high[event], out.id_low[event] = _absorb(np.uint64(INT_ID), np.uint64(INT_ID), np.uint64(number))
    else:
        return -1
    out.id_start[event] = p
    out.id_size[event] = after - p
    return after


@inlined
def _label(b: UInt8s, p: Int, stop: Int, limits: Limits, out: Events, event: Int) -> Int:
    """Write the label at `p`; return where it ends, -1 where it is none."""
    kind, number, after = head(b, p, stop)
    if kind == INT:
        out.label_kind[event] = INT_LABEL
        out.label[event] = number
        return after
    if kind == FLOAT and _float_label(number, out, event):
        return after
    if kind == STR and number <= limits.name_bytes and is_utf8(b, after, after + number):
        out.label_kind[event] = TEXT_LABEL
        out.label[event] = after
        out.label_size[event] = number
        return after + number
    return -1


@inlined
def _float_label(bits: Int, out: Events, event: Int) -> Any:
    number = np.int64(bits).view(np.float64) + 0.0  # -0.0 and 0.0 are one label
    out.label_kind[event] = FLOAT_LABEL
    out.label[event] = np.float64(number).view(np.int64)
    return np.isfinite(number)


@inlined
def _weight(weight: Any) -> Int:
    """Return the weight in WEIGHT_UNIT-ths, 0 where it is not allowed (NaN fails both comparisons)."""
    if weight > 0.0 and weight <= 2147483648.0:
        return np.int64(np.rint(weight * WEIGHT_UNIT))
    return np.int64(0)


@inlined
def _good_time(time: Int, timestamp: Int, limits: Limits) -> Any:
    return 1 <= time <= 9007199254740992 and not (timestamp > 0 and time - timestamp > limits.ahead_ms)


@inlined
def _features(
    b: UInt8s, p: Int, stop: Int, trusted: Any, limits: Limits, out: Events, event: Int, scratch: Scratch
) -> Int:
    """Read x of a single event; return 1, or why it was not read."""
    kind, count, p = head(b, p, stop)
    packed, values, width = False, np.int64(0), np.int64(0)
    if kind == MAP:
        width = np.int64(-1)
        name_kind, size, q = head(b, p, stop)
        if count > 0 and name_kind == STR and fold(b, q, size) == _I_NAME:
            inner, size, q = head(b, q + size, stop)
            if inner in (BIN, ARRAY):
                width = np.int64(0)
                packed = inner == BIN
                after = q + size if packed else q
                if not packed:
                    for _ in range(size):
                        after = skip(b, after, stop)
                    if after < 0:
                        return LEFT
                elements = size >> 2 if packed else size
                if packed and size != 4 * elements:
                    return LEFT
                if count == 2:
                    kind, size, values = head(b, after, stop)
                    if kind != STR or fold(b, values, size) != _V_NAME:
                        return LEFT
                    kind, size, values = head(b, values + size, stop)
                    width = np.int64(4 if size == 4 * elements else 8)
                    if kind != BIN or size != width * elements:
                        return LEFT
                elif count != 1:
                    return LEFT
                count, p = elements, q
    elif kind != ARRAY:
        return LEFT
    if count > limits.features:
        return LEFT
    if out.pointer[event] + count > out.feature.size:
        return FULL_ONES
    good = _gather(b, stop, packed, p, count, values, width, trusted, limits, out, event, scratch)
    return 1 if good else LEFT


@inlined
def _gather(
    b: UInt8s,
    stop: Int,
    packed: Any,
    p: Int,
    count: Int,
    values: Int,
    width: Int,
    trusted: Any,
    limits: Limits,
    out: Events,
    event: Int,
    scratch: Scratch,
) -> Any:
    """Write `count` features of an event; return whether all of them are good.

    They are uint32 in a row where `packed`, else msgpack values from `p` on. Their values are bytes at
    `values` of `width` 4 or 8; or (width -1) a msgpack value after each feature; or (width 0) all 1.
    """
    space, previous, ascending = NO_FEATURES, np.int64(-1), True
    one = out.pointer[event]
    for k in range(count):
        feature, name, size = np.int64(0), np.int64(0), np.int64(0)
        if packed:
            feature = u32(b, p)
            p += 4
            kind = INT
        else:
            feature, p = feature_id(b, p, stop)
            kind = INT
            if feature < 0:
                kind, feature, p = head(b, p, stop)
        if kind == INT:
            if feature < 0 or feature > 4294967295 or space == NAMES:
                return False
            space = IDS
            ascending = ascending and previous < feature
            previous = feature
            scratch.hashes[k] = feature
        elif kind == STR:
            name, size, feature = p, feature, np.int64(0)
            if size > limits.name_bytes or space == IDS or not is_utf8(b, name, name + size):
                return False
            space = NAMES
            ascending = False
            scratch.hashes[k] = _hash(b, name, size)
            p += size
        else:
            return False
        value = 1.0
        if width == 8:
            value = np.int64(u64(b, values + 8 * k)).view(np.float64)
        elif width == 4:
            value = np.float64(np.uint32(u32(b, values + 4 * k)).view(np.float32))
        elif width < 0:
            kind, number, p = head(b, p, stop)
            value = number_of(kind, number)
        if not np.isfinite(value):
            return False
        if value != 0.0:
            out.feature[one] = feature
            out.name_start[one] = name
            out.name_size[one] = size
            out.value[one] = value
            one += 1
    if not (ascending or trusted or _distinct(scratch.hashes, scratch.table, count)):
        return False
    if one > out.pointer[event]:
        out.space[event] = space
    out.pointer[event + 1] = one
    return True


@jit
def _distinct(hashes: UInt64s, table: Int32s, count: Int) -> Any:
    """Return whether all hashes differ; False as well where crafted ones crowd the table."""
    slots = 2
    while slots < 2 * count:
        slots *= 2
    table[:slots] = 0
    steps = 16 * count + 64
    for k in range(count):
        slot = np.int64((hashes[k] * _PRIMES[0]) >> np.uint64(32)) & (slots - 1)
        while table[slot] > 0:
            steps -= 1
            if steps < 0 or hashes[table[slot] - 1] == hashes[k]:
                return False
            slot = (slot + 1) & (slots - 1)
        table[slot] = k + 1
    return True


# Digests

# Odd 64-bit constants whose bits look random: the fractions of the golden ratio and of sqrt 2, 3, 5.
_PRIMES = np.array([0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B], np.uint64)


@jit
def _mix(word: Any, prime: Any) -> Any:
    word = (word ^ (word >> np.uint64(32))) * prime
    word = (word ^ (word >> np.uint64(29))) * prime
    return word ^ (word >> np.uint64(32))


@jit
def _absorb(high: Any, low: Any, word: Any) -> Any:
    """Mix one 64-bit word into both halves of a 128-bit digest, by two unrelated ways."""
    return _mix(high + word * _PRIMES[0], _PRIMES[1]), _mix((low ^ word) + _PRIMES[2], _PRIMES[3])


@jit
def _digest_text(b: UInt8s, start: Int, size: Int) -> Any:
    """Return the digest (high, low) of a text id: 8 bytes at a time, the last ones filled up with zeros."""
    high, low = _absorb(np.uint64(TEXT_ID), np.uint64(TEXT_ID), np.uint64(size))
    p = start
    while p + 8 <= start + size:
        high, low = _absorb(high, low, np.uint64(u64(b, p)))
        p += 8
    if p < start + size:
        word = np.int64(0)
        for k in range(start + size - p):
            word |= np.int64(b[p + k]) << (8 * k)
        high, low = _absorb(high, low, np.uint64(word))
    return high, low


@jit
def _hash(b: UInt8s, start: Int, size: Int) -> Any:
    word = np.uint64(size)
    for k in range(size):
        word = (word ^ np.uint64(b[start + k])) * _PRIMES[1]
        word ^= word >> np.uint64(32)
    return word


@jit
def _locate(b: UInt8s, p: Int, stop: Int, at: Int64s) -> Any:
    """Note where each field's value starts; return whether it is one map of known fields, each once."""
    at[:] = -1
    kind, count, p = head(b, p, stop)
    if kind != MAP:
        return False
    for _ in range(count):
        kind, size, p = head(b, p, stop)
        if kind != STR:
            return False
        name = fold(b, p, size)
        field = -1
        for k in range(len(_FIELDS)):
            if _FIELDS[k] == name:
                field = k
        if field < 0 or at[field] >= 0:
            return False
        at[field] = p + size
        p = skip(b, p + size, stop)
        if p < 0:
            return False
    return p == stop
