"""Makes a wheel that brings compiled kernels one of this machine's platform and Python: `make wheel`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Without a folder of kernels the wheel is for every platform, and kernels are compiled by its users."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Tell the builder what is in the wheel."""
        if version == "standard" and (Path(self.root) / "algorithms" / "kernels").is_dir():
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
