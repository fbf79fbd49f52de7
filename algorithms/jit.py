"""The one place that says how kernels are compiled, and how one kernel serves many kinds of state.

Kernels are plain functions over NamedTuples of arrays. With ``NUMBA_DISABLE_JIT=1`` they run as the
Python that they are, which is how the tests read them with a debugger and check them a second time. With
``NUMBA_BOUNDSCHECK=1`` an index out of bounds is an IndexError, for tests/extremes.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])


def _kernel_cache(function: Callable[..., Any]) -> str:
    """Return the folder of compiled kernels for exactly these sources.

    Numba looks only at the file of the outermost function when it decides whether a cached kernel is
    stale, so an edit in a callee's file would go unnoticed. A folder named after the sources cannot be stale.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = _digest(function.__code__.co_filename)
    # With NUMBA_BOUNDSCHECK=1 every index is checked, which numba's key of a cached kernel does not know.
    checked = "-checked" if numba.config.BOUNDSCHECK else ""
    return str(Path(base) / "anabranch" / "kernels" / f"{digest}{checked}")


@cache
def _digest(outermost: str) -> str:
    """Return a digest of the sources that a kernel of this file may be made of; they are read once for a file."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sources_of(Path(outermost).resolve()):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def sources_of(outermost: Path) -> list[Path]:
    """Return the files whose functions a kernel of this file may call.

    A package here builds on the modules beside it and on `trees`, so an edit in one leaves the kernels of the
    others as they are. Files elsewhere may build on all.
    """
    here = Path(__file__).resolve().parent
    if not outermost.is_relative_to(here):
        return sorted({*here.rglob("*.py"), outermost})
    packages = {outermost.parent, here / "trees"} if outermost.parent != here else set()
    return sorted({*here.glob("*.py"), *(source for package in packages for source in package.glob("*.py"))})


@contextmanager
def _caching_into(folder: str) -> Iterator[None]:
    # Numba reads the setting while it decorates; other users of numba in this process keep theirs.
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = previous or folder
    try:
        yield
    finally:
        numba.config.CACHE_DIR = previous


class _OneAtATime:
    """Numba's index of compiled kernels, for processes that share it.

    Numba numbers the files of a function's kernels by an index that it reads, changes and writes back. Two
    processes that compile for different states at the same time can take the same number, and load the other's.
    """

    def __init__(self, index: Any, folder: str) -> None:
        self._index = index
        self._folder = Path(folder)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with ExitStack() as stack:
            with suppress(OSError):  # nobody can write where a lock cannot be made
                self._folder.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context((self._folder / "lock").open("a"))
                fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
            yield

    def save(self, key: Any, data: Any) -> None:
        with self._alone():
            self._index.save(key, data)

    def load(self, key: Any) -> Any:
        with self._alone():
            return self._index.load(key)

    def flush(self) -> None:
        with self._alone():
            self._index.flush()


def _compiled(function: F, **options: bool) -> F:
    folder = _kernel_cache(function)
    with _caching_into(folder):
        compiled: Any = numba.njit(cache=True, **options, **_OPTIONS)(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache._cache_file = _OneAtATime(compiled._cache._cache_file, folder)
    return cast(F, compiled)


# No fast-math: results must not depend on the CPU. `_nrt` off: kernels work in place and allocate nothing, so
# the counting of array references, which would cost more than the work itself, is left out.
_OPTIONS = {"nogil": True, "fastmath": False, "_nrt": False}


def jit(function: F) -> F:
    """Compile a kernel: cached on disk, GIL released. A kernel must not allocate or slice arrays."""
    return _compiled(function)


def inlined(function: F) -> F:
    """Compile a small function into its callers: for what runs for every one of an example.

    A state of a dozen arrays is a hundred machine words, which a call would push and pop.
    """
    return _compiled(function, forceinline=True)


def dispatch(doc: str, implementations: dict[type, Callable[..., Any]]) -> Callable[..., Any]:
    """Make a function that calls the implementation registered for the type of its first argument.

    Inside a kernel the choice is made while compiling and costs nothing; outside (and with the
    compiler off) it is one dictionary look-up. `implementations` is read when a kernel that uses the
    function is compiled, so registration must be complete by then.
    """

    def choose(state: Any, *rest: Any) -> Any:
        return implementations[type(state)](state, *rest)

    choose.__doc__ = doc

    # Numba compares signatures, annotations included, so these two functions carry none.
    @overload(choose, jit_options={"forceinline": True, **_OPTIONS})
    def _choose(state, *rest):  # type: ignore[no-untyped-def]  # noqa: ARG001
        chosen = implementations[state.instance_class]
        return lambda state, *rest: chosen(state, *rest)

    return choose
