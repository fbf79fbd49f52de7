"""Recorded sets with values or several classes, as tables; the folder that holds the files is the caller's."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from worker.bench import streams
from worker.bench.tables import Table, csr, first
from worker.sources.generators import BINARY, NUMERIC


def load(name: str, folder: Path, limit: int | None = None) -> Table:
    """Return a recorded set.

    Parameters
    ----------
    name : str
        A key of `SETS`.
    folder : Path
        Where its file is.
    limit : int, optional
        Take only so many examples. Codes of nominal values and labels are those of the whole set.

    Raises
    ------
    ValueError
        Where the set is unknown, or its file is missing or not as expected.
    """
    if name not in SETS:
        raise ValueError(f"expected one of {', '.join(SETS)}, got {name!r}; name one of these")
    file, read = SETS[name]
    path = folder / file
    if not path.is_file():
        raise ValueError(f"expected the file {file} in {folder}, found none; put it there or name its folder")
    try:
        table = read(path)._replace(name=name)
    except (BadZipFile, EOFError, IndexError, KeyError, OSError, ValueError) as error:
        raise ValueError(f"expected {path} to hold {name}, got something else ({error}); get it again") from error
    return table if limit is None else first(table, limit)


def _binary(path: Path) -> Table:
    """Read `.npz` with indptr, indices, labels and shape: features that are present, two classes."""
    stream = streams.load(str(path))
    return Table(
        name=stream.name,
        pointer=stream.pointer,
        feature=stream.feature,
        value=np.ones(len(stream.feature)),
        label=stream.label.astype(np.int64),
        kinds=np.full(stream.features, BINARY, np.int64),
        names=(),
        classes=("0", "1"),
    )


def _counts(path: Path) -> Table:
    """Read `.npz` with indptr, indices, counts, labels and shape: how often words occur, any number of classes."""
    pointer, feature, count, label, shape = _arrays(path, "indptr", "indices", "counts", "labels", "shape")
    classes, labels = np.unique(label, return_inverse=True)
    return Table(
        name="",
        pointer=pointer.astype(np.int64),
        feature=feature.astype(np.uint32),
        value=count.astype(np.float64),
        label=labels.astype(np.int64),
        kinds=np.full(int(shape[1]), NUMERIC, np.int64),
        names=(),
        classes=tuple(map(str, classes.tolist())),
    )


def _gas_sensor(path: Path) -> Table:
    """Read `.npz` with X and gas: what 16 sensors say of six gases."""
    value, label = _arrays(path, "X", "gas")
    count = value.shape[1]
    return _dense(value, label, [NUMERIC] * count, [f"sensor{number}" for number in range(count)])


def _covertype(path: Path) -> Table:
    """Read `.npz` with X, y and feature_names: ten measures of a place, then its kind and its soil one-hot."""
    value, label, names = _arrays(path, "X", "y", "feature_names")
    kinds = [NUMERIC if column < 10 else BINARY for column in range(value.shape[1])]
    return _dense(value, label, kinds, names.tolist())


def _mnist(path: Path) -> Table:
    """Read `.npz` with X and y: the brightness of 784 pixels, from 0 to 255."""
    value, label = _arrays(path, "X", "y")
    count = value.shape[1]
    return _dense(value, label, [NUMERIC] * count, [f"pixel{number}" for number in range(count)])


def _electricity(path: Path) -> Table:
    """Read CSV with a header: prices and demand of half an hour; the class is where the price goes."""
    names = ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
    columns = _csv(path, [*names, "class"], texts={"class"}, skip=1)
    days = 7
    columns["day"] -= 1  # they are 1 to 7
    kinds = [days if name == "day" else NUMERIC for name in names]
    return _dense(np.stack([columns[name] for name in names], axis=1), columns["class"], kinds, names)


# Those that the set's own description calls symbolic.
_KDD99_NOMINAL = {"protocol_type", "service", "flag"}
_KDD99_BINARY = {"land", "logged_in", "is_host_login", "is_guest_login"}
_KDD99_COLUMNS = (
    "duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins "
    "logged_in num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files "
    "num_outbound_cmds is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate "
    "srv_rerror_rate same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count "
    "dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate "
    "dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate dst_host_srv_rerror_rate"
)


def _kdd99(path: Path) -> Table:
    """Read CSV without a header: connections; the class is the kind of attack, or normal."""
    names = _KDD99_COLUMNS.split()
    columns = _csv(path, [*names, "class"], texts={*_KDD99_NOMINAL, "class"})
    kinds, values = [], []
    for name in names:
        column = columns[name]
        if name in _KDD99_NOMINAL:
            known, column = np.unique(column, return_inverse=True)
            kinds.append(len(known))
        else:
            kinds.append(BINARY if name in _KDD99_BINARY else NUMERIC)
        values.append(column.astype(np.float64))
    return _dense(np.stack(values, axis=1), columns["class"], kinds, names)


def _poker(path: Path) -> Table:
    """Read CSV with a header: suit and rank of five cards; the class is the hand that they make."""
    names = [f"{what}{card}" for card in range(1, 6) for what in ("S", "R")]
    columns = _csv(path, [*names, "class"], texts={"class"}, skip=1)
    suits = 4
    for name in names[::2]:
        columns[name] -= 1  # they are 1 to 4
    kinds = [suits if name.startswith("S") else NUMERIC for name in names]
    return _dense(np.stack([columns[name] for name in names], axis=1), columns["class"], kinds, names)


def _noaa(path: Path) -> Table:
    """Read CSV with a header: eight measures of the weather of a day; the class is whether it rained."""
    return _numbers(path, [f"feat_{number}" for number in range(1, 9)], "target")


def _insects(path: Path) -> Table:
    """Read CSV with a header: 49 figures of what a sensor heard; the class is the insect."""
    return _numbers(path, [f"X{number}" for number in range(49)], "target")


def _wing_beats(path: Path) -> Table:
    """Read CSV with a header: frequency of wing beats and temperature; the class is the species."""
    return _numbers(path, ["wbf", "temperature"], "species")


def _numbers(path: Path, names: list[str], label: str) -> Table:
    """Read CSV whose header has these names: numeric features, and the class as a whole number."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="ascii") as file:
        header = file.readline().strip().split(",")
    columns = _csv(path, header, texts=set(), skip=1)
    value = np.stack([columns[name] for name in names], axis=1)
    return _dense(value, columns[label].astype(np.int64), [NUMERIC] * len(names), names)


def _arrays(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Return some arrays of a `.npz` file."""
    # Numpy leaves the file open where it turns out to be none, so it is opened here.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return [arrays[name] for name in names]


def _csv(path: Path, names: list[str], texts: set[str], skip: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a CSV file, gzip or not: float64[n] each, those of text bytes[n]."""
    longest = "S32"
    layout = np.dtype([(name, longest if name in texts else np.float64) for name in names])
    rows = np.loadtxt(path, layout, comments=None, delimiter=",", skiprows=skip, ndmin=1)
    return {name: rows[name] for name in names}


def _dense(value: npt.NDArray[Any], label: npt.NDArray[Any], kinds: list[int], names: list[str]) -> Table:
    """Return a table of a dense matrix [n, d] and its labels [n], whose classes are sorted."""
    classes, labels = np.unique(label, return_inverse=True)
    pointer, feature, values = csr(value)
    return Table(
        name="",
        pointer=pointer,
        feature=feature,
        value=values,
        label=labels.astype(np.int64),
        kinds=np.array(kinds, np.int64),
        names=tuple(names),
        classes=tuple(each.decode() if isinstance(each, bytes) else str(each) for each in classes.tolist()),
    )


class _Set(NamedTuple):
    """A file and what reads it."""

    file: str
    read: Callable[[Path], Table]


SETS = {
    "covertype": _Set("covtype.npz", _covertype),
    "kdd99": _Set("kddcup99_10pct.csv.gz", _kdd99),
    "poker": _Set("poker_train25k.csv.gz", _poker),
    "noaa": _Set("noaa_weather.csv.gz", _noaa),
    "insects": _Set("insects49_abrupt.csv.gz", _insects),
    "wing_beats": _Set("wbf_insects.csv.gz", _wing_beats),
    "mnist": _Set("mnist10k.npz", _mnist),
    "electricity": _Set("electricity.csv.gz", _electricity),
    "news20_unigram": _Set("news20_unigram.npz", _binary),
    "sms_spam": _Set("sms_spam.npz", _binary),
    "spam_katakis": _Set("spam_katakis.npz", _binary),
    "farm_ads": _Set("farm_ads.npz", _binary),
    "a9a": _Set("a9a.npz", _binary),
    "imdb": _Set("imdb.npz", _binary),
    "news20_counts": _Set("news20_bydate_train_counts.npz", _counts),
    "gas_sensor": _Set("gas_sensor_drift_8of10.npz", _gas_sensor),
}
