"""Kustomize in tests: the program, and what it makes of a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from worker.broker.cached import cache_base, cached_folder

_MODULE = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"
_BUILDING = 540.0  # s, the first time: it is some 100,000 lines of Go


class KustomizeUnavailable(Exception):
    """Kustomize is not here and cannot be built."""


class Kustomize(NamedTuple):
    """The program, with the words that come before a folder."""

    command: tuple[str, ...]

    def build(self, folder: Path) -> list[dict[str, Any]]:
        """Return the manifests that a folder with a kustomization stands for."""
        done = subprocess.run([*self.command, str(folder)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not done.stderr, "it warns of what will not work for long"
        return list(yaml.safe_load_all(done.stdout))


def find_kustomize() -> Kustomize:
    """Return Kustomize or kubectl of PATH, else what Go builds in the cache folder once.

    Any number of processes may call it at a time.

    Raises
    ------
    KustomizeUnavailable
        Neither is on PATH, and Go is missing or fails.
    """
    for command in (("kustomize", "build"), ("kubectl", "kustomize")):
        if shutil.which(command[0]) is not None:
            return Kustomize(command)
    return Kustomize((str(cached_folder(cache_base() / "kustomize", _build) / "kustomize"), "build"))


def _build(scratch: Path) -> Path:
    if shutil.which("go") is None:
        raise KustomizeUnavailable("expected kustomize or kubectl on PATH, or Go to build it; install one")
    environ = os.environ | {"GOBIN": str(scratch / "bin"), "GOFLAGS": ""}
    try:
        done = subprocess.run(
            ["go", "install", _MODULE],
            cwd=scratch,
            env=environ,
            capture_output=True,
            text=True,
            timeout=_BUILDING,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise KustomizeUnavailable(f"expected Go to be done within {_BUILDING:.0f} s; try again") from error
    if done.returncode:
        raise KustomizeUnavailable(f"expected Go to build {_MODULE}, it said:\n{done.stderr[-1_000:]}")
    return scratch / "bin"
