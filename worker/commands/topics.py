"""`anabranch topics`: what a worker needs in its cluster, and making it."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from worker.commands.common import clear_errors, fail, open_log, read_settings, settings_argument
from worker.log.port import Log
from worker.permissions import command, permissions
from worker.settings import Settings
from worker.topics import Topic, create_topics, missing_topics, written_topics
from worker.views.fitting import Column, Sheet


@click.group()
def topics() -> None:
    """Look at the topics that a worker reads and writes, and create them."""


@topics.command("list")
@settings_argument
def list_topics(settings_file: Path) -> None:
    """Show the topics that a worker with these SETTINGS writes, and which of them are missing."""
    settings = read_settings(settings_file)
    with clear_errors(), open_log(settings) as log:
        missing = {topic.name for topic in missing_topics(log, settings)}
        _print(written_topics(log, settings), missing)


@topics.command()
@settings_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--inputs",
    type=click.IntRange(1),
    metavar="PARTITIONS",
    help="Create missing input topics too, with so many partitions.",
)
@click.option(
    "--acls",
    "principal",
    metavar="User:NAME",
    help="Instead of topics, the permissions that a worker under this name needs: show the commands that give "
    "them, or with --yes give them, with the login of SETTINGS.",
)
def create(settings_file: Path, yes: bool, inputs: int | None, principal: str | None) -> None:
    """Create the topics that a worker with these SETTINGS writes and that are not there yet.

    Each has as many partitions as its input; those for checkpoints are compacted. What will be done is shown
    first. Replication follows the broker's default.replication.factor. Run again, it says what is there; a topic
    that is there and not as it must be ends it with an error, and is left as it is.
    """
    settings = read_settings(settings_file)
    if principal is not None:
        _permit(settings, principal, yes)
        return
    with clear_errors(), open_log(settings) as log:
        if inputs is not None:
            _create_inputs(log, settings, inputs, yes)
        missing = missing_topics(log, settings)
        _print(written_topics(log, settings), {topic.name for topic in missing})
        if not missing:
            click.echo("all topics are there")
            return
        if not yes:
            click.confirm("create those that are missing?", abort=True)
        create_topics(log, settings)
        click.echo(f"created: {', '.join(topic.name for topic in missing)}")


def _permit(settings: Settings, principal: str, yes: bool) -> None:
    kafka = settings.log.kafka
    if kafka is None:
        fail("expected a Kafka cluster in the settings (log.kafka), found an embedded log, which asks nobody")
    if not principal.startswith("User:"):
        raise click.UsageError(f"expected --acls User:NAME, as brokers call who logs in, got {principal!r}")
    for permission in permissions(settings):
        click.echo(command(permission, principal, kafka.bootstrap))
    if not yes:
        click.echo(
            "nothing is done yet: run these, with --command-config FILE for the login of an administrator, or add "
            "--yes",
            err=True,
        )
        return
    with clear_errors(), open_log(settings) as log:
        from worker.log.kafka import KafkaLog  # loads the client

        assert isinstance(log, KafkaLog)
        log.allow(principal, permissions(settings))
    click.echo(f"given to {principal}")


def _create_inputs(log: Log, settings: Settings, partitions: int, yes: bool) -> None:
    for topic in settings.routes:
        count = log.partitions(topic)
        if count is not None:
            differs = (
                "" if count == partitions else f", not the {partitions} of --inputs, which is for missing ones"
            )
            click.echo(f"there already: {topic}, partitions: {count}{differs}")
        else:
            if not yes:
                click.confirm(f"create the input topic {topic} with {partitions} partitions?", abort=True)
            log.create_topic(topic, partitions)
            click.echo(f"created: {topic}")


def _print(found: list[Topic], missing: set[str]) -> None:
    columns = [Column("topic"), Column("partitions", is_number=True), Column("cleanup"), Column("for"), Column("")]
    rows = [
        [
            topic.name,
            str(topic.partitions),
            "compact" if topic.compacted else "delete",
            topic.use,
            "missing" if topic.name in missing else "there",
        ]
        for topic in found
    ]
    Console().print(Sheet(columns, rows))
