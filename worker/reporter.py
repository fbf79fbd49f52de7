"""What the loop tells the world: metrics, the status page, the log lines. Processing knows nothing of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import structlog

from worker.log.port import Log, Records, TopicPartition
from worker.metrics import Metrics
from worker.pipeline import Pipeline, Processed
from worker.status import ModelStatus, PartitionStatus, State, Status, StatusBoard
from worker.transaction import Transaction

logger = structlog.get_logger()

_REFRESH_SECONDS = 1.0  # sizes and watermarks cost a look at the log and at all models
_TYPES = {
    b"split": "split",
    b"tree": "snapshot",
    b"prediction": "prediction",
    b"dead-letter": "dead-letter",
}


class Reporter:
    """Keeps metrics and status up to date; the loop tells it what happened.

    Parameters
    ----------
    metrics : Metrics
        What is counted and measured.
    board : StatusBoard
        What the status page reads.
    clock, wall_clock : callable
        Seconds: monotonic, and since the epoch.
    """

    def __init__(
        self,
        metrics: Metrics,
        board: StatusBoard,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._metrics = metrics
        self._board = board
        self._clock = clock
        self._wall_clock = wall_clock
        self._refresh_at = 0.0

    def entered(self, state: State) -> None:
        """Tell which state the worker is in now."""
        self._board.status = replace(self._board.status, tick=self._clock(), state=state)
        self._refresh_at = 0.0
        logger.info(state)

    def assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """Tell from where partitions are read; their age counts from now, as if that had been committed now."""
        for source, offset in positions.items():
            self._metrics.committed(source, offset, self._wall_clock())
            self._metrics.restoring(source, 0)

    def restored(self, source: TopicPartition, remaining: int) -> None:
        """Tell how many offsets of a partition remain to be applied again."""
        self._metrics.restoring(source, remaining)
        self._board.status = replace(self._board.status, tick=self._clock())

    def polled(self, seconds: float) -> None:
        """Tell how long a poll took that brought something."""
        self._metrics.took("poll", seconds)

    def processed(self, records: Records, processed: Processed) -> None:
        """Tell what a batch led to."""
        metrics = self._metrics
        topic = records.source.topic
        metrics.consumed(records.source, len(records.values))
        metrics.took("decode", processed.decode_seconds)
        metrics.took("update", processed.update_seconds)
        metrics.took("encode", processed.encode_seconds)
        for fault in processed.faults:
            count = metrics.rejected_records if fault.row is None else metrics.rejected_events
            count(topic, fault.reason)
        for model, outcome in processed.outcomes:
            for op, events in outcome.applied.items():
                if events:
                    metrics.applied(model, op, events)  # type: ignore[arg-type]  # the names of `Op`
            for refusal in outcome.refusals:
                metrics.rejected_events(topic, refusal.reason)
            metrics.splits_changed(model, outcome.changes)
            metrics.passed_over(model, "duplicate-ignored", outcome.ignored)
            metrics.passed_over(model, "dropped-by-window", outcome.already_dropped)

    def committed(self, transaction: Transaction, seconds: float) -> None:
        """Tell that a transaction was committed, and how long that took."""
        metrics = self._metrics
        now = self._wall_clock()
        metrics.took("commit", seconds)
        for source, offset in transaction.offsets.items():
            metrics.committed(source, offset, now)
        for topic, earliest in transaction.earliest.items():
            if earliest > 0:  # else the records have no timestamps
                metrics.delivered(topic, now, earliest)
        kinds = [_TYPES[record.headers[0][1] or b""] for record in transaction.outputs]
        for kind in set(kinds):
            metrics.produced(kind, kinds.count(kind))  # type: ignore[arg-type]  # the values of `_TYPES`

    def ticked(
        self, log: Log, pipelines: Mapping[TopicPartition, Pipeline], positions: Mapping[TopicPartition, int]
    ) -> None:
        """Tell that the loop is alive, and now and then how large everything is."""
        now = self._clock()
        status = self._board.status
        if now >= self._refresh_at:
            self._refresh_at = now + _REFRESH_SECONDS
            partitions = tuple(
                PartitionStatus(*source, position, log.watermarks(source).high)
                for source, position in positions.items()
            )
            for topic, number, position, high in partitions:
                self._metrics.position(TopicPartition(topic, number), position, high)
            models = _sizes(pipelines)
            for name, keys, slots, examples, size in models:
                self._metrics.size(name, keys=keys, slots=slots, examples=examples, state_bytes=size)
            status = Status(now, status.state, partitions, models)
        self._board.status = replace(status, tick=now)


def _sizes(pipelines: Mapping[TopicPartition, Pipeline]) -> tuple[ModelStatus, ...]:
    """Return the size of each model name, over all partitions."""
    sums: dict[str, ModelStatus] = {}
    for pipeline in pipelines.values():
        for model in pipeline.models:
            name, *numbers = model.status()
            before = sums.get(name, (name, 0, 0, 0, 0))
            sums[name] = ModelStatus(name, *(x + y for x, y in zip(before[1:], numbers, strict=True)))
    return tuple(sums[name] for name in sorted(sums))
