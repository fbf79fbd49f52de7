"""`anabranch validate`: whether a settings file is right."""

from __future__ import annotations

from pathlib import Path

import click

from worker.commands.common import read_settings, settings_argument
from worker.settings import fingerprint


@click.command()
@settings_argument
def validate(settings_file: Path) -> None:
    """Check a settings file; name file, line and what was expected for everything that is wrong."""
    settings = read_settings(settings_file, thorough=True)
    click.echo(f"{settings_file}: good")
    for name, model in settings.models.items():
        route = settings.routes[model.input]
        how = f" ({model.summary})" if model.summary else ""
        click.echo(
            f"  {name}: {model.kind}{how} {model.input} -> {route.output}, refused events -> {route.dead_letters}"
        )
    click.echo(f"  results depend on settings {fingerprint(settings)[:12]}")
