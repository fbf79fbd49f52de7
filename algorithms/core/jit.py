"""The one place that says how kernels are compiled, and how one kernel serves many kinds of state.

Kernels are plain functions over NamedTuples of arrays. With ``NUMBA_DISABLE_JIT=1`` they run as the
Python that they are, which is how the tests read them with a debugger and check them a second time. With
``NUMBA_BOUNDSCHECK=1`` an index out of bounds is an IndexError, for tests/extremes.py.

The compiler is imported when a kernel is first called: commands that only look at settings or results do without
its half second.

::

    jit.py      the decorators, and calls without a look at types
    target.py   the processor that kernels are compiled for
    cache.py    where compiled kernels are kept and found
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

# No fast-math: results must not depend on the CPU. `_nrt` off: kernels work in place and allocate nothing, so
# the counting of array references, which would cost more than the work itself, is left out.
_OPTIONS = {"nogil": True, "fastmath": False, "_nrt": False}

_lock = threading.RLock()
_choices: list[Callable[[], None]] = []  # what `dispatch` has to tell the compiler
_ahead: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = []


class Kernel:
    """A function that numba compiles once it is called, or a kernel that calls it is; else it is as numba's."""

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options
        self._compiled: Any = None
        self._codes: dict[tuple[bytes, ...], Callable[..., Any]] = {}

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher."""
        if self._compiled is None:
            with _lock:
                self._compiled = self._compiled or self._made()
        return self._compiled

    def _made(self) -> Any:
        import numba

        from algorithms.core import target
        from algorithms.core.cache import Kept

        while _choices:
            _choices.pop()()
        made: Any = numba.jit(nopython=True, _target=target.NAME, **self._options, **_OPTIONS)(self.py_func)
        made._cache = Kept(self.py_func)
        return made

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel; it is compiled or loaded for these types first."""
        return self.compiled(*arguments)

    @property
    def _numba_type_(self) -> Any:
        return self.compiled._numba_type_

    def code_for(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the machine code for the types of these arguments, which is compiled or loaded first."""
        from numba._dispatcher import compute_fingerprint

        # By what numba itself knows types again, at a fiftieth of what it takes to make them.
        key = tuple(map(compute_fingerprint, arguments))
        code = self._codes.get(key)
        if code is None:
            compiled = self.compiled
            code = self._codes[key] = compiled.compile(tuple(map(compiled.typeof_pyval, arguments)))
        return code


def direct(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel for a caller whose arguments keep their types while the first of them is the same object.

    To find the code for its arguments numba looks at each array in each of them, at every call: 10 us for a state
    of fifty arrays, where the kernel needs 2 us for one event. Here it is found again only where the first
    argument is another object than before: a state whose arrays have been enlarged, say. Nothing checks the other
    arguments: their arrays must be of the same types, contiguous, aligned and writable in every call.
    """
    if not isinstance(kernel, Kernel):
        return kernel
    before: Any = None
    code: Callable[..., Any] = kernel

    def call(first: Any, *others: Any) -> Any:
        nonlocal before, code
        if first is not before:
            code = kernel.code_for((first, *others))
            before = first
        return code(first, *others)

    return call


def jit(function: F) -> F:
    """Compile a kernel: cached on disk, GIL released. A kernel must not allocate or slice arrays."""
    return function if IS_OFF else cast(F, Kernel(function, {}))


def inlined(function: F) -> F:
    """Compile a small function into its callers: for what runs for every one of an example.

    A state of a dozen arrays is a hundred machine words, which a call would push and pop.
    """
    return function if IS_OFF else cast(F, Kernel(function, {"forceinline": True}))


def apart(function: F) -> F:
    """Compile a function that is called, even by what is inlined: for what is large, with all that it calls.

    Numba hands on that a function is inlined to all that is compiled because it calls it, where nothing else is
    said. The choices of `dispatch` and `select` are inlined, so what is chosen is, too.
    """
    return function if IS_OFF else cast(F, Kernel(function, {"forceinline": False}))


def ahead(arguments: Callable[[], tuple[Any, ...]]) -> Callable[[F], F]:
    """Have a kernel loaded with the others, before the first event: one that is called when something has grown.

    `arguments` returns some to call it with, of the types that it always has.
    """

    def registered(kernel: F) -> F:
        _ahead.append((kernel, arguments))
        return kernel

    return registered


def load_ahead() -> None:
    """Load, or compile, the kernels that were registered by `ahead`."""
    for kernel, arguments in _ahead:
        kernel(*arguments())


def dispatch(doc: str, implementations: dict[type, Callable[..., Any]]) -> Callable[..., Any]:
    """Make a function that calls the implementation registered for the type of its first argument.

    Inside a kernel the choice is made while compiling and costs nothing; outside (and with the
    compiler off) it is one dictionary look-up. `implementations` is read when a kernel that uses the
    function is compiled, so registration must be complete by then.
    """

    def choose(state: Any, *rest: Any) -> Any:
        return implementations[type(state)](state, *rest)

    choose.__doc__ = doc

    def tell() -> None:
        from numba.extending import overload

        # Numba compares signatures, annotations included, so these two functions carry none.
        @overload(choose, jit_options={"forceinline": True, **_OPTIONS})
        def _choose(state, *rest):  # type: ignore[no-untyped-def]  # noqa: ARG001
            chosen = implementations[state.instance_class]
            return lambda state, *rest: chosen(state, *rest)

    _choices.append(tell)
    return choose


def select(doc: str, implementations: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Make a function that calls the implementation of the number that its first argument has as `number`.

    Where `dispatch` has a kernel compiled for each type, here one kernel serves all: the choice is made at each
    call, by a comparison or two that the processor foresees.
    """

    def choose(state: Any, *rest: Any) -> Any:
        return implementations[state.number](state, *rest)

    choose.__doc__ = doc

    def tell() -> None:
        from numba.extending import overload

        # Numba compares signatures, annotations included, so these functions carry none.
        @overload(choose, jit_options={"forceinline": True, **_OPTIONS})
        def _choose(state, *rest):  # type: ignore[no-untyped-def]  # noqa: ARG001
            made = implementations[-1]
            for number in reversed(range(len(implementations) - 1)):
                made = _either(number, implementations[number], made)
            return lambda state, *rest: made(state, *rest)

    _choices.append(tell)
    return choose


def prefetch(array: Any, row: int, column: int = 0) -> None:
    """Have a row of an array brought to the cache, from a column on, beside the work that goes on.

    A random read of an array beyond the cache takes the time of a hundred additions, and this takes that of one.
    No memory outside the array is read, whatever the row.
    """


def _tell_prefetch() -> None:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic, overload
    from numba.np.arrayobj import make_array

    @intrinsic
    def fetch(typing, array, row, column):  # type: ignore[no-untyped-def]  # noqa: ARG001
        def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            found = make_array(signature.args[0])(context, builder, arguments[0])
            stride = cgutils.unpack_tuple(builder, found.strides)[0]
            place = builder.add(builder.ptrtoint(found.data, stride.type), builder.mul(arguments[1], stride))
            place = builder.add(place, builder.mul(arguments[2], found.itemsize))
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            how = [ir.Constant(number, each) for each in (0, 3, 1)]  # to be read, kept in all levels, data
            builder.call(function, [builder.inttoptr(place, byte), *how])
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), write

    @overload(prefetch, jit_options={"forceinline": True, **_OPTIONS})
    def _prefetch(array, row, column=0):  # type: ignore[no-untyped-def]  # noqa: ARG001
        return lambda array, row, column=0: fetch(array, row, column)


_choices.append(_tell_prefetch)


def _either(number: int, one: Callable[..., Any], other: Callable[..., Any]) -> Any:
    """Return a kernel that calls the one for a first argument of this number, else the other."""

    def choose(state, *rest):  # type: ignore[no-untyped-def]
        if state.number == number:
            return one(state, *rest)
        return other(state, *rest)

    return inlined(choose)
