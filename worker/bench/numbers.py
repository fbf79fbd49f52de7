"""Recorded sets whose labels are numbers, as streams for `bench regression`; the folder with the files is given.

Columns of numbers are features as they are, a cell without one is absent. A column of texts is a binary feature
for each text. Of a time the hour and the day of the week are features.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from algorithms.core.kinds import Kind
from worker.bench.regression import Stream


class _Set(NamedTuple):
    """A file, and which of its columns are what."""

    file: str
    label: str
    others: frozenset[str] = frozenset()  # that say the label, or nothing
    time: str | None = None  # as in 2012-10-02 09:00


RECORDED = {
    "bike_hour": _Set("bike_hour.csv.gz", "cnt", frozenset({"casual", "registered", "instant", "dteday"})),
    "beijing_pm25": _Set("beijing_pm25.csv.gz", "pm2.5", frozenset({"No"})),
    "metro_traffic": _Set("metro_traffic.csv.gz", "traffic_volume", time="date_time"),
    "ccpp": _Set("ccpp.csv.gz", "PE"),
    "flights_nyc13": _Set("flights_nyc13.csv.gz", "ArrDelay", frozenset({"Delay", "Flight"})),
}


def recorded(name: str, folder: Path, n: int) -> Stream:
    """Return the first n examples of a recorded set that have a label.

    Raises
    ------
    ValueError
        Where its file is missing or not as expected.
    """
    about = RECORDED[name]
    path = folder / about.file
    if not path.is_file():
        raise ValueError(
            f"expected the file {about.file} in {folder}, found none; put it there or name its folder"
        )
    pointer, feature, value, y = [0], [], [], []
    numbers: dict[tuple[str, str], int] = {}
    texts: set[int] = set()
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if about.label not in (rows.fieldnames or ()):
            raise ValueError(f"expected a column {about.label} in {path}, got {rows.fieldnames}; get it again")
        for row in rows:
            label = _number(row[about.label])
            if label is None:
                continue
            cells = {}
            for key, told in _cells(row, about):
                known = numbers.setdefault(key, len(numbers))
                if key[1]:
                    texts.add(known)
                cells[known] = told
            feature += sorted(cells)
            value += [cells[known] for known in sorted(cells)]
            pointer.append(len(feature))
            y.append(label)
            if len(y) == n:
                break
    return Stream(
        name,
        Kind.NUMERIC,
        np.array(pointer, np.int64),
        np.array(feature, np.int64),
        np.array(value, np.float64),
        np.array(y, np.float64),
        frozenset(texts),
    )


def _cells(row: dict[str, str], about: _Set) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield features, by column and text, with their values."""
    for column, text in row.items():
        if column == about.label or column in about.others:
            continue
        if column == about.time:
            at = datetime.fromisoformat(text)
            yield ("hour", ""), float(at.hour)
            yield ("weekday", ""), float(at.weekday())
            continue
        told = _number(text)
        if told is not None:
            yield (column, ""), told
        elif text not in ("", "NA", "None"):
            yield (column, text), 1.0


def _number(text: str) -> float | None:
    try:
        told = float(text)
    except ValueError:
        return None
    return told if math.isfinite(told) else None
