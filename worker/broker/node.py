"""One node of Kafka: a process that is started, stopped, killed or paused, always on the same ports and data."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from worker.broker.errors import BrokerError
from worker.broker.ports import HOST
from worker.broker.properties import DATA, LOGGING

_PROPERTIES = "server.properties"
_LOGGING = "log4j2.properties"
_STARTED = b"Kafka Server started"  # logged once the controllers have let the node in
_STEP = 0.05  # s between looks
_SHOWN = 25  # lines of the log in an error


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where it is never raised
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        if came:
            signal.raise_signal(signal.SIGINT)


class Node:
    """A node, not yet running.

    Parameters
    ----------
    number : int
        The node's id, from 1.
    folder : Path
        Where its properties, its data and its log are.
    port : int
        Where clients reach it on the loopback interface.
    java : sequence of str
        The command up to the main class.
    """

    def __init__(self, number: int, folder: Path, port: int, java: Sequence[str]) -> None:
        self.number = number
        self.port = port
        self.folder = folder
        self.log = folder / "node.log"
        self._java = [*java, f"-Dlog4j2.configurationFile={_LOGGING}"]
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._past = 0  # bytes of the log that earlier runs wrote

    @property
    def address(self) -> str:
        """Host and port, as clients want them."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process id, None before a start and after a stop or kill."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether there is a process; a paused one counts."""
        return self._process is not None and self._process.poll() is None

    def configure(self, properties: Mapping[str, str]) -> None:
        """Write the properties for the next start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{name}={value}\n" for name, value in properties.items())
        (self.folder / _PROPERTIES).write_text(lines, "utf-8")
        (self.folder / _LOGGING).write_text(LOGGING, "utf-8")

    def format(self, cluster: str, time_limit: float = 60.0) -> None:
        """Prepare the data for the cluster with this id, unless that was done; raise `BrokerError` on failure."""
        if (self.folder / DATA / "meta.properties").exists():  # written last
            return
        # With an equals sign: an id may begin with a dash.
        main = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config", _PROPERTIES]
        with self.log.open("ab") as log:
            self._past = log.tell()
            try:
                subprocess.run(
                    [*self._java, *main],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    check=True,
                    timeout=time_limit,
                )
            except subprocess.SubprocessError as error:
                came = "took too long" if isinstance(error, subprocess.TimeoutExpired) else "failed"
                raise BrokerError(
                    f"expected node {self.number} to prepare its data, it {came}; {self.tail()}"
                ) from None

    def launch(self) -> None:
        """Start the process, without waiting for what becomes of it."""
        if self.alive:
            raise BrokerError(f"expected node {self.number} to be down, it runs as {self.pid}; stop it first")
        self._reap()
        # A session of its own: Ctrl-C in the terminal is for whoever looks after the node, and stops it then. One
        # that came before the process is known here would leave it behind.
        with _uninterrupted(), self.log.open("ab") as log:
            self._past = log.tell()
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", _PROPERTIES],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            # A shell that kills the node when this process is gone, however it went: its input ends then.
            self._guard = subprocess.Popen(
                ["sh", "-c", 'read -r _; kill -9 "$0" 2>/dev/null', str(self._process.pid)],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )

    def wait(self, time_limit: float = 60.0) -> None:
        """Wait until the node serves clients.

        Raises
        ------
        BrokerError
            It has ended, or is not so far after `time_limit` seconds (and goes on); with the end of its log.
        """
        deadline = time.monotonic() + time_limit
        while not self._serves():
            if not self.alive:
                raise BrokerError(f"expected node {self.number} to start, it has ended; {self.tail()}")
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"expected node {self.number} to serve clients by now, it does not yet; {self.tail()}"
                )
            time.sleep(_STEP)

    def start(self, time_limit: float = 60.0) -> None:
        """Start the process and wait until it serves clients: `launch` and `wait`."""
        self.launch()
        self.wait(time_limit)

    def terminate(self) -> None:
        """Ask the process, where there is one, to end in an orderly way, without waiting for it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)  # a paused one would not notice

    def stop(self, time_limit: float = 20.0) -> None:
        """End the process in an orderly way, by force after `time_limit` seconds. Stopping twice is harmless."""
        self.terminate()
        if self._process is not None:
            try:
                self._process.wait(time_limit)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._reap()

    def kill(self) -> None:
        """End the process at once (SIGKILL), as a crash would."""
        self._signal(signal.SIGKILL)
        self._reap()

    def pause(self) -> None:
        """Freeze the process, its connections open (SIGSTOP), as a very long garbage collection would."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def tail(self) -> str:
        """Return the last lines of the log, and where it is, for a message."""
        lines = self._logged().decode("utf-8", "replace").splitlines()[-_SHOWN:]
        return "\n".join([f"the end of {self.log}:", *lines])

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.alive:
            raise BrokerError(f"expected node {self.number} to run, it is down; start it first")
        self._process.send_signal(number)

    def _serves(self) -> bool:
        if _STARTED not in self._logged():
            return False
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex((HOST, self.port)) == 0

    def _logged(self) -> bytes:
        """Return what the current or last run wrote."""
        with self.log.open("rb") as log:
            log.seek(self._past)
            return log.read()

    def _reap(self) -> None:
        """Wait for the process, which has ended or is about to, and call off its guard."""
        if self._process is not None:
            self._process.wait()
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        self._process = self._guard = None
