"""`anabranch validate`: whether a settings file is right, and what a start with it would do."""

from __future__ import annotations

from pathlib import Path

import click

from worker.commands.common import read_settings, settings_argument
from worker.settings import fingerprint


@click.command()
@settings_argument
@click.option(
    "--against",
    metavar="GROUP|FILE",
    help="Tell what a start would keep, learn and drop: of this consumer group, or of the group in this recording"
    " or log file. Exit 1 where a start would refuse.",
)
def validate(settings_file: Path, against: str | None) -> None:
    """Check a settings file; name file, line and what was expected for everything that is wrong."""
    settings = read_settings(settings_file, thorough=True)
    click.echo(f"{settings_file}: good")
    for name, model in settings.models.items():
        route = settings.routes[model.input]
        how = f" ({model.summary})" if model.summary else ""
        shadow = "; a shadow" if model.shadow else ""
        click.echo(
            f"  {name}: {model.kind}{how} {model.input} -> {route.output}, "
            f"refused events -> {route.dead_letters}{shadow}"
        )
    click.echo(f"  results depend on settings {fingerprint(settings)[:12]}")
    if against is not None:
        from worker.commands.against import compare  # with the whole of the worker

        compare(settings, against)
