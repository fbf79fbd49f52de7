"""Kernels before the first event: loaded where they are kept, compiled by another process where they are not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from algorithms.core import cache, jit
from algorithms.core.cache import NotKeptError, kept_only
from tests.worker.state.test_golden_checkpoints import SETTINGS, run_models, stream
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.settings import load
from worker.warming import are_kept

compiled = pytest.mark.skipif(jit.IS_OFF, reason="nothing is compiled")

SPLIT = "models: {spam: {kind: split, input: words, classes: [ham, spam], features: names}}\n"


@compiled
def test_nothing_is_compiled_after_the_warm_up(tmp_path: Path) -> None:
    """Empty batches load every kernel that events of any kind will need, of every kind of model."""
    path = tmp_path / "settings.yaml"
    path.write_text(SETTINGS)
    settings = load(path, {})
    assert are_kept(settings), "the suite compiles ahead what it uses"
    with kept_only():
        run_models(tmp_path / "log.db", settings, stream(), check=False)


@compiled
def test_a_worker_has_its_kernels_compiled_once_and_apart(tmp_path: Path) -> None:
    """The log says so, a second start compiles nothing, and the worker does not keep what compiling takes."""
    settings, log = tmp_path / "settings.yaml", tmp_path / "log.db"
    settings.write_text(f"log: {{embedded: {log}}}\nlogging: {{format: json}}\nmetrics: {{port: 0}}\n" + SPLIT)
    with EmbeddedLog(log) as opened:
        opened.create_topic("words", 1)
        opened.append([OutRecord("words", 0, b"key", b"\x82\xa1x\x91\xa1a\xa1y\xa3ham", (), 1_000)])
    environ = os.environ | {cache.VARIABLE: str(tmp_path / "kernels"), "XDG_CACHE_HOME": str(tmp_path / "nothing")}
    states, sizes = [], []
    for _ in range(2):
        command = [sys.executable, "-m", "worker", "run", str(settings)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as worker:
            assert worker.stderr is not None
            said: list[str] = []
            for line in worker.stderr:
                said.append(json.loads(line)["event"])
                if said[-1] == "running":
                    break
            status = Path(f"/proc/{worker.pid}/status").read_text()
            worker.terminate()
            worker.communicate()
        states.append([each for each in said if each in ("compiling", "running")])
        sizes.append(int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]))
    assert states == [["compiling", "running"], ["running"]]
    assert max(sizes) < 250_000


@compiled
def test_a_signal_ends_a_worker_that_compiles(tmp_path: Path) -> None:
    """SIGTERM does not wait for the compiler."""
    settings, log = tmp_path / "settings.yaml", tmp_path / "log.db"
    settings.write_text(f"log: {{embedded: {log}}}\nlogging: {{format: json}}\nmetrics: null\n" + SPLIT)
    with EmbeddedLog(log) as opened:
        opened.create_topic("words", 1)
    environ = os.environ | {cache.VARIABLE: str(tmp_path / "kernels"), "XDG_CACHE_HOME": str(tmp_path / "nothing")}
    command = [sys.executable, "-m", "worker", "run", str(settings)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as worker:
        assert worker.stderr is not None
        for line in worker.stderr:
            if json.loads(line)["event"] == "compiling":
                break
        started = time.monotonic()
        worker.terminate()
        worker.communicate()
        assert worker.returncode == 0
        assert time.monotonic() - started < 3.0


@compiled
def test_what_is_not_kept_is_not_compiled_where_that_is_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the kernel."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    @jit.jit
    def unheard_of(x: int) -> int:
        return x

    with kept_only(), pytest.raises(NotKeptError, match="unheard_of"):
        unheard_of(1)
    assert unheard_of(1) == 1
