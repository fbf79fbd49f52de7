import ast
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.codegen import JITCodeLibrary

from algorithms.core import cache, jit, target
from algorithms.core.arrays import Int64s, int64
from algorithms.core.cache import sources_of
from tests.support.places import ROOT

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


class Counter(NamedTuple):
    """A state."""

    counts: Int64s


@jit.jit
def increased(state: Counter, by: int) -> int:
    """Add to a counter, and return what it is then."""
    state.counts[0] += by
    return int64(state.counts[0])


@jit.jit
def increased_twice(state: Counter, by: int) -> int:
    """Do it twice."""
    return increased(state, by) + increased(state, by)


@jit.jit
def _raised(state: Counter, by: int) -> int:
    state.counts[0] += by
    return int64(state.counts[0])


@jit.apart
def _lowered(state: Counter, by: int) -> int:
    state.counts[0] -= by
    return int64(state.counts[0])


@jit.inlined
def _swung(state: Counter, by: int) -> int:
    return _lowered(state, by) + _raised(state, by)


@jit.jit
def swung(state: Counter, by: int) -> int:
    """Take from a counter, and give it back."""
    return _swung(state, by)


@jit.jit
def filled(state: Counter, by: int) -> int:
    """Add to a counter, and return what it is then."""
    state.counts[0] += by
    return int64(state.counts[0])


@jit.jit
def filled_twice(state: Counter, by: int) -> int:
    """Do it twice."""
    return filled(state, by) + filled(state, by)


@jit.jit
def doubled(number: int) -> int:
    """Return a number twice."""
    return 2 * number


@jit.jit
def added(number: int) -> int:
    """Double a number, and constants too."""
    return doubled(1) + doubled(2) + doubled(number)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder where kernels are kept."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kernels"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    return tmp_path / "kernels"


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.nbc"))


@compiled
def test_a_kernel_is_kept_and_what_it_calls_is_not(folder: Path) -> None:
    """One file for the function that Python calls; the other is compiled again where Python calls it as well."""
    kernel = jit.jit(increased_twice.py_func)  # type: ignore[attr-defined]
    state = Counter(np.zeros(1, np.int64))
    assert kernel(state, 2) == 6
    assert _files(folder) == [
        f"test_jit.increased_twice-{_line(increased_twice)}.py3{sys.version_info.minor}.1.nbc"
    ]
    assert jit.jit(increased.py_func)(state, 3) == 7  # type: ignore[attr-defined]
    assert len(_files(folder)) == 2
    assert increased(state, 3) == 10, "a function that was compiled because a kernel calls it"


@compiled
@pytest.mark.usefixtures("folder")
def test_what_is_apart_is_called_by_what_is_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an inlined function calls is inlined, but for what is apart; only what Python calls is optimised."""
    optimised = []
    optimise = JITCodeLibrary._optimize_final_module

    def noted(library: Any) -> None:
        optimised.append(library.name)
        optimise(library)

    monkeypatch.setattr(JITCodeLibrary, "_optimize_final_module", noted)
    assert swung(Counter(np.full(1, 5, np.int64)), 2) == 3 + 5
    kernels: list[Any] = [_lowered, _raised]
    called = [next(iter(each.compiled.overloads.values())).library for each in kernels]
    assert ["alwaysinline" in library.get_llvm_str() for library in called] == [False, True]
    assert [name for name in optimised if name != "nrt"] == ["swung"], "but for numba's own, once in a process"


@compiled
@pytest.mark.usefixtures("folder")
def test_a_function_is_compiled_once_for_all_constants() -> None:
    """Numba would compile a function once more for each constant that it is called with."""
    assert added(3) == 2 * (1 + 2 + 3)
    called: Any = doubled
    assert len(called.compiled.overloads) == 1


@compiled
@pytest.mark.usefixtures("folder")
def test_what_one_thread_compiles_another_can_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread calls a function while another compiles it for a kernel, without what Python calls it by."""
    add = target.Dispatcher.add_overload
    found: list[int] = []
    threads: list[threading.Thread] = []

    def slow(dispatcher: Any, code: Any) -> None:
        if not threads:
            threads.append(
                threading.Thread(target=lambda: found.append(filled(Counter(np.zeros(1, np.int64)), 3)))
            )
            threads[0].start()
            time.sleep(0.3)  # by now it has looked for the function, or waits until it may
        add(dispatcher, code)

    monkeypatch.setattr(target.Dispatcher, "add_overload", slow)
    assert filled_twice(Counter(np.zeros(1, np.int64)), 2) == 6
    threads[0].join()
    assert found == [3]


# Calls both kernels in a process of its own, and tells what they returned and how often the file of each was read.
CALLS = """
import numpy as np
from tests.algorithms.core.test_jit import Counter, increased, increased_twice
state = Counter(np.zeros(1, np.int64))
print(*({calls}), *(sum(each.compiled.stats.cache_hits.values()) for each in (increased, increased_twice)))
"""


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("first", [increased, increased_twice], ids=["called", "caller"])
def test_kept_kernels_are_linked_into_those_that_call_them(folder: Path, first: Any) -> None:
    """A file has machine code alone: of a kernel that one compiled later calls, LLVM's code is made again."""
    called, caller = ("increased(state, 1)", "increased_twice(state, 2)")
    calls = [called, caller, called, caller] if first is increased else [caller, called, caller, called]
    returned = "1 8 6 18" if first is increased else "6 5 16 10"

    def ran() -> str:
        command = [sys.executable, "-c", CALLS.format(calls=", ".join(calls))]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        return done.stdout.strip()

    assert ran() == f"{returned} 0 0"
    assert ran() == f"{returned} 1 1", "both are loaded"
    for file in folder.rglob("*increased_twice*"):
        file.unlink()
    # Where the caller comes first, what it calls is compiled into it and then loaded for Python.
    assert ran() == f"{returned} 1 0"
    assert ran() == f"{returned} 1 1"


@compiled
def test_kept_files_have_no_code_but_the_machine_s(folder: Path) -> None:
    """What LLVM makes it of would be two thirds of a file; it starts with BC, 0xC0DE."""
    state = Counter(np.zeros(1, np.int64))
    jit.jit(increased_twice.py_func)(state, 2)  # type: ignore[attr-defined]
    (file,) = folder.rglob("*.nbc")
    assert b"\x7fELF" in file.read_bytes()
    assert b"BC\xc0\xde" not in file.read_bytes()


@pytest.mark.usefixtures("folder")
def test_a_direct_call_finds_other_code_for_another_first_argument() -> None:
    """Types are looked at where the first argument is another object than before, and only there."""
    call = jit.direct(increased)
    narrow, wide = Counter(np.zeros(1, np.int32)), Counter(np.zeros(1, np.int64))
    for state in (narrow, narrow, wide, wide, narrow):
        call(state, 1 << 20)
    assert (narrow.counts[0], wide.counts[0]) == (3 << 20, 2 << 20)
    assert call(wide, 1 << 40) == (1 << 40) + (2 << 20)


@compiled
def test_a_direct_call_compiles_and_keeps_as_any_other(folder: Path) -> None:
    """The code is looked for where kernels are kept, and kept there; nothing is compiled where that is refused."""
    state = Counter(np.zeros(1, np.int64))
    kernel: Any = jit.jit(increased.py_func)  # type: ignore[attr-defined]
    call = jit.direct(kernel)
    with cache.kept_only(), pytest.raises(cache.NotKeptError):
        call(state, 1)
    assert [call(state, 1), call(state, 1)] == [1, 2]
    assert len(_files(folder)) == 1
    again: Any = jit.jit(increased.py_func)  # type: ignore[attr-defined]
    with cache.kept_only():
        assert jit.direct(again)(state, 1) == 3
    assert sum(again.compiled.stats.cache_hits.values()) == 1


def _line(kernel: Any) -> int:
    line: int = kernel.py_func.__code__.co_firstlineno
    return line


@pytest.mark.slow
@compiled
def test_kept_kernels_are_found_wherever_they_and_the_sources_lie(folder: Path, tmp_path: Path) -> None:
    """A copy of sources and kernels, at other paths and with other times, compiles nothing."""
    code = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nfrom algorithms.core.hashing import mix\nmix(3, 4)\n"
        "assert mix.py_func.__code__.co_filename.startswith(sys.argv[1])\n"
        "print(sum(mix.compiled.stats.cache_misses.values()))"
    )
    package = Path(jit.__file__).parent.parent
    missed: list[int] = []
    for name in ("one", "two"):
        shutil.copytree(package, tmp_path / name / "algorithms", ignore=shutil.ignore_patterns("__pycache__"))
        for path in (tmp_path / name).rglob("*.py"):
            os.utime(path, (1_000_000_000, 1_000_000_000 + len(missed)))
        command = [sys.executable, "-c", code, str(tmp_path / name)]
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environ)
        missed.append(int(done.stdout))
        assert list(folder.rglob("*.nbc"))
    assert missed == [1, 0]


@compiled
def test_folders_are_looked_through_in_order(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the package ships is read and never written; what it has not is in the folder that is named."""
    state = Counter(np.zeros(1, np.int64))
    assert jit.jit(increased.py_func)(state, 1) == 1  # type: ignore[attr-defined]
    shipped = tmp_path / "shipped"
    folder.rename(shipped)
    monkeypatch.setattr(cache, "SHIPPED", shipped)
    kernel: Any = jit.jit(increased.py_func)  # type: ignore[attr-defined]
    assert kernel(state, 1) == 2
    assert sum(kernel.compiled.stats.cache_misses.values()) == 0
    assert jit.jit(increased_twice.py_func)(state, 1) == 7  # type: ignore[attr-defined]
    assert len(_files(shipped)) == len(_files(folder)) == 1


@compiled
def test_where_nothing_can_be_written_a_warning_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels are compiled in memory then; the message names the folder and what to do."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    cache._warn.cache_clear()
    state = Counter(np.zeros(1, np.int64))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            jit.jit(increased.py_func)(state, 1)  # type: ignore[attr-defined]
    assert state.counts[0] == 2
    assert [str(each.message) for each in said] == [
        f"expected to keep compiled kernels in {tmp_path / 'file'}, which cannot be written (Not a directory): "
        "they are compiled again in each process; name a folder that can be written in ANABRANCH_KERNELS"
    ]


@compiled
def test_one_process_at_a_time_is_in_an_index(folder: Path) -> None:
    """Threads and processes that compile for other states at the same time do not take each other's numbers."""
    types = (np.int64, np.int32, np.uint8, np.float64, np.float32, np.int16)

    def work(dtype: Any) -> None:
        jit.jit(increased.py_func)(Counter(np.zeros(1, dtype)), 1)  # type: ignore[attr-defined]

    threads = [threading.Thread(target=work, args=(dtype,)) for dtype in types]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_files(folder)) == len(types)
    for dtype in types:
        kernel: Any = jit.jit(increased.py_func)  # type: ignore[attr-defined]
        assert kernel(Counter(np.zeros(1, dtype)), 1) == 1
        assert sum(kernel.compiled.stats.cache_misses.values()) == 0


@compiled
def test_other_numba_code_keeps_its_target() -> None:
    """The baseline is that of kernels alone: a notebook's own functions are compiled for its machine."""
    own: Any = numba.njit(lambda x: x + 1)
    assert own(1) == 2
    kernel: Any = increased
    assert own.targetctx.codegen().magic_tuple() != kernel.compiled.targetctx.codegen().magic_tuple()
    assert kernel.compiled.targetctx.codegen().magic_tuple()[1:] == target.processor()


@pytest.mark.parametrize(
    ("environ", "baseline"),
    [({}, True), ({"ANABRANCH_CPU": "native"}, False), ({"NUMBA_CPU_NAME": "x86-64"}, False)],
)
def test_the_processor_that_kernels_are_compiled_for(environ: dict[str, str], baseline: bool) -> None:
    """The baseline, but on request, and where the processor has not got what the baseline asks for."""
    code = "from algorithms.core.target import processor; print(*processor())"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ | environ
    )
    assert (done.stdout.split() in (["x86-64-v3"], ["generic"])) == baseline


def _imported(source: Path) -> set[Path]:
    """Return the files of `algorithms` that a file imports, wherever in it."""
    here = Path(jit.__file__).parent.parent
    found = set()
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import that says from where"
            names = [f"{node.module}.{each.name}" for each in node.names] + [node.module or ""]
        for name in names:
            if name.startswith("algorithms."):
                found.add(here.parent / Path(*name.split(".")).with_suffix(".py"))
    return {path for path in found if path.exists()}


@pytest.mark.slow
def test_a_kernel_is_looked_up_by_all_that_it_is_made_of() -> None:
    """Whatever a file here imports, directly or not, is among the sources that name its kernels' folder."""
    here = Path(jit.__file__).parent.parent
    for source in here.rglob("*.py"):
        reached, todo = set(), {source}
        while todo:
            reached |= todo
            todo = {each for path in todo for each in _imported(path)} - reached
        assert reached - {here / "core" / "cache.py"} <= set(sources_of(source)), source
    assert len(sources_of(here / "splits" / "kernel.py")) < len(sources_of(here / "trees" / "grow.py"))
    assert Path(__file__) in sources_of(Path(__file__))
