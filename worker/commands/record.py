"""`anabranch record`: topics of a log into a recording."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from worker.commands.common import (
    clear_errors,
    fail,
    open_log,
    read_settings,
    settings_argument,
    until_signalled,
)
from worker.log.bounded import Stretch
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError, Records, TopicPartition
from worker.recordings.epochs import copy_marks
from worker.recordings.recorder import Beginning, Until, copy, partitions_of, plan
from worker.settings import Settings
from worker.settings.topics import WITH_SCHEMAS
from worker.sources.example import UnreadableError, moment
from worker.views.words import topic_word
from worker.watching import logs

_NOTIFY_SECONDS = 10.0  # between two lines about the progress
_DRY_SECONDS = 5.0  # without a record, after which a person is told why


def _beginning(_context: click.Context, _parameter: click.Parameter, value: str) -> Beginning:
    match value:
        case "earliest" | "latest":
            return value
    if value.isascii() and value.isdigit():
        return int(value[:19])
    raise click.BadParameter(f"expected earliest, latest or an offset, got {value!r}; name one of these")


def _until(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Until:
    if value is None or value == "end":
        return Until()
    if value.isascii() and value.isdigit():
        return Until(offset=int(value[:19]))
    try:
        return Until(time=moment(value))
    except UnreadableError:
        raise click.BadParameter(
            f"expected end, an offset or a time like 2024-05-01T12:00:00Z, got {value!r}; name one of these"
        ) from None


_EXAMPLES = """\b
Examples:
  anabranch record worker.yaml sms.db
  anabranch record worker.yaml results.db --topic sms.out --topic sms.dead
  anabranch record worker.yaml may.db --until 2024-06-01
  anabranch record worker.yaml now.db --from latest --for 60
"""


@click.command(epilog=_EXAMPLES)
@settings_argument
@click.argument("recording", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--topic", "topics", multiple=True, help="Record this topic; may be said again.  [default: the models' inputs]"
)
@click.option(
    "--from",
    "beginning",
    metavar="earliest|latest|OFFSET",
    default="earliest",
    show_default=True,
    callback=_beginning,
    help="Where a topic begins that RECORDING does not have yet.",
)
@click.option(
    "--until",
    metavar="end|OFFSET|TIME",
    callback=_until,
    help="Stop before this offset, or before the first record of this time or later (ISO 8601, UTC unless it says"
    " otherwise), in each partition; at the latest at the end that it has now.  [default: end]",
)
@click.option(
    "--for", "seconds", metavar="SECONDS", type=click.FloatRange(min=0), help="Go on with what comes, for so long."
)
def record(
    settings_file: Path,
    recording: Path,
    topics: tuple[str, ...],
    beginning: Beginning,
    until: Until,
    seconds: float | None,
) -> None:
    """Copy topics of the log that SETTINGS name into RECORDING, the file of an embedded log.

    Offsets, gaps, keys, values, headers and times stay as they are. The log is only read: no group is joined and
    nothing committed. RECORDING may be there: then it is gone on with where it ends. SIGINT or SIGTERM ends it
    early, with what is there by then.
    """
    if seconds is not None:
        if until != Until():
            raise click.UsageError("expected --until or --for, got both; leave one out")
        until = Until(follows=True)
    elif beginning == "latest":
        raise click.UsageError(
            "expected --for SECONDS with --from latest, as there is nothing behind the end yet; say how long"
        )
    settings = read_settings(settings_file)
    logs.configure("warning", "auto", sys.stderr)
    names = list(dict.fromkeys(topics)) or list(settings.routes)
    embedded = settings.log.embedded
    if embedded is not None and recording.exists() and embedded.exists() and recording.samefile(embedded):
        fail(f"{recording}: is the log itself; name another file for the recording")
    with clear_errors(), until_signalled() as stopped:

        def pulse() -> None:
            if stopped():
                raise LogError("stopped while no broker answered; the recording holds what was read before")

        with ExitStack() as stack:
            log = stack.enter_context(open_log(settings, pulse, role="-record"))
            counts = partitions_of(log, names)
            target = stack.enter_context(EmbeddedLog(recording))
            held = target.topics()
            stretches = plan(log, target, counts, beginning, until)
            _show_plan(log, counts, held)
            deadline = None if seconds is None else time.monotonic() + seconds
            done = _record(log, target, stretches, until, deadline, stopped)
            changes = _record_marks(log, target, settings, stretches)
            _record_schemas(target, settings, names, stopped)
    click.echo(f"recorded {_count(done.records, 'record')} of {', '.join(map(topic_word, names))} to {recording}")
    if stopped():
        click.echo("stopped before its end; the same command goes on with it")
    elif set(names) == set(settings.routes):
        quoted = shlex.join([*([] if changes else [str(settings_file)]), str(recording)])
        click.echo(f"next: anabranch replay {quoted} OUTPUT")


@dataclass
class _Done:
    """What has been done so far."""

    records: int = 0
    offsets: int = 0


def _record(
    log: Log,
    target: EmbeddedLog,
    stretches: Mapping[TopicPartition, Stretch],
    until: Until,
    deadline: float | None,
    stopped: Callable[[], bool],
) -> _Done:
    total = None if until.follows else sum(max(0, end - start) for start, end in stretches.values())
    done, dry = _Done(), _Dry(until)

    def stop() -> bool:
        return stopped() or (deadline is not None and time.monotonic() >= deadline)

    with closing(log.reader()) as reader, _progress(total) as advance:
        at = {source: start for source, (start, _) in stretches.items()}
        for batches, remaining in copy(reader, target, stretches, until, stop):
            for records in batches:
                done.records += len(records.keys)
                done.offsets += records.next_offset - at[records.source]
                at[records.source] = records.next_offset
            dry.look(batches, remaining)
            advance(done)
    return done


def _record_marks(log: Log, target: EmbeddedLog, settings: Settings, sources: Collection[TopicPartition]) -> int:
    """Keep which settings held where and which records the worker passed by, so that a replay does as it did.

    Return how often settings changed.
    """
    skips = changes = 0
    for source in sources:
        if source.topic in settings.routes:
            count = sum(each.topic == source.topic for each in sources)
            copied = copy_marks(log, target, settings, source, count)
            skips += copied.skips
            changes += max(0, copied.epochs - 1)
    if changes:
        click.echo(f"{_count(changes, 'change')} of settings; a replay without settings follows them", err=True)
    if skips:
        click.echo(f"{_count(skips, 'record')} passed by (on_defect: quarantine); a replay does so too", err=True)
    return changes


def _record_schemas(
    target: EmbeddedLog, settings: Settings, topics: Collection[str], stopped: Callable[[], bool]
) -> None:
    """Keep the schemas that the inputs are written with, so that a replay needs no registry."""
    for topic in topics:
        if settings.topic(topic).format not in WITH_SCHEMAS or settings.registry is None:
            continue
        from worker.formats.kept import keep, lacking_schemas
        from worker.formats.registry import Registry
        from worker.formats.schemas import Schemas

        lacking = lacking_schemas(target, topic)
        schemas = Schemas(
            Registry(settings.registry).fetch, notify=lambda sentence: click.echo(sentence, err=True)
        )
        while not schemas.has(lacking):
            if stopped():
                raise LogError(
                    f"stopped while {_count(len(lacking), 'schema')} of {topic_word(topic)} were waited for; the "
                    "same command fetches them"
                )
        if lacking:
            keep(target, topic, {number: schemas[number] for number in lacking})


class _Dry:
    """Tells once, each time that nothing comes for a while, why that may be."""

    def __init__(self, until: Until) -> None:
        self._until = until
        self._since = time.monotonic()
        self._notified = False

    def look(self, batches: list[Records], remaining: Mapping[TopicPartition, int]) -> None:
        now = time.monotonic()
        if batches:
            self._since, self._notified = now, False
        elif not self._notified and not self._until.follows and now - self._since >= _DRY_SECONDS:
            self._notified = True
            where = ", ".join(
                f"{topic_word(topic)}/{number} offset {offset}" for (topic, number), offset in remaining.items()
            )
            click.echo(
                f"waiting at {where}: a transaction is open there, or no broker answers; Ctrl-C ends the "
                "recording with what is there",
                err=True,
            )


def _show_plan(log: Log, topics: Mapping[str, int], held: Mapping[str, int]) -> None:
    for topic, count in topics.items():
        how = "goes on where the recording ends" if topic in held else "new in the recording"
        compacted = "; it is compacted, records that others have replaced may be gone"
        more = compacted if log.is_compacted(topic) else ""
        click.echo(f"{topic_word(topic)}: {_count(count, 'partition')}, {how}{more}", err=True)


@contextmanager
def _progress(total: int | None) -> Iterator[Callable[[_Done], None]]:
    """Show how far it has come: a bar on a terminal, else a line now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(total).notify
        return
    columns = (
        TextColumn("{task.fields[records]:,} records"),
        BarColumn() if total is not None else SpinnerColumn(),
        TimeRemainingColumn() if total is not None else TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, records=0)
        yield lambda done: progress.update(task, completed=done.offsets, records=done.records)


class _Lines:
    """Progress where nobody watches."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._notified = time.monotonic()

    def notify(self, done: _Done) -> None:
        now = time.monotonic()
        if now - self._notified >= _NOTIFY_SECONDS:
            self._notified = now
            share = f", {done.offsets / self._total:.0%} of what there is" if self._total else ""
            click.echo(f"{_count(done.records, 'record')} so far{share}", err=True)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
