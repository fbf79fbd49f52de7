"""Results to record bytes: the formats of the output topic. They are a contract: add fields, never rename.

A value is a msgpack map whose fields come in the order in which the class declares them; `source`
is a map of its own. Where the settings say so it is a JSON object, see result_json.py. The headers are `type`
(split, tree, prediction, evaluation, drift, expired, let-go or dead-letter) and `out_id`. All numbers must be
Python's own, so that one result has one encoding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgpack

from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.regression import (
    RegressionEvaluation,
    RegressionMeasures,
    RegressionPrediction,
    RegressionSplit,
    RegressionTree,
)
from worker.codec.result_json import from_json, is_json, to_json
from worker.log.port import LARGEST_RECORD, Headers, OutRecord

Feature: TypeAlias = int | str
Kind: TypeAlias = str  # of a feature: binary, nominal, numeric; or category, a nominal one against all others
Class: TypeAlias = int | str
Form: TypeAlias = Literal["msgpack", "json"]  # of a result


class Source(NamedTuple):
    """Where a result comes from.

    Parameters
    ----------
    topic, partition, offset
        The input record.
    row
        Row inside a columnar record, 0 for a single event.
    time
        Event time in ms, at least 1; it is the output record's timestamp too.
    """

    topic: str
    partition: int
    offset: int
    row: int
    time: int


class Split(NamedTuple):
    """The split that a model holds best, or that a node of a tree has made.

    Parameters
    ----------
    model
        Name of the model in the settings; the record's key tells which instance.
    node
        Number of the tree's node, 0 for a model that is one split. It stays the same for as long as the node is
        there, in snapshots too, and no other node of the tree gets it.
    feature
        Id or name of the feature, None where no feature splits.
    kind
        What the feature's values are, None where no feature splits.
    threshold
        Of a numeric feature; of kind category the category; else None.
    criterion
        Name of the criterion, such as "gini" or "entropy".
    score
        Weighted impurity after the split.
    gain
        Impurity before the split minus `score`.
    runner_up, runner_up_gain
        The second best feature and its gain, None where there is none.
    n
        Weight of the examples at the node.
    branches
        0 and 1: absent and present, at most the threshold and above, another category and the one. Of a nominal
        feature the categories, 0 being absent.
    counts
        A row for each branch: the weight of every class, in the order of `classes`.
    classes
        The class labels.
    source
        The event that changed the split.
    left_out
        How many branches the record has no room for, those of least weight; the field is there where it is not 0.
    """

    model: str
    node: int
    feature: Feature | None
    kind: Kind | None
    threshold: float | None
    criterion: str
    score: float
    gain: float
    runner_up: Feature | None
    runner_up_gain: float | None
    n: float
    branches: Sequence[int]
    counts: Sequence[Sequence[float]]
    classes: Sequence[Class]
    source: Source
    left_out: int = 0


class Tree(NamedTuple):
    """A tree, or a part of one that is too large for a record (tree_parts.py). Nodes are columns of equal length.

    A node comes before its children, these in the order of their branches. A tree that has seen nothing has none.

    Parameters
    ----------
    model
        Name of the model in the settings.
    version
        Rises with every change: how many inserts and deletes the model had applied.
    chunk, chunks
        Which part of how many, from 0.
    node
        The number of each node, see `Split.node`; the root comes first.
    parent
        The number of the node above, -1 of the root.
    branch
        Which of the parent's branches leads here, see `Split.branches`; 0 of the root.
    feature
        What each node tests: an id, or (where `names` is given) an index into it; None at a leaf.
    kind
        What that feature's values are; None at a leaf.
    threshold
        Of a numeric feature; of kind category the category; else None.
    counts
        One row a node: the weight of every class, in the order of `classes`.
    classes
        The class labels.
    names
        The feature names in use, ascending by their bytes; None for a model of ids.
    parameters
        The parameters that the tree was grown with, in the order of their names.
    source
        The event that the snapshot was taken after.
    tree, trees, weight
        Of a forest: which tree it is, from 0, of how many, and how much its vote weighs. The records of its trees
        follow each other. A model of single trees has none of these fields.
    """

    model: str
    version: int
    chunk: int
    chunks: int
    node: Sequence[int]
    parent: Sequence[int]
    branch: Sequence[int]
    feature: Sequence[int | None]
    kind: Sequence[Kind | None]
    threshold: Sequence[float | None]
    counts: Sequence[Sequence[float]]
    classes: Sequence[Class]
    names: Sequence[str] | None
    parameters: dict[str, bool | int | float | str | None]
    source: Source
    tree: int | None = None
    trees: int = 1
    weight: float = 1.0


class Prediction(NamedTuple):
    """The answer to a predict.

    Parameters
    ----------
    model
        Name of the model in the settings.
    id
        The request's id, None without one.
    label
        The predicted class or number, None where the model cannot tell yet.
    weights
        Weight of every class at the leaf, in the order of the model's classes.
    leaf
        Number of the leaf.
    known
        Whether the model of this key has seen any example.
    source
        The request.
    """

    model: str
    id: int | str | None
    label: int | float | str | None
    weights: Sequence[float]
    leaf: int
    known: bool
    source: Source


class Measures(NamedTuple):
    """How good predictions were, weighted; None where there were none to judge by.

    Parameters
    ----------
    weight
        Of the examples evaluated.
    accuracy
        Share that was predicted rightly.
    kappa
        Cohen's: agreement beyond chance, over the most that could be.
    f1
        Of each class, in the order of the model's classes.
    macro_f1
        Mean of `f1` over the classes that occurred or were predicted.
    log_loss
        Mean of -ln of the share of weight that the true class was given.
    majority, no_change
        Accuracy of always saying the key's most frequent label before the example, or its last one.
    kappa_m, kappa_temporal
        1 less the error over that of `majority`, or of `no_change`; None where that is 0.
    """

    weight: float
    accuracy: float | None
    kappa: float | None
    f1: Sequence[float]
    macro_f1: float | None
    log_loss: float | None
    majority: float | None = None
    no_change: float | None = None
    kappa_m: float | None = None
    kappa_temporal: float | None = None


class Evaluation(NamedTuple):
    """How good a model name is in a partition, over all its keys: every example is predicted, then learned.

    The record has no key.

    Parameters
    ----------
    model
        Name of the model in the settings.
    examples
        How many were evaluated so far.
    total, recent
        Over all of them, and over the last `window`.
    window
        How many examples `recent` covers at most.
    classes
        The class labels.
    source
        The last example.
    """

    model: str
    examples: int
    total: Measures
    recent: Measures
    window: int
    classes: Sequence[Class]
    source: Source


class DelayedEvaluation(Evaluation):
    """The same of the answers that were given to predicts, once their labels came.

    The last example is the one whose label came last. There is no loss, as answers are kept without their weights,
    and no baselines.
    """

    __slots__ = ()


class RegressionDelayedEvaluation(RegressionEvaluation):
    """The same of answers that are numbers; there are no baselines."""

    __slots__ = ()


class Drift(NamedTuple):
    """The error of a model name in a partition has risen, over all its keys. The record has no key.

    Parameters
    ----------
    model
        Name of the model in the settings.
    examples
        How many were evaluated so far.
    before, after
        Share of wrong predictions among the examples before the change, as far as they were remembered, and since.
    width
        How many examples that is since.
    source
        The example that shows it.
    """

    model: str
    examples: int
    before: float
    after: float
    width: int
    source: Source


class Expired(NamedTuple):
    """A key that had no event for so long that its model was dropped, as by a tombstone. The record has its key.

    Parameters
    ----------
    model
        Name of the model in the settings.
    idle_since
        What the partition's clock showed when the key was last used, in ms.
    expired
        How many keys of the model have gone so in the partition, with this one.
    due
        How many more are due and go with the next events.
    source
        The event before which it went: of any key.
    """

    model: str
    idle_since: int
    expired: int
    due: int
    source: Source


class LetGo(NamedTuple):
    """An example that left a window by time. Of every hundred one is told, the first among them; without a key.

    Parameters
    ----------
    model
        Name of the model in the settings.
    since
        What the partition's clock showed when the example came, in ms.
    gone
        How many examples of the model have gone so in the partition, with this one.
    due
        How many more are due and go with the next events.
    source
        The event before which it went: of any key.
    """

    model: str
    since: int
    gone: int
    due: int
    source: Source


class DeadLetter(NamedTuple):
    """A record, or rows of one, that was refused. Made by `dead_letter`, which cuts what does not fit.

    Parameters
    ----------
    reason, detail
        Why: a code of `Reason`, and a sentence for a person. Of the first row where rows are refused.
    model
        Name of the model that refused it, None where it was no event to begin with.
    source
        The record; its row is that of the first refused row, 0 where the whole record is refused.
    rows
        (row, reason, detail) of the first refused rows, a single event being row 0; empty where the record
        could not be read at all.
    refused
        How many rows were refused, which may be more than `rows` lists; 0 where it could not be read.
    key
        The record's key, cut to bounds.key_bytes.
    value
        The record's value, cut to bounds.dead_letter_bytes, and where a record could not hold the rest.
    size
        Bytes of the whole value, None for a tombstone.
    sha256
        Digest of the whole value where it was cut, else None.
    """

    reason: Reason
    detail: str
    model: str | None
    source: Source
    rows: Sequence[tuple[int, Reason, str]]
    refused: int
    key: bytes | None
    value: bytes | None
    size: int | None
    sha256: bytes | None


AnyTree: TypeAlias = Tree | RegressionTree
Output: TypeAlias = (
    Split
    | Tree
    | Prediction
    | Evaluation
    | DelayedEvaluation
    | Drift
    | Expired
    | LetGo
    | DeadLetter
    | RegressionSplit
    | RegressionTree
    | RegressionPrediction
    | RegressionEvaluation
    | RegressionDelayedEvaluation
)

LISTED_ROWS = 100  # of a dead letter
_OF_BYTES = ("key", "value", "sha256")  # its fields
_LEFT_OUT = 16  # bytes of the field `left_out`
_SHORT = 200  # characters of a reason's detail, where a dead letter has too little room for them all

_TYPES: dict[type[Output], str] = {
    Split: "split",
    Tree: "tree",
    Prediction: "prediction",
    Evaluation: "evaluation",
    DelayedEvaluation: "delayed-evaluation",
    Drift: "drift",
    Expired: "expired",
    LetGo: "let-go",
    DeadLetter: "dead-letter",
    RegressionSplit: "split",
    RegressionTree: "tree",
    RegressionPrediction: "prediction",
    RegressionEvaluation: "evaluation",
    RegressionDelayedEvaluation: "delayed-evaluation",
}
# What a record of each type may be; its fields tell which.
_CLASSES = {
    name.encode(): [kind for kind, each in _TYPES.items() if each == name]
    for name in dict.fromkeys(_TYPES.values())
}
_MEASURES: dict[type[Output], type[Measures | RegressionMeasures]] = {
    Evaluation: Measures,
    DelayedEvaluation: Measures,
    RegressionEvaluation: RegressionMeasures,
    RegressionDelayedEvaluation: RegressionMeasures,
}


def dead_letter(
    source: Source,
    rows: Sequence[tuple[int | None, Reason, str]],
    key: bytes | None,
    value: bytes | None,
    bounds: Bounds,
    model: str | None = None,
    form: Form = "msgpack",
) -> DeadLetter:
    """Make the dead letter of one record.

    Parameters
    ----------
    source
        The record; its row is replaced by that of the first refused row.
    rows
        (row, reason, detail) of each fault, ascending, at least one; row None: the whole record.
    key, value
        The record's own.
    bounds
        How much of key and value is kept.
    model
        The model that refused it, if one did.
    form
        Of its record, which must have room for what is kept.
    """
    row, reason, detail = rows[0]
    listed = [(row, why, text) for row, why, text in rows if row is not None]
    letter = DeadLetter(
        reason=reason,
        detail=detail,
        model=model,
        source=Source(source.topic, source.partition, source.offset, row or 0, source.time),
        rows=listed[:LISTED_ROWS],
        refused=len(listed),
        key=None if key is None else key[: bounds.key_bytes],
        value=None,
        size=None if value is None else len(value),
        sha256=None,
    )
    wanted = 0 if value is None else min(len(value), bounds.dead_letter_bytes)
    room = _room_beside(letter, form)
    if room < wanted:
        letter = letter._replace(
            detail=_short(letter.detail), rows=[(at, why, _short(text)) for at, why, text in letter.rows]
        )
        room = _room_beside(letter, form)
    if value is None:
        return letter
    kept = value[: min(room, wanted)]
    return letter._replace(value=kept, sha256=hashlib.sha256(value).digest() if len(kept) < len(value) else None)


def _room_beside(letter: DeadLetter, form: Form) -> int:
    """Return how many bytes of its value a dead letter's record has room for, one that has none yet."""
    more = 4 + 33 if form == "msgpack" else 2 + 46  # how long the value is, or its quotes; the digest
    room = LARGEST_RECORD - to_record(letter, "", letter.key, form=form).size - more
    return room if form == "msgpack" else room // 4 * 3  # base64


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def to_record(output: Output, topic: str, key: bytes | None, seq: int = 0, form: Form = "msgpack") -> OutRecord:
    """Return a result as a record of the output partition that has the source partition's number.

    Parameters
    ----------
    output
        The result.
    topic
        The output topic.
    key
        The model key; for a dead letter its own (cut) key.
    seq
        Number of the result among those of the same model, offset and row.
    form
        Of its value.
    """
    source = output.source
    if isinstance(output, Split | RegressionSplit):
        least = len(output.branches) * _branch_bytes(output, form)
        output = _with_fewer_branches(output, least - LARGEST_RECORD, form) if least > LARGEST_RECORD else output
    value = encode(output, form)
    record = OutRecord(topic, source.partition, key, value, headers(output, seq), max(source.time, 1))
    if isinstance(output, Split | RegressionSplit) and record.size > LARGEST_RECORD:
        shorter = _with_fewer_branches(output, record.size - LARGEST_RECORD, form)
        return to_record(shorter, topic, key, seq, form)
    return record


def branch_bytes(classes: int, form: Form = "msgpack") -> int:
    """Return how many bytes a branch of a split and its weights take at least."""
    return 2 + 9 * classes if form == "msgpack" else 4 + 4 * classes  # 5,[1.0,2.0],


def _branch_bytes(split: Split | RegressionSplit, form: Form) -> int:
    return branch_bytes(len(split.classes) if isinstance(split, Split) else 3, form)  # n, value and variance


def _with_fewer_branches(split: Split | RegressionSplit, excess: int, form: Form) -> Split | RegressionSplit:
    """Return a split of so many bytes less: without the branches of least weight, the last ones of equals."""
    most = max(0, len(split.branches) - -(-(excess + _LEFT_OUT) // _branch_bytes(split, form)))
    if isinstance(split, Split):
        weight = [sum(counts) for counts in split.counts]
    else:
        weight = [n for n, _, _ in split.labels]
    heaviest = sorted(range(len(split.branches)), key=lambda at: (-weight[at], at))
    kept = sorted(heaviest[:most])
    split = split._replace(
        branches=[split.branches[at] for at in kept],
        left_out=split.left_out + len(split.branches) - len(kept),
    )
    if isinstance(split, Split):
        return split._replace(counts=[split.counts[at] for at in kept])
    return split._replace(labels=[split.labels[at] for at in kept])


def encode(output: Output, form: Form = "msgpack") -> bytes:
    """Return the value of a result's record."""
    if form == "json":
        return to_json(fields_of(output))
    packed: bytes = msgpack.packb(fields_of(output))
    return packed


def fields_of(output: Output) -> dict[str, Any]:
    """Return a result's fields by name, in order, those that have fields of their own likewise."""
    fields = output._asdict()
    fields["source"] = output.source._asdict()
    if isinstance(output, Split | RegressionSplit) and not output.left_out:
        del fields["left_out"]
    if isinstance(output, Tree) and output.tree is None:
        del fields["tree"], fields["trees"], fields["weight"]
    if isinstance(output, RegressionSplit) and output.runner_up is None:
        del fields["runner_up"]
    if isinstance(output, RegressionPrediction) and output.low is None:
        del fields["low"], fields["high"]
    if isinstance(output, Evaluation | RegressionEvaluation):
        fields["total"] = _fields_of_measures(output.total)
        fields["recent"] = _fields_of_measures(output.recent)
    return fields


def _fields_of_measures(measures: Measures | RegressionMeasures) -> dict[str, Any]:
    fields = measures._asdict()
    if isinstance(measures, RegressionMeasures) and measures.coverage is None:
        del fields["coverage"], fields["width"]
    return fields


def headers(output: Output, seq: int) -> Headers:
    """Return a result's headers: its type, and the id model:partition:offset:row:seq.

    The model of a dead letter that no model refused is empty.
    """
    source = output.source
    out_id = f"{output.model or ''}:{source.partition}:{source.offset}:{source.row}:{seq}"
    return ("type", _TYPES[type(output)].encode()), ("out_id", out_id.encode())


def decode_output(value: bytes, headers: Headers) -> Output:
    """Read back what `to_record` wrote.

    Fields of a later version that this one does not know are left out.

    Raises
    ------
    ValueError
        If the headers name no type known here, or the value is not of that type.
    """
    name = dict(headers).get("type")
    kinds = _CLASSES.get(name) if name is not None else None
    if kinds is None:
        expected = ", ".join(dict.fromkeys(_TYPES.values()))
        raise ValueError(f"expected the header type to be one of {expected}, found {name!r}; read an output topic")
    try:
        of_bytes = _OF_BYTES if kinds == [DeadLetter] else ()
        fields: dict[str, Any] = from_json(value, of_bytes) if is_json(value) else msgpack.unpackb(value)
        kind = next((each for each in kinds if _needed(each) <= fields.keys()), kinds[0])
        known = _known(kind, fields)
        known["source"] = Source(**{field: fields["source"][field] for field in Source._fields})
        if (measures := _MEASURES.get(kind)) is not None:
            for field in ("total", "recent"):
                known[field] = measures(**_known(measures, known[field]))
        if kind is DeadLetter:
            known["reason"] = Reason(known["reason"])
            known["rows"] = [(row, Reason(reason), detail) for row, reason, detail in known["rows"]]
        return kind(**known)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, msgpack.UnpackException) as error:
        what = _TYPES[kinds[0]]
        raise ValueError(f"expected a {what} record, found other bytes; read an output topic") from error


def _needed(kind: type[Output]) -> set[str]:
    """Return the fields that a record of a type always has."""
    return set(kind._fields) - kind._field_defaults.keys()


def _known(kind: type[Output | Measures | RegressionMeasures], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a type has; those that have a default may be missing."""
    return {name: fields[name] for name in kind._fields if name in fields or name not in kind._field_defaults}
