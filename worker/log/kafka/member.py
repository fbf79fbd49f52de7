"""A member of the group: it is given partitions, reads those that it started, and loses them again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import confluent_kafka as client
from confluent_kafka import Consumer, KafkaException

from worker.log.kafka.closing import close_within
from worker.log.kafka.errors import Fenced, Needed, as_log_errors
from worker.log.kafka.outage import Outage
from worker.log.kafka.reading import Reading
from worker.log.port import LogError, OwnershipLost, Records, TopicPartition

RENEWALS, RENEWALS_SECONDS = 3, 300.0  # so often in so long a fenced member may have fenced itself
_ASK_SECONDS = 3.0  # between two requests of an instance whose topics have changed
JOIN_SECONDS = 60.0  # for a broker that shares partitions out itself; one that cannot would never say so


class Member:
    """The part of the log that is a member of the group.

    Parameters
    ----------
    new_consumer : callable
        Makes one that has the name of the group, and subscribes to nothing yet.
    outage : Outage
        What to do where no broker answers.
    group : str
        Its name.
    wait : float
        Seconds after which a group whose brokers answer has shared out its partitions anew.
    incremental : bool
        Whether partitions come and go one by one, rather than all of them at each change.

    Notes
    -----
    What the group gives is not assigned to the client until it is started, and then from a number: a partition
    that is assigned is looked for right away, and an answer that comes late would undo the start.
    """

    def __init__(
        self,
        new_consumer: Callable[[], Consumer],
        outage: Outage,
        group: str,
        *,
        wait: float,
        incremental: bool,
    ) -> None:
        self._new_consumer = new_consumer
        self._outage = outage
        self.membership = Needed("Read", "group", group)
        self._wait = wait
        self._incremental = incremental
        self._topics: Collection[str] = ()
        self._leaving: Callable[[], None] | None = None  # once it has joined
        self._assignments = 0
        self._renewals: list[float] = []  # when
        self._begin()

    def _begin(self) -> None:
        self._consumer = self._new_consumer()
        self._reading = Reading(self._consumer, self._outage, self.membership)
        self._owned: dict[TopicPartition, int] | None = None
        self._failure: BaseException | None = None
        self._admitted_by = float("inf")
        self._shared_by = float("inf")
        self._given_to: Any = None
        self._asks_at = float("inf")
        self._has_asked = False

    def renew(self, fenced: Fenced, check: Callable[[TopicPartition, Any], None]) -> None:
        """Join the group with another client, after the group has taken somebody else for this member.

        Parameters
        ----------
        fenced : Fenced
            Raised where it has come to that too often: there is another process.
        check : callable
            Raises `LogError` where another process has taken over. It is given a partition that is read, and an
            identity that is no member's.
        """
        now = time.monotonic()
        self._renewals = [at for at in self._renewals if now - at < RENEWALS_SECONDS] + [now]
        if self._leaving is None or len(self._renewals) > RENEWALS:
            raise fenced
        close_within(self._consumer.close)
        self._begin()
        check(TopicPartition(min(self._topics), 0), self._consumer.consumer_group_metadata())
        self.join(self._topics, self._leaving)

    def join(self, topics: Collection[str], leaving: Callable[[], None]) -> None:
        """Ask to be a member; partitions come in later polls."""
        self._topics, self._leaving = topics, leaving
        self._shared_by = time.monotonic() + self._wait
        if self._incremental:
            self._admitted_by = time.monotonic() + JOIN_SECONDS
        with as_log_errors("the group, to be joined", self.membership):
            self._consumer.subscribe(
                sorted(topics),
                on_assign=self._recorded(self._on_assign),
                on_revoke=self._recorded(self._on_revoke),
                on_lost=self._recorded(self._give_up),
            )

    @property
    def owned(self) -> Mapping[TopicPartition, int] | None:
        """The partitions that it was given, each with the number of the assignment; None while there is none."""
        return self._owned

    def check_owned(self, sources: Collection[TopicPartition]) -> None:
        """Raise `OwnershipLost` where one of these was not given to this member, once it has joined."""
        if self._leaving is None:
            return
        for source in sources:
            if source not in (self._owned or ()):
                raise OwnershipLost(
                    f"{source} was to be committed, but the group has not given it to "
                    "this member; leave it to the one that has it"
                )

    @property
    def outlives_changes(self) -> bool:
        """Whether a change of the group leaves it the partitions that it has."""
        return self._incremental

    def identity(self) -> Any:
        """Return what the brokers know this member by at the moment, to commit offsets under it.

        Raises `OwnershipLost` where it is no longer what its partitions were given to. The brokers would not
        notice once the group is empty, and take the offsets of a member that has been replaced in between.
        """
        identity = self._consumer.consumer_group_metadata()
        if self._leaving is not None and self._was_put_out(identity):
            raise OwnershipLost("the group has put this member out; leave them to others")
        return identity

    def _was_put_out(self, identity: Any) -> bool:
        # Where partitions come and go one by one, the identity counts changes that a member outlives.
        return not self._incremental and bool(identity != self._given_to)

    def committed(self, source: TopicPartition, seconds: float) -> Any:
        """Return what the client knows as the committed offset of a partition, with its metadata."""
        (place,) = self._consumer.committed([client.TopicPartition(*source)], timeout=seconds)
        if place.error is not None:
            raise KafkaException(place.error)
        return place

    def commit(self, places: list[client.TopicPartition]) -> None:
        """Commit offsets without a transaction."""
        self.identity()
        for place in self._consumer.commit(offsets=places, asynchronous=False):
            if place.error is not None:
                raise KafkaException(place.error)

    def start(self, source: TopicPartition, offset: int) -> None:
        """Read an owned partition from this offset on."""
        with as_log_errors(f"{source}, to be read"):
            if not self._incremental:
                places = {**self._reading.positions, source: offset}
                self._consumer.assign([client.TopicPartition(*each, at) for each, at in places.items()])
            elif source in self._reading.positions:
                self._consumer.seek(client.TopicPartition(*source, offset))
            else:
                self._consumer.incremental_assign([client.TopicPartition(*source, offset)])
        self._reading.positions[source] = offset

    def stop(self, source: TopicPartition) -> None:
        """Read no more of a partition until it is started again."""
        if source not in self._reading.positions:
            return
        with as_log_errors(f"{source}, to be left"):
            if self._incremental:
                self._stop({source})
            else:
                del self._reading.positions[source]
                places = self._reading.positions.items()
                self._consumer.assign([client.TopicPartition(*each, at) for each, at in places])

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` records of the started partitions; wait up to `timeout` s for one."""
        if self._leaving is None:
            time.sleep(timeout)
            return []
        if time.monotonic() >= self._asks_at:
            self._asks_at = float("inf")
            self._consumer.unsubscribe()
            self.join(self._topics, self._leaving)
        return self._reading.poll(limit, timeout, self._raise_failure)

    def lost(self) -> None:
        """Take note that the group no longer takes this member for the owner of anything.

        What it owns gets new numbers, so that nobody goes on as if nothing had happened in between; where
        partitions are all shared out anew, nothing is owned until they are.
        """
        if self._owned is None:
            return
        if self._incremental:
            self._stop(set(self._owned))
            self._assignments += 1
            self._owned = dict.fromkeys(self._owned, self._assignments)
        else:
            self._reading.positions.clear()
            self._owned = None

    def leave(self) -> None:
        """Give everything up without a word to the owner."""
        self._leaving = lambda: None
        self._consumer.close()

    def _recorded(self, act: Callable[[list[Any]], None]) -> Callable[[Consumer, list[Any]], None]:
        """Return a callback for the client, which does not survive exceptions in those."""

        def callback(consumer: Consumer, partitions: list[Any]) -> None:
            if consumer is not self._consumer:
                return
            try:
                act(partitions)
            except BaseException as failure:
                self._failure = failure

        return callback

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        now = time.monotonic()
        if self._owned is not None or self._outage.lasts:
            self._shared_by = now + self._wait
        elif now > self._shared_by and not self._incremental:
            # Seen after brokers were frozen: the client waits for an answer that was lost, and asks no more.
            raise Fenced(
                f"expected the group to share out its partitions within {self._wait:.0f} s, got none; another "
                "process may be in it under the name of this instance, or a member of it answers to nobody; "
                "see kafka-consumer-groups.sh --describe --members"
            )
        if self._owned is None and time.monotonic() > self._admitted_by and not self._outage.lasts:
            raise LogError(
                f"expected the group to admit this member within {JOIN_SECONDS:.0f} s, got no assignment; "
                "group.protocol=consumer needs Kafka 4.0 or newer: use the classic one, or a newer broker"
            )

    def _on_assign(self, partitions: list[Any]) -> None:
        if self._incremental:
            self._consumer.incremental_assign([])
        else:
            self._consumer.assign([])
        self._assignments += 1
        self._admitted_by = float("inf")
        if not self._incremental and self._is_of_before({partition.topic for partition in partitions}):
            return
        self._given_to = self._consumer.consumer_group_metadata()
        self._owned = {**(self._owned or {}), **dict.fromkeys(_sources(partitions), self._assignments)}

    def _is_of_before(self, given: set[str]) -> bool:
        """Return whether these may be the topics that this instance had before, and see to it that it asks again.

        The brokers give an instance that comes back what it had, even where it subscribes to other topics by now.
        When it asks again it is given its own if it leads the group, else as soon as the one that leads it asks.
        """
        foreign, lacking = given - set(self._topics), set(self._topics) - given
        if not foreign and (not lacking or self._has_asked):
            return False
        if foreign and self._has_asked:
            names = ", ".join(sorted(foreign))
            self._outage.notify(
                f"the group gives this instance topics that are not its own ({names}); asking again"
            )
        self._asks_at = time.monotonic() + (_ASK_SECONDS if self._has_asked else 0.0)
        self._has_asked = True
        return True

    def _on_revoke(self, partitions: list[Any]) -> None:
        lost = self._owned is None or self._was_put_out(self._consumer.consumer_group_metadata())
        try:
            if self._leaving is not None and not lost:
                self._leaving()
        finally:
            self._give_up(partitions)

    def _give_up(self, partitions: list[Any]) -> None:
        gone = _sources(partitions)
        if self._incremental:
            self._owned = {source: number for source, number in (self._owned or {}).items() if source not in gone}
            self._stop(gone)
        else:
            self._owned = None
            self._reading.positions.clear()
            self._consumer.unassign()

    def _stop(self, sources: set[TopicPartition]) -> None:
        started = sources & set(self._reading.positions)
        for source in started:
            del self._reading.positions[source]
        self._consumer.incremental_unassign([client.TopicPartition(*source) for source in started])


def _sources(partitions: list[Any]) -> set[TopicPartition]:
    return {TopicPartition(partition.topic, partition.partition) for partition in partitions}
