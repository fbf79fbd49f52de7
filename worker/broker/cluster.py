"""A cluster of one node or a few on the loopback interface, each of them broker and controller (KRaft)."""

from __future__ import annotations

import base64
import fcntl
import json
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from worker.broker.errors import BrokerError
from worker.broker.jars import Installation
from worker.broker.node import Node
from worker.broker.ports import expect_free, free_ports
from worker.broker.properties import node_properties

# One collector thread and the quick compiler alone: up sooner, slower once it is warm.
_QUICK = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
_LASTING = ("-Xmx400m", "-XX:+ExitOnOutOfMemoryError")


class Cluster:
    """Nodes that share a folder, not yet running; as a context manager it starts and stops them.

    Parameters
    ----------
    installation : Installation
        Java and the jars.
    folder : Path
        Missing, empty, or left by a cluster of as many nodes, whose data is used again.
    nodes : int
        How many. Of three one may fail.
    port : int, optional
        Of the first node; the others take the next ones. Free ones are found where it is left out.
    properties : mapping of str to str, optional
        Properties of all nodes, over those of `node_properties`.
    listeners : mapping of str to int, optional
        Further ports of an only node, by the security protocol that is spoken there, such as `SASL_SSL`.
    quick : bool
        Start quickly, rather than run fast for long.

    Attributes
    ----------
    nodes : tuple of Node
        Each can be stopped, killed, paused and started again on its own. Node 1 is `nodes[0]`.
    bootstrap : str
        The addresses of all nodes, what clients call `bootstrap.servers`.
    folder : Path
        Holds a folder for each node.
    """

    def __init__(
        self,
        installation: Installation,
        folder: Path,
        nodes: int = 1,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, int] | None = None,
        quick: bool = True,
    ) -> None:
        self.folder = folder.absolute()
        java = [str(installation.java), *(_QUICK if quick else _LASTING), "-cp", f"{installation.jars}/*"]
        ports = free_ports(nodes) if port is None else range(port, port + nodes)
        self.nodes = tuple(
            Node(number, self.folder / f"node-{number}", each, java) for number, each in enumerate(ports, 1)
        )
        self.bootstrap = ",".join(node.address for node in self.nodes)
        self._controllers = free_ports(nodes, beside=ports)
        self._properties = dict(properties or {})
        self._listeners = dict(listeners or {})
        self._held = ExitStack()

    def start(self, time_limit: float = 90.0, *, fresh: bool = False) -> None:
        """Start all nodes and wait until each of them serves clients.

        Parameters
        ----------
        time_limit : float
            Seconds for all of them together.
        fresh : bool
            Remove first what an earlier cluster has left in the folder.

        Raises
        ------
        BrokerError
            A port is taken, the folder is in use or belongs to something else, or a node does not start. No
            node runs then.
        """
        deadline = time.monotonic() + time_limit
        with ExitStack() as started:
            identity = self._identity(started.enter_context(_claim(self.folder)), fresh)
            expect_free([*(node.port for node in self.nodes), *self._listeners.values()])
            for node in self.nodes:
                chosen = node_properties(node.number, node.port, self._controllers, self._listeners)
                node.configure(chosen | self._properties)
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda node: node.format(identity, time_limit), self.nodes))
            started.callback(self._end)
            for node in self.nodes:
                node.launch()
            for node in self.nodes:
                node.wait(deadline - time.monotonic())
            self._held = started.pop_all()

    def stop(self) -> None:
        """Stop all nodes in an orderly way, by force where that takes long. Stopping twice is harmless."""
        self._held.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _end(self) -> None:
        for node in self.nodes:
            node.terminate()
        for node in self.nodes:
            node.stop()

    def _identity(self, file: TextIO, fresh: bool) -> str:
        """Return the cluster's id; it is kept with the number of nodes, before there is any data."""
        text = file.read()
        if text and not fresh:
            kept, wanted = json.loads(text), len(self.nodes)
            if kept["nodes"] != wanted:
                raise BrokerError(
                    f"expected data of {wanted} nodes in {self.folder}, it is of {kept['nodes']}; "
                    "start as many, choose another folder or start fresh"
                )
            return str(kept["id"])
        for old in self.folder.glob("node-*"):
            shutil.rmtree(old)
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        file.truncate(0)
        json.dump({"id": identity, "nodes": len(self.nodes)}, file)
        file.flush()
        return identity


@contextmanager
def _claim(folder: Path) -> Iterator[TextIO]:
    """Hold the file that marks a folder as a cluster's own, so that no two work on the same data."""
    mark = folder / "anabranch-kafka.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not mark.exists() and any(folder.iterdir()):
        raise BrokerError(
            f"expected {folder} to be empty or a folder of nodes, it holds something else; choose another folder"
        )
    with mark.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BrokerError(
                f"expected {folder} to be free, other nodes run on it; stop them or choose another folder"
            ) from None
        file.seek(0)
        yield file
