"""Waiting for brokers that do not answer: for as long as it takes, and not in silence."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from worker.log.kafka.errors import Verdict, explain, verdict
from worker.log.port import LogError

ATTEMPT_SECONDS = 1.0  # of one call; between two of them a signal is noticed
NOTIFY_AFTER_SECONDS = 2.0  # a leader that moves, or a connection that is renewed, is no outage
LOOK_SECONDS = 10.0  # between two looks whether the brokers speak otherwise than the client
_PAUSE_SECONDS = 0.1  # after a call that failed at once

T = TypeVar("T")


class Unanswered(Exception):
    """A call of the client did not come back."""


class Outage:
    """Tells a person once that the brokers do not answer, and once that they do again.

    Parameters
    ----------
    notify : callable
        Told both, in a sentence.
    pulse : callable
        Called again and again while a call waits. What it raises ends the wait.
    time_limit : float
        Seconds that one call waits for the brokers.
    look : callable
        Asked now and then why the brokers may not answer; None where it may be that they are away.
    """

    def __init__(
        self,
        notify: Callable[[str], None],
        pulse: Callable[[], None] = lambda: None,
        time_limit: float = math.inf,
        look: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._notify = notify
        self._pulse = pulse
        self._time_limit = time_limit
        self._since: float | None = None
        self._notified = False
        self._refusal: Any = None
        self._distrust: Any = None
        self._look = look
        self._look_at = 0.0

    def check(self) -> None:
        """Raise `LogError` where the brokers are there, but will never answer: that is not worth waiting for."""
        if self._refusal is not None:
            raise LogError(f"the brokers did not let this client in: {explain(self._refusal)}")
        now = time.monotonic()
        if self._since is None or now - self._since < NOTIFY_AFTER_SECONDS:
            return  # others of them may be well
        if self._distrust is not None:
            raise LogError(f"expected brokers that this client can trust: {explain(self._distrust)}")
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            reason = self._look()
            if reason is not None:
                raise LogError(reason)

    @property
    def lasts(self) -> bool:
        """Whether the brokers were last seen not to answer."""
        return self._since is not None

    def seen(self, reason: str) -> None:
        """Take note that a broker did not answer."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if not self._notified and now - self._since >= NOTIFY_AFTER_SECONDS:
            self._notified = True
            self._notify(f"no answer from the brokers ({reason}); waiting for them")

    def notify(self, sentence: str) -> None:
        """Tell a person something else about the brokers."""
        self._notify(sentence)

    def over(self) -> None:
        """Take note that a broker answered."""
        if self._notified:
            self._notify("the brokers answer again")
        self._since, self._notified, self._distrust = None, False, None

    def on_error(self, error: Any) -> None:
        """Take note of what a client reports on its own account."""
        if error.code() == KafkaError._AUTHENTICATION:
            self._refusal = error
        elif error.code() == KafkaError._SSL:
            self._distrust = error
            self.seen(explain(error))
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.seen(explain(error))

    def wait_for(
        self,
        what: str,
        attempt: Callable[[float], T],
        most: float = math.inf,
        look: Callable[[], None] = lambda: None,
    ) -> T:
        """Make a call until it is answered, and return its result.

        Parameters
        ----------
        what : str
            What the call is for, for messages.
        attempt : callable
            The call. It is given the seconds that it may take.
        most : float
            Seconds after which the client is not trusted to get through any more.
        look : callable
            Called after each attempt that failed. What it raises ends the wait.

        Raises
        ------
        Unanswered
            Where it took longer than `most`.
        KafkaException
            What the call raises and waiting does not mend.
        LogError
            Where the brokers let the client not in, or the time limit comes first.
        """
        began = time.monotonic()
        while True:
            try:
                result = attempt(ATTEMPT_SECONDS)
            except KafkaException as failure:
                error = failure.args[0]
                if verdict(error) is not Verdict.WAIT:
                    raise
                self._pulse()
                self.seen(f"{what}: {explain(error)}")
                self.check()
                look()
                waited = time.monotonic() - began
                if waited >= most:
                    raise Unanswered from failure
                if waited >= self._time_limit:
                    raise LogError(
                        f"{what}: expected an answer from the brokers within {self._time_limit:.0f} s, got "
                        f"{explain(error)}; check bootstrap.servers and whether they run"
                    ) from failure
                time.sleep(_PAUSE_SECONDS)
            else:
                self.over()
                return result

    def watched(
        self, call: Callable[[float], T], most: float, look: Callable[[], None] = lambda: None
    ) -> Callable[[float], T]:
        """Return a call, for `wait_for`, that is given up where it does not come back.

        Seen of transactional producers whose coordinator had moved: the client waits, without an end and whatever
        time it was given, for the answer to what it had queued for the broker that it has forgotten.

        Parameters
        ----------
        call : callable
            What to call. Where it does not come back it is left alone in a thread.
        most : float
            Seconds to wait for it.
        look : callable
            Called now and then while it does not come back. What it raises ends the wait.

        Raises
        ------
        Unanswered
            By the call that is returned, after so many seconds.
        """

        def watching(seconds: float) -> T:
            outcome: Future[T] = Future()

            def make() -> None:
                try:
                    outcome.set_result(call(seconds))
                except BaseException as failure:
                    outcome.set_exception(failure)

            Thread(target=make, daemon=True).start()
            deadline = time.monotonic() + most
            while not wait([outcome], ATTEMPT_SECONDS).done:
                self._pulse()
                self.seen("a call does not come back")
                look()
                if time.monotonic() >= deadline:
                    raise Unanswered
            return outcome.result()

        return watching
