"""Settings that fit what a file holds, as text of a settings file."""

from __future__ import annotations

from typing import Any

import yaml

from worker.sources.overview import Contents

_MOST_CLASSES = 1_000
_BAD = 0.1  # of the lines may be none; beyond, the file is read in a wrong way
_NAMED = 50  # features in a list; beyond, the commoner kind is the default


class DraftError(Exception):
    """No model takes what the file holds; the message says what was expected, what came and what to do."""


def draft(contents: Contents, topic: str, log: dict[str, Any], *, forest: bool = False) -> str:
    """Return the text of a settings file with a tree, or a forest of such trees, that learns from such events.

    A `tree`, which grows; where events are deleted and it can be, a `dynamic-tree`, which forgets; where labels
    are numbers to be predicted, a `regression-tree`.

    Raises
    ------
    DraftError
        Where many lines are no events or there are none, where classes are fewer than two or too many, or where
        a forest is to predict numbers.
    """
    if contents.bad > _BAD * (contents.events + contents.bad):
        raise DraftError(
            f"expected {contents.unit} that are nearly all events, got {contents.bad:,} others beside "
            f"{contents.events:,}; the first is {contents.first_bad}"
        )
    names = {isinstance(feature, str) for feature in contents.features}
    if len(names) > 1:
        raise DraftError(
            "expected features that are all ids or all names, got both; publish them to topics of their own"
        )
    if forest and contents.has_number_labels:
        raise DraftError("expected labels that are classes for a forest, got numbers; leave out --forest")
    model: dict[str, Any] = {"kind": "regression-tree", "input": topic}
    if not contents.has_number_labels:
        model = {
            "kind": "dynamic-tree" if contents.ops["delete"] else "tree",
            "input": topic,
            "classes": _classes(contents),
        }
    model["features"] = "names" if True in names else "ids"
    if contents.numbers:
        model["attributes"] = _attributes(contents)
    if model["kind"] == "tree":
        model |= _tree(contents, len(model["classes"]))
    elif model["kind"] == "regression-tree":
        model |= {"predict": "adaptive", "interval": 0.9}
    note = ""
    if model["kind"] == "regression-tree" and contents.ops["delete"]:
        model["on_delete"] = "ignore"
        note = (
            "# A regression tree cannot forget: deletes are counted and have no effect (on_delete).\n"
            "# A dynamic-tree with target: number can, of labels in a declared label_range.\n"
        )
    if forest:
        model = _in_a_forest(model)
    model["evaluate"] = {}
    # Some ten drawings of each key's tree.
    model["emit"] = {"snapshots": {"every": max(10, contents.events // (10 * len(contents.keys)))}}
    body = yaml.safe_dump(
        {"log": log, "models": {"forest" if forest else "tree": model}},
        sort_keys=False,
        default_flow_style=None,
        width=110,
        allow_unicode=True,
    )
    return f"# Made by anabranch init; every setting: deploy/worker.yaml, worker/README.md\n{note}{body}"


def _classes(contents: Contents) -> list[int | str]:
    labels = contents.labels
    if not contents.events:
        raise DraftError("expected events to look at, got none; check the file or the topic")
    if len({isinstance(label, str) for label in labels}) > 1:
        some = sorted(label for label in labels if not isinstance(label, str))[:3]
        pairs = ",".join(f"{label}=class_{label}" for label in some)
        raise DraftError(
            "expected labels that are all numbers or all names, got both; rename them in the file, or write "
            f"the settings yourself and publish with --map-label {pairs},..."
        )
    if not 1 < len(labels) <= _MOST_CLASSES:
        raise DraftError(
            f"expected 2 to {_MOST_CLASSES:,} classes, got {len(labels):,}; name another column with --label"
        )
    return sorted(label for label in labels if not isinstance(label, float))


def _attributes(contents: Contents) -> dict[str, Any]:
    """Return which features are numbers, by a list or by what the others are not; there is a default always.

    Without one a worker would tell of features that come and are not in the list.
    """
    numeric = sorted(contents.numbers)
    binary = sorted(contents.features.keys() - contents.numbers.keys())
    if not binary:
        return {"default": "numeric"}
    if len(numeric) <= _NAMED or len(numeric) <= len(binary):
        return {"default": "binary", "numeric": numeric}
    return {"default": "numeric", "binary": binary}


def _tree(contents: Contents, classes: int) -> dict[str, Any]:
    """Return how a tree grows: on presence alone at once, else when the Hoeffding bound says so."""
    sparse = contents.values < 0.5 * contents.events * len(contents.features)
    if not contents.numbers and classes == 2:
        return {"policy": "exact", "predict": "naive_bayes" if sparse else "adaptive"}
    return {"policy": "periodic", "predict": "adaptive_present" if sparse and not contents.numbers else "adaptive"}


def _in_a_forest(model: dict[str, Any]) -> dict[str, Any]:
    """Return a forest of trees like one; those that grow split soon there, which needs no policy of its own."""
    made: dict[str, Any] = {"kind": "forest"}
    if model["kind"] == "tree":
        made["of"] = {"kind": "tree", "predict": model["predict"]}
    return made | {name: value for name, value in model.items() if name not in ("kind", "policy", "predict")}
