"""`anabranch dev-kafka`: Apache Kafka on this machine, until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from worker.broker import BrokerError, Cluster, cache_folder, install
from worker.commands.common import fail, until_signalled

_STEP = 0.1  # s between looks at the nodes


@click.command("dev-kafka")
@click.option(
    "--nodes", type=click.Choice(["1", "3"]), default="1", show_default=True, help="Of three, one may fail."
)
@click.option(
    "--port",
    type=click.IntRange(1, 65_533),
    default=9092,
    show_default=True,
    help="Of the first node; others take the next ones.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep topics and logs in this folder. [default: one in the cache for each number of nodes]",
)
@click.option("--fresh", is_flag=True, help="Remove the topics of the runs before.")
def dev_kafka(nodes: str, port: int, data: Path | None, fresh: bool) -> None:
    """Run real Apache Kafka for this machine alone until Ctrl-C; topics are kept from run to run.

    Needs Java 17 or newer and, the first time, Maven, which fetches the jars.
    """
    count = int(nodes)
    try:
        with _notifying() as notify:
            installation = install(notify=notify)
            notify(f"starting Apache Kafka, {_nodes(count)}")
            started = time.perf_counter()
            folder = data or cache_folder() / f"data-{count}"
            cluster = Cluster(installation, folder, count, port=port, quick=False)
            cluster.start(fresh=fresh)
        try:
            with until_signalled() as stop:
                _introduce(cluster, time.perf_counter() - started)
                _watch(cluster, stop)
        finally:
            with _notifying() as notify:
                notify("stopping Apache Kafka")
                cluster.stop()
    except BrokerError as error:
        fail(str(error))


@contextmanager
def _notifying() -> Iterator[Callable[[str], None]]:
    """Yield a function that tells a person what is being waited for: a spinner, or lines where nobody watches."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda message: click.echo(message, err=True)
        return
    with console.status("") as status:
        yield status.update


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _introduce(cluster: Cluster, seconds: float) -> None:
    click.echo(f"Apache Kafka runs: {_nodes(len(cluster.nodes))}, started in {seconds:.1f} s.\n")
    click.echo(f"  bootstrap.servers  {cluster.bootstrap}")
    click.echo(f"  data               {cluster.folder}")
    for node in cluster.nodes:
        click.echo(f"  node {node.number}             pid {node.pid}, log {node.log}")
    click.echo(
        f"""
Next, in another terminal, with these lines in worker.yaml in place of `log`:

  log:
    kafka:
      bootstrap: {cluster.bootstrap}

  anabranch topics create worker.yaml --inputs 4
  anabranch run worker.yaml

Ctrl-C stops it."""
    )


def _watch(cluster: Cluster, stop: Callable[[], bool]) -> None:
    """Wait for a signal; say which nodes end before it, and give up when none is left."""
    left = list(cluster.nodes)
    while not stop():
        for node in [node for node in left if not node.alive]:
            left.remove(node)
            if not left:
                raise BrokerError(f"expected node {node.number} to run until Ctrl-C, it has ended; {node.tail()}")
            click.echo(f"node {node.number} has ended; see {node.log}", err=True)
        time.sleep(_STEP)
