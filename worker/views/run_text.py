"""What a run led to, for people: its last words."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from worker.views.fitting import Column, Sheet
from worker.views.output_text import AGAINST, BASELINES, ERRORS, errors_columns, errors_rows
from worker.views.words import model_word, share_word, topic_word
from worker.watching.tally import Refused, Tally


def read_words(tally: Tally, group: str) -> str:
    """Return how much was read, in a line."""
    if not tally.records.total():
        return f"nothing to read: the group {group!r} has read all that there is"
    return ", ".join(f"{topic_word(topic)}: {count:,} records" for topic, count in sorted(tally.records.items()))


def models_table(tally: Tally, models: Iterable[str]) -> Sheet:
    """Return what the models did."""
    numbers = ["inserts", "deletes", "predicts", "refused", "splits"]
    if tally.passed_over.total():
        numbers.append("without effect")
    names = sorted(models)
    quality = ["accuracy"] if any(model not in tally.errors for model in names) else []  # numbers have none
    columns = [Column("model"), *(Column(each, is_number=True) for each in [*numbers, *quality])]
    lines = []
    for model in names:
        evaluated = 0 if model in tally.errors else tally.evaluated[model]
        counts = [
            *(tally.applied[model, op] for op in ("insert", "delete", "predict")),
            *(tally.refused_by(model), tally.splits[model], tally.passed_over[model]),
        ][: len(numbers)]
        accuracy = [f"{tally.right[model] / evaluated:.4f}" if evaluated else "-"] if quality else []
        lines.append([model_word(model), *(f"{count:,}" for count in counts), *accuracy])
    return Sheet(columns, lines)


def baselines_table(tally: Tally, models: Iterable[str]) -> Sheet:
    """Return how good the evaluated models were, beside what costs nothing."""
    lines = []
    for model in sorted(models):
        evaluated, right = tally.evaluated[model], tally.right[model]
        if evaluated and model not in tally.errors:
            baselines = (tally.majority[model], tally.no_change[model])
            shares = [each / evaluated for each in (right, *baselines)]
            kappas = [(right - each) / (evaluated - each) if each < evaluated else None for each in baselines]
            lines.append([model_word(model), *map(share_word, [*shares, *kappas])])
    return Sheet([Column("model"), *(Column(each, is_number=True) for each in AGAINST)], lines, BASELINES)


def errors_table(tally: Tally) -> Sheet:
    """Return how good models of numbers were, beside what costs nothing."""
    lines: list[list[str | Text]] = []
    for model, errors in sorted(tally.errors.items()):
        lines += errors_rows(model, [], errors.measures())
    return Sheet(errors_columns(), lines, ERRORS)


def refusals_table(tally: Tally) -> Sheet:
    """Return what was refused, by whom and why."""
    columns = [Column("refused by"), Column("reason"), Column("events", is_number=True), Column("the first")]
    lines = [
        [
            model_word(refuser.model) if refuser.model else "the decoder",
            str(refuser.reason),
            f"{refused.events:,}",
            place_words(refused),
        ]
        for refuser, refused in tally.refused.items()
    ]
    return Sheet(columns, lines)


def place_words(refused: Refused) -> str:
    """Return where the first event was refused."""
    source, offset, row = refused.first
    return f"{topic_word(source.topic)}/{source.partition} offset {offset}{f' row {row}' if row else ''}"
