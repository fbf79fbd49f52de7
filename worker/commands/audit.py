"""`anabranch audit`: whether examples are forgotten, proved on the state of a group."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from worker.audit import Audit, Named
from worker.audit import audit as audited
from worker.commands.common import clear_errors, fail, open_log, read_settings, settings_argument
from worker.views.words import model_word
from worker.watching import logs


@click.command()
@settings_argument
@click.option("--id", "ids", multiple=True, help="An example's id, a whole number or text; may be repeated.")
@click.option("--text-id", "texts", multiple=True, help='An id that is text and looks like a number, as "17".')
@click.option("--sample", type=click.IntRange(1), help="Draw so many of the ids whose last event is a delete.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the draw.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
def audit(
    settings_file: Path, ids: tuple[str, ...], texts: tuple[str, ...], sample: int | None, seed: int, as_json: bool
) -> None:
    """Prove that deleted examples are forgotten; exit 1 where anything of them is left.

    The models of the group's state, as of its committed offset, are compared with models that learn the same
    records without those examples: what they hold must be equal, and no id and no name of them be left. The input
    must still hold the records from the first on. Nothing is written, a worker may run meanwhile.

    It proves nothing of the input topic itself, of results that were written, of backups, and of pages of old
    checkpoints until the broker compacts them.
    """
    named: list[Named] = [int(each) if each.lstrip("-").isdigit() else each for each in ids]
    named += texts
    if not named and sample is None:
        raise click.UsageError("expected examples to look for; name some with --id, or draw some with --sample")
    settings = read_settings(settings_file)
    logs.configure("warning", "auto", sys.stderr)
    with clear_errors(), open_log(settings, lambda: None, role="-audit") as log:
        found = audited(log, settings, named, sample or 0, seed)
    if not found.ids:
        fail("expected ids whose last event is a delete, to draw from; there is none below the committed offset")
    if as_json:
        click.echo(json.dumps(_report(found)))
    else:
        _tell(found)
    if not found.is_clean:
        sys.exit(1)


def _report(found: Audit) -> dict[str, object]:
    return {
        "clean": found.is_clean,
        "ids": found.ids,
        "unseen": found.unseen,
        "live": found.live,
        "findings": [
            {
                "topic": each.source.topic,
                "partition": each.source.partition,
                "offset": each.offset,
                "model": each.model,
                "kind": each.kind,
                "left": each.left,
                "unproven": each.unproven,
                "digest": each.digest,
            }
            for each in found.findings
        ],
    }


def _tell(found: Audit) -> None:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(f"looked for {_words(found.ids)}")
    if found.unseen:
        console.print(f"no event names {_words(found.unseen)}; check them (--text-id 17 is text)")
    if found.live:
        console.print(f"not deleted: {_words(found.live)}; publish a delete")
    for each in found.findings:
        what = "left" if each.left else "nothing found, not all is proven" if each.unproven else "nothing left"
        console.print(f"{model_word(each.model)} ({each.kind}), {each.source} below offset {each.offset}: {what}")
        for words in each.left:
            console.print(f"  left: {words}")
        for words in each.unproven:
            console.print(f"  not proven: {words}")
        if each.digest:
            console.print(f"  all that it holds: sha256 {each.digest}")


def _words(ids: Sequence[Named]) -> str:
    shown = ", ".join(repr(each) if isinstance(each, str) else str(each) for each in ids[:5])
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5:,} more"
