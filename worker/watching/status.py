"""What the loop tells about itself: a frozen value, published by one assignment and only read elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from algorithms.regression.baselines import Compared
from algorithms.regression.coverage import Covered
from algorithms.trees.evaluation import Evaluated
from worker.watching.snapshots import Snapshots

State: TypeAlias = Literal["starting", "waiting", "compiling", "restoring", "running", "stopping"]


class PartitionStatus(NamedTuple):
    """How far a partition has been read."""

    topic: str
    partition: int
    position: int  # the next offset to be read
    high: int  # high watermark, the next offset to be written
    pending: int | None = None  # examples that wait for their labels, where any are waited for


# What is measured of answers whose labels came later: the baselines have said nothing then.
DELAYED = ("accuracy", "kappa", "macro_f1", "mae", "rmse", "r2")


class Quality(NamedTuple):
    """How good the predictions of a model name were."""

    examples: int  # evaluated
    total: Evaluated | Compared  # of numbers the latter
    recent: Evaluated | Compared  # over the window of each partition
    drifts: int = 0  # how often the error rose
    since: int | None = None  # examples of the partition since it last did
    covered: Covered | None = None  # intervals that were judged, in all
    covered_recently: Covered | None = None

    def plus(self, other: Quality) -> Quality:
        """Return the predictions of both together."""
        total, recent = _plus(self.total, other.total), _plus(self.recent, other.recent)
        since = min((each.since for each in (self, other) if each.since is not None), default=None)
        covered, recently = (
            mine.plus(theirs) if mine and theirs else None
            for mine, theirs in (
                (self.covered, other.covered),
                (self.covered_recently, other.covered_recently),
            )
        )
        drifts = self.drifts + other.drifts
        return Quality(self.examples + other.examples, total, recent, drifts, since, covered, recently)


def _plus(own: Any, other: Any) -> Any:
    """Return sums of the same model in two partitions together."""
    return own.plus(other)


class RefusalStatus(NamedTuple):
    """What was refused for one reason since the start."""

    topic: str
    model: str  # "" where events could not be read
    reason: str
    events: int
    last: str  # where


def _sum(own: int | None, other: int | None) -> int | None:
    return None if own is None or other is None else own + other


class ModelStatus(NamedTuple):
    """How large a model name is, over all its keys in a partition or in this worker."""

    name: str
    keys: int
    slots: int = 0  # counted (key, feature) pairs; of a tree (leaf, feature)
    examples: int = 0  # live examples kept
    bytes: int = 0
    nodes: int = 0  # of trees
    depth: int = 0  # of the deepest
    warnings: int | None = None  # of trees whose errors may have risen, in forests that replace these
    drifts: int | None = None  # of trees that were replaced, in the forests that there are
    quality: Quality | None = None  # where predictions are evaluated
    input: str = ""  # topic
    shadow: bool = False
    due: int = 0  # keys that have been idle for too long and have not gone yet
    examples_due: int = 0  # examples that are older than a window by time and have not gone yet
    delayed: Quality | None = None  # of the answers that were given to predicts, where labels come later

    def plus(self, other: ModelStatus) -> ModelStatus:
        """Return the size of both together, the same model in two partitions."""
        return ModelStatus(
            self.name,
            keys=self.keys + other.keys,
            slots=self.slots + other.slots,
            examples=self.examples + other.examples,
            bytes=self.bytes + other.bytes,
            nodes=self.nodes + other.nodes,
            depth=max(self.depth, other.depth),
            warnings=_sum(self.warnings, other.warnings),
            drifts=_sum(self.drifts, other.drifts),
            quality=self.quality.plus(other.quality) if self.quality and other.quality else None,
            input=self.input,
            shadow=self.shadow,
            due=self.due + other.due,
            examples_due=self.examples_due + other.examples_due,
            delayed=self.delayed.plus(other.delayed) if self.delayed and other.delayed else None,
        )

    @property
    def recent_accuracy(self) -> float:
        """The share of the last examples that were predicted rightly, of numbers R2; nan: there is none."""
        if self.quality is None:
            return math.nan
        measures: Any = self.quality.recent.measures()
        return float(measures.r2 if self.is_of_numbers else measures.accuracy)

    @property
    def is_of_numbers(self) -> bool:
        """Whether the predictions that are evaluated are numbers."""
        return self.quality is not None and isinstance(self.quality.recent, Compared)


class Comparison(NamedTuple):
    """A shadow beside a model of the same input that it may replace: how often each was right of late, or R2."""

    shadow: str
    beside: str
    accuracy: float
    theirs: float

    @property
    def lead(self) -> float:
        """By how much the shadow was right more often, or its R2 is greater."""
        return self.accuracy - self.theirs


def comparisons(models: Iterable[ModelStatus]) -> Iterator[Comparison]:
    """Yield each shadow beside each model that it may replace, where both are evaluated."""
    evaluated = [model for model in models if math.isfinite(model.recent_accuracy)]
    for shadow in (model for model in evaluated if model.shadow):
        for other in evaluated:
            same = (other.input, other.is_of_numbers) == (shadow.input, shadow.is_of_numbers)
            if same and not other.shadow:
                yield Comparison(shadow.name, other.name, shadow.recent_accuracy, other.recent_accuracy)


@dataclass(frozen=True, slots=True)
class Status:
    """The loop as of its last turn."""

    tick: float  # seconds on the clock that the server is given too (monotonic)
    state: State = "starting"
    partitions: tuple[PartitionStatus, ...] = ()
    models: tuple[ModelStatus, ...] = ()
    refusals: tuple[RefusalStatus, ...] = ()
    lacking: tuple[str, ...] = ()  # topics that are waited for
    learning: tuple[str, ...] = ()  # models that are new and learn what was before them, and how far they are
    awaits_registry: bool = False  # of schemas, which does not answer; what has its schemas goes on

    @property
    def phase(self) -> str:
        """What the worker does, for a person."""
        if self.learning:
            return f"{self.state}; new models learn what was before them: {'; '.join(self.learning)}"
        if self.awaits_registry:
            return f"{self.state} for the schema registry"
        return f"{self.state} for the topics {', '.join(self.lacking)}" if self.lacking else self.state


class About(NamedTuple):
    """What does not change while a worker runs."""

    version: str  # of Anabranch
    settings: str  # their fingerprint, see `worker.settings.fingerprint`
    started: float  # seconds on the clock of the ticks
    snapshots: Mapping[str, str] = MappingProxyType({})  # of each model that has trees: when one is written


class StatusBoard:
    """Where the loop puts its status.

    Assigning an attribute is atomic and a `Status` never changes, so no lock is needed.

    Attributes
    ----------
    status : Status
        The latest.
    snapshots : Snapshots
        What the loop wrote of trees.
    """

    def __init__(self, status: Status) -> None:
        self.status = status
        self.snapshots = Snapshots()

    def tick(self, now: float) -> None:
        """Say that the loop is alive."""
        self.status = replace(self.status, tick=now)
