"""Outputs and offsets in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import confluent_kafka as client
from confluent_kafka import KafkaException, Producer

from worker.log.kafka.errors import Verdict, explain, verdict
from worker.log.kafka.member import Member
from worker.log.kafka.outage import Outage
from worker.log.kafka.sender import Sender, flush
from worker.log.port import CommitAborted, LogError, OutRecord, OwnershipLost, TopicPartition

STALE_SECONDS = 0.2  # until this member has heard of a change in its group, a heartbeat or so

T = TypeVar("T")


class Transactions:
    """Writes with a transactional producer, of which the brokers know only one by its name.

    Parameters
    ----------
    producer : Producer
        A transactional one, whose delivery reports go to `sender`.
    sender : Sender
        Hands over the records.
    outage : Outage
        What to do where no broker answers.
    member : Member
        Whose offsets are committed.
    """

    def __init__(self, producer: Producer, sender: Sender, outage: Outage, member: Member) -> None:
        self._producer = producer
        self._sender = sender
        self._outage = outage
        self._member = member
        self._ready = False

    def prepare(self) -> None:
        """End what a process of the same name has left open, and shut that process out. Once is enough."""
        if not self._ready:
            what = "the transactions of this instance"
            try:
                self._outage.wait_for(what, self._producer.init_transactions)
            except KafkaException as failure:
                raise self._beyond_repair(failure.args[0]) from failure
            self._ready = True

    def commit(self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], note: str) -> None:
        """Write outputs and offsets; see `Log.commit`."""
        self.prepare()
        try:
            self._producer.begin_transaction()
            self._fill(
                outputs, [client.TopicPartition(*source, offset, note) for source, offset in offsets.items()]
            )
            self._call("a transaction, to be committed", self._producer.commit_transaction)
        except KafkaException as failure:
            raise self._given_up(failure.args[0]) from failure

    def _fill(self, outputs: Sequence[OutRecord], places: list[client.TopicPartition]) -> None:
        def send_offsets(seconds: float) -> None:
            self._producer.send_offsets_to_transaction(places, self._member.identity(), seconds)

        try:
            self._sender.send(self._producer, outputs)
            if places:
                self._call("the offsets of a transaction", send_offsets)
        except KafkaException:
            raise
        except Exception:
            self._abort()
            raise

    def _given_up(self, error: Any) -> LogError:
        """Abort, where that can be done, and return the error to be raised."""
        found = verdict(error)
        if error.fatal() or found is Verdict.FENCED:
            return self._beyond_repair(error)
        refusal = self._sender.refusal()
        self._abort(sound=refusal is not None and not error.txn_requires_abort())
        self._sender.forget()
        if found is Verdict.STALE and self._member.outlives_changes:
            time.sleep(STALE_SECONDS)
            return CommitAborted(f"the group has changed: {explain(error)}")
        if found in (Verdict.LOST, Verdict.STALE):
            return OwnershipLost(f"the group no longer takes this member for their owner: {explain(error)}")
        if refusal is not None:
            return LogError(refusal)
        if found is Verdict.REFUSED:
            return LogError(f"the transaction was refused: {explain(error)}")
        return CommitAborted(f"the transaction was aborted: {explain(error)}")

    def _abort(self, *, sound: bool = True) -> None:
        try:
            if sound:
                # The client cannot abort while it is still announcing the partitions of the transaction.
                self._call("records, to be aborted", lambda seconds: flush(self._producer, seconds))
            self._call("a transaction, to be aborted", self._producer.abort_transaction)
        except KafkaException as failure:
            raise self._beyond_repair(failure.args[0]) from failure

    def _call(self, what: str, attempt: Callable[[float], T]) -> T:
        result = self._outage.wait_for(what, attempt)
        self._producer.poll(0)
        return result

    def _beyond_repair(self, error: Any) -> LogError:
        if verdict(error) is Verdict.FENCED:
            return LogError(
                "another process writes under the name of this instance and has shut this one out "
                f"({explain(error)}); stop one of them, or give each a name of its own; where there is no other, "
                "the transaction took longer than transaction.timeout.ms: start anew"
            )
        return LogError(f"the producer is beyond repair: {explain(error)}; start anew")
