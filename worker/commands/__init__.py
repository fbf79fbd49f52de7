"""The command line: one file a command, put together here."""

from __future__ import annotations

import click

from worker.commands.bench import bench
from worker.commands.compile import compile_kernels
from worker.commands.demo import demo
from worker.commands.dev_kafka import dev_kafka
from worker.commands.publish import publish
from worker.commands.record import record
from worker.commands.replay import replay
from worker.commands.run import run
from worker.commands.show import show
from worker.commands.topics import topics
from worker.commands.validate import validate


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="anabranch")
def main() -> None:
    """Decision-tree splits that learn from, and forget, sparse event streams."""


for command in (demo, run, publish, topics, show, record, replay, validate, dev_kafka, bench, compile_kernels):
    main.add_command(command)
