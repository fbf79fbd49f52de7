import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.contents import contents
from tests.support.published import NOW, events_of, insert, published, records_of, run
from worker.codec import Bounds, decode_batch
from worker.codec.event import encode_batch, encode_event
from worker.codec.events import DELETE, PREDICT
from worker.codec.reference import Event, decode
from worker.log.port import OutRecord
from worker.publishing import publisher
from worker.publishing.publisher import Form, make_records
from worker.sources import FORMATS, BadLine, Columns, Entry, Example, Lines, SourceError, format_of

PLAIN = Form("t", 1, "k")


# --- formats


def test_text(tmp_path: Path) -> None:
    """A line of text gives its words, lower-cased, each once, as they come."""
    text = "spam\tWin a FREE prize: free!\r\n\nham\tSee you at 8, Zoë\n"
    assert published(tmp_path, "sms.txt", text) == [
        insert(("win", "a", "free", "prize"), "spam"),
        insert(("see", "you", "at", "8", "zoë"), "ham"),
    ]


def test_csv(tmp_path: Path) -> None:
    """A table gives present columns by name, categories as column=value, and ids, labels and times."""
    text = (
        "id,when,clicked,mobile,country,note\n"
        'a,2024-05-01T12:00:00Z,1,1,nz,"x, ""y"""\n'
        "007,2024-05-01 14:00:00+02:00,0,0,,\n"
        "7,1714564800001,0,,1,0\n"
    )
    events = published(tmp_path, "clicks.csv", text, "--label", "clicked", "--id", "id", "--time", "when")
    noon = 1_714_564_800_000
    assert events == [
        insert(("mobile", "country=nz", 'note=x, "y"'), 1, id="a", time=noon),
        insert((), 0, id="007", time=noon),
        insert(("country=1", "note=0"), 0, id=7, time=noon + 1),
    ]


def test_csv_categorical_and_chosen_features(tmp_path: Path) -> None:
    """Only the columns named are features, and 0 and 1 of a categorical one are values."""
    text = "y,a,b,c\n1,1,0,1\n0,0,1,1\n"
    options = ("--label", "y", "--features", "a,b", "--categorical", "b")
    assert published(tmp_path, "t.csv", text, *options) == [
        insert(("a", "b=0"), 1),
        insert(("b=1",), 0),
    ]


def test_csv_text_beside_features(tmp_path: Path) -> None:
    """Words and columns are features together; one that is both is there once."""
    text = "y,body,free\nspam,free prize,1\n"
    options = ("--label", "y", "--text", "body", "--features", "free")
    assert published(tmp_path, "t.csv", text, *options) == [insert(("free", "prize"), "spam")]


def test_tsv_without_header(tmp_path: Path) -> None:
    """Without a header columns go by their numbers, and quotes in a tsv are plain characters."""
    text = 'ham\t"hello\nspam\t"win" it\n'
    options = ("--no-header", "--label", "1", "--text", "2", "--number-ids")
    assert published(tmp_path, "t.tsv", text, *options) == [
        insert(("hello",), "ham", id=0),
        insert(("win", "it"), "spam", id=1),
    ]


def test_svmlight(tmp_path: Path) -> None:
    """Features of value 1 are listed, others have values; comments, blank lines and qid are passed over."""
    text = "# made by hand\n+1 3:1 17:1 # first\n\n-1 qid:4 5:2.5 2:1\n1.0\n0.5 4294967295:1.0\n"
    assert published(tmp_path, "t.svm", text) == [
        insert((3, 17), 1),
        insert((5, 2), -1, values=(2.5, 1.0)),
        insert((), 1),
        insert((4294967295,), 0.5),
    ]
    result = run(tmp_path / "t.svm", "--log", tmp_path / "events.db", "--topic", "u")
    assert f"{tmp_path / 't.svm'}:4: qid is ignored: a tree knows no queries" in result.stderr


def test_jsonl(tmp_path: Path) -> None:
    """JSON lines go through as they are: every op, every form of x, keys, weights, times."""
    text = "\n".join(
        [
            '{"x": ["free"], "y": "spam", "id": "a", "w": 2, "ts": 5}',
            '{"op": "delete", "id": "a", "x": null}',
            '{"op": "predict", "x": {"price": 3.5}}',
            '{"x": {"i": [1, 2], "v": [1, 0.5]}, "y": 0.25}',
        ]
    )
    assert published(tmp_path, "t.jsonl", text) == [
        insert(("free",), "spam", id="a", weight=2 << 20, time=5),
        Event(DELETE, NOW, id="a"),
        Event(PREDICT, NOW, features=("price",), values=(3.5,)),
        insert((1, 2), 0.25, values=(1.0, 0.5)),
    ]


@pytest.mark.parametrize("line", ["win a prize", "\twin a prize"])
def test_texts_without_labels(tmp_path: Path, line: str) -> None:
    """A text that is predicted needs no label; one that is deleted may go by its label."""
    text = f"{line}\nham\tsee you\n"
    predicts = published(tmp_path, "t.txt", text, "--as", "predict")
    assert [event.features for event in predicts] == [("win", "a", "prize"), ("see", "you")]
    (delete,) = published(tmp_path, "t.txt", "ham\tsee you\n", "--as", "delete")
    assert (delete.features, delete.label) == (("see", "you"), "ham")


@pytest.mark.parametrize("option", ["--map-label", "--labels"])
def test_labels_are_renamed(tmp_path: Path, option: str) -> None:
    """Labels are renamed by what they mean, so that 1, +1 and 1.0 are one."""
    text = "-1 1:1\n+1 1:1\n1.0 1:1\n3 1:1\n"
    events = published(tmp_path, "t.svm", text, option, "-1=no,+1=yes")
    assert [event.label for event in events] == ["no", "yes", "yes", 3]


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.csv", "csv"), ("a.TSV.gz", "tsv"), ("a.libsvm", "svmlight"), ("a.ndjson", "jsonl"), ("a.gz", None)],
)
def test_formats_are_guessed(name: str, format: str | None) -> None:
    """The suffix before .gz tells the format."""
    assert format_of(name) == format


# --- forms


@pytest.mark.parametrize("options", [("--packed",), ("--batch", "1"), ("--batch", "3"), ("--batch", "100")])
def test_forms_mean_the_same(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Packed and columnar records hold the events of the plain ones."""
    text = (
        '{"x": [1, 2], "y": 1, "id": 5}\n{"x": {"i": [3], "v": [0.5]}, "y": 0, "id": "b"}\n'
        '{"x": [], "y": "c", "id": 6, "ts": 77}\n{"op": "delete", "id": 5}\n{"op": "delete", "id": "b"}\n'
        '{"op": "predict", "x": [9]}\n{"x": [7], "y": 2.5, "w": 0.5}\n{"x": [7], "y": 1.5, "w": 1.5}\n'
    )
    assert published(tmp_path, "t.jsonl", text, *options) == published(tmp_path, "t.jsonl", text)


def test_columns_of_names(tmp_path: Path) -> None:
    """Columnar records take names too, also beside events without any."""
    text = "a\tx y\nb\t...\na\ty z\n"
    assert published(tmp_path, "t.txt", text, "--batch", "10") == published(tmp_path, "t.txt", text)


def test_batches_keep_the_order_of_a_key(tmp_path: Path) -> None:
    """Events of a key stay in order where they share records, whatever comes between."""
    lines = [{"key": "ab"[n % 2], "x": [n], "y": 1, "id": n} for n in range(20)]
    lines[7] = {"key": "b", "op": "delete", "id": 1}
    text = "".join(json.dumps(line) + "\n" for line in lines)
    events = published(tmp_path, "t.jsonl", text, "--batch", "4")
    (records,) = records_of(tmp_path / "events.db")
    assert list(records.keys) == [b"a"] * 3 + [b"b"] * 4
    assert [event.id for event in events] == [
        *range(0, 20, 2),
        *(n if n != 7 else 1 for n in range(1, 20, 2)),
    ]


def test_batches_are_bounded() -> None:
    """However many events a record may have, it stays below what brokers take."""
    entries: list[Entry] = [Example(None, {"x": list(range(100)), "y": 1}, line) for line in range(1, 9_001)]
    chunk = make_records(entries, Form("t", 1, "k", batch=65_536), NOW)
    assert chunk.events == 9_000
    assert [len(record.value or b"") < 1 << 20 for record in chunk.records] == [True] * len(chunk.records)
    assert 4 <= len(chunk.records) <= 5


FIELD_NAMES = ["i", "v", "ptr", "n", "x", "y", "op", "id", "ids", "w", "ts", "key"]


@pytest.mark.parametrize("options", [(), ("--batch", "10")])
@pytest.mark.parametrize("word", FIELD_NAMES)
def test_features_may_be_called_like_fields(tmp_path: Path, word: str, options: tuple[str, ...]) -> None:
    """A feature may go by any name that a form of events uses itself, whatever stands beside it."""
    xs: list[Any] = [{word: 2, "am": 1}, {word: 2}, {"i": 2, "v": 3}, {"i": 2}, [word], [word, "am"], {"am": 3}]
    lines = "".join(json.dumps({"x": x, "y": "a"}) + "\n" for x in xs)
    expected = []
    for x in xs:
        values = tuple(map(float, x.values())) if isinstance(x, dict) else (1.0,) * len(x)
        expected.append(insert(tuple(x), "a", values=values))
    assert published(tmp_path, "a.jsonl", lines, *options) == expected


@pytest.mark.parametrize("name", ["i", "v", "ptr", "n"])
def test_columns_may_be_called_like_fields(tmp_path: Path, name: str) -> None:
    """A column of a table too."""
    text = f"label,{name}\n1,1\n0,red\n"
    for options in ((), ("--batch", "10")):
        events = published(tmp_path, "a.csv", text, "--label", "label", *options)
        assert events == [insert((f"{name}=1",), 1), insert((f"{name}=red",), 0)]


@pytest.mark.parametrize("word", FIELD_NAMES)
def test_names_are_not_packed(word: str) -> None:
    """Names that look like packed features are refused where ids are to be packed, not written otherwise."""
    for x in ({word: 2, "am": 1}, {word: 2}, [word]):
        with pytest.raises(ValueError, match="expected feature ids"):
            encode_event(x, 1, packed=True)


FIELD_CONTENT = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELD_NAMES) | st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    events=st.lists(
        st.dictionaries(st.sampled_from(["op", "id", "x", "y", "w", "ts"]), FIELD_CONTENT, max_size=4), max_size=5
    ),
    form=st.sampled_from([PLAIN, Form("t", 1, "k", packed=True), Form("t", 1, "k", batch=3)]),
)
def test_any_json_is_published_as_it_reads_or_refused(events: list[dict[str, Any]], form: Form) -> None:
    """Whatever JSON the fields of an event hold, it is refused with a message or means the same in each form."""
    data = "".join(json.dumps({"y": 1, "x": []} | event) + "\n" for event in events).encode()
    lines = Lines("a", io.BytesIO(data))
    entries = list(FORMATS["jsonl"].read(lines, Columns()))
    made, plain = make_records(entries, form, NOW), make_records(entries, PLAIN, NOW)
    assert all(bad.why for bad in made.bad)
    if form.packed:  # names are among what is refused there
        assert {bad.line for bad in plain.bad} <= {bad.line for bad in made.bad}
        return
    assert made.bad == plain.bad
    assert _meaning(made.records) == _meaning(plain.records)


def _meaning(records: list[OutRecord]) -> list[Event]:
    return [each for record in records for each in decode(record.value, NOW, Bounds()) if isinstance(each, Event)]


def test_encode_event_golden() -> None:
    """The bytes of the forms are pinned."""
    assert encode_event([3, 17], 1).hex() == "82a178920311a17901"
    assert encode_event([3], "spam", op="insert", packed=True).hex() == "82a17881a169c40403000000a179a47370616d"
    assert encode_event(op="delete", id=7).hex() == "82a26f70a664656c657465a2696407"
    assert encode_batch(
        [[3], []], [1, 0], ids=[4, None]
    ).hex() == "85a16e02a3707472c40c000000000100000001000000a169c40403000000a179c4020100a3696473920 4c0".replace(
        " ", ""
    )


def test_encode_takes_arrays_and_mappings() -> None:
    """Features may be numpy arrays or mappings from ids or names to numbers."""
    expected = decode(encode_event({"i": [3, 4], "v": [0.5, 2.0]}, 1), NOW, Bounds())
    assert decode(encode_event({3: 0.5, 4: 2.0}, 1), NOW, Bounds()) == expected
    assert decode(encode_event({3: 0.5, 4: 2.0}, 1, packed=True), NOW, Bounds()) == expected
    arrays = {"i": np.array([3, 4]), "v": np.array([0.5, 2.0])}
    assert decode(encode_event(arrays, 1, packed=True), NOW, Bounds()) == expected
    assert decode(encode_batch([arrays], [1], ts=NOW), NOW, Bounds()) == expected
    assert encode_event(np.array([1, 2]), 0) == encode_event([1, 2], 0)
    assert decode(encode_event({"price": 3.5}, 1), NOW, Bounds()) == [insert(("price",), 1, values=(3.5,))]


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda: encode_event(["a"], 1, packed=True), "expected feature ids from 0 to 4294967295"),
        (lambda: encode_event([-1], 1, packed=True), "expected feature ids from 0 to 4294967295"),
        (lambda: encode_event([1], 1 << 70), "expected ints of 64 bits"),
        (lambda: encode_event(["\ud800"], 1), "text that UTF-8 can hold"),
        (lambda: encode_batch([[1]], [1, 0]), r"expected columns of one length, got \[1, 2\]"),
        (lambda: encode_batch([[1], ["a"]], [1, 0]), "expected feature ids"),
    ],
)
def test_encode_refuses(encode: Callable[[], bytes], message: str) -> None:
    """What the bytes cannot express is refused, never written as something else."""
    with pytest.raises(ValueError, match=message):
        encode()


# --- properties

NAME = st.text("abc,\"' \n=é\t1", min_size=1, max_size=5)
CELL = st.one_of(st.sampled_from(["", "0", "1"]), NAME)


@given(st.lists(st.tuples(st.sampled_from(["ham", "spam"]), CELL, CELL), min_size=1, max_size=20))
def test_csv_round_trip(rows: list[tuple[str, str, str]]) -> None:
    """Whatever a table's cells hold comes back from the records."""

    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"'

    text = "y,p,q\n" + "".join(",".join(map(quoted, row)) + "\n" for row in rows)
    expected = []
    for label, p, q in rows:
        p, q = p.strip(), q.strip()
        names = [*([f"p={p}"] if p else []), *([f"q={q}"] if q else [])]
        expected.append(insert(tuple(names), label))
    assert _decoded(text.encode(), "csv", Columns(label="y", nominal=("p", "q"))) == expected


VALUE = st.one_of(st.just(1.0), st.floats(allow_nan=False, allow_infinity=False))
ROW = st.dictionaries(st.integers(0, (1 << 32) - 1), VALUE, max_size=5)


@given(
    st.lists(st.tuples(st.integers(-(1 << 53), 1 << 53), ROW), min_size=1, max_size=20),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
)
def test_svmlight_round_trip(rows: list[tuple[int, dict[int, float]]], batch: int | None, packed: bool) -> None:
    """Whatever an SVMlight file says comes back from the records, in every form."""
    text = "".join(f"{label} {' '.join(f'{i}:{v!r}' for i, v in x.items())}\n" for label, x in rows)
    expected = [
        insert(tuple(i for i, v in x.items() if v), label, values=tuple(v for v in x.values() if v))
        for label, x in rows
    ]
    form = Form("t", 1, "k", packed=packed and batch is None, batch=batch)
    assert _decoded(text.encode(), "svmlight", Columns(), form) == expected


def _read(data: bytes, format: str, columns: Columns, folder: Path) -> list[Entry]:
    path = folder / "file"
    path.write_bytes(data)
    with path.open("rb") as stream:
        return list(FORMATS[format].read(Lines("file", stream), columns))


def _decoded(data: bytes, format: str, columns: Columns, form: Form = PLAIN) -> list[Event]:
    entries = list(FORMATS[format].read(Lines("file", io.BytesIO(data)), columns))
    chunk = make_records(entries, form, NOW)
    assert chunk.bad == []
    assert chunk.events == len(entries)
    values = [record.value for record in chunk.records]
    stamps = np.array([record.timestamp for record in chunk.records], np.int64)
    events, faults = decode_batch(values, stamps, Bounds(), [record.key for record in chunk.records])
    assert not faults
    return [event for _, _, event in contents(events)]


# --- bad lines


@pytest.mark.parametrize(
    ("format", "line", "why"),
    [
        ("text", b"no tab", "expected a label, a tab and a text, got 'no tab'"),
        ("text", b"ham\t\xff", "expected UTF-8 text, got the byte 0xff"),
        ("svmlight", b"1 3", "expected id:value with an id from 0 to 4294967295, got '3'"),
        (
            "svmlight",
            b"1 4294967296:1",
            "expected id:value with an id from 0 to 4294967295, got '4294967296:1'",
        ),
        ("svmlight", b"1 " + b"0" * 5_000 + b":1", "expected id:value with an id from 0 to 4294967295"),
        ("svmlight", b"1 3:nan", "expected a number, got 'nan'"),
        ("svmlight", b"3:1 4:1", "expected a label first, got '3:1'"),
        ("svmlight", b"1 3:1 3:1", "expected each feature once, 3 comes again; send it once"),
        (
            "jsonl",
            b"{",
            "expected a JSON object, got '{' (Expecting property name enclosed in double quotes)",
        ),
        ("jsonl", b"[1]", "expected a JSON object, got '[1]'"),
        ("jsonl", b'{"x": [1], "z": 1}', "expected the fields key, op, id, x, y, w, ts, got 'z'"),
        ("jsonl", b'{"x": [1], "x": [2]}', "expected each name once, got 'x' again"),
        ("jsonl", b'{"x": [1], "y": NaN}', "expected finite numbers, got NaN"),
        ("jsonl", b'{"key": 3, "x": [1], "y": 1}', "expected key to be a string, got '3'"),
        ("jsonl", b'{"x": [1]}', "expected a label in y, found none; send y, or an id with a delete"),
        (
            "jsonl",
            b'{"op": "upsert", "x": []}',
            "expected op insert, delete or predict, found 'upsert'; send",
        ),
        (
            "jsonl",
            b'{"x": 5, "y": 1}',
            "expected x to be a list, a map of numbers, or a map of i and v, found 5",
        ),
        ("jsonl", b'{"x": "ab", "y": 1}', "expected x to be a list, a map of numbers, or a map of i and v"),
        ("jsonl", b'{"x": [1], "y": 1180591620717411303424}', "expected an event that a record can hold"),
        ("jsonl", b'{"x": ["\\ud800"], "y": 1}', "expected an event that a record can hold"),
        ("jsonl", b'{"x": ' + b"[" * 100_000, "expected "),
        ("jsonl", b'{"x": [1], "y": ' + b"1" * 5_000 + b"}", "expected an event in JSON, got numbers"),
        (
            "jsonl",
            b'{"x": [1, true], "y": 1}',
            "expected features to be ids from 0 to 4294967295, found True",
        ),
        ("jsonl", b'{"x": {"i": null}, "y": 1}', "expected feature values to be finite numbers, found nil"),
        ("jsonl", b'{"x": {"i": [1], "v": 5}, "y": 1}', "expected v to be a list or bin of float32"),
        ("jsonl", b'{"x": {"i": [1], "v": ["5"]}, "y": 1}', "expected feature values to be finite numbers"),
        ("jsonl", b'{"x": {"i": [1], "v": [1, 2]}, "y": 1}', "expected as many values as features, found 2"),
        ("jsonl", b'{"x": [1], "y": true}', "expected y to be a 64-bit signed int"),
        ("jsonl", b'{"x": [1], "y": 1, "ts": 1e99}', "expected ts to be an int"),
    ],
)
def test_bad_lines(tmp_path: Path, format: str, line: bytes, why: str) -> None:
    """A line that is no event is told with what was expected and what came, and the next one is read."""
    good = {"text": b"ham\tok", "svmlight": b"1 1:1", "jsonl": b'{"x": [1], "y": 1}'}[format]
    entries = _read(good + b"\n" + line + b"\n" + good + b"\n", format, Columns(), tmp_path)
    for form in (PLAIN, Form("t", 1, "k", batch=10)):
        chunk = make_records(entries, form, NOW)
        assert chunk.events == 2
        assert [bad.line for bad in chunk.bad] == [2]
        assert chunk.bad[0].why.startswith(why)
    if format != "text":
        chunk = make_records(entries, Form("t", 1, "k", packed=True), NOW)
        assert (chunk.events, [bad.line for bad in chunk.bad]) == (2, [2])


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["i", "v", "a"]), inner),
    max_leaves=6,
)
EVENT = st.dictionaries(st.sampled_from(["key", "op", "id", "x", "y", "w", "ts"]), JSON)
ANY_LINE = st.one_of(
    EVENT.map(lambda event: json.dumps(event).encode()),
    st.text('0123456789:+-.eE#\t" ,{}[]axyqid\x00', max_size=20).map(str.encode),
    st.binary(max_size=20),
)


@given(
    st.lists(ANY_LINE, max_size=5),
    st.sampled_from(sorted(FORMATS)),
    st.sampled_from(["plain", "packed", "batch"]),
)
def test_no_line_is_too_bad(lines: list[bytes], format: str, form: str) -> None:
    """Whatever a file holds, every line becomes an event or a bad line, and what is written can be read."""
    columns = Columns(label="1", time="2", header=False) if format in ("csv", "tsv") else Columns()
    stream = io.BytesIO(b"a\t5\n" * (format == "tsv") + b"a,5\n" * (format == "csv") + b"\n".join(lines))
    try:
        entries = list(FORMATS[format].read(Lines("file", stream), columns))
    except SourceError:  # bytes that begin like a gzip file
        return
    chunk = make_records(entries, Form("t", 1, "k", form == "packed", 2 if form == "batch" else None), NOW)
    assert chunk.events + len(chunk.bad) == len(entries)
    stamps = np.array([record.timestamp for record in chunk.records], np.int64)
    keys = [record.key for record in chunk.records]
    events, faults = decode_batch([record.value for record in chunk.records], stamps, Bounds(), keys)
    assert (len(events.op), faults) == (chunk.events, [])


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1,2", "expected 3 cells, got 2"),
        (
            ",2,",
            "expected a label, got an empty cell; fill it in, or publish such rows apart with --as predict",
        ),
        ("1,yesterday,", "expected ms since the epoch or an ISO 8601 time, got 'yesterday'"),
        (
            "1,5,\xff",
            "expected UTF-8 text, got the byte 0xff; where the file was written otherwise say how, as in "
            "--encoding latin-1",
        ),
        ('1,5,"a"b', "expected cells as csv quotes them, got others (',' expected after '\"')"),
    ],
)
def test_bad_rows(tmp_path: Path, row: str, why: str) -> None:
    """A row that is no example is told with its line, and the next one is read."""
    data = f'y,when,a\n1,5,"two\nlines"\n{row}\n0,6,1\n'.encode("latin-1")
    entries = _read(data, "csv", Columns(label="y", time="when"), tmp_path)
    assert entries[1] == BadLine(4, why)
    assert [entry.line for entry in entries] == [2, 4, 5]
    assert isinstance(entries[2], Example)


def test_stops_at_a_bad_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a bad line it stops with its place; the chunks before are written, nothing of its own is."""
    monkeypatch.setattr(publisher, "CHUNK_EVENTS", 2)
    path, log = tmp_path / "t.txt", tmp_path / "events.db"
    path.write_text("a\t1\na\t2\na\t3\noops\na\t5\n")
    result = run(path, "--log", log, "--topic", "t")
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {path}:4: expected a label, a tab and a text, got 'oops'\n"
        "nothing of its chunk was written; correct the line, or go on past such lines with --skip-bad\n"
        "2 events before that went to t\n"
    )
    assert [event.features for event in events_of(log)] == [("1",), ("2",)]


def test_skips_bad_lines(tmp_path: Path) -> None:
    """With --skip-bad the first bad lines are told, all are counted, and ids stay those of the rows."""
    path, log = tmp_path / "t.txt", tmp_path / "events.db"
    path.write_text("a\t1\n" + "oops\n" * 7 + "a\t9\n")
    result = run(path, "--log", log, "--topic", "t", "--skip-bad", "--number-ids")
    assert result.exit_code == 0
    assert result.stderr.count("expected a label, a tab") == 5
    assert result.stderr.endswith(f"skipped 7 lines of {path}\n")
    assert [event.id for event in events_of(log)] == [0, 8]


# --- input


def test_gzip_and_standard_input(tmp_path: Path) -> None:
    """Gzip is recognised by its bytes, - is standard input, and a byte order mark is no part of a name."""
    data = "\ufeffy,a\n1,1\n".encode()
    log = tmp_path / "events.db"
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(data))
    runs = [
        run(path, "--log", log, "--topic", "a", "--label", "y", "--timestamp", NOW),
        *(
            run(
                "-",
                "--format",
                "csv",
                "--log",
                log,
                "--topic",
                topic,
                "--label",
                "y",
                "--timestamp",
                NOW,
                stdin=stdin,
            )
            for topic, stdin in (("b", data), ("c", gzip.compress(data)))
        ),
    ]
    assert [result.exit_code for result in runs] == [0, 0, 0]
    assert [events_of(log, topic) for topic in "abc"] == [[insert(("a",), 1)]] * 3


def test_damaged_gzip(tmp_path: Path) -> None:
    """A cut gzip file is told as such."""
    path = tmp_path / "t.txt.gz"
    path.write_bytes(gzip.compress(b"ham\thello\n")[:-6])
    result = run(path, "--log", tmp_path / "events.db", "--topic", "t")
    assert result.exit_code == 1
    assert "expected whole gzip data, got damaged data" in result.stderr


def test_an_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line beyond all measure ends the reading before it fills the memory."""
    monkeypatch.setattr("worker.sources.lines.LONGEST", 10)
    with pytest.raises(SourceError, match="file:1: expected lines of at most 10 bytes"):
        _read(b"x" * 100, "text", Columns(), tmp_path)


def test_a_missing_column(tmp_path: Path) -> None:
    """A column that the table does not have ends the reading and names those it has."""
    with pytest.raises(SourceError, match="file:1: expected a column 'z', got 'a', 'b'"):
        _read(b"a,b\n1,2\n", "csv", Columns(label="z"), tmp_path)
