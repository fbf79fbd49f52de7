"""Writes the rules of Prometheus as its operator reads them, from the files that promtool tests.

After a change of `deploy/prometheus`: `python -m worker.watching.rules`.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

_DEPLOY = Path(__file__).parent.parent.parent / "deploy"
FILE = _DEPLOY / "kubernetes" / "rules.yaml"
SOURCES = tuple(_DEPLOY / "prometheus" / name for name in ("rules.yaml", "alerts.yaml"))

_HEAD = """\
# For the Prometheus operator: the rules of deploy/prometheus. Made from there by: python -m worker.watching.rules
# An operator that picks its rules by a label (ruleSelector) has to find it here.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: anabranch
  labels: {app.kubernetes.io/name: anabranch}
spec:
  groups:
"""
_GROUPS = "groups:\n"


def text() -> str:
    """Return the manifest: the groups of all files, with their comments."""
    return _HEAD + "".join(indent(path.read_text("utf-8").partition(_GROUPS)[2], "  ") for path in SOURCES)


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
