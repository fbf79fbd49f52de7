"""The programs in other languages: what they write is learned, and what they read are the results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.workers import worker_on
from worker.broker import Cluster, Installation
from worker.log.kafka import KafkaLog
from worker.log.port import TopicPartition
from worker.settings import Settings
from worker.topics import create_topics

CLIENTS = Path(__file__).parents[2] / "deploy" / "clients"
_SECONDS = 240.0  # for a program, which may be compiled first

Run = Callable[[str, str, str], str]  # a program, the brokers and a topic to what it prints


def _output(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def _expect(program: str) -> None:
    """Skip where a toolchain is missing; REQUIRE_CLIENTS=1 makes it fail."""
    if shutil.which(program) is None:
        assert os.environ.get("REQUIRE_CLIENTS") != "1", f"{program} is missing"
        pytest.skip(f"needs {program}")


@pytest.fixture(params=["java", "go", "javascript"])
def run(request: pytest.FixtureRequest, installation: Installation, tmp_path: Path) -> Run:
    """Return what runs the programs of a language."""
    folder = tmp_path / "clients"
    shutil.copytree(CLIENTS / request.param, folder, ignore=shutil.ignore_patterns("node_modules"))
    match request.param:
        case "java":
            _expect("javac")
            java = [str(installation.java), "-cp", f"{installation.jars}/*"]
            return lambda name, *where: _output([*java, f"{name.title()}.java", *where], folder)
        case "go":
            _expect("go")
            return lambda name, *where: _output(["go", "run", f"./{name}", *where], folder)
    _expect("npm")
    _output(["npm", "ci", "--no-audit", "--no-fund"], folder)
    return lambda name, *where: _output(["node", f"{name}.mjs", *where], folder)


def test_events_are_written_and_results_read(kafka: Cluster, run: Run) -> None:
    """A hundred events lead to splits, which the consumer prints as they are."""
    topic = f"sms-{uuid4().hex[:10]}"
    settings = Settings.model_validate_json(
        json.dumps(
            {
                "log": {"kafka": {"bootstrap": kafka.bootstrap}},
                "group": topic,
                "topics": {topic: {"format": "json", "results": "json"}},
                "models": {
                    "m": {"kind": "split", "input": topic, "classes": ["ham", "spam"], "features": "names"}
                },
                "metrics": None,
            }
        )
    )
    with KafkaLog({"bootstrap.servers": kafka.bootstrap}, group=topic, instance="one") as log:
        log.create_topic(topic, 1)
        create_topics(log, settings)
        run("produce", kafka.bootstrap, topic)
        assert log.watermarks(TopicPartition(topic, 0)).high >= 100
        worker_on(log, settings).run(lambda: False, until_end=True)
        assert log.watermarks(TopicPartition(f"{topic}.dead", 0)).high == 0
    lines = run("consume", kafka.bootstrap, f"{topic}.out").splitlines()
    results = [line.partition(" ") for line in lines]
    assert {kind for kind, _, _ in results} == {"split"}
    last = json.loads(results[-1][2])
    assert (last["model"], last["classes"]) == ("m", ["ham", "spam"])
    assert last["feature"] in {"win", "a", "prize", "see", "you"}


def test_the_page_names_each_program() -> None:
    """Each language has a producer and a consumer, with the page's names."""
    page = (CLIENTS / "README.md").read_text("utf-8")
    for name in ("java/Produce.java", "java/Consume.java", "./produce", "./consume", "produce.mjs", "consume.mjs"):
        assert name in page
