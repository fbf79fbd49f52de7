"""Kernels are there before the group is joined, when no heartbeat can be missed.

What is kept is loaded. What is not is compiled first, by a process of its own: the hundred megabytes that
compiling takes end with it, and a signal can end it at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

from algorithms.core.cache import NotKeptError, kept_only
from algorithms.core.jit import load_ahead
from worker.log.port import TopicPartition
from worker.pipeline import Pipeline
from worker.settings import Settings

_LOOK_SECONDS = 0.1  # between two looks at the child and at signals
_COMPILE = "import sys; from worker.warming import compile_for; compile_for(sys.stdin.read())"


def are_kept(settings: Settings) -> bool:
    """Load the kernels of all models; return whether they were all kept."""
    try:
        with kept_only():
            _load(settings)
    except NotKeptError:
        return False
    return True


def compiled_for() -> str:
    """Return what processor kernels are compiled for, and whether that is since this one is below the baseline."""
    from algorithms.core import target

    name, below = target.processor().name, target.above()
    return f"{name}, which is below {below}" if below else name


def compile_apart(settings: Settings, stop: Callable[[], bool]) -> None:
    """Compile the kernels of all models in another process, then load them; return early where `stop` says so.

    Where that process cannot keep them, or fails, they are compiled here.
    """
    with subprocess.Popen([sys.executable, "-c", _COMPILE], stdin=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        # Nothing else of the settings is told: there may be secrets in them.
        child.stdin.write(settings.model_dump_json(include={"models", "bounds"}))
        child.stdin.close()
        while child.poll() is None:
            if stop():
                child.kill()
                return
            time.sleep(_LOOK_SECONDS)
    _load(settings)


def compile_for(told: str) -> None:
    """Compile the kernels of models; the entry of the other process."""
    _load(Settings.model_validate_json(json.dumps(json.loads(told) | {"log": {"embedded": "unused"}})))


def _load(settings: Settings) -> None:
    for topic in settings.routes:
        Pipeline(TopicPartition(topic, 0), settings, time.monotonic).warm_up()
    load_ahead()
