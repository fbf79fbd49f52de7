"""The README's examples, run as a newcomer would paste them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.places import ROOT
from worker.commands import main


def _text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def _blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", _text(page), re.MULTILINE | re.DOTALL)


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, an event by hand, a published file, run, show and replay work as the pages say."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANABRANCH_METRICS__PORT", "null")
    settings, more = _blocks("yaml")
    (library,) = _blocks("python")
    by_hand = _blocks("python", "worker/README.md")[0]
    Path("worker.yaml").write_text(settings)
    Path("messages.tsv").write_text("ham\tsee you soon\nspam\twin a prize\n")
    assert "good" in _run("validate", "worker.yaml")
    exec(compile(by_hand, "worker/README.md", "exec"), {})
    Path("clicks.csv").write_text("clicked,page,seconds\n1,home,2.5\n0,help,70\n")
    init = next(line for line in _text("README.md").splitlines() if line.startswith("anabranch init"))
    assert "anabranch publish clicks.csv" in _run(*init.split()[1:], "--output", "init.yaml")
    publish = next(line for line in _text("README.md").splitlines() if line.startswith("anabranch publish"))
    _run(*publish.split()[1:])
    Path("new.txt").write_text("see a prize\n")
    Path("wrong.tsv").write_text("ham\tsee you soon\n")
    for command in re.findall(r"^anabranch (publish (?:new|wrong).*?)  +#", _text("README.md"), re.MULTILINE):
        assert "1 event to sms" in _run(*command.split())
    _run("run", "worker.yaml", "--until-end")
    shown = _run("show", "events.db", "--topic", "sms.out")
    assert "everyone" in shown
    assert "predictions" in shown
    assert "no such records" in _run("show", "events.db", "--topic", "sms.dead")
    _run("replay", "worker.yaml", "events.db", "out.db")
    assert "the results equal" in _run("replay", "worker.yaml", "events.db", "again.db", "--expect", "out.db")
    exec(compile(library, "README.md", "exec"), {})
    Path("worker.yaml").write_text(settings + more)
    said = _run("validate", "worker.yaml")
    assert "tree: tree (exact, entropy, 2 classes) sms -> sms.out" in said
    assert "recent: dynamic-tree (epsilon 0.1, gini, 2 classes, last 1000 examples) sms -> sms.out" in said
    _run("replay", "worker.yaml", "events.db", "more.db")


@pytest.mark.parametrize("page", ["trees", "dynamic", "regression", "estimators"])
def test_pages_of_the_library(page: str) -> None:
    """The example that each page begins with runs."""
    example = re.findall(
        r"^```python\n(.*?)^```", _text(f"algorithms/{page}/README.md"), re.MULTILINE | re.DOTALL
    )[0]
    exec(compile(example, "README.md", "exec"), {})


def test_settings_in_deploy(tmp_path: Path) -> None:
    """The settings file that explains every setting is right, with the tree that is commented out as well."""
    assert "good" in _run("validate", str(ROOT / "deploy" / "worker.yaml"))
    text = _text("deploy/worker.yaml")
    (tree,) = re.findall(r"^(  # tree:\n(?:  #  .*\n)*)", text, re.MULTILINE)
    (tmp_path / "worker.yaml").write_text(text.replace(tree, re.sub("^  # ", "  ", tree, flags=re.MULTILINE)))
    assert "tree: tree (imac, entropy, 2 classes)" in _run("validate", str(tmp_path / "worker.yaml"))
