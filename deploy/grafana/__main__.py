"""Writes the dashboards as files that Grafana reads: `python -m deploy.grafana`."""

from __future__ import annotations

from deploy.grafana import DASHBOARDS, FOLDER, text

for dashboard in DASHBOARDS:
    (FOLDER / f"{dashboard.uid}.json").write_text(text(dashboard), "utf-8")
