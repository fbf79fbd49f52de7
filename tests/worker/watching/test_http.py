import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from algorithms.core.fixed_point import UNIT
from algorithms.regression.baselines import Compared, Guesses
from algorithms.regression.coverage import Covered
from algorithms.trees.evaluation import Prequential
from tests.support.about import ABOUT
from tests.worker.commands.test_show import TREE
from worker.codec import to_record
from worker.settings.values import Cadence
from worker.views import tree_svg
from worker.views.status_html import REFRESH_SECONDS, status_page
from worker.watching import http
from worker.watching.http import MAX_CONNECTIONS, Pages, Server, ServerError
from worker.watching.status import ModelStatus, PartitionStatus, Quality, State, Status, StatusBoard


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def read(self) -> float:
        """Return the time that was set."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return the clock that everything in a test goes by."""
    return Clock()


@pytest.fixture
def board(clock: Clock) -> StatusBoard:
    """Return a board where a loop that has just started ticked."""
    return StatusBoard(Status(tick=clock.now))


@pytest.fixture
def pages(clock: Clock, board: StatusBoard) -> Pages:
    """Return pages with one metric and a limit of 30 s."""
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc(3)
    return Pages(registry, board, 30.0, clock.read, ABOUT)


@pytest.fixture
def server(pages: Pages) -> Iterator[Server]:
    """Run a server and check that none of its threads is left."""
    threads = threading.active_count()
    with Server("127.0.0.1", 0, pages) as server:
        yield server
    assert threading.active_count() == threads


def _connect(server: Server) -> HTTPConnection:
    return HTTPConnection(urlsplit(server.url).netloc, timeout=10)


def _get(
    server: Server, path: str, accept: str = "*/*", method: str = "GET"
) -> tuple[HTTPResponse, str]:  # fmt: skip
    connection = _connect(server)
    try:
        connection.request(method, path, headers={"Accept": accept})
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def test_metrics_in_plain_text(server: Server) -> None:
    """A scraper that asks for nothing special gets the text format."""
    response, body = _get(server, "/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert next(family.name for family in parse_text(body)) == "things"


def test_metrics_in_openmetrics(server: Server) -> None:
    """A scraper that knows OpenMetrics gets it."""
    response, body = _get(server, "/metrics", "application/openmetrics-text; version=1.0.0")
    assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    families = parse_openmetrics(body)  # type: ignore[no-untyped-call]
    assert [family.name for family in families] == ["things"]


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=x", "text/plain; version=", ";;,"])
def test_odd_accept_headers(server: Server, accept: str) -> None:
    """A header that makes no sense still gets the metrics."""
    response, body = _get(server, "/metrics", accept)
    assert response.status == 200
    assert "things_total 3.0" in body


def test_alive_while_the_loop_ticks(server: Server, clock: Clock, board: StatusBoard) -> None:
    """A worker is alive until its loop has been silent for longer than the limit, and again when it ticks."""
    board.status = Status(tick=100.0, state="running")
    clock.now = 130.0
    response, body = _get(server, "/livez")
    assert (response.status, json.loads(body)) == (200, {"ok": True, "why": "the loop ticked 30.0 s ago"})

    clock.now = 130.5
    response, body = _get(server, "/livez")
    assert response.status == 503
    assert response.headers["Content-Type"] == "application/json"
    assert json.loads(body) == {
        "ok": False,
        "why": "the loop last ticked 30.5 s ago, more than the 30 s of metrics.stall_seconds",
    }

    board.status = Status(tick=130.4, state="running")
    assert _get(server, "/livez")[0].status == 200


def test_alive_while_kernels_are_compiled(server: Server, clock: Clock, board: StatusBoard) -> None:
    """A worker that is starting is alive however long that takes: a restart would begin it all again."""
    for state in ("starting", "waiting", "compiling"):
        board.status = Status(tick=100.0, state=state)
        clock.now = 1_000.0
        assert _get(server, "/livez")[0].status == 200


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("starting", 503),
        ("waiting", 503),
        ("compiling", 503),
        ("restoring", 503),
        ("running", 200),
        ("stopping", 503),
    ],
)
def test_ready_while_running(server: Server, board: StatusBoard, state: State, status: int) -> None:
    """A worker is ready while it is running and says what it does otherwise."""
    board.status = Status(tick=100.0, state=state)
    response, body = _get(server, "/readyz")
    assert response.status == status
    assert json.loads(body) == {"ok": status == 200, "why": f"the worker is {state}"}


def test_status_page(server: Server, board: StatusBoard) -> None:
    """The status page shows partitions with their lag, and models, with names escaped."""
    board.status = Status(
        tick=99.0,
        state="running",
        partitions=(PartitionStatus("sms", 3, 1000, 1234),),
        models=(ModelStatus("<spam>", 20, 345, 6, 67_890),),
    )
    response, body = _get(server, "/")
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "The worker is <strong>running</strong>; its loop ticked 1.0 s ago." in body
    assert "<td>sms</td><td>3</td><td>1,000</td><td>1,234</td><td>234</td>" in body
    assert "<td>&lt;spam&gt;</td><td>20</td><td>345</td><td>6</td><td>67,890</td><td></td><td></td></tr>" in body
    assert all(f'href="{path}"' in body for path in ("/metrics", "/livez", "/readyz"))


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7_300, "2 h 1 min"), (10**6, "11 d 13 h")]
)
def test_the_page_says_what_runs(server: Server, clock: Clock, seconds: int, said: str) -> None:
    """It has the version, the settings' fingerprint as messages have it, and for how long the worker runs."""
    clock.now = seconds
    assert f"Version 1.2.3, settings 0123456789ab, up {said}.</p>" in _get(server, "/")[1]


def test_the_page_stays_fresh_and_fits_phones(server: Server) -> None:
    """A browser loads it anew by itself, and each of its tables scrolls."""
    body = _get(server, "/")[1]
    assert f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' in body
    assert len(re.findall(r'<div class="wide" role="region" aria-label="[^"]+" tabindex="0">\n<table', body)) == 2
    assert len(re.findall("<table", body)) == 2


def test_when_the_next_tree_is_due() -> None:
    """Before one was written, as after a restart, the page says when each model writes one."""
    about = ABOUT._replace(snapshots={"spam": Cadence("every", 4_531).words, "ham": Cadence("never").words})
    page = status_page(Status(0.0), {}, 0.0, about)
    assert "No tree was written since the worker started" in page
    assert "<li>spam: after every 4,531 events of a key</li><li>ham: never, as emit.snapshots says</li>" in page
    assert Cadence("every_ms", 60_000).words == "after every 60 s of a key's event time"


def test_the_page_says_what_is_due() -> None:
    """Keys and examples that are older than their spans and have not gone; nothing where all went."""
    went, waits = ModelStatus("went", 7), ModelStatus("waits", 7, due=1_234, examples_due=56)
    page = status_page(Status(0.0, models=(went, waits)), {}, 0.0, ABOUT)
    [table] = re.findall(r"<caption>Due, to go with the next events.*?</table>", page, re.DOTALL)
    assert re.findall(r"<td[^>]*>(.*?)</td>", table) == ["waits", "1,234", "56"]
    assert "Due," not in status_page(Status(0.0, models=(went,)), {}, 0.0, ABOUT)


def test_the_page_says_how_good_models_are(server: Server, board: StatusBoard) -> None:
    """Beside the accuracy of late are what costs nothing and the kappas, where there are any."""
    kept = Prequential(2, 4)
    labels = np.array([0, 1, 1, 1, 0, 0], np.int32)
    kept.add(labels, np.array([0, 0, 1, 1, 0, 1], np.int32), np.full(6, UNIT), np.zeros(6))
    quality = Quality(6, kept.total(), kept.recent())
    board.status = Status(tick=99.0, models=(ModelStatus("spam", 1, quality=quality),))
    body = _get(server, "/")[1]
    assert "<th>accuracy</th><th>majority</th><th>no change</th>" in body
    assert "<th>kappa M</th><th>kappa temporal</th><th>error rose</th></tr>" in body
    assert "<td>0.7500</td><td>0.2500</td><td>0.7500</td><td>0.6667</td><td>0.0000</td><td></td></tr>" in body
    other = quality._replace(drifts=1, since=2_345)
    both = quality.plus(other).plus(quality._replace(drifts=2, since=9_000))
    assert (both.drifts, both.since) == (3, 2_345)
    board.status = Status(tick=99.0, models=(ModelStatus("spam", 1, quality=both),))
    assert "<td>3 times, 2,345 examples ago</td></tr>" in _get(server, "/")[1]


def test_the_page_says_how_good_intervals_are(server: Server, board: StatusBoard) -> None:
    """Where predictions have intervals, the share of labels within stands beside their width."""
    truth, weight = np.array([1.0, 3.0]), np.full(2, UNIT)
    errors = Compared.of(truth, truth, weight, Guesses(truth, truth))
    board.status = Status(tick=99.0, models=(ModelStatus("prices", 1, quality=Quality(2, errors, errors)),))
    assert "Intervals" not in _get(server, "/")[1]
    covered = Covered(np.array([4 * UNIT, 3 * UNIT, 0, 0]), np.array([30.0]))
    recent = Covered(np.zeros(4, np.int64), np.zeros(1))
    quality = Quality(2, errors, errors, covered=covered, covered_recently=recent)
    board.status = Status(tick=99.0, models=(ModelStatus("prices", 1, quality=quality),))
    assert "<td>prices</td><td>0.7500</td><td>7.5</td><td></td><td></td></tr>" in _get(server, "/")[1]


def test_the_page_says_how_good_predictions_of_numbers_are(server: Server, board: StatusBoard) -> None:
    """R2 is told of late, beside the errors, and of all examples."""
    truth, weight = np.array([1.0, 3.0]), np.full(2, UNIT)
    total, recent = (
        Compared.of(truth, np.array([1.0, last]), weight, Guesses(truth, truth)) for last in (3.0, 2.0)
    )
    board.status = Status(tick=99.0, models=(ModelStatus("prices", 1, quality=Quality(2, total, recent)),))
    page = _get(server, "/")[1]
    assert "<th>R2</th><th>R2 of all</th></tr>" in re.sub(' scope="col"', "", page)
    assert "<td>0.5000</td><td>1.0000</td></tr>" in page


def test_unknown_path(server: Server) -> None:
    """An unknown path gets a list of the known ones."""
    response, body = _get(server, "/metric")
    assert (response.status, body) == (404, "expected one of /, /metrics, /livez, /readyz, /models/MODEL/KEY\n")


def test_trees_are_drawn(server: Server, board: StatusBoard) -> None:
    """The status page links to each tree that was written, whatever its key is called, and its page draws it."""
    assert "No tree was written since the worker started" in _get(server, "/")[1]
    keys = [b"everyone", b"<a href=x>/?%", b"\xff\x00"]
    board.snapshots.add(to_record(TREE, "sms.out", key) for key in keys)
    body = _get(server, "/")[1]
    links = re.findall(r'href="(/models/[^"]+)"', body)
    assert ">spam: tree of everyone</a></td><td>0/9</td>" in body
    assert len(links) == 3
    for link, key in zip(links, reversed(keys), strict=True):
        response, body = _get(server, link)
        assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert tree_svg.draw(TREE, key) in body
        assert "<a href=x>" not in body
        assert "after sms/0 offset 9: version 5,574, 7 nodes" in body


def test_the_trees_of_a_forest_are_drawn_small(server: Server, board: StatusBoard) -> None:
    """The page of a forest has the top of each tree, with a link to its own page; no name is there twice."""
    forest = [TREE._replace(tree=number, trees=12) for number in range(12)]
    board.snapshots.add(to_record(tree, "sms.out", b"a/b", seq) for seq, tree in enumerate(forest))
    (link,) = re.findall(r'href="(/models/[^"]+)"', _get(server, "/")[1])
    body = _get(server, link)[1]
    assert "<h1>spam: forest of a/b</h1>" in body
    assert "after sms/0 offset 9: version 5,574, 12 trees of\n84 nodes in all" in body
    assert re.findall(r'href="(/models/[^"]+)"', body) == [f"{link}/{number}" for number in range(12)]
    names = re.findall(r' id="([^"]+)"', body)
    assert len(set(names)) == len(names) == 24
    one = _get(server, f"{link}/11")[1]
    assert "<h1>spam: tree 11 of a/b</h1>" in one
    assert tree_svg.draw(forest[11], b"a/b") in one
    assert f'<a href="{link}">The forest</a>' in one
    for number in ("12", "011", "x"):
        response, body = _get(server, f"{link}/{number}")
        assert (response.status, body) == (
            404,
            "expected the number of a tree of this forest; its page without a number shows them\n",
        )


@pytest.mark.parametrize("path", ["/models/", "/models/spam", "/models/spam/nobody", "/models/x/y/z", "/models/%"])
def test_unknown_trees(server: Server, path: str) -> None:
    """A tree that was not written has no page."""
    response, body = _get(server, path)
    assert response.status == 404
    assert body.startswith("expected a model and key whose snapshot was written of late")


def test_query_and_head(server: Server) -> None:
    """A query string is not part of the path, and HEAD has the headers of GET without its body."""
    response, body = _get(server, "/livez?verbose", method="HEAD")
    assert (response.status, body) == (200, "")
    assert int(response.headers["Content-Length"]) > 0


def test_other_methods_are_refused(server: Server) -> None:
    """The server can only be read."""
    assert _get(server, "/metrics", method="POST")[0].status == 501


def test_port_in_use(server: Server, pages: Pages) -> None:
    """A port that is taken is named, with what to do."""
    port = urlsplit(server.url).port
    assert port is not None
    with pytest.raises(ServerError, match=rf"127\.0\.0\.1:{port}, got: Address already in use; set metrics"):
        Server("127.0.0.1", port, pages)


def test_unknown_host(pages: Pages) -> None:
    """A host that is none of this machine's is named, with what to do."""
    with pytest.raises(ServerError, match=r"expected to listen on 192\.0\.2\.1:0, got: .*; set metrics: {host: "):
        Server("192.0.2.1", 0, pages)


def test_ipv6(pages: Pages) -> None:
    """The server listens on IPv6 too, where the machine has it."""
    try:
        server = Server("::1", 0, pages)
    except ServerError:
        pytest.skip("this machine has no IPv6")
    with server:
        assert server.url.startswith("http://[::1]:")
        assert _get(server, "/livez")[0].status == 200


def test_port_is_free_after_close(server: Server, pages: Pages) -> None:
    """A port can be listened on as soon as the server that had it is closed."""
    port = urlsplit(server.url).port
    assert port is not None
    _get(server, "/livez")
    server.close()
    server.close()
    with Server("127.0.0.1", port, pages) as second:
        assert _get(second, "/livez")[0].status == 200


def test_a_silent_client_holds_up_nobody(server: Server) -> None:
    """While a client is connected and says nothing, others are answered and the server can be closed."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as silent:
        assert _get(server, "/livez")[0].status == 200
        start = time.monotonic()
        server.close()
        assert time.monotonic() - start < 3
        assert silent.recv(1) == b""


def test_connections_are_bounded(server: Server) -> None:
    """Of clients that open connections without end the one that has waited longest is cut."""
    silent = [_socket(server) for _ in range(MAX_CONNECTIONS)]
    try:
        assert _get(server, "/livez")[0].status == 200
        assert silent[0].recv(1) == b""
        silent[-1].sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.0 200"
    finally:
        for connection in silent:
            connection.close()


def test_probes_pass_slow_clients(server: Server) -> None:
    """While 200 clients send their requests byte by byte, and come again when cut, probes are answered."""
    slow = [_socket(server) for _ in range(200)]
    try:
        for _ in range(8):
            for at, connection in enumerate(slow):
                try:
                    connection.sendall(b"G")
                except OSError:  # the server has cut it
                    connection.close()
                    slow[at] = _socket(server)
            start = time.monotonic()
            assert _get(server, "/livez")[0].status == 200
            assert time.monotonic() - start < 5  # less than a slow client may take
    finally:
        for connection in slow:
            connection.close()


def test_a_request_has_a_time_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that goes on sending is cut when its time for the whole request is over."""
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.3)
    with _socket(server) as drip:
        drip.settimeout(0.05)
        start = time.monotonic()
        while time.monotonic() - start < 3:  # with a limit for each read, that is 5 s
            try:
                drip.sendall(b"G")
                assert drip.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                pass
            break
        else:
            pytest.fail("the server goes on reading")


def _socket(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=10)
