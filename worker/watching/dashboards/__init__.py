"""The dashboards as code, never changed by hand in the JSON: `python -m worker.watching.dashboards` writes it.

::

    panels.py        what a dashboard is made of, and the JSON that Grafana reads
    queries.py       expressions that several panels have the like of
    pipeline.py      the dashboard of the way of an event
    models.py        the dashboard of what the models learn
"""

from __future__ import annotations

import json
from pathlib import Path

from worker.watching.dashboards.models import MODELS_PAGE
from worker.watching.dashboards.panels import Dashboard, as_object
from worker.watching.dashboards.pipeline import PIPELINE

FOLDER = Path(__file__).parents[3] / "deploy" / "grafana" / "dashboards"  # of a checkout
DASHBOARDS = (PIPELINE, MODELS_PAGE)

# Metrics that are on no panel, and why.
NOT_SHOWN = {
    "anabranch_last_quarantine_timestamp_seconds": "the alert on it says more",
    "process_virtual_memory_bytes": "it counts what libraries reserve and never use, and limits nothing",
}


def text(dashboard: Dashboard) -> str:
    """Return a dashboard as it is written to its file."""
    return json.dumps(as_object(dashboard), indent=2, ensure_ascii=False) + "\n"
