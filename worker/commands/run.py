"""`anabranch run`: the long-lived worker."""

from __future__ import annotations

import time
from pathlib import Path

import click
import structlog

from worker.commands.common import (
    clear_errors,
    configure_logs,
    open_log,
    read_settings,
    settings_argument,
    until_signalled,
)
from worker.commands.running import worker_on
from worker.log.port import LogError
from worker.watching.status import Status, StatusBoard


@click.command()
@settings_argument
@click.option("--until-end", is_flag=True, help="Stop at the end that the input has when the worker starts.")
def run(settings_file: Path, until_end: bool) -> None:
    """Consume the input topics and write splits until SIGTERM or SIGINT.

    On start the models are rebuilt as of what the group has committed. On a signal the open transaction is
    committed, a checkpoint is left for the next start, and the worker ends with exit code 0.
    """
    settings = read_settings(settings_file)
    configure_logs(settings)
    logger = structlog.get_logger("anabranch")
    board = StatusBoard(Status(time.monotonic()))
    with clear_errors(), until_signalled() as stop:

        def pulse() -> None:
            board.tick(time.monotonic())
            if stop():
                raise LogError(
                    "stopped while no broker answered; what was not committed is made again at the next start"
                )

        with open_log(settings, pulse) as log, worker_on(log, settings, board=board) as (worker, url):
            logger.info("starting", settings=str(settings_file), page=url)
            worker.run(stop, until_end=until_end)
        logger.info("stopped")
