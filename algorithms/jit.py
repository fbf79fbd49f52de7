"""The one place that says how kernels are compiled, and how one kernel serves many kinds of state.

Kernels are plain functions over NamedTuples of arrays. With ``NUMBA_DISABLE_JIT=1`` they run as the
Python that they are, which is how the tests read them with a debugger and check them a second time.

::

    jit.py      the decorators
    target.py   the processor that kernels are compiled for
    cache.py    where compiled kernels are kept and found
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.extending import overload

from algorithms import target
from algorithms.cache import Kept

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F, **options: bool) -> F:
    if numba.config.DISABLE_JIT:
        return function
    kernel: Any = numba.jit(nopython=True, _target=target.NAME, **options, **_OPTIONS)(function)
    kernel._cache = Kept(function)
    return cast(F, kernel)


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
