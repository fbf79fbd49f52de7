"""`on_defect: quarantine`: how the record is found at which processing fails, and passed by.

::

    a batch raises      the partition is restored, and goes through the batch record by record
    a record raises     restored again; the record is passed by: a dead letter, and a skip in the state topic
    the process dies    each start announces where it goes on; the fourth that finds no progress announces and
                        commits every record by itself; a record at which three processes died is passed by

A skip is part of the input from then on: a restore reads it before it replays anything, and so does a replay
of a recording. All of this is in the state topic, so whichever worker owns the partition goes on with it.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from worker.checkpoint.marks import DEATH, Attempt, Skip
from worker.log.port import LogError, Records

TRIES = 3  # starts without progress, and deaths at one record
MOST_AN_HOUR = 10  # skips of a worker; more are no accident
MOST_SUSPECTS = 10_000  # a commit each, so a minute or two; behind them all of it begins again, from there
_HOUR_MS = 3_600_000
_FRAMES = 4  # of a failure that are told


@dataclass
class Caution:
    """How carefully the records of a partition are processed, from when it is restored until it is restored again.

    Attributes
    ----------
    suspects : int
        How many records are still to be processed one by one.
    announced : bool
        Whether each of them is announced and committed by itself, since it may end the process.
    attempt : Attempt, optional
        The last announcement, of this process or one before.
    skip : Skip, optional
        Decided and not yet written: it goes with the dead letter of its record.
    """

    suspects: int = 0
    announced: bool = False
    attempt: Attempt | None = None
    skip: Skip | None = None
    _is_first: bool = True  # nothing has been processed yet

    @property
    def is_careful(self) -> bool:
        """Whether the next record is announced and committed by itself."""
        return self.announced and self.suspects > 0

    def look_back(self, attempt: Attempt | None, offset: int, records: int, version: str, now: int) -> None:
        """Learn from the last attempt what this start at the offset `offset` has to fear.

        Parameters
        ----------
        attempt : Attempt, optional
            What the state topic says.
        offset : int
            The committed offset.
        records : int
            How many records a transaction may hold: what ended a process was among as many.
        version : str
            Of Anabranch.
        now : int
            ms since the epoch.
        """
        if attempt is None or attempt.offset != offset:
            return
        self.attempt = attempt
        if attempt.record is None and attempt.tries < TRIES:
            return
        self.suspects, self.announced = max(self.suspects, min(records, MOST_SUSPECTS)), True
        if attempt.record is not None and attempt.tries >= TRIES:
            self.skip = Skip(attempt.record, DEATH, version, now)

    def portions(self, records: Records) -> Iterator[Records]:
        """Yield records, at least one, in the portions in which they are processed."""
        count = len(records.keys)
        alone = min(self.suspects, count)
        for at in range(alone):
            yield records.part(at, at + 1)
            self.suspects -= 1
        if alone < count:
            yield records.part(alone, count)

    def announcement(self, records: Records, offset: int) -> Attempt | None:
        """Return what is to be committed before these records are processed, None where nothing is.

        Parameters
        ----------
        records : Records
            A portion.
        offset : int
            What is committed before them.
        """
        if not self.is_careful and not self._is_first:
            return None
        self._is_first = False
        record = int(records.offsets[0]) if self.is_careful else None
        before = self.attempt
        tries = before.tries if before is not None and before[:2] == (offset, record) else 0
        self.attempt = Attempt(offset, record, tries + 1)
        return self.attempt

    def after(self, records: Records, error: BaseException, version: str, now: int) -> Caution:
        """Return the caution with which to go on once the partition is restored after a failure.

        Parameters
        ----------
        records : Records
            The portion that failed.
        error : BaseException
            How.
        version : str
            Of Anabranch.
        now : int
            ms since the epoch.
        """
        found = Skip(int(records.offsets[0]), type(error).__name__, version, now) if self.suspects else None
        return Caution(max(self.suspects, len(records.keys)), self.announced, skip=found)


def check_rate(skips: Collection[Skip], now: int) -> None:
    """Raise `LogError` where one more record than may be would be passed by; `now` in ms since the epoch."""
    recent = sum(skip.time > now - _HOUR_MS for skip in skips)
    if recent >= MOST_AN_HOUR:
        raise LogError(
            f"expected at most {MOST_AN_HOUR} records an hour to be passed by because processing them fails, got "
            "another one: this is no accident of single records; run a version without the defect, or wait an hour"
        )


def failure(error: BaseException) -> str:
    """Return what failed and where, without the message and the values of the failure, which may hold data."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    places = dict.fromkeys(
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames
    )  # each once, in order
    return f"{type(error).__name__} at {' < '.join(list(places)[:_FRAMES])}"
