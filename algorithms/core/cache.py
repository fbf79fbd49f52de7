"""Where compiled kernels are kept and found: by what they were made of, never by where or when.

A folder is named after a digest of the sources, of numba's and Python's minor version, so what is in it cannot be
stale, and a copy of it serves another checkout, environment or machine. Folders are looked through in this order:

::

    inside the installed package    what a wheel brings; never written
    ANABRANCH_KERNELS               what an image or a person puts elsewhere
    the user's cache                XDG_CACHE_HOME, else ~/.cache

What is compiled is written to the second where it is named, else to the third; where that cannot be written, it
stays in memory, with a warning.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator

from algorithms.core.target import is_inner

VARIABLE = "ANABRANCH_KERNELS"
_ALGORITHMS = Path(__file__).resolve().parent.parent
SHIPPED = _ALGORITHMS / "kernels"

_NUMBA = ".".join(numba.__version__.split(".")[:2])


def folders() -> list[Path]:
    """Return where kernels are looked for, in order."""
    return [folder for folder in (SHIPPED, _named(), _of_the_user()) if folder is not None]


def written_folder() -> Path:
    """Return where kernels are written."""
    return _named() or _of_the_user()


def _named() -> Path | None:
    name = os.environ.get(VARIABLE)
    return Path(name) if name else None


def _of_the_user() -> Path:
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home
        base = Path("/nonexistent")
    return base / "anabranch" / "kernels"


@cache
def digest(outermost: str) -> str:
    """Return a digest of what a kernel of this file may be made of; the sources are read once for a file."""
    found = hashlib.sha256(f"{_NUMBA} {sys.version_info.major}.{sys.version_info.minor}".encode())
    if numba.config.BOUNDSCHECK:
        found.update(b"bounds are checked")
    for source in sources_of(Path(outermost).resolve()):
        found.update(source.name.encode() + source.read_bytes())
    return found.hexdigest()[:16]


# What the kernels of each package call besides their own.
_BUILDS_ON: dict[str, tuple[str, ...]] = {
    "core": (),
    "splits": ("core",),
    "trees": ("core", "splits"),
    "dynamic": ("core", "splits", "trees"),
    "regression": ("core", "splits", "trees"),
    "mixed": ("core", "splits", "trees", "dynamic"),
    "forests": ("core", "splits", "trees", "dynamic"),
    "estimators": ("core", "splits", "trees", "dynamic", "regression", "mixed", "forests"),
}
_IMPORT = re.compile(r"^ *from algorithms\.(\w+)", re.MULTILINE)


def sources_of(outermost: Path) -> list[Path]:
    """Return the files whose functions a kernel of this file may call, and those that say how it is compiled.

    An edit in one package leaves the kernels of those that do not build on it as they are. How kernels are kept
    changes none.
    """
    inside = outermost.relative_to(_ALGORITHMS).parts if outermost.is_relative_to(_ALGORITHMS) else ()
    named = inside[:1] if len(inside) > 1 else ("core", *_IMPORT.findall(outermost.read_text("utf-8")))
    reached = {each for package in named for each in (package, *_BUILDS_ON[package])}
    files = {file for package in reached for file in (_ALGORITHMS / package).rglob("*.py")}
    return sorted({outermost, *files} - {Path(__file__).resolve()})


class NotKeptError(Exception):
    """A kernel is not kept anywhere, and `kept_only` forbids to compile it."""


_forbidden = 0  # how many `kept_only` are open


@contextmanager
def kept_only() -> Iterator[None]:
    """Raise `NotKeptError` where a kernel would be compiled inside; for the whole process."""
    global _forbidden
    _forbidden += 1
    try:
        yield
    finally:
        _forbidden -= 1


class _Locator(_CacheLocator):
    """Tells numba how files of a function are called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno
        self.stamp = digest(function.__code__.co_filename)

    def get_cache_path(self) -> str:
        return str(written_folder() / self.stamp)

    def get_source_stamp(self) -> str:
        return self.stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:  # noqa: ARG003
        return cls(py_func)


class _Files(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


used: list[Path] = []  # files of kernels that this process loaded or wrote


class _Index(IndexDataCacheFile):
    """The index of a function's kernels in one folder. Another patch of numba reads what this one wrote."""

    def __init__(self, folder: Path, name: str, stamp: str) -> None:
        super().__init__(str(folder), name, stamp)
        self._version = _NUMBA

    def _load_data(self, name: str) -> Any:
        data = super()._load_data(name)
        used.append(Path(self._data_path(name)))
        return data

    def _save_data(self, name: str, data: Any) -> None:
        super()._save_data(name, data)
        used.append(Path(self._data_path(name)))


def copy(files: Iterable[Path], into: Path) -> None:
    """Copy kept kernels, with what finds them, to a folder like those of `folders`."""
    for file in set(files):
        folder = into / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        index = file.with_name(file.name.rsplit(".", 2)[0] + ".nbi")
        for each in (index, file, _cost_of(file)):
            if each.exists():
                shutil.copyfile(each, folder / each.name)


def cost(file: Path) -> float:
    """Return the CPU seconds that a kept kernel took to compile; 0 where that was not noted."""
    try:
        return float(_cost_of(file).read_text("ascii"))
    except OSError:
        return 0.0


def _cost_of(file: Path) -> Path:
    return file.with_suffix(".cost")


class Kept(FunctionCache):
    """The kept kernels of one function."""

    _impl_class = _Files

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp, name = self._impl.locator.stamp, self._impl.filename_base
        self._began = 0.0  # CPU seconds of this process when the kernel was last not found
        self._cache_file = _Index(Path(self._cache_path), name, stamp)
        self._found = [_Index(folder / stamp, name, stamp) for folder in folders()]

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if is_inner():
            return None
        key = self._index_key(sig, target_context.codegen())
        for index in self._found:
            try:
                data = index.load(key)
            except OSError:  # a folder that may not be read is none
                continue
            if data is not None:
                return self._impl.rebuild(target_context, data)
        if _forbidden:
            raise NotKeptError(f"{self._impl.filename_base} for {sig}")
        self._began = time.process_time()
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        # Numba numbers the files of a function by an index that it reads, changes and writes back. Two processes
        # that compile for different states at the same time could take the same number, and load the other's.
        if is_inner():
            return
        folder = Path(self._cache_path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
                super()._save_overload(sig, data)
            _cost_of(used[-1]).write_text(f"{time.process_time() - self._began:.2f}", "ascii")
        except OSError as error:
            _warn(f"{written_folder()}, which cannot be written ({error.strerror})")


@cache
def _warn(where: str) -> None:
    """Say once that nothing is kept."""
    warnings.warn(
        f"expected to keep compiled kernels in {where}: they are compiled again in each process; name a folder "
        f"that can be written in {VARIABLE}",
        RuntimeWarning,
        stacklevel=2,
    )
