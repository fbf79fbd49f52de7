"""Prometheus in tests: the program, a running one, and what it answers."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

from worker.broker.cached import cache_base, cached_folder
from worker.broker.ports import HOST, free_ports

_TIME_LIMIT = 60.0  # s, for machines that are busy with something else
_FETCHING = 120.0  # s for each step, the first time


class PrometheusUnavailable(Exception):
    """Prometheus is not here and cannot be fetched."""


class Programs(NamedTuple):
    """Prometheus, and what checks its files."""

    prometheus: Path
    promtool: Path


def find_programs() -> Programs:
    """Return the programs of PATH, else of the cache folder, where apt-get fetches Debian's package to once.

    Nothing is installed and no rights are needed. Any number of processes may call it at a time.

    Raises
    ------
    PrometheusUnavailable
        It is not on PATH, and apt-get is missing or fails.
    """
    found = [shutil.which(name) for name in Programs._fields]
    if all(found):
        return Programs(*(Path(each or "") for each in found))
    folder = cached_folder(cache_base() / "prometheus", _fetch)
    return Programs(*(folder / name for name in Programs._fields))


def _fetch(scratch: Path) -> Path:
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        raise PrometheusUnavailable(
            f"expected Prometheus on PATH, or Debian's {' and '.join(missing)} to fetch it; install it"
        )
    # Lists of packages of our own: the system's may be missing, old, or not ours to renew.
    state, cache = scratch / "state", scratch / "cache"
    (state / "lists" / "partial").mkdir(parents=True)
    (cache / "archives" / "partial").mkdir(parents=True)
    own = (f"Dir::State={state}", "Dir::State::status=/var/lib/dpkg/status", f"Dir::Cache={cache}")
    apt = ["apt-get", "-q", *(word for option in (*own, "APT::Sandbox::User=") for word in ("-o", option))]
    _run([*apt, "update"], scratch)
    _run([*apt, "download", "prometheus"], scratch)
    (package,) = scratch.glob("prometheus_*.deb")
    _run(["dpkg-deb", "-x", str(package), "content"], scratch)
    return scratch / "content" / "usr" / "bin"


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCHING,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PrometheusUnavailable(
            f"expected {command[0]} to end within {_FETCHING:.0f} s, it did not; try again"
        ) from error
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise PrometheusUnavailable(
            f"expected {' '.join(command[:1] + command[-2:])} to succeed, it said:\n{said}"
        )


class Prometheus:
    """A Prometheus that is running.

    Parameters
    ----------
    url : str
        Of its pages, without a slash at the end.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, what: str, **parameters: str) -> Any:
        """Return the data of an answer of the API; an HTTPError tells of an expression that is wrong."""
        with urlopen(f"{self.url}/api/v1/{what}?{urlencode(parameters)}", timeout=30) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        assert not said.get("warnings"), said
        return said["data"]

    def values(self, expression: str, start: float, end: float) -> list[float]:
        """Return all numbers that an expression has between two times, a second apart, of all series."""
        found = self.ask("query_range", query=expression, start=str(start), end=str(end), step="1")
        numbers = (float(value) for series in found["result"] for _, value in series["values"])
        return [number for number in numbers if math.isfinite(number)]


@contextmanager
def running(programs: Programs, config: Path, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus with these settings on a free port until the end of the block; its data goes to a folder."""
    (port,) = free_ports(1)
    prometheus = Prometheus(f"http://{HOST}:{port}")
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [
                str(programs.prometheus),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={HOST}:{port}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            deadline = time.monotonic() + _TIME_LIMIT
            while not _is_ready(prometheus):
                said = (folder / "prometheus.log").read_text()
                assert process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.1)
            yield prometheus
        finally:
            process.terminate()
            process.wait(_TIME_LIMIT)


def _is_ready(prometheus: Prometheus) -> bool:
    try:
        with urlopen(f"{prometheus.url}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
