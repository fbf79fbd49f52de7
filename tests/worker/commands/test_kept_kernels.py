"""Kernels that one place and processor compiled serve others: nothing is compiled there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from algorithms.core import jit, target
from tests.support.elsewhere import KERNELS, used
from tests.support.places import ROOT
from worker.commands import main

pytestmark = pytest.mark.skipif(jit.IS_OFF, reason="nothing is compiled")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment where the demo's kernels are kept, and no others."""
    folder = tmp_path_factory.mktemp("kept")
    ended = CliRunner().invoke(main, ["compile", "--into", str(folder / "kernels"), *KERNELS])
    assert ended.exit_code == 0, ended.output
    return {"ANABRANCH_KERNELS": str(folder / "kernels"), "XDG_CACHE_HOME": str(folder / "nothing")}


def _environment(folder: Path, when: int) -> Path:
    """Make a virtual environment with a copy of the packages, whose files have this time; return its Python."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    for package in ("algorithms", "worker"):
        ignored = shutil.ignore_patterns("__pycache__", "kernels")
        shutil.copytree(ROOT / package, site / package, ignore=ignored)
        for path in (site / package).rglob("*.py"):
            os.utime(path, (when, when))
    (site / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return python


@pytest.mark.slow
def test_other_environments_compile_nothing(kept: dict[str, str], tmp_path: Path) -> None:
    """Two virtual environments, with copies of the sources of other times; both load as many files as are kept."""
    loaded = []
    for name, when in (("one", 1_000_000_000), ("two", 2_000_000_000)):
        python = _environment(tmp_path / name, when)
        loaded.append(used(tmp_path / name, python=python, environ=kept | {"PYTHONPATH": ""}, folder=tmp_path))
    files = len(list(Path(kept["ANABRANCH_KERNELS"]).rglob("*.nbc")))
    assert loaded == [files, files]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["haswell", "znver2", "cascadelake", None])
def test_processors_not_below_the_baseline_compile_nothing(
    kept: dict[str, str], tmp_path: Path, name: str | None
) -> None:
    """Whatever the processor is called, the kernels are those of the baseline."""
    environ = kept | {"PYTHONPATH": str(ROOT)} | ({"NUMBA_CPU_NAME": name} if name else {})
    assert used(ROOT, environ=environ, folder=tmp_path) == len(
        list(Path(kept["ANABRANCH_KERNELS"]).rglob("*.nbc"))
    )


@pytest.mark.slow
@pytest.mark.skipif(target.processor().name != "x86-64-v3", reason="there is nothing below `generic`")
@pytest.mark.parametrize(
    "environ",
    [{"NUMBA_CPU_NAME": "x86-64"}, {"ANABRANCH_CPU": "haswell"}, {"ANABRANCH_CPU": "native"}],
    ids=["below", "named", "native"],
)
def test_other_processors_load_no_kernels_of_the_baseline(
    kept: dict[str, str], tmp_path: Path, environ: dict[str, str]
) -> None:
    """They would have to compile: those below the baseline, and those that are asked to."""
    with pytest.raises(AssertionError, match="NotKeptError"):
        used(ROOT, environ=kept | {"PYTHONPATH": str(ROOT)} | environ, folder=tmp_path)


def _wait(condition: Callable[[], bool]) -> None:
    """Wait until something is so, or raise AssertionError after a minute."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _compiling(parent: int) -> list[Path]:
    """Return the processes in which a command compiles, once they watch their parent."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
        except (OSError, ValueError):
            continue  # it has ended
        if int(status["PPid"]) == parent and "--multiprocessing-fork" in words and int(status["Threads"]) > 1:
            found.append(process)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="processes are looked up in /proc")
def test_nothing_compiles_on_once_the_command_is_killed(tmp_path: Path) -> None:
    """The processes that it has begun end with it: nobody else would end them."""
    command = [sys.executable, "-m", "worker", "compile", "tree-osm"]
    environ = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as compiling:
        _wait(lambda: bool(_compiling(compiling.pid)))
        begun = _compiling(compiling.pid)
        compiling.kill()
    _wait(lambda: not any(process.exists() for process in begun))
