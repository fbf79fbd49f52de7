"""The dashboards as code. A panel is added here, never by hand in the JSON: `python -m deploy.grafana` writes it.

::

    panels.py        what a dashboard is made of, and the JSON that Grafana reads
    queries.py       expressions that several panels have the like of
    pipeline.py      the dashboard of the way of an event
    models.py        the dashboard of what the models learn
    dashboards/      what comes of them
    provisioning/    tells Grafana where its data comes from and where the dashboards are
"""

from __future__ import annotations

import json
from pathlib import Path

from deploy.grafana.models import MODELS_PAGE
from deploy.grafana.panels import Dashboard, as_object
from deploy.grafana.pipeline import PIPELINE

FOLDER = Path(__file__).parent / "dashboards"
DASHBOARDS = (PIPELINE, MODELS_PAGE)

# Metrics that are on no panel, and why.
NOT_SHOWN = {
    "anabranch_last_quarantine_timestamp_seconds": "the alert on it says more",
    "process_virtual_memory_bytes": "it counts what libraries reserve and never use, and limits nothing",
}


def text(dashboard: Dashboard) -> str:
    """Return a dashboard as it is written to its file."""
    return json.dumps(as_object(dashboard), indent=2, ensure_ascii=False) + "\n"
