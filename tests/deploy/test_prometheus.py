"""What Prometheus makes of the metrics: rules, alerts and dashboards, by the real program."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import ROOT
from tests.support.prometheus import Programs, Prometheus, running
from tests.support.promql import Labels, exported, labels_of
from tests.worker.commands.test_run_command import Running
from tests.worker.watching.test_metrics import DECLARED
from worker import demo
from worker.codec.event import encode_event
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.settings import MetricsSettings
from worker.watching.dashboards import DASHBOARDS, FOLDER

RULES = ROOT / "deploy" / "prometheus"
PIECES = 6  # that the recording comes in, so that rates are seen
TIME_LIMIT = 60.0  # s
SECONDS = {"$__rate_interval": "10s", "$__range": "60s"}  # what Grafana would fill in


def _read(name: str) -> Any:
    return yaml.safe_load((RULES / name).read_text("utf-8"))


def _rules(name: str) -> list[dict[str, Any]]:
    return [rule for group in _read(name)["groups"] for rule in group["rules"]]


ALERTS = _rules("alerts.yaml")


def _series() -> dict[str, Labels]:
    """Return what is exported and what the recording rules add to it; fails where one of those is wrong."""
    series = exported(DECLARED)
    for rule in _rules("rules.yaml"):
        series[rule["record"]] = labels_of(rule["expr"], series)
    return series


SERIES = _series()


@pytest.mark.parametrize("rule", _rules("rules.yaml"), ids=lambda rule: rule["record"])
def test_a_recorded_series_is_named_after_its_labels(rule: dict[str, Any]) -> None:
    """The name of a recorded series begins with the labels that it has left."""
    level, _, metric = rule["record"].rpartition("anabranch_")
    left = [label for label in ("model", "topic", "partition") if label in SERIES[rule["record"]]]
    assert metric
    assert level.removesuffix(":") == "_".join(left)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_alerts_say_what_they_mean_and_what_to_do(alert: dict[str, Any]) -> None:
    """An alert reads metrics and labels that exist, has a severity, a summary of those labels and a runbook."""
    labels = labels_of(alert["expr"], SERIES)
    assert set(alert["annotations"]) == {"summary", "runbook"}
    assert set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"])) <= labels
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert len(alert["annotations"]["runbook"]) > 100


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_alerts_have_unit_tests(alert: dict[str, Any]) -> None:
    """There is a case in which an alert fires and one in which it is silent."""
    outcomes = {
        bool(check["exp_samples"])
        for case in _read("alerts.test.yaml")["tests"]
        for check in case["promql_expr_test"]
        if check["expr"] == f'ALERTS{{alertstate="firing", alertname="{alert["alert"]}"}}'
    }
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    "command",
    ["check config prometheus.yaml", "check rules rules.yaml alerts.yaml", "test rules alerts.test.yaml"],
)
def test_promtool(prometheus_programs: Programs, command: str) -> None:
    """Prometheus' own tool finds settings and rules in order, and the alerts' unit tests pass."""
    done = subprocess.run(
        [str(prometheus_programs.promtool), *command.split()],
        cwd=RULES,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_grafana_asks_as_often_as_prometheus_scrapes() -> None:
    """The data source of Grafana knows the interval, from which it computes over how long a rate must go."""
    (source,) = yaml.safe_load((FOLDER.parent / "provisioning" / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["jsonData"]["timeInterval"] == _read("prometheus.yaml")["global"]["scrape_interval"]


def _settings(folder: Path) -> Path:
    """Write the demo's settings, a shadow, a forest, a model of numbers, and checkpoints that come soon."""
    settings = demo.settings(folder / "demo.db", 0).model_copy(update={"metrics": MetricsSettings(port=0)})
    known = settings.model_dump(mode="json", exclude_unset=True)
    (tree,) = (model for model in known["models"].values() if model["kind"] == "tree")
    shared = {name: tree[name] for name in ("input", "classes", "features")}
    forest = shared | {"kind": "forest", "of": {"kind": "tree"}, "trees": 2, "on_delete": "ignore"}
    known["models"] |= {"shadow": tree | {"shadow": True}, "forest": forest, "prices": PRICES}
    known["topics"] = {demo.TOPIC: {"pending": {"max": 100, "for": "36500d"}}}
    path = folder / "worker.yaml"
    path.write_text(yaml.safe_dump(known | {"checkpoint": {"interval_ms": 1_000}, "logging": {"format": "json"}}))
    return path


PRICES = {
    "kind": "regression-tree",
    "input": "prices",
    "features": "names",
    "interval": 0.9,
    "evaluate": {},
    "expire": "1d",
}


def _priced() -> Iterator[OutRecord]:
    """Yield examples whose labels are numbers, the first of a key that nobody uses again."""
    yield OutRecord("prices", 0, b"old", encode_event(["large"], 1.0), (), 1_600_000_000_000)
    for number in range(300):
        value = encode_event(["large"] if number % 3 else ["small"], 10.0 * (number % 3) + number % 7)
        yield OutRecord("prices", 0, b"all", value, (), 1_700_000_000_000 + number)


def _config(folder: Path, target: str) -> Path:
    """Write the settings of Prometheus as they are, but for the worker's address and a quicker pace."""
    config = _read("prometheus.yaml")
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(RULES / name) for name in config["rule_files"]]
    (scraped,) = config["scrape_configs"]
    del scraped["dns_sd_configs"]
    scraped["static_configs"] = [{"targets": [target]}]
    path = folder / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def _pieces() -> Iterator[list[OutRecord]]:
    """Yield the demo's recording piece by piece, and at last a record that is none."""
    records = list(demo.records())
    size = -(-len(records) // PIECES)
    for start in range(0, len(records), size):
        yield [*records[start : start + size], *_late(start, records[start].timestamp)]
    yield [OutRecord(demo.TOPIC, 0, demo.KEY, b"\xc1", (), records[-1].timestamp)]


def _late(number: int, timestamp: int) -> Iterator[OutRecord]:
    """Yield a predict and its label, which comes twice, and a predict that is deleted."""
    for value in (
        encode_event(["win", "a", "prize"], op="predict", id=f"late {number}"),
        encode_event(op="label", id=f"late {number}", y="spam"),
        encode_event(op="label", id=f"late {number}", y="spam"),
        encode_event(["win"], op="predict", id=f"gone {number}"),
        encode_event(op="delete", id=f"gone {number}"),
    ):
        yield OutRecord(demo.TOPIC, 0, demo.KEY, value, (), timestamp)


def _until_scraped(prometheus: Prometheus, records: int) -> None:
    query = f"anabranch_committed_offset == {records} and on (instance) up == 1"
    deadline = time.monotonic() + TIME_LIMIT
    while not prometheus.ask("query", query=query)["result"]:
        assert time.monotonic() < deadline, prometheus.ask("targets")
        time.sleep(0.1)


@pytest.mark.slow
def test_every_panel_has_data(prometheus_programs: Programs, tmp_path: Path) -> None:
    """A Prometheus that scrapes a worker has numbers for every expression of the dashboards; all rules work."""
    with EmbeddedLog(tmp_path / "demo.db") as log:
        log.create_topic(demo.TOPIC, 1)
        log.create_topic("prices", 1)
        log.append(_priced())
        with Running(_settings(tmp_path)) as worker:
            target = worker.page.removeprefix("http://").removesuffix("/")
            with running(prometheus_programs, _config(tmp_path, target), tmp_path) as prometheus:
                started, written = time.time(), 0
                for piece in _pieces():
                    written += log.append(piece)
                    _until_scraped(prometheus, written)
                    time.sleep(2.0)  # so that the next scrape sees less than the one after
                _expect_data(prometheus, started)
                _expect_rules_that_work(prometheus)


def _expect_data(prometheus: Prometheus, started: float) -> None:
    missing = []
    for page in DASHBOARDS:
        for panel in page.panels:
            for query in panel.queries:
                expression = re.sub(r"\$__\w+", lambda found: SECONDS[found[0]], query.expression)
                if not prometheus.values(re.sub(r"\$\w+", ".*", expression), started, time.time()):
                    missing.append(f"{panel.title}: {expression}")
        for variable in page.variables:
            assert prometheus.ask(f"label/{variable.label}/values", **{"match[]": variable.metric})
    assert not missing


def _expect_rules_that_work(prometheus: Prometheus) -> None:
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == len(ALERTS) + len(_rules("rules.yaml"))
    assert {(rule["name"], rule["health"], rule.get("lastError", "")) for rule in rules} == {
        (rule["name"], "ok", "") for rule in rules
    }
