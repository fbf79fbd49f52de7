from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import pytest
from click.testing import CliRunner
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from worker.broker import BrokerError, BrokerUnavailable, Cluster, Installation, Node, install
from worker.broker.jars import VERSION, find_java
from worker.broker.ports import free_ports, is_free
from worker.broker.properties import node_properties
from worker.commands import main

TIME_LIMIT = 60.0  # s, for machines that are busy with something else
MAIN_JAR = f"kafka_2.13-{VERSION}.jar"


def _topic(cluster: Cluster, copies: int = 1) -> str:
    """Create a topic that no other test has."""
    name = f"dev-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, 1, copies)], operation_timeout=TIME_LIMIT)[name].result(TIME_LIMIT)
    return name


def _producer(cluster: Cluster, **options: str) -> Producer:
    return Producer(
        {"bootstrap.servers": cluster.bootstrap} | {k.replace("_", "."): v for k, v in options.items()}
    )


def _produce(cluster: Cluster, topic: str, *values: bytes) -> None:
    producer = _producer(cluster, acks="all")
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(TIME_LIMIT) == 0, "not all records were taken"


def _values(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    """Return the first committed values of the topic."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": topic, "enable.auto.commit": "false"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        messages = consumer.consume(count, TIME_LIMIT)
        assert [message.error() for message in messages] == [None] * count
        return [message.value() for message in messages]
    finally:
        consumer.close()


def _program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


# What a node can be relied on for.


def test_records(kafka: Cluster) -> None:
    """A topic is created, and what is produced is consumed."""
    topic = _topic(kafka)
    _produce(kafka, topic, b"one", b"two")
    assert _values(kafka, topic, 2) == [b"one", b"two"]


def test_transactions(kafka: Cluster) -> None:
    """What a transaction wrote is seen once it commits, and never when it aborts."""
    topic = _topic(kafka)
    producer = _producer(kafka, transactional_id=topic)
    producer.init_transactions(TIME_LIMIT)
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush(TIME_LIMIT)
    producer.abort_transaction(TIME_LIMIT)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(TIME_LIMIT)
    assert _values(kafka, topic, 1) == [b"committed"]


@pytest.mark.parametrize("end", [Node.stop, Node.kill])
def test_restart(kafka: Cluster, end: Callable[[Node], None]) -> None:
    """A node that was stopped or killed comes back on its port with its records."""
    topic = _topic(kafka)
    _produce(kafka, topic, b"kept")
    (node,) = kafka.nodes
    end(node)
    assert (node.alive, node.pid) == (False, None)
    node.start()
    assert _values(kafka, topic, 1) == [b"kept"]


def test_pause(kafka: Cluster) -> None:
    """A paused node answers nobody, and goes on where it was once it is resumed."""
    (node,) = kafka.nodes
    topic = _topic(kafka)
    node.pause()
    try:
        assert node.alive
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=1.0)
    finally:
        node.resume()
    _produce(kafka, topic, b"afterwards")


def test_three_nodes(kafka3: Cluster) -> None:
    """With one of three nodes killed, records are taken and kept; the node comes back."""
    topic = _topic(kafka3, copies=3)
    _produce(kafka3, topic, b"before")
    *_, last = kafka3.nodes
    last.kill()
    try:
        _produce(kafka3, topic, b"meanwhile")
    finally:
        last.start()
    assert _values(kafka3, topic, 2) == [b"before", b"meanwhile"]
    known = AdminClient({"bootstrap.servers": last.address}).list_topics(timeout=TIME_LIMIT).brokers
    assert sorted(known) == [1, 2, 3]


def test_properties(kafka: Cluster) -> None:
    """A node runs with the properties that were chosen for it, those of the caller over the others."""
    asked = ConfigResource(ConfigResource.Type.BROKER, "1")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    found = admin.describe_configs([asked])[asked].result(TIME_LIMIT)
    values = {name: found[name].value for name in ("auto.create.topics.enable", "log.cleaner.backoff.ms")}
    assert values == {"auto.create.topics.enable": "false", "log.cleaner.backoff.ms": "1000"}


def test_bad_property(installation: Installation, tmp_path: Path) -> None:
    """Where a node refuses to start, the error shows what it said."""
    cluster = Cluster(installation, tmp_path, properties={"num.io.threads": "many"})
    with pytest.raises(BrokerError, match=r"(?s)node\.log.*Invalid value many"):
        cluster.start()


def test_id_with_a_dash(installation: Installation, tmp_path: Path) -> None:
    """A cluster's id, which is drawn, may begin with a dash as one in 64 does."""
    identity = "-AAAAAAAAAAAAAAAAAAAAA"
    (node,) = Cluster(installation, tmp_path).nodes
    node.configure(node_properties(1, node.port, free_ports(1), {}))
    node.format(identity)
    assert f"cluster.id={identity}\n" in (node.folder / "data" / "meta.properties").read_text()


# What goes wrong before a node runs: with programs that stand in for Java and Maven.


# Answers `java -version`, prepares data as it should, and then does what it is told at the start of a node.
JAVA = """
case "$*" in
*-version) echo 'openjdk version "21.0.1"' >&2;;
*format*) mkdir data && touch data/meta.properties;;
*) {start};;
esac
"""
# A node that listens, and nothing more.
NODE = f"""exec {sys.executable} -c '
import re, socket, time
port = re.search("PLAINTEXT://127.0.0.1:([0-9]+)", open("server.properties").read())[1]
with socket.create_server(("127.0.0.1", int(port))):
    print("Kafka Server started", flush=True)
    time.sleep(600)
'"""


def _java(tmp_path: Path, start: str) -> Installation:
    return Installation(_program(tmp_path / "bin" / "java", JAVA.format(start=start)), tmp_path / "jars")


def test_data_is_used_again(tmp_path: Path) -> None:
    """A cluster goes on with the data of the one before, on ports of its own; no other may use it meanwhile."""
    java, folder = _java(tmp_path, NODE), tmp_path / "für, später"
    with Cluster(java, folder, 3) as first:
        (first.nodes[2].folder / "data" / "records").touch()
        with pytest.raises(BrokerError, match="other nodes run on it"):
            Cluster(java, folder, 3).start(fresh=True)
    with Cluster(java, folder, 3) as second:
        assert (second.nodes[2].folder / "data" / "records").exists()
        assert second.bootstrap != first.bootstrap
    second.start(fresh=True)
    assert not (second.nodes[2].folder / "data" / "records").exists()
    second.stop()
    assert not any(node.alive for node in second.nodes)


@pytest.mark.slow
def test_slow_start(tmp_path: Path) -> None:
    """Nodes that do not serve clients in time are an error with the log's end, and no process is left."""
    cluster = Cluster(_java(tmp_path, "echo busy; exec sleep 600"), tmp_path / "data", 3)
    with pytest.raises(BrokerError, match=r"(?s)node 1 to serve clients.*node\.log:\nbusy"):
        cluster.start(time_limit=3.0)
    assert not any(node.alive for node in cluster.nodes)


def test_failed_format(tmp_path: Path) -> None:
    """A node that cannot prepare its data is an error with what was said."""
    java = _program(tmp_path / "java", "echo no room; exit 3")
    with pytest.raises(BrokerError, match=r"(?s)node 1 to prepare its data, it failed.*no room"):
        Cluster(Installation(java, tmp_path), tmp_path / "data").start()


def test_port_taken(tmp_path: Path) -> None:
    """A port on which somebody listens is refused by its number."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BrokerError, match=f"expected port {port} of 127.0.0.1 to be free"):
            Cluster(_java(tmp_path, "exit"), tmp_path / "data", port=port).start()


@pytest.mark.parametrize("fresh", [False, True])
def test_foreign_folder(fresh: bool, tmp_path: Path) -> None:
    """A folder with anything else in it is refused and left as it is, a fresh start or not."""
    other = tmp_path / "photos" / "node-1"
    other.mkdir(parents=True)
    with pytest.raises(BrokerError, match="it holds something else"):
        Cluster(_java(tmp_path, "exit"), other.parent).start(fresh=fresh)
    assert list(other.parent.iterdir()) == [other]


def test_number_of_nodes(tmp_path: Path) -> None:
    """Data of another number of nodes is refused, and replaced by a fresh start."""
    java, folder = _java(tmp_path, "exit"), tmp_path / "data"
    with pytest.raises(BrokerError, match="node 1 to start, it has ended"):
        Cluster(java, folder, 3).start()
    with pytest.raises(BrokerError, match=r"expected data of 1 nodes .* it is of 3"):
        Cluster(java, folder).start()
    with pytest.raises(BrokerError, match="node 1 to start, it has ended"):
        Cluster(java, folder).start(fresh=True)
    assert [path.name for path in folder.glob("node-*")] == ["node-1"]


def test_calls_out_of_turn(tmp_path: Path) -> None:
    """A node that is down cannot be killed or paused, one that runs cannot be started; stopping is harmless."""
    java = _java(tmp_path, "exec sleep 600").java
    node = Node(1, tmp_path / "node", free_ports(1)[0], [str(java)])
    node.configure({})
    for act in (node.kill, node.pause, node.resume):
        with pytest.raises(BrokerError, match="expected node 1 to run, it is down"):
            act()
    node.stop()
    node.launch()
    with pytest.raises(BrokerError, match="expected node 1 to be down, it runs"):
        node.launch()
    node.pause()
    node.stop()
    assert not node.alive


def test_ports() -> None:
    """Free ports differ, and are none that systems give to outgoing connections."""
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert all(20_000 <= port < 32_000 for port in ports)


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without Java the error says which one is needed and how to get it."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerUnavailable, match="expected Java 17 or newer, found no java in PATH; install"):
        install()


@pytest.mark.parametrize(
    ("says", "came"), [("1.8.0_392", "got 8 from"), ("11.0.2", "got 11 from"), ("", "got 'version")]
)
def test_old_java(says: str, came: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java that is too old, or whatever else is called java, is named with its version and place."""
    _program(tmp_path / "bin" / "java", f"echo 'version \"{says}\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BrokerUnavailable, match=f"expected Java 17 or newer, {came}.*JAVA_HOME"):
        find_java()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the only folder of programs, with nothing but a new Java; the cache is empty."""
    folder = tmp_path / "bin"
    _program(folder / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    for name in ("sh", "sleep", "mkdir", "touch"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def _kept(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "anabranch" / "kafka").iterdir())


@pytest.mark.usefixtures("bare")
def test_no_maven(tmp_path: Path) -> None:
    """Without Maven, and with no jars from before, the error says how to get it."""
    with pytest.raises(BrokerUnavailable, match=f"expected Maven, to fetch Apache Kafka {VERSION}, .* install it"):
        install()
    assert _kept(tmp_path) == [f"{VERSION}.lock"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "timeout", "expected"),
    [
        (r"printf '\033[0m[ERROR] no host\n'; exit 1", TIME_LIMIT, r"(?s)with code 1; .*:\n\[ERROR\] no host$"),
        ("exec sleep 600", 1.0, "within 1 s, it did not"),
    ],
)
def test_failed_fetch(bare: Path, tmp_path: Path, script: str, timeout: float, expected: str) -> None:
    """Where Maven fails or hangs, the error shows what it said, and no half of the jars is left."""
    _program(bare / "mvn", f"mkdir jars; {script}")
    with pytest.raises(BrokerUnavailable, match=expected):
        install(timeout=timeout)
    assert _kept(tmp_path) == [f"{VERSION}.lock"]


def test_one_fetch(bare: Path, tmp_path: Path) -> None:
    """Several that need the jars at a time fetch them once, and later ones not at all."""
    _program(bare / "mvn", f"echo run >> '{tmp_path}/runs'; mkdir jars; sleep 0.5; touch jars/{MAIN_JAR}")
    told: list[str] = []
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: install(notify=told.append), range(3)))
    assert [path.name for path in found[0].jars.iterdir()] == [MAIN_JAR]
    assert found == [install(notify=told.append)] * 3
    assert (tmp_path / "runs").read_text() == "run\n"
    assert len(told) == 1


# The command.

Running: TypeAlias = "subprocess.Popen[str]"


@contextmanager
def _dev_kafka(folder: Path, *options: str) -> Iterator[tuple[Running, int, str]]:
    """Yield the command once it has said all it has to say, its first node's port and what it said."""
    port = next(port for port in free_ports(100) if is_free(port + 1) and is_free(port + 2))
    line = [sys.executable, "-m", "worker", "dev-kafka", "--port", str(port), "--data", str(folder), *options]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            said = ""
            while "Ctrl-C" not in said:
                came = running.stdout.readline()
                assert came, f"the command ended before its time: {running.communicate()[1]}"
                said += came
            yield running, port, said
        finally:
            running.kill()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the program that the command takes for Java; its nodes only listen."""
    java = _program(tmp_path / "bin" / "java", JAVA.format(start=NODE))
    (tmp_path / "cache" / "anabranch" / "kafka" / VERSION).mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return java


@pytest.mark.usefixtures("installation")
def test_command(tmp_path: Path) -> None:
    """The command says where clients connect, where data is and what to do next; Ctrl-C ends it and the node."""
    folder = tmp_path / "data"
    with _dev_kafka(folder) as (running, port, said):
        assert f"bootstrap.servers  127.0.0.1:{port}\n" in said
        assert f"data               {folder}\n" in said
        assert f"log {folder / 'node-1' / 'node.log'}\n" in said
        assert "anabranch topics create worker.yaml" in said
        assert AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=TIME_LIMIT).topics == {}
        running.send_signal(signal.SIGINT)
        _, complaints = running.communicate(timeout=TIME_LIMIT)
    assert running.returncode == 0
    assert complaints == "starting Apache Kafka, 1 node\nstopping Apache Kafka\n"
    assert is_free(port)


@pytest.mark.usefixtures("stand_in")
def test_killed_command(tmp_path: Path) -> None:
    """A node does not outlive the process that looks after it, even where that is killed."""
    with _dev_kafka(tmp_path / "data") as (running, port, _):
        assert not is_free(port)
        running.kill()
        deadline = time.monotonic() + TIME_LIMIT
        while not is_free(port):
            assert time.monotonic() < deadline, "the node lives on"
            time.sleep(0.05)


@pytest.mark.usefixtures("stand_in")
def test_dead_nodes(tmp_path: Path) -> None:
    """The command names a node that has ended, goes on with the others, and ends with an error after the last."""
    with _dev_kafka(tmp_path / "data", "--nodes", "3") as (running, port, said):
        assert f"bootstrap.servers  127.0.0.1:{port},127.0.0.1:{port + 1},127.0.0.1:{port + 2}\n" in said
        first, *others = [int(pid) for pid in re.findall(r"pid (\d+)", said)]
        os.kill(first, signal.SIGKILL)
        assert running.stderr is not None
        assert running.stderr.readline() == "starting Apache Kafka, 3 nodes\n"
        assert running.stderr.readline().startswith("node 1 has ended")
        assert running.poll() is None
        for pid in others:
            os.kill(pid, signal.SIGKILL)
        _, complaints = running.communicate(timeout=TIME_LIMIT)
    assert running.returncode == 1
    assert "Error: expected node" in complaints


def test_interrupted_start(stand_in: Path, tmp_path: Path) -> None:
    """Ctrl-C while a node starts ends the node and then the command."""
    _program(stand_in, JAVA.format(start="echo $$ > pid; exec sleep 600"))
    pid = tmp_path / "data" / "node-1" / "pid"
    line = [sys.executable, "-m", "worker", "dev-kafka", "--port", str(free_ports(1)[0])]
    with subprocess.Popen([*line, "--data", str(tmp_path / "data")], stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + TIME_LIMIT
        while not (pid.exists() and pid.read_text()):
            assert running.poll() is None, running.communicate()[1]
            assert time.monotonic() < deadline, "no node was started"
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=TIME_LIMIT)
    assert running.returncode == 1
    _wait_for_end(int(pid.read_text()))


def _wait_for_end(pid: int) -> None:
    """Wait until a process is gone: who inherits it may take a moment to take note of its end."""
    deadline = time.monotonic() + TIME_LIMIT
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(0.05)
        pytest.fail(f"the process {pid} goes on")


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in")
def test_fresh(tmp_path: Path) -> None:
    """The command finds the data of the run before; with `--fresh` it starts without."""
    folder = tmp_path / "data"
    with _dev_kafka(folder) as (running, _, _):
        record = folder / "node-1" / "data" / "record"
        record.touch()
        running.send_signal(signal.SIGTERM)
        assert running.wait(TIME_LIMIT) == 0
    with _dev_kafka(folder) as (running, _, _):
        assert record.exists()
        running.send_signal(signal.SIGINT)
        assert running.wait(TIME_LIMIT) == 0
    with _dev_kafka(folder, "--fresh"):
        assert not record.exists()


def test_command_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command ends with the message that says what is missing."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["dev-kafka", "--data", str(tmp_path / "data")])
    assert result.exit_code == 1
    assert result.output.startswith("Error: expected Java 17 or newer, found no java in JAVA_HOME")


@pytest.mark.slow
@pytest.mark.parametrize(("required", "code", "outcome"), [("0", 0, "1 skipped"), ("1", 1, "1 error")])
def test_fixtures_without_java(required: str, code: int, outcome: str, tmp_path: Path) -> None:
    """Tests that need Kafka are skipped, with the reason, where it cannot run; where it is required they fail."""
    environment = os.environ | {"JAVA_HOME": str(tmp_path), "REQUIRE_KAFKA": required}
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"{__file__}::test_records"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert outcome in done.stdout
    assert "expected Java 17 or newer" in done.stdout
