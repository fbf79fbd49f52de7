"""`anabranch state`: look at what models hold of a key, and publish what makes them forget it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.console import Console

from worker.audit import digest_of
from worker.commands.common import clear_errors, fail, open_log, read_settings
from worker.commands.replay import by_itself
from worker.commands.running import worker_on
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, OutRecord
from worker.publishing.publisher import write
from worker.recordings.epochs import recorded_settings
from worker.settings import Settings
from worker.state import Held, Place, all_held, deletes, held_of, of_group, tombstones
from worker.views.words import model_word
from worker.watching import logs

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FIRST = b"SQLite format 3\x00"  # of a recording

_from = click.argument("path", metavar="SETTINGS|RECORDING", type=_FILE)
_settings = click.argument("settings_file", metavar="SETTINGS", type=_FILE)
_key = click.argument("key")
_model = click.option("--model", help="Of this model alone.")
_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
_hex = click.option("--hex", "is_hex", is_flag=True, help="KEY is written as hexadecimal bytes.")


@click.group()
def state() -> None:
    """Look at what models hold of a key, and publish what makes them forget it.

    With SETTINGS it is the state of a group as of its committed offset, with RECORDING what a recording's records
    lead to. A worker may run meanwhile.
    """
    logs.configure("warning", "auto", sys.stderr)


@state.command("list")
@_from
@_model
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Show so many keys.")
@_json
def list_(path: Path, model: str | None, limit: int, as_json: bool) -> None:
    """List the keys that models hold something of."""
    with _places(path) as places:
        found = [held for held in all_held(places) if model in (None, held.model.name)]
        shown = found[:limit]
        if as_json:
            for held in shown:
                click.echo(json.dumps(_row(held)))
            return
        _print(shown)
    if len(found) > len(shown):
        click.echo(f"{len(found) - len(shown):,} more; see them with --limit {len(found)}")


@state.command()
@_from
@_key
@_hex
@_model
@_json
def show(path: Path, key: str, is_hex: bool, model: str | None, as_json: bool) -> None:
    """Show what models hold of KEY."""
    name = _bytes(key, is_hex=is_hex)
    with _places(path) as places:
        found = _found(places, name, model)
        if as_json:
            for held in found:
                click.echo(json.dumps(held.told()))
            return
        _print(found)
        for held in found:
            holdings = held.holdings()
            if holdings is not None:
                click.echo(
                    f"{model_word(held.model.name)}: {len(holdings.live):,} live examples kept, "
                    f"{len(holdings.remembered):,} ids remembered of those that a window dropped"
                )


@state.command()
@_from
@_key
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_hex
@_model
def export(path: Path, key: str, file: Path, is_hex: bool, model: str | None) -> None:
    """Write all that models hold of KEY to the new FILE, as JSON: for whom the data is about, say.

    The ids of examples are not kept, only digests of them.
    """
    name = _bytes(key, is_hex=is_hex)
    if file.exists():
        fail(f"expected {file} not to exist; remove it or name another")
    with _places(path) as places:
        found = [held.told() for held in _found(places, name, model)]
    file.write_text(json.dumps({"key": _word(name), "held": found}, indent=1) + "\n", "utf-8")
    click.echo(f"what {_models(len(found))} of the key: {file}")


@state.command()
@_settings
@_key
@_hex
@click.option("--dry-run", is_flag=True, help="Say what would be published, and publish nothing.")
def reset(settings_file: Path, key: str, is_hex: bool, dry_run: bool) -> None:
    """Publish a tombstone of KEY: all models of its partition forget the key."""
    name = _bytes(key, is_hex=is_hex)

    def records(found: Sequence[Held], now: int) -> list[OutRecord]:
        return tombstones(found, name, now)

    _publish(settings_file, name, records, "a tombstone", dry_run=dry_run)


@state.command()
@_settings
@_key
@click.argument("id_", metavar="ID")
@_hex
@click.option("--text-id", is_flag=True, help='ID is text and looks like a number, as "17".')
@click.option("--dry-run", is_flag=True, help="Say what would be published, and publish nothing.")
def forget(settings_file: Path, key: str, id_: str, is_hex: bool, text_id: bool, dry_run: bool) -> None:
    """Publish a delete of the example ID of KEY: the models that learned it forget it."""
    name = _bytes(key, is_hex=is_hex)
    named: int | str = int(id_) if id_.lstrip("-").isdigit() and not text_id else id_

    def records(found: Sequence[Held], now: int) -> list[OutRecord]:
        holdings = [held.holdings() for held in found]
        kept = {example.id for each in holdings if each is not None for example in each.live}
        if None not in holdings and digest_of(named) not in kept:
            fail(
                f"expected an example {named!r} that is live in the key {_word(name)!r}, there is none; check the "
                "id (--text-id where 17 is text)"
            )
        return deletes(found, name, named, now)

    _publish(settings_file, name, records, f"a delete of {named!r}", dry_run=dry_run)


def _publish(
    settings_file: Path,
    key: bytes,
    records: Callable[[Sequence[Held], int], list[OutRecord]],
    what: str,
    *,
    dry_run: bool,
) -> None:
    settings = read_settings(settings_file)
    with clear_errors(), open_log(settings, lambda: None, role="-state") as log:
        found = _found(list(of_group(log, settings)), key, None)
        told = records(found, time.time_ns() // 1_000_000)
        _check_formats(settings, told)
        if not dry_run:
            write(log, told)
    for record in told:
        verb = "would publish" if dry_run else "published"
        click.echo(f"{verb} {what} to {record.topic}/{record.partition}, key {_word(key)}")


def _check_formats(settings: Settings, records: Collection[OutRecord]) -> None:
    """Refuse to write a delete where the worker reads another format; a tombstone is one in all."""
    for record in records:
        told = settings.topic(record.topic).format
        if record.value is not None and told != "msgpack":
            fail(
                f"expected an input with format msgpack, which is what is published, got {told} of "
                f"{record.topic!r}; send the delete with a producer of that format, or reset the key"
            )


@contextmanager
def _of_recording(path: Path) -> Iterator[list[Place]]:
    """Yield the partitions of a recording's inputs with the models that its records lead to."""
    with TemporaryDirectory() as folder:
        with EmbeddedLog(path, create=False) as recorded:
            settings, _ = recorded_settings(recorded)
        apart = by_itself(settings, Path(folder) / "results.db")
        with (
            EmbeddedLog(Path(folder) / "results.db", group=settings.group, source=path) as log,
            worker_on(log, apart, epochs="all") as (worker, _),
        ):
            worker.run(lambda: False, until_end=True)
            yield [
                Place(source, partition.applied, tuple(partition.pipeline.models))
                for source, partition in sorted(worker.partitions.items())
            ]


@contextmanager
def _places(path: Path) -> Iterator[list[Place]]:
    with clear_errors():
        with path.open("rb") as file:
            is_recording = file.read(len(_FIRST)) == _FIRST
        if is_recording:
            with _of_recording(path) as places:
                yield places
            return
        settings = read_settings(path)
        with open_log(settings, lambda: None, role="-state") as log:
            yield _all(log, settings)


def _all(log: Log, settings: Settings) -> list[Place]:
    return list(of_group(log, settings))


def _found(places: Collection[Place], key: bytes, model: str | None) -> list[Held]:
    found = [held for held in held_of(places, key) if model in (None, held.model.name)]
    if not found:
        fail(
            f"expected a key that models hold something of, {_word(key)!r} is none; anabranch state list has them"
        )
    return found


def _bytes(key: str, *, is_hex: bool) -> bytes:
    if not is_hex:
        return key.encode()
    try:
        return bytes.fromhex(key)
    except ValueError:
        raise click.UsageError(f"expected hexadecimal digits with --hex, got {key!r}") from None


def _word(key: bytes) -> str:
    """Return a key as text, as hexadecimal digits where it is none."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return key.hex()
    return text if text.isprintable() else key.hex()


def _row(held: Held) -> dict[str, Any]:
    source = held.place.source
    return {
        "model": held.model.name,
        "topic": source.topic,
        "partition": source.partition,
        "key": _word(held.key),
        **held.sizes(),
    }


def _print(found: Collection[Held]) -> None:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for held in found:
        sizes = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in held.sizes().items())
        console.print(f"{model_word(held.model.name)}, {held.place.source}, {_word(held.key)}: {sizes}")


def _models(count: int) -> str:
    return "one model holds" if count == 1 else f"{count} models hold"
