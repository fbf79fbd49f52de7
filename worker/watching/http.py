"""The worker's own small web server: metrics, health and a status page. It reads; it changes nothing."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, NamedTuple, Self
from urllib.parse import unquote_to_bytes

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from worker.views.status_html import TREES, forest_page, status_page, tree_page
from worker.watching.snapshots import read
from worker.watching.status import About, StatusBoard

# Scrapes and probes are few. Where there are more connections than this, the one that has waited longest for its
# client goes: a probe sends its request at once, so it is served however many others are slow.
MAX_CONNECTIONS = 64
REQUEST_SECONDS = 5.0  # for a client to send all of its request, and as long to take the answer

_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_HTML = "text/html; charset=utf-8"


class Reply(NamedTuple):
    """An answer to a GET."""

    status: HTTPStatus
    kind: str  # Content-Type
    body: bytes


class ServerError(Exception):
    """The server cannot listen where it was told to."""


class Pages:
    """What is answered to which path.

    Parameters
    ----------
    registry : CollectorRegistry
        The metrics to show.
    board : StatusBoard
        Where the loop publishes its status.
    stall_seconds : float
        A loop whose last tick is older than this is not alive.
    clock : callable
        Seconds, on the clock that the loop stamps its ticks with.
    about : About
        What runs.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        board: StatusBoard,
        stall_seconds: float,
        clock: Callable[[], float],
        about: About,
    ) -> None:
        self._registry = registry
        self._board = board
        self._stall_seconds = stall_seconds
        self._clock = clock
        self._about = about
        self._pages = {
            "/": self._status,
            "/metrics": self._metrics,
            "/livez": self._livez,
            "/readyz": self._readyz,
        }

    def get(self, path: str, accept: str) -> Reply:
        """Answer a GET of this path by a client that accepts these content types."""
        if path.startswith(TREES):
            return self._tree(path)
        page = self._pages.get(path)
        if page is None:
            paths = ", ".join([*self._pages, f"{TREES}MODEL/KEY"])
            return Reply(HTTPStatus.NOT_FOUND, _TEXT, f"expected one of {paths}\n".encode())
        return page(accept)

    def _metrics(self, accept: str) -> Reply:
        try:
            encode, kind = choose_encoder(accept)
        except (ValueError, TypeError):  # a version that is no number
            encode, kind = choose_encoder("")
        return Reply(HTTPStatus.OK, kind, encode(self._registry))

    def _livez(self, _accept: str) -> Reply:
        silent = self._clock() - self._board.status.tick
        status = self._board.status
        if status.state in ("starting", "waiting", "compiling") and not status.awaits_registry:
            return _probe(True, f"the worker is {self._board.status.phase}; it has no partitions yet")
        if silent <= self._stall_seconds:
            return _probe(True, f"the loop ticked {silent:.1f} s ago")
        limit = f"more than the {self._stall_seconds:g} s of metrics.stall_seconds"
        return _probe(False, f"the loop last ticked {silent:.1f} s ago, {limit}")

    def _readyz(self, _accept: str) -> Reply:
        status = self._board.status
        return _probe(status.state == "running", f"the worker is {status.phase}")

    def _status(self, _accept: str) -> Reply:
        board = self._board
        page = status_page(board.status, board.snapshots.kept, self._clock(), self._about)
        return Reply(HTTPStatus.OK, _HTML, page.encode())

    def _tree(self, path: str) -> Reply:
        model, _, rest = path.removeprefix(TREES).partition("/")
        quoted, _, number = rest.partition("/")
        key = unquote_to_bytes(quoted)
        snapshot = self._board.snapshots.kept.get((model, key))
        if snapshot is None:
            said = "expected a model and key whose snapshot was written of late; the page / lists them\n"
            return Reply(HTTPStatus.NOT_FOUND, _TEXT, said.encode())
        trees = read(snapshot)
        if number:
            trees = [tree for tree in trees if str(getattr(tree, "tree", None)) == number]
        if not trees:
            said = "expected the number of a tree of this forest; its page without a number shows them\n"
            return Reply(HTTPStatus.NOT_FOUND, _TEXT, said.encode())
        page = tree_page(key, trees[0]) if len(trees) == 1 else forest_page(key, trees)
        return Reply(HTTPStatus.OK, _HTML, page.encode())


def _probe(good: bool, why: str) -> Reply:
    status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return Reply(status, _JSON, json.dumps({"ok": good, "why": why}).encode() + b"\n")


class Server:
    """Serves the pages from its own threads, from construction to `close`.

    Parameters
    ----------
    host, port
        Where to listen; port 0 takes any free one, see `url`.
    pages : Pages
        What to answer.

    Raises
    ------
    ServerError
        Where it cannot listen, say because the port is taken.
    """

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        try:
            self._listener = _Listener(host, port, pages)
        except OSError as error:
            raise ServerError(
                f"expected to listen on {host}:{port}, got: {error.strerror}; "
                "set metrics: {host: ..., port: ...} in the settings (port 0 for any free one, null for none)"
            ) from error
        # A daemon, so that a worker that dies of an error is not kept half alive by its status page.
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.1,), name="http", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the status page."""
        host, port = self._listener.socket.getsockname()[:2]
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    def close(self) -> None:
        """Stop listening, cut open connections and wait for the threads. Closing twice is harmless."""
        if self._thread.is_alive():
            self._listener.shutdown()
            self._thread.join()
            self._listener.cut()
            self._listener.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


class _Listener(ThreadingMixIn, TCPServer):
    """A thread for each connection. Connections are known, so that closing never waits for a client."""

    allow_reuse_address = True  # a restart need not wait for the last connections to time out
    daemon_threads = False  # server_close waits for them
    request_queue_size = 4 * MAX_CONNECTIONS  # with the usual 5, a burst of clients waits for retransmissions

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        self._waiting_since: dict[socket.socket, float] = {}  # each open connection, the longest waiting first
        self._lock = threading.Lock()
        super().__init__((host, port), _Handler)

    def verify_request(self, request: Any, _client: Any) -> bool:
        with self._lock:
            if len(self._waiting_since) >= MAX_CONNECTIONS:
                self._cut(next(iter(self._waiting_since)))
            self._waiting_since[request] = time.monotonic()
        return True

    def answering(self, request: socket.socket) -> None:
        """Take note that a client has sent its request; from now on it has time to take the answer."""
        with self._lock:
            if self._waiting_since.pop(request, None) is not None:
                self._waiting_since[request] = time.monotonic()

    def service_actions(self) -> None:
        """End the connections that have waited too long; with a limit for each read a client could drip on."""
        since = time.monotonic() - REQUEST_SECONDS
        with self._lock:
            for connection in [each for each, start in self._waiting_since.items() if start < since]:
                self._cut(connection)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._waiting_since.pop(request, None)
        super().shutdown_request(request)

    def cut(self) -> None:
        """End every open connection."""
        with self._lock:
            for connection in list(self._waiting_since):
                self._cut(connection)

    def _cut(self, connection: socket.socket) -> None:
        """End a connection; its thread sees the end of the stream, and closes it."""
        del self._waiting_since[connection]
        with suppress(OSError):  # the client was quicker
            connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, _request: Any, _client: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that hangs up is its own affair
            logging.getLogger(__name__).exception("a page could not be made")


class _Handler(BaseHTTPRequestHandler):
    """Speaks HTTP/1.0: one answer, then the connection ends."""

    server: _Listener
    server_version = "anabranch"
    sys_version = ""
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        self.server.answering(self.connection)
        reply = self.server.pages.get(self.path.partition("?")[0], self.headers.get("Accept", ""))
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, _format: str, *_args: Any) -> None:
        """Say nothing: probes come every few seconds."""
