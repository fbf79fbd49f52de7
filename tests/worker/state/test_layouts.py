"""States of versions whose arrays had other names, types or meanings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import yaml

from tests.support.recordings import WORDS, mixed, sample, understood
from tests.support.workers import outputs_of, worker_on
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError, TopicPartition
from worker.models import KINDS
from worker.models.layouts import Arrays, NewerLayoutError, migrated, numbered
from worker.models.moving import MOVED
from worker.models.rows import Rows
from worker.settings import load

KIND = "majority"
RECORDS = [record for record in understood(KIND, mixed(400)) if record.topic == WORDS]
HALF = len(RECORDS) // 2


def _second(first: Arrays, settings: Any) -> Arrays:  # noqa: ARG001
    """In the first layout weights were fractions, by another name."""
    rest = {name: array for name, array in first.items() if name != "shares"}
    return {**rest, "weights": np.rint(first["shares"] * 4096.0).astype(np.int64)}


def _third(second: Arrays, settings: Any) -> Arrays:  # noqa: ARG001
    """In the second one they were of the least class first."""
    rest = {name: array for name, array in second.items() if name != "weights"}
    return {**rest, "rows": np.ascontiguousarray(second["weights"][:, ::-1])}


def _first(rows: Rows) -> dict[str, npt.NDArray[Any]]:
    """Return what the first version had as arrays."""
    return {"shares": rows.rows[:, ::-1] / 4096.0, "learned": rows._learned}


class Desk:
    """A worker on one topic, which is started again and again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.log, self.path = folder / "log.db", folder / "settings.yaml"
        told = {"log": {"embedded": str(self.log)}, "metrics": None, "models": {"it": sample(KIND, WORDS)}}
        self.path.write_text(yaml.safe_dump(told))
        with EmbeddedLog(self.log) as log:
            log.create_topic(WORDS, 2)

    def run(self, begin: int, end: int) -> None:
        """Publish some records and work them off; what was learned before is in the checkpoint alone."""
        settings = load(self.path, {})
        with EmbeddedLog(self.log, group=settings.group) as log:
            for number in range(2 if begin else 0):
                source = TopicPartition(WORDS, number)
                committed = log.committed(source)
                assert committed
                log.truncate(source, committed)
            log.append(RECORDS[begin:end])
            worker = worker_on(log, settings)
            worker.run(lambda: False, until_end=True)
            for partition in worker.partitions.values():
                for model in partition.pipeline.models:
                    model.check()


def _migrating(monkeypatch: pytest.MonkeyPatch, *migrations: Any) -> None:
    monkeypatch.setitem(KINDS, KIND, KINDS[KIND]._replace(migrations=migrations))


def test_a_state_of_the_first_layout_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes through all migrations; from then on the state is of today's layout."""
    undisturbed, upgraded = Desk(tmp_path / "undisturbed"), Desk(tmp_path / "upgraded")
    undisturbed.run(0, len(RECORDS))
    with monkeypatch.context() as older:
        older.setattr(Rows, "arrays", _first)
        upgraded.run(0, HALF)
    with pytest.raises(LogError, match="expected a checkpoint with the arrays of this version"):
        upgraded.run(HALF, HALF)
    _migrating(monkeypatch, _second, _third)
    upgraded.run(HALF, HALF + 10)
    upgraded.run(HALF + 10, len(RECORDS))
    assert outputs_of(upgraded.path, upgraded.log) == outputs_of(undisturbed.path, undisturbed.log)
    # The version before knows the second layout at most.
    _migrating(monkeypatch, _second)
    with pytest.raises(LogError, match=r"made by Anabranch .*; run that version"):
        upgraded.run(len(RECORDS), len(RECORDS))


def test_a_state_of_a_removed_model_stays_as_it_is(tmp_path: Path) -> None:
    """Which layouts its kind has had is not asked: it is no state of a newer version."""
    desk = Desk(tmp_path / "desk")
    settings = load(desk.path, {})
    left = numbered({"weights": np.full((3, 2), 4096)}, [_second])
    with EmbeddedLog(desk.log, group=settings.group) as log:
        log.append(RECORDS[:10])
        worker = worker_on(log, settings)
        worker.run(lambda: False, until_end=True)
        for partition in worker.partitions.values():
            own = partition.pipeline.arrays()
            found = partition.pipeline.migrated({**own, "gone": left})
            assert found["gone"] is left
            assert found.keys() == {*own, "gone"}


def test_pools_that_keys_move_between_are_migrated_alike() -> None:
    """While keys move a state has the arrays of two pools."""
    first = {"shares": np.ones((1, 2)), MOVED + "shares": np.full((3, 2), 0.5), "other": np.arange(2)}
    second = migrated(first, [_second], None)
    assert sorted(second) == sorted(["weights", MOVED + "weights", "other"])
    assert second["weights"].tolist() == [[4096, 4096]]
    assert second[MOVED + "weights"].tolist() == [[2048, 2048]] * 3
    assert migrated(numbered(second, [_second]), [_second], None).keys() == second.keys()
    with pytest.raises(NewerLayoutError):
        migrated(numbered(second, [_second]), [], None)
