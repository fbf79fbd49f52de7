import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from worker.bench import tables
from worker.bench.datasets import SETS, load
from worker.bench.tables import PAPER_001, Table, csr, first, generated, paper_001
from worker.sources.generators import BINARY, GENERATORS, NUMBERS, NUMERIC, generate


def _dense(table: Table) -> npt.NDArray[np.float64]:
    """Return the examples as rows, one entry after the other."""
    dense = np.zeros((len(table.label), len(table.kinds)))
    for row, (start, stop) in enumerate(zip(table.pointer[:-1], table.pointer[1:], strict=True)):
        for entry in range(start, stop):
            dense[row, table.feature[entry]] = table.value[entry]
    return dense


def _check(table: Table) -> None:
    """Assert what every table promises."""
    assert [column.dtype for column in (table.pointer, table.feature, table.value, table.label)] == [
        np.dtype(kind) for kind in ("int64", "uint32", "float64", "int64")
    ]
    assert table.pointer[0] == 0
    assert table.pointer[-1] == len(table.feature) == len(table.value)
    assert len(table.pointer) == len(table.label) + 1
    assert (table.value != 0).all()
    assert table.kinds.dtype == np.int64
    assert len(table.names) in (0, len(table.kinds))
    assert set(table.label.tolist()) <= set(range(len(table.classes)))
    for start, stop in zip(table.pointer[:-1], table.pointer[1:], strict=True):
        assert (np.diff(table.feature[start:stop].astype(np.int64)) > 0).all()
    for feature, value in zip(table.feature.tolist(), table.value.tolist(), strict=True):
        if table.kinds[feature] != NUMERIC:
            assert value in range(int(table.kinds[feature]))


# --- generated


OF_CLASSES = [name for name in GENERATORS if generate(name).schema.classes != NUMBERS]


@pytest.mark.parametrize("text", [*OF_CLASSES, "led+led:drift=3@50/20"])
def test_generated(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table holds the examples of the generator, whatever chunks it is made in."""
    monkeypatch.setattr(tables, "_CHUNK", 32)
    table = generated(text, 100)
    stream = generate(text)
    value, label = stream.take(100)
    assert _dense(table).tolist() == value.tolist()
    assert table.label.tolist() == label.tolist()
    assert [*zip(table.names, table.kinds.tolist(), strict=True)] == list(stream.schema.attributes)
    assert table.classes == tuple(str(label) for label in range(stream.schema.classes))
    _check(table)


def test_tables_have_classes() -> None:
    """A stream whose labels are numbers is none."""
    with pytest.raises(ValueError, match="expected a stream of classes, got 'planes'"):
        generated("planes", 10)


def test_generated_none() -> None:
    """A table may be empty."""
    table = generated("sea", 0)
    assert (table.pointer.tolist(), len(table.feature), len(table.label)) == ([0], 0, 0)
    _check(table)


@pytest.mark.parametrize("n", [0, 1, 30, 100, 200])
def test_first(n: int) -> None:
    """The first examples of a table are the table of the first examples, as far as there are any."""
    table, expected = first(generated("agr", 100), n), generated("agr", min(n, 100))
    assert [np.asarray(column).tolist() for column in table] == [
        np.asarray(column).tolist() for column in expected
    ]
    _check(table)


def test_csr() -> None:
    """Zeros of either sign are left out, rows may be empty."""
    pointer, feature, value = csr(np.array([[0.0, -2.5, 0.0], [-0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))
    assert pointer.tolist() == [0, 1, 1, 3]
    assert feature.tolist() == [1, 0, 2]
    assert value.tolist() == [-2.5, 1.0, 3.0]


def test_paper_001() -> None:
    """The streams of paper 001 have its sizes, and their drifts shrink with them."""
    table_1 = {
        "SEA_g": (5, 3, 2),
        "LED_g": (1, 24, 10),
        "AGR_g": (10, 9, 2),
        "RBF": (2, 200, 15),
        "RTG": (10, 400, 25),
    }
    assert list(PAPER_001) == list(table_1)
    for name, (millions, features, classes) in table_1.items():
        assert PAPER_001[name].examples == millions * 1_000_000
        schema = generate(paper_001(name)).schema
        assert (len(schema.attributes), schema.classes) == (features, classes)
    assert paper_001("LED_g") == (
        "led:drift=1+led:drift=3@250000/50000+led:drift=5@500000/50000+led:drift=7@750000/50000"
    )
    assert paper_001("AGR_g").endswith("+agr:function=4,balance=true@7500000/500")
    assert paper_001("LED_g", 1_000).endswith("+led:drift=7@750/50")
    assert paper_001("SEA_g", 10) == "sea:balance=true"


# --- recorded


def _save(path: Path, **arrays: Any) -> None:
    np.savez(path, **arrays)


def test_covertype(tmp_path: Path) -> None:
    """Covertype has ten numeric features and 44 binary ones; its classes 1 to 7 are labels 0 to 6."""
    rows = np.zeros((8, 54), np.int16)
    rows[:, 0] = range(2_000, 2_008)
    rows[:, 5] = -3
    rows[range(8), range(10, 18)] = 1
    names = np.array([f"column {number}" for number in range(54)])
    _save(tmp_path / "covtype.npz", X=rows, y=np.array([5, 1, 2, 3, 4, 6, 7, 5], np.uint8), feature_names=names)
    table = load("covertype", tmp_path)
    assert _dense(table).tolist() == rows.tolist()
    assert table.label.tolist() == [4, 0, 1, 2, 3, 5, 6, 4]
    assert table.classes == ("1", "2", "3", "4", "5", "6", "7")
    assert table.kinds.tolist() == [NUMERIC] * 10 + [BINARY] * 44
    assert table.names == tuple(names)
    _check(table)


def test_mnist(tmp_path: Path) -> None:
    """Every pixel of MNIST is a numeric feature."""
    rows = np.zeros((2, 784), np.uint8)
    rows[1, 783] = 255
    _save(tmp_path / "mnist10k.npz", X=rows, y=np.array([7, 3], np.uint8), order=np.arange(2))
    table = load("mnist", tmp_path)
    assert (table.pointer.tolist(), table.feature.tolist(), table.value.tolist()) == ([0, 0, 1], [783], [255.0])
    assert (table.label.tolist(), table.classes) == ([1, 0], ("3", "7"))
    assert (table.kinds == NUMERIC).all()
    _check(table)


def test_electricity(tmp_path: Path) -> None:
    """The day of the week is nominal, and UP is label 1."""
    _electricity(tmp_path)
    table = load("electricity", tmp_path)
    assert _dense(table).tolist() == [
        [0.0, 1, 0.0, 0.056443, 0.439155, 0.003467, 0.422915, 0.414912],
        [0.5, 0, 0.25, 0.05, 0.4, 0.003, 0.4, 0.4],
        [1.0, 6, 1.0, 0.0, 0.4, 0.003, 0.4, 0.4],
    ]
    assert (table.label.tolist(), table.classes) == ([1, 0, 1], ("DOWN", "UP"))
    assert table.kinds.tolist() == [NUMERIC, 7, *[NUMERIC] * 6]
    assert table.names[:2] == ("date", "day")
    _check(table)


def _electricity(folder: Path) -> None:
    text = (
        "date,day,period,nswprice,nswdemand,vicprice,vicdemand,transfer,class\n"
        "0.0,2,0.0,0.056443,0.439155,0.003467,0.422915,0.414912,UP\n"
        "0.5,1,0.25,0.05,0.4,0.003,0.4,0.4,DOWN\n"
        "1.0,7,1.0,0.0,0.4,0.003,0.4,0.4,UP\n"
    )
    (folder / "electricity.csv.gz").write_bytes(gzip.compress(text.encode()))


def test_kdd99(tmp_path: Path) -> None:
    """Names of protocols, services and flags become codes in the order of the names, over the whole file."""
    _kdd99(tmp_path)
    table = load("kdd99", tmp_path)
    dense = _dense(table)
    assert dense[:, :7].tolist() == [
        [0, 1, 1, 1, 181, 5450, 0],
        [5, 2, 0, 1, 0, 0, 1],
        [9, 0, 0, 0, 1, 0, 0],
    ]
    assert dense[:, 40].tolist() == [0.25, 0.0, 1.0]
    assert (table.label.tolist(), table.classes) == ([0, 1, 1], ("normal.", "smurf."))
    kinds = dict(zip(table.names, table.kinds.tolist(), strict=True))
    assert {name: kind for name, kind in kinds.items() if kind != NUMERIC} == {
        "protocol_type": 3,
        "service": 2,
        "flag": 2,
        "land": BINARY,
        "logged_in": BINARY,
        "is_host_login": BINARY,
        "is_guest_login": BINARY,
    }
    assert len(kinds) == 41
    _check(table)
    cut = load("kdd99", tmp_path, 1)
    assert _dense(cut).tolist() == dense[:1].tolist()
    assert (cut.classes, cut.kinds.tolist()) == (table.classes, table.kinds.tolist())


def test_poker(tmp_path: Path) -> None:
    """Suits are categories from 0, ranks are numbers, and a class is a hand."""
    header = ",".join(f"{what}{card}" for card in range(1, 6) for what in "SR")
    text = f"{header},ORD\n1,10,1,11,1,13,1,12,1,1,9\n4,2,3,13,2,10,2,12,2,1,0\n"
    (tmp_path / "poker_train25k.csv.gz").write_bytes(gzip.compress(text.encode()))
    table = load("poker", tmp_path)
    assert _dense(table).tolist() == [[0, 10, 0, 11, 0, 13, 0, 12, 0, 1], [3, 2, 2, 13, 1, 10, 1, 12, 1, 1]]
    assert table.kinds.tolist() == [4, NUMERIC] * 5
    assert (table.label.tolist(), table.classes) == ([1, 0], ("0", "9"))
    _check(table)


@pytest.mark.parametrize(
    ("name", "header", "rows", "values", "classes"),
    [
        ("noaa", [*(f"feat_{at}" for at in range(1, 9)), "target"], [[*range(8), 1], [*range(8), 0]], 8, "01"),
        ("insects", [*(f"X{at}" for at in range(49)), "target"], [[*range(49), 5], [*range(49), 2]], 49, "25"),
        ("wing_beats", ["wbf", "species", "temperature", "context"], [[5.5, 4, 20, 1], [4.5, 1, 21, 2]], 2, "14"),
    ],
)
def test_numbers(
    tmp_path: Path, name: str, header: list[str], rows: list[list[float]], values: int, classes: str
) -> None:
    """Features are numbers, a class is a whole number, and columns that are neither are left out."""
    text = "".join(",".join(row) + "\n" for row in (header, *([str(each) for each in row] for row in rows)))
    (tmp_path / SETS[name].file).write_bytes(gzip.compress(text.encode()))
    table = load(name, tmp_path)
    wanted = [[5.5, 20], [4.5, 21]] if name == "wing_beats" else [list(range(values))] * 2
    assert _dense(table).tolist() == wanted
    assert (table.kinds.tolist(), table.classes) == ([NUMERIC] * values, tuple(classes))
    assert table.label.tolist() == [1, 0]
    _check(table)


def _kdd99(folder: Path) -> None:
    middle = ",".join(["0"] * 33)
    text = (
        f"0,tcp,http,SF,181,5450,0,{middle},0.25,normal.\n"
        f"5,udp,ecr_i,SF,0,0,1,{middle},0.00,smurf.\n"
        f"9,icmp,ecr_i,REJ,1,0,0,{middle},1.00,smurf.\n"
    )
    (folder / "kddcup99_10pct.csv.gz").write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize("name", ["news20_unigram", "spam_katakis", "farm_ads"])
def test_binary(tmp_path: Path, name: str) -> None:
    """Sparse sets have features that are present, and two classes."""
    _save(
        tmp_path / SETS[name].file,
        indptr=np.array([0, 2, 2, 3], np.int32),
        indices=np.array([0, 8, 3], np.int32),
        labels=np.array([1, 0, 1], np.uint8),
        shape=np.array([3, 10]),
    )
    table = load(name, tmp_path)
    assert table.name == name
    assert _dense(table).nonzero()[1].tolist() == [0, 8, 3]
    assert (table.label.tolist(), table.classes) == ([1, 0, 1], ("0", "1"))
    assert table.kinds.tolist() == [BINARY] * 10
    _check(table)
    assert load(name, tmp_path, 2).pointer.tolist() == [0, 2, 2]


def _write(name: str, data: bytes) -> Callable[[Path], int]:
    return lambda folder: (folder / name).write_bytes(data)


@pytest.mark.parametrize(
    ("name", "prepare", "message"),
    [
        ("cancer", lambda _: None, "expected one of covertype, kdd99, poker, noaa, insects, wing_beats, mnist"),
        ("mnist", lambda _: None, "expected the file mnist10k.npz in .*, found none; put it there"),
        ("mnist", _write("mnist10k.npz", b"text"), "expected .*mnist10k.npz to hold mnist, got something else"),
        ("mnist", _write("mnist10k.npz", b"PK\x03\x04"), "to hold mnist, got something else"),
        ("farm_ads", _write("farm_ads.npz", b""), "to hold farm_ads, got something else"),
        ("mnist", lambda folder: _save(folder / "mnist10k.npz", X=np.zeros((1, 1))), "got something else .*'y"),
        (
            "electricity",
            _write("electricity.csv.gz", gzip.compress(b"a\n1\n")),
            "to hold electricity, got something",
        ),
        ("kdd99", _write("kddcup99_10pct.csv.gz", b"plain"), "to hold kdd99, got something else"),
        ("kdd99", _write("kddcup99_10pct.csv.gz", gzip.compress(b"0,tcp\n" * 99)[:-9]), "got something else"),
    ],
)
def test_bad_sets(tmp_path: Path, name: str, prepare: Callable[[Path], object], message: str) -> None:
    """What is missing or damaged is told with its file."""
    prepare(tmp_path)
    with pytest.raises(ValueError, match=message):
        load(name, tmp_path)
