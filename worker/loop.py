"""The main loop: poll, process, commit. One thread, one open transaction.

::

    record -> decode -> route to its model -> update -> decide -> encode -> outputs + offsets
     log      codec     models                algorithms          codec     transaction
"""

from __future__ import annotations

import time
from collections.abc import Callable

from worker.log.port import Log, LogError, TopicPartition
from worker.pipeline import Pipeline
from worker.reporter import Reporter
from worker.restore import replay, starting_offsets
from worker.settings import Settings, fingerprint
from worker.transaction import Transaction

_LONGEST_POLL = 0.25  # seconds; a longer one would keep a signal waiting, and the page would think the loop dead


class Worker:
    """Consumes the input topics of the settings' models and writes their results.

    Parameters
    ----------
    log : Log
        Where events come from and results go.
    settings : Settings
        What to run.
    reporter : Reporter
        Who is told what happens.
    clock : callable
        Seconds, monotonic.
    committed : callable, optional
        Called with each transaction after it was committed; for progress displays and tests.
    """

    def __init__(
        self,
        log: Log,
        settings: Settings,
        reporter: Reporter,
        clock: Callable[[], float] = time.monotonic,
        committed: Callable[[Transaction], None] = lambda transaction: None,
    ) -> None:
        self._log = log
        self._settings = settings
        self._reporter = reporter
        self._clock = clock
        self._committed = committed
        self._fingerprint = fingerprint(settings)
        self._transaction = Transaction(settings.transaction)
        self.pipelines: dict[TopicPartition, Pipeline] = {}
        self.positions: dict[TopicPartition, int] = {}  # the next offset to be read

    def run(self, stop: Callable[[], bool], *, until_end: bool = False) -> None:
        """Work until `stop` says so, or (`until_end`) until the end that the input has when it starts.

        What was polled is committed before it returns.
        """
        self.restore(stop)
        ends = {source: self._log.watermarks(source).high for source in self.pipelines}
        self._reporter.entered("running")
        while not stop():
            if until_end and all(self.positions[source] >= end for source, end in ends.items()):
                break
            self.turn()
        self.commit()
        self._reporter.entered("stopping")

    def turn(self) -> None:
        """Poll once, process what came, and commit if that is due."""
        started = self._clock()
        batches = self._log.poll(self._transaction.room, self._patience(started))
        if batches:
            self._reporter.polled(self._clock() - started)
        for records in batches:
            self.positions[records.source] = records.next_offset
            if not records.keys:
                continue
            processed = self.pipelines[records.source].process(records)
            self._transaction.add(records, processed.outputs, self._clock())
            self._reporter.processed(records, processed)
        if self._transaction.is_due(self._clock()):
            self.commit()
        self._reporter.ticked(self._log, self.pipelines, self.positions)

    def commit(self) -> None:
        """Write what the open transaction holds, if anything, and begin the next."""
        if not self._transaction.records:
            return
        started = self._clock()
        self._transaction.commit(self._log, self._fingerprint)
        self._reporter.committed(self._transaction, self._clock() - started)
        self._committed(self._transaction)
        self._transaction = Transaction(self._settings.transaction)

    def _patience(self, now: float) -> float:
        """Return how long a poll may wait for records: at most until the open transaction is due."""
        return max(0.0, min(_LONGEST_POLL, self._transaction.due_at - now))

    def restore(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Find the partitions, make the output topics, and rebuild the models, unless `stop` says so before.

        Raises
        ------
        LogError
            Where a topic is missing, or the models cannot be rebuilt.
        """
        self._reporter.entered("starting")
        for topic, route in self._settings.routes.items():
            partitions = self._partitions_of(topic)
            for output in route:
                self._log.create_topic(output, partitions)
            for number in range(partitions):
                source = TopicPartition(topic, number)
                self.pipelines[source] = Pipeline(source, self._settings, self._clock)
                self.pipelines[source].warm_up()
        self._reporter.entered("restoring")
        self.positions = starting_offsets(self._log, self.pipelines, self._fingerprint)
        replay(self._log, self.pipelines, self.positions, self._reporter.restored, stop)
        self._log.assign(self.positions)
        self._reporter.assigned(self.positions)

    def _partitions_of(self, topic: str) -> int:
        partitions = self._log.partitions(topic)
        if partitions is None:
            readers = [name for name, model in self._settings.models.items() if model.input == topic]
            raise LogError(
                f"expected the topic {topic!r}, the input of model {', '.join(readers)}; there is none; "
                "publish events to it first, or correct the model's input"
            )
        return partitions
