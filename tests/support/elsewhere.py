"""Kernels that are kept, used by another process: in another place, or on a machine of another kind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

KERNELS = ("codec", "exact", "tree-exact")  # the demo's

_USE = """
import sys
from pathlib import Path
from algorithms.core import cache, jit
assert Path(jit.__file__).is_relative_to(sys.argv[1]), jit.__file__
from worker.commands.compile import use
with cache.kept_only():
    for name in sys.argv[2:]:
        use(name)
print(len(set(cache.used)))
"""


def used(
    place: Path,
    *,
    python: Path = Path(sys.executable),
    environ: dict[str, str],
    folder: Path,
    kernels: Sequence[str] = KERNELS,
) -> int:
    """Use kernels in another process, where the package is in `place`; return how many files were loaded.

    Raises
    ------
    AssertionError
        Where something would be compiled.
    """
    command = [str(python), "-c", _USE, str(place), *kernels]
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, env=os.environ | environ, cwd=folder
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout)
