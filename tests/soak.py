"""A worker with every kind of model on real Apache Kafka, under a bounded load for minutes: nothing may grow.

::

    python -m tests.soak --minutes 10

Every example leaves again by a window or a delete, keys, words and classes come from a fixed stock, each key is
forgotten now and then, and checkpoints are made all the while. So after the first minutes neither memory nor the
state topic nor the open files have a reason to grow. Prints a line of figures every few seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from tests.support.places import ROOT
from worker.broker import Cluster, install
from worker.broker.ports import HOST, free_ports
from worker.codec.event import encode_batch, encode_event
from worker.log.kafka import KafkaLog
from worker.settings import load
from worker.topics import create_topics

PARTITIONS = 2
KEYS = 40
WORDS = 3_000
LIVE = 5_000  # examples that are live at a time, over all keys
WINDOW = 100  # of each key, for the models that have one: below its share of LIVE, so that windows drop some
AGE = 5  # seconds that examples have in the model whose window is a time: fewer than LIVE come in it
WAITING = 100  # examples that wait for labels at a time
WAIT = 30  # seconds that they wait at most
ROWS = 20  # of a columnar record
WARM_UP = 0.4  # of the run
SETTLED = 80.0  # seconds that the warm-up has at least: until then windows and trees fill, and arrays grow
LARGEST_LAG = 20_000  # records; beyond it the worker does not keep up, and the figures say nothing


class Tolerance(NamedTuple):
    """By how much a figure at the end may be above what it was after the warm-up."""

    share: float
    more: float

    def most(self, before: float) -> float:
        """Return the most that it may be."""
        return before * (1 + self.share) + self.more


TOLERANCES = {
    "resident_mb": Tolerance(0.03, 5.0),
    "state_bytes": Tolerance(0.05, 1e6),  # arrays of the models
    "state_topic_mb": Tolerance(0.5, 30.0),  # goes up and down: it is compacted a segment at a time
    "open_files": Tolerance(0.0, 8.0),  # connections to brokers come and go
}

# Segments are closed and compacted within seconds, rather than days.
BROKER = {
    "log.roll.ms": "5000",
    "log.segment.bytes": str(4 << 20),
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.cleaner.delete.retention.ms": "1000",
}

NUMBERS = "soak-numbers"  # the topic of examples whose labels are numbers
PRICES = "soak-prices"  # that of examples whose labels are numbers and that are deleted again
_SPLIT: dict[str, Any] = {"kind": "split", "input": "soak", "classes": ["a", "b"], "features": "names"}
_TREE = _SPLIT | {
    "kind": "tree",
    "max_depth": 4,
    "on_delete": "ignore",
    "evaluate": {"window": 500, "emit": {"every": 500}},
    "emit": {"snapshots": {"every": 500}},
}
MODELS: dict[str, dict[str, Any]] = {
    "recent": _SPLIT | {"window": WINDOW, "emit": {"splits": {"every": 20}, "snapshots": {"every": 100}}},
    "aged": _SPLIT | {"window": f"{AGE}s", "emit": {"splits": {"every": 20}}},
    "checked": _SPLIT | {"verify_deletes": True, "on_duplicate": "replace"},
    "near-entropy": _SPLIT | {"finder": "updent", "alpha": 0.2, "on_duplicate": "ignore"},
    "near-gini": _SPLIT | {"finder": "updgini", "window": WINDOW, "verify_deletes": True},
    "imac": _TREE | {"policy": "imac", "criterion": "gini", "predict": "adaptive_present"},
    "efdt": _TREE | {"policy": "efdt", "criterion": "entropy"},
    "hat": _TREE | {"policy": "hat", "criterion": "entropy"},
    "exact": _TREE | {"policy": "exact", "criterion": "entropy", "on_delete": "reject"},
    "dynamic": _SPLIT
    | {
        "kind": "dynamic-tree",
        "criterion": "gini",
        "window": WINDOW,
        "epsilon": 0.5,
        "max_depth": 4,
        "evaluate": {"window": 500, "emit": {"every": 500}},
        "emit": {"snapshots": {"every": 500}},
    },
    "forest": _SPLIT
    | {
        "kind": "forest",
        "trees": 3,
        "threads": 2,
        "window": WINDOW,
        "epsilon": 0.5,
        "max_depth": 4,
        "on_duplicate": "replace",
        "evaluate": {"window": 500, "emit": {"every": 500}},
        "emit": {"snapshots": {"every": 500}},
    },
    "growing": _SPLIT
    | {
        "kind": "forest",
        "of": {"kind": "tree", "max_depth": 4},
        "trees": 3,
        "threads": 2,
        "on_delete": "ignore",
        "evaluate": {"window": 500, "emit": {"every": 500}},
        "emit": {"snapshots": {"every": 500}},
    },
    "numbers": {
        "kind": "regression-tree",
        "input": NUMBERS,
        "features": "names",
        "attributes": {"numeric": ["size"]},
        "predict": "adaptive",
        "max_depth": 4,
        "evaluate": {"window": 500, "emit": {"every": 500}},
        "emit": {"snapshots": {"every": 500}},
    },
    "prices": {
        "kind": "split",
        "input": PRICES,
        "target": "number",
        "label_range": [-100, 100],
        "label_unit": 0.01,
        "features": "names",
        "verify_deletes": True,
        "emit": {"splits": {"every": 20}, "snapshots": {"every": 500}},
    },
    "forgotten": {
        "kind": "dynamic-tree",
        "input": PRICES,
        "target": "number",
        "label_range": [-100, 100],
        "label_unit": 0.01,
        "features": "names",
        "epsilon": 0.5,
        "max_depth": 4,
        "evaluate": {"window": 500, "emit": {"every": 500}},
        "emit": {"snapshots": {"every": 500}},
    },
    "forgotten-exact": {
        "kind": "dynamic-tree",
        "input": PRICES,
        "target": "number",
        "label_range": [-100, 100],
        "label_unit": 0.01,
        "features": "names",
        "guarantee": "exact",
        "max_depth": 4,
        "emit": {"snapshots": {"every": 500}},
    },
}
SETTINGS: dict[str, Any] = {
    "group": "soak",
    "models": MODELS,
    "topics": {"soak": {"pending": {"max": WAITING, "for": f"{WAIT}s"}}},
    "checkpoint": {"interval_ms": 5_000},
    "logging": {"level": "warning"},
}


def is_forgetting(model: dict[str, Any]) -> bool:
    """Return whether a model takes deletes."""
    return model["kind"] in ("split", "dynamic-tree", "forest") and "of" not in model


# What the worker must have counted at the end, or the load has not been what it should be.
_APPLIED, _PRODUCED = "anabranch_events_applied_total", "anabranch_records_produced_total"
_PASSED_OVER, _REFUSED = "anabranch_events_passed_over_total", "anabranch_events_rejected_total"
EXPECTED = [
    *(f"{_APPLIED} {model} {op}" for model in MODELS for op in ("insert", "predict", "drop")),
    *(f"{_APPLIED} {model} delete" for model, each in MODELS.items() if is_forgetting(each)),
    *(f"{_PRODUCED} {kind}" for kind in ("split", "snapshot", "prediction", "evaluation", "dead-letter")),
    *(f"{_PRODUCED} {kind}" for kind in ("delayed-evaluation", "let-go")),
    *(f"anabranch_late_labels_total {fate} soak" for fate in ("learned", "not-pending")),
    "anabranch_pending_gone_total soak expired",
    "anabranch_examples_let_go_total aged",
    *(f"{_PASSED_OVER} {model} dropped-by-window" for model in ("recent", "dynamic")),
    *(f"{_PASSED_OVER} {model} delete-ignored" for model in ("imac", "efdt", "hat", "growing")),
    f"{_PASSED_OVER} near-entropy duplicate-ignored",
    *(f"{_REFUSED} {why} soak" for why in ("cannot-forget", "unknown-class", "absent-id")),
    f"{_REFUSED} not-a-number {NUMBERS}",
    *(f"{_REFUSED} {why} {PRICES}" for why in ("out-of-range", "bad-weight")),
    *(f"anabranch_records_rejected_total {why} soak" for why in ("malformed", "no-key", "repeated-feature")),
    "anabranch_checkpoint_written_bytes_total",
]


class Load:
    """Events at a steady rate: what inserts examples is followed, much later, by what deletes them."""

    def __init__(self, bootstrap: str, rate: float) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
        self._rate = rate
        self._draw = random.Random(1)
        self._started = time.monotonic()
        self._undo: deque[tuple[int, int, bytes, str]] = deque()  # key, examples, what deletes them, topic
        self._asked: deque[tuple[int, str]] = deque()  # what predicts asked about, by key and id
        self._live = 0
        self._ids = 0
        self._records = 0
        self.sent = 0

    def go_on(self) -> None:
        """Publish what is due."""
        due = (time.monotonic() - self._started) * self._rate
        while self.sent < due:
            self._records += 1
            self._one(self._records)
            self._forget()
        self._producer.poll(0)

    def _one(self, number: int) -> None:
        key = self._draw.randrange(KEYS)
        if number % 500 == 0:
            self._publish(number // 500 % KEYS, None)
            for topic in (NUMBERS, PRICES):
                self._publish(number // 500 % KEYS, None, topic=topic)
        elif number % 10 == 3:
            self._number(key, number)
        elif number % 10 == 7:
            self._price(key, number)
        elif number % 50 == 0:
            self._bad(number // 50, key)
        elif number % 20 == 0:
            self._publish(key, encode_event(self._words()[0], op="predict", id=f"asked {number}"))
            self._asked.append((key, f"asked {number}"))
            self._label(number)
        elif number % 15 == 0:
            self._columns(key)
        elif number % 4 == 0:
            words, label = self._words()
            self._insert(key, 1, encode_event(words, label), encode_event(words, label, op="delete"))
        else:
            words, label = self._words()
            name: int | str = self._next_id() if number % 3 else f"example {self._next_id()}"
            self._insert(key, 1, encode_event(words, label, id=name), encode_event(op="delete", id=name))

    def _label(self, number: int) -> None:
        """Publish the label of what was asked about some time ago, but of some never, and of some another time."""
        if len(self._asked) < WAITING // 4:
            return
        key, name = self._asked.popleft()
        label = encode_event(None, "ab"[number % 3 == 0], op="label", id=name)
        if number % 60 == 0:
            self._publish(key, label)
        if number % 100 != 0:
            self._insert(key, 1, label, encode_event(op="delete", id=name))

    def _number(self, key: int, number: int) -> None:
        """Publish an example whose label is a number, a question, or what is refused; none is deleted again."""
        words, label = self._words()
        size = self._draw.gauss(5.0, 2.0)
        x: dict[int | str, float] = {**dict.fromkeys(words, 1.0), "size": size}
        asked = encode_event(x, op="predict", id=number)
        wrong = ("many", 1e308, -1e308)[number // 70 % 3]
        told = encode_event(x, wrong if number % 70 == 3 else 3.0 * size + 10.0 * (label == "b"))
        self._publish(key, asked if number % 50 == 3 else told, topic=NUMBERS)

    def _price(self, key: int, number: int) -> None:
        """Publish an example whose label is a price, a question, or what is refused; a price is deleted again."""
        words, label = self._words()
        price = round(self._draw.gauss(0.0, 5.0), 2) + 10.0 * (label == "b")
        if number % 50 == 7:
            self._publish(key, encode_event(words, op="predict", id=number), topic=PRICES)
        elif number % 70 == 7:
            self._publish(key, encode_event(words, 1e9), topic=PRICES)
            self._publish(key, encode_event(words, price, w=0.5), topic=PRICES)
        elif number % 20 == 7:
            self._insert(key, 1, encode_event(words, price), encode_event(words, price, op="delete"), PRICES)
        else:
            told = encode_event(words, price, id=number)
            self._insert(key, 1, told, encode_event(op="delete", id=number), PRICES)

    def _forget(self) -> None:
        while self._live > LIVE:
            key, examples, value, topic = self._undo.popleft()
            self._live -= examples
            self._publish(key, value, examples, topic)

    def _columns(self, key: int) -> None:
        rows = [self._words() for _ in range(ROWS)]
        ids = [self._next_id() for _ in rows]
        value = encode_batch([words for words, _ in rows], [label for _, label in rows], ids=ids)
        self._insert(key, ROWS, value, encode_batch(None, op="delete", ids=ids))

    def _bad(self, number: int, key: int) -> None:
        """Publish something that is refused, or without effect."""
        words, label = self._words()
        choice: Sequence[Callable[[], bytes]] = (
            lambda: b"\xc1",
            lambda: encode_event([*words, words[0]], label),
            lambda: encode_event(words, "neither"),
            lambda: encode_event(op="delete", id="nobody"),
            lambda: encode_event([1, 2], label),
            lambda: encode_event(words, label),
        )
        case = number % (len(choice) + 1)
        if case == len(choice):  # the same id again
            name = self._next_id()
            again = encode_event(words, label, id=name)
            self._publish(key, again)
            self._insert(key, 1, again, encode_event(op="delete", id=name))
        else:
            self._publish(None if case == len(choice) - 1 else key, choice[case]())

    def _words(self) -> tuple[list[str], str]:
        """Return an example: few words are frequent, and some tell the label."""
        label = "ab"[self._draw.random() < 0.4]
        words = {f"word{int(WORDS * self._draw.random() ** 2)}" for _ in range(11)}
        if self._draw.random() < 0.7:
            words.add(f"tells {label}")
        return sorted(words), label

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _insert(self, key: int, examples: int, value: bytes, undo: bytes, topic: str = "soak") -> None:
        self._live += examples
        self._undo.append((key, examples, undo, topic))
        self._publish(key, value, examples, topic)

    def _publish(self, key: int | None, value: bytes | None, events: int = 1, topic: str = "soak") -> None:
        self.sent += events
        named = None if key is None else b"key-%d" % key
        self._producer.produce(topic, value, named, (key or 0) % PARTITIONS)


class Figures(NamedTuple):
    """What is looked at."""

    seconds: float
    resident_mb: float
    state_bytes: float
    state_topic_mb: float
    open_files: float
    lag: float


def _figures(seconds: float, process: int, data: Path, counted: dict[str, float]) -> Figures:
    status = Path(f"/proc/{process}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
    return Figures(
        seconds=seconds,
        resident_mb=int(resident) / 1024,
        state_bytes=sum(value for name, value in counted.items() if name.startswith("anabranch_state_bytes ")),
        state_topic_mb=sum(_sizes(data)) / 1e6,
        open_files=len(list(Path(f"/proc/{process}/fd").iterdir())),
        lag=sum(value for name, value in counted.items() if name.startswith("anabranch_lag_records ")),
    )


def _sizes(data: Path) -> Iterator[int]:
    for path in data.glob("soak*.state-*/*.log"):
        try:
            yield path.stat().st_size
        except FileNotFoundError:  # it was compacted away just now
            continue


def _counted(url: str) -> dict[str, float]:
    """Return the worker's metrics, by name and values of labels, in the order of the labels' names."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
    except OSError:  # it is starting
        return {}
    found: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = [value for _, value in sorted(sample.labels.items())]
            found[" ".join([sample.name, *labels])] += sample.value
    return dict(found)


def run(folder: Path, minutes: float, rate: float) -> tuple[list[Figures], dict[str, float]]:
    """Return the figures in the order of time, and what the worker had counted at the end."""
    with Cluster(install(), folder / "kafka", properties=BROKER) as cluster:
        path = folder / "soak.yaml"
        (port,) = free_ports(1)
        own = {"log": {"kafka": {"bootstrap": cluster.bootstrap}}, "metrics": {"port": port, "host": HOST}}
        path.write_text(yaml.safe_dump(SETTINGS | own))
        with KafkaLog({"bootstrap.servers": cluster.bootstrap}, group="soak", instance="creator") as log:
            log.create_topic("soak", PARTITIONS)
            for topic in (NUMBERS, PRICES):
                log.create_topic(topic, PARTITIONS)
            create_topics(log, load(path, {}))
        source = ROOT
        url = f"http://{HOST}:{port}/metrics"
        with subprocess.Popen([sys.executable, "-m", "worker", "run", str(path)], cwd=source) as worker:
            try:
                _wait(worker, url)
                load_ = Load(cluster.bootstrap, rate)
                samples = list(_samples(worker, load_, minutes * 60, url, cluster.nodes[0].folder / "data"))
                return samples, _counted(url)
            finally:
                worker.terminate()


def _wait(worker: subprocess.Popen[bytes], url: str) -> None:
    """Wait until the worker reads; kernels may have to be compiled."""
    while not any(name.startswith("anabranch_lag_records") for name in _counted(url)):
        _expect_alive(worker)
        time.sleep(0.5)


def _expect_alive(worker: subprocess.Popen[bytes]) -> None:
    if worker.poll() is not None:
        sys.exit("the worker has ended")


def _samples(
    worker: subprocess.Popen[bytes], stream: Load, seconds: float, url: str, data: Path
) -> Iterator[Figures]:
    started = time.monotonic()
    step = min(5.0, seconds / 40)
    taken = 0
    while (passed := time.monotonic() - started) < seconds:
        stream.go_on()
        time.sleep(0.01)
        if passed >= taken * step:
            _expect_alive(worker)
            taken += 1
            figures = _figures(passed, worker.pid, data, _counted(url))
            line = figures._asdict() | {"events": stream.sent}
            print(json.dumps({name: round(value, 1) for name, value in line.items()}), flush=True)
            yield figures


def judge(samples: Sequence[Figures], counted: dict[str, float]) -> list[str]:
    """Return what is not as it should be: figures that grew, and what the load should have led to and has not."""
    settled = max(WARM_UP * samples[-1].seconds, SETTLED)
    warm = [each for each in samples if each.seconds >= settled]
    if len(warm) < 8:
        return [f"the run was too short: expected some time after the first {settled:.0f} s"]
    some = max(1, len(warm) // 4)
    wrong = []
    for name, tolerance in TOLERANCES.items():
        before, after = (
            statistics.median(getattr(each, name) for each in part) for part in (warm[:some], warm[-some:])
        )
        print(json.dumps({"figure": name, "after_warm_up": round(before, 1), "at_the_end": round(after, 1)}))
        if after > tolerance.most(before):
            wrong.append(
                f"{name} grew from {before:,.1f} to {after:,.1f}; expected {tolerance.most(before):,.1f} at most"
            )
    if warm[-1].lag > LARGEST_LAG:
        wrong.append(f"the worker is {warm[-1].lag:,.0f} records behind; expected {LARGEST_LAG:,}: lower --rate")
    wrong += [f"{name} is 0; expected more" for name in EXPECTED if not counted.get(name)]
    return wrong


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=600.0, help="events a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = judge(*run(Path(folder), options.minutes, options.rate))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
