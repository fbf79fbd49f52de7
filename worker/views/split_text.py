"""A split in one line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from worker.codec.encode import Class, Split
from worker.codec.regression import RegressionSplit
from worker.views.words import (
    branch_word,
    class_word,
    feature_word,
    gain_word,
    number_word,
    value_word,
    weight_word,
)

_CATEGORIES = 4  # of a nominal split in a line


def split_line(split: Split) -> Text:
    """Return a split as one line: the feature, what its branches mostly hold, gain, runner-up and n.

    The important comes first, so that a narrow terminal may cut the end.
    """
    line = Text(no_wrap=True, overflow="ellipsis")
    if split.feature is None:
        return line.append("no split").append(f"  n {weight_word(split.n)}", "dim")
    line.append(feature_word(split.feature), "bold")
    line.append(f"  {_branches(split)}")
    line.append(f"  gain {gain_word(split.gain)}", "green")
    if split.runner_up is not None:
        line.append(f"  next {feature_word(split.runner_up)} {gain_word(split.runner_up_gain)}", "dim")
    return line.append(f"  n {weight_word(split.n)}", "dim")


def regression_split_line(split: RegressionSplit) -> Text:
    """Return a split of a regression tree as one line, see `split_line`."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if split.feature is None:
        line.append("no split").append(f"  {value_word(split.value, split.variance)}")
        return line.append(f"  n {weight_word(split.n)}", "dim")
    words = [branch_word(split.kind, split.threshold, branch) for branch in split.branches]
    told = [value_word(value, variance) for _, value, variance in split.labels]
    shown = [f"{word}: {what}" for word, what in zip(words, told, strict=True)]
    line.append(feature_word(split.feature), "bold")
    line.append(f"  {_few(shown, split.left_out) if split.kind == 'nominal' else ', '.join(reversed(shown))}")
    line.append(f"  merit {number_word(split.merit)}", "green")
    if split.runner_up is not None:
        line.append(f"  next {feature_word(split.runner_up)} {number_word(split.runner_up_merit)}", "dim")
    return line.append(f"  n {weight_word(split.n)}", "dim")


def _branches(split: Split) -> str:
    """Return what the branches mostly hold, the last first: that is where the feature is present."""
    told = [_mostly(weights, split.classes) for weights in split.counts]
    if split.kind == "binary":
        return f"with: {told[1]}, without: {told[0]}"
    words = [branch_word(split.kind, split.threshold, branch) for branch in split.branches]
    shown = [f"{word}: {what}" for word, what in zip(words, told, strict=True)]
    if split.threshold is not None:
        return ", ".join(reversed(shown))
    return _few(shown, split.left_out)


def _few(shown: Sequence[str], left_out: int) -> str:
    """Return some branches, and how many more there are."""
    left = max(0, len(shown) - _CATEGORIES) + left_out
    more = f" and {left} more" if left else ""
    return ", ".join(shown[:_CATEGORIES]) + more


def _mostly(weights: Sequence[float], classes: Sequence[Class]) -> str:
    """Return the heaviest class and its share."""
    whole = sum(weights)
    if not whole:
        return "nothing"
    best = max(range(len(weights)), key=weights.__getitem__)
    return f"{weights[best] / whole:.0%} {class_word(classes[best])}"
