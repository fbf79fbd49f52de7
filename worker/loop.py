"""The main loop: poll, process, commit. One open transaction, and one thread, which others help with partitions.

::

    record -> decode -> route to its model -> update -> decide -> encode -> outputs + offsets
     log      codec     models                algorithms          codec     transaction

Partitions come from the group and go again. What is owned is restored first, a little in each turn, then live;
between two transactions a live one may write a checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Literal

from algorithms.core.crew import Crew
from worker.checkpoint import Attempt, Skip
from worker.checkpoint.reader import is_silent
from worker.checkpoint.writer import SHARE_BYTES
from worker.epochs import Epoch
from worker.formats import Schemas
from worker.formats.kept import schemas_of
from worker.log.port import CommitAborted, Log, LogError, OutRecord, OwnershipLost, Records, TopicPartition
from worker.partition import Partition, Portion
from worker.pipeline import Pipeline
from worker.quarantine import Caution, check_rate
from worker.restore import Expected, Start, catch_up, checkpointer_of, restore
from worker.settings import Settings, fingerprint
from worker.topics import input_partitions, lacking_topics, moved_keys, prepare_topics
from worker.transaction import Transaction
from worker.warming import are_kept, compile_apart, compiled_for, freeze, thaw
from worker.watching.listener import WorkerListener

_LONGEST_POLL = 0.25  # seconds; a longer one would keep a signal waiting, and the page would think the loop dead
_BUSY_POLL = 0.02  # while a checkpoint is written: the next share is soon due
_CAREFUL_POLL = 100  # records, while each is committed by itself: a commit takes some ms
RESTORE_TIMEOUT = 120.0  # seconds without progress; longer than transaction.timeout.ms, which ends forgotten ones
_RESTORE_SECONDS = 0.1  # of each turn
_LONG_BATCH = 1.0  # seconds; a batch that takes longer is followed by a smaller one, so that the group hears of us
_ATTEMPTS = 10  # of a commit that the log gives up
_GRACE_SECONDS = 10.0  # for the last checkpoint; Kubernetes kills after 30 unless told otherwise
_GLANCE_SECONDS = 2.0  # at what was written to the state of a partition while it was away
_LOOK_SECONDS = 30.0  # between two looks at the number of partitions
_TOPICS_SECONDS = 2.0  # between two looks for topics that are not there yet; a signal waits for as long


class Worker:
    """Consumes the input topics of the settings' models and writes their results.

    Parameters
    ----------
    log : Log
        Where events come from and results go.
    settings : Settings
        What to run.
    listener : WorkerListener
        Who is told what happens.
    clock, wall_clock : callable
        Seconds: monotonic, and since the epoch.
    committed : callable, optional
        Called with each transaction after it was committed; for progress displays and tests.
    epochs : "last", "all" or "none"
        Which of the epochs that a log tells of are followed, see `Expected`.
    schemas : Schemas, optional
        What records are written with; those that the log keeps and the registry of the settings, unless given.
    """

    def __init__(
        self,
        log: Log,
        settings: Settings,
        listener: WorkerListener,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        committed: Callable[[Transaction], None] = lambda transaction: None,
        epochs: Literal["last", "all", "none"] = "last",
        schemas: Schemas | None = None,
    ) -> None:
        self._epochs = epochs
        self._has_run = False  # been ready since it was started
        self._log = log
        self._settings = settings
        self._listener = listener
        self._clock = clock
        self._wall_clock = wall_clock
        self._committed = committed
        self._given_schemas = schemas
        self._schemas = schemas or Schemas()
        self._fingerprint = fingerprint(settings)
        self._transaction = Transaction(settings.transaction)
        self._crew = Crew(settings.threads)
        self._inputs: dict[str, int] = {}  # partitions of each input topic
        self._pace = settings.transaction.records  # records in a poll
        self._look_at = 0.0
        self.partitions: dict[TopicPartition, Partition] = {}

    def run(self, stop: Callable[[], bool], *, until_end: bool = False, alone: bool = False) -> None:
        """Work until `stop` says so, or (`until_end`) until the end that the input has when it starts.

        What was polled is committed before it returns. In a process that is the worker's `alone` the collector of
        garbage passes by all that is there once the worker has joined: see `warming.freeze`.
        """
        try:
            self.join(stop)
            if alone:
                freeze()
            ends: dict[TopicPartition, int] = {}
            while not stop():
                if until_end and self.is_ready:
                    ends = ends or {source: self._log.watermarks(source).high for source in self.partitions}
                    if all(partition.position >= ends[source] for source, partition in self.partitions.items()):
                        break
                self.run_once()
            self._listener.entered("stopping")
            self.finish()
        finally:
            for partition in self.partitions.values():
                partition.stop()
            if alone:
                thaw()

    def join(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Look at the topics, load or compile the kernels and join the group, unless `stop` says so before.

        Topics that a cluster does not have yet are waited for, as long as the settings say.

        Raises
        ------
        LogError
            Where a topic is missing or unfit.
        """
        self._listener.entered("starting")
        for lacking in lacking_topics(self._log, self._settings, self._clock):
            self._listener.waits(lacking)
            if stop():
                return
            time.sleep(_TOPICS_SECONDS)
        self._listener.entered("starting")
        prepare_topics(self._log, self._settings)
        self._inputs = input_partitions(self._log, self._settings)
        self._schemas = self._given_schemas or schemas_of(self._log, self._settings, self._listener.notes)
        if not are_kept(self._settings):
            self._listener.entered("compiling", processor=compiled_for())
            compile_apart(self._settings, stop)
        if stop():
            return
        self._log.join(list(self._inputs), self._on_revoked)
        self._listener.entered("restoring")

    def run_once(self) -> None:
        """Poll once, process what came, and commit if that is due."""
        batches = self._poll()
        self._follow_rebalance()
        self._process(batches)
        self._read_awaited()
        self._restore_some()
        if self._transaction.is_due(self._clock()) and self._log.owned is not None:
            self.commit()
        if self._transaction.is_empty and self._log.owned is not None:
            self._write_checkpoints()
        is_ready = self.is_ready
        self._has_run = self._has_run or is_ready
        self._listener.ticked(self._log, self.partitions, is_ready=is_ready, awaits_schemas=self._awaits_schemas)

    def _poll(self) -> list[Records]:
        started = self._clock()
        careful = any(each.caution.is_careful for each in self.partitions.values())
        most = min(_CAREFUL_POLL if careful else self._pace, self._transaction.room)
        batches = self._log.poll(max(1, most), self._poll_timeout(started))
        if batches:
            self._listener.polled(self._clock() - started)
        return batches

    def _poll_timeout(self, now: float) -> float:
        """Return how long a poll may wait for records: at most until there is something else to do."""
        if any(not partition.is_live for partition in self.partitions.values()):
            return 0.0
        if (self._log.owned or {}).keys() - self.partitions.keys():
            return 0.0  # partitions wait to be taken up
        busy = any(each.checkpoints is not None and each.checkpoints.is_busy for each in self.partitions.values())
        return max(0.0, min(_BUSY_POLL if busy else _LONGEST_POLL, self._transaction.due_at - now))

    def _process(self, batches: Sequence[Records]) -> None:
        """Process what was polled, a batch for each of some partitions: side by side, unless one goes in steps."""
        if not batches:
            return
        started = self._clock()
        if self._crew.threads > 1 and not any(map(self._goes_in_steps, batches)):
            self._apply(list(filter(self._is_ready, batches)))
        else:
            for records in filter(self._is_ready, batches):
                self._apply_in_steps(records)
        slow = self._clock() - started > _LONG_BATCH
        self._pace = max(1, self._pace // 2) if slow else min(self._pace * 2, self._settings.transaction.records)

    def _is_ready(self, records: Records) -> bool:
        """Return whether these can be processed now; do what else there is to do about them."""
        partition = self.partitions.get(records.source)
        if partition is None or not partition.is_live:
            return False  # it was given away by the poll that brought these; its next owner reads them again
        if partition.awaited is not None:
            return False  # read again once those before have been
        if not records.keys:
            partition.position = records.next_offset
            return False
        if not partition.pipeline.has_schemas(records):
            self._log.stop(records.source)
            partition.awaited = records
            return False
        return True

    def _goes_in_steps(self, records: Records) -> bool:
        """Return whether something is committed, or models change, between some of these."""
        partition = self.partitions.get(records.source)
        return partition is not None and (bool(partition.ahead) or partition.caution.suspects > 0)

    def _apply_in_steps(self, records: Records) -> None:
        partition = self.partitions[records.source]
        parts = self._by_epoch(partition, records) if partition.ahead else (records,)
        for step in (step for part in parts for step in partition.caution.portions(part)):
            if not self._apply([step]):
                return

    def _apply(self, batches: Sequence[Records]) -> bool:
        """Process records of live partitions, in any thread; take in what they lead to, in the order of the poll.

        Return whether all of the partitions still are the worker's, and live.
        """
        portions = [Portion(self.partitions[records.source], records) for records in batches]
        if self._quarantines:
            portions = [portion for portion in portions if self._announced(portion)]
        self._crew.run([portion.process for portion in portions])
        taken = [self._take(portion) for portion in portions]
        return len(taken) == len(batches) and all(taken)

    def _take(self, portion: Portion) -> bool:
        partition, records = portion.partition, portion.records
        if not self._has(partition):
            return False  # a commit of what came before has shown it
        try:
            processed = portion.result()
        except Exception as error:
            # Where memory runs out, the next record may meet that as well.
            stops = not self._quarantines or isinstance(error, MemoryError)
            what_next = "on_defect: quarantine passes such a record by" if stops else "looking for the record"
            self._listener.failed(records, error, what_next)
            if stops:
                raise
            self._recover(partition, records, error)
            return False
        partition.position = partition.applied = records.next_offset
        partition.consumed += len(records.keys)
        self._transaction.add(records, processed.outputs, self._clock())
        self._listener.processed(records, processed)
        return self._passed_by(partition)

    def _read_awaited(self) -> None:
        """Process the records whose schemas have come meanwhile, and read on behind them.

        Until then the partition is not read, so that no more than one batch of it is held. The loop goes on, and
        keeps its place in the group.
        """
        for partition in list(self.partitions.values()):
            records = partition.awaited
            if records is None or self._log.owned is None or not partition.pipeline.has_schemas(records):
                continue
            partition.awaited = None
            self._process([records])
            if self._has(partition) and partition.is_live:
                self._log.start(partition.source, partition.position)

    @property
    def _awaits_schemas(self) -> bool:
        """Whether something waits for the registry of schemas, which does not answer."""
        waits = any(each.awaited is not None or not each.is_live for each in self.partitions.values())
        return waits and self._schemas.is_away

    # --- defects

    @property
    def _quarantines(self) -> bool:
        return self._settings.on_defect == "quarantine"

    def _announced(self, portion: Portion) -> bool:
        """Commit what is to be known of an attempt if the process dies of it; return whether it may be made."""
        partition = portion.partition
        attempt = partition.caution.announcement(portion.records, partition.position)
        if attempt is not None:
            self._mark(partition, attempt)
            self.commit()
        return self._has(partition)

    def _recover(self, partition: Partition, records: Records, error: Exception) -> None:
        """Restore the models, which a failure has left in disorder, and go on from there with caution."""
        now = int(self._wall_clock() * 1000)
        caution = partition.caution.after(records, error, version("anabranch"), now)
        self.commit()  # what was processed before
        if caution.skip is not None:
            check_rate(self._skips(), now)
        if self._has(partition):
            self._on_assigned(partition.source, partition.assignment, caution)

    def _look_back(self, partition: Partition, start: Start) -> None:
        """Learn what is known of a partition that was restored: what it passes by, what ended a process."""
        pipeline, caution = partition.pipeline, partition.caution
        now = int(self._wall_clock() * 1000)
        if self._quarantines and caution.skip is None:
            most = self._settings.transaction.records
            caution.look_back(start.attempt, start.offset, most, version("anabranch"), now)
            if caution.skip is not None:
                check_rate(self._skips(), now)
        if caution.skip is not None:
            pipeline.skips[caution.skip.offset] = caution.skip
        self._listener.quarantine(partition.source, pipeline.skips)

    def _skips(self) -> list[Skip]:
        return [skip for each in self.partitions.values() for skip in each.pipeline.skips.values()]

    def _passed_by(self, partition: Partition) -> bool:
        """Write the skip whose record was just passed by, and what is committed by itself; as `_apply` returns."""
        caution = partition.caution
        if caution.skip is not None and caution.skip.offset < partition.position:
            self._mark(partition, caution.skip)
            self._listener.passed_by(partition.source, caution.skip)
            caution.skip = None
        if caution.is_careful:
            self.commit()
        return self._has(partition)

    def _mark(self, partition: Partition, mark: Skip | Attempt) -> None:
        now = self._wall_clock()
        record = OutRecord(*self._state_of(partition.source), mark.key, mark.pack(), (), max(1, int(now * 1000)))
        self._transaction.add_state(partition.source, partition.position, [record], self._clock(), completes=False)

    # --- transactions

    def commit(self) -> None:
        """Write what the open transaction holds, if anything, and begin the next.

        Where the log gives the transaction up, it is sent again: the models have moved on and need not go back.
        Where a partition belongs to somebody else by now, what was to be written is theirs to make.
        """
        if self._transaction.is_empty:
            return
        started = self._clock()
        for source in self._transaction.offsets:
            told = self.partitions[source].unwritten
            self._transaction.state += told
            told.clear()
        try:
            self._write(self._transaction)
        except OwnershipLost as error:
            self._listener.lost(str(error))
            self._abandon()
            return
        self._listener.committed(self._transaction, self._clock() - started)
        done, self._transaction = self._transaction, Transaction(self._settings.transaction)
        self._committed(done)

    def _write(self, transaction: Transaction) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                transaction.commit(self._log, {source: self._note(source) for source in transaction.offsets})
                return
            except CommitAborted as error:
                self._listener.aborted(str(error))
                if attempt == _ATTEMPTS:
                    raise

    def _note(self, source: TopicPartition) -> str:
        epoch = self.partitions[source].epoch
        assert epoch is not None, f"{source} was committed before it was known which settings hold"
        return epoch.note

    def _abandon(self) -> None:
        """Forget the open transaction, and the models that it would have brought up to date."""
        for source in self._transaction.offsets:
            self._drop(source)
        self._transaction = Transaction(self._settings.transaction)

    def finish(self) -> None:
        """Commit what is open and, as far as it can be done soon, leave a checkpoint for the next start."""
        if self._log.owned is None:
            return
        self.commit()
        until = self._clock() + _GRACE_SECONDS
        for source, partition in self._lasting():
            if partition.checkpoints is None:
                continue
            while source in self.partitions and self._clock() < until:
                if not partition.checkpoints.is_writing:
                    if partition.checkpoints.is_current(partition.applied, partition.behind):
                        break
                    partition.checkpoints.take(partition.pipeline.arrays(), partition.applied, partition.behind)
                self._send(partition, partition.checkpoints.records(SHARE_BYTES))
                self.commit()

    # --- the group

    def _follow_rebalance(self) -> None:
        """Take what the group has given, give up what it has taken."""
        owned = self._log.owned
        if owned is None:
            return  # it is being shared out anew: what was ours may well come back
        if any(self._is_taken(source, owned.get(source)) for source in self._transaction.offsets):
            self._listener.lost("the group took partitions away before their results were committed")
            self._abandon()
        for source in list(self.partitions):
            if self._is_taken(source, owned.get(source)) and not self._regained(source, owned.get(source)):
                self._drop(source)
        for source, assignment in owned.items():
            if source not in self.partitions:
                self._on_assigned(source, assignment)
        self._look_for_growth()

    def _is_taken(self, source: TopicPartition, assignment: int | None) -> bool:
        return self.partitions[source].assignment != assignment

    def _regained(self, source: TopicPartition, assignment: int | None) -> bool:
        """Return whether a partition that went came back as it was; then it simply goes on."""
        partition = self.partitions[source]
        if assignment is None or not partition.is_live:
            return False
        committed = self._log.committed(source)
        if committed is None or not partition.applied <= committed <= partition.position:
            return False
        if partition.checkpoints is not None and self._was_written(partition):
            return False  # somebody has written a checkpoint, and may have deleted pages that ours builds on
        partition.assignment = assignment
        self._log.start(source, partition.position)
        return True

    def _on_revoked(self) -> None:
        """Commit, and remember what is left behind: called by the log before partitions go."""
        self.commit()
        for partition in self.partitions.values():
            if partition.checkpoints is not None:
                partition.state_end = self._state_end(partition)

    def _was_written(self, partition: Partition) -> bool:
        state, begin, end = self._state_of(partition.source), partition.state_end, self._state_end(partition)
        return begin != end and not is_silent(self._log, state, begin, end, self._clock, _GLANCE_SECONDS)

    def _state_end(self, partition: Partition) -> int:
        return self._log.watermarks(self._state_of(partition.source)).high

    def _state_of(self, source: TopicPartition) -> TopicPartition:
        return TopicPartition(self._settings.routes[source.topic].state, source.partition)

    def _drop(self, source: TopicPartition) -> None:
        self.partitions.pop(source).stop()
        self._listener.dropped(source)

    def _look_for_growth(self) -> None:
        """Stop where an input topic has more partitions than it had: keys have moved away from their models."""
        if self._clock() < self._look_at:
            return
        self._look_at = self._clock() + _LOOK_SECONDS
        for topic, count in self._inputs.items():
            now = self._log.partitions(topic)
            if now != count:
                raise LogError(f"the topic {topic!r}: {moved_keys(count, now)}")

    # --- restoring

    def _on_assigned(self, source: TopicPartition, assignment: int, caution: Caution | None = None) -> None:
        """Begin to restore a partition."""
        pipeline, partitions = self._pipeline(source), self._inputs[source.topic]
        checkpoints = checkpointer_of(self._settings, source, partitions, self._clock, self._wall_clock)
        partition = Partition(source, assignment, pipeline, checkpoints, caution=caution or Caution())
        partition.restoring = self._brought_up(partition)
        self.partitions[source] = partition

    def _results_of(self, source: TopicPartition) -> TopicPartition | None:
        """Return where results tell that an offset was lost, if nothing else does."""
        kafka = self._settings.log.kafka
        if self._settings.checkpoint is not None or kafka is None or kafka.guarantee != "exactly_once":
            return None
        return TopicPartition(self._settings.routes[source.topic].output, source.partition)

    def _pipeline(self, source: TopicPartition) -> Pipeline:
        return Pipeline(source, self._settings, self._clock, self._schemas)

    @property
    def is_ready(self) -> bool:
        """Whether the group has given this worker its share, and all of it is live."""
        owned = self._log.owned
        known = owned is not None and owned.keys() == self.partitions.keys()
        return known and all(partition.is_live for partition in self.partitions.values())

    def _restore_some(self) -> None:
        """Go on with what is being restored, for a moment, so that live partitions do not wait for long."""
        if self._log.owned is None:
            return
        until = self._clock() + _RESTORE_SECONDS
        for partition in list(self.partitions.values()):
            while self._has(partition) and partition.restoring is not None and self._clock() < until:
                remaining = next(partition.restoring, None)
                if remaining is not None:
                    self._listener.restored(partition.source, remaining)

    def _has(self, partition: Partition) -> bool:
        """Return whether a partition is still owned: each commit may show that it is not."""
        return self.partitions.get(partition.source) is partition

    def _brought_up(self, partition: Partition) -> Generator[int, None, None]:
        """Restore a partition, change its settings where this worker has others, and let it go live."""
        source, pipeline, checkpoints = partition.source, partition.pipeline, partition.checkpoints
        expected = Expected(
            settings=self._settings,
            fingerprint=self._fingerprint,
            partitions=self._inputs[source.topic],
            results=self._results_of(source),
            has_run=self._has_run,
            epochs=self._epochs,
        )
        start = yield from restore(self._log, pipeline, checkpoints, expected, self._clock, RESTORE_TIMEOUT)
        partition.applied = partition.position = start.offset
        partition.behind, partition.ahead = start.behind, list(start.ahead)
        partition.hold(start.epoch)
        if checkpoints is not None:
            gone = [] if start.is_kept else self._records_of(source, start.epoch)
            kept = {record.key for record in gone}
            for epoch in start.leftovers:
                dropped = self._records_of(source, epoch)
                gone += [record._replace(value=None) for record in dropped if record.key not in kept]
            partition.unwritten = gone
        if start.is_set:
            self._listener.was_set(source, start.offset)
        if start.is_fresh and start.others:
            self._listener.shares(source, start.others)
        if start.follows:
            self._listener.follows(source, start.epoch)
        self._look_back(partition, start)
        if checkpoints is not None and start.is_fresh and start.offset > 0 and start.change is None:
            # Without it nobody could tell later that the records before it are in no model. For the same reason
            # it is one transaction; empty models are a few pages.
            beside, partition.unwritten = partition.unwritten, []
            checkpoints.take(pipeline.arrays(), partition.applied, partition.behind, beside)
            self._send(partition, checkpoints.records())
            self.commit()
        if start.change is not None and start.next is not None:
            yield from self._change(partition, start)
        if partition.behind and self._has(partition):
            yield from self._catch_up(partition)
        if self._has(partition):
            partition.restoring = None
            self._log.start(source, partition.position)
            self._listener.live(source, partition.position)

    # --- epochs

    def _records_of(self, source: TopicPartition, epoch: Epoch) -> list[OutRecord]:
        return epoch.records(self._settings.group, self._state_of(source), int(self._wall_clock() * 1000))

    def _change(self, partition: Partition, start: Start) -> Generator[int, None, None]:
        """Let the settings of this worker hold in a partition from its committed offset on.

        The state under the new epoch is one checkpoint. Its pages are written first, in portions, while the epoch
        before still holds; the record that makes it valid, the new epoch and its note are one transaction.
        """
        assert start.change is not None
        assert start.next is not None
        assert partition.checkpoints is not None
        source, epoch, checkpoints = partition.source, start.next, partition.checkpoints
        self._listener.changes(source, start.change, epoch)
        partition.turn(epoch, start.change.kept)
        beside = [*partition.unwritten, *self._records_of(source, epoch)]
        partition.unwritten = []
        checkpoints.identity = replace(checkpoints.identity, settings=epoch.note)
        checkpoints.take(partition.pipeline.arrays(), partition.applied, partition.behind, beside)
        while checkpoints.is_writing and self._has(partition):
            records = checkpoints.records(SHARE_BYTES)
            if checkpoints.holds:
                partition.epoch = epoch
            self._send(partition, records)
            self.commit()
            yield 0

    def _catch_up(self, partition: Partition) -> Generator[int, None, None]:
        """Let models that are new learn what the topic has of the records before them, silently.

        Checkpoints are written on the way. The last one is whole before the partition goes live: from then on the
        records may go.
        """
        source, checkpoints = partition.source, partition.checkpoints
        names, total = list(partition.behind), partition.applied - min(partition.behind.values())
        before, partition.is_learning = total, True
        for remaining in catch_up(
            self._log, partition.pipeline, partition.behind, partition.applied, self._clock, RESTORE_TIMEOUT
        ):
            partition.consumed += before - remaining
            before = remaining
            self._listener.learns(source, names, remaining, total)
            yield remaining
        partition.is_learning = False
        self._listener.learned(source, names, total)
        while checkpoints is not None and self._has(partition):
            if not checkpoints.is_writing:
                if checkpoints.is_current(partition.applied):
                    break
                checkpoints.take(partition.pipeline.arrays(), partition.applied)
            self._send(partition, checkpoints.records(SHARE_BYTES))
            self.commit()
            yield 0

    def _by_epoch(self, partition: Partition, records: Records) -> Iterator[Records]:
        """Yield records of a replay in parts of one epoch each, and change the models in between as was done."""
        while partition.ahead:
            epoch = partition.ahead[0]
            count = int((records.offsets < epoch.offset).sum())
            if count:
                yield records.part(0, count)
            if count == len(records.keys):
                return
            records = records.part(count, len(records.keys))
            self._replay_change(partition)
        yield records

    def _replay_change(self, partition: Partition) -> None:
        epoch, before = partition.ahead.pop(0), partition.epoch
        assert before is not None
        kept = [name for name, entry in epoch.models.items() if entry.goes_on_from(before.models.get(name))]
        partition.turn(epoch, kept)
        partition.hold(epoch)
        low = self._log.watermarks(partition.source).low  # a recording may begin later than the models did
        partition.behind = {name: max(at, low) for name, at in partition.behind.items()}
        for _ in catch_up(
            self._log, partition.pipeline, partition.behind, epoch.offset, self._clock, RESTORE_TIMEOUT
        ):
            self._listener.restored(partition.source, 0)

    # --- checkpoints

    def _write_checkpoints(self) -> None:
        """Go on with the checkpoints of all partitions; now the models are exactly what is committed."""
        for source, partition in self._lasting():
            checkpoints = partition.checkpoints
            if checkpoints is None:
                continue
            started = self._clock()
            arrays, behind = partition.pipeline.arrays, partition.behind
            if checkpoints.proceed(arrays, partition.applied, partition.consumed, behind):
                self._listener.copied(source, checkpoints.state_bytes, self._clock() - started)
            self._send(partition, checkpoints.share())

    def _send(self, partition: Partition, records: Sequence[OutRecord]) -> None:
        """Put records of a partition's checkpoint into the open transaction."""
        if records:
            assert partition.checkpoints is not None
            self._transaction.add_state(
                partition.source,
                partition.position,
                records,
                self._clock(),
                completes=not partition.checkpoints.is_writing,
            )

    def _lasting(self) -> Iterator[tuple[TopicPartition, Partition]]:
        """Return the partitions that are live, and those whose new models learn what was before them."""
        return (
            (source, each) for source, each in list(self.partitions.items()) if each.is_live or each.is_learning
        )
