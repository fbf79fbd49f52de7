"""What a start would keep, learn and drop, beside what a group holds: `anabranch validate --against`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from worker.commands.common import clear_errors, fail, open_log
from worker.epochs import Fate
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError, TopicPartition
from worker.recordings.epochs import groups_of
from worker.restore import Expected, Outlook, foresee
from worker.settings import Settings, fingerprint
from worker.views.words import model_word, topic_word
from worker.watching import logs

_READ_SECONDS = 120.0  # without progress
_RATE = 20_000  # records a second; a worker that does nothing else learns as many small events with many keys

_TOLD: dict[Fate, str] = {
    "kept": "kept",
    "retimed": "kept; what it writes, and when, changes from here on",
    "added": "new",
    "changed": "changed: begins anew, what it has learned goes",
    "begun anew": "begins anew",
    "removed": "removed: what it has learned goes",
}


def compare(settings: Settings, against: str) -> None:
    """Tell of each model what a start would do; against a group, or the one in a recording or a log's file."""
    logs.configure("warning", "auto", sys.stderr)
    with clear_errors():
        _compare(settings, against)


def _compare(settings: Settings, against: str) -> None:
    if not Path(against).is_file():
        settings = settings.model_copy(update={"group": against})
        with open_log(settings, lambda: None, role="-validate") as log:
            _foretell(log, settings)
        return
    with EmbeddedLog(against, create=False) as kept:
        groups = groups_of(kept)
    group = groups.pop() if len(groups) == 1 else settings.group
    with EmbeddedLog(against, group=group, create=False) as kept:
        _foretell(kept, settings.model_copy(update={"group": group}))


def _foretell(log: Log, settings: Settings) -> None:
    """Tell what a start would do, topic by topic; end with code 1 where it would refuse."""
    refusals = []
    for topic in settings.routes:
        count = log.partitions(topic) or 0
        outlooks = []
        for number in range(count):
            expected = Expected(settings, fingerprint(settings), count)
            try:
                outlooks.append(
                    foresee(log, TopicPartition(topic, number), expected, time.monotonic, _READ_SECONDS)
                )
            except LogError as error:
                refusals.append(str(error))
        for line in _lines(topic, outlooks, settings):
            click.echo(line)
    if refusals:
        fail("\n".join(refusals))


def _lines(topic: str, outlooks: Sequence[Outlook], settings: Settings) -> Iterator[str]:
    begun = [each for each in outlooks if each.committed is not None]
    if not begun:
        yield f"{topic_word(topic)}, group {settings.group}: nothing is committed, all models are new"
        return
    unread = sum(each.bounds.high - (each.committed or 0) for each in begun)
    yield f"{topic_word(topic)}, group {settings.group}: partitions {len(begun)}, offsets still to read {unread:,}"
    changes = [each.change for each in begun if each.change is not None]
    if not changes:
        yield "  all models: kept"
    for name in dict.fromkeys(name for change in changes for name in change.models):
        yield f"  {model_word(name)}: {_fate(name, begun)}"
    if any(change.bounds for change in changes):
        yield "  bounds: others from here on"
    if any(change.pending for change in changes):
        pending = settings.topic(topic).pending
        yield (
            "  pending: others from here on" if pending is not None else "  pending: what waits for its label goes"
        )
    if again := sum(max(each.learns.values(), default=0) for each in begun):
        yield f"  read again before results go on: {again:,} offsets, at {_RATE:,} a second {_duration(again)}"


def _fate(name: str, outlooks: Sequence[Outlook]) -> str:
    """Return what becomes of a model, and in how many partitions where it is not in all of them."""
    fates: list[Fate] = [
        each.change.models[name] for each in outlooks if each.change and name in each.change.models
    ]
    fate: Fate = next((each for each in fates if each != "kept"), "kept")
    told = _TOLD[fate]
    if fate in ("added", "changed", "begun anew"):
        learns = sum(each.learns.get(name, 0) for each in outlooks)
        told += f"; learns {learns:,} offsets silently" if learns else "; begins at the committed offset"
    some = fates.count(fate)
    return told if fate == "kept" or some == len(outlooks) else f"{told} (partitions: {some})"


def _duration(offsets: int) -> str:
    seconds = offsets / _RATE
    if seconds < 120:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60):,} min" if seconds < 7_200 else f"about {round(seconds / 3_600):,} h"
