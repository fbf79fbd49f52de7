"""The compose file and the image: valid, and of one mind with settings and worker."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from tests.support.places import ROOT
from worker.broker import Cluster
from worker.broker.jars import VERSION
from worker.settings import Settings, load

DEPLOY = ROOT / "deploy"
SETTINGS = "/etc/anabranch/worker.yaml"  # in a container


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


COMPOSE = _compose()["services"]


def _settings(folder: Path, text: str, **variables: str) -> Settings:
    path = folder / "worker.yaml"
    path.write_text(text)
    return load(path, variables)


def _on_disk(service: dict[str, Any]) -> dict[str, Path]:
    """Return where on disk the files and folders are that a service mounts, by their paths in the container."""
    found = {}
    for volume in service["volumes"]:
        source, target = volume.split(":")[:2]
        if source.startswith("."):
            found[target] = DEPLOY / source
    return found


# --- compose


def test_the_compose_file_is_valid() -> None:
    """The file is one by the published schema of Compose."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, DEPLOY / "compose.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_compose_names_is_there() -> None:
    """Files that are mounted and services that are waited for exist, and the broker is the one of the tests."""
    for service in COMPOSE.values():
        assert all(path.exists() for path in _on_disk(service).values())
        assert set(service.get("depends_on", ())) <= set(COMPOSE)
    assert COMPOSE["broker"]["image"] == f"apache/kafka:{VERSION}"
    build = COMPOSE["worker"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).exists()


def test_compose_and_the_settings_agree(tmp_path: Path) -> None:
    """The worker finds the broker and can be reached where Prometheus, the health check and a person look."""
    settings = _settings(tmp_path, (DEPLOY / "compose" / "worker.yaml").read_text("utf-8"))
    assert settings.log.kafka is not None
    assert settings.log.kafka.bootstrap == "broker:9092"
    assert COMPOSE["broker"]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://broker:9092"
    port = settings.metrics.port
    assert settings.metrics.host == "0.0.0.0"
    assert COMPOSE["worker"]["ports"] == [f"127.0.0.1:9464-9469:{port}"]
    assert f"http://127.0.0.1:{port}/livez" in COMPOSE["worker"]["healthcheck"]["test"][-1]
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8"))
    (names,) = config["scrape_configs"][0]["dns_sd_configs"]
    assert (set(names["names"]) <= set(COMPOSE), names["port"]) == (True, port)


def test_grafana_and_prometheus_find_their_files() -> None:
    """What the programs are told to read lies in what is mounted, and Grafana asks the Prometheus beside it."""
    prometheus, grafana = COMPOSE["prometheus"], COMPOSE["grafana"]
    mounted = _on_disk(prometheus)["/etc/prometheus"]
    assert (mounted / "prometheus.yaml").exists()
    assert "--config.file=/etc/prometheus/prometheus.yaml" in prometheus["command"]
    provisioning = _on_disk(grafana)["/etc/grafana/provisioning"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "anabranch.yaml").read_text())["providers"]
    assert list(_on_disk(grafana)[provider["options"]["path"]].glob("*.json"))
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"


def test_the_image_is_given_what_it_copies() -> None:
    """What the Dockerfile copies is in the repository, and .dockerignore lets nothing else pass but that."""
    copied = [
        word
        for line in (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()
        if line.startswith("COPY ")
        for word in line.split()[1:-1]
    ]
    passed = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    ]
    assert sorted(copied) == sorted(passed)
    assert all((ROOT / name).exists() for name in copied)


def _anabranch(words: list[str], places: dict[str, Path], **variables: str) -> str:
    """Run a container's command here: paths are those on disk."""
    command = [str(places.get(word, word)) for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "worker", *command],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_compose_on_a_broker(kafka: Cluster, tmp_path: Path) -> None:
    """The commands of the services do on a real broker what they are there for: topics, events, results."""
    name = f"sms-{uuid4().hex[:12]}"
    settings = yaml.safe_load((DEPLOY / "compose" / "worker.yaml").read_text("utf-8"))
    for model in settings["models"].values():
        model["input"] = name
    path = tmp_path / "worker.yaml"
    path.write_text(yaml.safe_dump(settings | {"group": name}))
    given = {"ANABRANCH_LOG__KAFKA__BOOTSTRAP": kafka.bootstrap, "ANABRANCH_METRICS__PORT": "null"}
    places = _on_disk(COMPOSE["events"]) | {SETTINGS: path}
    assert f"{name}.state" in _anabranch(COMPOSE["topics"]["command"], places, **given)
    (loop,) = COMPOSE["events"]["command"]
    once = shlex.split(loop.removeprefix("while ").partition(";")[0])
    assert once.pop(0) == "anabranch"
    _anabranch([*once, "--limit", "600"], places, **given)
    _anabranch([*COMPOSE["worker"]["command"], "--until-end"], places, **given)
    shown = ["show", SETTINGS, "--topic", f"{name}.out", "--model", "tree", "--format", "svg"]
    assert _anabranch(shown, places, **given).startswith("<svg")


def test_a_container_has_time_to_stop() -> None:
    """It is killed only after the worker had time for the last commit and a checkpoint."""
    assert int(COMPOSE["worker"]["stop_grace_period"][:-1]) >= 30
