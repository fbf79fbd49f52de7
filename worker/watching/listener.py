"""What the loop tells the world: metrics, the status page, the log lines. Processing knows nothing of it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from worker.checkpoint.marks import Skip
from worker.epochs import FATES, Change, Epoch
from worker.log.port import Log, Records, TopicPartition
from worker.partition import Partition
from worker.pipeline import Processed
from worker.quarantine import failure
from worker.topics import Lacking
from worker.transaction import Transaction
from worker.watching.metrics import Metrics
from worker.watching.status import (
    ModelStatus,
    PartitionStatus,
    RefusalStatus,
    State,
    Status,
    StatusBoard,
    comparisons,
)
from worker.watching.tally import Tally

logger = structlog.get_logger()

_REFRESH_SECONDS = 1.0  # sizes and watermarks cost a look at the log and at all models
_PROGRESS_SECONDS = 10.0  # between two lines about models that learn what was before them
_TYPES = {
    b"split": "split",
    b"tree": "snapshot",
    b"prediction": "prediction",
    b"evaluation": "evaluation",
    b"delayed-evaluation": "delayed-evaluation",
    b"drift": "drift",
    b"expired": "expired",
    b"let-go": "let-go",
    b"dead-letter": "dead-letter",
}


class WorkerListener:
    """Keeps metrics and status up to date; the loop tells it what happened.

    Parameters
    ----------
    metrics : Metrics
        What is counted and measured.
    board : StatusBoard
        What the status page reads.
    clock, wall_clock : callable
        Seconds: monotonic, and since the epoch.
    tally : Tally, optional
        What adds up what came of it.
    """

    def __init__(
        self,
        metrics: Metrics,
        board: StatusBoard,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        tally: Tally | None = None,
    ) -> None:
        self._metrics = metrics
        self._tally = tally or Tally()
        self._board = board
        self._clock = clock
        self._wall_clock = wall_clock
        self._refresh_at = 0.0
        self._entered: State | None = None
        self._learning: dict[TopicPartition, str] = {}  # what new models of a partition do, for a person
        self._progress_at: dict[TopicPartition, float] = {}  # when the log says so

    def entered(self, state: State, **about: str) -> None:
        """Tell which state the worker is in now; the log says `about` it too."""
        if state == self._entered:
            return
        self._entered = state
        self._board.status = replace(
            self._board.status, tick=self._clock(), state=state, lacking=(), awaits_registry=False
        )
        self._refresh_at = 0.0
        self._warn(all_of_it=state == "stopping")
        logger.info(state, **about)

    def waits(self, lacking: Lacking) -> None:
        """Tell which topics are waited for, and how long at most; the log says it once."""
        if self._entered != "waiting":
            self._entered = "waiting"
            logger.warning(
                "waiting for topics, which `anabranch topics create SETTINGS` creates",
                topics=list(lacking.topics),
                at_most_seconds=lacking.seconds,
            )
        status = self._board.status
        self._board.status = replace(status, tick=self._clock(), state="waiting", lacking=lacking.topics)

    def notes(self, sentence: str) -> None:
        """Tell a sentence for a person in the log."""
        logger.warning(sentence)

    def restored(self, source: TopicPartition, remaining: int) -> None:
        """Tell how many offsets of a partition remain: of its checkpoint, then of its input."""
        self._metrics.restoring(source, remaining)
        self._board.tick(self._clock())

    def live(self, source: TopicPartition, offset: int) -> None:
        """Tell from where a partition is read; its age counts from now, as if that had been committed now."""
        self._metrics.committed(source, offset, self._wall_clock())
        self._metrics.restoring(source, 0)
        logger.info("live", topic=source.topic, partition=source.partition, offset=offset)

    def was_set(self, source: TopicPartition, offset: int) -> None:
        """Tell that a person has set the group's offset."""
        logger.warning(
            "the group's offset was set by hand: results before it may be missing or come twice",
            topic=source.topic,
            partition=source.partition,
            offset=offset,
        )

    def shares(self, source: TopicPartition, groups: Sequence[str]) -> None:
        """Tell that a group begins where others have their state, so that the results of all are in one topic."""
        logger.warning(
            "other groups have used the same topics: the results of this one come beside theirs",
            topic=source.topic,
            partition=source.partition,
            groups=list(groups),
        )

    def changes(self, source: TopicPartition, change: Change, epoch: Epoch) -> None:
        """Tell that other settings hold in a partition from an offset on, and what becomes of its models."""
        fates = {fate.replace(" ", "_"): names for fate in FATES if (names := change.of(fate))}
        new = [entry for name, entry in epoch.models.items() if name not in change.kept]
        learns = max((entry.joined - entry.first for entry in new), default=0)
        logger.log(
            logging.WARNING if change.lost else logging.INFO,
            "settings change" + (", models lose what they have learned" if change.lost else ""),
            topic=source.topic,
            partition=source.partition,
            offset=epoch.offset,
            **fates,
            **({"offsets_to_learn": learns} if learns else {}),
            **({"bounds": "changed"} if change.bounds else {}),
            **({"pending": "changed"} if change.pending else {}),
        )

    def follows(self, source: TopicPartition, epoch: Epoch) -> None:
        """Tell that a partition goes on with newer settings than those of this worker."""
        logger.warning(
            "the partition has newer settings than this worker, which goes on with those; restart it with them",
            topic=source.topic,
            partition=source.partition,
            since_offset=epoch.offset,
        )

    def learns(self, source: TopicPartition, models: Sequence[str], remaining: int, total: int) -> None:
        """Tell how far models are that are new and learn silently what was before them."""
        now, share = self._clock(), 1 - remaining / max(1, total)
        self._learning[source] = f"{', '.join(models)} of {source}: {share:.0%} of {total:,} offsets"
        if now >= self._progress_at.get(source, -math.inf):
            self._progress_at[source] = now + _PROGRESS_SECONDS
            logger.info(
                "new models learn what was before them; the partition waits",
                topic=source.topic,
                partition=source.partition,
                models=list(models),
                offsets=total,
                remaining=remaining,
            )
        learning = tuple(self._learning.values())
        self._board.status = replace(self._board.status, tick=now, learning=learning)

    def learned(self, source: TopicPartition, models: Sequence[str], total: int) -> None:
        """Tell that they have."""
        self._forget_progress(source)
        logger.info(
            "new models have learned what was before them",
            topic=source.topic,
            partition=source.partition,
            models=list(models),
            offsets=total,
        )

    def _forget_progress(self, source: TopicPartition) -> None:
        self._learning.pop(source, None)
        self._progress_at.pop(source, None)
        self._board.status = replace(self._board.status, learning=tuple(self._learning.values()))

    def dropped(self, source: TopicPartition) -> None:
        """Tell that a partition is somebody else's now, who reports it from here on."""
        self._metrics.forget(source)
        self._forget_progress(source)
        logger.info("gave up", topic=source.topic, partition=source.partition)

    def aborted(self, why: str) -> None:
        """Tell that a transaction was given up by the log and is sent again."""
        self._metrics.aborted()
        logger.warning("transaction aborted, sending it again", why=why)

    def lost(self, why: str) -> None:
        """Tell that a transaction was given up because a partition is no longer owned."""
        self._metrics.lost()
        logger.warning("ownership lost, dropping what was not committed", why=why)

    def failed(self, records: Records, error: Exception, what_next: str) -> None:
        """Tell that records could not be processed: a defect. Its message may hold data and is left out."""
        logger.error(
            f"processing failed: a defect, please report it; {what_next}",
            topic=records.source.topic,
            partition=records.source.partition,
            offsets=[int(records.offsets[0]), int(records.offsets[-1])],
            failure=failure(error),
        )

    def passed_by(self, source: TopicPartition, skip: Skip) -> None:
        """Tell that a record is passed by from now on."""
        logger.error(
            "passed a record by",
            topic=source.topic,
            partition=source.partition,
            offset=skip.offset,
            error=skip.error,
        )

    def quarantine(self, source: TopicPartition, skips: Mapping[int, Skip]) -> None:
        """Tell which records of a partition are passed by."""
        last = max((skip.time for skip in skips.values()), default=None)
        self._metrics.quarantine(source, len(skips), None if last is None else last / 1000)

    def copied(self, source: TopicPartition, size: int, seconds: float) -> None:
        """Tell that models were copied for a checkpoint, and for how long the loop stopped for it."""
        self._metrics.took("checkpoint", seconds)
        self._metrics.copied(source, size)

    def polled(self, seconds: float) -> None:
        """Tell how long a poll took that brought something."""
        self._metrics.took("poll", seconds)

    def processed(self, records: Records, processed: Processed) -> None:
        """Tell what a batch led to."""
        self._tally.add(records, processed)
        self._warn(all_of_it=False)
        metrics = self._metrics
        topic = records.source.topic
        metrics.consumed(records.source, len(records.values))
        metrics.took("decode", processed.decode_seconds)
        metrics.took("update", processed.update_seconds)
        metrics.took("encode", processed.encode_seconds)
        late = processed.late
        metrics.labelled(topic, "learned", late.labelled)
        metrics.labelled(topic, "not-pending", late.late)
        for why, examples in (
            *(("inserted", late.settled), ("deleted", late.forgotten)),
            *(("expired", late.expired), ("crowded-out", late.crowded_out)),
        ):
            metrics.unlabelled(topic, why, examples)  # type: ignore[arg-type]  # the values of `Unlabelled`
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
            metrics.evaluated(model, outcome.evaluated, None if outcome.errors is not None else outcome.right)
            if outcome.drifts is not None:
                metrics.drifted(model, outcome.drifts)
            metrics.expired(model, outcome.expired)
            metrics.let_go(model, outcome.let_go)
            metrics.passed_over(model, "duplicate-ignored", outcome.ignored)
            metrics.passed_over(model, "dropped-by-window", outcome.already_dropped)
            metrics.passed_over(model, "delete-ignored", outcome.deletes_ignored)

    def _warn(self, *, all_of_it: bool) -> None:
        """Tell of what was refused: why, where and how often. What was sent is in the dead letters alone."""
        for model, awaited in self._tally.untold_awaited():
            logger.warning("settings and events differ, correct one of them", model=model, awaited=awaited)
        for refuser, refused, events in self._tally.untold(self._clock(), all_of_it=all_of_it):
            source, offset, row = refused.last
            logger.warning(
                "refused, see the dead letters",
                topic=source.topic,
                reason=str(refuser.reason),
                refused_by=refuser.model or "the decoder",
                events=events,
                partition=source.partition,
                last_offset=offset,
                row=row,
            )

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
        for source in transaction.checkpointed:
            metrics.checkpointed(source, now)
        if transaction.state:
            metrics.wrote_state(
                sum(len(key or b"") + len(value or b"") for _, _, key, value, *_ in transaction.state)
            )
        kinds = [_TYPES[record.headers[0][1] or b""] for record in transaction.outputs]
        if "snapshot" in kinds:
            self._board.snapshots.add(
                record for record, kind in zip(transaction.outputs, kinds, strict=True) if kind == "snapshot"
            )
        for kind in set(kinds):
            metrics.produced(kind, kinds.count(kind))  # type: ignore[arg-type]  # the values of `_TYPES`

    def ticked(
        self,
        log: Log,
        owned: Mapping[TopicPartition, Partition],
        *,
        is_ready: bool,
        awaits_schemas: bool = False,
    ) -> None:
        """Tell that the loop is alive, and now and then how large everything is."""
        if awaits_schemas:  # the log has a line about it
            self._entered = "waiting"
            self._board.status = replace(self._board.status, state="waiting", lacking=(), awaits_registry=True)
        else:
            self.entered("running" if is_ready else "restoring")
        now = self._clock()
        status = self._board.status
        if now >= self._refresh_at:
            self._refresh_at = now + _REFRESH_SECONDS
            partitions = tuple(
                PartitionStatus(
                    *source, partition.position, log.watermarks(source).high, partition.pipeline.late.waiting
                )
                for source, partition in sorted(owned.items())
                if partition.is_live
            )
            for topic, number, position, high, _ in partitions:
                self._metrics.position(TopicPartition(topic, number), position, high)
            for source, partition in owned.items():
                if partition.is_live and (store := partition.pipeline.late.store) is not None:
                    self._metrics.pending(source, len(store), store.size)
            self._board.snapshots.keep(
                {
                    (model.name, source.partition)
                    for source, each in owned.items()
                    for model in each.pipeline.models
                }
            )
            models = _sizes(owned)
            for model in models:
                self._metrics.size(model)
            for comparison in comparisons(models):
                self._metrics.compared(comparison)
            self._warn(all_of_it=False)
            learning = tuple(self._learning.values())
            status = Status(
                now,
                status.state,
                partitions,
                models,
                self._refusals(),
                learning=learning,
                awaits_registry=status.awaits_registry,
            )
        self._board.status = replace(status, tick=now)

    def _refusals(self) -> tuple[RefusalStatus, ...]:
        return tuple(
            RefusalStatus(
                refuser.topic,
                refuser.model,
                str(refuser.reason),
                refused.events,
                f"{refused.last[0].partition}/{refused.last[1]:,}",
            )
            for refuser, refused in self._tally.refused.items()
        )


def _sizes(owned: Mapping[TopicPartition, Partition]) -> tuple[ModelStatus, ...]:
    """Return the size of each model name, over all partitions."""
    sums: dict[str, ModelStatus] = {}
    for source, partition in owned.items():
        for model in partition.pipeline.models:
            is_shadow = model.name in partition.pipeline.shadows
            status = model.status()._replace(
                input=source.topic, shadow=is_shadow, delayed=partition.pipeline.late.quality(model.name)
            )
            before = sums.get(status.name)
            sums[status.name] = status if before is None else before.plus(status)
    return tuple(sums[name] for name in sorted(sums))
