"""Values of the client's properties, which are left out of all that the client says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SECRET = re.compile(r"password|secret|token|pem|jaas|oauth|key|credential")  # in names of properties
_SHORTEST = 4  # characters of a value that is looked for in a sentence; a shorter one may be any word
_USER = re.compile(r"(?<=//)[^/@\s]*@")  # of an address
_hidden: set[str] = set()


def hide_values_of(properties: Mapping[str, object]) -> None:
    """Leave the values of secret properties out of all lines and errors from now on."""
    _hidden.update(str(value) for name, value in properties.items() if _SECRET.search(name) and value)


def hidden(said: str) -> str:
    """Return what a client says without secrets."""
    return without(said, _hidden)


def without(said: str, values: Iterable[object]) -> str:
    """Return what a client says without these values, and without users and passwords in addresses."""
    for value in sorted({each for each in values if isinstance(each, str) and each}, key=len, reverse=True):
        said = said.replace(f'"{value}"', '"..."')
        if len(value) >= _SHORTEST:
            said = said.replace(value, "...")
    return _USER.sub("...@", said)
