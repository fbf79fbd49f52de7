"""Data that comes with the package; see README.md for where it is from and its terms."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from importlib.resources import files

from worker.sources.words import words


def sms_spam() -> Iterator[tuple[str, list[str]]]:
    """Yield (label, words) of each message of the SMS Spam Collection, in its order."""
    packed = files(__name__).joinpath("sms_spam.tsv.gz").read_bytes()
    for line in gzip.decompress(packed).decode("utf-8").splitlines():
        label, _, text = line.partition("\t")
        yield label, words(text)
