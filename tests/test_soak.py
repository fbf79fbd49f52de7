import numpy as np
import pytest

from tests import soak
from worker.codec import Bounds, decode_batch
from worker.models import KINDS
from worker.settings.by_kind import kind_told


class Sent:
    """Takes what a load publishes."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []

    def produce(self, _topic: str, value: bytes | None, key: bytes | None, _partition: int) -> None:
        """Take a record."""
        self.records.append((key, value))


def _run(**changed: float) -> list[soak.Figures]:
    """Return figures of ten minutes, which at the end are others."""
    flat = soak.Figures(0.0, 400.0, 1e7, 100.0, 25.0, 3.0)
    samples = [flat._replace(seconds=5.0 * at) for at in range(120)]
    return samples[:90] + [each._replace(**changed) for each in samples[90:]]


COUNTED = dict.fromkeys(soak.EXPECTED, 1.0)


def test_a_flat_run_is_good() -> None:
    """Figures that stay as they are after the warm-up are as they should be."""
    assert soak.judge(_run(), COUNTED) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"resident_mb": 440.0}, "resident_mb grew from 400.0 to 440.0; expected 417.0 at most"),
        ({"state_bytes": 2e7}, "state_bytes grew"),
        ({"state_topic_mb": 300.0}, "state_topic_mb grew"),
        ({"open_files": 40.0}, "open_files grew from 25.0 to 40.0; expected 33.0 at most"),
        ({"lag": 50_000.0}, "the worker is 50,000 records behind"),
    ],
)
def test_growth_is_found(changed: dict[str, float], message: str) -> None:
    """A figure that grows beyond its tolerance is named."""
    (wrong,) = soak.judge(_run(**changed), COUNTED)
    assert wrong.startswith(message)


def test_a_load_that_leads_to_nothing_is_found() -> None:
    """What the load should have led to, and has not, is named; so is a run that is too short."""
    assert soak.judge(_run(), {}) == [f"{name} is 0; expected more" for name in soak.EXPECTED]
    (wrong,) = soak.judge(_run()[:10], COUNTED)
    assert wrong.startswith("the run was too short")


def test_every_kind_is_soaked() -> None:
    """There is a model of each kind of the worker's own."""
    own = {name for name, kind in KINDS.items() if kind.settings.__module__.startswith("worker.")}
    assert {kind_told(model) for model in soak.MODELS.values()} == own


def test_the_load_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is inserted is deleted once so many examples are live, and everything that may be published is."""
    monkeypatch.setattr(soak, "LIVE", 200)
    load, sent = soak.Load("127.0.0.1:1", 1.0), Sent()
    load._producer = sent
    for number in range(1, 4_001):
        load._one(number)
        load._forget()
        assert 0 < load._live <= 200 + soak.ROWS
    values = [value for _, value in sent.records]
    events, faults = decode_batch(values, np.full(len(values), 1), Bounds(), [key for key, _ in sent.records])
    assert np.bincount(events.op, minlength=4).min() > 0
    assert {fault.reason.value for fault in faults} == {"malformed", "no-key", "repeated-feature"}
