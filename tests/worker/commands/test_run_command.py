"""The command line in processes of its own: what a person, a supervisor and a scraper see."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from tests.support.places import ROOT
from worker import demo
from worker.commands import COMMANDS, main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition

COMMAND = [sys.executable, "-m", "worker"]
SOURCE = TopicPartition("sms", 0)
TIME_LIMIT = 60.0  # seconds, for machines that are busy with something else

OPTIONS: dict[str, Any] = {
    "log": {"embedded": "events.db"},
    "models": {
        "spam": {
            "kind": "split",
            "input": "sms",
            "classes": ["ham", "spam"],
            "features": "names",
            "on_duplicate": "replace",
        }
    },
    "metrics": {"port": 0},
    "logging": {"format": "json"},
}
WRITES_TREES = {"models": {"spam": OPTIONS["models"]["spam"] | {"emit": {"snapshots": {"every": 50}}}}}
PATIENT = {"transaction": {"interval_ms": 30_000}}  # commits only when it has to


def _settings(folder: Path, **options: Any) -> Path:
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump(OPTIONS | options))
    return path


def _events(count: int = 200) -> Iterable[OutRecord]:
    return islice(demo.records(), count)


@pytest.fixture
def log(tmp_path: Path) -> Iterable[EmbeddedLog]:
    """Return a log with 200 events that no worker has seen."""
    with EmbeddedLog(tmp_path / "events.db") as opened:
        opened.create_topic("sms", 1)
        opened.append(_events())
        yield opened


def _until(true: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    """Wait until something is true, while the process lives."""
    deadline = time.monotonic() + TIME_LIMIT
    while not true():
        assert running.poll() is None, "the worker ended before its time"
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


class Running:
    """A worker process, of the sources in a folder, ended with the block."""

    def __init__(self, settings: Path, folder: Path = ROOT, **variables: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "run", str(settings)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | variables,
        )
        self.lines: list[dict[str, Any]] = []

    def __enter__(self) -> Running:
        self.page = str(self.logged("starting").get("page"))
        self.logged("running")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def logged(self, event: str) -> dict[str, Any]:
        """Return the next line of the log about an event."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"] == event:
                return self.lines[-1]
        raise AssertionError(f"the worker ended without {event!r}: {self.lines}")

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a page."""
        try:
            with urlopen(self.page + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Return the samples by name and values of labels, in the order of the labels' names."""
        _, text = self.get("metrics")
        return {
            (
                sample.name.removeprefix("anabranch_"),
                *(value for _, value in sorted(sample.labels.items())),
            ): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def until_read(self, records: int) -> dict[tuple[str, ...], float]:
        """Wait until so many records are read and return the metrics of then."""
        consumed = ("records_consumed_total", "0", "sms")
        lag = ("lag_records", "0", "sms")
        _until(lambda: self.metrics().get(consumed) == records and self.metrics().get(lag) == 0, self.process)
        return self.metrics()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_worker_after_a_commit(tmp_path: Path, log: EmbeddedLog, number: signal.Signals) -> None:
    """On SIGTERM and SIGINT the open transaction is committed and the exit code is 0."""
    with Running(_settings(tmp_path, **PATIENT)) as running:
        running.until_read(200)
        assert log.committed(SOURCE) is None
        running.process.send_signal(number)
        assert running.process.wait(TIME_LIMIT) == 0
        assert [running.logged(event)["event"] for event in ("stopping", "stopped")]
    assert log.committed(SOURCE) == 200
    assert log.watermarks(TopicPartition("sms.out", 0)).high > 0


@pytest.mark.slow
def test_a_second_signal_ends_the_worker_at_once(tmp_path: Path, log: EmbeddedLog) -> None:
    """A worker whose last commit hangs is ended by a second signal, and nothing of it was written."""
    with Running(_settings(tmp_path, **PATIENT)) as running:
        running.until_read(200)
        with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # so that the worker waits for its turn to write
            running.process.send_signal(signal.SIGTERM)
            time.sleep(0.6)
            assert running.process.poll() is None
            running.process.send_signal(signal.SIGTERM)
            started = time.monotonic()
            assert running.process.wait(TIME_LIMIT) != 0
            assert time.monotonic() - started < 3
    assert log.committed(SOURCE) is None
    assert log.watermarks(TopicPartition("sms.out", 0)).high == 0


@pytest.mark.slow
def test_the_page_draws_the_trees(tmp_path: Path, log: EmbeddedLog) -> None:
    """The page of a key shows the last snapshot that was written of its tree, as `show` draws it."""
    with Running(_settings(tmp_path, **WRITES_TREES)) as running:
        running.until_read(200)
        _until(lambda: log.committed(SOURCE) == 200, running.process)
        _until(lambda: "/models/spam/everyone" in running.get("")[1], running.process)
        status, page = running.get("models/spam/everyone")
    asked = ["show", str(tmp_path / "events.db"), "--topic", "sms.out", "--format", "svg"]
    drawn = CliRunner().invoke(main, asked)
    assert (status, drawn.exit_code) == (200, 0)
    assert drawn.stdout in page
    assert "version 200, 3 nodes" in page


@pytest.mark.slow
def test_the_pages_tell_the_truth(tmp_path: Path, log: EmbeddedLog) -> None:
    """While the worker runs its pages answer, and the metrics are what was read, applied, refused and written."""
    bad = [(b"k", b"\xc1"), (None, b"\x80"), (b"k", b"\x82\xa1x\x91\xa1a\xa1y\xa1?")]
    log.append(OutRecord("sms", 0, key, value, (), 1_300_000_000_000) for key, value in bad)
    with Running(_settings(tmp_path)) as running:
        running.until_read(203)
        committed = ("committed_offset", "0", "sms")
        _until(lambda: running.metrics().get(committed) == 203, running.process)
        metrics = running.metrics()
        assert {name: value for name, value in metrics.items() if "rejected_total" in name[0]} == {
            ("records_rejected_total", "malformed", "sms"): 1,
            ("records_rejected_total", "no-key", "sms"): 1,
            ("events_rejected_total", "unknown-class", "sms"): 1,
        }
        assert metrics["events_applied_total", "spam", "insert"] == 200
        assert metrics["live_examples", "spam"] == 200
        assert metrics["keys", "spam"] == 1
        assert metrics["records_produced_total", "dead-letter"] == 3
        written = log.watermarks(TopicPartition("sms.out", 0)).high
        assert metrics["records_produced_total", "split"] == written > 0
        assert metrics["splits_changed_total", "spam"] == written
        assert abs(metrics["last_commit_timestamp_seconds", "0", "sms"] - time.time()) < TIME_LIMIT
        assert metrics["stage_duration_seconds_count", "commit"] >= 1

        assert running.get("livez")[0] == running.get("readyz")[0] == 200
        status, page = running.get("")
        assert status == 200
        assert "<td>sms</td><td>0</td><td>203</td><td>203</td><td>0</td>" in page
        assert running.get("elsewhere")[0] == 404


@pytest.mark.slow
def test_events_are_processed_as_they_come(tmp_path: Path, log: EmbeddedLog) -> None:
    """What another process appends is committed within a second, interval and all."""
    with Running(_settings(tmp_path)) as running:
        _until(lambda: log.committed(SOURCE) == 200, running.process)
        took = []
        for end in range(201, 206):
            time.sleep(0.1)
            log.append(islice(demo.records(), end - 1, end))
            started = time.monotonic()
            _until(lambda: log.committed(SOURCE) == end, running.process)  # noqa: B023  called at once
            took.append(time.monotonic() - started)
        assert sorted(took)[2] < 1.0, took


@pytest.mark.slow
def test_a_restart_goes_on_where_the_last_worker_ended(tmp_path: Path, log: EmbeddedLog) -> None:
    """A second run counts what it reads itself, and its models are those that the first one left."""
    settings = _settings(tmp_path)
    assert _run("run", str(settings), "--until-end").returncode == 0
    assert log.committed(SOURCE) == 200
    log.append(islice(demo.records(), 200, 210))
    with Running(settings) as running:
        metrics = running.until_read(10)
        assert metrics["live_examples", "spam"] == 210
        assert metrics["restore_remaining_records", "0", "sms"] == 0


def _run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT * 4,
        check=False,
    )


# --- what is wrong is said


def test_wrong_settings_end_the_command(tmp_path: Path) -> None:
    """Every mistake is named with its line, also one in a variable, and the exit code is 1."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("log: {embedded: a.db}\nmodels:\n  m:\n    kind: splt\n    input: in\ngruop: g\n")
    ended = _run("run", str(settings), ANABRANCH_TRANSACTION__RECORDS="none")
    assert ended.returncode == 1
    assert ended.stdout == ""
    places = [line.split(": ")[0] for line in ended.stderr.splitlines()]
    assert f"{settings}:4:11" in places
    assert f"{settings}:6:1" in places
    assert "ANABRANCH_TRANSACTION__RECORDS" in places
    assert re.search(r"Error: \d+ problems in the settings", ended.stderr)
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log": {"embedded": "nowhere.db"}}, "nowhere.db: expected an existing log file, found none"),
        (
            {"log": {"embedded": "settings.yaml"}},
            "settings.yaml: expected a log file, found no SQLite file at all",
        ),
        (
            {"models": {"m": OPTIONS["models"]["spam"] | {"input": "ads"}}},
            "expected the topic 'ads', the input of model m; there is none",
        ),
    ],
)
@pytest.mark.usefixtures("log")
def test_a_log_that_does_not_fit_ends_the_command(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """A missing file, a file of another kind and a missing topic end the worker with a message and code 1."""
    settings = _settings(tmp_path, **options)
    runner = CliRunner().invoke(main, ["run", str(settings), "--until-end"])
    assert runner.exit_code == 1
    assert f"Error: {message}" in runner.output.replace(f"{tmp_path}/", "")


@pytest.mark.usefixtures("log")
def test_a_port_in_use_ends_the_command(tmp_path: Path) -> None:
    """A worker whose port another process has ends with a message that names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = _run("run", str(_settings(tmp_path, metrics={"port": port})))
    assert ended.returncode == 1
    assert f"Error: expected to listen on 127.0.0.1:{port}, got: Address already in use" in ended.stderr
    assert "set metrics: {host: ..., port: ...} in the settings (port 0 for any free one" in ended.stderr
    assert "Traceback" not in ended.stderr


# --- the other commands


def test_validate(tmp_path: Path) -> None:
    """A good file is called good, with what will go where."""
    settings = _settings(tmp_path)
    result = CliRunner().invoke(main, ["validate", str(settings)])
    assert result.exit_code == 0
    first, model, last = result.output.splitlines()
    assert first == f"{settings}: good"
    assert model == "  spam: split (exact, entropy) sms -> sms.out, refused events -> sms.dead"
    assert re.fullmatch(r"  results depend on settings [0-9a-f]{12}", last)


def test_help_lists_the_commands() -> None:
    """The command line has these commands and no others."""
    ended = _run("--help")
    assert ended.returncode == 0
    listed = ended.stdout.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in listed if line.startswith("  ") and line[2] != " "] == list(COMMANDS)
    assert {"run", "demo", "publish", "show", "replay", "validate", "bench", "compile"} <= set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    """Each command says what it is for and what each of its options is."""
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: main {name}")
    assert len(result.output.splitlines()) > 4


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["--help"], {"numba", "numpy", "pydantic", "rich"}),
        (["--version"], {"numba", "numpy", "pydantic", "rich"}),
        (["validate", "deploy/worker.yaml"], {"numba", "confluent_kafka", "prometheus_client", "worker.restore"}),
        (["show", "tests/golden/mixed.out.db"], {"numba", "confluent_kafka", "prometheus_client"}),
        (["publish", "--help"], {"numba", "confluent_kafka", "prometheus_client"}),
        (["topics", "list", "tests/golden/mixed.yaml"], {"numba", "confluent_kafka", "prometheus_client"}),
    ],
    ids=lambda value: " ".join(sorted(value)) if isinstance(value, set) else " ".join(value),
)
def test_a_command_imports_what_it_needs(arguments: list[str], without: set[str]) -> None:
    """Commands that compute nothing start at once: without the compiler, the client, or the server's metrics."""
    code = (
        "import sys\nfrom worker.commands import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    print('imported', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=False, capture_output=True, text=True)
    imported = done.stderr.split("imported ")[-1].split()
    assert "click" in imported
    assert not without & set(imported)


def test_the_version_is_that_of_the_package() -> None:
    """`--version` names command and version."""
    result = CliRunner().invoke(main, ["--version"], prog_name="anabranch")
    assert re.fullmatch(r"anabranch, version \d+\.\d+\.\d+\S*\n", result.output)


@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    """The demo runs to its end and shows the splits, the tree, answers and what was refused."""
    ended = _run("demo", "--port", "0", "--keep", str(tmp_path), COLUMNS="120")
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    for part in ("http://127.0.0.1:", "spam", "free", "tree guessed every message", "asked", "sms/0 offset"):
        assert part in ended.stdout
    with EmbeddedLog(tmp_path / "demo.db", create=False) as log:
        high = log.watermarks(SOURCE).high
        assert log.committed(SOURCE) == high > 6_000
        assert log.watermarks(TopicPartition("sms.dead", 0)).high == 3  # both models refuse the label
