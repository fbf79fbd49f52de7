"""The dashboard of what the models learn: their predictions, splits and size."""

from __future__ import annotations

from worker.watching.dashboards.panels import Dashboard, Query, Row, Variable, graph
from worker.watching.dashboards.queries import MODELS, gauges, rate, rates


def _quotient(above: str, below: str) -> str:
    return f"{rate(above, 'model', MODELS)} / {rate(below, 'model', MODELS)}"


def _measure(name: str) -> tuple[Query, Query]:
    """Return a measure of each worker, as it does not add up over workers: of late, and ever."""
    late, ever = (
        gauges(f"anabranch_prequential_{name}", "model, instance", f'{MODELS}, over="{over}"')
        for over in ("window", "all")
    )
    return late, ever._replace(legend=f"{ever.legend} ever")


def _named(measure: str, name: str) -> tuple[Query, ...]:
    """Return the same, with a name in the legend."""
    return tuple(query._replace(legend=f"{name}: {query.legend}") for query in _measure(measure))


_QUALITY = Row(
    "Predictions, of models with evaluate",
    graph(
        "Accuracy",
        "percentunit",
        "Share of the examples of the last minutes that were predicted rightly before they were learned, over all "
        "workers.",
        Query(_quotient("anabranch_examples_right_total", "anabranch_examples_judged_total"), "{{model}}"),
        most=1,
    ),
    graph(
        "Accuracy by worker",
        "percentunit",
        "Over the last evaluate.window examples of each partition, and over all since the model began.",
        *_measure("accuracy"),
        most=1,
    ),
    graph(
        "Accuracy of answers given",
        "percentunit",
        "Of predicts whose labels came later: over the last evaluate.window labels of each partition.",
        gauges("anabranch_prequential_accuracy", "model, instance", f'{MODELS}, over="delayed-window"'),
        most=1,
    ),
    graph(
        "Accuracy that costs nothing",
        "percentunit",
        "Always saying the key's most frequent label so far (majority), or its last one (no change), over the "
        "same examples. A model below them has learned nothing of use.",
        *_named("majority", "majority"),
        *_named("no_change", "no change"),
        most=1,
    ),
    graph(
        "Kappa against what costs nothing",
        "short",
        "1 less the error over that of majority (M) or of no change (temporal): below 0 the model is worse.",
        *_named("kappa_m", "M"),
        *_named("kappa_temporal", "temporal"),
        most=1,
    ),
    graph(
        "Shadows beside models that they may replace",
        "percentunit",
        "By how much a model with shadow: true was right more often than a model of the same input, over the last "
        "examples of each: above 0 it is better.",
        Query(
            f"avg by (model, beside) (anabranch_shadow_lead{{{MODELS}}})",
            "{{model}} beside {{beside}}",
        ),
    ),
    graph(
        "Examples judged",
        "eps",
        "Where they are few the accuracy says little.",
        rates("anabranch_examples_judged_total", "model", MODELS),
    ),
    graph(
        "Kappa",
        "short",
        "Agreement beyond chance: 1 is always right, 0 no better than guessing by the shares of the classes.",
        *_measure("kappa"),
        most=1,
    ),
    graph(
        "Rises of the error",
        "short",
        "How often in an hour the error of the predictions rose, as ADWIN finds it: the stream has changed.",
        Query(f"sum by (model) (increase(anabranch_drifts_total{{{MODELS}}}[1h]))", "{{model}}"),
    ),
    graph(
        "Macro F1",
        "short",
        "Mean over the classes: a rare one counts as much as a frequent one.",
        *_measure("macro_f1"),
        most=1,
    ),
    graph(
        "Log-loss",
        "short",
        "Mean -ln of the share that the true class was given: lower is better.",
        *_measure("log_loss"),
    ),
)

_NUMBERS = Row(
    "Predictions of numbers, of models with evaluate",
    graph(
        "R2",
        "short",
        "1 less the squared errors over those of the mean of all labels: 1 is always right, 0 no better than it.",
        *_measure("r2"),
        most=1,
    ),
    graph(
        "R2 of what costs nothing",
        "short",
        "Always saying the mean of the key's labels so far, or its last one (no change), over the same examples. "
        "A model below them has learned nothing of use.",
        *_named("mean_r2", "mean"),
        *_named("no_change_r2", "no change"),
        most=1,
    ),
    graph(
        "Mean absolute error",
        "short",
        "In the unit of the labels, beside that of the mean and of no change.",
        *_named("mae", "model"),
        *_named("mean_mae", "mean"),
        *_named("no_change_mae", "no change"),
    ),
    graph(
        "Root of the mean squared error",
        "short",
        "Large errors count more, beside those of the mean and of no change.",
        *_named("rmse", "model"),
        *_named("mean_rmse", "mean"),
        *_named("no_change_rmse", "no change"),
    ),
    graph(
        "Labels within their interval",
        "percentunit",
        "Models with interval: the share of labels between low and high. In the long run it is what interval asks "
        "for; far below, the stream has just changed.",
        *_measure("coverage"),
        most=1,
    ),
    graph(
        "Width of intervals",
        "short",
        "Models with interval: mean distance from low to high, in the unit of the labels. Narrow ones say more.",
        *_measure("width"),
    ),
)

_LEARNING = Row(
    "Learning",
    graph(
        "Events applied",
        "eps",
        "Events that a model took.",
        rates("anabranch_events_applied_total", "model, op", MODELS),
    ),
    graph(
        "Splits changed",
        "cps",
        "Best splits that became another, or nodes of trees that split. A burst long after the start means that "
        "the stream has changed.",
        rates("anabranch_splits_changed_total", "model", MODELS),
    ),
    graph(
        "Splits changed by an event",
        "percentunit",
        "How unsettled a model is, whatever the load.",
        Query(_quotient("anabranch_splits_changed_total", "anabranch_events_applied_total"), "{{model}}"),
    ),
)

_SIZE = Row(
    "Size",
    graph(
        "Keys",
        "short",
        "Instances of a model; bounds.keys is the most in a partition.",
        gauges("anabranch_keys", "model", MODELS),
    ),
    graph(
        "Keys that nobody uses",
        "short",
        "Of models with expire: keys that went in a minute, and those that go with the next events.",
        Query(f"60 * {rate('anabranch_keys_expired_total', 'model', MODELS)}", "{{model}} went"),
        Query(f"sum by (model) (anabranch_keys_due{{{MODELS}}})", "{{model}} due"),
    ),
    graph(
        "Examples that leave a window by time",
        "short",
        "Of models with a window of time: examples that went in a minute, and those that go with the next events.",
        Query(f"60 * {rate('anabranch_examples_let_go_total', 'model', MODELS)}", "{{model}} went"),
        Query(f"sum by (model) (anabranch_examples_due{{{MODELS}}})", "{{model}} due"),
    ),
    graph(
        "Live slots",
        "short",
        "Pairs of key and feature that are counted, of trees of leaf and feature.",
        gauges("anabranch_live_slots", "model", MODELS),
    ),
    graph(
        "Live examples",
        "short",
        "Kept so that they can be deleted; bounds.live_ids is the most with an id in a partition.",
        gauges("anabranch_live_examples", "model", MODELS),
    ),
    graph(
        "Memory",
        "bytes",
        "Arrays of the models, spare room included.",
        gauges("anabranch_state_bytes", "model", MODELS),
    ),
    graph("Tree nodes", "short", "Of all trees of a model.", gauges("anabranch_tree_nodes", "model", MODELS)),
    graph(
        "Tree depth",
        "short",
        "Of the deepest tree of a model.",
        gauges("anabranch_tree_depth", "model", MODELS, "max"),
    ),
    graph(
        "Trees replaced in forests",
        "short",
        "In forests of trees that grow: a tree whose error has risen gives its place to another.",
        gauges("anabranch_forest_drifts", "model", MODELS),
    ),
    graph(
        "Trees begun beside others in forests",
        "short",
        "In forests of trees that grow: the error of a tree may have risen, and another begins beside it.",
        gauges("anabranch_forest_warnings", "model", MODELS),
    ),
)

MODELS_PAGE = Dashboard(
    "anabranch-models",
    "Anabranch: models",
    "What the models learn: how good their predictions are, splits, size.",
    (
        Variable("instance", "instance", "anabranch_build_info"),
        Variable("model", "model", "anabranch_keys"),
    ),
    (_QUALITY, _NUMBERS, _LEARNING, _SIZE),
)
