"""From a file of one's own to a result in the three commands that `init` prints, without editing."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from worker.codec.event import encode_event
from worker.commands import main
from worker.log.browse import Record
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition
from worker.sources.topic import topic_contents
from worker.views.contents_text import features_table, keys_words, labels_table, share_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANABRANCH_METRICS__PORT", "null")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def _weather(rows: int = 400) -> str:
    """Return a table in which warm days of one country are dry."""
    random = np.random.default_rng(1)
    lines = ["day,temperature,country,windy,outlook"]
    for row in range(rows):
        day, warm = row % 365, random.uniform(-10, 30)
        country, windy = random.choice(["nz", "au"]), random.integers(2)
        lines.append(f"{day},{warm:.2f},{country},{windy},{'dry' if warm > 10 and country == 'nz' else 'wet'}")
    return "\n".join(lines) + "\n"


def _svmlight() -> str:
    return "".join(f"{n % 2} {1 if n % 2 else 2}:1 {3 + n % 5}:1\n" for n in range(300))


def _jsonl() -> str:
    lines = [{"x": {"a": n % 7, "b": 1}, "y": "hi" if n % 7 > 3 else "lo", "id": n} for n in range(300)]
    deletes = [{"op": "delete", "id": n} for n in range(20)]
    return "".join(json.dumps(line) + "\n" for line in [*lines, *deletes])


def _npz() -> bytes:
    written = io.BytesIO()
    value = np.arange(600.0).reshape(300, 2) % 10
    np.savez(written, X=value, kind=(value[:, 0] > 4).astype(int))
    return written.getvalue()


def _parquet() -> bytes:
    written = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(io.BytesIO(_weather().encode())), written)
    return written.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        ("my weather.csv", _weather(), "--label outlook"),
        ("weather.tsv", _weather().replace(",", "\t"), "--label outlook --ignore day"),
        ("bare.csv", _weather().partition("\n")[2], "--label 5"),
        ("commas.csv", _weather().replace(",", ";").replace(".", ","), "--label outlook --decimal comma"),
        ("weather.parquet", _parquet(), "--label outlook"),
        ("clicks.svm", _svmlight(), ""),
        ("events.jsonl", _jsonl(), ""),
        ("arrays.npz", _npz(), "--label kind"),
        ("messages.txt", "spam\twin a prize now\nham\tsee you at eight\n" * 50, ""),
        ("my weather.csv", _weather(), "--label outlook --forest"),
        ("events.jsonl", _jsonl(), "--forest"),
    ],
)
def test_three_commands(name: str, data: str | bytes, options: str) -> None:
    """What it prints goes through as it is; nothing is refused, and the tree is better than a guess."""
    Path(name).write_bytes(data if isinstance(data, bytes) else data.encode())
    result = _run("init", name, *shlex.split(options))
    assert result.exit_code == 0, result.output
    commands = re.findall(r"^  anabranch (.*)$", result.stdout, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["publish", "run", "show"]
    outputs = []
    for command in commands:
        said = _run(*shlex.split(command))
        assert said.exit_code == 0, (command, said.output)
        outputs.append(said.stdout)
    kind = "forest" if "--forest" in options else "tree"
    row = next(line.split() for line in outputs[1].splitlines() if line.startswith(f" {kind}"))
    assert row[4] == "0"  # refused
    assert float(row[-1]) > 0.6
    assert "tree" in outputs[2]


def test_kinds_by_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only later rows tell is said in the command, and in the settings."""
    monkeypatch.setattr("worker.sources.table.SAMPLE_ROWS", 5)
    Path("t.csv").write_text("y,a,b\n" + "k,1,2\n" * 9 + "m,7,red\n" * 9)
    result = _run("init", "t.csv")
    assert "publish t.csv --to worker.yaml --label y --numeric a --nominal b\n" in result.stdout
    model = yaml.safe_load(Path("worker.yaml").read_text())["models"]["tree"]
    assert model["attributes"] == {"default": "binary", "numeric": ["a"]}
    assert model["classes"] == ["k", "m"]


def test_what_it_shows() -> None:
    """Columns with what they are, hold and miss; classes with their shares."""
    Path("t.csv").write_text("y,a,b\nk,1.5,red\nk,,blue\nm,7,red\n")
    lines = [" ".join(line.split()) for line in _run("init", "t.csv").stdout.splitlines()]
    assert "a numeric 1.5 to 7 33.3%" in lines
    assert "b nominal 2: red, blue" in lines
    assert "k 2 66.7%" in lines


def test_columns_that_tell_nothing() -> None:
    """Names that are all different, and dates that are read as names, are left out, and that is said."""
    rows = [f"k{n % 2},{n % 7},c{n:04},{n % 28 + 1:02}.03.2024" for n in range(200)]
    Path("t.csv").write_text("y,a,card,day\n" + "\n".join(rows) + "\n")
    result = _run("init", "t.csv")
    assert "publish t.csv --to worker.yaml --label y --ignore card --ignore day\n" in result.stdout
    said = " ".join(result.stderr.split())
    assert "or a date that is no ISO 8601: 'card', 'day'; say --nominal, --numeric, --text, --id or --key" in said
    assert result.stderr.count("card") == 2  # once more where all columns are named
    assert re.search(r"\n card +left out ", result.stdout)
    taken = _run("init", "t.csv", "--nominal", "card,day", "--force")
    assert "--nominal card --nominal day\n" in taken.stdout
    assert "left out" not in taken.output


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_the_rows_are_left_out(first: int) -> None:
    """They tell a model nothing but how late it is; a few rows may be numbered by accident."""
    rows = [f"k{n % 2},{first + n},{n % 7}" for n in range(20_500)]
    Path("t.csv").write_text("y,row,a\n" + "\n".join(rows) + "\n")
    result = _run("init", "t.csv")
    assert "or the number of the row" in result.stderr
    assert "publish t.csv --to worker.yaml --label y --ignore row\n" in result.stdout
    assert "left out" not in _run("init", "t.csv", "--numeric", "row", "--force").output
    for other in (rows[:10], [*rows[:99], "k0,98,0"]):
        Path("t.csv").write_text("y,row,a\n" + "\n".join(other) + "\n")
        assert "--ignore" not in _run("init", "t.csv", "--force").stdout


def test_the_only_column_is_kept() -> None:
    """Where there is no other feature it stays, with the warning."""
    Path("t.csv").write_text("y,card\n" + "".join(f"k{n % 2},c{n}\n" for n in range(200)))
    result = _run("init", "t.csv")
    assert "--ignore" not in result.stdout
    assert "nearly every row has a value of its own in column 'card'" in result.stderr


@pytest.mark.parametrize(
    ("row", "likeliest"),
    [("0.5,tcp,0,ham", 4), ("spam,0.5,1,2.5", 1), ("0.5,2.5,3.5,0", 4)],
)
def test_the_likeliest_label(row: str, likeliest: int) -> None:
    """Where the label is not known, names in the last or the first column are, before numbers elsewhere."""
    other = re.sub("ham|spam|tcp", "other", row).replace("5", "6")
    other = other[:-1] + "1" if other.endswith(",0") else other
    Path("t.csv").write_text(f"{row}\n{other}\n" * 30)
    assert f"say --label {likeliest}, or whichever it is" in _run("init", "t.csv").stderr


def test_bad_lines() -> None:
    """They are counted, the first is told, and the command passes them by."""
    Path("t.csv").write_text("y,a\nk,1\nm\nm,2\nk," + "x" * 300 + "\n" + "m,2\n" * 20)
    result = _run("init", "t.csv", "--nominal", "a")
    said = " ".join(result.stdout.split())
    assert "lines that are no events: 2, the first is line 3: expected 2 cells, got 1" in said
    assert " --skip-bad\n" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y,a\nk,1\nk,2\n", "expected 2 to 1,000 classes, got 1; name another column with --label"),
        ("y,a\n1,1\nb,2\n", "expected labels that are all numbers or all names, got both"),
        ("y,a\n1.5,1\nb,2\n", "expected labels that are all numbers or all names, got both"),
        (
            "y,a\nk,1\nm\n",
            "expected lines that are nearly all events, got 1 others beside 1; the first is line 3: ",
        ),
        ("y,a\n", "expected events to look at, got none"),
    ],
)
def test_files_for_no_model(text: str, message: str) -> None:
    """Where no model could learn, that is said, and no settings are written."""
    Path("t.csv").write_text(text)
    result = _run("init", "t.csv")
    assert result.exit_code == 1
    assert message in result.stderr
    assert not Path("worker.yaml").exists()


def test_rows_of_json() -> None:
    """Lines that are rows of a table are said to be, though a column is called like a field; no empty tables."""
    Path("t.jsonl").write_text('{"id": 1, "x": 0.5, "page": "a", "clicked": 1}\n' * 3)
    result = _run("init", "t.jsonl")
    assert result.stderr.endswith("got 'page'; where names are columns of yours say --format jsonrows\n")
    assert result.stdout == ""


def test_labelled_text_as_a_table() -> None:
    """Where the label's column is not known, a file that may be labelled text is said to be."""
    Path("t.tsv").write_text("ham\tsee you\nspam\twin a prize\n" * 3)
    assert "--format text where lines are a label, a tab and a text; without" in _run("init", "t.tsv").stderr


def test_labels_that_are_all_different() -> None:
    """A wrong column as the label is told of."""
    Path("t.csv").write_text("order,y\n" + "".join(f"o{n},{n % 2}\n" for n in range(200)))
    wrong = _run("init", "t.csv", "--label", "order")
    assert "nearly every row has a label of its own in column 'order'" in wrong.stderr
    assert "label of its own" not in _run("init", "t.csv", "--label", "y").stderr


def _priced(label: Callable[[int], object]) -> str:
    return "price,size,kind\n" + "".join(f"{label(n)},{n % 17},{'ab'[n % 2]}\n" for n in range(600))


@pytest.mark.parametrize(
    "label",
    [
        pytest.param(lambda n: n % 17 * 10 + n % 2 + 0.25, id="fractions"),
        pytest.param(lambda n: n % 17 * 1_000 + n % 13, id="many whole numbers"),
        pytest.param(lambda n: n % 17 if n else 0.5, id="one fraction"),
    ],
)
def test_numbers_are_predicted(label: Callable[[int], object]) -> None:
    """Labels with a fraction, or very many whole ones, get a regression tree, which learns from the file."""
    Path("flats.csv").write_text(_priced(label))
    result = _run("init", "flats.csv", "--label", "price")
    assert result.exit_code == 0, result.output
    assert "nothing to learn" not in result.stderr
    assert re.search(r"number\s+[\d.,]+ to [\d.,]+, \d+ different", result.stdout)
    model = yaml.safe_load(Path("worker.yaml").read_text())["models"]["tree"]
    assert model["kind"] == "regression-tree"
    assert "classes" not in model
    assert (model["predict"], model["interval"]) == ("adaptive", 0.9)
    commands = re.findall(r"^  anabranch (.*)$", result.stdout, re.MULTILINE)
    published, ran, shown = (_run(*shlex.split(command)) for command in commands)
    assert (published.exit_code, ran.exit_code, shown.exit_code) == (0, 0, 0)
    assert "accuracy" not in ran.stdout
    rows = {line.split()[1]: line.split()[-3:] for line in ran.stdout.splitlines() if line.startswith(" tree")}
    mae = {by: float(rows[by][0].replace(",", "")) for by in ("model", "mean")}
    assert mae["model"] < 0.8 * mae["mean"]
    assert float(rows["model"][2]) > 0.3
    assert "size > " in shown.stdout
    assert "±" in shown.stdout


def test_few_whole_numbers_are_classes() -> None:
    """Up to a hundred different whole numbers are told apart."""
    Path("flats.csv").write_text(_priced(lambda n: n % 100))
    assert _run("init", "flats.csv", "--label", "price").exit_code == 0
    assert yaml.safe_load(Path("worker.yaml").read_text())["models"]["tree"]["kind"] == "tree"


def test_numbers_that_are_deleted() -> None:
    """A regression tree cannot forget, which the settings say."""
    lines = [{"op": op, "id": n, "x": {"a": n}, "y": n + 0.5} for n in range(30) for op in ("insert", "delete")]
    Path("e.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert _run("init", "e.jsonl").exit_code == 0
    text = Path("worker.yaml").read_text()
    assert "\n# A regression tree cannot forget: deletes" in text
    assert yaml.safe_load(text)["models"]["tree"]["on_delete"] == "ignore"


def test_a_deleting_file_gets_a_tree_that_forgets() -> None:
    """A file with deletes gets a dynamic tree."""
    Path("e.jsonl").write_text(_jsonl())
    assert _run("init", "e.jsonl").exit_code == 0
    assert yaml.safe_load(Path("worker.yaml").read_text())["models"]["tree"]["kind"] == "dynamic-tree"


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (_weather(), "--label outlook", {"of": {"kind": "tree", "predict": "adaptive"}}),
        (_svmlight(), "--format svmlight", {"of": {"kind": "tree", "predict": "naive_bayes"}}),
        (_jsonl(), "--format jsonl", {}),
    ],
)
def test_a_forest_where_it_is_asked_for(data: str, options: str, expected: dict[str, Any]) -> None:
    """Of trees that grow, where events are deleted of trees that forget; else the settings are those of a tree."""
    Path("data.csv").write_text(data)
    models = []
    for flag, name in (([], "tree"), (["--forest"], "forest")):
        assert _run("init", "data.csv", "--force", *shlex.split(options), *flag).exit_code == 0
        models.append(yaml.safe_load(Path("worker.yaml").read_text())["models"][name])
    shared = {name: told for name, told in models[0].items() if name not in ("kind", "policy", "predict")}
    assert models[1] == {"kind": "forest", **expected, **shared}


def test_no_forest_predicts_numbers() -> None:
    """It is told what to do without one."""
    Path("flats.csv").write_text(_priced(lambda n: n + 0.5))
    result = _run("init", "flats.csv", "--label", "price", "--forest")
    assert result.exit_code == 1
    assert "expected labels that are classes for a forest, got numbers; leave out --forest" in result.stderr


def test_settings_that_are_there() -> None:
    """They are kept, unless --force says otherwise; a cluster is named instead of a log."""
    Path("t.csv").write_text("y,a\nk,1\nm,2\n")
    Path("worker.yaml").write_text("mine")
    result = _run("init", "t.csv")
    assert (result.exit_code, Path("worker.yaml").read_text()) == (1, "mine")
    assert "expected no file there yet, got one; say --output with another name, or --force" in result.stderr
    kafka = _run("init", "t.csv", "--force", "--bootstrap", "127.0.0.1:9092", "--topic", "sms")
    assert "  anabranch topics create worker.yaml --inputs 1 --yes\n" in kafka.stdout
    assert yaml.safe_load(Path("worker.yaml").read_text())["log"] == {"kafka": {"bootstrap": "127.0.0.1:9092"}}


# --- topics


def _published(*options: str) -> None:
    """Publish a table with keys to a log."""
    rows = _weather().splitlines()
    rows = [f"{row},{'key' if not at else 'north' if at % 3 else 'south'}" for at, row in enumerate(rows)]
    Path("weather.csv").write_text("\n".join(rows) + "\n")
    said = _run(
        "publish", "weather.csv", "--log", "events.db", "--topic", "weather", "--label", "outlook", *options
    )
    assert said.exit_code == 0, said.output


@pytest.mark.parametrize("options", [(), ("--batch", "50"), ("--partitions", "3")])
def test_a_topic(options: tuple[str, ...]) -> None:
    """What its events hold is shown; the settings and the commands go through as they are, nothing is refused."""
    _published(*options)
    result = _run("init", "events.db")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert any(re.fullmatch(r"temperature numeric -9\.\d+ to 29\.\d+", line) for line in lines)
    assert any(re.fullmatch(r"windy binary \d\d\.\d%", line) for line in lines)
    assert "2 keys: north 66.8%, south 33.2%" in lines
    assert any(re.fullmatch(r"dry \d+ \d\d\.\d%", line) for line in lines)
    model = yaml.safe_load(Path("worker.yaml").read_text())["models"]["tree"]
    assert (model["classes"], model["features"]) == (["dry", "wet"], "names")
    commands = re.findall(r"^  anabranch (.*)$", result.stdout, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["run", "show"]
    run, show = (_run(*shlex.split(command)) for command in commands)
    row = next(line.split() for line in run.stdout.splitlines() if line.startswith(" tree"))
    assert row[4] == "0"  # refused
    assert show.exit_code == 0
    assert "compare the settings with the events" not in run.output


def test_a_topic_leads_to_the_settings_of_its_file() -> None:
    """Events of a file give the classes, attributes and policy that the file itself does."""
    _published()
    assert _run("init", "weather.csv", "--label", "outlook", "-o", "file.yaml").exit_code == 0
    assert _run("init", "events.db", "-o", "topic.yaml").exit_code == 0
    assert Path("topic.yaml").read_text() == Path("file.yaml").read_text()


def test_some_events_of_a_long_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than some are looked at, from its begin to its end, and that is said."""
    Path("t.csv").write_text("y,a\n" + "".join(f"class{n // 100},{n}\n" for n in range(1_000)))
    assert _run("publish", "t.csv", "--log", "events.db", "--topic", "t").exit_code == 0
    monkeypatch.setattr("worker.commands.init_topic.SAMPLE", 100)
    result = _run("init", "events.db")
    assert "\n100 events" in result.stdout
    assert "t: looking at 20 stretches of its 1,000 records, some 100; classes and features" in result.stderr
    model = yaml.safe_load(Path("worker.yaml").read_text())["models"]["tree"]
    assert model["classes"] == [f"class{n}" for n in range(10)]
    assert re.search(r" a +numeric +[2-5] to 999 ", result.stdout)


def test_large_records() -> None:
    """Of a record with very many events some are looked at, all over it."""
    Path("t.csv").write_text("y,a\n" + "".join(f"class{n // 500},{n + 1}\n" for n in range(2_000)))
    assert _run("publish", "t.csv", "--log", "events.db", "--topic", "t", "--batch", "2000").exit_code == 0
    result = _run("init", "events.db")
    assert "t: 1,500 events of large records passed over; classes and features" in result.stderr
    assert "\n500 events" in result.stdout
    assert all(f"class{n}      125   25.0%" in result.stdout for n in range(4))


def test_which_topic() -> None:
    """Where several hold events one has to be named; results are none. A topic that is not there is told."""
    _published()
    assert (
        _run("publish", "weather.csv", "--log", "events.db", "--topic", "other", "--label", "windy").exit_code == 0
    )
    Path("s.yaml").write_text(
        "log: {embedded: events.db}\n"
        "models: {m: {kind: split, input: weather, classes: [dry, wet], features: names}}\n"
    )
    _run("run", "s.yaml", "--until-end")
    message = "expected --topic NAME, the topic to look at, one of other, weather; name one"
    assert message in " ".join(_run("init", "events.db").stderr.split())
    assert _run("init", "s.yaml", "--topic", "other").exit_code == 0
    assert "expected a topic of the log" in _run("init", "events.db", "--topic", "none", "--force").stderr
    assert "expected FILE, LOG or SETTINGS to look at" in _run("init", "-o", "x.yaml").stderr
    said = _run("init", "events.db", "--label", "y", "-o", "x.yaml").stderr
    assert "expected no options about a file's format or columns with a topic" in said


def test_settings_in_another_folder() -> None:
    """They name the log as it is seen from there."""
    _published()
    Path("sub").mkdir()
    assert _run("init", "events.db", "-o", "sub/w.yaml").exit_code == 0
    assert yaml.safe_load(Path("sub/w.yaml").read_text())["log"] == {"embedded": "../events.db"}
    assert _run("run", "sub/w.yaml", "--until-end").exit_code == 0


def test_a_topic_that_holds_something_else() -> None:
    """Records that are no events are counted and the first is told, with its place; no settings are written."""
    with EmbeddedLog(Path("events.db")) as log:
        log.create_topic("t", 1)
        log.append([OutRecord("t", 0, b"k", b'{"temperature": 1}', (), 1)] * 3)
    result = _run("init", "events.db")
    assert result.exit_code == 1
    assert (
        "expected records that are nearly all events, got 3 others beside 0; the first is t/0 offset 0: exp"
        in (result.stderr)
    )
    assert not Path("worker.yaml").exists()


RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=3),
        st.none()
        | st.binary(max_size=8)
        | st.builds(
            lambda x, y: encode_event(x, y),
            st.dictionaries(st.text(min_size=1, max_size=3), st.floats(-9, 9)),
            st.sampled_from([0, 1.5, "a"]),
        ),
    )
)


@given(RECORDS)
def test_whatever_a_topic_holds(records: list[tuple[bytes | None, bytes | None]]) -> None:
    """Every record is counted as events or as none, and can be shown."""
    source = TopicPartition("t", 0)
    found = topic_contents((Record(source, at, 1, *record, ()) for at, record in enumerate(records)), 10**6, 10**9)
    assert found.events + found.bad == len(records)
    assert found.ops.total() == found.events
    console = Console(file=io.StringIO(), width=80)
    for shown in (features_table(found), labels_table(found), keys_words(found)):
        console.print(shown)


def test_shares() -> None:
    """Few are not said to be none, nor nearly all to be all."""
    assert [share_of(count, 10_000) for count in (0, 1, 5, 5_000, 9_999, 10_000)] == [
        *("0.0%", "<0.1%", "0.1%", "50.0%", ">99.9%", "100.0%")
    ]


def test_where_the_page_is() -> None:
    """After the commands to go on with it is told how to have the page, of a file and of a topic."""
    _published()
    for result in (
        _run("init", "weather.csv", "--label", "windy", "-o", "f.yaml"),
        _run("init", "events.db", "-o", "t.yaml"),
    ):
        last = result.stdout.splitlines()[-1]
        assert last == "Without --until-end the worker goes on, and draws its trees at http://127.0.0.1:9464/"
