"""Writes the dashboards as files that Grafana reads: `python -m worker.watching.dashboards`."""

from __future__ import annotations

from worker.watching.dashboards import DASHBOARDS, FOLDER, text

for dashboard in DASHBOARDS:
    (FOLDER / f"{dashboard.uid}.json").write_text(text(dashboard), "utf-8")
