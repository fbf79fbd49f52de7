"""Reading msgpack values in a kernel: heads, numbers, text. The columns of packed batches are little-endian.

No bounds are checked by the compiler: a caller's buffer has `PADDING` zeros behind the last record, `head`
looks at up to 9 bytes, and it refuses a value that passes `stop`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.core.jit import inlined, jit
from worker.codec.events import UInt8s

Bools: TypeAlias = npt.NDArray[np.bool_]
Int: TypeAlias = Any  # an int64: the compiler's, numpy's, or (with the compiler off) also Python's own

# Kinds of msgpack heads, and for the codes 0xc0-0xdf their kind and how many bytes of number follow.
NIL, BOOL, INT, FLOAT, STR, BIN, ARRAY, MAP, OTHER = range(9)
_U, _I, _F, _S, _B, _A, _M = 20, 21, FLOAT, STR, BIN, ARRAY, MAP
_KINDS = np.array(
    [
        *(NIL, OTHER, BOOL, BOOL, _B, _B, _B, OTHER, OTHER, OTHER, _F, _F, _U, _U, _U, _U),
        *(_I, _I, _I, _I, OTHER, OTHER, OTHER, OTHER, OTHER, _S, _S, _S, _A, _A, _M, _M),
    ],
    np.int8,
)
_WIDTHS = np.array(
    [0, 0, 0, 0, 1, 2, 4, 0, 0, 0, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, *[0] * 5, 1, 2, 4, 2, 4, 2, 4], np.int8
)

# Bytes of a whole value by its first one, where that says it: small ints, short strings, numbers.
_SIZES = np.array(
    [
        *([1] * 128 + [0] * 32 + list(range(1, 33))),
        *(1 + int(w) if k in (_U, _I, FLOAT, NIL, BOOL) else 0 for k, w in zip(_KINDS, _WIDTHS, strict=True)),
        *[1] * 32,
    ],
    np.int64,
)


def folded(text: str) -> int:
    """Return a name of up to 7 bytes and its length as one number, as `fold` reads it."""
    return int.from_bytes(bytes([len(text)]) + text.encode(), "big")


@jit
def head(b: UInt8s, p: Int, stop: Int) -> Any:
    """Read the head of the msgpack value at `p`.

    Returns
    -------
    tuple
        (kind, number, next): the kind; the int, the float64's bits, or the length in bytes or elements;
        and where the head ends. OTHER for what no event holds, and for what passes `stop`.
    """
    if p < 0 or p >= stop:
        return OTHER, np.int64(0), p
    code: Int = np.int64(b[p])
    p += 1
    if code < 0x80:
        return INT, code, p
    if code < 0x90:
        return MAP, code & 15, p
    if code < 0xA0:
        return ARRAY, code & 15, p
    if code >= 0xE0:
        return INT, code - 256, p
    if code < 0xC0:
        size = code & 31
        return (STR if p + size <= stop else OTHER), size, p
    kind: Int = np.int64(_KINDS[code - 0xC0])
    width = np.int64(_WIDTHS[code - 0xC0])
    number: Int = np.int64(0)
    if p + width > stop:
        return OTHER, number, p
    if width == 1:
        number = np.int64(b[p])
    elif width == 2:
        number = u16(b, p)
    elif width == 4:
        number = u16(b, p) << 16 | u16(b, p + 2)
    elif width == 8:
        number = u16(b, p) << 48 | u16(b, p + 2) << 32 | u16(b, p + 4) << 16 | u16(b, p + 6)
    p += width
    if kind == _U:
        kind = INT if number >= 0 else OTHER  # beyond int64: for the reference decoder
    elif kind == _I:
        kind = INT
        if width < 8 and number >> (8 * width - 1):
            number -= np.int64(1) << (8 * width)
    elif kind == FLOAT and width == 4:
        number = np.float64(np.uint32(number).view(np.float32)).view(np.int64)
    elif kind in (STR, BIN) and p + number > stop:
        kind = OTHER
    return kind, number, p


@inlined
def u16(b: UInt8s, p: Int) -> Int:
    """Read big-endian, as msgpack's own numbers are."""
    return np.int64(b[p]) << 8 | np.int64(b[p + 1])


@inlined
def u32(b: UInt8s, p: Int) -> Int:
    """Read 32 bits, little-endian, without a sign."""
    return np.int64(b[p]) | np.int64(b[p + 1]) << 8 | np.int64(b[p + 2]) << 16 | np.int64(b[p + 3]) << 24


@inlined
def u64(b: UInt8s, p: Int) -> Int:
    """Read 64 bits, little-endian."""
    return u32(b, p) | u32(b, p + 4) << 32


@inlined
def feature_id(b: UInt8s, p: Int, stop: Int) -> Any:
    """Read an unsigned int the quick way; return (feature, next), (-1, p) for anything else."""
    if p + 5 <= stop:
        code = np.int64(b[p])
        if code < 0x80:
            return code, p + 1
        if code == 0xCD:
            return u16(b, p + 1), p + 3
        if code == 0xCE:
            return u16(b, p + 1) << 16 | u16(b, p + 3), p + 5
    return np.int64(-1), p


@jit
def skip(b: UInt8s, p: Int, stop: Int) -> Int:
    """Return where the value at `p` ends, -1 where it is not whole."""
    left: Int = np.int64(1)
    while left > 0:
        left -= 1
        if p < stop and _SIZES[b[p]] > 0:
            p += _SIZES[b[p]]
            continue
        kind, number, p = head(b, p, stop)
        if kind == OTHER:
            return -1
        if kind in (STR, BIN):
            p += number
        elif kind == ARRAY:
            left += number
        elif kind == MAP:
            left += 2 * number
    return p if p <= stop else np.int64(-1)


@jit
def fold(b: UInt8s, p: Int, size: Int) -> Int:
    """Return a name of up to 7 bytes and its length as one number, -1 for a longer one."""
    if size > 7:
        return np.int64(-1)
    name = np.int64(size)
    for k in range(size):
        name = (name << 8) | np.int64(b[p + k])
    return name


@inlined
def number_of(kind: Int, number: Int) -> Any:
    """Return the number behind a head as a float; nan where it is none."""
    if kind == FLOAT:
        return np.int64(number).view(np.float64)
    return np.float64(number) if kind == INT else np.nan


@jit
def is_utf8(b: UInt8s, p: Int, stop: Int) -> Any:
    """Return whether the bytes are UTF-8 (shortest forms, no surrogates, up to U+10FFFF)."""
    while p < stop:
        lead = np.int64(b[p])
        p += 1
        if lead < 0x80:
            continue
        size = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if lead < 0xC2 or lead > 0xF4 or p + size > stop:
            return False
        second = np.int64(b[p])
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if second < low or second > high:
            return False
        for k in range(1, size):
            if b[p + k] & 0xC0 != 0x80:
                return False
        p += size
    return True
