"""The demo's events: the SMS Spam Collection, with privacy requests, a corrected label and a few mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from worker.codec.event import encode_event
from worker.data import sms_spam
from worker.log.port import OutRecord
from worker.settings import LogSettings, MetricsSettings, Settings
from worker.settings.models import EmitSettings, EvaluateSettings, SplitSettings, TreeEmitSettings, TreeSettings
from worker.settings.values import Cadence
from worker.sources.words import words

TOPIC = "sms"
KEY = b"everyone"
CLASSES = ("ham", "spam")
_START = 1_300_000_000_000  # ms; one message a minute from here, so that every run is the same
_MINUTE = 60_000
_FORGOTTEN = 500  # senders who ask to be forgotten
_QUESTIONS = (
    "Free entry! Call now to claim your prize",
    "Ok, I'll be home in ten minutes",
)


def settings(log: Path, port: int | None) -> Settings:
    """Return the demo's settings: the word that best tells spam from ham, and a tree that predicts each."""
    word = SplitSettings(
        kind="split",
        input=TOPIC,
        classes=CLASSES,
        features="names",
        on_duplicate="replace",
        emit=EmitSettings(splits=Cadence("change"), snapshots=Cadence("every", 50)),
    )
    tree = TreeSettings(
        kind="tree",
        input=TOPIC,
        classes=CLASSES,
        features="names",
        policy="exact",
        predict="naive_bayes",
        split_confidence=1e-3,
        on_delete="ignore",
        evaluate=EvaluateSettings(),
        emit=TreeEmitSettings(snapshots=Cadence("change")),
    )
    return Settings(
        log=LogSettings(embedded=log),
        models={"word": word, "tree": tree},
        metrics=MetricsSettings(port=port),
    )


def records() -> Iterator[OutRecord]:
    """Yield the events in order: the messages, then deletes, a correction, two mistakes and two questions."""
    time = _START
    messages = list(sms_spam())

    def record(*event: Any, **fields: Any) -> OutRecord:
        nonlocal time
        time += _MINUTE
        return OutRecord(TOPIC, 0, KEY, encode_event(*event, **fields), (), time)

    for number, (label, text) in enumerate(messages):
        yield record(text, label, id=number)
    for number in range(0, len(messages), len(messages) // _FORGOTTEN):
        yield record(op="delete", id=number)
    yield record(messages[1][1], "spam", id=1)  # a corrected label: replaces the first
    yield record(messages[1][1], "ham", id=1)
    yield record(["free", "prize"], "unsure")  # no class of the model
    yield record(op="delete", id="nobody")
    for question in _QUESTIONS:
        yield record(words(question), op="predict", id=question)
