"""`anabranch validate`: whether a settings file is right."""

from __future__ import annotations

from pathlib import Path

import click

from worker.commands.common import read_settings, settings_argument
from worker.settings import fingerprint
from worker.settings.models import DynamicTreeSettings, SplitSettings, TreeSettings


def _words(model: SplitSettings | TreeSettings | DynamicTreeSettings) -> str:
    """Return how a model learns."""
    if isinstance(model, TreeSettings):
        return f"{model.policy}, {model.criterion}, {len(model.classes)} classes"
    window = f", last {model.window} examples" if model.window else ""
    if isinstance(model, DynamicTreeSettings):
        return f"epsilon {model.epsilon:g}, {model.criterion}, {len(model.classes)} classes{window}"
    return f"{model.finder}, {model.criterion}{window}"


@click.command()
@settings_argument
def validate(settings_file: Path) -> None:
    """Check a settings file; name file, line and what was expected for everything that is wrong."""
    settings = read_settings(settings_file, thorough=True)
    click.echo(f"{settings_file}: good")
    for name, model in settings.models.items():
        route = settings.routes[model.input]
        click.echo(
            f"  {name}: {model.kind} ({_words(model)}) "
            f"{model.input} -> {route.output}, refused events -> {route.dead_letters}"
        )
    click.echo(f"  results depend on settings {fingerprint(settings)[:12]}")
