"""Kernels before the first event: loaded where they are kept, compiled by another process where they are not."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType

import llvmlite.binding as llvm
import pytest
from click.testing import CliRunner

from algorithms.core import cache, jit, target
from algorithms.core.cache import NotKeptError, kept_only
from tests.support.one_model import one_model
from tests.support.recordings import every_kind
from tests.support.workers import worker_on
from tests.worker.state.test_golden_checkpoints import STATES, run_models, stream
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.settings import load
from worker.warming import are_kept, compile_apart

compiled = pytest.mark.skipif(jit.IS_OFF, reason="nothing is compiled")

SPLIT = "models: {spam: {kind: split, input: words, classes: [ham, spam], features: names, finder: baseent}}\n"


@contextmanager
def running(
    folder: Path, environ: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[subprocess.Popen[str], Iterator[dict[str, str]]]]:
    """Start a worker on one event, where no kernels are kept at first; yield it and the lines that it logs."""
    settings, log = folder / "settings.yaml", folder / "log.db"
    settings.write_text(f"log: {{embedded: {log}}}\nlogging: {{format: json}}\nmetrics: {{port: 0}}\n" + SPLIT)
    if not log.exists():
        with EmbeddedLog(log) as opened:
            opened.create_topic("words", 1)
            opened.append([OutRecord("words", 0, b"key", b"\x82\xa1x\x91\xa1a\xa1y\xa3ham", (), 1_000)])
    kept = {cache.VARIABLE: str(folder / "kernels"), "XDG_CACHE_HOME": str(folder / "nothing")}
    command = [sys.executable, "-m", "worker", "run", str(settings)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **kept, **environ}
    ) as worker:
        assert worker.stderr is not None
        yield worker, (json.loads(line) for line in worker.stderr)


@compiled
@pytest.mark.parametrize("name", STATES)
def test_nothing_is_compiled_after_the_warm_up(tmp_path: Path, name: str) -> None:
    """Empty batches load every kernel that events of any kind will need, of every kind of model."""
    path = tmp_path / "settings.yaml"
    path.write_text(STATES[name])
    settings = load(path, {})
    assert are_kept(settings), "the suite compiles ahead what it uses"
    with kept_only():
        run_models(tmp_path / "log.db", settings, stream(), check=False)


@pytest.mark.parametrize("alone", [True, False])
def test_garbage_is_collected_as_before_where_others_live_too(tmp_path: Path, alone: bool) -> None:
    """Only a process of its own has its collector set; and what an ended worker held is garbage."""
    path, passed_by = tmp_path / "settings.yaml", []
    path.write_text(f"log: {{embedded: {tmp_path / 'log.db'}}}\n" + SPLIT)
    settings = load(path, {})

    def stop() -> bool:
        passed_by.append(gc.get_freeze_count())
        return len(passed_by) > 3

    with EmbeddedLog(tmp_path / "log.db", group=settings.group) as log:
        for topic in settings.routes:
            log.create_topic(topic, 1)
        worker_on(log, settings).run(stop, alone=alone)
    assert (passed_by[-1] > 0) == alone
    assert gc.get_freeze_count() == 0


@pytest.mark.slow
@compiled
def test_a_worker_has_its_kernels_compiled_once_and_apart(tmp_path: Path) -> None:
    """The log says so, a second start compiles nothing, and the worker does not keep what compiling takes.

    The processor is said to be below the baseline: it does not load what is kept for that, and says why.
    """
    ended = CliRunner().invoke(main, ["compile", "--into", str(tmp_path / "kernels"), "codec", "baseent"])
    assert ended.exit_code == 0, ended.output
    states, sizes = [], []
    for _ in range(2):
        with running(tmp_path, {"NUMBA_CPU_NAME": "x86-64"}) as (worker, lines):
            said = list(takewhile(lambda line: line["event"] != "running", lines))
            status = Path(f"/proc/{worker.pid}/status").read_text()
            worker.terminate()
            worker.communicate()
        states.append([line["processor"] for line in said if line["event"] == "compiling"])
        sizes.append(int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]))
        assert worker.returncode == 0
    own = f"{llvm.get_host_cpu_name()}, which is below {target.processor().name}"
    assert states == [[own], []]
    assert max(sizes) < 250_000


@pytest.mark.slow
@compiled
def test_a_signal_ends_a_worker_that_compiles(tmp_path: Path) -> None:
    """SIGTERM does not wait for the compiler."""
    with running(tmp_path) as (worker, lines):
        assert "compiling" in (line["event"] for line in lines)  # reads up to there
        started = time.monotonic()
        worker.terminate()
        worker.communicate()
        assert worker.returncode == 0
        assert time.monotonic() - started < 10.0, "compiling takes longer"


@pytest.mark.slow
@compiled
def test_what_kernels_take_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compile --list` says which are kept, what they took and how large they are, and compiles nothing."""
    listed = CliRunner().invoke(main, ["compile", "--list", "codec"])
    found = re.search(r"codec +(\d+\.\d) +\d+ +kept", listed.output)
    assert found, listed.output
    assert float(found[1]) > 1.0  # to compile; to load takes a tenth
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    listed = CliRunner().invoke(main, ["compile", "--list", "codec"])
    assert re.search(r"codec +not kept", listed.output), listed.output
    assert not list(tmp_path.rglob("*.nbc"))


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


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "labels are waited for"])
def test_what_a_smaller_max_needs_is_there_before(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    """Other limits come at a restart, in the loop: their kernel is compiled with those that events call."""
    called = []
    monkeypatch.setattr("worker.late.pending.shorten", lambda *_: called.append(True))
    model = {"kind": "split", "input": "in", "classes": [0, 1], "features": "ids"}
    one_model(model, pending={"max": 9, "for": "1d"} if waits else None).warm_up()
    assert any(called) == waits


@pytest.mark.slow
def test_another_process_knows_every_kind(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Kernels are compiled apart for kinds that something else than the worker registered, too."""
    settings = tmp_path / "settings.yaml"
    settings.write_text(every_kind())
    told = load(settings, {})
    only = told.model_copy(update={"models": {n: m for n, m in told.models.items() if m.kind == "majority"}})
    assert len(only.models) == 2
    compile_apart(only, lambda: False)
    assert capfd.readouterr() == ("", ""), "the other process ended without an error"
