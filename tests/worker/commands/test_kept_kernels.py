"""Kernels that one place and processor compiled serve others: nothing is compiled there."""

from __future__ import annotations

import os
import shutil
import sys
import venv
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


def _environment(folder: Path, time: int) -> Path:
    """Make a virtual environment with a copy of the packages, whose files have this time; return its Python."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    for package in ("algorithms", "worker"):
        ignored = shutil.ignore_patterns("__pycache__", "kernels")
        shutil.copytree(ROOT / package, site / package, ignore=ignored)
        for path in (site / package).rglob("*.py"):
            os.utime(path, (time, time))
    (site / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return python


@pytest.mark.slow
def test_other_environments_compile_nothing(kept: dict[str, str], tmp_path: Path) -> None:
    """Two virtual environments, with copies of the sources of other times; both load as many files as are kept."""
    loaded = []
    for name, time in (("one", 1_000_000_000), ("two", 2_000_000_000)):
        python = _environment(tmp_path / name, time)
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
