"""What a dashboard is made of, and how Grafana wants to be told: the JSON model of its dashboards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

# Grafana's names of units: see the choices of a panel's option "unit".
Unit: TypeAlias = Literal["short", "s", "bytes", "Bps", "percentunit", "recps", "eps", "cps", "none"]

_SCHEMA = 39  # of Grafana 11; newer ones read it and bring it up to date themselves
_COLUMNS, _HEIGHT, _STAT_HEIGHT = 24, 8, 4  # of the grid that Grafana lays panels out on
_PER_LINE = {"timeseries": 3, "stat": 6}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    """An expression of PromQL, and what a line of its result is called, with labels as `{{label}}`."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """A graph, or the latest values in large figures; made by `graph` and `figure`."""

    title: str
    help: str  # what it shows, and what to look for
    unit: Unit
    queries: tuple[Query, ...]
    kind: Literal["timeseries", "stat"]
    most: float | None = None  # of the axis, where the values have an upper end
    logarithmic: bool = False  # the axis, where values differ by powers of ten


def graph(
    title: str, unit: Unit, help: str, *queries: Query, most: float | None = None, logarithmic: bool = False
) -> Panel:
    """Return a panel with lines over time."""
    return Panel(title, help, unit, queries, "timeseries", most, logarithmic)


def figure(title: str, unit: Unit, help: str, *queries: Query) -> Panel:
    """Return a panel with the latest values."""
    return Panel(title, help, unit, queries, "stat")


class Row:
    """Panels under a heading, all of one kind."""

    def __init__(self, title: str, *panels: Panel) -> None:
        self.title = title
        self.panels = panels


class Variable(NamedTuple):
    """A choice at the top of a dashboard: values of a label, any number of them."""

    name: str
    label: str  # whose values are offered
    metric: str  # that has the label


class Dashboard(NamedTuple):
    """A page of panels."""

    uid: str  # the end of its address, and the name of its file
    title: str
    help: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, in the order of the page."""
        return (panel for row in self.rows for panel in row.panels)


def as_object(dashboard: Dashboard) -> dict[str, Any]:
    """Return a dashboard as the object that Grafana imports from JSON."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.help,
        "tags": ["anabranch"],
        "links": [_link()],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "graphTooltip": 1,  # the cursor is shown in all panels at once
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_source_variable(), *map(_variable, dashboard.variables)]},
        "panels": list(_laid_out(dashboard.rows)),
    }


def _link() -> dict[str, Any]:
    """Return the menu of the other dashboards, which keeps the time range and the choices."""
    return {
        "title": "Anabranch",
        "type": "dashboards",
        "tags": ["anabranch"],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
    }


def _source_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1}


def _variable(variable: Variable) -> dict[str, Any]:
    query = f"label_values({variable.metric}, {variable.label})"
    return {
        "name": variable.name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "variable"},
        "definition": query,
        "refresh": 2,  # whenever the time range changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _laid_out(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield headings and panels with their places: lines of equally wide panels, one row under the other."""
    top, number = 0, 1
    for row in rows:
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        top, number = top + 1, number + 1
        per_line = _PER_LINE[row.panels[0].kind]
        width, height = _COLUMNS // per_line, _HEIGHT if row.panels[0].kind == "timeseries" else _STAT_HEIGHT
        for at, panel in enumerate(row.panels):
            line, column = divmod(at, per_line)
            yield _panel(number, panel, {"x": column * width, "y": top + line * height, "w": width, "h": height})
            number += 1
        top += -(-len(row.panels) // per_line) * height


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.kind == "timeseries":
        # Zero is seen where nothing lies below it, so that a small wobble is not drawn as a mountain.
        axis = {"scaleDistribution": {"type": "log", "log": 10}} if panel.logarithmic else {"axisSoftMin": 0}
        defaults["custom"] = {"fillOpacity": 5, "showPoints": "never", **axis}
        options: dict[str, Any] = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    else:
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "none", "textMode": "auto"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [_target(at, query, panel) for at, query in enumerate(panel.queries)],
    }


def _target(at: int, query: Query, panel: Panel) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + at),
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend,
        "instant": panel.kind == "stat",
        "range": panel.kind != "stat",
    }
