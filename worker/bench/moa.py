"""`bench moa`: our trees beside MOA's Hoeffding trees, the same task with the same parameters in one run.

Both predict every example, then learn it. MOA runs in a Java of its own and reads the examples from an ARFF file;
how long the reading alone takes is measured as well. Of MOA only the jar is needed, which the package capymoa
brings; the package itself is not imported.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.util
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from algorithms.trees.predict import Predict
from worker.bench.cases import Progress, Row, machine, significant
from worker.bench.tables import Table, first
from worker.bench.trees import BATCH, Side, batches_of, pool_for, run
from worker.broker import BrokerUnavailable
from worker.broker.jars import find_java
from worker.sources.generators import NUMERIC

SETS = ("electricity", "kdd99", "covertype", "rtg", "rbf", "led:noise=10", "sea", "agr")
TREES = {"HoeffdingTree": "periodic", "EFDT": "efdt", "HoeffdingAdaptiveTree": "hat"}  # MOA's, and our policy
PREDICTIONS = {Predict.MAJORITY: "MC", Predict.NAIVE_BAYES: "NB", Predict.ADAPTIVE: "NBAdaptive"}
RULES: tuple[Row, ...] = (  # of our bound: as in the papers, and as in MOA
    {"inherit": False, "local_range": False},
    {"inherit": True, "local_range": False},
    {"inherit": True, "local_range": True},
)
_CHUNK = 10_000  # examples held as a dense matrix at a time
READING = "functions.NoChange"  # which does nothing but keep the last class
_SHOWN = 300  # characters of what MOA complains of
_TASK = (
    "EvaluatePrequential -l ({learner}) -s (ArffFileStream -f table.arff) "
    "-e BasicClassificationPerformanceEvaluator -f 1000000000 -d out.csv"
)


class Moa(NamedTuple):
    """Whom we are measured beside."""

    version: str  # of capymoa, or the jar's name
    java: Path
    jar: Path


class MoaUnavailable(Exception):
    """There is no MOA to measure beside; it says what was expected."""


class Terms(NamedTuple):
    """What both sides agree on."""

    trees: list[str]  # of `TREES`
    prediction: Predict
    grace_period: int  # n_min
    check_every: int  # mu, of EFDT
    split_confidence: float
    tie_threshold: float


def find_moa(jar: Path | None = None) -> Moa:
    """Return MOA, from a jar or from where the package capymoa is installed.

    Raises
    ------
    MoaUnavailable
        There is no capymoa, or no Java.
    """
    version = jar.name if jar is not None else ""
    if jar is None:
        found = importlib.util.find_spec("capymoa")  # the package imports more than it needs here
        folder = Path(found.origin).parent if found is not None and found.origin is not None else None
        if folder is None or not (folder / "jar" / "moa.jar").is_file():
            raise MoaUnavailable(
                "expected MOA, found no package capymoa with its jar; pip install --no-deps capymoa brings it, or "
                "name a moa.jar by --jar"
            )
        jar, version = folder / "jar" / "moa.jar", importlib.metadata.version("capymoa")
    try:
        return Moa(version, find_java(), jar.absolute())
    except BrokerUnavailable as error:
        raise MoaUnavailable(str(error)) from None


def bench_moa(
    table: Table, peer: Moa | None, terms: Terms, progress: Progress = lambda step: None
) -> Iterator[Row]:
    """Yield for each kind of tree a line of MOA's, followed by ours with each of `RULES`.

    Parameters
    ----------
    table : Table
        Every example is predicted, then learned, in order.
    peer : Moa, optional
        See `find_moa`; without it there are only our lines.
    terms : Terms
        Parameters of both sides. Whatever else MOA can be told stays as it is by default.
    progress : callable
        Called with what is about to run.
    """
    versions = {"anabranch": importlib.metadata.version("anabranch"), "moa": peer and peer.version}
    about = {"versions": versions, "machine": machine()}
    for row in _rows(table, peer, terms, progress):
        yield {"bench": "moa", "data": table.name, "examples": len(table.label)} | row | about


def _rows(table: Table, peer: Moa | None, terms: Terms, progress: Progress) -> Iterator[Row]:
    theirs: dict[str, Row] = {}
    if peer is not None:
        progress(f"{table.name}: MOA")
        theirs = _theirs(table, peer, terms, progress)
    for tree in terms.trees:
        policy = TREES[tree]
        if tree in theirs:
            yield {"side": "moa", "tree": tree} | theirs[tree]
        for rules in RULES:
            progress(f"{table.name}: {policy}, {rules}")
            ours = _ours(table, policy, rules, terms)
            if tree in theirs and "accuracy" in theirs[tree]:
                ours["accuracy_above_moa"] = significant(ours["accuracy"] - theirs[tree]["accuracy"])
            yield {"side": "anabranch", "tree": tree, "policy": policy, **rules} | ours


def _theirs(table: Table, peer: Moa, terms: Terms, progress: Progress) -> dict[str, Row]:
    """Return the figures of each of MOA's trees."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_arff(table, folder / "table.arff")
        reading = evaluated(peer, folder, READING)
        rows: dict[str, Row] = {}
        for tree in terms.trees:
            progress(f"{table.name}: MOA's {tree}")
            learner = _learner(tree, terms)
            try:
                said = evaluated(peer, folder, learner)
            except MoaUnavailable as error:
                rows[tree] = {"learner": learner, "refused": str(error)}
                continue
            rows[tree] = {
                "learner": learner,
                "accuracy": significant(float(said["classifications correct (percent)"]) / 100),
                "leaves": round(float(said["tree size (leaves)"])),
                "cpu_seconds": significant(float(said["evaluation time (cpu seconds)"])),
                "reading_seconds": significant(float(reading["evaluation time (cpu seconds)"])),
            }
    return rows


def _learner(tree: str, terms: Terms) -> str:
    """Return a tree in MOA's own words."""
    said = (
        f"trees.{tree} -g {terms.grace_period} -c {terms.split_confidence!r} -t {terms.tie_threshold!r} "
        f"-l {PREDICTIONS[terms.prediction]}"
    )
    return f"{said} -R {terms.check_every}" if tree == "EFDT" else said


def evaluated(peer: Moa, folder: Path, learner: str) -> dict[str, str]:
    """Return the last line of what MOA measured, by the names of its columns."""
    out = folder / "out.csv"
    out.unlink(missing_ok=True)
    command = [str(peer.java), "-cp", str(peer.jar), "moa.DoTask", _TASK.format(learner=learner)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines())) if out.is_file() else []
    if not rows:
        said = " ".join((done.stderr.strip() or done.stdout.strip()).split())
        raise MoaUnavailable(
            f"expected MOA to evaluate {learner}, it wrote no figures; see to what it said: {said[-_SHOWN:]!r}"
        )
    return rows[-1]


def _ours(table: Table, policy: str, rules: Row, terms: Terms) -> Row:
    options: dict[str, Any] = {
        "predict": terms.prediction,
        "grace_period": terms.grace_period,
        "check_every": terms.check_every,
        "split_confidence": terms.split_confidence,
        "tie_threshold": terms.tie_threshold,
        **rules,
    }
    side = Side(policy)
    run(pool_for(table, side, options), batches_of(first(table, BATCH)))  # compiles
    pool = pool_for(table, side, options)
    seconds, measures = run(pool, batches_of(table), len(table.classes), time.process_time)
    assert measures is not None
    return {
        "accuracy": significant(measures.accuracy),
        "leaves": pool.sizes().leaves,
        "cpu_seconds": significant(seconds),
    }


def write_arff(table: Table, path: Path) -> None:
    """Write a table as an ARFF file; features that are not numeric are nominal.

    Where fewer than one entry in ten is not 0, rows have these alone, and their class.
    """
    kinds = table.kinds.tolist()
    is_sparse = 10 * len(table.feature) < len(table.label) * len(kinds)
    with path.open("w", encoding="ascii") as file:
        file.write("@relation table\n")
        for feature, values in enumerate(kinds):
            told = "numeric" if values == NUMERIC else f"{{{','.join(map(str, range(values)))}}}"
            file.write(f"@attribute f{feature} {told}\n")
        file.write(f"@attribute class {{{','.join(f'c{k}' for k in range(len(table.classes)))}}}\n@data\n")
        if is_sparse:
            file.writelines(_sparse_rows(table))
            return
        for start in range(0, len(table.label), _CHUNK):
            label = table.label[start : start + _CHUNK]
            pointer = table.pointer[start : start + _CHUNK + 1]
            value = np.zeros((len(label), len(kinds)))
            ones = slice(pointer[0], pointer[-1])
            value[np.repeat(np.arange(len(label)), np.diff(pointer)), table.feature[ones]] = table.value[ones]
            for row, k in zip(value.tolist(), label.tolist(), strict=True):
                file.write(",".join([*map(_told, row), f"c{k}"]) + "\n")


def _sparse_rows(table: Table) -> Iterator[str]:
    feature, value = table.feature.tolist(), table.value.tolist()
    pointer, last = table.pointer.tolist(), len(table.kinds)
    for row, k in enumerate(table.label.tolist()):
        entries = [f"{feature[at]} {_told(value[at])}" for at in range(pointer[row], pointer[row + 1])]
        yield "{" + ", ".join([*entries, f"{last} c{k}"]) + "}\n"


def _told(number: float) -> str:
    return f"{number:.0f}" if number % 1.0 == 0.0 else repr(number)
