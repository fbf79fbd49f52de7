"""The wheel that is shipped: installed alone, it has its kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from algorithms.core import jit
from tests.support.elsewhere import KERNELS, used
from tests.support.places import ROOT
from worker.commands import main


@pytest.mark.slow
@pytest.mark.skipif(jit.IS_OFF, reason="nothing is compiled")
def test_a_wheel_brings_its_kernels(tmp_path: Path) -> None:
    """It is of this platform and Python, and compiles nothing, in an empty home where nothing can be written."""
    checkout = tmp_path / "checkout"
    for name in ("algorithms", "worker", "deploy", "pyproject.toml", "README.md", "LICENSE"):
        target = checkout / name
        target.parent.mkdir(exist_ok=True)
        subprocess.run(["cp", "-r", str(ROOT / name), str(target)], check=True)
    ended = CliRunner().invoke(main, ["compile", "--into", str(checkout / "algorithms" / "kernels"), *KERNELS])
    assert ended.exit_code == 0, ended.output
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(checkout)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    python = f"cp3{sys.version_info.minor}"
    assert wheel.name.split("-")[2:4] == [python, python]
    assert not wheel.name.endswith("any.whl")
    assert wheel.stat().st_size < 25_000_000
    home = tmp_path / "home"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(home), str(wheel)], check=True)
    environ = {"ANABRANCH_KERNELS": "", "XDG_CACHE_HOME": "/proc/nothing", "PYTHONPATH": str(home)}
    assert used(home, environ=environ, folder=tmp_path) == len(list(home.rglob("*.nbc")))
