"""What models hold, key by key, for people who look: of a group's state, or of what a recording leads to.

Nothing here changes a model. What shall be forgotten is published: a tombstone or a delete in the input, so that
records stay the only source of what models are.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from worker.checkpoint import returned
from worker.codec.event import encode_event
from worker.formats import Schemas
from worker.formats.kept import schemas_of
from worker.log.port import Log, LogError, OutRecord, TopicPartition
from worker.models.holdings import Example, Holdings
from worker.models.port import Model
from worker.pipeline import Pipeline
from worker.restore import Expected, Start, checkpointer_of, restore
from worker.settings import Settings, fingerprint

_SECONDS = 120.0  # without progress
_NAMED = int | str


class Place(NamedTuple):
    """A partition of an input, with its models."""

    source: TopicPartition
    offset: int  # the records below it are in the models
    models: tuple[Model, ...]


class Held(NamedTuple):
    """What a model holds of a key."""

    place: Place
    model: Model
    key: bytes

    def sizes(self) -> dict[str, Any]:
        """Return how large it is and what it did."""
        return dict(self.model.about(self.key))

    def holdings(self) -> Holdings | None:
        """Return the live examples and what it learned of them, None of a kind that does not keep them."""
        return (self.model.holdings() or {}).get(self.key)

    def told(self) -> dict[str, Any]:
        """Return all of it as JSON has it; what is no text is told as by Python's `repr`."""
        holdings, source = self.holdings(), self.place.source
        told = {
            "model": self.model.name,
            "topic": source.topic,
            "partition": source.partition,
            "offset": self.place.offset,
            **self.sizes(),
        }
        if holdings is not None:
            told["live"] = [_example(each) for each in holdings.live]
            told["remembered"] = [_digest(each) for each in sorted(holdings.remembered)]
        return told


def restored(log: Log, settings: Settings, source: TopicPartition, schemas: Schemas) -> tuple[Pipeline, Start]:
    """Return the models of a group as of its committed offset, which a worker may move meanwhile."""
    expected = Expected(settings, fingerprint(settings), log.partitions(source.topic) or 0)
    while True:
        committed, pipeline = log.committed(source), Pipeline(source, settings, time.monotonic, schemas)
        checkpoints = checkpointer_of(settings, source, expected.partitions, time.monotonic, time.time)
        try:
            return pipeline, returned(restore(log, pipeline, checkpoints, expected, time.monotonic, _SECONDS))
        except LogError:
            if log.committed(source) == committed:
                raise


def of_group(log: Log, settings: Settings) -> Iterator[Place]:
    """Yield the partitions of a group's inputs with their models, as of the committed offsets.

    Raises `LogError` where the state cannot be restored, or is that of other settings.
    """
    schemas = schemas_of(log, settings, lambda words: None)
    for topic in settings.routes:
        for number in range(log.partitions(topic) or 0):
            source = TopicPartition(topic, number)
            pipeline, start = restored(log, settings, source, schemas)
            yield Place(source, start.offset, tuple(pipeline.models))


def all_held(places: Collection[Place]) -> Iterator[Held]:
    """Yield what models hold, by place and model, then by key."""
    for place in places:
        for model in place.models:
            for key in sorted(model.keys()):
                yield Held(place, model, key)


def held_of(places: Collection[Place], key: bytes) -> list[Held]:
    """Return what models hold of a key."""
    return [Held(place, model, key) for place in places for model in place.models if key in set(model.keys())]


def tombstones(found: Collection[Held], key: bytes, now: int) -> list[OutRecord]:
    """Return the records that let all models of a key's partitions forget the key."""
    sources = sorted({held.place.source for held in found})
    return [OutRecord(source.topic, source.partition, key, None, (), now) for source in sources]


def deletes(found: Collection[Held], key: bytes, named: _NAMED, now: int) -> list[OutRecord]:
    """Return the records that delete an example from all models of a key's partitions."""
    value = encode_event(op="delete", id=named)
    return [record._replace(value=value) for record in tombstones(found, key, now)]


def _example(example: Example) -> Mapping[str, Any]:
    return {
        "id": None if example.id is None else _digest(example.id),
        "label": example.label,
        "weight": example.weight / (1 << 20),
        "x": {_word(feature): value for feature, value in example.features},
    }


def _word(feature: int | bytes) -> str:
    return str(feature) if isinstance(feature, int) else feature.decode()


def _digest(digest: tuple[int, int]) -> str:
    """Return the digest of an id in one word: ids themselves are not kept."""
    return f"{digest[0]:016x}{digest[1]:016x}"
