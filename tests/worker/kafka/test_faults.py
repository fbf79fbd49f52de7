"""A short run of faults on real Kafka; the long one is `python -m tests.faults`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import faults
from worker.broker import Cluster, Installation


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("guarantee", "kinds", "seed"),
    [
        ("exactly_once", ("kill", "zombie", "add", "settings", "terminate"), 1),
        ("at_least_once", ("settings", "kill", "remove", "settings"), 2),
    ],
)
def test_faults_change_no_byte(
    installation: Installation, tmp_path: Path, guarantee: str, kinds: tuple[str, ...], seed: int
) -> None:
    """Whatever is done to workers, what comes out is what an undisturbed one makes."""
    lines: list[dict[str, Any]] = []
    with Cluster(installation, tmp_path / "kafka", properties=faults.BROKER) as cluster:
        faults.run(tmp_path, cluster, len(kinds), seed, guarantee=guarantee, kinds=kinds, report=lines.append)
    assert lines[-1]["result"] == "identical"
    assert lines[-1]["outputs"] > 500
    assert [line["fault"] for line in lines[1:-2]] != []
