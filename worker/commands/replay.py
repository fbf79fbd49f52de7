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
    settings_argument,
    until_signalled,
)
from worker.commands.running import worker_on
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition
from worker.loop import Worker
from worker.recordings.compare import first_difference
from worker.settings import LogSettings, Settings
from worker.transaction import Transaction
from worker.watching import logs

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@settings_argument
@click.argument("recording", type=_FILE)
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
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
    settings_file: Path,
    recording: Path,
    output: Path,
    golden: Path | None,
    batch: int | None,
    restore_every: int | None,
) -> None:
    """Run the models of SETTINGS over RECORDING and write the results to the new file OUTPUT.

    RECORDING is not changed. The same settings and recording give the same results, byte for byte.
    """
    settings = read_settings(settings_file)
    if batch is not None:
        settings = in_transactions_of(batch, settings)
    logs.configure("warning", "auto", sys.stderr)
    if output.exists():
        fail(f"expected {output} not to exist, it would mix old results with new ones; remove it or name another")
    with clear_errors(), EmbeddedLog(output, group=settings.group, source=recording) as log:
        _replay(log, settings, output, restore_every)
        if golden is None:
            return
        topics = [topic for route in settings.routes.values() for topic in route.results]
        with EmbeddedLog(golden, create=False) as wanted:
            difference = first_difference(wanted, log, topics)
    if difference:
        fail(f"the results differ from {golden}\n{difference}")
    click.echo(f"the results equal {golden}")


def _replay(log: EmbeddedLog, settings: Settings, output: Path, restore_every: int | None) -> None:
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

        with worker_on(log, _by_itself(settings, output), committed) as (worker, _):
            worker.run(stop, until_end=True)
    if stop():
        fail("stopped before the end of the recording; the results are incomplete")
    click.echo(f"{records:,} records in, {outputs:,} results and dead letters out")


def _by_itself(settings: Settings, output: Path) -> Settings:
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
