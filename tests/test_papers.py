"""The page of the papers: its commands can be given, and its files are there (links: test_pages.py)."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from tests.support.places import ROOT
from worker.bench.datasets import SETS
from worker.bench.streams import load
from worker.bench.tables import PAPER_001
from worker.commands import main
from worker.sources.generators import generate

PAGE = (ROOT / "algorithms" / "PAPERS.md").read_text("utf-8")
COMMANDS = sorted(set(re.findall(r"`anabranch ([^`]+)`", PAGE)))


def parsed(command: str, folder: str) -> click.Context:
    """Return what is understood of a command, which is not run; raise ClickException where it is none."""
    context = main.make_context("anabranch", shlex.split(command.replace("FOLDER", folder)))
    while isinstance(context.command, click.Group):
        given = [*context._protected_args, *context.args]
        name, found, rest = context.command.resolve_command(context, given)
        assert name is not None
        assert found is not None
        context = found.make_context(name, rest, parent=context)
    return context


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_can_be_given(command: str, tmp_path: object) -> None:
    """Its name and all its options are known, and have values that they take."""
    assert parsed(command, str(tmp_path)).command.name in command.split()


def test_the_data_of_a_command_are_there() -> None:
    """Recorded sets, streams of the papers, or what a command makes."""
    named = {name for command in COMMANDS for name in re.findall(r"--data ([^F ]\S*)", command)}
    assert len(named) > 5
    for name in named:
        if name.startswith("rtg:"):
            assert generate(name).schema.classes == 25
        elif name.startswith("sparse:"):
            assert load(name).features > 1
        else:
            for each in name.split(","):
                assert each in SETS or each in PAPER_001 or each.startswith(("random:", "single:"))


@pytest.mark.parametrize(
    "command", ["bench figures", "bench splitter --figure 2", "bench trees --policies sometimes"]
)
def test_what_is_no_command_is_told(command: str, tmp_path: object) -> None:
    """A command that is renamed, or an option that is gone, is found."""
    with pytest.raises(click.ClickException):
        parsed(command, str(tmp_path))


def test_each_paper_has_sections_and_figures() -> None:
    """Five papers, each with a table of what is where and a table of what is reproduced by which command."""
    parts = PAGE.split("\n## Paper ")[1:]
    assert [part[:3] for part in parts] == ["000", "001", "002", "003", "004"]
    for part in parts:
        assert "| section | file |" in part
        assert "| table, figure | command |" in part
        for row in re.findall(r"^\|(?!---)(.+)\|$", part.split("| table, figure |")[1], re.MULTILINE):
            assert re.search(r"command|`anabranch bench |\| none ", row), row
