"""Tables as people have them: what each column becomes, and what a person reads where one is odd."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from worker.commands.publish import publish
from worker.sources import FORMATS, BadLine, Columns, Example, Lines, SourceError
from worker.sources.words import words


class _Read:
    """What a reader makes of a file."""

    def __init__(
        self, text: str | bytes, columns: Columns | None = None, *, format: str = "csv", encoding: str = "utf-8"
    ) -> None:
        data = text.encode() if isinstance(text, str) else text
        lines = Lines("file", io.BytesIO(data), encoding)
        entries = list(FORMATS[format].read(lines, columns or Columns()))
        self.fields = [each.fields for each in entries if isinstance(each, Example)]
        self.xs = [each.get("x") for each in self.fields]
        self.bad = [(each.line, each.why) for each in entries if isinstance(each, BadLine)]
        self.notes = "\n".join(lines.notes.values())


def _run(folder: Path, name: str, data: str | bytes, *options: str) -> Result:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    arguments = [str(folder / name), "--log", str(folder / "events.db"), "--topic", "t", *options]
    return CliRunner().invoke(publish, arguments)


WEATHER = """id,at,temperature,wind,country,storm,report,label
1,2024-05-01,21.5,3,nz,true,the wind came out of the south,dry
2,2024-05-02,-3,0,au,false,a cloud went by far away,wet
3,2024-05-03,,12,nz,true,nobody knows what comes of it,dry
"""


def test_each_column_is_what_its_cells_are() -> None:
    """Numbers are numbers, truth is presence, text is words, and a line says what was made of each column."""
    read = _Read(WEATHER, Columns(time="at"))
    assert read.bad == []
    assert read.xs[0] == {
        **dict.fromkeys(["the", "wind", "came", "out", "of", "south"], 1.0),
        "temperature": 21.5,
        "wind": 3.0,
        "country=nz": 1.0,
        "storm": 1.0,
    }
    assert read.xs[1] == {
        **dict.fromkeys(["a", "cloud", "went", "by", "far", "away"], 1.0),
        "temperature": -3.0,
        "country=au": 1.0,
    }
    assert [fields["id"] for fields in read.fields] == [1, 2, 3]
    assert [fields["y"] for fields in read.fields] == ["dry", "wet", "dry"]
    assert read.fields[0]["ts"] == 1_714_521_600_000
    assert (
        "columns: label 'label', id 'id', time 'at'; numeric 'temperature', 'wind'; nominal 'country'; "
        "binary 'storm'; text 'report'"
    ) in read.notes
    assert "file:4: a value is missing in the numeric column 'temperature': it counts as 0" in read.notes
    assert "'wind' is a word of the text and a column: they are one feature" in read.notes


def test_what_is_said_of_a_column_holds() -> None:
    """A kind that was said is taken, whatever the cells look like; an ignored column is nothing."""
    columns = Columns("y", nominal=("a",), numeric=("b",), binary=("c",), ignored=("d",))
    read = _Read("y,a,b,c,d\n1,7,1,1,5\n0,8,0,0,6\n", columns)
    assert read.xs == [["a=7", "b", "c"], ["a=8"]]
    assert "left out 'd'" in read.notes


def test_words_of_several_texts_stay_apart() -> None:
    """Where several columns are text, a word says which it is from."""
    read = _Read("y,a,b\n1,x y,y\n", Columns("y", text=("a", "b")))
    assert read.xs == [["a:x", "a:y", "b:y"]]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.5", "2", "-3e4", "NA", "?"], "numeric"),
        (["0", "1", "", "NA"], "binary"),
        (["yes", "No", "yes"], "binary"),
        (["t", "f", "m"], "nominal"),
        (["007", "010", "123"], "nominal"),  # codes: their noughts are part of them
        (["9007199254740993", "9007199254740994", "1"], "nominal"),  # a float64 would make one of both
        (["red", "NA", "red"], "nominal"),  # Namibia is a country
        (["", "", ""], "binary"),
        (["a b c d", "e f g h", "i j k l"], "text"),
        (["a b c d", "a b c d", "a b c d"], "nominal"),
        (["2024-05-01", "2024-05-02T10:00:00Z", "2024-05-03 01:02:03.5"], "left out"),
    ],
)
def test_kinds(cells: list[str], kind: str) -> None:
    """What the cells of a column make of it."""
    read = _Read("y,a\n" + "".join(f"k,{cell}\n" for cell in cells))
    assert f"{kind} 'a'" in read.notes
    assert len(read.fields) == len(cells)


def test_what_comes_after_the_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that the first rows do not lead to expect is told, with options that take it; numbers pass."""
    monkeypatch.setattr("worker.sources.table.SAMPLE_ROWS", 3)
    text = "y,a,b\n1,1,5\n0,0,6\n1,3,n/k\n0,x,7\n"
    read = _Read(text)
    assert read.bad[0][0] == 4
    assert read.bad[0][1].startswith(
        "expected a number in the column 'b', got 'n/k'; correct it, or say --missing n/k"
    )
    assert read.bad[1] == (
        5,
        "expected 1 or 0, true or false, yes or no in the column 'a', got 'x'; say --numeric a, --nominal a, or "
        "--missing x where that is no value",
    )
    assert _Read(text, Columns(missing=("n/k", "x"))).xs == [
        {"a": 1.0, "b": 5.0},
        {"b": 6.0},
        {"a": 3.0},
        {"b": 7.0},
    ]
    assert _Read(text, Columns(nominal=("a", "b"))).bad == []


# --- headers


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "3"),
        ("setosa,x\nsetosa,y\n", "1"),
        ("2024-01-01,a\n2024-01-02,b\n", "2"),
    ],
)
def test_no_header_is_noticed(text: str, label: str) -> None:
    """A first line that holds values is a row like others, and that is said."""
    read = _Read(text, Columns(label))
    assert len(read.fields) == 2
    assert "file:1: the first line holds values, so columns go by their numbers from 1" in read.notes


def test_a_header_of_numbers() -> None:
    """A first line that holds the name of a column that was named is a header, and --header says so too."""
    text = "country,2019,2020\nnz,5,6\n"
    assert (
        _Read(text, Columns("country")).xs
        == _Read(text, Columns("country", header=True)).xs
        == [{"2019": 5.0, "2020": 6.0}]
    )


def test_an_index_without_a_name() -> None:
    """The index that pandas writes beside the data is left out, and told."""
    read = _Read(",a,y\n0,5,x\n1,6,z\n2,5,x\n")
    assert read.xs == [{"a": 5.0}, {"a": 6.0}, {"a": 5.0}]
    assert "column 1 has no name and counts the rows: it is left out" in read.notes


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"y,a,a\n1,2,3\n", "file:1: expected each column name once, got 'a' for the columns 2 and 3; rename one"),
        ("y,été\n1,2\n".encode("latin-1"), "file:1: expected UTF-8 text, got the byte 0xe9; where the file"),
        (
            b'y,"a\n1,2\n3,4\n',
            "file:1: expected the quote that opens a cell here to be closed, got no other",
        ),
        (b"", "file: expected a table, got no row; check the file"),
        (
            b"a,b\n1,2\n",
            "file:1: expected to be told the label's column, as none is called label",
        ),
        (
            b'y,a\n1,"1,5"\n0,"2,5"\n',
            "expected numbers with a decimal point, got '1,5' in the column 'a'",
        ),
        (
            b"y,a\n" + b"1,5\n" * 9 + b"1,low\n",
            "as 9 of its first 10 values are, got 'low' too; say --missing",
        ),
        (b"y,ts,a\n1,1714564800,5\n", None),
    ],
)
def test_what_stops_at_once(data: bytes, message: str | None) -> None:
    """What can be told from the first rows ends the reading with a message that names it."""
    if message is None:
        assert "numeric 'ts'" in _Read(data).notes  # nobody said that it is a time
        message, columns = "expected ms since the epoch in the column 'ts', got 1714564800", Columns(time="ts")
    else:
        columns = Columns()
    with pytest.raises(SourceError, match=re.escape(message)):
        _Read(data, columns)


def test_the_advice_works(tmp_path: Path) -> None:
    """What a message says to add to the command makes it go through, as it is written."""
    files = {
        "latin": "y,été\n1,2\n".encode("latin-1"),
        "comma": b'y,"net, a"\n1,"1,5"\n0,"2,5"\n',
        "slip": b"y,a\n" + b"1,5\n" * 9 + b'1,"low, or so"\n',
        "seconds": b"y,at,a\n1,1714564800,5\n",
        "label": b"a,b\n1,2\n",
        "text": b"y,a\n" + b"1,5\n" * 9 + b"1,it's\n",
        "times": "y,a\n1,2\n".encode("latin-1") + b"1,\xff\n",
    }
    options = {"seconds": ["--time", "at"]}
    for name, data in files.items():
        result = _run(tmp_path, f"{name}.csv", data, *options.get(name, []))
        assert result.exit_code == 1, name
        (tmp_path / "events.db").unlink(missing_ok=True)
        advice = re.findall(r"""--[a-z-]+ (?:'(?:[^']|'"'"')*'|[^ ;,\n]+)""", result.stderr)
        assert advice, result.stderr
        for each in advice:
            again = _run(tmp_path, f"{name}.csv", data, *options.get(name, []), *shlex.split(each))
            numeric = "--numeric" in each  # has such lines refused, as it says
            assert (again.exit_code, "--skip-bad" in again.stderr) == ((1, True) if numeric else (0, False)), (
                each,
                again.output,
            )


# --- cells


def test_a_quote_that_nobody_closes_costs_one_row() -> None:
    """Its line is told, all others are read: also where a later quote seems to close it."""
    open_to_the_end = 'y,a\nk,"x\nk,y\nk,z\n'
    read = _Read(open_to_the_end)
    assert read.xs == [["a=y"], ["a=z"]]
    assert read.bad == [
        (2, "expected the quote that opens a cell here to be closed, got no other one in 2 more lines")
    ]
    closed_by_another = 'y,a\nk,"x\nk,y\nk,"z"\nk,w\n'
    read = _Read(closed_by_another)
    assert read.xs == [["a=y"], ["a=z"], ["a=w"]]
    assert [line for line, _ in read.bad] == [2]
    too_wide = 'y,a\nk,"x\nk,y\nk,"\nk,w\n'
    read = _Read(too_wide)
    assert [fields["y"] for fields in read.fields] == ["k", "k"]
    assert read.xs == [["a=x\nk,y\nk,"], ["a=w"]]  # a cell of three lines, for all that anybody can tell


def test_a_quote_that_nobody_closes_in_a_long_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of the rest is held in memory for it."""
    monkeypatch.setattr("worker.sources.rows._LONGEST_ROW", 100)
    read = _Read('y,a\nk,"x\n' + "k,y\n" * 1_000)
    assert (len(read.fields), [line for line, _ in read.bad]) == (1_000, [2])


def test_a_cell_of_a_megabyte() -> None:
    """A long text is read as any other."""
    read = _Read('y,body\nk,"' + "word " * 200_000 + 'end"\n', Columns(text=("body",)))
    assert read.xs == [["word", "end"]]


def test_integers_of_64_bits_keep_their_digits() -> None:
    """Ids and labels are exact; beyond 64 bits they are names."""
    rows = [(1 << 63) - 1, -(1 << 63), 1 << 63]
    read = _Read("id,y,a\n" + "".join(f"{n},{n},1\n" for n in rows))
    assert [fields["id"] for fields in read.fields] == [rows[0], rows[1], str(rows[2])]
    assert [fields["y"] for fields in read.fields] == [rows[0], rows[1], str(rows[2])]


def test_empty_ids_and_keys_are_none() -> None:
    """An empty cell names nothing, in a table and in JSON lines."""
    read = _Read("id,key,y,a\n,,1,1\n7,k,0,1\n", Columns(id="id", key="key"))
    assert ["id" in fields for fields in read.fields] == [False, True]
    (fields,) = _Read('{"id": "", "key": "", "x": [1], "y": 1}\n', format="jsonl").fields
    assert fields == {"x": [1], "y": 1}


def test_decimal_commas_and_semicolons() -> None:
    """Tables as spreadsheets write them where commas begin a fraction."""
    read = _Read("y;a;b\nk;1,5;2\nk;-0,25;3\n", Columns(decimal="comma"))
    assert read.xs == [{"a": 1.5, "b": 2.0}, {"a": -0.25, "b": 3.0}]
    assert "cells are taken to end with ';'" in read.notes
    assert (
        _Read("y;a\nk;1.234\n", Columns(decimal="comma", numeric=("a",)))
        .bad[0][1]
        .startswith("expected a number in the column 'a', got '1.234'")
    )


def test_encodings() -> None:
    """Latin-1 where it is said, UTF-16 by its first bytes, as spreadsheets write it."""
    text = "y\tname\nk\tZoë\n"
    for data, encoding in ((text.encode("latin-1"), "latin-1"), (text.encode("utf-16"), "utf-8")):
        assert _Read(data, format="tsv", encoding=encoding).xs == [["name=Zoë"]]
    with pytest.raises(SourceError, match="expected text in utf-16, got other bytes"):
        _Read(text.encode("utf-16")[:-1], format="tsv")


def test_ops() -> None:
    """A column says what is to be done; a delete needs its id alone, a predict no label."""
    read = _Read("id,op,y,a\n1,insert,k,1\n2,predict,,1\n3,predict,k,1\n1,delete,k,1\n,,k,1\n,upsert,k,1\n")
    assert read.fields == [
        {"id": 1, "x": ["a"], "y": "k"},
        {"op": "predict", "id": 2, "x": ["a"]},
        {"op": "predict", "id": 3, "x": ["a"]},
        {"op": "delete", "id": 1},
        {"x": ["a"], "y": "k"},
    ]
    assert read.bad == [(7, "expected insert, delete, predict or label in the column 'op', got 'upsert'")]
    assert "file:4: labels of predicts are left out" in read.notes


@pytest.mark.parametrize(("name", "text"), [("a.csv", "y,a\n,1\nk,0\n"), ("a.svm", "k 1:1\nk 2:1\n")])
def test_files_of_questions(tmp_path: Path, name: str, text: str) -> None:
    """With --as predict every row is a question, and needs no label."""
    result = _run(tmp_path, name, text, "--as", "predict", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.count('"op": "predict"') == 2
    assert '"y"' not in result.stdout


@pytest.mark.parametrize(("amounts", "is_told"), [(["1,234", "12,500"], True), (["1,234", "1,5"], False)])
def test_commas_between_thousands(tmp_path: Path, amounts: list[str], is_told: bool) -> None:
    """Where every comma may stand between thousands, that is said beside decimal commas."""
    path = tmp_path / "t.csv"
    path.write_text("y,amount\n" + "".join(f'k,"{amount}"\n' for amount in amounts))
    said = CliRunner().invoke(publish, [str(path), "--dry-run"]).stderr
    assert "say --decimal comma where commas begin a fraction, " in said
    assert ("take them out of the file where they stand between thousands" in said) == is_told


def test_seconds() -> None:
    """A time in seconds is read as such where that is said."""
    read = _Read("y,ts,a\n1,1714564800.5,2\n", Columns(time="ts", time_unit="s"))
    assert read.fields[0]["ts"] == 1_714_564_800_500


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't PANIC_now", ["don", "t", "panic", "now"]),
        ("Привет, МИР", ["привет", "мир"]),
        ("Zoe\u0308 Zoë", ["zoë"]),
        ("Straße STRASSE", ["strasse"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("我爱你 ok", ["我", "爱", "你", "ok"]),
        ("a\u00adb ⚠️ £5", ["ab", "⚠", "5"]),
        ("love it😀😀👍🏽 👩\u200d🚀", ["love", "it", "😀", "👍", "👩", "🚀"]),
        ("", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    """Text of any language has words: folded, composed, each once."""
    assert words(text) == found


def test_dates_of_other_countries() -> None:
    """Dates that are not ISO 8601 are told: as categories they are of little use."""
    for cell in ("21.03.2024", "3/21/2024 10:15 PM"):
        notes = _Read(f"y,a\n1,{cell}\n").notes
        assert "column 'a' holds dates, but not as ISO 8601 writes them: it is nominal; --ignore a leaves" in notes


def test_a_column_that_is_meant() -> None:
    """A name in other letters is told with the one that is there."""
    with pytest.raises(SourceError, match="expected a column 'churned', got 'Churned', 'a'; name Churned"):
        _Read("Churned,a\n1,2\n", Columns("churned"))


# --- other formats


def test_json_rows() -> None:
    """Objects with names of one's own are rows of a table, objects inside them columns with a dot."""
    text = (
        '{"user": "a", "seen": {"page": "home", "ms": 2.5}, "ok": true, "label": "x"}\n'
        '\n{"seen": {"ms": 7}, "ok": null, "label": 3, "user": "b"}\n'
    )
    read = _Read(text, Columns(key="user"), format="jsonrows")
    assert read.fields == [
        {"x": {"seen.page=home": 1.0, "seen.ms": 2.5, "ok": 1.0}, "y": "x"},
        {"x": {"seen.ms": 7.0}, "y": 3},
    ]
    plain = _Read(text, format="jsonl")
    assert plain.bad[0][1].endswith("got 'user'; where names are columns of yours say --format jsonrows")
    odd = _Read('{"y": 1, "a": 2}\n{"y": 1, "a": [3]}\n{"y": 1\n5\n', format="jsonrows")
    assert [why.partition(",")[0] for _, why in odd.bad] == ["expected text"] + ["expected a JSON object"] * 2
    assert _Read('{"y": 1, "a": [3]}\n', Columns(ignored=("a",)), format="jsonrows").bad == []


def test_json_rows_with_another_name_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that the first lines do not have is told."""
    monkeypatch.setattr("worker.sources.jsonrows.SAMPLE_ROWS", 1)
    read = _Read('{"y": 1, "a": 2}\n{"y": 1, "b": 3}\n', format="jsonrows")
    assert read.bad == [(2, "expected the columns of the first 1 lines, got 'b' too; leave it out")]


def test_parquet_is_read_as_its_csv() -> None:
    """A Parquet copy of a table gives the events of the table; nested columns are told."""
    table = pa.table(
        {
            "id": [1, 2, 3],
            "at": pa.array([1_714_521_600_000_000_001, None, 1_714_694_400_000_000_000], pa.timestamp("ns")),
            "temperature": [21.5, -3.0, None],
            "wind": pa.array([3, 0, 12], pa.int8()),
            "country": pa.array(["nz", "au", "nz"]).dictionary_encode(),
            "storm": [True, False, None],
            "label": ["dry", "wet", "dry"],
        }
    )
    written = io.BytesIO()
    pq.write_table(table, written)
    text = (
        "id,at,temperature,wind,country,storm,label\n1,2024-05-01,21.5,3,nz,true,dry\n"
        "2,,-3.0,0,au,false,wet\n3,2024-05-03,,12,nz,,dry\n"
    )
    read = _Read(written.getvalue(), Columns(time="at"), format="parquet")
    assert read.fields == _Read(text, Columns(time="at")).fields
    nested = io.BytesIO()
    pq.write_table(pa.table({"y": [1], "a": [[1]]}), nested)
    with pytest.raises(SourceError, match=r"got list<.*> in 'a'; say --ignore a"):
        _Read(nested.getvalue(), format="parquet")
    assert _Read(nested.getvalue(), Columns(ignored=("a",)), format="parquet").fields == [{"x": [], "y": 1}]
    with pytest.raises(SourceError, match="expected a whole Parquet file"):
        _Read(written.getvalue()[:-9], format="parquet")


def _npz(**arrays: Any) -> bytes:
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def test_npz() -> None:
    """Sparse and dense arrays give the same events."""
    sparse = _npz(indptr=[0, 2, 2, 3], indices=[1, 3, 0], counts=[1, 2, 0.5], labels=["a", "b", "a"], shape=[3, 4])
    dense = _npz(X=[[0, 1, 0, 2], [0, 0, 0, 0], [0.5, 0, 0, np.nan]], y=["a", "b", "a"])
    read = _Read(sparse, format="npz")
    assert read.fields == [
        {"x": {"i": [1, 3], "v": [1.0, 2.0]}, "y": "a"},
        {"x": [], "y": "b"},
        {"x": {"i": [0], "v": [0.5]}, "y": "a"},
    ]
    of_dense = _Read(dense, format="npz")
    assert of_dense.fields == read.fields
    assert "file:3: a value is missing (NaN): it counts as 0" in of_dense.notes
    assert [each["y"] for each in _Read(_npz(X=[[1], [2]], y=[0.0, 1.5]), format="npz").fields] == [0, 1.5]
    named = _Read(_npz(X=[[1]], kind=["a"]), Columns("kind"), format="npz")
    assert named.fields == [{"x": [0], "y": "a"}]
    assert _Read(_npz(X=[[np.inf]], y=[1]), format="npz").bad == [
        (1, "expected finite values, got an infinite one")
    ]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": [[1]]}, "expected labels, or y (another by --label NAME), got X int64[1, 1]; save them so"),
        ({"y": [1]}, "expected indptr and indices, or X of two dimensions with numbers, got y int64[1]"),
        ({"X": [[1]], "y": [1, 2]}, "expected 1 labels, numbers or text, in one dimension"),
        ({"indptr": [0, 2], "indices": [1], "labels": [1]}, "expected indptr that rises from 0 to the length"),
        ({"indptr": [0, 1], "indices": [-1], "labels": [1]}, "expected indices from 0 to 4294967295"),
    ],
)
def test_npz_that_does_not_fit(arrays: dict[str, Any], message: str) -> None:
    """Arrays that are none of the two forms are told, with those that came."""
    with pytest.raises(SourceError, match=re.escape(message)):
        _Read(_npz(**arrays), format="npz")
    with pytest.raises(SourceError, match="expected arrays that numpy"):
        _Read(b"x" * 100, format="npz")
