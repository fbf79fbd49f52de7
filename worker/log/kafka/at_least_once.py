"""Outputs first, offsets after them: for brokers without transactions. A crash in between repeats outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import confluent_kafka as client
from confluent_kafka import KafkaException, Producer

from worker.log.kafka.errors import Needed, Verdict, explain, verdict
from worker.log.kafka.member import Member
from worker.log.kafka.outage import Outage
from worker.log.kafka.sender import Sender, flush
from worker.log.port import (
    CommitAborted,
    LogError,
    Metadata,
    OutRecord,
    OwnershipLost,
    TopicPartition,
    metadata_of,
)


class AtLeastOnce:
    """Writes outputs, waits until all have arrived, and commits the offsets then.

    Parameters
    ----------
    producer : Producer
        Whose delivery reports go to `sender`.
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

    def expect(self, target: TopicPartition) -> None:
        """Raise `LogError` where there is no such partition."""
        self._sender.expect(target)

    def prepare(self) -> None:
        """Do nothing: there is nothing that a process before could have left open."""

    def check_alone(self, source: TopicPartition, outsider: object) -> None:
        """Do nothing: without transactions brokers do not know who writes."""

    def commit(
        self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], metadata: Metadata
    ) -> None:
        """Write outputs, then offsets; see `Log.commit`, but that outputs may be there where it raises."""
        try:
            self._sender.send(self._producer, outputs)
            self._outage.wait_for(
                "records, to be written", lambda seconds: flush(self._producer, seconds), look=self._sender.look
            )
        except KafkaException as failure:
            refusal = self._sender.refusal()
            self._drop()
            raise LogError(refusal or explain(failure.args[0])) from failure
        except Exception:
            self._drop()
            raise
        self._check_arrived()
        if offsets:
            self._commit(
                [
                    client.TopicPartition(*source, offset, metadata_of(source, metadata))
                    for source, offset in offsets.items()
                ]
            )

    def _drop(self) -> None:
        """Forget what was handed over and has not gone out yet."""
        self._producer.purge()
        self._sender.forget()

    def _check_arrived(self) -> None:
        refusal, failed = self._sender.refusal(), self._sender.failed()
        if failed is not None:
            self._sender.forget()
            raise LogError(refusal) if refusal else CommitAborted(f"a record did not arrive: {failed}")

    def _commit(self, places: list[client.TopicPartition]) -> None:
        try:
            self._outage.wait_for("offsets, to be committed", lambda _: self._member.commit(places))
        except KafkaException as failure:
            error = failure.args[0]
            match verdict(error):
                case Verdict.LOST | Verdict.STALE | Verdict.FENCED:
                    raise OwnershipLost(
                        f"the group no longer takes this member for their owner: {explain(error)}"
                    ) from failure
                case _:
                    topics = ", ".join(sorted({place.topic for place in places}))
                    needed = (self._member.membership, Needed("Read", "topic", topics))
                    raise LogError(f"the offsets were refused: {explain(error, *needed)}") from failure
