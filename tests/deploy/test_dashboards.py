"""The dashboards fit the metrics, and the files are what the script makes."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from typing import Any

import pytest
import yaml

from tests.support.promql import exported, family_of, labels_of, names_in
from tests.worker.watching.test_metrics import DECLARED
from worker.watching.dashboards import DASHBOARDS, FOLDER, NOT_SHOWN, text
from worker.watching.dashboards.panels import Dashboard, Panel

SERIES = exported(DECLARED)
PANELS = [
    (f"{page.title}: {row.title}: {panel.title}", panel)
    for page in DASHBOARDS
    for row in page.rows
    for panel in row.panels
]
QUERIES = [(where, query) for where, panel in PANELS for query in panel.queries]


def parsable(expression: str) -> str:
    """Return an expression with Grafana's variables filled in."""
    return re.sub(r"\$__(rate_interval|range)", "5m", expression).replace("$", "")


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.uid)
def test_the_files_are_what_the_script_makes(page: Dashboard) -> None:
    """A dashboard's JSON is that of the code: `python -m worker.watching.dashboards` writes it."""
    assert (FOLDER / f"{page.uid}.json").read_text("utf-8") == text(page)
    assert {path.stem for path in FOLDER.iterdir()} == {page.uid for page in DASHBOARDS}


@pytest.mark.parametrize(("where", "query"), QUERIES)
def test_expressions_speak_of_metrics_and_labels_that_exist(where: str, query: Any) -> None:
    """Every series and label of an expression is exported, and its legend tells all lines apart."""
    labels = labels_of(parsable(query.expression), SERIES)
    assert set(re.findall(r"{{(\w+)}}", query.legend)) == labels, where


def test_every_metric_is_on_a_panel() -> None:
    """A metric is shown, or there is a reason why not; never both."""
    shown = {family_of(name) for _, query in QUERIES for name in names_in(parsable(query.expression))}
    assert shown | set(NOT_SHOWN) == {family_of(name) for name in DECLARED}
    assert not shown & set(NOT_SHOWN)


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.uid)
def test_choices_are_offered_and_used(page: Dashboard) -> None:
    """The choices at the top are labels of the metrics that they are taken from, and all that expressions use."""
    assert all(variable.label in SERIES[variable.metric] for variable in page.variables)
    used = {
        name
        for panel in page.panels
        for query in panel.queries
        for name in re.findall(r"\$(?!__)(\w+)", query.expression)
    }
    assert used == {variable.name for variable in page.variables}


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.uid)
def test_panels_have_a_place_of_their_own(page: Dashboard) -> None:
    """Panels have different ids, lie inside the 24 columns and on no other panel."""
    panels = json.loads(text(page))["panels"]
    assert max(Counter(panel["id"] for panel in panels).values()) == 1
    places = [panel["gridPos"] for panel in panels]
    assert all(0 <= place["x"] and place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )


@pytest.mark.parametrize(("where", "panel"), PANELS)
def test_panels_explain_themselves(where: str, panel: Panel) -> None:
    """A panel says what it shows, and lines of several queries have different names."""
    assert panel.help.endswith("."), where
    assert len({query.legend for query in panel.queries}) == len(panel.queries) > 0, where


def test_provisioning() -> None:
    """Grafana is told of a Prometheus, and of the folder that the dashboards are mounted in."""
    folder = FOLDER.parent / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["type"] == "prometheus"
    (provider,) = yaml.safe_load((folder / "dashboards" / "anabranch.yaml").read_text())["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("sum by (nothing) (anabranch_keys)", "expected labels"),
        ("anabranch_keys{topic='x'}", "expected labels"),
        ("anabranch_keyz", "expected a series"),
        ("anabranch_lag_records / anabranch_keys", "expected two sides"),
        ("histogram_quantile(0.9, sum(rate(anabranch_batch_records_bucket[5m])))", "expected labels"),
        ("sum(", "."),
    ],
)
def test_what_is_wrong_is_found(wrong: str, why: str) -> None:
    """An expression with a name or label that is not there is told from one that is right."""
    with pytest.raises(ValueError, match=why):
        labels_of(wrong, SERIES)
