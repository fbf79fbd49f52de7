"""Outputs and offsets in one transaction."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import confluent_kafka as client
from confluent_kafka import KafkaError, KafkaException, Producer

from worker.log.kafka.errors import MISSING, Forbidden, Needed, Verdict, explain, verdict
from worker.log.kafka.member import Member
from worker.log.kafka.outage import Outage, Unanswered
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

RENEW_SECONDS = 15.0  # after which a producer that does not come back is replaced
STALE_SECONDS = 0.2  # until this member has heard of a change in its group, a heartbeat or so

T = TypeVar("T")


class Transactions:
    """Writes with a transactional producer, of which the brokers know only one by its name.

    Parameters
    ----------
    new_producer : callable
        Makes one whose delivery reports go to the function that it is given.
    new_sender : callable
        Makes what hands over the records.
    outage : Outage
        What to do where no broker answers.
    member : Member
        Whose offsets are committed.
    name : str
        The transactional id.
    """

    def __init__(
        self,
        new_producer: Callable[[Callable[[Any, Any], None]], Producer],
        new_sender: Callable[[], Sender],
        outage: Outage,
        member: Member,
        name: str,
    ) -> None:
        self._new_producer = new_producer
        self._new_sender = new_sender
        self._outage = outage
        self._member = member
        self._needed = (Needed("Write", "transactional-id", name), member.membership)
        self._committed: dict[TopicPartition, int] = {}  # by the last transactions
        self._replace()

    def _replace(self) -> None:
        """Take a new producer; what the old one is still doing is no longer listened to."""
        self._sender = self._new_sender()
        self._producer = self._new_producer(self._sender.on_delivery)
        self._ready = False

    def expect(self, target: TopicPartition) -> None:
        """Raise `LogError` where there is no such partition."""
        self._sender.expect(target)

    def prepare(self) -> None:
        """End what a process of the same name has left open, and shut that process out. Once is enough."""
        while not self._ready:
            try:
                self._call("the transactions of this instance", self._producer.init_transactions)
                self._ready = True
            except KafkaException as failure:
                raise self._beyond_repair(failure.args[0]) from failure
            except Unanswered:
                self._replace()

    def check_alone(self, source: TopicPartition, outsider: Any) -> None:
        """Raise `LogError` where another process writes under this name; nothing is written or committed.

        Whoever joins the group under the name of an instance has taken its writer's name before.

        Parameters
        ----------
        source : TopicPartition
            Whose offset the brokers are asked to change.
        outsider : bytes
            The identity of a client that is no member.
        """
        self.prepare()
        place = client.TopicPartition(*source, 0)

        def announce(seconds: float) -> None:
            self._producer.send_offsets_to_transaction([place], outsider, seconds)

        try:
            self._producer.begin_transaction()
            self._call("the name of this instance, to be checked", announce)
        except KafkaException as failure:
            error = failure.args[0]
            if error.fatal() or verdict(error) is Verdict.FENCED:
                raise self._beyond_repair(error) from failure
        except Unanswered:
            self._replace()
            self.prepare()
            return
        self._abort()

    def commit(
        self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], metadata: Metadata
    ) -> None:
        """Write outputs and offsets; see `Log.commit`."""
        self.prepare()
        places = [
            client.TopicPartition(*source, offset, metadata_of(source, metadata))
            for source, offset in offsets.items()
        ]
        try:
            self._producer.begin_transaction()
            self._fill(outputs, places)
        except KafkaException as failure:
            raise self._given_up(failure.args[0]) from failure
        except Unanswered:
            self._replace()
            self.prepare()
            raise CommitAborted("the transaction was not answered; a new producer has ended it") from None
        try:
            commit = self._producer.commit_transaction
            self._call("a transaction, to be committed", commit, look=self._look)
        except KafkaException as failure:
            raise self._given_up(failure.args[0]) from failure
        except Unanswered:
            self._find_out(offsets)
        self._committed |= offsets

    def _fill(self, outputs: Sequence[OutRecord], places: list[client.TopicPartition]) -> None:
        def send_offsets(seconds: float) -> None:
            self._producer.send_offsets_to_transaction(places, identity, seconds)

        try:
            self._sender.send(self._producer, outputs)
            if places:
                identity = self._member.identity()
                self._call("the offsets of a transaction", send_offsets)
        except (KafkaException, Unanswered):
            raise
        except Exception:
            self._abort()
            raise

    def _find_out(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Return where a commit that was not answered has been made; raise the error of the port where not.

        A new producer ends what the old one left open, one way or the other, and the committed offsets tell which.
        """
        self._replace()
        self.prepare()
        for source, offset in offsets.items():
            what = f"the committed offset of {source}"
            found = self._outage.wait_for(what, partial(self._member.committed, source)).offset
            if found != offset:
                raise CommitAborted("the transaction was not answered, and is not committed")
            if self._committed.get(source, offset) != offset:
                return
        raise LogError(
            "a transaction was not answered, and its offsets do not tell whether it was committed; start anew"
        )

    def _look(self) -> None:
        """Raise `LogError` where a topic is gone; then the transaction, which could wait for it, is ended."""
        try:
            self._sender.look()
        except LogError:
            self._replace()  # the old producer cannot abort while it commits
            self.prepare()
            raise

    def _given_up(self, error: Any) -> LogError:
        """Abort, where that can be done, and return the error to be raised."""
        if error.code() == KafkaError._STATE:
            error = self._cause(error)
        found = verdict(error)
        if error.fatal() or found is Verdict.FENCED:
            return self._beyond_repair(error)
        refusal = self._sender.refusal()
        sound = refusal is not None and not error.txn_requires_abort()
        if error.code() in MISSING:
            try:
                self._sender.look()  # the brokers do not say which of the topics it is
            except LogError as gone:
                refusal = str(gone)
        self._abort(sound=sound)
        refusal = refusal or self._sender.refusal()  # the reports of what was on its way come with the abort
        self._sender.forget()
        if found is Verdict.STALE and self._member.outlives_changes:
            time.sleep(STALE_SECONDS)
            return CommitAborted(f"the group has changed: {explain(error)}")
        if found in (Verdict.LOST, Verdict.STALE):
            return OwnershipLost(f"the group no longer takes this member for their owner: {explain(error)}")
        if refusal is not None:
            return LogError(refusal)
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return Forbidden(f"the transaction was refused: {explain(error)}")
        if found is Verdict.REFUSED and error.code() != KafkaError._STATE:
            return LogError(f"the transaction was refused: {explain(error, *self._needed)}")
        return CommitAborted(f"the transaction was aborted: {explain(error)}")

    def _cause(self, error: Any) -> Any:
        """Return why the transaction takes nothing any more.

        Whoever hands over a record or offsets then only hears that it does not; whoever begins another hears why.
        """
        try:
            self._producer.begin_transaction()
        except KafkaException as failure:
            return failure.args[0]
        return error

    def _abort(self, *, sound: bool = True) -> None:
        """Abort the transaction, with another producer where this one cannot."""
        try:
            if sound:
                # The client cannot abort while it is still announcing the partitions of the transaction.
                self._call("records, to be aborted", partial(flush, self._producer), RENEW_SECONDS)
            # A new producer ends what the old one left open just as well: no need to wait without an end.
            self._call("a transaction, to be aborted", self._producer.abort_transaction, RENEW_SECONDS)
        except KafkaException as failure:
            if verdict(failure.args[0]) is Verdict.FENCED:
                raise self._beyond_repair(failure.args[0]) from failure
            self._replace()
            self.prepare()
        except Unanswered:
            self._replace()
            self.prepare()

    def _call(
        self,
        what: str,
        attempt: Callable[[float], T],
        most: float = math.inf,
        look: Callable[[], None] = lambda: None,
    ) -> T:
        result = self._outage.wait_for(what, self._outage.watched(attempt, RENEW_SECONDS, look), most, look)
        self._producer.poll(0)
        return result

    def _beyond_repair(self, error: Any) -> LogError:
        if verdict(error) is Verdict.FENCED:
            return LogError(
                "another process writes under the name of this instance and has shut this one out "
                f"({explain(error)}); stop one of them, or give each a name of its own; where there is no other, "
                "the transaction took longer than transaction.timeout.ms: start anew"
            )
        if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return LogError(explain(error, *self._needed))
        return LogError(f"the producer is beyond repair: {explain(error)}; start anew")
