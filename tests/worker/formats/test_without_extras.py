"""Without the packages of the extras, all but their formats works."""

from __future__ import annotations

import subprocess
import sys

_ABSENT = (
    "fastavro",
    "google.protobuf",
    "grpc_tools",
    "httpx2",
    "httpx",
    "authlib",
    "cachetools",
    "attrs",
    "attr",
)

_PROGRAM = f"""
import sys
for name in {_ABSENT!r}:
    sys.modules[name] = None
import worker.commands, worker.loop, worker.formats.kept
from worker.codec import Bounds
from worker.formats import NO_SCHEMAS, reader_of
from worker.formats.registry import Registry
from worker.log.port import LogError
from worker.settings.topics import RegistrySettings, TopicSettings
assert reader_of(TopicSettings(format="json"), NO_SCHEMAS).read([b'{{"x": [1], "y": 1}}'], Bounds())
try:
    Registry(RegistrySettings(url="http://127.0.0.1:9"))
except LogError as error:
    print(error)
"""


def test_json_needs_no_extra_and_a_registry_says_what_it_needs() -> None:
    """The worker starts, JSON is read, and the client of registries names what to install."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'anabranch[avro]' or 'anabranch[protobuf]'" in done.stdout
