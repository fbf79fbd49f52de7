"""Another program on the same data, in the same rounds: a foreign implementation to put our times beside.

It is called as ``PROGRAM updent FILE 0.1`` and must print ``t=SECONDS s`` (``t=1.234s``), its own measure of
the time for inserting every example and asking for the best split after each.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from worker.bench.cases import Case
from worker.bench.streams import Stream, sparse
from worker.bench.updates import Workload, workload

NAME = "anchor"
_ARGUMENTS = ("updent", "0.1")  # algorithm and alpha, around the file


def anchored(program: Path, work: Workload, file: Path) -> Case:
    """Return the case of a program on a file that `write` made of the workload's stream."""

    def seconds() -> float:
        algorithm, alpha = _ARGUMENTS
        command = [str(program.resolve()), algorithm, str(file), alpha]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ValueError(f"expected a program that runs as {' '.join(command)}; it says: {error}") from error
        found = re.search(r"\bt=([0-9.]+) ?s\b", done.stdout)
        if found is None:
            raise ValueError(f"expected t=1.234s in what {program.name} prints, got {done.stdout[:200]!r}")
        return float(found[1])

    return Case(NAME, None, work, seconds)


def check(program: Path) -> None:
    """Raise ValueError unless a program does what is expected: known before an hour of measuring, not after."""
    stream = sparse(10, 1, 5, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "check.bin"
        write(stream, file)
        anchored(program, workload(stream), file).seconds()


def write(stream: Stream, file: Path) -> None:
    """Write a stream: int64 n, features, ones; int64 row pointer; int32 features; int8 labels."""
    with file.open("wb") as out:
        np.array([len(stream.label), stream.features, len(stream.feature)], np.int64).tofile(out)
        stream.pointer.astype(np.int64).tofile(out)
        stream.feature.astype(np.int32).tofile(out)
        stream.label.astype(np.int8).tofile(out)
