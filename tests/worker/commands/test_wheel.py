"""The wheel that is shipped: installed alone it has its kernels, and works where nothing can be written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from algorithms.core import jit
from tests.support.elsewhere import KERNELS, used
from tests.support.places import ROOT
from tests.support.read_only import DATA, Container, why_not
from worker.codec.event import encode_event
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord

compiled = pytest.mark.skipif(jit.IS_OFF, reason="nothing is compiled")
_KERNELS = (*KERNELS, "baseent")  # the last is cheap, for a test that compiles it twice
_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that is built as `make wheel` does, with the kernels of the demo, and a scan's."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    for name in ("algorithms", "worker", "deploy", "pyproject.toml", "README.md", "LICENSE"):
        target = checkout / name
        target.parent.mkdir(exist_ok=True)
        subprocess.run(["cp", "-r", str(ROOT / name), str(target)], check=True)
    ended = CliRunner().invoke(main, ["compile", "--into", str(checkout / "algorithms" / "kernels"), *_KERNELS])
    assert ended.exit_code == 0, ended.output
    subprocess.run([*_PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(checkout)], check=True)
    (made,) = folder.glob("*.whl")
    return made


def _install(wheel: Path, folder: Path) -> Path:
    """Install a wheel, without what it needs, in a folder that holds nothing else, and return that."""
    home = folder / "home"
    subprocess.run([*_PIP, "install", "--no-deps", "--target", str(home), str(wheel)], check=True)
    return home


@compiled
@pytest.mark.slow
def test_a_wheel_brings_its_kernels(wheel: Path, tmp_path: Path) -> None:
    """It is of this platform and Python, and compiles nothing, in an empty home where nothing can be written."""
    python = f"cp3{sys.version_info.minor}"
    assert wheel.name.split("-")[2:4] == [python, python]
    assert not wheel.name.endswith("any.whl")
    assert wheel.stat().st_size < 25_000_000
    home = _install(wheel, tmp_path)
    environ = {"ANABRANCH_KERNELS": "", "XDG_CACHE_HOME": "/proc/nothing", "PYTHONPATH": str(home)}
    assert used(home, environ=environ, folder=tmp_path, kernels=_KERNELS) == len(list(home.rglob("*.nbc")))


# --- where nothing can be written

SETTINGS = """\
log: {embedded: events.db}
models: {spam: {kind: split, finder: baseent, input: sms, classes: [ham, spam], features: names}}
metrics: {port: 0}
logging: {format: json}
"""
TRY = """
import errno, os
assert os.getuid() == 65534
for path in ("/x", "/site/x", "/needed/x", "/usr/x", os.path.expanduser("~/x")):
    try:
        open(path, "w")
    except OSError as error:
        assert error.errno in (errno.EROFS, errno.ENOENT), (path, error)
    else:
        raise AssertionError(path)
import worker
print(worker.__file__)
"""


@pytest.fixture
def container(wheel: Path, tmp_path: Path) -> Container:
    """Return a container with the wheel, settings, and a log of two events; skip where there can be none."""
    reason = why_not()
    if reason is not None:
        pytest.skip(f"needs namespaces: {reason}")
    made = Container(tmp_path, _install(wheel, tmp_path))
    (made.data / "worker.yaml").write_text(SETTINGS)
    with EmbeddedLog(made.data / "events.db") as log:
        log.create_topic("sms", 1)
        for words, label in ((["win", "a", "prize"], "spam"), (["see", "you"], "ham")):
            log.append([OutRecord("sms", 0, b"everyone", encode_event(words, label), (), 1_700_000_000_000)])
    return made


def _worker(container: Container, *arguments: str) -> tuple[str, list[str]]:
    """Run a command that succeeds; return what it said, and what of that on standard error was a warning."""
    done = container.run("-m", "worker", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "arning" in line]


def _run(container: Container) -> list[str]:
    """Run what a container runs up to its results; return the warnings of the last command."""
    settings = f"{DATA}/worker.yaml"
    helped, unwarned = _worker(container, "--help")
    assert "Usage:" in helped
    assert not unwarned
    said, unwarned = _worker(container, "validate", settings)
    assert f"{settings}: good" in said
    assert not unwarned
    return _worker(container, "run", settings, "--until-end")[1]


@compiled
@pytest.mark.slow
def test_a_read_only_root(container: Container) -> None:
    """The installed wheel works as user 65534 where its data alone can be written, and compiles nothing."""
    tried = container.run("-c", TRY)
    assert tried.stdout == "/site/worker/__init__.py\n", tried.stderr
    assert not _run(container)
    log = f"{DATA}/events.db"
    said, warnings = _worker(container, "replay", f"{DATA}/worker.yaml", log, f"{DATA}/out.db", "--expect", log)
    assert said.endswith(f"the results equal {log}\n")
    assert not warnings


@compiled
@pytest.mark.slow
def test_a_read_only_root_without_kernels(container: Container, tmp_path: Path) -> None:
    """Where none are kept and none can be, a command that needs them compiles in memory and warns once."""
    shutil.rmtree(tmp_path / "home" / "algorithms" / "kernels")
    (warning,) = _run(container)
    assert "expected to keep compiled kernels" in warning
