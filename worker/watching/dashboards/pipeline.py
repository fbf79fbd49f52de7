"""The dashboard of the way of an event: throughput, rejections, latency, lag, checkpoints, processes."""

from __future__ import annotations

from worker.watching.dashboards.panels import Dashboard, Query, Row, Variable, figure, graph
from worker.watching.dashboards.queries import TOPICS, WORKERS, ages, gauges, quantile, rates

_PARTITION = "topic, partition"

_NOW = Row(
    "Now",
    figure(
        "Workers",
        "none",
        "Workers that answer, by the version that they run. While one is rolled out there are two.",
        Query(f"sum by (version, python) (anabranch_build_info{{{WORKERS}}})", "{{version}}, Python {{python}}"),
    ),
    figure(
        "Records a second",
        "recps",
        "Input records consumed; a columnar record counts as one.",
        Query(f"sum(rate(anabranch_records_consumed_total{{{TOPICS}}}[$__rate_interval]))", "consumed"),
    ),
    figure(
        "Lag",
        "short",
        "Records written and not read yet, in all partitions.",
        Query(f"sum(anabranch_lag_records{{{TOPICS}}})", "lag"),
    ),
    figure(
        "Still to restore",
        "short",
        "Records to be read before all partitions are live.",
        Query(f"sum(anabranch_restore_remaining_records{{{TOPICS}}})", "records"),
    ),
    figure(
        "Oldest checkpoint",
        "s",
        "A restart of that partition replays what came since.",
        Query(f"max(time() - anabranch_last_checkpoint_timestamp_seconds{{{TOPICS}}})", "age"),
    ),
    figure(
        "Rejected",
        "short",
        "Records, and single events, that went to the dead letters in the time range shown.",
        Query(f"sum(increase(anabranch_records_rejected_total{{{TOPICS}}}[$__range]))", "records"),
        Query(f"sum(increase(anabranch_events_rejected_total{{{TOPICS}}}[$__range]))", "events"),
    ),
)

_THROUGHPUT = Row(
    "Throughput",
    graph(
        "Consumed by topic",
        "recps",
        "Input records; a columnar record counts as one. Silent replay is not counted.",
        rates("anabranch_records_consumed_total", "topic", TOPICS),
    ),
    graph(
        "Applied by operation",
        "eps",
        "Events that models took: once for each model that reads the topic.",
        rates("anabranch_events_applied_total", "op"),
    ),
    graph(
        "Produced by type",
        "recps",
        "Results and dead letters, once their transaction is committed.",
        rates("anabranch_records_produced_total", "type"),
    ),
    graph(
        "Rejected by reason",
        "eps",
        "What goes to the dead letters: whole records, and single events (once for each model that refused them). "
        "A producer that has changed shows as a new reason.",
        rates("anabranch_records_rejected_total", "topic, reason", TOPICS, " (records)"),
        rates("anabranch_events_rejected_total", "topic, reason", TOPICS, " (events)"),
    ),
    graph(
        "Passed by",
        "short",
        "Records at which processing failed (on_defect: quarantine); each is a defect to report.",
        Query(f"sum by (topic, partition) (anabranch_quarantined_records{{{TOPICS}}})", "{{topic}}/{{partition}}"),
    ),
    graph(
        "Examples that wait for labels",
        "short",
        "Predicts with an id that are kept until their label comes; topics.INPUT.pending.max is the most in a "
        "partition.",
        gauges("anabranch_pending_examples", "topic", TOPICS),
    ),
    graph(
        "Memory of what waits for labels",
        "bytes",
        "Arrays of the examples that wait, spare room included.",
        gauges("anabranch_pending_bytes", "topic", TOPICS),
    ),
    graph(
        "Late labels",
        "eps",
        "Labels that were learned, and those of examples that are not pending: with many of these, max or for is "
        "too small. And examples that went without a label of their own.",
        rates("anabranch_late_labels_total", "topic, fate", TOPICS),
        rates("anabranch_pending_gone_total", "topic, why", TOPICS, " (gone)"),
    ),
    graph(
        "Without effect",
        "eps",
        "Events that were in order and changed nothing, as the settings say.",
        rates("anabranch_events_passed_over_total", "model, why"),
    ),
    graph(
        "Records in a batch",
        "short",
        "Of a partition in a poll. Batches as large as transaction.records mean catching up.",
        quantile(0.5, "anabranch_batch_records"),
        quantile(0.99, "anabranch_batch_records"),
        Query(
            f"sum(rate(anabranch_batch_records_sum{{{WORKERS}}}[$__rate_interval])) / "
            f"sum(rate(anabranch_batch_records_count{{{WORKERS}}}[$__rate_interval]))",
            "mean",
        ),
    ),
)

_LATENCY = Row(
    "Latency",
    graph(
        "End to end",
        "s",
        "From the record's timestamp to the committed result, of the worst record of each transaction: an upper "
        "estimate of what readers see. While old records are read it is their age.",
        *(quantile(share, "anabranch_end_to_end_latency_seconds", "topic", TOPICS) for share in (0.5, 0.9, 0.99)),
        logarithmic=True,
    ),
    graph(
        "Stages",
        "s",
        "Poll, decode, update and encode of a batch; commit of a transaction; the copy for a checkpoint.",
        *(quantile(share, "anabranch_stage_duration_seconds", "stage") for share in (0.5, 0.99)),
        logarithmic=True,
    ),
    graph(
        "Where the time goes",
        "percentunit",
        "Share of its time that a worker's loop spends in each stage. Polling includes waiting for records, so a "
        "worker without polling has no reserve.",
        rates("anabranch_stage_duration_seconds_sum", "instance, stage"),
    ),
)

_PARTITIONS = Row(
    "Partitions",
    graph(
        "Lag",
        "short",
        "High watermark minus the next offset to be read, once a second.",
        gauges("anabranch_lag_records", _PARTITION, TOPICS),
    ),
    graph(
        "Committed offset",
        "none",
        "It rises with the input; flat while there is lag means stuck.",
        gauges("anabranch_committed_offset", _PARTITION, TOPICS, "max"),
    ),
    graph(
        "Age of the last commit",
        "s",
        "It rises where nothing comes in, too: look at the lag beside it.",
        ages("anabranch_last_commit_timestamp_seconds", _PARTITION, TOPICS),
    ),
)

_STATE = Row(
    "Checkpoints, restore, transactions",
    graph(
        "Age of the checkpoint",
        "s",
        "What a restart has to replay grows with it. It rises where nothing comes in, too.",
        ages("anabranch_last_checkpoint_timestamp_seconds", _PARTITION, TOPICS),
    ),
    graph(
        "Size of the state",
        "bytes",
        "Of each partition as last copied; the state topic holds it once or twice.",
        gauges("anabranch_checkpoint_bytes", _PARTITION, TOPICS, "max"),
    ),
    graph(
        "Written for checkpoints",
        "Bps",
        "Pages that changed, manifests and tombstones; checkpoint.bytes_per_second bounds it for each partition.",
        rates("anabranch_checkpoint_written_bytes_total", "instance"),
    ),
    graph(
        "Still to restore",
        "short",
        "Records of checkpoint and input that are to be read before a partition is live.",
        gauges("anabranch_restore_remaining_records", _PARTITION, TOPICS),
    ),
    graph(
        "Pause for a checkpoint",
        "s",
        "How long the loop stops to copy the models.",
        *(
            quantile(share, "anabranch_stage_duration_seconds", chosen=f'{WORKERS}, stage="checkpoint"')
            for share in (0.5, 0.99)
        ),
    ),
    graph(
        "Transactions that went wrong",
        "cps",
        "Aborted by the log and sent again, or dropped because the group had moved a partition. Now and then one "
        "is normal.",
        rates("anabranch_transactions_aborted_total", "instance", more=" aborted"),
        rates("anabranch_ownership_lost_total", "instance", more=" lost"),
    ),
)

_PROCESSES = Row(
    "Processes",
    graph(
        "Memory",
        "bytes",
        "Of the process, and of that the arrays of the models. A checkpoint keeps a copy of the arrays.",
        gauges("process_resident_memory_bytes", "instance"),
        gauges("anabranch_state_bytes", "instance")._replace(legend="{{instance}} models"),
    ),
    graph(
        "Processor",
        "short",
        "Cores in use. The loop is one thread; the client of the log and the web server have their own.",
        rates("process_cpu_seconds_total", "instance"),
    ),
    graph(
        "Uptime",
        "s",
        "A saw means that a worker is started again and again.",
        ages("process_start_time_seconds", "instance"),
    ),
    graph(
        "Open files",
        "percentunit",
        "Share of those that the process may have: connections to brokers and from readers of its pages.",
        Query(
            f"{gauges('process_open_fds', 'instance').expression} / "
            f"{gauges('process_max_fds', 'instance').expression}",
            "{{instance}}",
        ),
        most=1,
    ),
)

PIPELINE = Dashboard(
    "anabranch-pipeline",
    "Anabranch: pipeline",
    "Throughput, rejections, latency, lag, checkpoints and the processes of the workers.",
    (
        Variable("instance", "instance", "anabranch_build_info"),
        Variable("topic", "topic", "anabranch_lag_records"),
    ),
    (_NOW, _THROUGHPUT, _LATENCY, _PARTITIONS, _STATE, _PROCESSES),
)
