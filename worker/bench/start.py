"""`bench start`: from a file to a result by the commands that `init` prints, beside the library on the same rows.

The commands are run as a stranger would run them, without editing anything. The library's side reads the file by
code of its own, with the parameters that `init` wrote, so that whatever a command loses or misreads is seen.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from algorithms.trees.predict import Predict
from worker.bench.cases import Progress, Row, against_baselines, machine, significant
from worker.bench.tables import Table
from worker.bench.trees import Side, batches_of, pool_for, run
from worker.settings import load
from worker.settings.models import TreeSettings
from worker.sources.generators import BINARY, NUMERIC
from worker.sources.words import words

Example: TypeAlias = dict[str | int, float]  # features without those that are 0
Examples: TypeAlias = Iterator[tuple[Example, str]]  # with the label

_SECONDS = 3_600  # for a command
_ROOT = Path(__file__).resolve().parents[2]  # where this package is


class StartError(Exception):
    """A command did not do what was expected; the message has all that it said."""


class _Set(NamedTuple):
    """A recorded set."""

    file: str
    options: tuple[str, ...]  # of `init`: what no program can know
    read: Callable[[Path], Examples]
    is_numeric: Callable[[str | int], bool] = lambda feature: True
    header: int = 0  # lines before the rows
    parquet: bool = False  # whether a copy in Parquet is what is published


def _electricity(path: Path) -> Examples:
    for row in csv.DictReader(_lines(path)):
        label = row.pop("class")
        yield {name: float(cell) for name, cell in row.items() if float(cell)}, label


_NOMINAL, _BINARY = ("2", "3", "4"), ("7", "12", "14", "20", "21", "22")


def _kdd99(path: Path) -> Examples:
    for *cells, label in csv.reader(_lines(path)):
        named = [(str(at), cell) for at, cell in enumerate(cells, 1)]
        example: Example = {f"{name}={cell}": 1.0 for name, cell in named if name in _NOMINAL}
        example.update((name, float(cell)) for name, cell in named if name not in _NOMINAL and float(cell))
        yield example, label


def _covertype(path: Path) -> Examples:
    with np.load(path) as arrays:
        value, labels = arrays["X"], arrays["y"]
    for row, label in zip(value, labels.tolist(), strict=True):
        yield {int(at): float(row[at]) for at in np.flatnonzero(row)}, str(label)


def _katakis(path: Path) -> Examples:
    with np.load(path) as arrays:
        pointer, indices, labels = arrays["indptr"], arrays["indices"], arrays["labels"]
    for low, high, label in zip(pointer[:-1], pointer[1:], labels.tolist(), strict=True):
        yield dict.fromkeys(indices[low:high].tolist(), 1.0), str(label)


def _sms(path: Path) -> Examples:
    for line in _lines(path):
        label, _, text = line.rstrip("\n").partition("\t")
        yield dict.fromkeys(words(text), 1.0), label


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from file


SETS = {
    "electricity": _Set("electricity.csv.gz", (), _electricity, header=1),
    "electricity.parquet": _Set("electricity.csv.gz", (), _electricity, header=1, parquet=True),
    "kdd99": _Set(
        "kddcup99_10pct.csv.gz",
        ("--label", "42"),
        _kdd99,
        lambda feature: "=" not in str(feature) and feature not in _BINARY,
    ),
    "covertype": _Set("covtype.npz", (), _covertype, lambda feature: int(feature) < 10),
    "spam_katakis": _Set("spam_katakis.npz", (), _katakis, lambda _: False),
    "sms": _Set("sms_spam_raw.tsv.gz", ("--format", "text"), _sms, lambda _: False),
}


def bench_start(names: list[str], data: Path, rows: int, progress: Progress = lambda step: None) -> Iterator[Row]:
    """Yield a line for each set: what the commands came to, and the library.

    Parameters
    ----------
    names : list of str
        Keys of `SETS`.
    data : Path
        The folder of the recorded sets.
    rows : int
        Larger sets are cut to so many rows.
    progress : callable
        Called with what is about to run.

    Raises
    ------
    ValueError
        Where a file is missing.
    StartError
        Where a command fails.
    """
    for name in names:
        if not (data / SETS[name].file).is_file():
            raise ValueError(f"expected the file {SETS[name].file} in {data}, found none; put it there")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            yield _line(name, SETS[name], data, Path(folder), rows, progress)


def _line(name: str, each: _Set, data: Path, folder: Path, rows: int, progress: Progress) -> Row:
    original = _cut(data / each.file, folder, rows, each.header)
    file = _parquet(original) if each.parquet else original
    init = ("init", file.name, *each.options)
    progress(f"{name}: init")
    said, seconds = _run(folder, *init)
    commands = re.findall(r"^  anabranch (.*)$", said, re.MULTILINE)[:-1]  # less `show`
    taken, outputs = [seconds], []
    for command in commands:
        progress(f"{name}: {command}")
        output, seconds = _run(folder, *shlex.split(command))
        outputs.append(output)
        taken.append(seconds)
    inserts, refused, accuracy = _result(outputs[-1])
    progress(f"{name}: the library")
    model = load(folder / "worker.yaml", {}).models["tree"]
    if not isinstance(model, TreeSettings):
        raise StartError(f"expected a model of kind tree, got {model.kind}")
    library = _library(name, each, original, model)
    return {
        "bench": "start",
        "data": name,
        "rows": inserts,
        "commands": [f"anabranch {command}" for command in [shlex.join(init), *commands]],
        "seconds": [significant(each) for each in taken],
        "refused": refused,
        "accuracy": accuracy,
        **library,
        "points": round(100 * (accuracy - library["library"]), 2),
        "policy": model.policy,
        "predict": model.predict,
        "machine": machine(),
    }


def _cut(path: Path, folder: Path, rows: int, header: int) -> Path:
    """Return a copy of a file with at most so many rows, beside where the settings will be."""
    to = folder / path.name
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            cut = {name: array[:rows] for name, array in arrays.items() if name in ("X", "y", "labels")}
            if "indptr" in arrays:
                cut["indptr"] = arrays["indptr"][: rows + 1]
                cut["indices"] = arrays["indices"][: cut["indptr"][-1]]
        np.savez(to, **cut)
        return to
    with gzip.open(path, "rb") as source, gzip.open(to, "wb", compresslevel=1) as file:
        file.writelines(islice(source, header + rows))
    return to


def _parquet(path: Path) -> Path:
    """Return a copy of a CSV file as Parquet."""
    import pyarrow.csv
    import pyarrow.parquet

    to = path.with_name(path.name.partition(".")[0] + ".parquet")
    with gzip.open(path, "rb") as file:
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(file), to)
    return to


def _run(folder: Path, *arguments: str) -> tuple[str, float]:
    """Run a command as a person does; return what it said and the seconds that it took."""
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "ANABRANCH_METRICS__PORT": "null"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "worker", *arguments],
        cwd=folder,
        env=environment | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".strip()
        raise StartError(f"anabranch {shlex.join(arguments)} ended with {done.returncode}:\n{said}")
    return done.stdout, time.perf_counter() - start


def _result(said: str) -> tuple[int, int, float]:
    """Return the inserts, the refused events and the accuracy of the model `tree` in the table of a run."""
    heading, *rows = [line.split() for line in said.splitlines() if line.startswith((" model ", " tree "))]
    row = dict(zip(heading, rows[0], strict=True))
    return int(row["inserts"].replace(",", "")), int(row["refused"].replace(",", "")), float(row["accuracy"])


def _library(name: str, each: _Set, path: Path, model: TreeSettings) -> dict[str, Any]:
    """Return how good a pool of trees is that is given the same rows, with the parameters of the settings."""
    table = _table(name, each, path, [str(label) for label in model.classes])
    options = {
        "criterion": model.criterion,
        "grace_period": model.grace_period,
        "check_every": model.check_every,
        "split_confidence": model.split_confidence,
        "tie_threshold": model.tie_threshold,
        "predict": Predict[model.predict.upper()],
    }
    pool = pool_for(table, Side(model.policy), options)
    _, measures = run(pool, batches_of(table), len(table.classes))
    assert measures is not None
    return {"library": significant(measures.accuracy), **against_baselines(measures)}


def _table(name: str, each: _Set, path: Path, classes: list[str]) -> Table:
    place = {label: at for at, label in enumerate(classes)}
    ids: dict[str | int, int] = {}
    pointer, feature, value, labels = [0], [], [], []
    for example, label in each.read(path):
        pairs = sorted((ids.setdefault(name, len(ids)), value) for name, value in example.items())
        feature += [at for at, _ in pairs]
        value += [number for _, number in pairs]
        pointer.append(len(feature))
        labels.append(place[label])
    return Table(
        name=name,
        pointer=np.array(pointer, np.int64),
        feature=np.array(feature, np.uint32),
        value=np.array(value),
        label=np.array(labels, np.int64),
        kinds=np.array([NUMERIC if each.is_numeric(name) else BINARY for name in ids], np.int64),
        names=(),
        classes=tuple(classes),
    )
