"""Checkpoints that an earlier version wrote: the code as it is restores them, and goes on to the same bytes.

`python -m tests.worker.state.test_golden_checkpoints NAME` writes some anew, or new ones: for a new kind of state,
never for a change that makes the old ones unreadable. State topics of users are as old.
"""

from __future__ import annotations

import gzip
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from algorithms.core.kinds import Kind
from algorithms.regression.observers import OBSERVERS
from algorithms.regression.pool import RegressionPool
from tests.support.places import GOLDEN
from tests.support.recordings import CLICKS, PARTITIONS, START, WORDS, mixed
from tests.support.workers import worker_on
from worker.checkpoint import read_marks, returned
from worker.epochs import unpack_epochs
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError, OutRecord, TopicPartition
from worker.models.dynamic import LATER
from worker.recordings.compare import first_difference
from worker.settings import Settings, fingerprint, load

NUMBERS = "numbers"
EVENTS = 300  # of the words and clicks, and as many of the numbers: a checkpoint lies in the middle of them

# Every finder, policy, criterion, kind of attribute and way to predict; what state there is depends on these.
SETTINGS = """
log: {embedded: unused.db}
metrics: null
models:
  exact: {kind: split, input: words, classes: [ham, spam], features: names, on_duplicate: replace,
    emit: {snapshots: {every: 25}}}
  sqrt: {kind: split, input: clicks, criterion: sqrt, classes: [0, 1], features: ids}
  verified: {kind: split, input: clicks, criterion: gini, classes: [0, 1], features: ids, verify_deletes: true}
  window: {kind: split, input: words, finder: basegini, classes: [ham, spam], features: names, window: 20,
    emit: {splits: {every: 7}, snapshots: {every_ms: 60000}}}
  scan: {kind: split, input: clicks, finder: baseent, classes: [0, 1], features: ids, on_duplicate: ignore}
  updent: {kind: split, input: words, finder: updent, alpha: 0.5, classes: [ham, spam], features: names}
  updgini: {kind: split, input: clicks, finder: updgini, alpha: 0.1, classes: [0, 1], features: ids}
  tree-exact: {kind: tree, input: words, classes: [ham, spam], features: names, policy: exact,
    predict: naive_bayes, delta: 0.3, tau: 0.2, on_delete: ignore, evaluate: {window: 20, emit: {every: 15}},
    emit: {snapshots: change}}
  tree-periodic: {kind: tree, input: numbers, classes: [a, b, c], features: names, policy: periodic, period: 10,
    delta: 0.3, tau: 0.3, attributes: {default: numeric, nominal: [town], binary: [flag]}, predict: adaptive,
    evaluate: {emit: {every: 20}}, emit: {snapshots: {every: 50}}}
  tree-quantised: {kind: tree, input: numbers, classes: [a, b, c], features: names, policy: periodic,
    criterion: gini, period: 10, delta: 0.3, tau: 0.3, inherit: true, drop_poor: true, memory_limit: 2000000,
    attributes: {default: quantised, nominal: [town], radius_fraction: 0.5}, emit: {snapshots: {every: 50}}}
  tree-osm: {kind: tree, input: clicks, classes: [1, 0, 2], features: ids, policy: osm, criterion: gini, period: 8,
    delta: 0.3, tau: 0.3, on_delete: ignore, emit: {snapshots: {every: 40}}}
  tree-imac: {kind: tree, input: numbers, classes: [a, b, c], features: names, policy: imac, criterion: gini,
    period: 6, check_every: 4, delta: 0.4, tau: 0.3, attributes: {default: numeric, nominal: [town]},
    predict: adaptive, emit: {snapshots: {every: 40}}}
  tree-efdt: {kind: tree, input: numbers, classes: [a, b, c], features: names, policy: efdt, period: 8,
    check_every: 16, delta: 0.3, tau: 0.3, attributes: {default: numeric, nominal: [town]}, predict: naive_bayes,
    emit: {snapshots: {every: 40}}}
  tree-hat: {kind: tree, input: numbers, classes: [a, b, c], features: names, policy: hat, period: 10, delta: 0.3,
    tau: 0.3, attributes: {default: numeric, nominal: [town]}, evaluate: {}, emit: {snapshots: {every: 40}}}
  forgets: {kind: dynamic-tree, input: words, classes: [ham, spam], features: names, epsilon: 0.3, max_depth: 4,
    window: 40, on_duplicate: replace, evaluate: {window: 20, emit: {every: 25}}, emit: {snapshots: change}}
  forgets-numbers: {kind: dynamic-tree, input: numbers, classes: [a, b, c], features: names, criterion: entropy,
    attributes: {default: numeric, binary: [flag]}, epsilon: 0, max_depth: 5, min_examples: 3, window: 60,
    emit: {snapshots: {every: 15}}}
bounds: {keys: 6, live_ids: 150}
"""

# Kinds and settings that came after those.
ADDED_KINDS = """
log: {embedded: unused.db}
metrics: null
models:
  counts: {kind: regression-tree, input: clicks, features: ids, grace_period: 10, split_confidence: 0.3,
    tie_threshold: 0.3, on_delete: ignore, evaluate: {window: 20, emit: {every: 25}},
    emit: {snapshots: {every: 40}}}
  slots: {kind: regression-tree, input: clicks, features: ids, observer: tebst, attributes: {default: numeric},
    grace_period: 10, split_confidence: 0.3, tie_threshold: 0.3, on_delete: ignore, expire: 20s,
    emit: {snapshots: {every: 40}}}
  forest: {kind: forest, input: words, classes: [ham, spam], features: names, trees: 3, bagging: "poisson:1",
    subspace: 0.5, epsilon: 0.3, window: 40, on_duplicate: replace, evaluate: {}, emit: {snapshots: {every: 50}}}
  exact: {kind: dynamic-tree, input: numbers, classes: [a, b, c], features: names, guarantee: exact, window: 60,
    attributes: {default: numeric, binary: [flag, town]}, evaluate: {}, emit: {snapshots: {every: 15}}}
  within: {kind: dynamic-tree, input: words, classes: [ham, spam], features: names, beta: 0.02, max_depth: 6,
    on_duplicate: replace, expire: 30s, evaluate: {}, emit: {snapshots: {every: 15}}}
  idle: {kind: split, input: words, classes: [ham, spam], features: names, expire: 20s, on_duplicate: replace}
  shadow: {kind: tree, input: clicks, classes: [1, 0, 2], features: ids, shadow: true, evaluate: {},
    on_delete: ignore}
bounds: {keys: 6, live_ids: 150}
"""
WINDOWS_BY_TIME = """
log: {embedded: unused.db}
metrics: null
models:
  split: {kind: split, input: words, classes: [ham, spam], features: names, window: 60s, on_duplicate: replace}
  idle: {kind: split, input: clicks, classes: [0, 1], features: ids, window: 50s, expire: 2m}
  tree: {kind: dynamic-tree, input: numbers, classes: [a, b, c], features: names, guarantee: exact, window: 30s,
    attributes: {default: numeric, binary: [flag, town]}, evaluate: {}, emit: {snapshots: {every: 15}}}
  forest: {kind: forest, input: words, classes: [ham, spam], features: names, trees: 3, bagging: "poisson:1",
    subspace: 0.5, epsilon: 0.3, window: 60s, evaluate: {}, emit: {snapshots: {every: 50}}}
bounds: {keys: 6, live_ids: 150}
"""
# Trees with models of leaves and intervals, which have arrays of their own.
LINEAR = """
log: {embedded: unused.db}
metrics: null
models:
  linear: {kind: regression-tree, input: clicks, features: ids, predict: linear, attributes: {default: numeric},
    grace_period: 10, split_confidence: 0.3, tie_threshold: 0.3, on_delete: ignore, emit: {snapshots: {every: 40}}}
  adaptive: {kind: regression-tree, input: clicks, features: ids, predict: adaptive, observer: ebst, interval: 0.9,
    grace_period: 10, split_confidence: 0.3, tie_threshold: 0.3, on_delete: ignore, expire: 20s,
    evaluate: {window: 20, emit: {every: 25}}}
bounds: {keys: 6, live_ids: 150}
"""
# Splits of more than two classes, and of categories and numbers.
MIXED_SPLITS = """
log: {embedded: unused.db}
metrics: null
models:
  words: {kind: split, input: words, classes: [eggs, ham, spam], features: names, on_duplicate: replace,
    window: 60s, emit: {snapshots: {every: 25}}}
  numbers: {kind: split, input: numbers, classes: [a, b, c], features: names, criterion: gini, window: 60,
    attributes: {default: numeric, nominal: [town], binary: [flag]}, emit: {splits: {every: 3}}}
  idle: {kind: split, input: clicks, classes: [1, 0], features: ids, attributes: {numeric: [3], nominal: [5]},
    expire: 20s, emit: {snapshots: change}}
bounds: {keys: 6, live_ids: 150}
"""
# Splits of labels that are numbers, of which sums are kept.
NUMBER_SPLITS = """
log: {embedded: unused.db}
metrics: null
models:
  cents: {kind: split, input: clicks, target: number, label_range: [-1, 1], label_unit: 0.01, features: ids,
    on_duplicate: replace, emit: {snapshots: {every: 25}}}
  window: {kind: split, input: clicks, target: number, label_range: [0, 5], label_unit: 0.25, features: ids,
    window: 20, emit: {splits: {every: 7}}}
  idle: {kind: split, input: clicks, target: number, label_range: [-100, 100], label_unit: 1.0e-9, features: ids,
    window: 50s, expire: 2m, emit: {snapshots: change}}
bounds: {keys: 6, live_ids: 150}
"""
# Trees of labels that are numbers, of which sums and squares are kept.
DYNAMIC_NUMBERS = """
log: {embedded: unused.db}
metrics: null
models:
  cents: {kind: dynamic-tree, input: clicks, target: number, label_range: [-1, 1], label_unit: 0.01, features: ids,
    attributes: {numeric: [3, 4294967295]}, epsilon: 0.3, on_duplicate: replace,
    evaluate: {window: 20, emit: {every: 25}}, emit: {snapshots: {every: 25}}}
  greedy: {kind: dynamic-tree, input: clicks, target: number, label_range: [0, 5], label_unit: 0.25, features: ids,
    epsilon: 0, window: 20, emit: {snapshots: change}}
  idle: {kind: dynamic-tree, input: clicks, target: number, label_range: [-100, 100], label_unit: 1.0e-9,
    features: ids, attributes: {default: numeric}, window: 50s, expire: 2m, emit: {snapshots: {every: 15}}}
bounds: {keys: 6, live_ids: 150}
"""
# The same with floors, of nodes and of their numeric features, and rivals of the binary ones.
EXACT_NUMBERS = """
log: {embedded: unused.db}
metrics: null
models:
  cents: {kind: dynamic-tree, input: clicks, target: number, label_range: [-1, 1], label_unit: 0.01, features: ids,
    attributes: {numeric: [3, 4294967295]}, guarantee: exact, on_duplicate: replace,
    evaluate: {window: 20, emit: {every: 25}}, emit: {snapshots: {every: 25}}}
  near: {kind: dynamic-tree, input: clicks, target: number, label_range: [0, 5], label_unit: 0.25, features: ids,
    attributes: {default: numeric}, beta: 0.02, window: 20, emit: {snapshots: change}}
  idle: {kind: dynamic-tree, input: clicks, target: number, label_range: [-100, 100], label_unit: 1.0e-9,
    features: ids, guarantee: exact, window: 50s, expire: 2m, emit: {snapshots: {every: 15}}}
bounds: {keys: 6, live_ids: 150}
"""
# Forests of trees that grow, of which some have drifted.
GROWING_FORESTS = """
log: {embedded: unused.db}
metrics: null
models:
  words: {kind: forest, of: {kind: tree, policy: exact, tie_threshold: 0.3}, input: words, classes: [ham, spam],
    features: names, trees: 3, bagging: "poisson:1", subspace: 0.5, warning: 0.9, drift: 0.5, expire: 30s,
    on_delete: ignore, evaluate: {}, emit: {snapshots: {every: 50}}}
  numbers: {kind: forest, of: {kind: tree, tie_threshold: 0.3}, input: numbers, classes: [a, b, c],
    features: names, trees: 3, bagging: "2 of 3", attributes: {default: numeric, nominal: [town], binary: [flag]},
    warning: 0.9, drift: 0.5, evaluate: {}, emit: {snapshots: {every: 15}}}
bounds: {keys: 6, live_ids: 150}
"""
STATES = {
    "checkpoints": SETTINGS,
    "added_kinds": ADDED_KINDS,
    "windows": WINDOWS_BY_TIME,
    "linear": LINEAR,
    "mixed_splits": MIXED_SPLITS,
    "number_splits": NUMBER_SPLITS,
    "dynamic_numbers": DYNAMIC_NUMBERS,
    "exact_numbers": EXACT_NUMBERS,
    "growing_forests": GROWING_FORESTS,
}

ALIASES = {"period": "grace_period", "delta": "split_confidence", "tau": "tie_threshold"}


def numbers(events: int = EVENTS, seed: int = 3) -> Iterator[OutRecord]:
    """Yield examples with numeric, nominal and binary features, three classes that change, two keys."""
    draw = random.Random(seed)
    for at in range(events):
        label = draw.randrange(3)
        x: dict[str, float] = {"hot": round(draw.gauss(label * 2.0 * (-1) ** (at // 150), 1.0), 3)}
        if draw.random() < 0.7:
            x["wet"] = draw.choice((0.5, 1.25, -3.0)) * label
        if draw.random() < 0.6:
            x["town"] = draw.randrange(1, 4) if draw.random() < 0.3 else label + 1
        if draw.random() < 0.4 + 0.2 * label:
            x["flag"] = 1
        event = {"x": x, "y": "abc"[label], "id": at}
        if draw.random() < 0.1:
            event = {"op": "predict", "x": x}
        key = b"key-%d" % draw.randrange(2)
        yield OutRecord(NUMBERS, 0, key, msgpack.packb(event), (), START + 500 * at)


def stream() -> list[OutRecord]:
    """Return all records in one order, so that the middle is a middle of every topic."""
    words_and_clicks, figures = list(mixed(EVENTS, seed=11)), list(numbers())
    return [record for pair in zip(words_and_clicks, figures, strict=True) for record in pair]


def run_models(
    log: Path, settings: Settings, records: list[OutRecord], *, check: bool = True
) -> dict[TopicPartition, dict[str, Any]]:
    """Publish records, let a worker read them to the end and leave a checkpoint; return its arrays."""
    with EmbeddedLog(log, group=settings.group) as opened:
        for topic, partitions in ((WORDS, PARTITIONS), (CLICKS, PARTITIONS), (NUMBERS, 1)):
            opened.create_topic(topic, partitions)
        opened.append(records)
        worker = worker_on(opened, settings)
        worker.run(lambda: False, until_end=True)
        models = [model for each in worker.partitions.values() for model in each.pipeline.models]
        for model in models if check else ():
            model.check()
        return {source: partition.pipeline.arrays() for source, partition in worker.partitions.items()}


def _layouts(arrays: dict[TopicPartition, dict[str, Any]]) -> dict[str, str]:
    """Return type and size of a row of each array, by model and name."""
    return {
        f"{model}/{name}": f"{array.dtype.str}{array.shape[1:]}"
        for models in arrays.values()
        for model, named in models.items()
        for name, array in named.items()
    }


def _loaded(text: str, folder: Path) -> Settings:
    path = folder / "settings.yaml"
    path.write_text(text)
    return load(path, {})


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of the oldest checkpoints."""
    return _loaded(SETTINGS, tmp_path_factory.mktemp("golden"))


def _unpacked(name: str, folder: Path) -> Path:
    path = folder / name
    with gzip.open(GOLDEN / f"{name}.gz") as packed, path.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return path


def _renamed(text: str) -> str:
    for name, alias in ALIASES.items():
        assert f" {name}: " in text
        text = text.replace(f" {name}: ", f" {alias}: ")
    return text


@pytest.mark.parametrize(
    ("name", "text"),
    [*STATES.items(), ("checkpoints", _renamed(SETTINGS))],
    ids=[*STATES, "checkpoints, by the other names"],
)
def test_checkpoints_restore_and_go_on(tmp_path: Path, name: str, text: str) -> None:
    """A worker that starts from the kept checkpoints writes the bytes that the one which wrote them went on to.

    So does one whose settings have been called by the field's names since.
    """
    settings = _loaded(text, tmp_path)
    log, golden = _unpacked(f"{name}.db", tmp_path), _unpacked(f"{name}.out.db", tmp_path)
    with EmbeddedLog(log, group=settings.group) as opened:
        for topic, partitions in ((WORDS, PARTITIONS), (CLICKS, PARTITIONS), (NUMBERS, 1)):
            for number in range(
                partitions if topic in settings.routes else 0
            ):  # what is in the models must come from the checkpoint alone
                source = TopicPartition(topic, number)
                committed = opened.committed(source)
                assert committed
                opened.truncate(source, committed)
    run_models(log, settings, stream()[EVENTS:])
    topics = [topic for route in settings.routes.values() for topic in route.results]
    with EmbeddedLog(golden, create=False) as wanted, EmbeddedLog(log) as found:
        assert first_difference(wanted, found, topics) is None


def test_a_group_without_epochs_is_taken_over(tmp_path: Path, settings: Settings) -> None:
    """A group of a version that kept a digest alone goes on with its settings; from then on they may change."""
    log = _unpacked("checkpoints.db", tmp_path)
    scan = settings.models["scan"].model_copy(update={"on_duplicate": "reject"})
    changed = settings.model_copy(update={"models": {**settings.models, "scan": scan}})
    with pytest.raises(
        LogError, match=r"are others: .*Start once with the settings as they were, then change them"
    ):
        run_models(log, changed, [])
    source = TopicPartition(CLICKS, 0)

    def epochs() -> list[tuple[int, str, int]]:
        with EmbeddedLog(log, group=settings.group) as opened:
            state = TopicPartition(f"{CLICKS}.state", 0)
            kept = unpack_epochs(returned(read_marks(opened, state, float, 5.0)).epochs).get(settings.group, ())
            return [(epoch.number, epoch.note, epoch.models["scan"].joined) for epoch in kept]

    with EmbeddedLog(log, group=settings.group) as opened:
        assert opened.metadata(source) == fingerprint(settings)
    assert epochs() == []
    run_models(log, settings, stream()[EVENTS : EVENTS + 100])
    assert epochs() == [(1, fingerprint(settings), 0)], "the note is the digest: the older version could go on"
    with EmbeddedLog(log, group=settings.group) as opened:
        assert opened.metadata(source) == fingerprint(settings)
        joined = opened.committed(source)
    run_models(log, changed, [])
    assert [epoch[::2] for epoch in epochs()] == [(1, 0), (2, joined)]


@pytest.mark.parametrize("name", STATES)
def test_the_names_of_arrays_stay(tmp_path: Path, name: str) -> None:
    """Checkpoints of today have arrays of the same names, types and row sizes as the kept ones, and later ones."""
    kept = np.load(GOLDEN / f"{name}.arrays.npz")
    settings = _loaded(STATES[name], tmp_path)
    layouts = _layouts(run_models(tmp_path / "log.db", settings, stream()[:60]))
    expected = dict(zip(kept["names"].tolist(), kept["layouts"].tolist(), strict=True))
    later = {
        f"{model}/{array}" for model in settings.models for array in LATER if f"{model}/{array}" not in expected
    }
    assert {array: layout for array, layout in layouts.items() if array not in later} == expected


def _regression(observer: str) -> RegressionPool:
    options = {"radius": 0.25} if observer == "qo" else {}
    return RegressionPool(
        observer=observer,
        options=options,
        grace_period=20,
        split_confidence=0.1,
        tie_threshold=0.2,
        default=Kind.NUMERIC,
        names=True,
    )


def _learn(pool: RegressionPool, start: int, stop: int) -> list[float]:
    """Learn some of a stream and return the predictions made before."""
    draw, guesses = random.Random(5), []
    for at in range(stop):
        x = {b"hot": draw.gauss(0.0, 1.0), b"wet": draw.random(), b"rare": float(draw.random() < 0.1)}
        label = (3.0 if x[b"hot"] > 0.3 else -1.0) + x[b"wet"] + draw.gauss(0.0, 0.1)
        if at >= start:
            guesses.append(pool.predict(x))
            pool.learn(x, label, weight=draw.choice((1.0, 0.5, 2.0)))
    return guesses


@pytest.mark.parametrize("observer", OBSERVERS)
def test_regression_trees_restore_and_go_on(observer: str) -> None:
    """A regression pool that starts from the kept arrays predicts what the one that wrote them did."""
    with np.load(GOLDEN / "regression.npz") as kept:
        arrays = {
            name.removeprefix(f"{observer}/"): kept[name] for name in kept if name.startswith(f"{observer}/")
        }
    expected = arrays.pop("predictions").tolist()
    pool = _regression(observer).restore(arrays)
    pool.check()
    assert _learn(pool, 150, 300) == expected


def _write(name: str) -> None:
    """Write the golden files of some settings."""
    folder = GOLDEN / "made"
    folder.mkdir()
    settings = _loaded(STATES[name], folder)
    log = folder / "log.db"
    arrays = run_models(log, settings, stream()[:EVENTS])
    layouts = _layouts(arrays)
    np.savez_compressed(
        GOLDEN / f"{name}.arrays.npz", names=np.array(list(layouts)), layouts=np.array(list(layouts.values()))
    )
    whole = folder / "whole.db"
    shutil.copyfile(log, whole)
    run_models(whole, settings, stream()[EVENTS:])
    with EmbeddedLog(whole) as opened, EmbeddedLog(folder / "results.db") as results:
        for topic in (topic for route in settings.routes.values() for topic in route.results):
            partitions = opened.partitions(topic) or 0
            results.create_topic(topic, partitions)
            for number in range(partitions):
                results.record(opened.read(TopicPartition(topic, number), 0, 1_000_000))
    for made, part in ((log, "db"), (folder / "results.db", "out.db")):
        with made.open("rb") as raw, gzip.GzipFile(GOLDEN / f"{name}.{part}.gz", "wb", mtime=0) as packed:
            shutil.copyfileobj(raw, packed)
    shutil.rmtree(folder)


def _write_regression() -> None:
    """Write the golden file of the library's regression trees."""
    states: dict[str, Any] = {}
    for observer in OBSERVERS:
        pool = _regression(observer)
        _learn(pool, 0, 150)
        states |= {f"{observer}/{name}": array.copy() for name, array in pool.arrays().items()}
        states[f"{observer}/predictions"] = np.array(_learn(pool, 150, 300))
    np.savez_compressed(GOLDEN / "regression.npz", **states)


if __name__ == "__main__":
    for told in sys.argv[1:]:
        _write_regression() if told == "regression" else _write(told)
