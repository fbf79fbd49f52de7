"""Properties of the Kafka client: texts as they are written, and shown nowhere."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import structlog
from click.testing import CliRunner
from confluent_kafka import KafkaError

from worker.commands.run import run
from worker.commands.running import worker_on
from worker.commands.show import show
from worker.commands.validate import validate
from worker.log.embedded import EmbeddedLog
from worker.log.kafka import KafkaLog
from worker.log.kafka.errors import explain
from worker.log.kafka.secrets import hide_values_of
from worker.log.port import LogError
from worker.settings import KafkaSettings, load
from worker.settings.file import SettingsError
from worker.watching import logs

SECRET = "hidden-secret-9"
PROPERTIES = "ANABRANCH_LOG__KAFKA__PROPERTIES"
MODELS = "models: {spam: {kind: split, input: sms, classes: [ham, spam], features: names}}\n"


def _settings(folder: Path, kafka: str) -> Path:
    path = folder / "worker.yaml"
    path.write_text(f"log: {{kafka: {kafka}}}\n{MODELS}", encoding="utf-8")
    return path


def _with(folder: Path, properties: str) -> Path:
    return _settings(folder, f"{{bootstrap: 'b:1', properties: {properties}}}")


def _validate(path: Path, **environ: str) -> tuple[int, str]:
    result = CliRunner().invoke(validate, [str(path)], env=environ)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def _resolved(path: Path, **environ: str) -> dict[str, str]:
    kafka = load(path, environ).log.kafka
    assert kafka is not None
    return kafka.resolved()


LITERALS = ["0123", "1.10", "#abc", "@x", "null", "~", "true", "'a'", "*a", "!a", "[a]", "{a: b}", "a: b", " a "]
LITERALS += ["%a", "|", "é\n"]


@pytest.mark.parametrize("text", LITERALS)
def test_variables_are_taken_literally(tmp_path: Path, text: str) -> None:
    """A property that the environment gives is a text, whatever it looks like, and needs no line in the file."""
    for kafka in ("{bootstrap: 'b:1'}", "{bootstrap: 'b:1', properties: {sasl.password: x}}"):
        path = _settings(tmp_path, kafka)
        environ = {f"{PROPERTIES}__SASL_PASSWORD": text}
        assert _resolved(path, **environ) == {"bootstrap.servers": "b:1", "sasl.password": text}
        assert _validate(path, **environ)[0] == 0


@pytest.mark.parametrize("text", ["0123", "1.10", "true", "0x10", "1e3", ".5", "+1", "!!int 0123", "!!str 1"])
def test_values_in_the_file_are_texts(tmp_path: Path, text: str) -> None:
    """A property in the file is what is written there, without quotes too."""
    written = text.split(" ")[-1]
    assert _resolved(_with(tmp_path, f"{{sasl.password: {text}}}"))["sasl.password"] == written
    whole = {"ANABRANCH_LOG__KAFKA": f"{{bootstrap: 'b:1', properties: {{sasl.password: {text}}}}}"}
    assert _resolved(_settings(tmp_path, "{bootstrap: x}"), **whole)["sasl.password"] == written


def test_a_variable_may_name_a_file(tmp_path: Path) -> None:
    """A secret that is kept in a file can be named by a variable."""
    (tmp_path / "0123").write_text("x\n")
    path = _settings(tmp_path, "{bootstrap: 'b:1'}")
    assert _resolved(path, **{f"{PROPERTIES}__SASL_PASSWORD__FILE": "0123"})["sasl.password"] == "x"


def test_an_empty_variable_is_refused(tmp_path: Path) -> None:
    """A variable that is set to nothing is a secret that got lost."""
    code, said = _validate(_settings(tmp_path, "{bootstrap: b}"), **{f"{PROPERTIES}__SASL_PASSWORD": ""})
    assert code == 1
    assert "'sasl.password': expected a value, got an empty variable; set it, or unset it" in said


WRONG = [
    f"{{sasl.password: [{SECRET}]}}",
    f"{{sasl.password: [[{SECRET}]]}}",
    f"{{sasl.password: {{a: {SECRET}}}}}",
    f"{{sasl.password: {{{SECRET}: a}}}}",
    f"{{sasl.password: {{{SECRET}: a, {SECRET}: b}}}}",
    f"{{sasl.password: {{file: [{SECRET}]}}}}",
    f"{{sasl.password: {{file: x, more: {SECRET}}}}}",
    f"{{sasl.password: {{? [{SECRET}] : x}}}}",
    f"{{sasl.password: *{SECRET}}}",
    f"{{sasl.password: !{SECRET}}}",
    f"{{sasl.password: !{SECRET} x}}",
    f"{{sasl.password: !a!{SECRET} x}}",
    f"{{sasl.password: &{SECRET} a, x: &{SECRET} b}}",
    f"{{sasl_password: {SECRET}}}",
    f"{{sasl.jaas.config: 'Module required password=\"{SECRET}\";'}}",
    f"{{linger.ms: {SECRET}}}",
    f"{{debug: {SECRET}}}",
    f"{{security.protocol: {SECRET}}}",
    f"{{bootstrap.servers: {SECRET}}}",
    f"{{group.id: {SECRET}}}",
    f"{{isolation.level: {SECRET}}}",
    f"{{partition.assignment.strategy: {SECRET}}}",
    f"{{error_cb: {SECRET}}}",
    f'{{sasl.password: "{SECRET}\\0"}}',
    f"[sasl.password={SECRET}]",
    f"[{{sasl.password: {SECRET}}}]",
    SECRET,
]


@pytest.mark.parametrize("command", [validate, run, show])
@pytest.mark.parametrize("properties", WRONG)
def test_errors_do_not_tell_values(tmp_path: Path, properties: str, command: object) -> None:
    """Whatever is wrong with a property, the message names place and property, and not what it holds."""
    result = CliRunner().invoke(command, [str(_with(tmp_path, properties))])  # type: ignore[arg-type]
    assert result.exit_code == 1
    assert "worker.yaml:1:" in result.output
    assert SECRET not in result.output


@pytest.mark.parametrize(
    "text",
    [
        f"log: {{kafka: {SECRET}}}",
        f"log: {{kafka: [{{properties: {{sasl.password: {SECRET}}}}}]}}",
        f"log: [{{kafka: {{properties: {{sasl.password: {SECRET}}}}}}}]",
        f"- log: {{kafka: {{properties: {{sasl.password: {SECRET}}}}}}}",
        f"log: {{kafka: {{bootstrap: 'user:{SECRET}@host:9092'}}}}",
        f"log: {{kafka: {{bootstrap: ['user:{SECRET}@host:9092']}}}}",
        f"log: {{kafka: {{bootstrap: b, sasl.password: {SECRET}}}}}",
        f"log: {{kafka: {{bootstrap: b, properties: {{sasl.password: {SECRET}: x}}}}}}",
        f"log:\n  kafka:\n    properties:\n      sasl.password: {SECRET}\n     x: y\n",
    ],
)
def test_errors_around_properties_do_not_tell_values(tmp_path: Path, text: str) -> None:
    """Nor do messages about what stands around a property."""
    path = tmp_path / "worker.yaml"
    path.write_text(f"{text}\n{MODELS if not text.startswith('-') else ''}")
    code, said = _validate(path)
    assert code == 1
    assert SECRET not in said


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (f"{{sasl_password: {SECRET}}}", "1:46: log.kafka.properties.sasl_password: expected the name of a "
         "property of librdkafka, got 'sasl_password' (did you mean 'sasl.password'?)"),
        ("{sasl.pasword: x}", "expected the name of a property of librdkafka, got 'sasl.pasword'"),
        (f"{{sasl.password: {{fille: {SECRET}}}}}", "expected a text, or {file: PATH} with the path of a file "
         "that holds it, got a mapping"),
        (f"{{sasl.password: [{SECRET}]}}", "that holds it, got a list"),
        ("{sasl.password: }", "that holds it, got null"),
        ("{retry.backoff.ms: 99999999}", "expected a number from 1 to 300000, got another (it is not shown)"),
        (f"{{debug: {SECRET}}}", "expected a value that the client takes"),
        (f"{{sasl.jaas.config: {SECRET}}}", "not one of clients in Java (see sasl.username"),
        ("{fetch.min.bytes: 1e5}", "expected a whole number in digits, got another (it is not shown)"),
        ("{fetch.min.bytes: 0123}", "expected a whole number in digits"),
        ("{fetch.min.bytes: 1.5}", "expected a whole number in digits"),
        ("{linger.ms: 5ms}", "expected a number in digits"),
        ("{sasl.password: {file: missing}}", "missing, got an error: No such file or directory"),
        ("{sasl.password: {file: .}}", "got an error: Is a directory"),
        ("{sasl.password: {file: empty}}", "empty, got an empty file"),
        ("{sasl.password: {file: latin}}", "latin, got bytes that are not UTF-8"),
        ("{sasl.password: {file: nul}}", "nul, got the character NUL in it"),
        ("{linger.ms: {file: good}}", "expected a number in digits"),
        ("{sasl_password: {file: good}}", "(did you mean 'sasl.password'?)"),
    ],
)  # fmt: skip
def test_validate_says_what_is_wrong(tmp_path: Path, properties: str, message: str) -> None:
    """Names that the client does not know, values that it does not take and files without a value are found."""
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    (tmp_path / "nul").write_text(f"a\0{SECRET}")
    (tmp_path / "good").write_text(SECRET)
    code, said = _validate(_with(tmp_path, properties))
    assert code == 1
    assert message in said.replace(f"{tmp_path}/", "")
    assert SECRET not in said


def test_properties_that_the_client_takes_are_good(tmp_path: Path) -> None:
    """Numbers, switches, words and texts pass as the client reads them."""
    good = (
        "{linger.ms: 0.5, queue.buffering.max.messages: 100000, retry.backoff.ms: 0x64, compression.type: zstd, "
    )
    good += "socket.keepalive.enable: TRUE, enable.ssl.certificate.verification: false, client.rack: 0123}"
    assert _validate(_with(tmp_path, good))[0] == 0


@pytest.mark.parametrize("content", [b"x\n", b"x\n\n", b"x\r\n\r\n", b"\xef\xbb\xbfx\n", b"x"])
def test_files_are_read_without_what_editors_add(tmp_path: Path, content: bytes) -> None:
    """Neither a byte order mark nor line ends at the end of a file belong to a secret."""
    (tmp_path / "secret").write_bytes(content)
    path = _with(tmp_path, "{sasl.password: {file: secret}}")
    assert _resolved(path)["sasl.password"] == "x"
    assert _validate(path)[0] == 0


def test_files_are_looked_for_where_they_are_needed(tmp_path: Path) -> None:
    """A command that makes no client needs no secrets; one that does names the file, without any byte of it."""
    (tmp_path / "secret").write_bytes(SECRET.encode() + b"\xff")
    kafka = load(_with(tmp_path, "{sasl.password: {file: secret}}"), {}).log.kafka
    assert kafka is not None
    with pytest.raises(LogError, match=r"secret: expected a file with the value of.*got bytes that are not UTF-8"):
        kafka.resolved()


def test_errors_of_the_client_do_not_tell_secrets() -> None:
    """What the client says of an outage or a refusal is told without secrets, and without users of addresses."""
    hide_values_of({"sasl.password": SECRET})
    error = KafkaError(KafkaError._AUTHENTICATION, f"{SECRET} at http://user:other@host/ was refused")
    assert explain(error).startswith("... at http://...@host/ was refused (_AUTHENTICATION); correct")


def test_settings_do_not_show_properties() -> None:
    """What a traceback or a log line would show of settings has no properties in it."""
    assert SECRET not in repr(KafkaSettings(bootstrap="b:1", properties={"sasl.password": SECRET}))


def test_pages_do_not_show_properties(tmp_path: Path) -> None:
    """Neither the status page nor the metrics tell a property."""
    path = _with(tmp_path, f"{{sasl.password: {SECRET}}}")
    settings = load(path, {"ANABRANCH_METRICS__PORT": "0"})
    with EmbeddedLog(tmp_path / "a.db") as log, worker_on(log, settings) as (_, url):
        for page in ("", "metrics", "livez"):
            with urlopen(f"{url}{page}") as answer:
                assert SECRET.encode() not in answer.read()


def test_errors_have_no_settings_behind_them(tmp_path: Path) -> None:
    """Nor is there another error behind one about settings, which would quote them."""
    with pytest.raises(SettingsError) as raised:
        load(_with(tmp_path, f"{{sasl.password: [{SECRET}]}}"), {})
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """Catch all logs of the process, at debug level."""
    file = io.StringIO()
    before = logging.getLogger().handlers[:], logging.getLogger().level
    logs.configure("debug", "json", file)
    yield file
    logging.getLogger().handlers[:], level = before
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()


def test_the_client_does_not_tell_values(log_lines: io.StringIO) -> None:
    """With all that the client can tell at debug level no secret is in a line of the log."""
    properties = {
        "bootstrap.servers": "127.0.0.1:1",
        "debug": "all",
        "sasl.username": f"user-{SECRET}",
        "sasl.password": SECRET,
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.config": f"principal={SECRET}",
        "sasl.oauthbearer.token.endpoint.url": f"http://user:{SECRET}@nowhere/",
        "ssl.key.pem": SECRET,
        "ssl.key.password": SECRET,
    }
    with KafkaLog(properties, group="g", instance="i", time_limit=0.5) as log:
        with pytest.raises(LogError):
            log.partitions("t")
        log.reader().close()
    lines = log_lines.getvalue()
    assert "sasl.password = ..." in lines  # so it did tell its properties
    assert SECRET not in lines


@pytest.mark.parametrize(
    "properties",
    [
        {"security.protocol": SECRET},
        {"debug": SECRET},
        {"plugin.library.paths": SECRET},
        {"security.protocol": "ssl", "ssl.key.pem": SECRET},
        {"security.protocol": "ssl", "ssl.ca.location": f"/{SECRET}"},
        {"security.protocol": "ssl", "ssl.cipher.suites": SECRET},
        {"security.protocol": "sasl_plaintext", "sasl.mechanism": SECRET},
    ],
)
def test_a_client_that_cannot_be_made_does_not_tell_values(
    log_lines: io.StringIO, properties: dict[str, str]
) -> None:
    """What the client says against its properties is told without their values."""
    with pytest.raises(LogError) as raised:
        KafkaLog({"bootstrap.servers": "b:1", **properties}, group="g", instance="i")
    assert str(raised.value).startswith("the properties of the Kafka client: ")
    assert SECRET not in str(raised.value) + log_lines.getvalue()
