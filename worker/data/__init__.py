"""Data that comes with the package; see README.md for where it is from and its terms."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from importlib.resources import files

_TOKEN = re.compile(r"[a-z0-9]+")


def sms_spam() -> Iterator[tuple[str, list[str]]]:
    """Yield (label, words) of each message of the SMS Spam Collection, in its order."""
    packed = files(__name__).joinpath("sms_spam.tsv.gz").read_bytes()
    for line in gzip.decompress(packed).decode("utf-8").splitlines():
        label, _, text = line.partition("\t")
        yield label, words_of(text)


def words_of(text: str) -> list[str]:
    """Return the runs of letters and digits of the lower-cased text, each once, in order of appearance."""
    return list(dict.fromkeys(_TOKEN.findall(text.lower())))
