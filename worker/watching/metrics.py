"""Every metric of the worker, declared in one place, and one method for each thing that is counted.

Names start with `anabranch_`, those of the process with `process_`; units are seconds, bytes, records, events or
examples. Latencies are histograms, which add up over workers. Labels are bounded by the settings and the
assignment: topics, partitions, model names, operations, reasons; never a key or a feature.
"""

from __future__ import annotations

import math
import platform
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.metrics import MetricWrapperBase

from worker.codec.reasons import Reason
from worker.log.port import TopicPartition
from worker.watching.status import DELAYED, Comparison, ModelStatus

Stage: TypeAlias = Literal["poll", "decode", "update", "encode", "commit", "checkpoint"]
Operation: TypeAlias = Literal["insert", "delete", "predict", "drop"]
PassedOver: TypeAlias = Literal["duplicate-ignored", "dropped-by-window", "delete-ignored"]
Output: TypeAlias = Literal[
    "split",
    "snapshot",
    "prediction",
    "evaluation",
    "delayed-evaluation",
    "drift",
    "expired",
    "let-go",
    "dead-letter",
]
LateLabel: TypeAlias = Literal["learned", "not-pending"]
Unlabelled: TypeAlias = Literal["inserted", "deleted", "expired", "crowded-out"]

# 10 us to 10 s: a decode of one small batch, and a commit that waits for a broker that elects a leader.
STAGE_BUCKETS = (
    *(0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
# 1 ms to 1 h: at the low end the embedded log, at the high end a backlog after an outage.
END_TO_END_BUCKETS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0),
)
BATCH_BUCKETS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0)

_PARTITION = ("topic", "partition")

_Metric = TypeVar("_Metric", bound=MetricWrapperBase)


class _Children(dict[tuple[str, ...], _Metric], Generic[_Metric]):
    """The children of one metric by their labels, made when first asked for.

    A look-up here costs 0.07 us where `labels()`, which takes a lock and makes strings, costs 1.1 us.
    """

    def __init__(self, metric: _Metric) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> _Metric:
        child = self[labels] = self._metric.labels(*labels)
        return child

    def forget(self, labels: tuple[str, ...]) -> None:
        if self.pop(labels, None) is not None:
            self._metric.remove(*labels)


class Metrics:
    """What the worker counts and measures. One thread updates it; any thread may scrape the registry.

    Parameters
    ----------
    registry : CollectorRegistry
        Where the metrics are registered; a second `Metrics` needs another one.
    version : str
        The worker's version, for `anabranch_build_info`.
    """

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        # What this worker is. Value 1; join on it to see which version does what.
        Info("anabranch_build", "Version of the worker and of Python.", registry=registry).info(
            {"version": version, "python": platform.python_version()}
        )

        # Memory, processor time, open files and start time of the process, under their usual names (`process_`);
        # where there is no /proc they are absent.
        ProcessCollector(registry=registry)

        self._declare_counts(registry)
        self._declare_latencies(registry)
        self._declare_partitions(registry)
        self._declare_models(registry)

    def _declare_counts(self, registry: CollectorRegistry) -> None:
        """Declare what counts records and events: read, applied, refused, written."""
        # Records read from an input partition, silent replay after a restore not included.
        self._consumed = _Children(
            Counter("anabranch_records_consumed", "Records consumed.", _PARTITION, registry=registry)
        )
        # Events that changed or asked a model, one for each row of a columnar record.
        self._applied = _Children(
            Counter("anabranch_events_applied", "Events applied.", ("model", "op"), registry=registry)
        )
        # Records refused as a whole, by the reason code of the dead letter.
        self._records_rejected = _Children(
            Counter("anabranch_records_rejected", "Records rejected.", ("topic", "reason"), registry=registry)
        )
        # Single events refused: rows of a columnar record, or an event that did not suit its model.
        self._events_rejected = _Children(
            Counter("anabranch_events_rejected", "Events rejected.", ("topic", "reason"), registry=registry)
        )
        # Events that were in order and changed nothing: an insert of a live id that the settings say to
        # ignore, a delete of an example that the window had dropped or that a tree is told to ignore.
        self._passed_over = _Children(
            Counter("anabranch_events_passed_over", "Events without effect.", ("model", "why"), registry=registry)
        )
        # Records written, once their transaction is committed.
        self._produced = _Children(
            Counter("anabranch_records_produced", "Records produced.", ("type",), registry=registry)
        )

        # Bytes of pages, manifests and tombstones written to the state topics.
        self._state_written = Counter(
            "anabranch_checkpoint_written_bytes", "Bytes written for checkpoints.", registry=registry
        )
        # Transactions that the log gave up and that were sent again; now and then one is normal.
        self._aborted = Counter(
            "anabranch_transactions_aborted", "Transactions aborted and sent again.", registry=registry
        )
        # Times that the group took partitions before their results were committed: the next owner makes these.
        self._lost = Counter(
            "anabranch_ownership_lost", "Transactions given up because a partition was lost.", registry=registry
        )

        # Keys whose best split became another, each time, seen where the model looks after every event; of trees
        # the nodes that split.
        self._splits_changed = _Children(
            Counter("anabranch_splits_changed", "Best splits changed.", ("model",), registry=registry)
        )

        # Examples that were predicted before they were learned, where the settings say so, and those of them that
        # were predicted rightly: the quotient of the rates is the accuracy over any time and all workers.
        self._evaluated = _Children(
            Counter("anabranch_examples_judged", "Examples predicted first.", ("model",), registry=registry)
        )
        self._right = _Children(
            Counter("anabranch_examples_right", "Examples predicted rightly.", ("model",), registry=registry)
        )

        # How often the error of a model's predictions rose: the stream has changed.
        self._drifts = _Children(Counter("anabranch_drifts", "Rises of the error.", ("model",), registry=registry))

        # Labels of predicts that were kept (topics.INPUT.pending): those that came in time, and those whose
        # example was not there, perhaps no more. Where the share of the latter rises, max or for is too small.
        self._late_labels = _Children(
            Counter("anabranch_late_labels", "Labels that came later.", ("topic", "fate"), registry=registry)
        )
        # Examples that went without a label of their own, and why.
        self._unlabelled = _Children(
            Counter(
                "anabranch_pending_gone",
                "Pending examples that went unlabelled.",
                ("topic", "why"),
                registry=registry,
            )
        )

    def _declare_latencies(self, registry: CollectorRegistry) -> None:
        """Declare what measures time: of stages, and of records as a whole."""
        # How long a stage took for one batch; one commit covers several batches.
        self._stage = _Children(
            Histogram(
                "anabranch_stage_duration_seconds",
                "Time that a stage took for one batch.",
                ("stage",),
                buckets=STAGE_BUCKETS,
                registry=registry,
            )
        )
        # Wall clock at commit minus record timestamp: of each transaction and topic the worst, so that it
        # costs nothing per event. An upper estimate of what readers of the output see.
        self._end_to_end = _Children(
            Histogram(
                "anabranch_end_to_end_latency_seconds",
                "From record timestamp to committed result, the worst of each transaction.",
                ("topic",),
                buckets=END_TO_END_BUCKETS,
                registry=registry,
            )
        )
        # Full batches mean that the worker is catching up.
        self._batch = Histogram(
            "anabranch_batch_records", "Records in a batch.", buckets=BATCH_BUCKETS, registry=registry
        )

    def _declare_partitions(self, registry: CollectorRegistry) -> None:
        """Declare what tells of each assigned partition: where it stands, and its checkpoints."""
        # The rest of each partition's metrics lives while the partition is assigned: see `forget`.
        # Records between the next one to be read and the high watermark.
        self._lag = _Children(
            Gauge("anabranch_lag_records", "Records not read yet.", _PARTITION, registry=registry)
        )
        # The next offset to be read by whoever takes over.
        self._offset = _Children(
            Gauge("anabranch_committed_offset", "Committed offset.", _PARTITION, registry=registry)
        )
        # Alert on its age while the lag is not zero: a partition that is stuck.
        self._last_commit = _Children(
            Gauge(
                "anabranch_last_commit_timestamp_seconds",
                "Unix time of the last commit.",
                _PARTITION,
                registry=registry,
            )
        )
        # Alert on its age: what a restart has to replay grows with it. Absent until the first one.
        self._last_checkpoint = _Children(
            Gauge(
                "anabranch_last_checkpoint_timestamp_seconds",
                "Unix time of the last complete checkpoint.",
                _PARTITION,
                registry=registry,
            )
        )
        # What the last checkpoint is made of, written by it or by those before.
        self._checkpoint_size = _Children(
            Gauge("anabranch_checkpoint_bytes", "Size of the checkpointed state.", _PARTITION, registry=registry)
        )
        # Counts down to zero while a partition's models are rebuilt.
        self._restore = _Children(
            Gauge(
                "anabranch_restore_remaining_records",
                "Records still to be read before the partition goes live.",
                _PARTITION,
                registry=registry,
            )
        )

        # Examples that wait for their labels, and the memory of their store, spare capacity included.
        self._pending = _Children(
            Gauge("anabranch_pending_examples", "Examples without a label yet.", _PARTITION, registry=registry)
        )
        self._pending_size = _Children(
            Gauge("anabranch_pending_bytes", "Memory of pending examples.", _PARTITION, registry=registry)
        )

        # Records that are passed by because processing them failed, and when the last one was: alert on its age.
        # Both are kept in the state topic, so a restart changes neither.
        self._quarantined = _Children(
            Gauge("anabranch_quarantined_records", "Records passed by.", _PARTITION, registry=registry)
        )
        self._last_quarantine = _Children(
            Gauge(
                "anabranch_last_quarantine_timestamp_seconds",
                "Unix time when the last record was passed by.",
                _PARTITION,
                registry=registry,
            )
        )

    def _declare_models(self, registry: CollectorRegistry) -> None:
        """Declare what tells of each model: its size, and what it did."""
        # Size of the models, summed over the partitions assigned to this worker.
        self._keys = _Children(Gauge("anabranch_keys", "Model keys.", ("model",), registry=registry))
        # Of a model with `expire`: keys that went, and that have been idle for long enough and have not gone yet.
        self._expired = _Children(
            Counter(
                "anabranch_keys_expired", "Keys that nobody used and that went.", ("model",), registry=registry
            )
        )
        self._due = _Children(
            Gauge("anabranch_keys_due", "Keys that expire with the next events.", ("model",), registry=registry)
        )
        # Of a model whose window is a span of time: examples that went, and that are older and have not gone yet.
        self._let_go = _Children(
            Counter(
                "anabranch_examples_let_go",
                "Examples that left a window by time.",
                ("model",),
                registry=registry,
            )
        )
        self._examples_due = _Children(
            Gauge(
                "anabranch_examples_due",
                "Examples that leave a window by time with the next events.",
                ("model",),
                registry=registry,
            )
        )
        # A slot is a feature of a key that at least one live example has; of trees, of a leaf.
        self._slots = _Children(Gauge("anabranch_live_slots", "Live slots.", ("model",), registry=registry))
        # Examples kept: those with an id; all where a model has a window or verifies deletes.
        self._examples = _Children(
            Gauge("anabranch_live_examples", "Live examples kept.", ("model",), registry=registry)
        )
        # Arrays of the models, spare capacity included; the process needs more than that.
        self._state = _Children(
            Gauge("anabranch_state_bytes", "Memory of the models.", ("model",), registry=registry)
        )

        # Trees alone have these.
        self._nodes = _Children(
            Gauge("anabranch_tree_nodes", "Nodes of all trees.", ("model",), registry=registry)
        )
        self._depth = _Children(
            Gauge("anabranch_tree_depth", "Depth of the deepest tree.", ("model",), registry=registry)
        )
        # Forests of trees that grow alone have these: a warning begins a tree beside another, a drift replaces it.
        self._warnings = _Children(
            Gauge(
                "anabranch_forest_warnings",
                "Trees of the forests that there are whose errors may have risen, so far.",
                ("model",),
                registry=registry,
            )
        )
        self._replaced = _Children(
            Gauge(
                "anabranch_forest_drifts",
                "Trees of the forests that there are that were replaced, so far.",
                ("model",),
                registry=registry,
            )
        )
        # Of the examples evaluated, over the partitions assigned to this worker: all since the models began, and
        # the last ones of each partition (evaluate.window). And the same of answers that were given to predicts
        # whose labels came later: delayed, delayed-window.
        self._quality = {
            measure: _Children(
                Gauge(f"anabranch_prequential_{measure}", f"{help}.", ("model", "over"), registry=registry)
            )
            for measure, help in (
                ("accuracy", "Share of examples predicted rightly"),
                ("kappa", "Cohen's kappa"),
                ("macro_f1", "Mean F1 over the classes"),
                ("log_loss", "Mean -ln of the share given to the true class"),
                ("majority", "Accuracy of always saying the most frequent label of the key so far"),
                ("no_change", "Accuracy of always saying the last label of the key"),
                ("kappa_m", "1 less the error over that of majority"),
                ("kappa_temporal", "1 less the error over that of no change"),
                # Of models of numbers.
                ("mae", "Mean absolute error"),
                ("rmse", "Root of the mean squared error"),
                ("r2", "1 less the squared errors over those of the mean of all labels"),
                ("mean_mae", "Mean absolute error of always saying the mean of the key's labels so far"),
                ("mean_rmse", "Root of the mean squared error of that mean"),
                ("mean_r2", "R2 of that mean"),
                ("no_change_mae", "Mean absolute error of always saying the last label of the key"),
                ("no_change_rmse", "Root of the mean squared error of the last label"),
                ("no_change_r2", "R2 of the last label"),
                ("coverage", "Share of labels that were within their interval"),
                ("width", "Mean width of intervals"),
            )
        }

        # Of the last examples of each partition (evaluate.window): above 0 the shadow was right more often.
        self._lead = _Children(
            Gauge(
                "anabranch_shadow_lead",
                "Accuracy of a shadow, or R2, less that of a model that it may replace.",
                ("model", "beside"),
                registry=registry,
            )
        )

    def consumed(self, source: TopicPartition, records: int) -> None:
        """Count one batch of records read from a partition."""
        self._consumed[_labels(source)].inc(records)
        self._batch.observe(records)

    def applied(self, model: str, op: Operation, events: int) -> None:
        """Count events that a model took."""
        self._applied[model, op].inc(events)

    def rejected_records(self, topic: str, reason: Reason, records: int = 1) -> None:
        """Count records of an input topic that were refused as a whole."""
        self._records_rejected[topic, reason.value].inc(records)

    def rejected_events(self, topic: str, reason: Reason, events: int = 1) -> None:
        """Count events of an input topic that were refused one by one."""
        self._events_rejected[topic, reason.value].inc(events)

    def passed_over(self, model: str, why: PassedOver, events: int) -> None:
        """Count events that were in order and changed nothing."""
        if events:
            self._passed_over[model, why].inc(events)

    def produced(self, output: Output, records: int = 1) -> None:
        """Count records written in a transaction that was committed."""
        self._produced[(output,)].inc(records)

    def splits_changed(self, model: str, splits: int) -> None:
        """Count keys' best splits that changed."""
        self._splits_changed[(model,)].inc(splits)

    def labelled(self, topic: str, fate: LateLabel, labels: int) -> None:
        """Count labels of predicts that came before."""
        if labels:
            self._late_labels[topic, fate].inc(labels)

    def unlabelled(self, topic: str, why: Unlabelled, examples: int) -> None:
        """Count pending examples that went without a label of their own."""
        if examples:
            self._unlabelled[topic, why].inc(examples)

    def pending(self, source: TopicPartition, examples: int, size: int) -> None:
        """Note how many examples of a partition wait for their labels, and the bytes that they take."""
        self._pending[_labels(source)].set(examples)
        self._pending_size[_labels(source)].set(size)

    def took(self, stage: Stage, seconds: float) -> None:
        """Note how long a stage took."""
        _observe(self._stage[(stage,)], seconds)

    def delivered(self, topic: str, now: float, earliest_ms: int) -> None:
        """Note the end-to-end latency of one batch of one partition.

        Parameters
        ----------
        topic : str
            The input topic.
        now : float
            Unix time of the commit, in seconds.
        earliest_ms : int
            The least event time in the batch, in ms since the epoch.
        """
        _observe(self._end_to_end[(topic,)], now - earliest_ms / 1000)

    def position(self, source: TopicPartition, next_offset: int, high: int) -> None:
        """Note how far a partition has been read, and how far it goes."""
        # The watermark may be a poll older than the position.
        self._lag[_labels(source)].set(max(0, high - next_offset))

    def committed(self, source: TopicPartition, offset: int, now: float) -> None:
        """Note a committed offset and when it was committed (Unix time, seconds)."""
        self._offset[_labels(source)].set(offset)
        self._last_commit[_labels(source)].set(now)

    def restoring(self, source: TopicPartition, remaining: int) -> None:
        """Note how many records are still to be read before a partition goes live."""
        self._restore[_labels(source)].set(remaining)

    def wrote_state(self, written: int) -> None:
        """Count bytes written for checkpoints in a transaction that was committed."""
        self._state_written.inc(written)

    def checkpointed(self, source: TopicPartition, now: float) -> None:
        """Note when a complete checkpoint of a partition was committed (Unix time, seconds)."""
        self._last_checkpoint[_labels(source)].set(now)

    def copied(self, source: TopicPartition, size: int) -> None:
        """Note how large the state is that is being written, in bytes."""
        self._checkpoint_size[_labels(source)].set(size)

    def quarantine(self, source: TopicPartition, records: int, last: float | None) -> None:
        """Note how many records of a partition are passed by, and when the last one was (Unix time, seconds)."""
        self._quarantined[_labels(source)].set(records)
        if last is not None:
            self._last_quarantine[_labels(source)].set(last)

    def aborted(self) -> None:
        """Count a transaction that the log gave up and that is sent again."""
        self._aborted.inc()

    def lost(self) -> None:
        """Count a transaction that was given up because a partition was lost."""
        self._lost.inc()

    def evaluated(self, model: str, examples: int, right: int | None) -> None:
        """Count examples that were predicted before they were learned; `right` is None of numbers."""
        if examples:
            self._evaluated[(model,)].inc(examples)
            if right is not None:
                self._right[(model,)].inc(right)

    def drifted(self, model: str, rises: int) -> None:
        """Count rises of the error; a model that is evaluated has a zero, so that the first is an increase."""
        self._drifts[(model,)].inc(rises)

    def expired(self, model: str, keys: int) -> None:
        """Count keys that went because nobody used them."""
        self._expired[(model,)].inc(keys)

    def let_go(self, model: str, examples: int) -> None:
        """Count examples that left a window by time."""
        self._let_go[(model,)].inc(examples)

    def size(self, model: ModelStatus) -> None:
        """Note the size of a model name, over all partitions of this worker, and how good it is."""
        name = model.name
        self._keys[(name,)].set(model.keys)
        self._due[(name,)].set(model.due)
        self._examples_due[(name,)].set(model.examples_due)
        self._slots[(name,)].set(model.slots)
        self._examples[(name,)].set(model.examples)
        self._state[(name,)].set(model.bytes)
        if model.nodes:
            self._nodes[(name,)].set(model.nodes)
            self._depth[(name,)].set(model.depth)
        if model.warnings is not None and model.drifts is not None:
            self._warnings[(name,)].set(model.warnings)
            self._replaced[(name,)].set(model.drifts)
        if model.quality is not None:
            quality = model.quality
            for over, measured in (
                ("all", quality.total),
                ("window", quality.recent),
                ("all", quality.covered),
                ("window", quality.covered_recently),
            ):
                measures: Any = measured.measures() if measured is not None else None
                for measure, gauge in self._quality.items():
                    if math.isfinite(value := getattr(measures, measure, math.nan)):
                        gauge[name, over].set(value)
        if model.delayed is not None:
            for over, measured in (("delayed", model.delayed.total), ("delayed-window", model.delayed.recent)):
                measures = measured.measures()
                for measure in DELAYED:
                    if math.isfinite(value := getattr(measures, measure, math.nan)):
                        self._quality[measure][name, over].set(value)

    def compared(self, comparison: Comparison) -> None:
        """Note how a shadow does beside a model that it may replace."""
        self._lead[comparison.shadow, comparison.beside].set(comparison.lead)

    def forget(self, source: TopicPartition) -> None:
        """Remove the metrics of a partition that was revoked: another worker reports it from now on.

        A counter that starts again from zero is what `rate()` expects of a restart.
        """
        labels = _labels(source)
        self._consumed.forget(labels)
        for gauges in (
            *(self._lag, self._offset, self._last_commit, self._restore),
            *(self._last_checkpoint, self._checkpoint_size, self._quarantined, self._last_quarantine),
            *(self._pending, self._pending_size),
        ):
            gauges.forget(labels)


def _labels(source: TopicPartition) -> tuple[str, str]:
    return source.topic, str(source.partition)


def _observe(histogram: Histogram, seconds: float) -> None:
    """Observe a duration: a NaN would spoil the sum for good, a negative one means that clocks differ."""
    if math.isfinite(seconds):
        histogram.observe(max(0.0, seconds))
