"""Header names of any bytes: brokers take them, and the client takes them for UTF-8.

Of a name that is not UTF-8 the client raises SystemError when it is read, and ends the process when it is written.
It converts names by the rules of Python, which asks a registered function what to do about bytes that it cannot
decode, and about characters that it cannot encode. For a moment, in one thread, another answer is given: such
bytes become lone surrogates (PEP 383), which stand for them in the worker, and become those bytes again.

A name ends for the client where it has a byte 0: what follows is not to be had.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

_strict = codecs.lookup_error("strict")
_bytes_as_surrogates = codecs.lookup_error("surrogateescape")
_one_at_a_time = Lock()


@contextmanager
def names_of_any_bytes() -> Iterator[None]:
    """Let this thread read and write header names that are not UTF-8; others notice nothing."""
    owner = get_ident()

    def handle(error: UnicodeError) -> tuple[str | bytes, int]:
        return (_bytes_as_surrogates if get_ident() == owner else _strict)(error)

    with _one_at_a_time:
        codecs.register_error("strict", handle)
        try:
            yield
        finally:
            codecs.register_error("strict", _strict)
