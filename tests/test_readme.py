"""The README's blocks, run in their order in one folder, as a newcomer would paste them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.places import ROOT
from worker.commands import main

# The command is that of these sources; of make it is checked that it knows the target.
PRELUDE = """
set -euo pipefail
anabranch() { "$PYTHON" -c 'from worker.commands import main; main()' "$@"; }
make() { grep -q "^$1:" "$ROOT/Makefile"; }
"""


def _text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def _blocks(page: str) -> list[tuple[str, str]]:
    """Return language and text of each block of a page, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```", _text(page), re.MULTILINE | re.DOTALL)


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


class Folder:
    """Where a newcomer pastes blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "worker").mkdir()
        shutil.copytree(ROOT / "worker" / "data", path / "worker" / "data")
        # The reader's own file, which no page can bring.
        (path / "clicks.csv").write_text("clicked,page,seconds\n1,home,2.5\n0,help,70\n1,home,3\n")

    def paste(self, language: str, block: str) -> str:
        """Run a block and return what it said, less what goes to standard error."""
        program = ["bash", "-c", PRELUDE + block] if language == "sh" else [sys.executable, "-c", block]
        environment = os.environ | {"PYTHON": sys.executable, "ROOT": str(ROOT), "PYTHONPATH": str(ROOT)}
        environment |= {"COLUMNS": "100", "ANABRANCH_METRICS__PORT": "null"}
        done = subprocess.run(program, cwd=self.path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.mark.slow
def test_every_block_in_order(tmp_path: Path) -> None:
    """Each command works behind those before it; the event by hand and the file use one key; the tree is good."""
    folder = Folder(tmp_path)
    by_hand = next(block for block in _blocks("worker/README.md") if block[0] == "python")
    said = ""
    for language, block in _blocks("README.md"):
        if language == "text" or "kafka.yaml" in block:  # those for Kafka: test_kafka_commands.py
            continue
        if "anabranch run worker.yaml" in block:  # an event by hand is one more of the same key
            folder.paste(*by_hand)
        said += folder.paste(language, block)
    assert "anabranch publish clicks.csv --to worker.yaml" in said
    assert "worker.yaml: good" in said
    assert re.search(r"\n spam +5,576 +1 +1 +0 +", said)  # inserts, deletes, predicts, refused
    accuracy, majority = map(float, re.findall(r"\n tree +(\d\.\d+) +(\d\.\d+) +\d\.\d+ +0\.[3-9]\d+ ", said)[0])
    assert accuracy > 0.93 > 0.87 > majority
    assert "tree: tree of sms" in said
    assert "recent: tree of sms" in said
    assert re.search(r"recent: new; learns 5,5[78]\d offsets silently", said)
    assert "spam: kept" in said
    assert "the results equal" in said
    assert "everyone" not in said


@pytest.mark.slow
def test_results_of_the_demo(tmp_path: Path) -> None:
    """The demo ends with the lines that the page shows."""
    (shown,) = [block for language, block in _blocks("README.md") if language == "text"]
    result = CliRunner().invoke(main, ["demo"], env={"COLUMNS": "200", "TMPDIR": str(tmp_path)})
    assert result.exit_code == 0, result.output
    assert [line for line in shown.splitlines() if line not in result.output] == []


@pytest.mark.parametrize("page", ["trees", "dynamic", "mixed", "regression", "estimators"])
def test_pages_of_the_library(page: str) -> None:
    """The example that each page begins with runs."""
    example = next(block for language, block in _blocks(f"algorithms/{page}/README.md") if language == "python")
    exec(compile(example, "README.md", "exec"), {})


def test_settings_in_deploy(tmp_path: Path) -> None:
    """The settings file that explains every setting is right, with the tree that is commented out as well."""
    assert "good" in _run("validate", str(ROOT / "deploy" / "worker.yaml"))
    text = _text("deploy/worker.yaml")
    (tree,) = re.findall(r"^(  # tree:\n(?:  #  .*\n)*)", text, re.MULTILINE)
    (tmp_path / "worker.yaml").write_text(text.replace(tree, re.sub("^  # ", "  ", tree, flags=re.MULTILINE)))
    assert "tree: tree (imac, entropy, 2 classes)" in _run("validate", str(tmp_path / "worker.yaml"))
