"""Settings of formats: what goes together, what is missing, and that no secret of a registry is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from worker.settings import fingerprint, load
from worker.settings import topics as topic_settings
from worker.settings.file import SettingsError

SECRET = "hidden-secret-9"
MODEL = "models: {m: {kind: split, input: in, classes: [0, 1], features: names}}\n"


def _file(folder: Path, text: str, models: str = MODEL) -> Path:
    path = folder / "worker.yaml"
    path.write_text(f"log: {{embedded: log.db}}\n{models}{text}\n", "utf-8")
    return path


def _problems(folder: Path, text: str, models: str = MODEL, **environ: str) -> str:
    with pytest.raises(SettingsError) as error:
        load(_file(folder, text, models), environ, thorough=True)
    return str(error.value)


REGISTRY = "registry: {url: 'http://r:8081'}\n"
WRONG = [
    (
        "topics: {in: {format: xml}}",
        "topics.in.format: expected 'msgpack', 'json', 'avro' or 'protobuf', got 'xml'",
    ),
    ("topics: {in: {columns: {label: y}}}", "topics.in.columns: expected it with format json, avro or protobuf"),
    ("topics: {in: {format: avro}}", "topics.in.format: expected a registry beside it (registry: {url: ...})"),
    ("topics: {in: {format: json, reader_schema: x}}", "topics.in.reader_schema: expected it with format avro"),
    (REGISTRY + "topics: {in: {format: avro, reader_schema: x.avsc}}", "expected the path of a file, got"),
    ("topics: {in: {format: json, columns: {label: y, id: y}}}", "expected each column once"),
    ("topics: {in: {format: json, columns: {label: y, features: [y]}}}", "expected each column once"),
    ("topics: {in: {format: json, columns: {features: [a], ignore: [b]}}}", "expected either features or ignore"),
    ("topics: {in: {format: json, columns: {time_unit: h}}}", "expected 's', 'ms', 'us' or 'ns', got 'h'"),
    (
        "topics: {in: {format: json, columns: {label: y, id: i}, pending: {max: 3, for: 1d}}}",
        "topics.in: expected columns with op and id beside pending",
    ),
    (
        "topics: {in: {format: json, columns: {label: y, op: o}, pending: {max: 3, for: 1d}}}",
        "topics.in: expected columns with op and id beside pending",
    ),
    ("topics: {in: {format: json, columns: {labels: y}}}", "(did you mean 'label'?)"),
    ("topics: {in: {results: jsn}}", "expected 'msgpack' or 'json', got 'jsn' (did you mean 'json'?)"),
    ("topics: {in: {results: json}}\nbounds: {name_bytes: 65536}", "expected bounds.name_bytes of at most 16,384"),
    ("registry: {url: 'r:8081'}", "registry.url: expected http://host:port or https://host:port"),
    (
        "registry: {url: 'http://r', properties: {sasl.password: x}}",
        "registry.properties.'sasl.password': expected one of",
    ),
    (
        "registry: {url: 'http://r', properties: {basic.auth.user.info: {file: none}}}",
        "expected a file with the value, got",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_wrong_settings_are_named(tmp_path: Path, text: str, message: str) -> None:
    """Each says where it is, what was expected and what came."""
    assert message in _problems(tmp_path, text)


def test_columns_need_names(tmp_path: Path) -> None:
    """A model of ids would refuse everything."""
    models = MODEL.replace("names", "ids")
    problem = _problems(tmp_path, "topics: {in: {format: json, columns: {label: y}}}", models)
    assert "models.m.features: expected 'names', as the columns of 'in' have names, got 'ids'" in problem
    load(_file(tmp_path, "topics: {in: {format: json}}", models), {})


def test_what_is_not_installed_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format whose packages are missing is an error of the settings, before anything is read."""
    monkeypatch.setitem(topic_settings.PACKAGES, "avro", ("fastavro", "no_such_package", "no.such.module"))
    problem = _problems(tmp_path, REGISTRY + "topics: {in: {format: avro}}")
    assert "pip install 'anabranch[avro]', got no no_such_package, no no.such.module" in problem


@pytest.mark.parametrize(
    "text",
    [
        f"registry: {{url: 'http://me:{SECRET}@r'}}",
        f"registry: {{url: ['http://{SECRET}']}}",
        f"registry: {{url: 'http://r', properties: [{SECRET}]}}",
        f"registry: {{url: 'http://r', properties: {{basic.auth.user.info: [{SECRET}]}}}}",
        f"registry: {{url: 'http://r', properties: {{basic.auth.user.info: {{a: {SECRET}}}}}}}",
        f"registry: [{SECRET}]",
    ],
)
def test_no_message_shows_a_secret_of_the_registry(tmp_path: Path, text: str) -> None:
    """A password in a wrong place is not told."""
    assert SECRET not in _problems(tmp_path, text)


def test_properties_of_the_registry_are_texts(tmp_path: Path) -> None:
    """They are taken as they are written, from the file, from files of secrets and from the environment."""
    (tmp_path / "login").write_text("me:0123\n", "utf-8")
    text = "registry: {url: 'http://r', properties: {basic.auth.user.info: {file: login}, ssl.key.password: 0123}}"
    registry = load(_file(tmp_path, text), {"ANABRANCH_REGISTRY__PROPERTIES__BEARER_AUTH_TOKEN": "@0"}).registry
    assert registry is not None
    assert registry.resolved() == {
        "url": "http://r",
        "basic.auth.user.info": "me:0123",
        "ssl.key.password": "0123",
        "bearer.auth.token": "@0",
    }
    assert "0123" not in repr(registry)


def test_formats_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    """What the bytes of results depend on tells; the defaults, and where the registry is, do not."""
    schema = tmp_path / "r.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "R", "fields": []}))

    def print_of(text: str) -> str:
        return fingerprint(load(_file(tmp_path, text), {}))

    plain = print_of("")
    assert print_of("topics: {in: {output: other, format: msgpack, results: msgpack}}") == plain
    assert print_of(REGISTRY) == plain
    others = [
        "topics: {in: {format: json}}",
        "topics: {in: {results: json}}",
        "topics: {in: {format: json, columns: {label: y}}}",
        "topics: {in: {format: json, columns: {label: z}}}",
        REGISTRY + "topics: {in: {format: avro}}",
        REGISTRY + "topics: {in: {format: avro, reader_schema: r.avsc}}",
    ]
    prints = [print_of(text) for text in others]
    schema.write_text(json.dumps({"type": "record", "name": "S", "fields": []}))
    prints.append(print_of(others[-1]))
    assert len({plain, *prints}) == 8
