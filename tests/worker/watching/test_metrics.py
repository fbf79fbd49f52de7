import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from algorithms.core.fixed_point import UNIT
from algorithms.core.wide import restored
from algorithms.regression.baselines import Compared, Guesses
from algorithms.regression.coverage import Covered
from algorithms.trees.evaluation import Evaluated
from worker.codec.reasons import Reason
from worker.log.port import TopicPartition
from worker.watching.metrics import END_TO_END_BUCKETS, STAGE_BUCKETS, Metrics
from worker.watching.status import Comparison, ModelStatus, Quality

FIRST, SECOND = TopicPartition("sms", 0), TopicPartition("sms", 1)

# The whole contract with dashboards and alert rules: name, kind, labels.
DECLARED = {
    "anabranch_build": ("info", {"version", "python"}),
    "anabranch_records_consumed": ("counter", {"topic", "partition"}),
    "anabranch_events_applied": ("counter", {"model", "op"}),
    "anabranch_records_rejected": ("counter", {"topic", "reason"}),
    "anabranch_events_rejected": ("counter", {"topic", "reason"}),
    "anabranch_records_produced": ("counter", {"type"}),
    "anabranch_splits_changed": ("counter", {"model"}),
    "anabranch_events_passed_over": ("counter", {"model", "why"}),
    "anabranch_stage_duration_seconds": ("histogram", {"stage"}),
    "anabranch_end_to_end_latency_seconds": ("histogram", {"topic"}),
    "anabranch_batch_records": ("histogram", set()),
    "anabranch_lag_records": ("gauge", {"topic", "partition"}),
    "anabranch_committed_offset": ("gauge", {"topic", "partition"}),
    "anabranch_last_commit_timestamp_seconds": ("gauge", {"topic", "partition"}),
    "anabranch_restore_remaining_records": ("gauge", {"topic", "partition"}),
    "anabranch_last_checkpoint_timestamp_seconds": ("gauge", {"topic", "partition"}),
    "anabranch_quarantined_records": ("gauge", {"topic", "partition"}),
    "anabranch_last_quarantine_timestamp_seconds": ("gauge", {"topic", "partition"}),
    "anabranch_checkpoint_bytes": ("gauge", {"topic", "partition"}),
    "anabranch_checkpoint_written_bytes": ("counter", set()),
    "anabranch_transactions_aborted": ("counter", set()),
    "anabranch_ownership_lost": ("counter", set()),
    "anabranch_keys": ("gauge", {"model"}),
    "anabranch_keys_expired": ("counter", {"model"}),
    "anabranch_keys_due": ("gauge", {"model"}),
    "anabranch_examples_let_go": ("counter", {"model"}),
    "anabranch_examples_due": ("gauge", {"model"}),
    "anabranch_late_labels": ("counter", {"topic", "fate"}),
    "anabranch_pending_gone": ("counter", {"topic", "why"}),
    "anabranch_pending_examples": ("gauge", {"topic", "partition"}),
    "anabranch_pending_bytes": ("gauge", {"topic", "partition"}),
    "anabranch_live_slots": ("gauge", {"model"}),
    "anabranch_live_examples": ("gauge", {"model"}),
    "anabranch_state_bytes": ("gauge", {"model"}),
    "anabranch_examples_judged": ("counter", {"model"}),
    "anabranch_examples_right": ("counter", {"model"}),
    "anabranch_drifts": ("counter", {"model"}),
    "anabranch_tree_nodes": ("gauge", {"model"}),
    "anabranch_tree_depth": ("gauge", {"model"}),
    "anabranch_forest_warnings": ("gauge", {"model"}),
    "anabranch_forest_drifts": ("gauge", {"model"}),
    "anabranch_prequential_accuracy": ("gauge", {"model", "over"}),
    "anabranch_prequential_kappa": ("gauge", {"model", "over"}),
    "anabranch_prequential_macro_f1": ("gauge", {"model", "over"}),
    "anabranch_prequential_log_loss": ("gauge", {"model", "over"}),
    "anabranch_prequential_majority": ("gauge", {"model", "over"}),
    "anabranch_prequential_no_change": ("gauge", {"model", "over"}),
    "anabranch_prequential_kappa_m": ("gauge", {"model", "over"}),
    "anabranch_prequential_kappa_temporal": ("gauge", {"model", "over"}),
    "anabranch_prequential_mae": ("gauge", {"model", "over"}),
    "anabranch_prequential_rmse": ("gauge", {"model", "over"}),
    "anabranch_prequential_r2": ("gauge", {"model", "over"}),
    "anabranch_prequential_mean_mae": ("gauge", {"model", "over"}),
    "anabranch_prequential_mean_rmse": ("gauge", {"model", "over"}),
    "anabranch_prequential_mean_r2": ("gauge", {"model", "over"}),
    "anabranch_prequential_no_change_mae": ("gauge", {"model", "over"}),
    "anabranch_prequential_no_change_rmse": ("gauge", {"model", "over"}),
    "anabranch_prequential_no_change_r2": ("gauge", {"model", "over"}),
    "anabranch_prequential_coverage": ("gauge", {"model", "over"}),
    "anabranch_prequential_width": ("gauge", {"model", "over"}),
    "anabranch_shadow_lead": ("gauge", {"model", "beside"}),
    "process_cpu_seconds": ("counter", set()),
    "process_max_fds": ("gauge", set()),
    "process_open_fds": ("gauge", set()),
    "process_resident_memory_bytes": ("gauge", set()),
    "process_start_time_seconds": ("gauge", set()),
    "process_virtual_memory_bytes": ("gauge", set()),
}


@pytest.fixture
def registry() -> CollectorRegistry:
    """Return a registry of the test's own."""
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    """Return metrics in the test's registry."""
    return Metrics(registry, "1.2.3")


def _use_all(metrics: Metrics, source: TopicPartition) -> None:
    metrics.consumed(source, 100)
    metrics.applied("spam", "insert", 90)
    metrics.applied("spam", "delete", 5)
    metrics.rejected_records("sms", Reason.MALFORMED)
    metrics.rejected_events("sms", Reason.UNKNOWN_CLASS, 4)
    metrics.produced("split", 3)
    metrics.splits_changed("spam", 3)
    metrics.passed_over("spam", "duplicate-ignored", 4)
    metrics.took("decode", 0.0003)
    metrics.delivered("sms", 1_700_000_000.5, 1_700_000_000_000)
    metrics.position(source, 100, 130)
    metrics.committed(source, 100, 1_700_000_000.0)
    metrics.restoring(source, 7)
    metrics.copied(source, 4_096)
    metrics.wrote_state(1_024)
    metrics.checkpointed(source, 1_700_000_000.0)
    metrics.quarantine(source, 1, 1_700_000_000.0)
    metrics.aborted()
    metrics.lost()
    metrics.evaluated("spam", 8, 6)
    metrics.drifted("spam", 1)
    metrics.expired("spam", 5)
    metrics.let_go("spam", 7)
    metrics.drifted("calm", 0)
    metrics.labelled("sms", "learned", 3)
    metrics.labelled("sms", "not-pending", 2)
    metrics.unlabelled("sms", "expired", 4)
    metrics.pending(source, 17, 2_048)
    total = Evaluated(restored(np.array([[3, 1, 0], [1, 3, 0]]), 2), 2, np.array([[8, 6, 4, 3], [0] * 4]))
    recent = Evaluated(restored(np.array([[1, 0, 0], [0, 0, 0]]), 2), 0, np.array([[1, 1, 1, 0], [0] * 4]))
    quality = Quality(8, total, recent)
    late = Quality(1, recent, recent)
    metrics.size(ModelStatus("spam", 2, 300, 85, 65_536, nodes=7, depth=2, quality=quality, delayed=late))
    truth, weight = np.array([1.0, 3.0]), np.full(2, UNIT)
    guesses = Guesses(np.array([2.0, 2.0]), np.array([3.0, 1.0]))
    errors = Compared.of(truth, np.array([1.0, 2.0]), weight, guesses)
    metrics.evaluated("prices", 2, None)
    covered = [Covered(np.array([4 * UNIT, each * UNIT, 0, 0]), np.array([10.0 * each])) for each in (3, 2)]
    quality = Quality(2, errors, errors, covered=covered[0], covered_recently=covered[1])
    metrics.size(ModelStatus("prices", 1, quality=quality))
    metrics.size(ModelStatus("calm", 1, nodes=9, warnings=3, drifts=1))
    metrics.compared(Comparison("shadow", "spam", 0.5, 0.75))


def _families(registry: CollectorRegistry) -> dict[str, Metric]:
    text = generate_openmetrics(registry).decode()  # type: ignore[no-untyped-call]
    families: Iterable[Metric] = parse_openmetrics(text)  # type: ignore[no-untyped-call]
    return {family.name: family for family in families}


def test_metrics_are_as_declared(metrics: Metrics, registry: CollectorRegistry) -> None:
    """Names, kinds and labels of all metrics are those of the contract, and there are no others."""
    _use_all(metrics, FIRST)
    found = {}
    for name, family in _families(registry).items():
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, labels)
        assert family.documentation
    has_proc = Path("/proc/self/stat").exists()
    assert found == {name: each for name, each in DECLARED.items() if has_proc or not name.startswith("process_")}


def test_plain_text_parses_too(metrics: Metrics, registry: CollectorRegistry) -> None:
    """A scraper that does not know OpenMetrics can read the metrics, and no sample is NaN."""
    _use_all(metrics, FIRST)
    samples = [
        sample
        for family in parse_text(generate_latest(registry).decode())
        for sample in family.samples
    ]  # fmt: skip
    assert len(samples) > len(DECLARED)
    assert not any(math.isnan(sample.value) for sample in samples)


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("anabranch_build_info", {"version": "1.2.3"}, 1),
        ("anabranch_records_consumed_total", {"topic": "sms", "partition": "0"}, 200),
        ("anabranch_events_applied_total", {"model": "spam", "op": "insert"}, 180),
        ("anabranch_records_rejected_total", {"topic": "sms", "reason": "malformed"}, 2),
        ("anabranch_events_rejected_total", {"topic": "sms", "reason": "unknown-class"}, 8),
        ("anabranch_records_produced_total", {"type": "split"}, 6),
        ("anabranch_splits_changed_total", {"model": "spam"}, 6),
        ("anabranch_stage_duration_seconds_count", {"stage": "decode"}, 2),
        ("anabranch_stage_duration_seconds_sum", {"stage": "decode"}, 0.0006),
        ("anabranch_end_to_end_latency_seconds_sum", {"topic": "sms"}, 1.0),
        ("anabranch_batch_records_sum", {}, 200),
        ("anabranch_lag_records", {"topic": "sms", "partition": "0"}, 30),
        ("anabranch_committed_offset", {"topic": "sms", "partition": "0"}, 100),
        ("anabranch_last_commit_timestamp_seconds", {"topic": "sms", "partition": "0"}, 1_700_000_000),
        ("anabranch_restore_remaining_records", {"topic": "sms", "partition": "0"}, 7),
        ("anabranch_keys", {"model": "spam"}, 2),
        ("anabranch_live_slots", {"model": "spam"}, 300),
        ("anabranch_live_examples", {"model": "spam"}, 85),
        ("anabranch_state_bytes", {"model": "spam"}, 65_536),
        ("anabranch_examples_right_total", {"model": "spam"}, 12),
        ("anabranch_drifts_total", {"model": "spam"}, 2),
        ("anabranch_keys_expired_total", {"model": "spam"}, 10),
        ("anabranch_examples_let_go_total", {"model": "spam"}, 14),
        ("anabranch_drifts_total", {"model": "calm"}, 0),
        ("anabranch_late_labels_total", {"topic": "sms", "fate": "learned"}, 6),
        ("anabranch_late_labels_total", {"topic": "sms", "fate": "not-pending"}, 4),
        ("anabranch_pending_gone_total", {"topic": "sms", "why": "expired"}, 8),
        ("anabranch_pending_examples", {"topic": "sms", "partition": "0"}, 17),
        ("anabranch_pending_bytes", {"topic": "sms", "partition": "0"}, 2_048),
        ("anabranch_prequential_accuracy", {"model": "spam", "over": "delayed"}, 1.0),
        ("anabranch_tree_nodes", {"model": "spam"}, 7),
        ("anabranch_tree_depth", {"model": "spam"}, 2),
        ("anabranch_forest_warnings", {"model": "calm"}, 3),
        ("anabranch_forest_drifts", {"model": "calm"}, 1),
        ("anabranch_prequential_accuracy", {"model": "spam", "over": "all"}, 0.75),
        ("anabranch_prequential_kappa", {"model": "spam", "over": "all"}, 0.5),
        ("anabranch_prequential_accuracy", {"model": "spam", "over": "window"}, 1.0),
        ("anabranch_prequential_majority", {"model": "spam", "over": "all"}, 0.5),
        ("anabranch_prequential_no_change", {"model": "spam", "over": "window"}, 0.0),
        ("anabranch_prequential_kappa_m", {"model": "spam", "over": "all"}, 0.5),
        ("anabranch_prequential_kappa_temporal", {"model": "spam", "over": "all"}, 0.6),
        ("anabranch_shadow_lead", {"model": "shadow", "beside": "spam"}, -0.25),
        ("anabranch_examples_judged_total", {"model": "prices"}, 4),
        ("anabranch_prequential_mae", {"model": "prices", "over": "all"}, 0.5),
        ("anabranch_prequential_rmse", {"model": "prices", "over": "window"}, 0.5**0.5),
        ("anabranch_prequential_r2", {"model": "prices", "over": "window"}, 0.5),
        ("anabranch_prequential_coverage", {"model": "prices", "over": "all"}, 0.75),
        ("anabranch_prequential_coverage", {"model": "prices", "over": "window"}, 0.5),
        ("anabranch_prequential_width", {"model": "prices", "over": "all"}, 7.5),
        ("anabranch_prequential_mean_r2", {"model": "prices", "over": "all"}, 0.0),
        ("anabranch_prequential_no_change_mae", {"model": "prices", "over": "all"}, 2.0),
    ],
)
def test_values(
    metrics: Metrics, registry: CollectorRegistry, name: str, labels: dict[str, str], value: float
) -> None:
    """Counters and histograms add up over calls; gauges hold the last value."""
    _use_all(metrics, FIRST)
    _use_all(metrics, FIRST)
    samples = [sample for family in _families(registry).values() for sample in family.samples]
    found = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    assert found == [pytest.approx(value)]


def test_numbers_are_not_right_or_wrong(metrics: Metrics, registry: CollectorRegistry) -> None:
    """A model of numbers has no accuracy and no count of what was right."""
    _use_all(metrics, FIRST)
    samples = [sample for family in _families(registry).values() for sample in family.samples]
    names = {sample.name for sample in samples if sample.labels.get("model") == "prices"}
    assert "anabranch_prequential_r2" in names
    assert names.isdisjoint({"anabranch_examples_right_total", "anabranch_prequential_accuracy"})


def test_forget_removes_one_partition(metrics: Metrics, registry: CollectorRegistry) -> None:
    """After a revoke no series of the partition is left, and the other partitions' are."""
    _use_all(metrics, FIRST)
    _use_all(metrics, SECOND)
    metrics.forget(FIRST)
    metrics.forget(FIRST)
    left = {
        (sample.labels["partition"], family.name)
        for family in _families(registry).values()
        for sample in family.samples
        if "partition" in sample.labels
    }
    assert left == {("1", name) for name, (_, labels) in DECLARED.items() if "partition" in labels}


def test_a_partition_that_comes_back_starts_anew(metrics: Metrics, registry: CollectorRegistry) -> None:
    """A partition that is assigned again counts from zero, on a series that is scraped."""
    metrics.consumed(FIRST, 5)
    metrics.forget(FIRST)
    metrics.consumed(FIRST, 2)
    assert registry.get_sample_value(
        "anabranch_records_consumed_total", {"topic": "sms", "partition": "0"}
    ) == 2  # fmt: skip


def test_only_what_is_known_is_shown(metrics: Metrics, registry: CollectorRegistry) -> None:
    """A partition that has committed nothing shows no committed offset, rather than a zero."""
    metrics.position(FIRST, 0, 10)
    labels = {"topic": "sms", "partition": "0"}
    assert registry.get_sample_value("anabranch_lag_records", labels) == 10
    assert registry.get_sample_value("anabranch_committed_offset", labels) is None


def test_nothing_grows_with_traffic(metrics: Metrics, registry: CollectorRegistry) -> None:
    """The number of series depends on the labels alone, not on how much is counted."""
    _use_all(metrics, FIRST)
    before = len(generate_latest(registry).splitlines())
    for _ in range(100):
        _use_all(metrics, FIRST)
    assert len(generate_latest(registry).splitlines()) == before


@pytest.mark.parametrize(("seconds", "count"), [(math.nan, 0), (math.inf, 0), (-1.0, 1)])
def test_odd_durations(
    metrics: Metrics, registry: CollectorRegistry, seconds: float, count: int
) -> None:  # fmt: skip
    """A duration that is no number is not observed and one before zero counts as zero."""
    metrics.took("poll", 1.0)
    metrics.took("poll", seconds)
    name = "anabranch_stage_duration_seconds"
    assert registry.get_sample_value(f"{name}_count", {"stage": "poll"}) == 1 + count
    assert registry.get_sample_value(f"{name}_sum", {"stage": "poll"}) == 1.0


def test_stale_watermark(metrics: Metrics, registry: CollectorRegistry) -> None:
    """A watermark that is older than the position means no lag, not a negative one."""
    metrics.position(FIRST, 12, 10)
    assert registry.get_sample_value("anabranch_lag_records", {"topic": "sms", "partition": "0"}) == 0


def test_buckets() -> None:
    """Stage buckets reach from 10 us to 10 s; all buckets rise."""
    assert (STAGE_BUCKETS[0], STAGE_BUCKETS[-1]) == (1e-5, 10.0)
    for buckets in (STAGE_BUCKETS, END_TO_END_BUCKETS):
        assert sorted(set(buckets)) == list(buckets)


def test_two_workers_in_one_process() -> None:
    """Metrics share nothing: two of them live side by side."""
    first, second = CollectorRegistry(), CollectorRegistry()
    Metrics(first, "1").produced("split")
    Metrics(second, "1").produced("split", 2)
    labels = {"type": "split"}
    assert first.get_sample_value("anabranch_records_produced_total", labels) == 1
    assert second.get_sample_value("anabranch_records_produced_total", labels) == 2
