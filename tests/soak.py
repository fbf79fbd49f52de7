"""A worker on real Apache Kafka under a bounded load for minutes: its memory must stay flat.

::

    python -m tests.soak --minutes 10

Every example leaves again by a window or a delete, keys and words come from a fixed stock, and checkpoints are
made all the while; so after the first minutes nothing has a reason to grow.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from confluent_kafka import Producer

from worker.broker import Cluster, install
from worker.codec.event import encode_event
from worker.log.kafka import KafkaLog
from worker.settings import load
from worker.topics import create_topics

PARTITIONS = 2
LIVE = 5_000  # examples with an id that are live at a time
WARM_UP = 0.3  # of the run
MOST_GROWTH = 0.03  # of what it was after the warm-up
SETTINGS = {
    "group": "soak",
    "metrics": None,
    "models": {
        "recent": {"kind": "split", "input": "soak", "classes": ["a", "b"], "features": "names", "window": 1_000},
        "named": {"kind": "split", "input": "soak", "classes": ["a", "b"], "features": "names"},
    },
    "checkpoint": {"interval_ms": 5_000},
    "logging": {"level": "warning"},
}


class Load:
    """Events at a steady rate: each one that inserts an example is followed, much later, by its delete."""

    def __init__(self, bootstrap: str, rate: float) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
        self._rate = rate
        self._draw = random.Random(1)
        self._started = time.monotonic()
        self.sent = 0

    def go_on(self) -> None:
        """Publish what is due."""
        for number in range(self.sent, int((time.monotonic() - self._started) * self._rate)):
            example, delete = divmod(number, 2)
            if delete:
                if example >= LIVE:
                    self._publish(example - LIVE, encode_event(op="delete", id=example - LIVE))
            else:
                words = [f"word{self._draw.randrange(3_000)}" for _ in range(12)]
                label = "ab"[self._draw.random() < 0.4]
                self._publish(example, encode_event(sorted(set(words)), label, id=example))
            self.sent = number + 1
        self._producer.poll(0)

    def _publish(self, example: int, value: bytes) -> None:
        self._producer.produce("soak", value, b"key-%d" % (example % 50), example % PARTITIONS)


def resident(process: int) -> float:
    """Return the resident memory of a process, in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def run(folder: Path, minutes: float, rate: float) -> tuple[float, float]:
    """Return the memory after the warm-up and at the end, in MB: medians of the samples around."""
    with Cluster(install(), folder / "kafka") as cluster:
        path = folder / "soak.yaml"
        path.write_text(yaml.safe_dump(SETTINGS | {"log": {"kafka": {"bootstrap": cluster.bootstrap}}}))
        with KafkaLog({"bootstrap.servers": cluster.bootstrap}, group="soak", instance="creator") as log:
            log.create_topic("soak", PARTITIONS)
            create_topics(log, load(path, {}))
        source = Path(__file__).parent.parent
        with subprocess.Popen([sys.executable, "-m", "worker", "run", str(path)], cwd=source) as worker:
            try:
                samples = list(_samples(worker, Load(cluster.bootstrap, rate), minutes * 60))
            finally:
                worker.terminate()
    warm = samples[int(len(samples) * WARM_UP) :]
    some = max(1, len(warm) // 5)
    return sorted(warm[:some])[some // 2], sorted(warm[-some:])[some // 2]


def _samples(worker: subprocess.Popen[bytes], stream: Load, seconds: float) -> list[float]:
    samples: list[float] = []
    started = time.monotonic()
    step = min(5.0, seconds / 20)
    while (passed := time.monotonic() - started) < seconds:
        stream.go_on()
        time.sleep(0.01)
        if passed >= len(samples) * step:
            if worker.poll() is not None:
                sys.exit("the worker has ended")
            samples.append(resident(worker.pid))
            print(
                json.dumps({"seconds": round(passed), "events": stream.sent, "resident_mb": samples[-1]}),
                flush=True,
            )
    return samples


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=1_000.0, help="events a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before, after = run(Path(folder), options.minutes, options.rate)
    growth = after / before - 1
    print(json.dumps({"after_warm_up_mb": before, "at_the_end_mb": after, "growth": round(growth, 4)}))
    if growth > MOST_GROWTH:
        sys.exit(f"memory grew by {growth:.1%}; expected at most {MOST_GROWTH:.0%}")


if __name__ == "__main__":
    main()
