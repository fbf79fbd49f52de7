"""The Kubernetes manifests: valid, also as kustomize renders them, hardened, of one mind with the worker."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from prometheus_client import CollectorRegistry

from tests.support.about import ABOUT
from tests.support.kustomize import Kustomize
from tests.support.operators import KINDS
from tests.support.places import ROOT
from tests.support.secured import Secured, principal
from worker.commands import main
from worker.settings import Settings, load
from worker.watching import rules
from worker.watching.http import Pages
from worker.watching.status import Status, StatusBoard

FOLDER = ROOT / "deploy" / "kubernetes"
SETTINGS = "/etc/anabranch/worker.yaml"  # in a container
LOGIN = "/etc/anabranch-login"  # likewise
VERSIONS = ("1.27", "1.37")  # of Kubernetes: the oldest and the newest that manifests are checked against
NOT_MANIFESTS = {"kustomization.yaml", "settings.yaml"}
NOBODY = 65534


def _manifests() -> dict[tuple[str, str], dict[str, Any]]:
    """Return all manifests by kind and name."""
    documents = [
        document
        for path in sorted(FOLDER.glob("*.yaml"))
        if path.name not in NOT_MANIFESTS
        for document in yaml.safe_load_all(path.read_text("utf-8"))
    ]
    found = {_who(document): document for document in documents}
    assert len(found) == len(documents)
    return found


def _who(manifest: dict[str, Any]) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


MANIFESTS = _manifests()
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
SET = MANIFESTS["StatefulSet", "anabranch"]
TOPICS = MANIFESTS["CronJob", "anabranch-topics"]


def _pod(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the template of the pods that a manifest makes."""
    spec = manifest["spec"]
    found: dict[str, Any] = spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"]
    return found


def _container(manifest: dict[str, Any]) -> dict[str, Any]:
    (found,) = _pod(manifest)["spec"]["containers"]
    return dict(found)


def _in_pod(folder: Path, text: str | None = None) -> Settings:
    """Return the settings that a worker in a pod has, with the login of the example in a folder."""
    login = folder / "login"
    login.mkdir(exist_ok=True)
    for name, content in MANIFESTS["Secret", "anabranch-login"]["stringData"].items():
        (login / name).write_text(content)
    path = folder / "worker.yaml"
    path.write_text((text or (FOLDER / "settings.yaml").read_text("utf-8")).replace(LOGIN, str(login)))
    given = {variable["name"]: "anabranch-0" for variable in _container(SET)["env"]}
    return load(path, given, thorough=True)


def _copy(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """Return a copy of the manifests, in which texts of some files are replaced."""
    copied = folder / uuid4().hex
    shutil.copytree(FOLDER, copied)
    for name, before, after in changes:
        text = (copied / name).read_text("utf-8")
        assert text.count(before) >= 1, (name, before)
        (copied / name).write_text(text.replace(before, after), "utf-8")
    return copied


OPERATORS = ("kustomization.yaml", "  # - ", "  - ")  # with all that is commented out


def _check(manifest: dict[str, Any]) -> None:
    """Expect a manifest to be one by the schema of its kind, without fields that it does not know."""
    if manifest["kind"] in KINDS:
        KINDS[manifest["kind"]].model_validate(manifest)
        return
    for each in VERSIONS:
        assert kubernetes_validate.validate(manifest, each, strict=True) == each


# --- as they are rendered


@pytest.mark.parametrize("who", sorted(MANIFESTS), ids="-".join)
def test_manifests_are_valid(who: tuple[str, str]) -> None:
    """Every manifest is one by the schema of its kind."""
    _check(MANIFESTS[who])


def test_a_field_that_is_unknown_is_found() -> None:
    """The check of manifests can fail: in kinds of Kubernetes and of operators."""
    for manifest in (SET, MANIFESTS["PodMonitor", "anabranch"]):
        with pytest.raises(Exception, match=r"(?i)additional|extra"):
            _check(manifest | {"spec": manifest["spec"] | {"unheardOf": 1}})


def test_what_is_applied_is_valid(kustomize: Kustomize, tmp_path: Path) -> None:
    """What kustomize makes of the folder is valid, what is for operators too, and nothing is left out."""
    applied = kustomize.build(FOLDER)
    everything = kustomize.build(_copy(tmp_path, OPERATORS))
    for manifest in everything:
        _check(manifest)
    assert {kind for kind, _ in map(_who, applied)}.isdisjoint(KINDS)
    named = {who for who in map(_who, everything) if who[0] != "ConfigMap"}
    assert named == MANIFESTS.keys() - {("Secret", "anabranch-login")}


def test_the_image_is_named_once(kustomize: Kustomize, tmp_path: Path) -> None:
    """Containers have the image that the kustomization names, of this version, and another one after an edit."""
    (image,) = KUSTOMIZATION["images"]
    assert image["newTag"] == version("anabranch")
    assert {_container(each)["image"] for each in (SET, TOPICS)} == {image["name"]}
    edit = ("kustomization.yaml", "newName: anabranch, newTag:", "newName: r.example.org:5000/a, newTag:")
    for folder, name in ((FOLDER, "anabranch"), (_copy(tmp_path, edit), "r.example.org:5000/a")):
        rendered = {_who(each): each for each in kustomize.build(folder)}
        images = {_container(rendered[_who(each)])["image"] for each in (SET, TOPICS)}
        assert images == {f"{name}:{image['newTag']}"}


def test_settings_reach_the_pods(kustomize: Kustomize, tmp_path: Path) -> None:
    """Both kinds of pods mount the settings file as it is; changed settings have another name, so pods restart."""
    names = set()
    for folder in (FOLDER, _copy(tmp_path, ("settings.yaml", "window: 100000", "window: 500"))):
        rendered = kustomize.build(folder)
        (config,) = (each for each in rendered if each["kind"] == "ConfigMap")
        assert config["data"] == {Path(SETTINGS).name: (folder / "settings.yaml").read_text("utf-8")}
        for pod in (_pod(each) for each in rendered if _who(each) in (_who(SET), _who(TOPICS))):
            (mounted,) = (each["configMap"] for each in pod["spec"]["volumes"] if "configMap" in each)
            assert mounted == {"name": config["metadata"]["name"]}
        names.add(config["metadata"]["name"])
    assert len(names) == 2


# What may differ between what is applied and what was applied before, by the documentation of each kind.
CHANGEABLE = {
    "ConfigMap": {"data"},
    "CronJob": {"suspend", "schedule", "concurrencyPolicy", "jobTemplate"},
    "NetworkPolicy": {"podSelector", "policyTypes", "ingress", "egress"},
    "PodDisruptionBudget": {"maxUnavailable"},
    "Service": {"ports", "selector", "publishNotReadyAddresses"},
    "StatefulSet": {"replicas", "template", "updateStrategy"},
    "Job": {"suspend", "parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"},
}


def _fixed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """Return what differs between two manifests of one name, and may not."""
    fields = before.get("spec", before).keys() | after.get("spec", after).keys()
    old, new = before.get("spec", before), after.get("spec", after)
    return {each for each in fields if old.get(each) != new.get(each)} - CHANGEABLE[before["kind"]]


def test_a_newer_version_can_be_applied(kustomize: Kustomize, tmp_path: Path) -> None:
    """Another image, other settings, more workers and partitions change no field that is fixed once applied."""
    changed = _copy(
        tmp_path,
        ("kustomization.yaml", "newTag: ", "newTag: 9."),
        ("settings.yaml", "group: anabranch", "group: another"),
        ("worker.yaml", "replicas: 3", "replicas: 4"),
        ("topics.yaml", '"12"', '"24"'),
        ("network.yaml", "9093", "9094"),
    )
    before = {_who(each): each for each in kustomize.build(FOLDER)}
    after = {_who(each): each for each in kustomize.build(changed)}
    common = before.keys() & after.keys()
    assert {kind for kind, _ in before.keys() ^ after.keys()} == {"ConfigMap"}  # whose name is a digest
    assert sum(before[who] != after[who] for who in common) == 3
    assert {who: _fixed(before[who], after[who]) for who in common} == {who: set() for who in common}


def test_a_fixed_field_is_found() -> None:
    """The check of what may differ can fail: a Job by itself could not be applied with another image."""
    job = {"kind": "Job", "spec": TOPICS["spec"]["jobTemplate"]["spec"]}
    changed = {"kind": "Job", "spec": job["spec"] | {"template": {"image": "another"}}}
    assert _fixed(job, changed) == {"template"}
    assert _fixed(SET, SET | {"spec": SET["spec"] | {"serviceName": "another"}}) == {"serviceName"}


# --- hardened


@pytest.mark.parametrize("manifest", [SET, TOPICS], ids=lambda manifest: manifest["kind"])
def test_pods_are_restricted(manifest: dict[str, Any]) -> None:
    """Pods pass the restricted Pod Security Standard, and their root file system is read-only besides."""
    spec = _pod(manifest)["spec"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": NOBODY,
        "runAsGroup": NOBODY,
        "fsGroup": NOBODY,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert _container(manifest)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & spec.keys()
    assert {kind for volume in spec["volumes"] for kind in volume.keys() - {"name"}} == {"configMap", "secret"}
    assert "memory" in _container(manifest)["resources"]["limits"]


def test_the_image_is_made_for_that_user() -> None:
    """The image runs as the user of the pods, and what it brings can be read by it."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text("utf-8").splitlines()
    assert f"USER {NOBODY}" in lines


@pytest.mark.parametrize("manifest", [SET, TOPICS], ids=lambda manifest: manifest["kind"])
def test_secrets_are_files(manifest: dict[str, Any]) -> None:
    """No container has a secret in its variables; what the settings read is in a Secret that the user may read."""
    assert all(set(each["valueFrom"]) == {"fieldRef"} for each in _container(manifest).get("env", ()))
    mounts = {each["mountPath"]: each["name"] for each in _container(manifest)["volumeMounts"]}
    assert mounts.keys() == {str(Path(SETTINGS).parent), LOGIN}
    (login,) = (each["secret"] for each in _pod(manifest)["spec"]["volumes"] if each["name"] == mounts[LOGIN])
    assert login["defaultMode"] == 0o440  # its files are root's, and of the group fsGroup
    own = {"StatefulSet": "anabranch-login", "CronJob": "anabranch-admin-login"}
    assert login["secretName"] == own[manifest["kind"]]


def test_network_policies() -> None:
    """Pods may reach names and the brokers' TLS port and nothing else; Prometheus alone may reach the page."""
    all_pods, page = (MANIFESTS["NetworkPolicy", name]["spec"] for name in ("anabranch", "anabranch-page"))
    assert all_pods["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in all_pods
    reached = {
        (port["protocol"], port["port"]): "to" in rule for rule in all_pods["egress"] for port in rule["ports"]
    }
    properties = yaml.safe_load((FOLDER / "settings.yaml").read_text("utf-8"))["log"]["kafka"]
    broker = int(properties["bootstrap"].rpartition(":")[2])
    assert reached == {("UDP", 53): True, ("TCP", 53): True, ("TCP", broker): False}
    assert properties["properties"]["security.protocol"] == "SASL_SSL"
    (rule,) = page["ingress"]
    (who,) = rule["from"]
    assert set(who) == {"namespaceSelector", "podSelector"}
    assert (page["policyTypes"], rule["ports"]) == (["Ingress"], [{"protocol": "TCP", "port": "metrics"}])
    for manifest in (SET, TOPICS):
        labels = _pod(manifest)["metadata"]["labels"].items()
        assert all_pods["podSelector"]["matchLabels"].items() <= labels
        assert (page["podSelector"]["matchLabels"].items() <= labels) == (manifest is SET)


# --- of one mind with the worker


def test_settings_in_a_pod(tmp_path: Path) -> None:
    """The settings are right, each pod is a member of its own, its page reached from outside, its login read."""
    settings = _in_pod(tmp_path)
    assert settings.log.kafka is not None
    assert settings.log.kafka.instance == "anabranch-0"
    (instance,) = _container(SET)["env"]
    assert instance["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    (port,) = _container(SET)["ports"]
    assert (settings.metrics.host, settings.metrics.port) == ("0.0.0.0", port["containerPort"])
    assert all(SETTINGS in _container(each)["args"] for each in (SET, TOPICS))
    example = MANIFESTS["Secret", "anabranch-login"]["stringData"]
    resolved = settings.log.kafka.resolved()
    assert [resolved[f"sasl.{name}"] for name in ("username", "password")] == [
        example["username"],
        example["password"],
    ]
    assert Path(resolved["ssl.ca.location"]).name in example
    written = yaml.safe_load((FOLDER / "settings.yaml").read_text("utf-8"))["log"]["kafka"]["properties"]
    assert all(set(written[f"sasl.{name}"]) == {"file"} for name in ("username", "password"))


def test_probes_ask_for_pages_that_there_are() -> None:
    """A probe's path is answered, and by 200 as it should be while a worker starts or runs."""
    board = StatusBoard(Status(time.monotonic()))
    pages = Pages(CollectorRegistry(), board, 30.0, time.monotonic, ABOUT)
    probes = {name: _container(SET)[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {_container(SET)["ports"][0]["name"]}
    paths = [probe["path"] for probe in probes.values()]
    assert [pages.get(path, "").status for path in paths] == [200, 503]
    board.status = Status(time.monotonic(), "running")
    assert [pages.get(path, "").status for path in paths] == [200, 200]
    (endpoint,) = MANIFESTS["PodMonitor", "anabranch"]["spec"]["podMetricsEndpoints"]
    assert pages.get(endpoint["path"], "").status == 200


def _selectors() -> Iterator[dict[str, str]]:
    yield SET["spec"]["selector"]["matchLabels"]
    for kind in ("PodDisruptionBudget", "PodMonitor"):
        yield MANIFESTS[kind, "anabranch"]["spec"]["selector"]["matchLabels"]
    yield MANIFESTS["NetworkPolicy", "anabranch-page"]["spec"]["podSelector"]["matchLabels"]
    yield MANIFESTS["Service", "anabranch"]["spec"]["selector"]
    for each in _pod(SET)["spec"]["topologySpreadConstraints"]:
        yield each["labelSelector"]["matchLabels"]


def test_who_is_meant() -> None:
    """Selectors mean the pods of the workers, and none of those that make topics; ports go by one name."""
    labels, other = (_pod(each)["metadata"]["labels"] for each in (SET, TOPICS))
    assert all(
        selector.items() <= labels.items() and not selector.items() <= other.items() for selector in _selectors()
    )
    (port,) = _container(SET)["ports"]
    service = MANIFESTS["Service", "anabranch"]
    used = [
        service["spec"]["ports"][0]["targetPort"],
        MANIFESTS["NetworkPolicy", "anabranch-page"]["spec"]["ingress"][0]["ports"][0]["port"],
        MANIFESTS["PodMonitor", "anabranch"]["spec"]["podMetricsEndpoints"][0]["port"],
    ]
    assert set(used) == {port["name"]}
    assert SET["spec"]["serviceName"] == service["metadata"]["name"]


def test_rules_are_those_that_are_tested() -> None:
    """The PrometheusRule is made of the files that promtool tests, and holds all of their groups."""
    assert rules.FILE.read_text("utf-8") == rules.text(), "run python -m worker.watching.rules"
    groups = [group for path in rules.SOURCES for group in yaml.safe_load(path.read_text("utf-8"))["groups"]]
    assert MANIFESTS["PrometheusRule", "anabranch"]["spec"]["groups"] == groups


def test_alert_rules_know_the_workers() -> None:
    """The job by which alert rules know the workers is what each way of scraping calls them."""
    label = MANIFESTS["PodMonitor", "anabranch"]["spec"]["jobLabel"]
    prometheus = ROOT / "deploy" / "prometheus"
    config = yaml.safe_load((prometheus / "prometheus.yaml").read_text("utf-8"))
    job = config["scrape_configs"][0]["job_name"]
    assert job == _pod(SET)["metadata"]["labels"][label]
    assert f'job="{job}"' in (prometheus / "alerts.yaml").read_text("utf-8")


def test_autoscaling_follows_the_settings(tmp_path: Path) -> None:
    """Workers are added by the lag of their own group on their input, at most one for each partition."""
    settings = _in_pod(tmp_path)
    assert settings.log.kafka is not None
    scaled = MANIFESTS["ScaledObject", "anabranch"]["spec"]
    target = scaled["scaleTargetRef"]
    assert (target["kind"], target["name"]) == _who(SET)
    (trigger,) = scaled["triggers"]
    told = trigger["metadata"]
    assert told["bootstrapServers"] == settings.log.kafka.bootstrap
    assert told["consumerGroup"] == settings.group
    assert [told["topic"]] == list(settings.routes)
    assert (told["sasl"], told["tls"]) == ("scram_sha512", "enable")
    login = MANIFESTS["TriggerAuthentication", trigger["authenticationRef"]["name"]]["spec"]["secretTargetRef"]
    assert {each["name"] for each in login} == {"anabranch-login"}
    assert {each["key"] for each in login} == set(MANIFESTS["Secret", "anabranch-login"]["stringData"])
    arguments = _container(TOPICS)["args"]
    partitions = int(arguments[arguments.index("--inputs") + 1])
    assert SET["spec"]["replicas"] <= scaled["maxReplicaCount"] == partitions


def test_a_pod_has_time_to_stop() -> None:
    """A pod is killed only after the worker had time for the last commit and a checkpoint."""
    assert _pod(SET)["spec"]["terminationGracePeriodSeconds"] >= 30


# --- on a broker


class Cluster:
    """A secured Kafka cluster, in which the commands of the containers are run with logins as files."""

    def __init__(self, secured: Secured, folder: Path) -> None:
        self.secured = secured
        self.folder = folder
        self.topic = f"sms-{uuid4().hex[:10]}"
        self.settings = yaml.safe_load((FOLDER / "settings.yaml").read_text("utf-8"))
        self.settings["log"]["kafka"]["bootstrap"] = secured.address
        self.settings["group"] = self.topic
        self.settings["models"]["spam"]["input"] = self.topic

    def login(self, user: dict[str, str]) -> Path:
        """Write the files of a login and return a settings file that reads them."""
        login = self.folder / user["sasl.username"]
        login.mkdir()
        (login / "username").write_text(user["sasl.username"])
        (login / "password").write_text(user["sasl.password"])
        shutil.copyfile(user["ssl.ca.location"], login / "ca.pem")
        path = login / "worker.yaml"
        path.write_text(yaml.safe_dump(self.settings).replace(LOGIN, str(login)))
        return path

    def run(self, words: list[str], settings: Path, *more: str) -> str:
        """Run the arguments of a container with a settings file and return what was said."""
        given = {"ANABRANCH_LOG__KAFKA__INSTANCE": "anabranch-0", "ANABRANCH_METRICS__PORT": "null"}
        arguments = [str(settings) if word == SETTINGS else word for word in words]
        done = CliRunner().invoke(main, [*arguments, *more], env=given)
        assert done.exit_code == 0, done.output
        return done.output

    def administrator(self) -> dict[str, str]:
        """Return a user who may create the topics, and do nothing else."""
        user = self.secured.user()
        self.secured.allow(
            AclBinding(
                ResourceType.TOPIC,
                self.topic,
                ResourcePatternType.PREFIXED,
                principal(user),
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for operation in (AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        )
        return user


def test_pods_on_a_secured_broker(secured: Secured, tmp_path: Path) -> None:
    """Topics are made with one login, twice; a worker runs with another that may only read and write them."""
    cluster = Cluster(secured, tmp_path)
    topics, worker = (_container(each)["args"] for each in (TOPICS, SET))
    administrator = cluster.login(cluster.administrator())
    assert f"created: {cluster.topic}.out" in cluster.run(topics, administrator)
    assert cluster.run(topics, administrator).endswith("all topics are there\n")
    user = secured.user()
    settings = cluster.login(user)
    given = ("ANABRANCH_LOG__KAFKA__BOOTSTRAP", "ANABRANCH_LOG__KAFKA__PROPERTIES__SECURITY_PROTOCOL")
    root = dict(zip(given, (secured.cluster.bootstrap, "PLAINTEXT"), strict=True))
    acls = ["topics", "create", str(settings), "--acls", principal(user), "--yes"]
    instance = {"ANABRANCH_LOG__KAFKA__INSTANCE": "anabranch-0"}
    permitted = CliRunner().invoke(main, acls, env=root | instance)
    assert permitted.exit_code == 0, permitted.output
    secured.await_acls(user, permitted.output.count("--operation"))
    cluster.run(worker, settings, "--until-end")
