"""What is refused is said: in the log, on the page, at the end of a run, and where results are looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.about import ABOUT
from worker.codec.event import encode_event
from worker.codec.reasons import Reason
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition
from worker.views.status_html import status_page
from worker.watching.status import RefusalStatus, Status
from worker.watching.tally import Refused, Refuser, Tally

SETTINGS: dict[str, Any] = {
    "log": {"embedded": "events.db"},
    "models": {"spam": {"kind": "split", "input": "sms", "classes": ["ham", "spam"], "features": "names"}},
    "metrics": {"port": None},
    "logging": {"format": "json"},
}


def _events(folder: Path, values: list[bytes]) -> Path:
    with EmbeddedLog(folder / "events.db") as log:
        log.create_topic("sms", 1)
        log.append([OutRecord("sms", 0, b"k", value, (), 1_700_000_000_000) for value in values])
    path = folder / "worker.yaml"
    path.write_text(yaml.safe_dump(SETTINGS))
    return path


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


GOOD = encode_event(["win"], "spam")
UNKNOWN = encode_event(["win"], "secret")


def test_a_run_in_which_all_was_refused(tmp_path: Path) -> None:
    """It ends with code 1, a table, and a message with a command that shows why; the log has reasons, no data."""
    settings = _events(tmp_path, [UNKNOWN] * 3 + [b"\xc1"])
    result = _run("run", settings, "--until-end")
    assert result.exit_code == 1
    assert "sms: 4 records" in result.stdout
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "spam unknown-class 3 sms/0 offset 0" in lines
    assert "the decoder malformed 1 sms/0 offset 3" in lines
    advice = f"anabranch show {settings} --topic sms.dead"
    assert "expected events that a model takes, all that came were refused; see why: " + advice in result.stderr
    warnings = [json.loads(line) for line in result.stderr.splitlines() if '"warning"' in line]
    assert [(each["reason"], each["events"], each["last_offset"]) for each in warnings] == [
        ("malformed", 1, 3),
        ("unknown-class", 3, 2),
    ]
    assert "secret" not in result.output
    assert "unknown-class" in _run(*advice.split()[1:]).stdout


def test_a_run_in_which_some_was_refused(tmp_path: Path) -> None:
    """It ends with code 0, and says what was refused and how to see it; another has nothing to read."""
    settings = _events(tmp_path, [GOOD, UNKNOWN])
    result = _run("run", settings, "--until-end")
    assert result.exit_code == 0, result.output
    assert f"see them: anabranch show {settings} --topic sms.dead" in result.stdout
    assert "spam 1 0 0 1 0 -" in [" ".join(line.split()) for line in result.stdout.splitlines()]
    again = _run("run", settings, "--until-end")
    assert (again.exit_code, again.stdout) == (
        0,
        "nothing to read: the group 'anabranch' has read all that there is\n",
    )


@pytest.mark.parametrize("by", ["worker.yaml", "events.db"])
def test_an_empty_output_tells_of_the_dead_letters(tmp_path: Path, by: str) -> None:
    """Who looks for results and finds none reads how many dead letters there are, and the first of them."""
    settings = _events(tmp_path, [UNKNOWN] * 3)
    _run("run", settings, "--until-end")
    shown = _run("show", tmp_path / by, "--topic", "sms.out").stdout
    assert "no such records in sms.out" in shown
    assert "sms.dead has 3, the first:\nunknown-class" in shown
    assert f"all of them: anabranch show {tmp_path / by} --topic sms.dead\n" in shown


def test_warnings_are_limited() -> None:
    """The first refusal is told at once, those of the next ten seconds together."""
    tally = Tally()
    refuser = Refuser("sms", "", Reason.MALFORMED)
    place = (TopicPartition("sms", 0), 0, 0)
    refused = tally.refused[refuser] = Refused(place, place, events=1)

    def told(now: float, **more: bool) -> list[int]:
        return [events for _, _, events in tally.untold(now, **more)]

    assert told(0.0) == [1]
    refused.events += 5
    assert told(9.9) == []
    assert told(10.0) == [5]
    assert told(30.0) == []
    refused.events += 1
    assert told(11.0) == []
    assert told(11.0, all_of_it=True) == [1]


def test_the_page_tells_of_refusals() -> None:
    """A row for each reason, with where it was last; a line where nothing was refused."""
    refusal = RefusalStatus("sms", "", "malformed", 1_234, "0/77")
    page = status_page(Status(0.0, refusals=(refusal,)), {}, 0.0, ABOUT)
    assert "<td>sms</td><td>the decoder</td><td>malformed</td><td>1,234</td><td>0/77</td>" in page
    assert "Nothing was refused." in status_page(Status(0.0), {}, 0.0, ABOUT)


def test_a_run_ends_with_accuracies_beside_what_costs_nothing(tmp_path: Path) -> None:
    """Of evaluated models, it and `show` say what the most frequent and the last label would have been."""
    labels = ["ham", "spam", "spam", "spam", "ham", "spam"]
    settings = _events(tmp_path, [encode_event(["win"], label) for label in labels])
    evaluate = {"window": 3, "emit": {"every": 6}}
    tree = {
        "kind": "tree",
        "policy": "periodic",
        "input": "sms",
        "classes": ["ham", "spam"],
        "features": "names",
        "evaluate": evaluate,
    }
    both = {"models": SETTINGS["models"] | {"tree": tree}}
    settings.write_text(yaml.safe_dump(SETTINGS | both))
    result = _run("run", settings, "--until-end")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "beside always saying the key's most frequent label, or its last one" in lines
    assert "model accuracy majority no change kappa M kappa temporal" in lines
    # Right are, of six: majority 4th and 6th, no change 3rd and 4th; a tree without a split says the majority.
    assert [line for line in lines if line.startswith("tree 0")] == ["tree 0.3333 0.3333 0.3333 0.0000 0.0000"]
    shown = [" ".join(line.split()) for line in _run("show", settings, "--topic", "sms.out").stdout.splitlines()]
    assert "tree last 3 0.6667 0.6667 0.3333 0.0000 0.5000" in shown
    assert "tree all 6 0.3333 0.3333 0.3333 0.0000 0.0000" in shown


def test_a_rise_of_the_error_is_shown(tmp_path: Path) -> None:
    """`show` lists where the error rose, from what to what."""
    labels = ["ham", *["spam"] * 500, *["ham", "spam"] * 80]
    settings = _events(tmp_path, [encode_event(["win"], label) for label in labels])
    tree = {"kind": "tree", "policy": "periodic", "input": "sms", "classes": ["ham", "spam"], "features": "names"}
    models = {"tree": tree | {"evaluate": {"emit": "never"}, "emit": {"splits": "never"}}}
    settings.write_text(yaml.safe_dump(SETTINGS | {"models": models}))
    assert _run("run", settings, "--until-end").exit_code == 0
    lines = [" ".join(line.split()) for line in _run("show", settings, "--topic", "sms.out").stdout.splitlines()]
    assert "drift: the error has risen" in lines
    assert "model error before since over examples offset" in lines
    [first, *_] = [line.split() for line in lines if line.startswith("tree ")]
    before, after, width, examples = float(first[1]), float(first[2]), int(first[3]), int(first[4])
    assert before < 0.05 < after < 0.6
    assert width < 500 < examples
    assert first[5] == f"0/{examples - 1}"
