"""The schemas that records are written with: known by their ids, or looked up while the loop goes on.

A registry that is away must cost neither records nor the place in the group. So a thread of its own asks it, one
id after the other, and who needs schemas asks here whether they are there yet.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from worker.log.port import LogError

_GLANCE_SECONDS = 0.25  # that a caller waits for answers, as long as a poll waits for records
_BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0)  # between two tries; the last one again and again
_MOST_UNKNOWN = 10_000  # ids that the registry does not know; anybody can write any


class Schema(NamedTuple):
    """A schema as the registry has it. One id always means the same."""

    kind: str  # AVRO, PROTOBUF or JSON
    text: str
    references: tuple[tuple[str, str], ...] = ()  # (name, text) of others that it uses, each after those it uses


class RegistryAway(Exception):
    """The registry does not answer, or not now; the message says why."""


# Returns the schema of an id, None where there is none. Raises `RegistryAway`; `LogError` where waiting is no use.
Fetch: TypeAlias = Callable[[int], Schema | None]


class Schemas:
    """The schemas of all inputs of a worker.

    Parameters
    ----------
    fetch : callable, optional
        Asks the registry; without one there are no others than the known ones.
    known : mapping, optional
        Schemas by id, None for an id that the registry did not know: what a recording kept.
    notify : callable
        Told in a sentence when the registry is waited for, and when it answers again.
    clock : callable
        Seconds, monotonic.
    """

    def __init__(
        self,
        fetch: Fetch | None = None,
        known: Mapping[int, Schema | None] | None = None,
        notify: Callable[[str], None] = lambda sentence: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._known = {number: schema for number, schema in (known or {}).items() if schema is not None}
        self._unknown: OrderedDict[int, None] = OrderedDict(
            (number, None) for number, schema in (known or {}).items() if schema is None
        )
        self._notify = notify
        self._clock = clock
        self._asking: _Asking | None = None
        self._tries = 0
        self._try_at = 0.0

    def __getitem__(self, number: int) -> Schema | None:
        """Return the schema of an id that `has` said yes to; None where there is none."""
        return self._known.get(number)

    @property
    def is_away(self) -> bool:
        """Whether the registry is waited for."""
        return self._tries > 0

    def has(self, numbers: Collection[int]) -> bool:
        """Return whether it is known what these ids are; if not, ask for them, and wait a moment.

        Raises `LogError` where the registry refuses to answer, and asking again would not help.
        """
        wanted = self._lacking(numbers)
        if not wanted:
            return True
        if self._fetch is None:
            self._note(dict.fromkeys(wanted))
            return True
        if self._asking is None and self._clock() >= self._try_at:
            self._asking = _Asking(self._fetch, wanted)
        if self._asking is None:
            time.sleep(min(_GLANCE_SECONDS, max(0.0, self._try_at - self._clock())))
            return False
        if self._asking.is_done(_GLANCE_SECONDS):
            self._take(self._asking)
            self._asking = None
        return not self._lacking(numbers)

    def _lacking(self, numbers: Collection[int]) -> list[int]:
        return sorted(number for number in numbers if number not in self._known and number not in self._unknown)

    def _take(self, asking: _Asking) -> None:
        self._note(asking.found)
        if asking.error is not None:
            raise asking.error
        if asking.away:
            if not self._tries:
                self._notify(f"waiting for the schema registry, which does not answer: {asking.away}")
            self._try_at = self._clock() + _BACKOFF_SECONDS[min(self._tries, len(_BACKOFF_SECONDS) - 1)]
            self._tries += 1
        elif self._tries:
            self._tries = 0
            self._notify("the schema registry answers again")

    def _note(self, found: Mapping[int, Schema | None]) -> None:
        for number, schema in found.items():
            if schema is not None:
                self._known[number] = schema
            else:
                self._unknown[number] = None
        while len(self._unknown) > max(_MOST_UNKNOWN, len(found)):
            self._unknown.popitem(last=False)


class _Asking:
    """A thread that asks for some ids, until all are answered or one is not."""

    def __init__(self, fetch: Fetch, numbers: Collection[int]) -> None:
        self.found: dict[int, Schema | None] = {}
        self.away = ""
        self.error: LogError | None = None
        self._thread = threading.Thread(target=self._ask, args=(fetch, list(numbers)), name="schemas", daemon=True)
        self._thread.start()

    def is_done(self, seconds: float) -> bool:
        """Return whether it has ended, after so many seconds at most."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _ask(self, fetch: Fetch, numbers: list[int]) -> None:
        for number in numbers:
            try:
                self.found[number] = fetch(number)
            except RegistryAway as away:
                self.away = str(away) or "no reason is known"
                return
            except LogError as error:
                self.error = error
                return
            except Exception as error:  # a defect, here or in the client; the loop is not left waiting for it
                self.error = LogError(
                    f"the schema registry: expected schema {number} or an error, got {type(error).__name__}; "
                    "check the registry's url and properties"
                )
                return


NO_SCHEMAS = Schemas()
