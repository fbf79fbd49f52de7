"""The options of `anabranch publish` that say what the columns of a table are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import click

from worker.sources import Columns


def _names(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(name.strip() for name in value.split(","))


def column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command is given them as `columns`."""

    @click.option("--label", metavar="COLUMN", help="csv, tsv: the label (required).")
    @click.option("--key", metavar="COLUMN", help="csv, tsv: the key of the model.")
    @click.option("--id", "id_column", metavar="COLUMN", help="csv, tsv: the example's id.")
    @click.option("--text", metavar="COLUMN", help="csv, tsv: text, whose words are features.")
    @click.option("--time", "time_column", metavar="COLUMN", help="csv, tsv: event time, ms or ISO 8601.")
    @click.option(
        "--features",
        metavar="COLUMNS",
        callback=_names,
        help="csv, tsv: columns that are features; 1 is present, 0 or empty absent, else COLUMN=VALUE."
        "  [default: all others; none beside --text]",
    )
    @click.option(
        "--categorical",
        metavar="COLUMNS",
        callback=_names,
        help="csv, tsv: features whose 0 and 1 are values too.",
    )
    @click.option("--no-header", is_flag=True, help="csv, tsv: columns go by their numbers, from 1.")
    @wraps(command)
    def with_columns(
        *,
        label: str | None,
        key: str | None,
        id_column: str | None,
        text: str | None,
        time_column: str | None,
        features: tuple[str, ...] | None,
        categorical: tuple[str, ...] | None,
        no_header: bool,
        **others: object,
    ) -> None:
        columns = Columns(
            label,
            key,
            id_column,
            text,
            time_column,
            features,
            frozenset(categorical or ()),
            header=not no_header,
        )
        command(columns=columns, **others)

    return with_columns
