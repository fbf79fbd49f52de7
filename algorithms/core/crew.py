"""A crew: a few threads that run tasks side by side, for kernels, which let go of Python's lock.

::

    tasks   0 1 2 3          the caller takes 0, a helper 1, who is done first 2, ..

Each task must be one that touches nothing of what another does. Then what they lead to does not depend on how many
threads there are, nor on which of them is first.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias

from algorithms.core.given import whole

MOST_THREADS = 64

Task: TypeAlias = Callable[[], object]


class _Work:
    """Tasks that are left, and the errors of those that are done."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._left = deque(enumerate(tasks))
        self._errors: list[tuple[int, BaseException]] = []

    def do(self) -> None:
        """Run tasks until none is left."""
        while True:
            try:
                number, task = self._left.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:
                self._errors.append((number, error))

    def tell(self) -> None:
        """Raise the error of the first task that had one."""
        for _, error in sorted(self._errors, key=lambda each: each[0]):
            raise error


_Given: TypeAlias = "SimpleQueue[_Work | None]"
_Done: TypeAlias = "SimpleQueue[None]"


class Crew:
    """Runs tasks in a few threads, of which the caller's is one.

    The others are started when there is something for them to do, and end when the crew is forgotten.

    Parameters
    ----------
    threads : int
        From 1, where none is ever started, to 64.

    Raises
    ------
    ValueError
        With what was expected.
    """

    def __init__(self, threads: int) -> None:
        self.threads = whole("threads", threads, 1, MOST_THREADS)
        self._helpers: list[Thread] = []

    def run(self, tasks: Sequence[Task]) -> None:
        """Run all of some tasks, each in any of the threads; return once all are done.

        Raises
        ------
        BaseException
            What a task has raised: of several, the first of the sequence. All others were run, too.
        """
        work, helpers = _Work(tasks), max(min(self.threads, len(tasks)) - 1, 0)
        if helpers:
            self._start()
        for _ in range(helpers):
            self._given.put(work)
        try:
            work.do()
        finally:
            self._wait(helpers)
        work.tell()

    def _wait(self, helpers: int) -> None:
        """Wait until so many are done, whoever interrupts: what they write to is the caller's again then."""
        interrupt: BaseException | None = None
        while helpers:
            try:
                self._done.get()
                helpers -= 1
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _start(self) -> None:
        """Start the helpers, where they are not there: at first, and in a process that was forked."""
        if self._helpers and all(helper.is_alive() for helper in self._helpers):
            return
        self._given: _Given = SimpleQueue()
        self._done: _Done = SimpleQueue()
        self._helpers = [
            Thread(target=_help, args=(self._given, self._done), name=f"crew {number}", daemon=True)
            for number in range(1, self.threads)
        ]
        for helper in self._helpers:
            helper.start()
        weakref.finalize(self, _end, self._given, len(self._helpers))


def _help(given: _Given, done: _Done) -> None:
    # It knows the queues alone: a thread that knew its crew would keep it from being forgotten.
    while (work := given.get()) is not None:
        work.do()
        del work  # or it would keep the pool until there is more
        done.put(None)


def _end(given: _Given, helpers: int) -> None:
    for _ in range(helpers):
        given.put(None)
