"""Programs for tests that are fetched or built once, and kept in the cache folder."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cached_folder(name: str, fill: Callable[[Path], Path]) -> Path:
    """Return a folder of the cache, made by `fill` where it is not there yet.

    `fill` is given an empty folder to work in, and returns the folder in it that shall be kept. What is kept is
    whole: a folder that is there is taken for complete. Any number of processes may call it at a time.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "anabranch"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=base, prefix=f"{name}.part-") as scratch:
                fill(Path(scratch)).rename(folder)
    return folder
