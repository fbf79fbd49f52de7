"""The compose file and the Kubernetes manifests: valid, and of one mind with settings and worker."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import kubernetes_validate
import pytest
import yaml
from prometheus_client import CollectorRegistry

from tests.support.places import ROOT
from worker.broker import Cluster
from worker.broker.jars import VERSION
from worker.settings import Settings, load
from worker.watching.http import Pages
from worker.watching.status import Status, StatusBoard

DEPLOY = ROOT / "deploy"
SETTINGS = "/etc/anabranch/worker.yaml"  # in a container
KUBERNETES = ("1.27", "1.37")  # the oldest and the newest that manifests are checked against
CUSTOM = {"PodMonitor", "ScaledObject", "Kustomization"}  # kinds that Kubernetes itself does not know


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


def _manifests() -> dict[str, dict[str, Any]]:
    """Return all manifests by kind, of which there is one of each."""
    documents = [
        document
        for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text("utf-8"))
    ]
    assert len({document["kind"] for document in documents}) == len(documents)
    return {document["kind"]: document for document in documents}


COMPOSE, MANIFESTS = _compose()["services"], _manifests()


def _settings(folder: Path, text: str, **variables: str) -> Settings:
    path = folder / "worker.yaml"
    path.write_text(text)
    return load(path, variables)


def _in_pod(folder: Path) -> Settings:
    """Return the settings that a worker in a pod has: the ConfigMap's, and the variables of the container."""
    given = {variable["name"]: "anabranch-0" for variable in _container()["env"]}
    return _settings(folder, MANIFESTS["ConfigMap"]["data"]["worker.yaml"], **given)


def _pod() -> dict[str, Any]:
    found: dict[str, Any] = MANIFESTS["StatefulSet"]["spec"]["template"]
    return found


def _container() -> dict[str, Any]:
    (found,) = _pod()["spec"]["containers"]
    return dict(found)


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


# --- Kubernetes


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("kind", sorted(set(MANIFESTS) - CUSTOM))
def test_manifests_are_valid(kind: str, version: str) -> None:
    """Every manifest is one by the schema of Kubernetes, without fields that it does not know."""
    assert kubernetes_validate.validate(MANIFESTS[kind], version, strict=True) == version


def test_kustomization_lists_the_manifests() -> None:
    """What is applied together are files that are there, and nothing that needs an operator."""
    files = MANIFESTS["Kustomization"]["resources"]
    kinds = [
        document["kind"]
        for file in files
        for document in yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text("utf-8"))
    ]
    assert sorted(kinds) == sorted(set(MANIFESTS) - CUSTOM)


def test_settings_in_a_pod(tmp_path: Path) -> None:
    """The ConfigMap's settings are right, each pod is a member of its own, its page is reached from outside."""
    settings = _in_pod(tmp_path)
    assert settings.log.kafka is not None
    assert settings.log.kafka.instance == "anabranch-0"
    (instance,) = _container()["env"]
    assert instance["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    (port,) = _container()["ports"]
    assert (settings.metrics.host, settings.metrics.port) == ("0.0.0.0", port["containerPort"])
    for container in (_container(), MANIFESTS["Job"]["spec"]["template"]["spec"]["containers"][0]):
        (mount,) = container["volumeMounts"]
        assert SETTINGS == f"{mount['mountPath']}/{next(iter(MANIFESTS['ConfigMap']['data']))}"
        assert SETTINGS in container["args"]


def test_probes_ask_for_pages_that_there_are() -> None:
    """A probe's path is answered, and by 200 as it should be while a worker starts or runs."""
    board = StatusBoard(Status(time.monotonic()))
    pages = Pages(CollectorRegistry(), board, 30.0, time.monotonic)
    probes = {name: _container()[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {_container()["ports"][0]["name"]}
    paths = [probe["path"] for probe in probes.values()]
    assert [pages.get(path, "").status for path in paths] == [200, 503]
    board.status = Status(time.monotonic(), "running")
    assert [pages.get(path, "").status for path in paths] == [200, 200]
    (endpoint,) = MANIFESTS["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert pages.get(endpoint["path"], "").status == 200


def test_who_is_meant() -> None:
    """All selectors mean the pods of the workers, and none those that make topics; ports go by one name."""
    labels, other = _pod()["metadata"]["labels"], MANIFESTS["Job"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        MANIFESTS["StatefulSet"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        MANIFESTS["PodMonitor"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["Service"]["spec"]["selector"],
        *(each["labelSelector"]["matchLabels"] for each in _pod()["spec"]["topologySpreadConstraints"]),
    ]
    assert all(
        selector.items() <= labels.items() and not selector.items() <= other.items() for selector in selectors
    )
    (port,) = _container()["ports"]
    used = [
        MANIFESTS["Service"]["spec"]["ports"][0]["targetPort"],
        MANIFESTS["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"],
        MANIFESTS["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["port"],
    ]
    assert set(used) == {port["name"]}
    assert MANIFESTS["StatefulSet"]["spec"]["serviceName"] == MANIFESTS["Service"]["metadata"]["name"]


def test_alert_rules_know_the_workers() -> None:
    """The job by which alert rules know the workers is what each way of scraping calls them."""
    label = MANIFESTS["PodMonitor"]["spec"]["jobLabel"]
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8"))
    job = config["scrape_configs"][0]["job_name"]
    assert job == _pod()["metadata"]["labels"][label]
    assert f'job="{job}"' in (DEPLOY / "prometheus" / "alerts.yaml").read_text("utf-8")


def test_autoscaling_follows_the_settings(tmp_path: Path) -> None:
    """Workers are added by the lag of their own group on their input, at most one for each partition."""
    settings = _in_pod(tmp_path)
    assert settings.log.kafka is not None
    scaled = MANIFESTS["ScaledObject"]["spec"]
    target = MANIFESTS["StatefulSet"]
    assert (scaled["scaleTargetRef"]["kind"], scaled["scaleTargetRef"]["name"]) == (
        "StatefulSet",
        target["metadata"]["name"],
    )
    (trigger,) = (each["metadata"] for each in scaled["triggers"])
    assert trigger["bootstrapServers"] == settings.log.kafka.bootstrap
    assert trigger["consumerGroup"] == settings.group
    assert [trigger["topic"]] == list(settings.routes)
    (job,) = MANIFESTS["Job"]["spec"]["template"]["spec"]["containers"]
    partitions = int(job["args"][job["args"].index("--inputs") + 1])
    assert target["spec"]["replicas"] <= scaled["maxReplicaCount"] == partitions


def test_a_pod_has_time_to_stop() -> None:
    """A pod and a container are killed only after the worker had time for the last commit and a checkpoint."""
    grace = [_pod()["spec"]["terminationGracePeriodSeconds"], int(COMPOSE["worker"]["stop_grace_period"][:-1])]
    assert min(grace) >= 30
