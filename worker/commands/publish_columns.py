"""The options of `anabranch publish` that say what the columns of a table are."""

from __future__ import annotations

import codecs
import csv
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import click

from worker.sources import FORMATS, Columns, format_of
from worker.sources.columns import KINDS, option

TAB = "\t"
_DELIMITERS = {"tab": TAB, "\\t": TAB}


def _names(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of lists with commas between; a name with a comma is quoted as in a csv file."""
    found = [name.strip() for cells in csv.reader(values, skipinitialspace=True) for name in cells]
    return tuple(dict.fromkeys(name for name in found if name))


def _texts(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for cells in csv.reader(values, skipinitialspace=True) for name in cells)


def _of_kind(option: str, name: str, help: str, *more: str) -> Callable[[Any], Any]:
    said = f"tables: {help}"
    return click.option(option, *more, name, metavar="COLUMNS", multiple=True, callback=_names, help=said)


_OPTIONS = (
    click.option(
        "--label", metavar="COLUMN", help="tables: the label.  [default: the one called label, class, target or y]"
    ),
    click.option("--key", metavar="COLUMN", help="tables: the key of the model.  [default: the one called key]"),
    click.option("--id", metavar="COLUMN", help="tables: the example's id.  [default: the one called id]"),
    click.option(
        "--time",
        metavar="COLUMN",
        help="tables: event time, ms or ISO 8601.  [default: the one called ts, time or timestamp]",
    ),
    click.option(
        "--time-unit", type=click.Choice(["ms", "s"]), help="tables: what numbers of the time column count."
    ),
    click.option("--weight", metavar="COLUMN", help="tables: the weight."),
    click.option(
        "--op", metavar="COLUMN", help="tables: insert, delete, predict or label.  [default: the one called op]"
    ),
    _of_kind("--numeric", "numeric", "numbers."),
    _of_kind("--nominal", "nominal", "categories, as features COLUMN=VALUE.", "--categorical"),
    _of_kind("--binary", "binary", "1 is present, 0 or empty absent (also true, false, yes, no)."),
    _of_kind("--text", "text", "text, whose words are features."),
    _of_kind("--ignore", "ignored", "left out."),
    _of_kind("--features", "features", "what is a feature; its first rows tell the kind.  [default: all others]"),
    click.option(
        "--missing",
        metavar="TEXTS",
        multiple=True,
        callback=_texts,
        help="tables: what stands for no value, beside empty cells and, of numbers, NA.",
    ),
    click.option(
        "--decimal", type=click.Choice(["point", "comma"]), help="tables: what stands before a fraction."
    ),
    click.option(
        "--delimiter", metavar="CHARACTER", help="csv, tsv: what stands between cells.  [default: found out]"
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="csv, tsv: whether the first line names the columns; else they go by their numbers, from 1."
        "  [default: found out]",
    ),
)


def _encoding(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    try:
        return codecs.lookup(value).name
    except LookupError as error:
        raise click.BadParameter(
            f"expected an encoding that Python knows, got {value!r}; say utf-8, latin-1 or cp1252"
        ) from error


def file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how a file is to be read: `format_name` and `encoding`."""
    command = click.option(
        "--encoding",
        default="utf-8",
        show_default=True,
        callback=_encoding,
        help="What text files are written in, as in latin-1.",
    )(command)
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(list(FORMATS)),
        help="What the file is; else its suffix tells.",
    )(command)


def named_format(file: str, format_name: str | None) -> str:
    """Return the format of a file: the one that was named, else that of its suffix."""
    format_name = format_name or format_of(file)
    if format_name is None:
        known = ", ".join(suffix for format in FORMATS.values() for suffix in format.suffixes)
        raise click.UsageError(f"expected a suffix among {known}, got {file!r}; say --format")
    return format_name


def no_columns(format_name: str) -> click.UsageError:
    """Return what to raise where something was said of columns, and the format has none."""
    table = "jsonrows" if format_name == "jsonl" else "csv"
    return click.UsageError(
        f"expected no options about columns, {format_name} has none; leave them out or say --format {table}"
    )


def check_columns(format_name: str, columns: Columns) -> None:
    """Refuse what is said of columns where the format has none; npz has an array with the labels."""
    label = columns.label if format_name == "npz" else None
    if not FORMATS[format_name].is_table and replace(columns, unlabelled=False) != Columns(label=label):
        raise no_columns(format_name)


def as_options(columns: Columns) -> list[str]:
    """Return what is said of columns as options of the command line, quoted for a shell."""
    said = [option(f"--{use}", name) for use, name in columns.uses.items() if name is not None]
    for kind in KINDS:
        said += [option("--ignore" if kind == "ignored" else f"--{kind}", name) for name in getattr(columns, kind)]
    said += [option("--features", name) for name in columns.features or ()]
    said += [option("--missing", text) for text in columns.missing]
    if columns.delimiter is not None:
        said.append(f"--delimiter {'tab' if columns.delimiter == TAB else shlex.quote(columns.delimiter)}")
    if columns.header is not None:
        said.append("--header" if columns.header else "--no-header")
    said += [f"--decimal {columns.decimal}"] if columns.decimal is not None else []
    return said + ([f"--time-unit {columns.time_unit}"] if columns.time_unit is not None else [])


def column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command is given them as `columns`."""

    @wraps(command)
    def with_columns(**given: Any) -> None:
        said = {name: given.pop(name) for name in Columns.__dataclass_fields__ if name in given}
        said["features"] = said["features"] or None
        if said["delimiter"] is not None:
            said["delimiter"] = _DELIMITERS.get(said["delimiter"], said["delimiter"])
        try:
            columns = Columns(**said)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        command(columns=columns, **given)

    for decorate in reversed(_OPTIONS):
        with_columns = decorate(with_columns)
    return with_columns
