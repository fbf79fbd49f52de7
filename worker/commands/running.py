"""A worker with its page, for the commands that run one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import Literal

from prometheus_client import CollectorRegistry

from worker.commands.common import fail
from worker.log.port import Log
from worker.loop import Worker
from worker.settings import Settings, fingerprint
from worker.settings.values import Cadence
from worker.transaction import Transaction
from worker.watching.http import Pages, Server, ServerError
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import About, Status, StatusBoard
from worker.watching.tally import Tally


@contextmanager
def worker_on(
    log: Log,
    settings: Settings,
    committed: Callable[[Transaction], None] = lambda transaction: None,
    board: StatusBoard | None = None,
    tally: Tally | None = None,
    epochs: Literal["last", "all", "none"] = "last",
) -> Iterator[tuple[Worker, str | None]]:
    """Make a worker and, where the settings want one, its page of metrics; yields the page's address too."""
    registry = CollectorRegistry()
    board = board or StatusBoard(Status(time.monotonic()))
    listener = WorkerListener(Metrics(registry, version("anabranch")), board, tally=tally)
    worker = Worker(log, settings, listener, committed=committed, epochs=epochs)
    with ExitStack() as stack:
        url = None
        if settings.metrics.port is not None:
            about = About(
                version("anabranch"), fingerprint(settings), time.monotonic(), _snapshots_words(settings)
            )
            pages = Pages(registry, board, settings.metrics.stall_seconds, time.monotonic, about)
            try:
                url = stack.enter_context(Server(settings.metrics.host, settings.metrics.port, pages)).url
            except ServerError as error:
                fail(str(error))
        yield worker, url


def _snapshots_words(settings: Settings) -> dict[str, str]:
    """Return for each model when it writes trees."""
    emits = {name: getattr(model, "emit", None) for name, model in settings.models.items()}
    dues = {name: getattr(emit, "snapshots", None) for name, emit in emits.items()}
    return {name: due.words for name, due in dues.items() if isinstance(due, Cadence)}
