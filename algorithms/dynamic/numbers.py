"""`DynamicNumberPool`: any number of trees that forget, whose labels are numbers.

They are the trees of pool.py, with the variance in the place of the Gini index. Labels are learned as whole
numbers of a unit, so all sums are exact, and after any inserts and deletes a tree's nodes tell what the live
examples tell, to the bit. variance.py has the sums and the scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int8s, Int64s, filled
from algorithms.core.cadence import Emit
from algorithms.core.events import Batch, Events, OnDuplicate, Status
from algorithms.core.fixed_point import UNIT
from algorithms.core.given import number
from algorithms.core.kinds import Kind
from algorithms.core.pool import Example, Id
from algorithms.core.scale import LARGEST_BOUND, Scale
from algorithms.core.schema import Feature, Schema
from algorithms.core.wide import carry_of, low_of, whole_numbers, words_of
from algorithms.dynamic import variance
from algorithms.dynamic.builder import UNBOUNDED, check_sizes
from algorithms.dynamic.canonical import check_kinds
from algorithms.dynamic.feasibility import VARIANCE, policy_of
from algorithms.dynamic.pool import LivePool, rules_of
from algorithms.dynamic.splitter import Way
from algorithms.dynamic.state import Out
from algorithms.dynamic.terms import Terms
from algorithms.dynamic.variance import HIGH_SQUARES, LOW_SQUARES, OF_FEATURE, OF_NODE, SUM, WEIGHT
from algorithms.trees.snapshot import NumberTree as Tree


class NumberAnswers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    snapshots: list[tuple[int, int, Tree]]  # where they were due: event, events applied, the tree then
    predicted: Float64s  # float64[n], the label predicted for an example or on demand, nan: nothing is known
    leaf: Int64s  # int64[n], of predictions on demand: the number of the node that answered
    weight: Float64s  # float64[n], of these: what the node knows weighs so many examples
    variance: Float64s  # float64[n], and has this mean squared deviation
    rebuilt: Int64s  # int64[n], how many examples subtrees were rebuilt from
    scanned: Int64s  # int64[n], how many examples were in nodes whose splits were looked for anew beside these


class DynamicNumberPool(LivePool[NumberAnswers, float]):
    """Any number of trees of numbers under inserts and deletes, one for each key.

    `apply` takes labels as float64. One that is not in the range of the scale gets the status WRONG_LABEL, and a
    weight that is no whole number of examples WRONG_WEIGHT.

    Parameters
    ----------
    scale : Scale
        Of labels: their range, and the unit to whose multiples above the least one they are rounded.
    epsilon : float, optional
        As of `DynamicPool`; with 0 the tree is at every moment the greedy one of the live examples.
    beta : float
        Above 0 what is looked through is promised to be near: no split of it reduces the variance of its node by
        more than beta times the variance of the tree's live labels less than the best one does, and none gains
        more in a leaf. It takes the place of an epsilon.
    guarantee : str, optional
        ``exact``: what is looked through is, to the bit, the greedy tree of the live examples.
    min_examples, max_depth : int
        A node of at most so many examples, or so deep, is a leaf; as is one whose labels are all the same.
    default, kinds, window, span, on_duplicate, names, evaluate, max_keys, max_live_ids, snapshots
        As of `DynamicPool`. A tree's examples weigh at most 2^31 - 1 in all, and less than 2^62 by the greatest
        label in units.
    """

    _LABEL = np.float64

    def __init__(
        self,
        scale: Scale,
        *,
        epsilon: float | None = None,
        beta: float = 0.0,
        guarantee: str | None = None,
        min_examples: int = 1,
        max_depth: int = UNBOUNDED,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        window: int | None = None,
        span: int | None = None,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
        names: bool = False,
        evaluate: bool = False,
        max_keys: int = 1 << 30,
        max_live_ids: int = 1 << 30,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
    ) -> None:
        check_sizes(min_examples, max_depth)
        check_kinds([default, *(kinds or {}).values()])
        self.scale = scale
        policy, epsilon = policy_of(guarantee, epsilon, 0.0, beta, min_examples, VARIANCE)
        rules = rules_of(
            Terms(0.0, min_examples, max_depth, int(Way.ORDERED), policy=policy, beta=float(beta)),
            epsilon=epsilon,
            max_work=0,
            classes=OF_FEATURE,
            window=window,
            span=span,
            on_duplicate=on_duplicate,
            evaluate=evaluate,
            max_keys=max_keys,
            max_live_ids=max_live_ids,
            snapshots=snapshots,
        )
        criterion = variance.make(scale.whole - 2)
        super().__init__(rules, criterion, OF_NODE, Schema(default, kinds or {}), names=names)

    # --- events

    def _label(self, given: Any) -> float:
        label = number("a label", given, LARGEST_BOUND)
        if not self.scale.holds(label):
            raise ValueError(f"expected a label from {self.scale.low} to {self.scale.high}, got {label}")
        return label

    def delete(
        self,
        x: Example = (),
        label: float | None = None,
        *,
        weight: float = 1.0,
        id: Id | None = None,
        key: int = 0,
        time: int = 1,
    ) -> Status:
        """Forget one example, see `Pool.delete`; by its id it needs no label."""
        told = self.scale.low if label is None and id is not None else label
        return super().delete(x, told, weight=weight, id=id, key=key, time=time)  # type: ignore[arg-type]

    def _as_learned(self, events: Events) -> Events:
        label = np.where(self.scale.holds(events.label), self.scale.steps(events.label), -1)
        weight = np.where(events.weight % UNIT == 0, events.weight // UNIT, -1)
        return events._replace(label=label, weight=weight)

    def _out(self, events: int, predictions: int) -> Out:
        return Out(
            status=np.zeros(events, np.int8),
            predicted=filled(events, math.nan, np.float64),
            loss=np.zeros(events),
            rebuilt=np.zeros(events, np.int64),
            scanned=np.zeros(events, np.int64),
            shares=np.zeros((predictions, OF_NODE), np.int64),
            leaf=np.zeros(predictions, np.int64),
            weights=np.zeros(OF_NODE, np.int64),
            counts=np.zeros(1, np.int64),
            told=np.zeros(1, np.int64),
        )

    def _answers(
        self, batch: Batch, asked: Int64s, out: Out, snapshots: list[tuple[int, int, Tree]]
    ) -> NumberAnswers:
        n = len(batch.op)
        leaf, weight, spread = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
        leaf[asked] = out.leaf
        weight[asked] = out.shares[:, WEIGHT]
        spread[asked] = self._variances(out.shares)
        predicted = self.scale.between(out.predicted)
        return NumberAnswers(out.status, snapshots, predicted, leaf, weight, spread, out.rebuilt, out.scanned)

    def _prediction(self, answers: NumberAnswers) -> float:
        return float(answers.predicted[0])

    # --- looking

    def tree(self, key: int = 0) -> Tree:
        """Return a tree as columns, what it tells of labels being that of now; see `LivePool.tree`.

        A leaf that deletes have emptied predicts what the nearest node above that holds examples does: this is its
        mean, nan where no node holds any.
        """
        found = self._snapshot(key)
        sums = found.weight
        mean = np.full(len(sums), math.nan)
        held = sums[:, WEIGHT] > 0
        mean[held] = self.scale.between(sums[held, SUM] / sums[held, WEIGHT])
        for at in np.flatnonzero(~held).tolist():
            mean[at] = mean[found.parent[at]] if at else math.nan
        return Tree(
            *(found.number, found.parent, found.branch, found.depth, found.feature, found.kind, found.threshold),
            weight=sums[:, WEIGHT].astype(np.float64),
            mean=mean,
            variance=np.array(self._variances(sums), np.float64),
        )

    def _variances(self, sums: Int64s) -> list[float]:
        """Return mean squared deviations by the sums of nodes, rounded once but for the square of the unit."""
        squares = whole_numbers(sums[:, HIGH_SQUARES], sums[:, LOW_SQUARES])
        unit = self.scale.unit * self.scale.unit
        rows = zip(sums[:, WEIGHT].tolist(), sums[:, SUM].tolist(), squares, strict=True)
        return [unit * ((n * each - s * s) / (n * n)) if n else 0.0 for n, s, each in rows]

    # --- invariants

    def _sums(self, label: Int64s, weight: Int64s) -> list[int]:
        pairs = list(zip(label.tolist(), weight.tolist(), strict=True))
        squares = sum(w * t * t for t, w in pairs)
        high_word, low_word = words_of(squares)
        return [sum(w for _, w in pairs), sum(w * t for t, w in pairs), low_word, high_word]

    def _joined(self, low: Int64s, high: Int64s) -> Int64s:
        both = low + high
        both[HIGH_SQUARES] += carry_of(both[LOW_SQUARES])
        both[LOW_SQUARES] = low_of(both[LOW_SQUARES])
        return both
