"""The same bits on every machine: by what is in compiled kernels, and by what the sources around them call."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import pytest

from algorithms.core import cache, jit, target
from tests.support import machine_code
from tests.support.places import ROOT
from worker.commands.compile import all_kernels, use

elf = pytest.mark.skipif(jit.IS_OFF or sys.platform != "linux", reason="no machine code, or none in ELF files")


@elf
@pytest.mark.timeout(1800)  # where `make kernels` has not been, all are compiled here
def test_kernels_round_alike_everywhere() -> None:
    """No kernel has a fused multiply-add, none calls mathematics of a library."""
    for kernel in all_kernels():
        use(kernel)
    # What other tests of this process used may be gone with their folders.
    files = sorted({*filter(Path.exists, cache.used), *cache.SHIPPED.rglob("*.nbc")})
    assert len({file.name.partition("-")[0] for file in files}) > 12, "different functions"
    for file in files:
        code = machine_code.kept_in(file)
        assert not machine_code.fused(code), file
        assert not machine_code.taken(code), file


def _kernel(function: Any, *arguments: Any, fastmath: Any = False) -> bytes:
    """Return the machine code of a function that is compiled as kernels are, but for `fastmath`."""
    kernel = numba.jit(nopython=True, _target=target.NAME, fastmath=fastmath, _nrt=False)(function)
    kernel(*arguments)
    return machine_code.compiled_for(kernel)


def _chain(x: float, y: float, z: float) -> float:
    return x * y + z


@elf
@pytest.mark.skipif(target.processor().name != "x86-64-v3", reason="it is known of this processor alone")
def test_a_fused_multiply_add_is_found() -> None:
    """It is there as soon as the compiler may make one, so that its absence is no matter of the processor."""
    assert machine_code.fused(_kernel(_chain, 1.5, 2.5, 3.5)) == []
    (found,) = machine_code.fused(_kernel(_chain, 1.5, 2.5, 3.5, fastmath={"contract"}))
    assert found.startswith("vfmadd")


@elf
@pytest.mark.parametrize("name", ["log2", "exp", "sin", "log1p", "pow"])
def test_mathematics_of_a_library_is_found(name: str) -> None:
    """By the symbol that is called."""
    used: dict[str, Any] = {}
    call = f"math.{name}(x, x)" if name == "pow" else f"math.{name}(x)"
    exec(f"import math\ndef function(x): return {call}", used)
    assert machine_code.taken(_kernel(used["function"], 1.5)) == {name}


@elf
def test_code_that_cannot_be_read_is_no_pass() -> None:
    """Bytes that are no instruction end the search with an error."""
    code = bytearray(_kernel(_chain, 1.5, 2.5, 3.5))
    at = code.index(b"\xc5")  # with which a multiplication starts
    code[at : at + 3] = b"\x06\x06\x06"  # nothing, in 64 bits
    with pytest.raises(AssertionError, match="cannot be read"):
        machine_code.fused(bytes(code))


# Correctly rounded by IEEE 754, or exact, on every machine.
_ROUNDED = {
    *("sqrt", "floor", "ceil", "trunc", "fabs", "copysign", "fmod", "frexp", "ldexp", "modf", "fsum"),
    *("isnan", "isinf", "isfinite", "inf", "nan", "pi", "prod", "factorial", "comb", "gcd", "isqrt"),
}
_NUMPY = re.compile(
    r"log(1p|2|10|addexp2?|space)?|exp(2|m1)?|(float_)?power|cbrt|geomspace|hypot|(arc|a)?(sin|cos|tan)(h|2)?"
)

# A readable twin, which no worker runs; what measures; and colours, which are of pages alone.
_ASIDE = (ROOT / "algorithms/splits/reference.py", ROOT / "worker/bench", ROOT / "worker/views/palette.py")


def _of_the_host(source: str) -> Iterator[str]:
    """Yield what a source calls of the machine's mathematics."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(ast.Name("math"), name) if name not in _ROUNDED:
                yield f"line {node.lineno}: math.{name}"
            case ast.Attribute(ast.Name("np"), name) if _NUMPY.fullmatch(name):
                yield f"line {node.lineno}: np.{name}"
            case ast.ImportFrom("math", names):
                yield from (f"line {node.lineno}: {each.name}" for each in names if each.name not in _ROUNDED)
            case ast.BinOp(left, ast.Pow()) if not (isinstance(left, ast.Constant) and left.value in (2, 10)):
                yield f"line {node.lineno}: **"


def test_what_the_host_computes_reaches_no_output() -> None:
    """Libraries of mathematics differ in the last bit: outside of kernels too, nothing is made with them."""
    found = [
        f"{path.relative_to(ROOT)}, {each}"
        for package in ("algorithms", "worker")
        for path in sorted((ROOT / package).rglob("*.py"))
        if not any(path.is_relative_to(aside) for aside in _ASIDE)
        for each in _of_the_host(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("math.log(2)", ["line 1: math.log"]),
        ("np.log2(x) + np.arctan2(y, x)", ["line 1: np.log2", "line 1: np.arctan2"]),
        ("from math import exp, sqrt", ["line 1: exp"]),
        ("x ** 2.0", ["line 1: **"]),
        ("math.sqrt(2.0**53) + np.sqrt(x)", []),
    ],
)
def test_what_the_host_computes_is_found(source: str, found: list[str]) -> None:
    """As a function of a module, imported by its name, or as a power."""
    assert sorted(_of_the_host(source)) == sorted(found)
