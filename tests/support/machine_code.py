"""What is in the machine code of a compiled kernel: its instructions, and what it takes from elsewhere."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import capstone
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

_MODES = {"x64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64), "AArch64": (capstone.CS_ARCH_ARM64, 0)}

# A fused multiply-add rounds once where a product and a sum round twice: vfmadd213sd, vfnmsub132pd, fmla, fnmadd.
_FUSED = re.compile(r"v?fn?m(add|sub|la|ls)")

# What rounds nothing: of Python and numba, for the call from Python and its errors; of C, for whole arrays and to
# take a number apart and put it together.
_RUNTIME = re.compile(
    r"_?Py[A-Z_]\w*"
    r"|numba_(adapt_ndarray|unpickle|runtime_build_excinfo_struct|do_raise|frexp|ldexp)"
    r"|mem(set|cpy|move)"
)


def kept_in(file: Path) -> bytes:
    """Return the machine code in a file of a kept kernel."""
    (_, code, _), *_ = pickle.loads(file.read_bytes())
    assert isinstance(code, bytes)
    return code


def compiled_for(kernel: Any) -> bytes:
    """Return the machine code of a numba function that was called for one set of types."""
    (overload,) = kernel.overloads.values()
    code: bytes = overload.library._get_compiled_object()
    return code


def fused(code: bytes) -> list[str]:
    """Return the fused multiply-adds, each as an assembler writes it."""
    return [f"{name} {operands}" for name, operands in instructions(code) if _FUSED.match(name)]


def instructions(code: bytes) -> Iterator[tuple[str, str]]:
    """Yield names and operands of all instructions.

    Raises
    ------
    AssertionError
        Where some of the code is no instruction that the disassembler knows: one could hide there.
    """
    file = ELFFile(io.BytesIO(code))
    disassembler = capstone.Cs(*_MODES[file.get_machine_arch()])
    for section in file.iter_sections():
        if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR and section.data_size:
            read = 0
            for _, size, name, operands in disassembler.disasm_lite(section.data(), 0):
                read += size
                yield name, operands
            assert read == section.data_size, f"{section.name} cannot be read from byte {read} on"


def taken(code: bytes) -> set[str]:
    """Return the names of the functions that are called in libraries, those aside that round nothing."""
    symbols = ELFFile(io.BytesIO(code)).get_section_by_name(".symtab").iter_symbols()
    names = {symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name}
    return {name for name in names if not _RUNTIME.fullmatch(name)}
