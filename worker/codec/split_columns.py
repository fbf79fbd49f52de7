"""The splits of binary features that a batch led to, in columns, and their records without a look at each field.

With many keys most events change a split, and to make each record field by field would take longer than all else.
All of a value but the features and where it comes from is of the same length in every split of a batch: these
parts are laid out as rows of one array and cut. `SplitColumns.split` has the meaning; the records are those of
`to_record`, byte by byte.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int32s, Int64s
from worker.codec.encode import Class, Feature, Source, Split, to_record
from worker.log.port import LARGEST_RECORD, OutRecord

_TYPE = ("type", b"split")
_FIELDS = len(Split._fields) - 1  # without `left_out`
_BRANCHES = (0, 1)
_BESIDE = 1_000  # bytes that headers have at most, but for the name of the model
_FLOAT = b"\xcb"


class SplitColumns(NamedTuple):
    """The splits of a batch, ascending by their events. Weights are in examples."""

    model: str
    criterion: str
    classes: Sequence[Class]  # two
    topic: str
    partition: int
    offset: Int64s  # int64[k]
    row: Int32s  # int32[k]
    time: Int64s  # int64[k], at least 1
    feature: Sequence[Feature | None]  # of each, None where no feature splits
    runner_up: Sequence[Feature | None]
    score: Float64s  # float64[k], un-normalised: weight times impurity
    runner_up_score: Float64s
    impurity: Float64s  # float64[k], of the node itself
    totals: Float64s  # float64[k, 2], weights of the labels in the node
    present: Float64s  # float64[k, 2], among the examples with the feature

    def split(self, at: int) -> Split:
        """Return one of them."""
        n0, n1 = self.totals[at].tolist()
        a, b = self.present[at].tolist()
        n = n0 + n1
        score, impurity = float(self.score[at]), float(self.impurity[at])
        behind = impurity - float(self.runner_up_score[at])
        return Split(
            model=self.model,
            node=0,
            feature=self.feature[at],
            kind=None if self.feature[at] is None else "binary",
            threshold=None,
            criterion=self.criterion,
            score=score / n if n else 0.0,
            gain=(impurity - score) / n if n else 0.0,
            runner_up=self.runner_up[at],
            runner_up_gain=None if self.runner_up[at] is None else behind / n,
            n=n,
            branches=_BRANCHES,
            counts=((n0 - a, n1 - b), (a, b)),
            classes=self.classes,
            source=Source(self.topic, self.partition, int(self.offset[at]), int(self.row[at]), int(self.time[at])),
        )

    def records(self, topic: str, keys: Sequence[bytes | None], seq: int) -> Iterator[OutRecord]:
        """Yield the records of an output topic, of these keys; `seq` is as of `to_record`."""
        if not len(self.feature):
            return
        form = _form(self.model, self.criterion, tuple(self.classes), self.topic, self.partition)
        pack = msgpack.Packer().pack
        scores, weights = self._scores(form), self._weights(form)
        own = f"{self.model}:{self.partition}:"
        most = LARGEST_RECORD - _BESIDE - len(own.encode())
        columns = (self.feature, self.runner_up, scores, weights, keys)
        numbers = (self.offset.tolist(), self.row.tolist(), self.time.tolist())
        for at, (feature, runner_up, (scored, gained), weighed, key, offset, row, time) in enumerate(
            zip(*columns, *numbers, strict=True)
        ):
            value = b"".join(
                (
                    form.head,
                    pack(feature),
                    form.unsplit if feature is None else form.split,
                    scored,
                    pack(runner_up),
                    form.no_gain if runner_up is None else gained,
                    weighed,
                    pack(offset),
                    form.row,
                    pack(row),
                    form.time,
                    pack(time),
                )
            )
            if len(value) + len(key or b"") > most:
                yield to_record(self.split(at), topic, key, seq)  # which cuts it where it must
                continue
            headers = (_TYPE, ("out_id", f"{own}{offset}:{row}:{seq}".encode()))
            yield OutRecord(topic, self.partition, key, value, headers, time)

    def _scores(self, form: _Form) -> Iterator[tuple[bytes, bytes]]:
        """Yield the parts with score and gain, and with the gain of the runner-up."""
        n = self.totals[:, 0] + self.totals[:, 1]
        some = np.where(n == 0.0, 1.0, n)
        rows = form.scores.repeat(len(n))
        rows["score"] = np.where(n == 0.0, 0.0, self.score / some)
        rows["gain"] = np.where(n == 0.0, 0.0, (self.impurity - self.score) / some)
        behind = form.behind.repeat(len(n))
        behind["gain"] = (self.impurity - self.runner_up_score) / some
        return zip(_cut(rows), _cut(behind), strict=True)

    def _weights(self, form: _Form) -> Iterator[bytes]:
        """Yield the parts with all weights."""
        rows = form.weights.repeat(len(self.totals))
        rows["n"] = self.totals[:, 0] + self.totals[:, 1]
        rows["absent 0"], rows["absent 1"] = (self.totals - self.present).T
        rows["present 0"], rows["present 1"] = self.present.T
        return _cut(rows)


def _cut(rows: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of each row."""
    size = rows.itemsize
    whole = rows.tobytes()
    return (whole[at : at + size] for at in range(0, len(whole), size))


class _Form(NamedTuple):
    """What all splits of a model and partition have in common, between what differs."""

    head: bytes  # up to the feature
    split: bytes  # from there to the score
    unsplit: bytes  # likewise, where no feature splits
    scores: npt.NDArray[Any]  # one row, from the score to the runner-up
    behind: npt.NDArray[Any]  # one row, the gain of the runner-up
    no_gain: bytes  # in its place, where there is none
    weights: npt.NDArray[Any]  # one row, from the weight of all to the offset
    row: bytes  # from the offset to the row
    time: bytes


@functools.lru_cache(16)
def _form(model: str, criterion: str, classes: tuple[Class, ...], topic: str, partition: int) -> _Form:
    pack = msgpack.packb
    between = pack("threshold") + pack(None) + pack("criterion") + pack(criterion) + pack("score") + _FLOAT
    map_of = msgpack.Packer().pack_map_header
    list_of = msgpack.Packer().pack_array_header
    two = list_of(2)
    return _Form(
        head=map_of(_FIELDS) + pack("model") + pack(model) + pack("node") + pack(0) + pack("feature"),
        split=pack("kind") + pack("binary") + between,
        unsplit=pack("kind") + pack(None) + between,
        scores=_row("score", pack("gain") + _FLOAT, "gain", pack("runner_up")),
        behind=_row(pack("runner_up_gain") + _FLOAT, "gain"),
        no_gain=pack("runner_up_gain") + pack(None),
        weights=_row(
            *(pack("n") + _FLOAT, "n", pack("branches") + pack(_BRANCHES) + pack("counts") + two + two + _FLOAT),
            *("absent 0", _FLOAT, "absent 1", two + _FLOAT, "present 0", _FLOAT, "present 1"),
            b"".join(
                (
                    *(pack("classes"), pack(classes), pack("source"), map_of(len(Source._fields))),
                    *(pack("topic"), pack(topic), pack("partition"), pack(partition), pack("offset")),
                )
            ),
        ),
        row=pack("row"),
        time=pack("time"),
    )


def _row(*parts: str | bytes) -> npt.NDArray[Any]:
    """Return an array of one row: bytes as they are, and float64 as msgpack has them under the names given."""
    fields = [
        (part, ">f8") if isinstance(part, str) else (f"#{at}", f"V{len(part)}") for at, part in enumerate(parts)
    ]
    row = np.zeros(1, np.dtype(fields))
    for at, part in enumerate(parts):
        if isinstance(part, bytes):
            row[f"#{at}"] = np.void(part)
    return row
