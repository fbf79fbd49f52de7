"""Schemas are looked up while the loop goes on; a registry that is away is asked again, and said once."""

from __future__ import annotations

import threading
import time

import pytest

from worker.formats.schemas import RegistryAway, Schema, Schemas
from worker.log.port import LogError

A = Schema("AVRO", '"int"')


class Fake:
    """A registry that can be away, slow or wrong."""

    def __init__(self, schemas: dict[int, Schema]) -> None:
        self.schemas = schemas
        self.error: Exception | None = None
        self.slow = threading.Event()
        self.slow.set()
        self.asked: list[int] = []

    def __call__(self, number: int) -> Schema | None:
        """Return a schema as the registry would."""
        self.slow.wait(10)
        self.asked.append(number)
        if self.error is not None:
            raise self.error
        return self.schemas.get(number)


def test_ids_are_asked_for_once() -> None:
    """What is known, or known to be unknown, is not asked for again."""
    fake = Fake({1: A})
    schemas = Schemas(fake)
    assert schemas.has([1, 2])
    assert (schemas[1], schemas[2]) == (A, None)
    assert schemas.has([2, 1, 1])
    assert schemas.has([])
    assert fake.asked == [1, 2]
    assert not schemas.is_away


def test_a_registry_that_is_away_is_said_once_and_asked_again() -> None:
    """It is asked more and more seldom, no call waits for long, and the answer is taken when it comes."""
    told: list[str] = []
    now = 0.0
    fake = Fake({1: A})
    fake.error = RegistryAway("http://r: ConnectError")
    schemas = Schemas(fake, notify=told.append, clock=lambda: now)
    for _ in range(6):
        assert not schemas.has([1])
        assert schemas.is_away
        now += 10
    assert len(fake.asked) == 6
    assert told == ["waiting for the schema registry, which does not answer: http://r: ConnectError"]
    assert not schemas.has([1])  # asks
    started = time.perf_counter()
    assert not schemas.has([1])  # does not: not yet
    assert time.perf_counter() - started < 1
    assert len(fake.asked) == 7
    fake.error = None
    now += 10
    assert schemas.has([1])
    assert not schemas.is_away
    assert told[1:] == ["the schema registry answers again"]


def test_a_slow_registry_does_not_hold_up_its_caller() -> None:
    """The answer is taken at a later call."""
    fake = Fake({1: A})
    fake.slow.clear()
    schemas = Schemas(fake)
    started = time.perf_counter()
    assert not schemas.has([1])
    assert not schemas.has([1])
    assert time.perf_counter() - started < 5
    fake.slow.set()
    while not schemas.has([1]):
        pass
    assert fake.asked == [1]


def test_what_waiting_cannot_mend_is_raised() -> None:
    """A registry that refuses ends the worker with what to do; so does a defect of its client."""
    fake = Fake({})
    fake.error = LogError("expected the schema registry to let this worker read")
    with pytest.raises(LogError, match="let this worker read"):
        Schemas(fake).has([1])
    fake.error = ZeroDivisionError()
    with pytest.raises(LogError, match="got ZeroDivisionError"):
        Schemas(fake).has([1])


def test_answers_before_an_outage_are_kept() -> None:
    """Of several ids those that were answered are not asked for again."""
    fake = Fake({1: A, 2: A})
    now = 0.0
    schemas = Schemas(lambda number: fake(number) if number == 1 or now else _away(), clock=lambda: now)
    assert not schemas.has([1, 2])
    now = 10.0
    assert schemas.has([1, 2])
    assert fake.asked == [1, 2]


def _away() -> None:
    raise RegistryAway("away")


def test_ids_that_nobody_knows_take_little_memory() -> None:
    """Anybody can write any id: the latest unknown ones are remembered."""
    schemas = Schemas(Fake({}))
    for first in range(0, 30_000, 1_000):
        assert schemas.has(range(first, first + 1_000))
    assert len(schemas._unknown) == 10_000


def test_known_schemas_need_no_registry() -> None:
    """A recording has kept them; what it does not have is unknown."""
    schemas = Schemas(known={1: A, 2: None})
    assert schemas.has([1, 2, 3])
    assert (schemas[1], schemas[2], schemas[3]) == (A, None, None)
