"""`anabranch run`: the long-lived worker."""

from __future__ import annotations

import time
from pathlib import Path

import click
import structlog
from rich.console import Console

from worker.commands.common import (
    clear_errors,
    configure_logs,
    fail,
    open_log,
    read_settings,
    settings_argument,
    show_command,
    until_signalled,
)
from worker.commands.running import worker_on
from worker.log.port import LogError
from worker.settings import Settings
from worker.views.run_text import baselines_table, errors_table, models_table, read_words, refusals_table
from worker.views.words import model_word
from worker.watching.status import Status, StatusBoard
from worker.watching.tally import Tally


@click.command()
@settings_argument
@click.option("--until-end", is_flag=True, help="Stop at the end that the input has when the worker starts.")
def run(settings_file: Path, until_end: bool) -> None:
    """Consume the input topics and write splits until SIGTERM or SIGINT.

    On start the models are rebuilt as of what the group has committed. On a signal the open transaction is
    committed, a checkpoint is left for the next start, and the worker ends with exit code 0.

    With --until-end it shows what came of the input, and ends with exit code 1 where all of it was refused.
    """
    settings = read_settings(settings_file)
    configure_logs(settings)
    logger = structlog.get_logger("anabranch")
    board, tally = StatusBoard(Status(time.monotonic())), Tally()
    with clear_errors(), until_signalled() as stop:

        def pulse() -> None:
            board.tick(time.monotonic())
            if stop():
                raise LogError(
                    "stopped while no broker answered; what was not committed is made again at the next start"
                )

        with open_log(settings, pulse) as log, worker_on(log, settings, board=board, tally=tally) as (worker, url):
            logger.info("starting", settings=str(settings_file), page=url)
            worker.run(stop, until_end=until_end, alone=True)
        logger.info("stopped")
    if until_end:
        _tell(tally, settings, settings_file)


def _tell(tally: Tally, settings: Settings, settings_file: Path) -> None:
    """Show what came of the run; end with code 1 where all of it was refused."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(read_words(tally, settings.group))
    if not tally.records:
        return
    console.print(models_table(tally, settings.models))
    if any(count for model, count in tally.evaluated.items() if model not in tally.errors):
        console.print(baselines_table(tally, settings.models))
    if tally.errors:
        console.print(errors_table(tally))
    for model in sorted(settings.models):
        if tally.applied[model, "insert"] and (awaited := tally.awaited(model)):
            click.echo(f"{model_word(model)}: {awaited}; compare the settings with the events")
    if not tally.refused:
        return
    console.print(refusals_table(tally))
    topics = dict.fromkeys(settings.routes[refuser.topic].dead_letters for refuser in tally.refused)
    shown = [show_command(settings_file, topic) for topic in topics]
    if tally.is_all_refused:
        fail("expected events that a model takes, all that came were refused; see why: " + "; ".join(shown))
    for command in shown:
        click.echo(f"see them: {command}")
