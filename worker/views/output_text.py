"""Records of a topic for people: tables of splits and predictions, dead letters, one line for each record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text

from worker.codec import (
    AnyTree,
    DeadLetter,
    DelayedEvaluation,
    Drift,
    Evaluation,
    Expired,
    LetGo,
    Measures,
    Output,
    Prediction,
    RegressionDelayedEvaluation,
    RegressionEvaluation,
    RegressionMeasures,
    RegressionPrediction,
    RegressionSplit,
    RegressionTree,
    Split,
    Tree,
)
from worker.codec.bounds import Bounds
from worker.codec.encode import Class, Feature
from worker.codec.events import DELETE, DROP, INSERT, LABEL, PREDICT, WEIGHT_UNIT
from worker.codec.reference import Event, decode
from worker.safe_text import printable
from worker.views.fitting import Column, Sheet
from worker.views.record_json import other_format
from worker.views.split_text import regression_split_line, split_line
from worker.views.tree_nodes import counted_word, feature_at, tree_words
from worker.views.words import (
    branch_word,
    brief_weight_word,
    class_word,
    deviation_word,
    feature_word,
    gain_word,
    key_word,
    model_word,
    number_word,
    share_word,
    topic_word,
    value_word,
    weight_word,
)

_HEX, _TEXT = 24, 72  # bytes of a dead letter that fit a line of 80 columns
_OPS = {INSERT: "insert", DELETE: "delete", PREDICT: "predict", DROP: "drop the model", LABEL: "label"}
_FEW = 3  # classes whose weights are told one by one
_FEATURES = 12  # of an event in a line
_COUNTED = {
    "at the split": "inner ones as of their split",
    "live": "all counts live",
    "so far": "all counts so far",
}
BASELINES = "beside always saying the key's most frequent label, or its last one"
AGAINST = ("accuracy", "majority", "no change", "kappa M", "kappa temporal")  # headings of these
_SHORT = 15  # characters of a topic that stay on a line with a number


def splits_table(model: str, splits: Iterable[tuple[bytes | None, Split]]) -> Sheet:
    """Return the splits of a model's keys; weights of a few classes are in the order that the header names."""
    rows = list(splits)
    names = rows[0][1].classes if rows else ()
    few = len(names) <= _FEW
    classes = "/".join(map(class_word, names)) if few else "heaviest of all"
    kinds = {split.kind for _, split in rows}
    numeric, categories = "numeric" in kinds, "category" in kinds
    low = "absent" + ", ≤" * numeric + ", ≠" * categories
    high = "present" + ", >" * numeric + ", =" * categories
    columns = [
        Column("key"),
        Column("feature", style="bold"),
        Column("gain", is_number=True, style="green"),
        Column("runner-up"),
        Column("n", is_number=True),
        Column(f"{low}\n{classes}", is_number=few),
        Column(f"{high}\n{classes}", is_number=few),
    ]
    lines: list[list[str | Text]] = []
    for key, split in rows:
        feature = feature_word(split.feature)
        if split.threshold is not None:
            feature += f" {branch_word(split.kind, split.threshold, 1)}"
        runner_up = Text(feature_word(split.runner_up))
        if split.runner_up is not None:
            runner_up.append(f" {gain_word(split.runner_up_gain)}", "dim")
        sides = [_side(branch, split.classes, few=few) for branch in split.counts]
        lines.append(
            [
                key_word(key),
                feature,
                gain_word(split.gain),
                runner_up,
                weight_word(split.n),
                *(sides if len(sides) == 2 else ["", f"{len(sides) + split.left_out} branches"]),
            ]
        )
    return Sheet(columns, lines, f"{model_word(model)}: the latest split of each key")


def _side(weights: Sequence[float], classes: Sequence[Class], *, few: bool) -> str:
    """Return what is on a side of a split: each weight, or of many classes the heaviest and how much there is."""
    if few:
        return "/".join(map(brief_weight_word, weights))
    best = max(range(len(weights)), key=weights.__getitem__)
    return f"{class_word(classes[best])}: {brief_weight_word(weights[best])} of {brief_weight_word(sum(weights))}"


def predictions_table(predictions: Iterable[tuple[bytes | None, Prediction]]) -> Sheet:
    """Return the predictions, each with the weight of every class at its leaf."""
    columns = [
        *(Column("key"), Column("model"), Column("id"), Column("label", style="bold")),
        Column("weights", is_number=True, left=True),
        *(Column("leaf", is_number=True), Column("offset", is_number=True)),
    ]
    lines = [
        [
            key_word(key),
            model_word(prediction.model),
            _id_word(prediction.id),
            _label_word(prediction),
            _weights(prediction.weights),
            str(prediction.leaf),
            f"{prediction.source.partition}/{prediction.source.offset}",
        ]
        for key, prediction in predictions
    ]
    return Sheet(columns, lines, "predictions")


def regression_splits_table(model: str, splits: Iterable[tuple[bytes | None, RegressionSplit]]) -> Sheet:
    """Return the latest split of each key: what it divides, and the labels on both sides."""
    columns = [
        Column("key"),
        Column("feature", style="bold"),
        Column("merit", is_number=True, style="green"),
        Column("n", is_number=True),
        Column("value", is_number=True),
        Column("absent, ≤", is_number=True),
        Column("present, >", is_number=True),
    ]
    lines: list[list[str | Text]] = []
    for key, split in splits:
        feature = feature_word(split.feature)
        if split.threshold is not None:
            feature += f" > {number_word(split.threshold)}"
        sides = [value_word(value, variance) for _, value, variance in split.labels]
        about = (number_word(split.merit), brief_weight_word(split.n), number_word(split.value))
        if split.kind == "nominal":
            sides = ["", f"{len(sides) + split.left_out} branches"]
        lines.append([key_word(key), feature, *about, *sides])
    return Sheet(columns, lines, f"{model_word(model)}: the latest split of each key")


def regression_predictions_table(predictions: Iterable[tuple[bytes | None, RegressionPrediction]]) -> Sheet:
    """Return the predictions of numbers, each with what its leaf knows, and intervals where there are any."""
    predictions = list(predictions)
    has_intervals = any(prediction.low is not None for _, prediction in predictions)
    columns = [
        *(Column("key"), Column("model"), Column("id"), Column("value", style="bold", is_number=True)),
        *((Column("interval", is_number=True),) if has_intervals else ()),
        *(Column("deviation", is_number=True), Column("n", is_number=True)),
        *(Column("leaf", is_number=True), Column("offset", is_number=True)),
    ]
    lines = [
        [
            key_word(key),
            model_word(prediction.model),
            _id_word(prediction.id),
            _value_word(prediction),
            *((_interval_word(prediction),) if has_intervals else ()),
            "" if prediction.deviation is None else number_word(prediction.deviation),
            weight_word(prediction.n),
            str(prediction.leaf),
            f"{prediction.source.partition}/{prediction.source.offset}",
        ]
        for key, prediction in predictions
    ]
    return Sheet(columns, lines, "predictions of numbers")


ERRORS = "each label was predicted first; beside the mean of the key's labels, and its last one"
_SAID = (("model", ""), ("mean", "mean_"), ("no change", "no_change_"))  # by whom, and how its measures begin


def errors_rows(model: str, over: Sequence[str], measures: Any) -> list[list[str | Text]]:
    """Return how good predictions of numbers were, a row each for the model and what costs nothing.

    Measures have the fields of `RegressionMeasures`; what there is none of is None or not a number.
    """
    rows: list[list[str | Text]] = []
    for by, start in _SAID:
        mae, rmse, r2 = (getattr(measures, f"{start}{each}") for each in ("mae", "rmse", "r2"))
        told = (_error_word(mae), _error_word(rmse), share_word(None if _is_none(r2) else r2))
        rows.append([model_word(model), *over, by, *told])
    return rows


def _is_none(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _error_word(error: float | None) -> str:
    return "-" if error is None or math.isnan(error) else number_word(error)


def errors_columns(*more: str) -> list[Column]:
    """Return the columns of such rows."""
    numbers = [Column(each, is_number=True) for each in more]
    return [Column("model"), *numbers, Column("says"), *(Column(e, is_number=True) for e in ("MAE", "RMSE", "R2"))]


def errors_table(evaluations: Iterable[RegressionEvaluation]) -> Sheet:
    """Return how good models of numbers were: each over its last examples, and over all."""
    lines: list[list[str | Text]] = []
    for each in evaluations:
        for over, measures in _measured(each):
            lines += errors_rows(each.model, [over], measures)
    return Sheet(errors_columns("over"), lines, ERRORS)


def intervals_table(evaluations: Iterable[RegressionEvaluation]) -> Sheet | None:
    """Return how many labels were within the intervals of predictions; None where there were no intervals."""
    columns = [Column("model"), *(Column(each, is_number=True) for each in ("over", "within", "mean width"))]
    lines: list[list[str | Text]] = [
        [model_word(each.model), over, share_word(measures.coverage), number_word(measures.width)]
        for each in evaluations
        for over, measures in _measured(each)
        if measures.coverage is not None
    ]
    return Sheet(columns, lines, "intervals: the share of labels within") if lines else None


def evaluations_table(evaluations: Iterable[Evaluation]) -> Sheet:
    """Return how good models were: each over its last examples, and over all."""
    headings = ("over", "accuracy", "kappa", "macro F1", "log-loss", "offset")
    columns = [Column("model"), *(Column(heading, is_number=True) for heading in headings)]
    lines = []
    for each in evaluations:
        place = f"{each.source.partition}/{each.source.offset}"
        for over, measures in _measured(each):
            shares = (measures.accuracy, measures.kappa, measures.macro_f1, measures.log_loss)
            lines.append([model_word(each.model), over, *map(share_word, shares), place])
    return Sheet(columns, lines, "evaluation: every example was predicted, then learned")


def baselines_table(evaluations: Iterable[Evaluation]) -> Sheet:
    """Return how good models were beside what costs nothing."""
    columns = [Column("model"), *(Column(heading, is_number=True) for heading in ("over", *AGAINST))]
    lines = []
    for each in evaluations:
        for over, measures in _measured(each):
            baselines = (measures.majority, measures.no_change, measures.kappa_m, measures.kappa_temporal)
            lines.append([model_word(each.model), over, *map(share_word, (measures.accuracy, *baselines))])
    return Sheet(columns, lines, BASELINES)


def delayed_table(evaluations: Sequence[DelayedEvaluation | RegressionDelayedEvaluation]) -> Sheet:
    """Return how good answers were that had been given when the labels came."""
    names = {
        "accuracy": "accuracy",
        "kappa": "kappa",
        "macro_f1": "macro F1",
        "mae": "MAE",
        "rmse": "RMSE",
        "r2": "R2",
    }
    lines, used = [], [name for name in names if any(hasattr(each.total, name) for each in evaluations)]
    for each in evaluations:
        for over, measures in _measured(each):
            lines.append(
                [model_word(each.model), over, *(share_word(getattr(measures, name, None)) for name in used)]
            )
    columns = [
        Column("model"),
        *(Column(each, is_number=True) for each in ("over", *(names[name] for name in used))),
    ]
    return Sheet(columns, lines, "delayed evaluation: of answers given")


def drifts_table(drifts: Iterable[Drift]) -> Sheet:
    """Return when the error of models rose."""
    headings = ("error before", "since", "over", "examples", "offset")
    columns = [Column("model"), *(Column(heading, is_number=True) for heading in headings)]
    lines = [
        [
            model_word(each.model),
            *(share_word(each.before), share_word(each.after), f"{each.width:,}", f"{each.examples:,}"),
            f"{each.source.partition}/{each.source.offset}",
        ]
        for each in drifts
    ]
    return Sheet(columns, lines, "drift: the error has risen")


def _measured(evaluation: Evaluation | RegressionEvaluation) -> list[tuple[str, Any]]:
    """Return what an evaluation is over, in words, and the measures."""
    examples = evaluation.examples
    return [
        (f"last {min(evaluation.window, examples):,}", evaluation.recent),
        (f"all {examples:,}", evaluation.total),
    ]


def tree_heading(key: bytes | None, tree: AnyTree) -> Text:
    """Return what to write above the drawing of a tree."""
    line = Text(f"{model_word(tree.model)}: {tree_words(tree)} of {key_word(key)}", "bold")
    line.append(_size_words(tree), "not bold dim")
    return line.append(counted_words(tree), "not bold dim")


def forest_table(key: bytes | None, trees: Sequence[Tree]) -> Sheet:
    """Return how large each tree of a forest is, how much its vote weighs, and what its root tests."""
    columns = [
        Column("tree", is_number=True),
        Column("vote", is_number=True),
        Column("nodes", is_number=True),
        Column("examples", is_number=True),
        Column("root tests", style="bold"),
    ]
    lines = [
        [
            str(tree.tree),
            weight_word(tree.weight),
            f"{len(tree.node):,}",
            weight_word(sum(tree.counts[0]) if tree.node else 0.0),
            feature_at(tree, 0) if tree.node else "-",
        ]
        for tree in trees
    ]
    first = trees[0]
    title = f"{model_word(first.model)}: forest of {key_word(key)}  version {first.version:,}, {first.trees} trees"
    return Sheet(columns, lines, title)


def counted_words(tree: AnyTree) -> str:
    """Return of when the counts at inner nodes are, as said behind a tree's size; empty where there are none."""
    when = _COUNTED.get(counted_word(tree)) if len(tree.node) > 1 else None
    return "" if when is None else f", {when}"


def dead_letter_text(letter: DeadLetter) -> Text:
    """Return a dead letter in a few lines: reason, place, detail and the first bytes as hex and as text."""
    source = letter.source
    # A long name may be folded, and a number that hangs on it would be too.
    between = "/" if len(source.topic) <= _SHORT else " partition "
    where = f"{topic_word(source.topic)}{between}{source.partition} offset {source.offset}"
    text = Text(f"{letter.reason}", "bold red").append(f"  {where}", "default not bold")
    text.append(f"  key {key_word(letter.key)}", "default not bold")
    if letter.model is not None:
        text.append(f"  refused by {model_word(letter.model)}", "default not bold")
    for row, reason, detail in letter.rows[:3] if len(letter.rows) > 1 else ():
        text.append(f"\n  row {row}: {reason}: {printable(detail, 400)}", "default not bold")
    if letter.refused > 3:
        text.append(f"\n  {letter.refused:,} rows in all", "default not bold")
    if len(letter.rows) <= 1:
        place = f"row {source.row}: " if source.row else ""
        text.append(f"\n  {place}{printable(letter.detail, 400)}", "default not bold")
    if letter.value is not None:
        seen = letter.value[:_TEXT].decode("utf-8", "replace").replace("\ufffd", "·")
        text.append(f"\n  hex   {letter.value[:_HEX].hex(' ')}", "dim not bold")
        text.append("\n  text  " + "".join(c if c.isprintable() else "·" for c in seen), "dim not bold")
        text.append(f"\n  size  {letter.size or 0:,} bytes", "dim not bold")
    return text


def output_line(key: bytes | None, output: Output) -> Text:
    """Return a result as one line; print it without wrapping, the end may be cut."""
    line = Text(f"{key_word(key)}  ", "cyan", no_wrap=True, overflow="ellipsis")
    match output:
        case Split():
            return line.append(f"{model_word(output.model)}  ", "default").append_text(split_line(output))
        case RegressionSplit():
            return line.append(f"{model_word(output.model)}  ", "default").append_text(
                regression_split_line(output)
            )
        case Tree() | RegressionTree():
            return line.append(f"{model_word(output.model)}  tree", "default").append(
                _size_words(output), "dim default"
            )
        case Prediction():
            what = f"{model_word(output.model)}  {_id_word(output.id)} is "
            line.append(what, "default").append(_label_word(output), "bold default")
            return line.append(f"  {_weights(output.weights)}", "dim default")
        case RegressionPrediction():
            what = f"{model_word(output.model)}  {_id_word(output.id)} is "
            line.append(what, "default").append(_value_word(output), "bold default")
            return line.append(f"  {_leaf_words(output)}", "dim default")
        case RegressionEvaluation():
            words = _errors_words(output.recent)
            what = "  answers given: " if isinstance(output, RegressionDelayedEvaluation) else "  "
            line.append(f"{model_word(output.model)}{what}", "default").append(words, "bold default")
            return line.append(f"  of the last {output.window:,} of {output.examples:,}", "dim default")
        case Evaluation():
            what = "  answers given: " if isinstance(output, DelayedEvaluation) else "  "
            line.append(f"{model_word(output.model)}{what}", "default").append(
                _measures_words(output.recent), "bold default"
            )
            return line.append(f"  of the last {output.window:,} of {output.examples:,}", "dim default")
        case Drift():
            what = f"{model_word(output.model)}  the error has risen "
            line.append(what, "default").append(
                f"from {share_word(output.before)} to {share_word(output.after)}", "bold red"
            )
            since = f"  of the last {output.width:,} of {output.examples:,}"
            return line.append(since, "dim default")
        case Expired():
            line.append(f"{model_word(output.model)}  the key has expired", "default")
            return line.append(f"  {output.expired:,} have so far, {output.due:,} more are due", "dim default")
        case LetGo():
            line.append(f"{model_word(output.model)}  an example has left the window", "default")
            return line.append(f"  {output.gone:,} have so far, {output.due:,} more are due", "dim default")
        case DeadLetter():
            line.append(f"{output.reason}", "bold red")
            return line.append(f"  {printable(output.detail, 400)}", "default")


def event_line(key: bytes | None, value: bytes | None, timestamp: int) -> Text:
    """Return an input record as one line: its event, how many it has in columns, or what is wrong with it."""
    line = Text(f"{key_word(key)}  ", "cyan", no_wrap=True, overflow="ellipsis")
    if value is not None and (other := other_format(value)) is not None:
        if "schema" in other:
            return line.append(f"written with schema {other['schema']}, {len(value):,} bytes", "dim default")
        return line.append(printable(value.decode("utf-8", "backslashreplace"), 400), "default")
    rows = decode(value, timestamp, Bounds())
    if len(rows) > 1:
        line.append(f"{len(rows):,} events  ", "default")
    if not rows:
        return line.append("no events", "dim default")
    first = rows[0]
    if not isinstance(first, Event):
        return line.append(f"{first.reason}", "bold red").append(f"  {printable(first.detail, 400)}", "default")
    line.append(_OPS[first.op], "bold default")
    if first.id is not None:
        line.append(f" {_id_word(first.id)}", "default")
    if first.label is not None:
        line.append(f"  {printable(str(first.label), 24)}", "green")
    if first.weight != WEIGHT_UNIT:
        line.append(f"  w {weight_word(first.weight / WEIGHT_UNIT)}", "default")
    features: Sequence[Feature] = first.features[:_FEATURES]
    shown = [
        feature_word(feature) if number == 1 else f"{feature_word(feature)}={number:g}"
        for feature, number in zip(features, first.values, strict=False)
    ]
    more = len(first.features) - len(shown)
    return line.append("  " + " ".join(shown) + (f" and {more:,} more" if more else ""), "default")


def _size_words(tree: AnyTree) -> str:
    nodes = len(tree.node)
    part = f", part {tree.chunk + 1} of {tree.chunks}" if tree.chunks > 1 else ""
    return f"  version {tree.version:,}, {nodes:,} node{'' if nodes == 1 else 's'}{part}"


def _measures_words(measures: Measures) -> str:
    accuracy, f1 = share_word(measures.accuracy), share_word(measures.macro_f1)
    baselines = f"majority {share_word(measures.majority)}  no change {share_word(measures.no_change)}"
    return f"accuracy {accuracy}  {baselines}  macro F1 {f1}  log-loss {share_word(measures.log_loss)}"


def _errors_words(measures: RegressionMeasures) -> str:
    mae, mean, last = map(_error_word, (measures.mae, measures.mean_mae, measures.no_change_mae))
    within = "" if measures.coverage is None else f"  within {share_word(measures.coverage)}"
    return f"MAE {mae}  mean {mean}  no change {last}  R2 {share_word(measures.r2)}{within}"


def _value_word(prediction: RegressionPrediction) -> str:
    return "unknown" if prediction.value is None else number_word(prediction.value)


def _interval_word(prediction: RegressionPrediction) -> str:
    if prediction.low is None or prediction.high is None:
        return ""
    return f"{number_word(prediction.low)} to {number_word(prediction.high)}"


def _leaf_words(prediction: RegressionPrediction) -> str:
    interval = _interval_word(prediction)
    deviation = prediction.deviation
    spread = deviation_word(None if deviation is None else deviation * deviation)
    return "  ".join(each for each in (interval, spread, f"n {brief_weight_word(prediction.n)}") if each)


def _weights(weights: Sequence[float]) -> str:
    return "/".join(map(weight_word, weights))


def _id_word(example: int | str | None) -> str:
    return "-" if example is None else printable(str(example))


def _label_word(prediction: Prediction) -> str:
    return "unknown" if prediction.label is None else class_word(str(prediction.label))
