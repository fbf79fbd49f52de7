"""Programs that are fetched or built once, and kept in the cache folder."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_base() -> Path:
    """Return the folder of all that is kept."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base.absolute() / "anabranch"


def cached_folder(folder: Path, fill: Callable[[Path], Path]) -> Path:
    """Return the folder, made by `fill` where it is not there yet.

    `fill` is given an empty folder to work in, and returns the folder in it that shall be kept. What is kept is
    whole: a folder that is there is taken for complete. Any number of processes may call it at a time, and one of
    them fills: Maven's own folder, for one, does not bear two downloads of one file.
    """
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.part-") as scratch:
                fill(Path(scratch)).rename(folder)
    return folder
