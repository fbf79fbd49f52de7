"""The command line: one file a command, imported when the command is used, so that each starts at once."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import click

COMMANDS = {  # what `anabranch --help` says of each, in the order of use
    "demo": "Learn from 5,574 text messages, forget some, and show what came of it.",
    "init": "Look at a file or a topic, and write settings that fit it and the commands to go on.",
    "validate": "Check a settings file; name what is wrong in it, and where.",
    "publish": "Turn a file, a generated stream or a recording into events of a topic.",
    "fit": "Build the greedy tree of a file or recording.",
    "run": "Consume the input topics and write results until SIGTERM or SIGINT.",
    "show": "Show what a log holds: splits, trees, predictions, evaluations, dead letters.",
    "topics": "Look at the topics that a worker reads and writes, and create them.",
    "record": "Copy topics of a log into a recording.",
    "replay": "Run models over a recording, and compare the results with others.",
    "state": "Look at what models hold of a key, and publish what makes them forget it.",
    "audit": "Prove that deleted examples are forgotten.",
    "dev-kafka": "Run real Apache Kafka for this machine alone until Ctrl-C.",
    "compile": "Compile kernels ahead, so that a first worker starts at once.",
    "bench": "Measure; every command prints JSON lines, with both sides of a comparison.",
}


@contextmanager
def _importing() -> Iterator[None]:
    """Import without what takes time and is of no use to what is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of NumPy: no command multiplies matrices
    collects = gc.isenabled()
    gc.disable()  # modules are no garbage, but are looked through as often as there are more of them
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Commands(click.Group):
    """The commands; a name `dev-kafka` is the function `dev_kafka` of the file `dev_kafka.py`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        with _importing():
            command: click.Command = getattr(import_module(f"worker.commands.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write what there is, without importing it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="anabranch")
def main() -> None:
    """Decision-tree splits that learn from, and forget, sparse event streams."""
