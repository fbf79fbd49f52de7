"""`bench peers`: our trees beside river's Hoeffding trees, the same task with the same parameters in one run.

Both predict every example, then learn it. River takes one example at a time as a dict; it is fed with what is
present in an example only, and with a 0 for whatever else was seen before. Ours take batches in columns, and take
for a number what the peer does.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import pairwise, product
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from algorithms.trees.predict import Predict
from worker.bench.cases import Progress, Row, machine, significant
from worker.bench.tables import Table, first
from worker.bench.trees import BATCH, Side, batches_of, pool_for, refusal, run
from worker.sources.generators import BINARY, NUMERIC

SETS = ("news20_unigram", "spam_katakis", "farm_ads", "electricity")
# River's names. Its naive Bayes asks the features that it is fed with: all, or those that are present.
PREDICTIONS = {
    Predict.MAJORITY: "mc",
    Predict.NAIVE_BAYES: "nb",
    Predict.ADAPTIVE: "nba",
    Predict.ADAPTIVE_PRESENT: "nba",
}

Example = dict[int, float]  # feature -> value

# Both sides are one thread that computes, and a round of river is seldom repeated: CPU time is what the work takes
# on a machine that does other work as well.
_clock = time.process_time


class Learner(Protocol):
    """A classifier as river has them."""

    @property
    def n_leaves(self) -> int | None:
        """How many leaves the tree has; None before the first example."""

    def predict_one(self, x: Example) -> int | None:
        """Return the class of an example, None where nothing is known."""

    def learn_one(self, x: Example, y: int) -> None:
        """Learn an example of class y."""


class Peer(NamedTuple):
    """Whom we are measured beside."""

    version: str
    tree: Callable[..., Learner]  # takes what river.tree.HoeffdingTreeClassifier takes


class Terms(NamedTuple):
    """What both sides agree on, and how long they run."""

    policies: list[str]  # ours
    predictions: list[Predict]
    grace_period: int  # n_min
    split_confidence: float
    tie_threshold: float
    seconds: float  # of CPU; the peer stops at the first example after so many, ours gets the same examples
    repeats: int  # of ours, while all of them together take no longer
    peer_repeats: int


class _Input(NamedTuple):
    """What the peer is fed with."""

    dense: bool  # 0 for what is absent, or nothing
    nominal: bool  # features that are not numeric are declared nominal

    @property
    def name(self) -> str:
        return f"{'dense' if self.dense else 'ones'}, {'nominal' if self.nominal else 'numeric'}"


class _Side(NamedTuple):
    """One of ours, beside a peer that got through so many examples."""

    policy: str
    prediction: Predict
    examples: int
    nominal: bool  # else features with categories are numbers to ours too

    @property
    def said(self) -> str:
        return self.prediction.name.lower().replace("_", "-")


class _Outcome(NamedTuple):
    examples: int
    seconds: float
    accuracy: float
    leaves: int
    rounds: int  # seconds are the median over these

    @property
    def rate(self) -> float:
        """Examples per second."""
        return self.examples / self.seconds

    def row(self) -> Row:
        return {
            "examples": self.examples,
            "cpu_seconds": significant(self.seconds),
            "examples_per_second": significant(self.rate),
            "accuracy": significant(self.accuracy),
            "leaves": self.leaves,
            "repeats": self.rounds,
        }


def river() -> Peer:
    """Return river.

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed.
    """
    import river
    from river.tree import HoeffdingTreeClassifier

    return Peer(river.__version__, HoeffdingTreeClassifier)


def bench_peers(table: Table, peer: Peer, terms: Terms, progress: Progress = lambda step: None) -> Iterator[Row]:
    """Yield a line for each input of the peer, followed by one for each of ours on the same examples.

    Parameters
    ----------
    table : Table
        Every example is predicted, then learned, in order.
    peer : Peer
        See `river`.
    terms : Terms
        Parameters of both sides. Whatever else the peer can be told stays as it is by default.
    progress : callable
        Called with what is about to run.
    """
    about = {"versions": {"river": peer.version, "anabranch": version("anabranch")}, "machine": machine()}
    for row in _rows(table, peer, terms, progress):
        yield {"bench": "peers", "data": table.name, "of": len(table.label)} | row | about


def _rows(table: Table, peer: Peer, terms: Terms, progress: Progress) -> Iterator[Row]:
    refused = {policy: refusal(table, Side(policy), {}) for policy in terms.policies}
    yield from ({"side": "anabranch", "policy": name, "refused": why} for name, why in refused.items() if why)
    served = [name for name, why in refused.items() if why is None]
    known: dict[_Side, _Outcome] = {}  # inputs that get through the same examples share ours
    for leaf_prediction in dict.fromkeys(PREDICTIONS[prediction] for prediction in terms.predictions):
        alike = [prediction for prediction in terms.predictions if PREDICTIONS[prediction] == leaf_prediction]
        for given in _inputs(table):
            progress(f"{table.name}: river, {given.name}, {leaf_prediction}")
            parameters = _parameters(table, terms, leaf_prediction, given)
            theirs = _theirs(table, given, partial(peer.tree, **parameters), terms)
            yield {
                "side": "river",
                "input": given.name,
                "predict": leaf_prediction,
                **theirs.row(),
                "parameters": parameters | {"nominal_attributes": len(parameters["nominal_attributes"])},
            }
            for prediction, policy in product(alike, served):
                nominal = given.nominal or not _nominal(table).any()
                side = _Side(policy, prediction, theirs.examples, nominal)
                progress(f"{table.name}: {policy}, {side.said}, beside {given.name}")
                if side not in known:
                    known[side] = _ours(table, side, terms)
                yield {
                    "side": "anabranch",
                    "policy": policy,
                    "predict": side.said,
                    "beside": given.name,
                    **known[side].row(),
                    "times_river": significant(known[side].rate / theirs.rate),
                    "accuracy_above_river": significant(known[side].accuracy - theirs.accuracy),
                    "parameters": _options(terms, prediction) | {"predict": side.said, "batch": BATCH},
                }


def _inputs(table: Table) -> list[_Input]:
    """Return what the peer may be fed with; where columns are named, all of them belong to every example."""
    fillings = [True] if table.names else [False, True]
    return [_Input(dense, nominal) for dense in fillings for nominal in (False, True)]


def _nominal(table: Table) -> npt.NDArray[np.bool_]:
    """Return which features have categories."""
    nominal: npt.NDArray[np.bool_] = (table.kinds != NUMERIC) & (table.kinds != BINARY)
    return nominal


def _parameters(table: Table, terms: Terms, leaf_prediction: str, given: _Input) -> dict[str, Any]:
    """Return what river's tree is told."""
    nominal = (table.kinds != NUMERIC).nonzero()[0].tolist() if given.nominal else []
    return {
        "grace_period": terms.grace_period,
        "delta": terms.split_confidence,
        "tau": terms.tie_threshold,
        "split_criterion": "info_gain",
        "leaf_prediction": leaf_prediction,
        "nominal_attributes": frozenset(nominal),  # a list would be searched for each new feature
    }


def _theirs(table: Table, given: _Input, make: Callable[[], Learner], terms: Terms) -> _Outcome:
    """Return what the peer does in the time it has; further rounds run over as many examples."""
    outcome = _apply(make(), table, given, terms.seconds)
    part = first(table, outcome.examples)
    rounds = [_apply(make(), part, given, math.inf).seconds for _ in range(terms.peer_repeats - 1)]
    return outcome._replace(seconds=statistics.median([outcome.seconds, *rounds]), rounds=terms.peer_repeats)


def _apply(learner: Learner, table: Table, given: _Input, seconds: float) -> _Outcome:
    examples, right, taken = 0, 0, 0.0
    for x, label in fed(table, given.dense):
        start = _clock()
        predicted = learner.predict_one(x)
        learner.learn_one(x, label)
        taken += _clock() - start
        examples += 1
        right += predicted == label
        if taken > seconds:
            break
    return _Outcome(examples, taken, right / examples, learner.n_leaves or 0, 1)


def fed(table: Table, dense: bool) -> Iterator[tuple[Example, int]]:
    """Yield each example as a dict, with its label. To make it is not part of what is measured."""
    zeros: Example = dict.fromkeys(range(len(table.kinds)), 0.0) if table.names else {}
    for label, (start, stop) in zip(table.label.tolist(), pairwise(table.pointer.tolist()), strict=True):
        x = dict(zip(table.feature[start:stop].tolist(), table.value[start:stop].tolist(), strict=True))
        if dense:
            zeros |= dict.fromkeys(x, 0.0)
            x = zeros | x
        yield x, label


def _options(terms: Terms, prediction: Predict) -> dict[str, Any]:
    """Return what our trees are told."""
    return {
        "criterion": "entropy",
        "predict": prediction,
        "grace_period": terms.grace_period,
        "split_confidence": terms.split_confidence,
        "tie_threshold": terms.tie_threshold,
        "inherit": True,  # as river's leaves do
    }


def _ours(table: Table, side: _Side, terms: Terms) -> _Outcome:
    """Return what one of ours does. No round begins once those before took the peer's time."""
    part = first(table, side.examples)
    if not side.nominal:
        part = part._replace(kinds=np.where(_nominal(part), NUMERIC, part.kinds))
    batches = batches_of(part)
    options = _options(terms, side.prediction)
    run(pool_for(part, Side(side.policy), options), batches_of(first(part, 1)))  # compiles
    seconds: list[float] = []
    while len(seconds) < terms.repeats and sum(seconds) <= terms.seconds:
        pool = pool_for(part, Side(side.policy), options)
        taken, measures = run(pool, batches, len(table.classes), _clock)
        seconds.append(taken)
    assert measures is not None
    median = statistics.median(seconds)
    return _Outcome(side.examples, median, measures.accuracy, pool.sizes().leaves, len(seconds))
