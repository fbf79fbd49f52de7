"""Streams of examples as streams of updates: what is inserted and what is deleted, in which order.

Three models of updates, as in paper 002, section 5: ``incremental`` only inserts; ``window:W`` keeps the
last W examples, by explicit deletes; ``random:P`` deletes a live example with probability P at each step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int8s, Int64s
from algorithms.core.events import Events, Op
from worker.bench.streams import Stream

BATCH = 1_000  # events in one call of a kernel
EXPECTED = "incremental, window:W as in window:1000, or random:P as in random:0.5"


class Workload(NamedTuple):
    """What a finder has to do, in batches."""

    data: str
    updates: str
    features: int  # ids are below this
    batches: list[Events]
    examples: int  # inserts
    events: int  # inserts and deletes
    ones: int  # of all events


def workload(stream: Stream, updates: str = "incremental", seed: int = 0) -> Workload:
    """Turn a stream of examples into inserts and deletes.

    Parameters
    ----------
    stream : Stream
        Every example is inserted once, in order.
    updates : str
        `incremental`; `window:W` with W >= 1: the insert of example t > W is followed by the delete of example
        t - W; or `random:P` with 0 <= P < 1: at each step with probability P the delete of a uniformly drawn
        live example (where there is one), else the next insert, until all are inserted.
    seed : int
        For `random:P`.

    Raises
    ------
    ValueError
        With what was expected.
    """
    n = len(stream.label)
    if n == 0:
        raise ValueError(f"expected at least one example, {stream.name} has none")
    return deal(stream, updates, *plan(n, updates, seed))


def plan(n: int, updates: str, seed: int = 0) -> tuple[Int8s, Int64s]:
    """Return the operations (an `Op` each) of a model of updates and whose they are; see `workload`."""
    kind, _, argument = updates.partition(":")
    if updates == "incremental":
        return np.zeros(n, np.int8), np.arange(n)
    if kind == "window" and argument.isdecimal() and int(argument) >= 1:
        return _window(n, int(argument))
    if kind == "random" and 0.0 <= _number(argument) < 1.0:
        return _random(n, float(argument), seed)
    raise ValueError(f"expected {EXPECTED} (W from 1; P from 0, below 1), got {updates!r}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0


def _window(n: int, size: int) -> tuple[Int8s, Int64s]:
    """Return the operations and whose they are: delete t - W after the insert of t."""
    examples = np.arange(n)
    both = np.stack([examples, examples - size], axis=1).ravel()
    op = np.tile(np.array([Op.INSERT, Op.DELETE], np.int8), n)
    return op[both >= 0], both[both >= 0]


def _random(n: int, probability: float, seed: int) -> tuple[Int8s, Int64s]:
    random = np.random.default_rng(seed)
    op: list[int] = []
    example: list[int] = []
    live: list[int] = []
    inserted = 0
    while inserted < n:
        if random.random() < probability and live:
            at = int(random.integers(len(live)))
            live[at], live[-1] = live[-1], live[at]
            op.append(Op.DELETE)
            example.append(live.pop())
        else:
            op.append(Op.INSERT)
            example.append(inserted)
            live.append(inserted)
            inserted += 1
    return np.array(op, np.int8), np.array(example, np.int64)


def deal(stream: Stream, updates: str, op: Int8s, example: Int64s) -> Workload:
    """Return the workload of these operations (an `Op` each) on these examples of a stream (their numbers).

    `updates` is its name in the results.
    """
    batches = [
        _batch(stream, op[start : start + BATCH], example[start : start + BATCH])
        for start in range(0, len(op), BATCH)
    ]
    return Workload(
        data=stream.name,
        updates=updates,
        features=stream.features,
        batches=batches,
        examples=int(np.count_nonzero(op == Op.INSERT)),
        events=len(op),
        ones=sum(int(batch.pointer[-1]) for batch in batches),
    )


def _batch(stream: Stream, op: Int8s, example: Int64s) -> Events:
    n = len(op)
    start = stream.pointer[example]
    ones = stream.pointer[example + 1] - start
    pointer = np.zeros(n + 1, np.int64)
    np.cumsum(ones, out=pointer[1:])
    # Where in the stream each one comes from: its place in the batch, moved by what its example was moved.
    source = np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], ones)
    return Events.of(op.copy(), stream.label[example].astype(np.int32), pointer, stream.feature[source])


def one_of(batch: Events, event: int) -> Events:
    """Return a batch of one event, of a batch of one key without ids and weights."""
    start, stop = batch.pointer[event : event + 2].tolist()
    of = slice(event, event + 1)
    ones = slice(start, stop)
    return Events.of(
        batch.op[of], batch.label[of], np.array([0, stop - start]), batch.feature[ones], batch.value[ones]
    )
