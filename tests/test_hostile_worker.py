"""Bad events through a whole worker: each one becomes a dead letter, and nothing else happens."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest
from prometheus_client import CollectorRegistry

from tests.hostile import HOSTILE, HOSTILE_ROWS, TIMESTAMP, batch
from tests.model_contents import Instance, model_contents
from worker.codec import DeadLetter, Output, Prediction, Reason, Split, Tree, decode_output
from worker.codec.event import encode_batch, encode_event
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition
from worker.loop import Worker
from worker.metrics import Metrics
from worker.models import Model
from worker.reporter import Reporter
from worker.settings import Settings
from worker.status import Status, StatusBoard

KEY = b"k"
IDS: dict[str, Any] = {"kind": "split", "input": "in", "classes": [0, 1], "features": "ids"}
NAMES: dict[str, Any] = {"kind": "split", "input": "in", "classes": ["ham", "spam"], "features": "names"}

Event = tuple[bytes | None, bytes | None]  # key, value


def _settings(model: dict[str, Any], **bounds: int) -> Settings:
    settings: dict[str, Any] = {"log": {"embedded": "unused.db"}, "models": {"m": model}, "bounds": bounds}
    return Settings.model_validate_json(msgpack_to_json(settings))


def msgpack_to_json(settings: dict[str, Any]) -> str:
    raise NotImplementedError
