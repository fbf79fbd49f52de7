"""`anabranch replay`: settings and a recording in, the same results out, always."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from worker.commands.common import (
    clear_errors,
    fail,
    in_transactions_of,
    read_settings,
    until_signalled,
)
from worker.commands.running import worker_on
from worker.epochs import compare
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition
from worker.loop import Worker
from worker.recordings.compare import first_difference
from worker.recordings.epochs import history, recorded_settings
from worker.settings import LogSettings, Settings
from worker.transaction import Transaction
from worker.watching import logs

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, metavar="[SETTINGS] RECORDING OUTPUT", type=click.Path(path_type=Path))
@click.option(
    "--expect", "golden", type=_FILE, help="Compare with this recording of results; exit 1 where they differ."
)
@click.option(
    "--batch", type=click.IntRange(1), help="Records in a poll and transaction; results do not depend on it."
)
@click.option(
    "--restore-every",
    type=click.IntRange(1),
    help="Save and restore all models after so many transactions; results do not depend on it.",
)
def replay(
    files: tuple[Path, ...],
    golden: Path | None,
    batch: int | None,
    restore_every: int | None,
) -> None:
    """Run models over RECORDING and write the results to the new file OUTPUT.

    Without SETTINGS the models are those of the worker that was recorded, each from and up to the offset where it
    was. With SETTINGS they are the models of that file, from the first record on.

    RECORDING is not changed. The same settings and recording give the same results, byte for byte.
    """
    settings_file, recording, output = _named(files)
    settings = None if settings_file is None else read_settings(settings_file)
    logs.configure("warning", "auto", sys.stderr)
    if output.exists():
        fail(f"expected {output} not to exist, it would mix old results with new ones; remove it or name another")
    with clear_errors():
        with EmbeddedLog(recording, create=False) as recorded:
            settings = _told(recorded, settings_file, settings)
        if batch is not None:
            settings = in_transactions_of(batch, settings)
        with EmbeddedLog(output, group=settings.group, source=recording) as log:
            _replay(log, settings, output, restore_every, follows=settings_file is None)
            if golden is None:
                return
            topics = [topic for route in settings.routes.values() for topic in route.results]
            with EmbeddedLog(golden, create=False) as wanted:
                difference = first_difference(wanted, log, topics)
    if difference:
        fail(f"the results differ from {golden}\n{difference}")
    click.echo(f"the results equal {golden}")


def _named(files: tuple[Path, ...]) -> tuple[Path | None, Path, Path]:
    """Return the files of the arguments: settings, if any, recording and output."""
    if len(files) not in (2, 3):
        raise click.UsageError(
            f"expected RECORDING OUTPUT or SETTINGS RECORDING OUTPUT, got {len(files)} files; name these"
        )
    *settings, recording, output = files
    for file in (*settings, recording):
        if not file.is_file():
            raise click.UsageError(f"expected the file '{file}', there is none; check the path")
    return (settings[0] if settings else None), recording, output


def _told(recorded: EmbeddedLog, settings_file: Path | None, settings: Settings | None) -> Settings:
    """Return the settings to replay with; tell where they are not those of the worker that was recorded."""
    if settings is None:
        settings, histories = recorded_settings(recorded)
        for source, (first, *_) in histories.items():
            low, least = recorded.watermarks(source).low, min(each.first for each in first.models.values())
            if low > least:
                click.echo(
                    f"{source}: recorded from offset {low} on, but the models had learned from {least} on; their "
                    "results may differ",
                    err=True,
                )
        return settings
    states = [route.state for route in settings.routes.values()]
    for source, (first, *others) in history(recorded, settings.group, states).items():
        if source.topic in settings.routes and (others or compare(first, settings, source.topic).is_any):
            click.echo(
                f"{settings_file} holds from the first record on; the worker that was recorded had other "
                "settings, which `anabranch replay RECORDING OUTPUT` follows",
                err=True,
            )
            break
    return settings


def _replay(
    log: EmbeddedLog, settings: Settings, output: Path, restore_every: int | None, *, follows: bool
) -> None:
    total = _offsets(log, settings)
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Progress(*columns, console=Console(stderr=True), disable=not Console(stderr=True).is_terminal) as bar,
        until_signalled() as stop,
    ):
        task = bar.add_task("replaying", total=total)
        transactions = records = outputs = 0

        def committed(transaction: Transaction) -> None:
            nonlocal transactions, records, outputs
            transactions += 1
            records += transaction.records
            outputs += len(transaction.outputs)
            bar.advance(task, transaction.records)
            if restore_every and transactions % restore_every == 0:
                _save_and_restore(worker)

        with worker_on(log, by_itself(settings, output), committed, epochs="all" if follows else "none") as (
            worker,
            _,
        ):
            worker.run(stop, until_end=True)
    if stop():
        fail("stopped before the end of the recording; the results are incomplete")
    click.echo(f"{records:,} records in, {outputs:,} results and dead letters out")


def by_itself(settings: Settings, output: Path) -> Settings:
    """Return the settings for a run that leaves results and nothing else, wherever the recording came from."""
    return settings.model_copy(
        update={
            "log": LogSettings(embedded=output),
            "metrics": settings.metrics.model_copy(update={"port": None}),
            "checkpoint": None,
            "on_defect": "stop",
            "start": "earliest",
        }
    )


def _offsets(log: EmbeddedLog, settings: Settings) -> int:
    bounds = [
        log.watermarks(TopicPartition(topic, number))
        for topic in settings.routes
        for number in range(log.partitions(topic) or 0)
    ]
    return sum(high - low for low, high in bounds)


def _save_and_restore(worker: Worker) -> None:
    """Give every model a twin that has only its saved arrays, and go on with that."""
    for partition in worker.partitions.values():
        partition.pipeline.restore(
            {
                model: {name: array.copy() for name, array in arrays.items()}
                for model, arrays in partition.pipeline.arrays().items()
            }
        )
