"""Results of models whose labels are numbers. Their records have the types of those of classes, and other fields.

Values and variances are those of labels: the mean, and the mean squared deviation from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from worker.codec.encode import Feature, Kind, Source


class RegressionSplit(NamedTuple):
    """The split that a node of a regression tree has made, or the best split of examples of a model of splits.

    Of the second no squares of labels are kept, so that their variances are None.

    Parameters
    ----------
    model
        Name of the model in the settings.
    node
        Number of the node, as in `Split`.
    feature
        Id or name of the feature; None where none reduces the variance.
    kind
        What its values are: binary, nominal or numeric; None without a feature.
    threshold
        Of a numeric feature, else None.
    merit
        By how much the split reduces the variance of the labels at the node, n - 1 below; of a model of splits it
        is n below.
    runner_up_merit
        That of the second best feature; 0 where none is better than no split.
    n, value, variance
        Weight of the examples at the node, and mean and variance of their labels.
    branches
        0 and 1: absent and present, at most the threshold and above. Of a nominal feature 0, where it was absent
        in some examples, and categories.
    labels
        A row for each branch: n, value and variance, 0 where there is no example.
    source
        The event that made it split.
    runner_up
        The second best feature of a model of splits; the field is there where there is one.
    left_out
        How many branches, the lightest, are left out, as in `Split`; the field is there where some are.
    """

    model: str
    node: int
    feature: Feature | None
    kind: Kind | None
    threshold: float | None
    merit: float
    runner_up_merit: float
    n: float
    value: float
    variance: float | None
    branches: Sequence[int]
    labels: Sequence[tuple[float, float, float | None]]
    source: Source
    runner_up: Feature | None = None
    left_out: int = 0


class RegressionTree(NamedTuple):
    """A regression tree, or a part of one that is too large for a record. See `Tree` for what is not told here.

    Parameters
    ----------
    n, value, variance
        Of each node: weight of its examples, and mean and variance of their labels. A node's value is what it
        predicts. Those of an inner node are as of its split. Of a model of splits, no variance is known.
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
    n: Sequence[float]
    value: Sequence[float]
    variance: Sequence[float | None]
    names: Sequence[str] | None
    parameters: dict[str, bool | int | float | str | None]
    source: Source


class RegressionPrediction(NamedTuple):
    """The answer to a predict.

    Parameters
    ----------
    model
        Name of the model in the settings.
    id
        The request's id, None without one.
    value
        The predicted number, None where the model cannot tell yet.
    n, deviation
        Weight of what the leaf knows, and the standard deviation of its labels; 0 where nothing is known. Of a
        model of splits, no deviation is known.
    leaf
        Number of the leaf.
    known
        Whether the model of this key has seen any example.
    source
        The request.
    low, high
        The interval that holds the label as often as the settings ask; the fields are there where they ask and
        enough predictions of the key have been judged.
    """

    model: str
    id: int | str | None
    value: float | None
    n: float
    deviation: float | None
    leaf: int
    known: bool
    source: Source
    low: float | None = None
    high: float | None = None


class RegressionMeasures(NamedTuple):
    """How good predictions were, weighted; None where there were none to judge by.

    Examples of which nothing was known, the first of each key, are left out.

    Parameters
    ----------
    weight
        Of the examples evaluated.
    mae, rmse, r2
        Mean absolute error; root of the mean squared error; 1 less the squared errors over those of the mean of
        the labels evaluated.
    mean_mae, mean_rmse, mean_r2
        The same of always saying the mean of the key's labels before the example.
    no_change_mae, no_change_rmse, no_change_r2
        The same of always saying the key's last label.
    coverage, width
        The share of labels that were within their interval, and its mean width; the fields are there where the
        settings ask for intervals and there were any.
    """

    weight: float
    mae: float | None
    rmse: float | None
    r2: float | None
    mean_mae: float | None
    mean_rmse: float | None
    mean_r2: float | None
    no_change_mae: float | None
    no_change_rmse: float | None
    no_change_r2: float | None
    coverage: float | None = None
    width: float | None = None


class RegressionEvaluation(NamedTuple):
    """How good a model name is in a partition, over all its keys. The record has no key.

    Parameters
    ----------
    model
        Name of the model in the settings.
    examples
        How many were predicted before they were learned so far, the first of each key among them.
    total, recent
        Over all of them, and over the last `window`.
    window
        How many examples `recent` covers at most.
    source
        The last example.
    """

    model: str
    examples: int
    total: RegressionMeasures
    recent: RegressionMeasures
    window: int
    source: Source
