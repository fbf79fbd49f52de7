"""What a registry answers when it does not give a schema, and what the worker makes of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.format_runs import TIMESTAMP, examples
from tests.support.other_formats import AVRO_EVENT, written
from worker.commands.record import record
from worker.commands.run import run
from worker.formats.registry import Registry
from worker.formats.schemas import RegistryAway, Schema
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError, OutRecord, TopicPartition
from worker.settings.properties import SecretFile
from worker.settings.topics import RegistrySettings

SECRET = "hidden-secret-9"


@contextmanager
def answering(status: int, body: str, wanted: str | None = None) -> Iterator[str]:
    """Yield the address of a server that always gives this answer; without the wanted login, 401."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            login = wanted is None or self.headers.get("Authorization") == wanted
            self.send_response(status if login else 401)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _registry(url: str, **properties: str | SecretFile) -> Registry:
    names = {name.replace("_", "."): value for name, value in properties.items()}
    return Registry(RegistrySettings(url=url, properties=names))


def test_a_schema_comes_with_its_kind() -> None:
    """Avro is the kind of a schema that says none."""
    with answering(200, '{"schema": "\\"int\\""}') as url:
        assert _registry(url).fetch(1) == Schema("AVRO", '"int"')
    with answering(200, '{"schema": "{}", "schemaType": "JSON"}') as url:
        assert _registry(url).fetch(1) == Schema("JSON", "{}")


def test_only_the_registrys_own_word_makes_an_id_unknown() -> None:
    """A 404 of somebody else must not make dead letters of all events."""
    with answering(404, '{"error_code": 40403, "message": "Schema not found"}') as url:
        assert _registry(url).fetch(1) is None
    for body in ('{"error_code": 404, "message": "HTTP 404 Not Found"}', "<html>"):
        with answering(404, body) as url, pytest.raises(LogError, match=r"check registry\.url"):
            _registry(url).fetch(1)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_passing_troubles_are_waited_for(status: int) -> None:
    """A registry that is busy or broken is asked again."""
    with (
        answering(status, '{"error_code": 50001, "message": "x"}') as url,
        pytest.raises(RegistryAway, match=str(status)),
    ):
        _registry(url).fetch(1)


def test_a_login_is_sent_and_shown_nowhere(tmp_path: Path) -> None:
    """With the right password the schema comes; with a wrong one the message says what to check, and no more."""
    (tmp_path / "login").write_text(f"me:{SECRET}\n")
    basic = "Basic bWU6aGlkZGVuLXNlY3JldC05"
    with answering(200, '{"schema": "\\"int\\""}', basic) as url:
        good = _registry(url, basic_auth_user_info=SecretFile(file=tmp_path / "login"))
        assert good.fetch(1) is not None
        with pytest.raises(LogError, match=r"check basic\.auth\.user\.info") as refused:
            _registry(url, basic_auth_user_info=f"other:{SECRET}").fetch(1)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("basic_auth_user_info", SECRET), ("ssl_ca_location", f"/{SECRET}"), ("ssl_key_location", f"/{SECRET}")],
)
def test_wrong_properties_are_told_at_the_start(name: str, value: str) -> None:
    """The message names the place, and shows no value."""
    with pytest.raises(LogError, match=r"registry\.properties") as wrong:
        _registry("http://127.0.0.1:9", **{name: value})
    assert SECRET not in str(wrong.value)


def _worker(folder: Path, url: str) -> Path:
    path = folder / "worker.yaml"
    path.write_text(
        f"log: {{embedded: log.db}}\nregistry: {{url: '{url}'}}\ntopics: {{in: {{format: avro}}}}\n"
        "models: {m: {kind: split, input: in, classes: [ham, spam], features: names}}\nmetrics: {port: null}\n"
    )
    with EmbeddedLog(folder / "log.db") as log:
        log.create_topic("in", 1)
        log.append([OutRecord("in", 0, b"k", written(examples(1)[0], "avro"), (), TIMESTAMP)])
    return path


def test_a_registry_that_refuses_ends_the_commands_with_a_message(tmp_path: Path) -> None:
    """Nothing is written, and the code is 1."""
    with answering(403, "{}") as url:
        path = _worker(tmp_path, url)
        for command, arguments in (
            (run, [str(path), "--until-end"]),
            (record, [str(path), str(tmp_path / "r.db")]),
        ):
            result = CliRunner().invoke(command, arguments)
            assert result.exit_code == 1
            assert "HTTP status 403" in " ".join(result.output.split())
    with EmbeddedLog(tmp_path / "log.db") as log:
        assert log.topics().keys() >= {"in.out"}
        assert [log.watermarks(TopicPartition(topic, 0)).high for topic in ("in.out", "in.dead")] == [0, 0]


def test_requests_to_the_registry_are_not_logged(tmp_path: Path) -> None:
    """The log has a line where the registry is waited for, and none for each request."""
    with answering(200, json.dumps({"schema": AVRO_EVENT})) as url:
        result = CliRunner().invoke(run, [str(_worker(tmp_path, url)), "--until-end"])
    assert result.exit_code == 0
    assert "running" in result.stderr
    assert "HTTP" not in result.output
