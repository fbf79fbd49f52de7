"""A real schema registry in tests: Apicurio, which serves the API of Confluent's."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from worker.broker import BrokerUnavailable
from worker.broker.cached import cache_base, cached_folder
from worker.broker.jars import find_java
from worker.broker.ports import HOST, free_ports

VERSION = "2.6.13.Final"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_FETCHING = 240.0  # s, of 140 MB, the first time
_TIME_LIMIT = 90.0  # s until it answers, on a machine that is busy
_JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


def find_registry() -> Path:
    """Return the folder of the jars, fetched once by Maven; `BrokerUnavailable` says why it cannot be."""
    return cached_folder(cache_base() / "apicurio" / VERSION, _fetch)


def _fetch(scratch: Path) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerUnavailable(f"expected Maven, to fetch Apicurio Registry {VERSION}, found no mvn in PATH")
    command = [maven, "-B", "-ntp", "-q", _GOAL, f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={scratch}"]
    try:
        subprocess.run(command, cwd=scratch, check=True, capture_output=True, timeout=_FETCHING)
    except subprocess.SubprocessError as error:
        raise BrokerUnavailable(f"expected Maven to fetch Apicurio Registry {VERSION}, got {error}") from error
    (archive,) = scratch.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(scratch / "app", filter="data")
    return scratch / "app"


class SchemaRegistry:
    """A registry that is running; schemas are in its memory, so that it is frozen where it shall be away."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self._process = process
        self.url = f"{address}/apis/ccompat/v7"

    def register(
        self, subject: str, text: str, kind: str = "AVRO", references: Sequence[tuple[str, str]] = ()
    ) -> int:
        """Register a schema and return its id; references are (name, subject) of others."""
        body = {
            "schema": text,
            "schemaType": kind,
            "references": [{"name": name, "subject": of, "version": 1} for name, of in references],
        }
        request = Request(f"{self.url}/subjects/{subject}/versions", json.dumps(body).encode(), _JSON)
        with urlopen(request, timeout=30) as reply:
            answer: dict[str, Any] = json.load(reply)
        return int(answer["id"])

    @contextmanager
    def away(self) -> Iterator[None]:
        """Freeze it: connections are taken and nothing answers."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def running_registry(folder: Path) -> Iterator[SchemaRegistry]:
    """Start a registry; raise `BrokerUnavailable` where Java or Maven are missing."""
    java, app = find_java(), find_registry()
    (port,) = free_ports(1)
    (runner,) = app.glob("*-runner.jar")
    options = [f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={port}", "-Xmx256m", "-XX:+UseSerialGC"]
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([str(java), *options, "-jar", str(runner)], cwd=folder, stdout=log, stderr=log)
        try:
            registry = SchemaRegistry(process, f"http://{HOST}:{port}")
            _wait(f"{registry.url}/subjects", process)
            yield registry
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _TIME_LIMIT
    while time.monotonic() < until and process.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"expected the registry to answer at {url} within {_TIME_LIMIT:.0f} s, it did not")
