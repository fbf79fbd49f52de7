"""Kernels are there before the group is joined, when no heartbeat can be missed.

What is kept is loaded. What is not is compiled first, by a process of its own: the hundred megabytes that
compiling takes end with it, and a signal can end it at once. Where nothing can be kept, such a process could hand
nothing over.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module

from algorithms.core.cache import NotKeptError, kept_only, written_folder
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

    Where it could not keep them, or fails, they are compiled here; the cache warns of the first.
    """
    if not _can_keep():
        _load(settings)
        return
    with subprocess.Popen([sys.executable, "-c", _COMPILE], stdin=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        # Nothing else of the settings is told: there may be secrets in them.
        pending = {
            name: {"pending": topic.pending.told()} for name, topic in settings.topics.items() if topic.pending
        }
        told = {
            "settings": settings.model_dump(mode="json", include={"models", "bounds"}) | {"topics": pending},
            "kinds": _homes(settings),
        }
        child.stdin.write(json.dumps(told))
        child.stdin.close()
        while child.poll() is None:
            if stop():
                child.kill()
                return
            time.sleep(_LOOK_SECONDS)
    _load(settings)


def _can_keep() -> bool:
    folder = written_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def compile_for(told: str) -> None:
    """Compile the kernels of models; the entry of the other process."""
    parts = json.loads(told)
    for module in parts["kinds"]:
        import_module(module)
    _load(Settings.model_validate_json(json.dumps(parts["settings"] | {"log": {"embedded": "unused"}})))


def _homes(settings: Settings) -> list[str]:
    """Return the modules of the models' settings: to import one is to register its kind, as it was here."""
    return sorted({type(model).__module__ for model in settings.models.values()})


def _load(settings: Settings) -> None:
    for topic in settings.routes:
        Pipeline(TopicPartition(topic, 0), settings, time.monotonic).warm_up()
    load_ahead()


def freeze() -> None:
    """Let the collector of garbage pass by all that is there by now, until `thaw`.

    To look through what the compiler and the client brought takes 80 ms, for which the loop would stop each time.
    """
    gc.collect()
    gc.freeze()


def thaw() -> None:
    """Let the collector look through everything again: clients of a worker that has ended are garbage."""
    gc.unfreeze()
