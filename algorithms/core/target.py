"""What processor kernels are compiled for: a fixed baseline, so that what one machine compiled serves others.

Numba compiles for the processor that it finds. Its target, with everything that hangs on it, is one object for the
whole process, so kernels get a target of their own here, and other users of numba keep theirs.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
from numba.core import codegen, cpu, externals, sigutils, utils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, CPUTarget
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_registry
from numba.core.types.misc import unliteral

VARIABLE = "ANABRANCH_CPU"  # baseline, native, or a processor as LLVM calls it
NAME = "anabranch"  # of the target, in numba's registry

_BASELINES = {"x86_64": "x86-64-v3", "aarch64": "generic"}
_V3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")
_BELOW = ("generic", "x86-64", "x86-64-v2")  # what NUMBA_CPU_NAME may call a processor that is not v3


class Processor(NamedTuple):
    """What LLVM is told."""

    name: str
    features: str = ""  # none: those that the name stands for


@cache
def processor() -> Processor:
    """Return the processor that kernels are compiled for in this process."""
    wanted = os.environ.get(VARIABLE) or "baseline"
    if wanted not in ("baseline", "native"):
        return Processor(wanted)
    baseline = _BASELINES.get(platform.machine())
    if wanted == "native" or baseline is None or above():
        return Processor(llvm.get_host_cpu_name(), codegen.get_host_cpu_features())
    return Processor(baseline)


def above() -> str | None:
    """Return the baseline where it is wanted and this processor is below it: kernels are compiled for this one."""
    is_wanted = (os.environ.get(VARIABLE) or "baseline") == "baseline"
    return _BASELINES.get(platform.machine()) if is_wanted and not _has_baseline() else None


def _has_baseline() -> bool:
    if platform.machine() != "x86_64":
        return True
    if numba.config.CPU_NAME is not None and numba.config.CPU_NAME in _BELOW:
        return False
    features = llvm.get_host_cpu_features()
    return all(features.get(name) for name in _V3)


class _Library(codegen.JITCodeLibrary):
    """The code of one function. Machine code is made of it where somebody asks for that: of called kernels.

    What a kernel calls is linked into it as LLVM's code and optimised there. By itself it would be optimised in
    vain and made machine code that nobody runs: half of the time that compiling takes.

    What is kept is machine code alone. Numba keeps LLVM's beside it, two thirds of a file, for a caller that is
    compiled later; such a caller has it made again here (`Dispatcher.compile`).
    """

    _is_native = False
    is_loaded = False  # it has no code that could be linked into a caller

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._is_inner = _compiling.is_inner  # by now: it is linked while its caller is compiled

    def finalize(self) -> None:
        """Link and optimise the code; numba calls this when all of the function's own code is there.

        Code of a called function waits as it is. The kernel that is called by Python links what it reaches once:
        linked by each caller, a function would be copied and optimised again at every level above it.
        """
        if self._is_inner:
            self._finalized = True
            return
        self._linking_libraries = self._reached()
        super().finalize()

    def _reached(self) -> list[_Library]:
        """Return the libraries of what this one calls, at any depth: each before those that it calls itself.

        LLVM links a function only where what is linked already names it: callers come first.
        """
        ordered: list[_Library] = []
        seen: set[_Library] = set()

        def visit(library: _Library) -> None:
            seen.add(library)
            for each in library._linking_libraries:
                if each not in seen:
                    visit(each)
            ordered.append(library)

        visit(self)
        return ordered[-2::-1]

    def _verify_declare_only_symbols(self) -> None:
        # Numba looks for its own functions alone; without one of ours the process would end at its call.
        for function in self._final_module.functions:
            if function.is_declaration and function.name.startswith("_ZN"):
                raise AssertionError(f"expected the code of {function.name} linked into {self.name}, found none")

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def _make_native(self) -> None:
        self._ensure_finalized()
        if not self._is_native:
            self._is_native = True
            super()._finalize_final_module()

    def get_pointer_to_function(self, name: str) -> int:
        self._make_native()
        return super().get_pointer_to_function(name)

    def _get_compiled_object(self) -> Any:
        self._make_native()
        return super()._get_compiled_object()

    def serialize_using_object_code(self) -> tuple[str, bytes, list[str]]:
        """Return name, machine code and the symbols that it defines; numba keeps this."""
        code = self._get_compiled_object()
        module = self._final_module
        symbols = (*module.functions, *module.global_variables)
        return self.name, code, [each.name for each in symbols if not each.is_declaration]

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, bytes, list[str]]) -> Any:
        name, code, defined = state
        library = codegen.create_library(name)
        library.is_loaded = True
        library.enable_object_caching()
        library._set_compiled_object(code)
        library._finalize_final_module()
        library._make_native()
        # The engine asks for addresses of these only: of others it would end the process.
        codegen._engine._defined_symbols.update(defined)
        return library


class _Codegen(codegen.JITCPUCodegen):
    _library_class = _Library

    def _get_host_cpu_name(self) -> str:
        return processor().name

    def _get_host_cpu_features(self) -> str:
        return processor().features


class _Context(cpu.CPUContext):
    def init(self) -> None:
        self.is32bit = utils.MACHINE_BITS == 32
        self._internal_codegen = _Codegen("anabranch.exec")
        externals.c_math_functions.install(self)

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        if _compiling.is_inner:
            return object()  # numba only wants to tell it from others
        return super().get_executable(library, fndesc, env)


class _Descriptor(CPUTarget):
    @utils.threadsafe_cached_property
    def _toplevel_target_context(self) -> Any:
        return _Context(self.typing_context, self._target_name)


class Kernels(CPU):
    """The target's name among numba's; all that numba has for a CPU serves it too."""


class _Compiling(threading.local):
    """How deep this thread is in compiling functions that functions call."""

    depth = 0

    @property
    def is_inner(self) -> bool:
        return self.depth > 1


_compiling = _Compiling()


class Dispatcher(CPUDispatcher):
    """A kernel: compiled for each kind of state that it meets.

    A function that is compiled because a kernel calls it has no wrapper to be called from Python by, and is not
    kept; where Python calls it after all, it is compiled again, with one. So is a kernel that was loaded, where
    one that is compiled calls it.
    """

    targetdescr = _Descriptor(NAME)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._compiler._customize_flags = _without_wrappers
        self._inner: set[tuple[Any, ...]] = set()  # argument types of overloads without a wrapper

    def get_call_template(self, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Return how a kernel calls this one; numba calls this.

        Left to itself numba compiles a function anew for each constant that it is called with.
        """
        return super().get_call_template(
            tuple(map(unliteral, args)), {name: unliteral(each) for name, each in kws.items()}
        )

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        """Compile or load the kernel for these types; numba calls this.

        One thread at a time, looks at `overloads` included: another may be compiling a kernel that calls this one.
        """
        arguments = tuple(sigutils.normalize_signature(sig)[0])
        is_called_by_python = _compiling.depth == 0
        if is_called_by_python and arguments in self._inner:
            self._inner.remove(arguments)
            del self.overloads[arguments]
        elif not is_called_by_python and self._is_loaded(arguments):
            del self.overloads[arguments]  # Python still calls what was loaded
        _compiling.depth += 1
        try:
            return super().compile(sig)
        finally:
            _compiling.depth -= 1

    def _is_loaded(self, arguments: tuple[Any, ...]) -> bool:
        return arguments in self.overloads and self.overloads[arguments].library.is_loaded

    def add_overload(self, cres: Any) -> None:
        """Take up what was compiled; numba calls this."""
        if not _compiling.is_inner:
            super().add_overload(cres)
            return
        arguments = tuple(cres.signature.args)
        self._inner.add(arguments)
        self.overloads[arguments] = cres


def _without_wrappers(flags: Any) -> Any:
    flags.no_cfunc_wrapper = True  # for functions as values, of which there are none
    flags.no_cpython_wrapper = _compiling.is_inner
    return flags


def is_inner() -> bool:
    """Return whether what is compiled now is a function that a kernel calls."""
    return _compiling.is_inner


target_registry[NAME] = Kernels
dispatcher_registry[Kernels] = Dispatcher
jit_registry[Kernels] = partial(numba.jit, _target=NAME)  # what `overload` compiles its choices with
