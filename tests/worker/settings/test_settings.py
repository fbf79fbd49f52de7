import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.codec.bounds import Bounds
from worker.log.port import LogError
from worker.models import KINDS
from worker.settings import Route, Settings, fingerprint, load
from worker.settings.by_kind import words_of
from worker.settings.file import MAX_FILE_BYTES, SettingsError, read_text
from worker.settings.models import SplitSettings
from worker.settings.values import Cadence

# The shortest file that is right, and where its lines are.
SMALLEST = """\
log:
  embedded: events.db
models:
  spam:
    kind: split
    input: sms
    classes: [ham, spam]
    features: names
"""


def _load(folder: Path, text: str, **environ: str) -> Settings:
    path = folder / "worker.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, environ)


def _problems(folder: Path, text: str, **environ: str) -> list[str]:
    """Return the messages, with the file's name without its folder."""
    with pytest.raises(SettingsError) as caught:
        _load(folder, text, **environ)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def _model(settings: Settings, name: str = "spam") -> SplitSettings:
    model = settings.models[name]
    assert isinstance(model, SplitSettings)
    return model


def test_defaults(tmp_path: Path) -> None:
    """The smallest file gets the documented defaults and an embedded log beside it."""
    settings = _load(tmp_path, SMALLEST)
    model = settings.models["spam"]
    assert settings.log.embedded == tmp_path / "events.db"
    assert settings.group == "anabranch"
    assert settings.routes == {"sms": Route("sms.out", "sms.dead", "sms.state")}
    assert isinstance(model, SplitSettings)
    assert (model.finder, model.criterion, model.classes) == ("exact", "entropy", ("ham", "spam"))
    assert (model.window, model.verify_deletes, model.on_duplicate) == (None, False, "reject")
    assert model.emit.splits == Cadence("change")
    assert model.emit.snapshots == Cadence("never")
    assert settings.bounds == Bounds()
    assert settings.transaction.model_dump() == {"interval_ms": 250, "records": 5_000, "bytes": 8_000_000}
    assert settings.start == "earliest"
    assert settings.checkpoint is not None
    assert settings.checkpoint.model_dump() == {
        "interval_ms": 60_000,
        "records": 1_000_000,
        "bytes_per_second": 20_000_000,
    }
    assert settings.metrics.model_dump() == {"port": 9464, "host": "127.0.0.1", "stall_seconds": 30.0}
    assert settings.logging.model_dump() == {"level": "info", "format": "auto"}


def test_everything_given(tmp_path: Path) -> None:
    """Every setting of the reference can be given."""
    settings = _load(
        tmp_path,
        """\
log: {embedded: /var/lib/events.db}
group: blue
topics:
  sms: {output: results, dead_letters: refused, state: checkpoints}
models:
  spam:
    kind: split
    input: sms
    finder: basegini
    classes: [0, 1]
    features: ids
    window: 1000
    verify_deletes: true
    on_duplicate: replace
    emit:
      splits: {every: 10}
      snapshots: {every_ms: 60000}
bounds: {rows: 100}
transaction: {interval_ms: 100, records: 10, bytes: 1000}
metrics: {port: 0, host: 0.0.0.0, stall_seconds: 5}
logging: {level: debug, format: json}
""",
    )
    model = settings.models["spam"]
    assert settings.log.embedded == Path("/var/lib/events.db")
    assert settings.routes == {"sms": Route("results", "refused", "checkpoints")}
    assert isinstance(model, SplitSettings)
    assert (model.criterion, model.classes) == ("gini", (0, 1))
    assert model.emit.splits == Cadence("every", 10)
    assert model.emit.snapshots == Cadence("every_ms", 60_000)
    assert settings.bounds == Bounds(rows=100)
    assert settings.metrics.stall_seconds == 5


@pytest.mark.parametrize("text", ["metrics: null", "metrics: {port: null}"])
def test_metrics_off(tmp_path: Path, text: str) -> None:
    """A null turns the metrics page off, in either place."""
    assert _load(tmp_path, SMALLEST + text).metrics.port is None


def test_yes_and_no_are_text(tmp_path: Path) -> None:
    """Classes may be called yes and no without quotes."""
    text = SMALLEST.replace("[ham, spam]", "[no, yes]")
    assert _model(_load(tmp_path, text)).classes == ("no", "yes")


def test_alpha_goes_with_the_approximate_finders(tmp_path: Path) -> None:
    """It is 0.1 unless told otherwise, whole numbers are welcome, and other finders have none."""
    plain = _load(tmp_path, SMALLEST + "    finder: updent\n")
    told = _load(tmp_path, SMALLEST + "    finder: updgini\n    alpha: 2\n")
    assert [_model(each).alpha for each in (plain, told, _load(tmp_path, SMALLEST))] == [0.1, 2.0, None]
    assert _model(told).criterion == "gini"
    spelt_out = _load(tmp_path, SMALLEST + "    finder: updent\n    alpha: 0.1\n")
    assert fingerprint(plain) == fingerprint(spelt_out)
    assert fingerprint(plain) != fingerprint(_load(tmp_path, SMALLEST + "    finder: updent\n    alpha: 0.2\n"))


def test_settings_are_frozen(tmp_path: Path) -> None:
    """Settings cannot be changed once they are loaded."""
    settings = _load(tmp_path, SMALLEST)
    with pytest.raises(ValueError, match="frozen"):
        settings.group = "other"


MODEL_NAMES = (
    "alpha, attributes, classes, criterion, emit, expire, features, finder, input, kind, label_range, label_unit, "
    "late_labels, on_duplicate, shadow, start, target, verify_deletes, window"
)
SECTIONS = (
    "bounds, checkpoint, group, log, logging, metrics, models, on_change, on_defect, registry, revision, start, "
    "threads, topics, transaction"
)
WHEN = "'change', 'never', {every: N} or {every_ms: T} with a number from 1"
CLASSES = "2 to 1000 different classes, all integers or all strings"

# Each adds lines to the smallest file, from line 9 on; four spaces in are settings of the model.
WINDOWS = "expected a number of examples from 1 to 1073741824, or a time span from 1s to 36500d, as in 1000 or 30d"
ADDED = [
    (
        "    criterion: ginni",
        "9:16: models.spam.criterion: expected 'entropy', 'gini', 'sqrt' or 'variance', got 'ginni' (did you mean "
        "'gini'?)",
    ),
    (
        "    finder: exacct",
        "9:13: models.spam.finder: expected 'exact', 'updent', 'updgini', 'baseent' or 'basegini', "
        "got 'exacct' (did you mean 'exact'?)",
    ),
    (
        "    finder: baseent\n    criterion: gini",
        "10:16: models.spam.criterion: expected 'entropy', which the finder 'baseent' implies, got 'gini'",
    ),
    (
        "    criterion: entropy\n    finder: basegini",
        "9:16: models.spam.criterion: expected 'gini', which the finder 'basegini' implies, got 'entropy'",
    ),
    (
        "    fidner: exact",
        f"9:5: models.spam.fidner: expected one of {MODEL_NAMES}, got 'fidner' (did you mean 'finder'?)",
    ),
    (
        "    finder: updgini\n    criterion: entropy",
        "10:16: models.spam.criterion: expected 'gini', which the finder 'updgini' implies, got 'entropy'",
    ),
    (
        "    alpha: 0.1",
        "9:12: models.spam.alpha: expected no alpha, which the finder 'exact' has no use for "
        "(updent and updgini have), got 0.1",
    ),
    ("    finder: updent\n    alpha: 0", "10:12: models.spam.alpha: expected 0.001 or more, got 0"),
    ("    finder: updent\n    alpha: 101", "10:12: models.spam.alpha: expected 100.0 or less, got 101"),
    (
        "    finder: updent\n    alpha: null",
        "10:12: models.spam.alpha: expected a number from 0.001 to 100, got null",
    ),
    ('    finder: updent\n    alpha: "1"', "10:12: models.spam.alpha: expected a number, got '1'"),
    ("    window: 0", f"9:13: models.spam.window: {WINDOWS}, got 0"),
    ("    window: 2.0", f"9:13: models.spam.window: {WINDOWS}, got 2.0"),
    ('    window: "2"', f"9:13: models.spam.window: {WINDOWS}, got '2'"),
    ("    window: true", f"9:13: models.spam.window: {WINDOWS}, got true"),
    ("    verify_deletes: yes", "9:21: models.spam.verify_deletes: expected true or false, got 'yes'"),
    (
        "    emit: {splits: chnage}",
        f"9:20: models.spam.emit.splits: expected {WHEN}, got 'chnage' (did you mean 'change'?)",
    ),
    ("    emit: {splits: {every: 0}}", f"9:20: models.spam.emit.splits: expected {WHEN}, got a mapping"),
    (
        "    emit: {spilts: never}",
        "9:12: models.spam.emit.spilts: expected one of snapshots, splits, got 'spilts' "
        "(did you mean 'splits'?)",
    ),
    (
        "  Spam: {kind: split, input: a, classes: [0, 1], features: ids}",
        "9:3: models.Spam: expected a model name (a-z, 0-9, '_' and '-', at most 64, "
        "a letter or digit first), got 'Spam'",
    ),
    (
        "  ham: {kind: split, input: 'a b', classes: [0, 1], features: ids}",
        "9:29: models.ham.input: expected a topic name (letters, digits, '.', '_' and '-', at most 249), "
        "got 'a b'",
    ),
    (
        "  ham: {kind: split, classes: [0, 1], features: ids}",
        "9:3: models.ham.input: expected a value, got nothing",
    ),
    (
        "  ham: {kind: split, input: sms.out, classes: [0, 1], features: ids}",
        "6:12: models.spam.input: expected a topic for the results of 'sms' that is no input "
        "(this one is a default: set topics.sms.output), got 'sms.out'",
    ),
    (
        "topics: {sms: {output: one, dead_letters: one}}",
        "9:43: topics.sms.dead_letters: expected a topic for the dead letters of 'sms' other than that "
        "for the results of 'sms', got 'one'",
    ),
    (
        "  ham: {kind: split, input: mail, classes: [0, 1], features: ids}\n"
        "topics:\n  sms: {output: one}\n  mail: {output: one}",
        "11:17: topics.sms.output: expected a topic for the results of 'sms' other than that "
        "for the results of 'mail', got 'one'",
    ),
    (
        "topics: {smss: {output: one}}",
        "9:10: topics.smss: expected the input topic of a model (sms), got 'smss' (did you mean 'sms'?)",
    ),
    (
        "bounds: {row: 3}",
        "9:10: bounds.row: expected one of ahead_ms, dead_letter_bytes, elements, features, id_bytes, "
        "key_bytes, keys, live_ids, name_bytes, record_bytes, rows, got 'row' (did you mean 'rows'?)",
    ),
    ("bounds: {rows: 0}", "9:16: bounds.rows: expected 1 or more, got 0"),
    ("bounds: {rows: many}", "9:16: bounds.rows: expected an integer, got 'many'"),
    (
        "bounds: {name_bytes: 3}",
        "7:20: models.spam.classes.1: expected at most 3 bytes (bounds.name_bytes), got 'spam'",
    ),
    ("threads: 0", "9:10: threads: expected 1 or more, got 0"),
    ("threads: 65", "9:10: threads: expected 64 or less, got 65"),
    ("threads: two", "9:10: threads: expected an integer, got 'two'"),
    ("transaction: {interval_ms: 60000}", "9:28: transaction.interval_ms: expected 30000 or less, got 60000"),
    ("transaction: [250]", "9:14: transaction: expected a mapping, got [250]"),
    ("metrics: {port: 65536}", "9:17: metrics.port: expected 65535 or less, got 65536"),
    (
        "logging: {level: warn}",
        "9:18: logging.level: expected 'debug', 'info', 'warning' or 'error', got 'warn' "
        "(did you mean 'warning'?)",
    ),
    ("group: ''", "9:8: group: expected at least 1 character, got ''"),
    ("group: null", "9:8: group: expected a string, got null"),
    ("gruop: blue", f"9:1: gruop: expected one of {SECTIONS}, got 'gruop' (did you mean 'group'?)"),
    # What YAML allows and settings do not
    ("group: a\ngroup: b", "10:1: group: expected each name once, got it again (first on line 9)"),
    ("[a]: 1", "9:1: expected a name before the colon, got a list or a mapping"),
    ("group: !!python/name:os.system x", "9:8: group: expected plain YAML, got the tag "
     "'tag:yaml.org,2002:python/name:os.system'"),
    ("group: !!timestamp 2020-01-01", "9:8: group: expected plain YAML, got the tag "
     "'tag:yaml.org,2002:timestamp'"),
    ("group: !!int x", "9:8: group: expected something to be read as int, got 'x'"),
    ('group: "\\ud800"', "9:8: expected YAML, got: half of a surrogate pair"),
    ("group: [", "10:1: expected YAML, got: expected the node content, but found '<stream end>'"),
    ("group: a\n---\ngroup: b", "10:1: expected YAML, got: but found another document"),
    ("group: " + "[" * 40, "9:39: expected YAML, got: nesting deeper than 32"),
]  # fmt: skip


@pytest.mark.parametrize(("added", "message"), ADDED)
def test_wrong_addition(tmp_path: Path, added: str, message: str) -> None:
    """A wrong setting is named by line, column and path; what was expected, what came and what was meant."""
    assert _problems(tmp_path, SMALLEST + added + "\n") == [f"worker.yaml:{message}"]


@pytest.mark.parametrize(
    ("classes", "got"),
    [
        ("[0]", "[0]"),
        ("[a, a]", "['a', 'a']"),
        ("[0, a]", "[0, 'a']"),
        ("[true, false]", "[True, False]"),
        ("[0.0, 1.0]", "[0.0, 1.0]"),
        ("spam", "'spam'"),
    ],
)
def test_wrong_classes(tmp_path: Path, classes: str, got: str) -> None:
    """A model has different classes of one kind, two at least."""
    text = SMALLEST.replace("[ham, spam]", classes)
    assert _problems(tmp_path, text) == [f"worker.yaml:7:14: models.spam.classes: expected {CLASSES}, got {got}"]


def test_problems_are_gathered_in_the_order_of_the_file(tmp_path: Path) -> None:
    """One run tells everything that is wrong."""
    *most, last = words_of(KINDS)
    text = SMALLEST.replace("split", "splits") + "gruop: x\nlogging: {format: jsn}\n"
    assert _problems(tmp_path, text) == [
        f"worker.yaml:5:11: models.spam.kind: expected {', '.join(map(repr, most))} or {last!r}, got 'splits' "
        "(did you mean 'split'?)",
        f"worker.yaml:9:1: gruop: expected one of {SECTIONS}, got 'gruop' (did you mean 'group'?)",
        "worker.yaml:10:19: logging.format: expected 'auto', 'text' or 'json', got 'jsn' (did you mean 'json'?)",
    ]


def test_no_models(tmp_path: Path) -> None:
    """A worker without a model is refused."""
    text = "log: {embedded: a}\nmodels: {}\n"
    assert _problems(tmp_path, text) == [
        "worker.yaml:2:9: models: expected at least 1 entry, got an empty mapping"
    ]


@pytest.mark.parametrize(("text", "got"), [("", "null"), ("[]", "[]"), ("a", "'a'")])
def test_not_a_mapping(tmp_path: Path, text: str, got: str) -> None:
    """A file that holds no settings is refused."""
    (message,) = _problems(tmp_path, text)
    assert message.endswith(f": expected a mapping, got {got}")


def test_unreadable_files(tmp_path: Path) -> None:
    """A file that is missing, too large or not text is refused with its name."""
    missing = tmp_path / "none.yaml"
    with pytest.raises(SettingsError, match=r"none\.yaml: expected a settings file .* No such file"):
        load(missing, {})
    assert _problems(tmp_path, "#" * (MAX_FILE_BYTES + 1)) == [
        "worker.yaml: expected at most 1048576 bytes, got more"
    ]
    assert _problems(tmp_path, "group: \x07") == [
        "worker.yaml:1:8: expected YAML, got the character 0x7, which it does not allow"
    ]
    (tmp_path / "worker.yaml").write_bytes(b"group: \xff")
    with pytest.raises(SettingsError, match="expected UTF-8, got byte 0xff at offset 7"):
        load(tmp_path / "worker.yaml", {})


def test_aliases(tmp_path: Path) -> None:
    """An alias stands for its value, and an override of one use leaves the other alone."""
    text = SMALLEST.replace("  spam:", "  spam: &model") + "  ham: *model\n"
    settings = _load(tmp_path, text, ANABRANCH_MODELS__HAM__WINDOW="5")
    assert (_model(settings, "ham").window, _model(settings).window) == (5, None)


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
        "a: &a [*a]\n",
        "a: &a {b: *a}\n",
    ],
)
def test_alias_bombs(tmp_path: Path, text: str) -> None:
    """Aliases that stand for more than any settings need are refused before they are built."""
    (message,) = _problems(tmp_path, text)
    assert "expected at most 100000 values nested at most 32 deep, got more" in message


def test_overrides(tmp_path: Path) -> None:
    """Variables go over the file, are parsed as YAML, and reach names that no variable could spell."""
    text = SMALLEST.replace("  spam:", "  spam-filter:").replace("input: sms", "input: SMS.in")
    settings = _load(
        tmp_path,
        text + "topics: {SMS.in: {output: results}}\nmetrics: null\n",
        ANABRANCH_TRANSACTION__RECORDS="1000",
        ANABRANCH_GROUP='"7"',
        ANABRANCH_BOUNDS="{rows: 5, keys: 6}",
        ANABRANCH_BOUNDS__ROWS="7",
        ANABRANCH_MODELS__SPAM_FILTER__CLASSES="[0, 1]",
        ANABRANCH_MODELS__SPAM_FILTER__EMIT__SPLITS="{every: 3}",
        ANABRANCH_TOPICS__SMS_IN__DEAD_LETTERS="refused",
        ANABRANCH_METRICS__PORT="0",
        HOME="/",
    )
    model = settings.models["spam-filter"]
    assert settings.transaction.records == 1000
    assert settings.group == "7"
    assert settings.bounds == Bounds(rows=7, keys=6)
    assert isinstance(model, SplitSettings)
    assert model.classes == (0, 1)
    assert model.emit.splits == Cadence("every", 3)
    assert settings.routes == {"SMS.in": Route("results", "refused", "SMS.in.state")}
    assert settings.metrics.port == 0


def test_overrides_alone(tmp_path: Path) -> None:
    """A whole worker can be told by variables, over an empty file."""
    settings = _load(
        tmp_path,
        "",
        ANABRANCH_LOG__EMBEDDED="a.db",
        ANABRANCH_MODELS__SPAM="{kind: split, input: sms, classes: [0, 1], features: ids}",
    )
    assert settings.log.embedded == tmp_path / "a.db"
    assert settings.models["spam"].input == "sms"


WRONG_VARIABLES = [
    ("TRANSACTION__RECORDS", "many", "transaction.records: expected an integer, got 'many'"),
    (
        "TRANSACTION__RECORD",
        "1",
        "transaction.record: expected one of bytes, interval_ms, records, got 'record' (did you mean 'records'?)",
    ),
    ("GRUOP", "x", f"gruop: expected one of {SECTIONS}, got 'gruop' (did you mean 'group'?)"),
    ("BOUNDS", "{rows: 0}", "bounds.rows: expected 1 or more, got 0"),
    ("BOUNDS", "{rows: 1, rows: 2}", "bounds: expected each name once, got it again (first on line 1)"),
    ("BOUNDS", "[", "bounds: expected YAML, got: expected the node content, but found '<stream end>'"),
    (
        "LOG__EMBEDDED__PATH",
        "x",
        "log.embedded.path: expected the name of a setting, got one inside of something that is not a mapping",
    ),
    ("MODELS__NEW__KIND", "split", "models.new.input: expected a value, got nothing"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG_VARIABLES)
def test_wrong_override(tmp_path: Path, name: str, value: str, message: str) -> None:
    """A wrong variable is named as the place, as a line would be."""
    assert f"ANABRANCH_{name}: {message}" in _problems(tmp_path, SMALLEST, **{f"ANABRANCH_{name}": value})


def test_kubernetes_service_variables_are_no_settings(tmp_path: Path) -> None:
    """The variables that Kubernetes sets for a Service called anabranch do no harm."""
    _load(
        tmp_path,
        SMALLEST,
        ANABRANCH_SERVICE_HOST="10.0.0.1",
        ANABRANCH_SERVICE_PORT="9464",
        ANABRANCH_SERVICE_PORT_METRICS="9464",
        ANABRANCH_PORT="tcp://10.0.0.1:9464",
        ANABRANCH_PORT_9464_TCP="tcp://10.0.0.1:9464",
        ANABRANCH_PORT_9464_TCP_ADDR="10.0.0.1",
        ANABRANCH_METRICS_SERVICE_HOST="10.0.0.1",
        ANABRANCH_METRICS_PORT="tcp://10.0.0.1:9464",
    )


@pytest.mark.parametrize(
    ("added", "same"),
    [
        ("group: other", True),
        ("metrics: null", True),
        ("logging: {level: debug}", True),
        ("transaction: {records: 1}", True),
        ("threads: 2", True),
        ("topics: {sms: {output: elsewhere}}", True),
        ("    criterion: entropy", True),  # the default, spelt out
        ("    finder: baseent", False),
        ("    finder: updent", False),
        ("    criterion: gini", False),
        ("    window: 10", False),
        ("    emit: {splits: {every: 2}}", False),
        ("bounds: {keys: 10}", False),
        ("  a: {kind: split, input: sms, classes: [0, 1], features: ids}", False),
    ],
)
def test_fingerprint_follows_what_outputs_depend_on(tmp_path: Path, added: str, same: bool) -> None:
    """The fingerprint changes with the models and the bounds, and with nothing else."""
    before, after = _load(tmp_path, SMALLEST), _load(tmp_path, SMALLEST + added)
    assert (fingerprint(before) == fingerprint(after)) is same


def test_fingerprint_is_stable(tmp_path: Path) -> None:
    """The fingerprint of given settings never changes, in whatever order they stand: checkpoints hold it."""
    other = "  ham: {kind: split, input: mail, classes: [0, 1], features: ids}\n"
    model = SMALLEST.split("models:\n")[1]
    first, second = _load(tmp_path, SMALLEST + other), _load(
        tmp_path, "models:\n" + other + model + "log: {embedded: b.db}\n"
    )  # fmt: skip
    assert fingerprint(first) == fingerprint(second)
    assert fingerprint(first) == "ad5c415f6448e641cfefff8fdd9363c19a5438b5731b8c80b31c95bb852b1a71"


def test_class_types_tell_in_the_fingerprint(tmp_path: Path) -> None:
    """The class 0 and the class "0" are two things."""
    numbers = _load(tmp_path, SMALLEST.replace("[ham, spam]", "[0, 1]"))
    texts = _load(tmp_path, SMALLEST.replace("[ham, spam]", '["0", "1"]'))
    assert fingerprint(numbers) != fingerprint(texts)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(plain)
def test_json_is_read_as_it_is(value: object) -> None:
    """Any JSON is YAML and means the same."""
    assert read_text(json.dumps(value), "text").data == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail in another way than by a `SettingsError`."""
    try:
        read_text(text, "text")
    except SettingsError as error:
        assert error.problems  # noqa: PT017  (either outcome is right)


KAFKA = """\
log:
  kafka:
    bootstrap: one:9092,two:9092
    instance: worker-1
    properties: {security.protocol: SASL_SSL, sasl.password: {file: secrets/password}, fetch.min.bytes: 1}
models:
  spam: {kind: split, input: sms, classes: [ham, spam], features: names}
"""


def test_kafka_and_its_properties(tmp_path: Path) -> None:
    """Properties are texts as they are written, and those in files are read without the line ends behind them."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password").write_text("open sesame \n")
    kafka = _load(tmp_path, KAFKA).log.kafka
    assert kafka is not None
    assert (kafka.name, kafka.guarantee) == ("worker-1", "exactly_once")
    assert kafka.resolved() == {
        "bootstrap.servers": "one:9092,two:9092",
        "security.protocol": "SASL_SSL",
        "sasl.password": "open sesame ",
        "fetch.min.bytes": "1",
    }
    other = _load(tmp_path, KAFKA, ANABRANCH_LOG__KAFKA__INSTANCE="worker-2").log.kafka
    assert other is not None
    assert other.name == "worker-2"


def test_a_secret_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is named, with the property that it should hold."""
    kafka = _load(tmp_path, KAFKA).log.kafka
    assert kafka is not None
    with pytest.raises(LogError, match=r"secrets/password: expected a file with the value of.*'sasl.password'"):
        kafka.resolved()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "fetch.min.bytes: 1",
            "isolation.level: read_uncommitted",
            "no property 'isolation.level' (only committed",
        ),
        (
            "fetch.min.bytes: 1",
            "enable.auto.commit: true",
            "no property 'enable.auto.commit' (offsets are committed",
        ),
        ("fetch.min.bytes: 1", "bootstrap.servers: three", "expected it as log.kafka.bootstrap, got it here"),
        ("    bootstrap: one:9092,two:9092\n", "", "expected a value"),
        ("log:\n", "log:\n  embedded: log.db\n", "expected either kafka or embedded"),
        ("models:", "checkpoint: null\nstart: latest\nmodels:", "expected 'earliest' where checkpoint is null"),
    ],
)
def test_wrong_kafka_settings(tmp_path: Path, before: str, after: str, message: str) -> None:
    """What cannot be had is named with its place and the reason."""
    assert before in KAFKA
    [problem] = _problems(tmp_path, KAFKA.replace(before, after))
    assert message in problem
    assert problem.startswith("worker.yaml:")
