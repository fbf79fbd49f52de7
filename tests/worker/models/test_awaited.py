"""What settings name and events do not have: told once, after enough of them, and at the end of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from algorithms.core.names import Interner
from tests.support.workers import worker_on
from worker.codec.event import encode_event
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.models.awaited import Awaited
from worker.settings import load

SETTINGS = """\
log: {embedded: events.db}
models:
  weather:
    kind: tree
    policy: periodic
    input: days
    classes: [dry, wet, snow]
    features: names
    attributes: {numeric: [temperature, wind]}
metrics: null
"""


@given(
    st.lists(st.tuples(st.lists(st.integers(-1, 3), max_size=5), st.lists(st.integers(0, 6), max_size=5))),
    st.booleans(),
)
def test_what_is_missing_is_what_never_came(batches: list[tuple[list[int], list[int]]], complete: bool) -> None:
    """Any batches, in any order; numbers of attributes are ids, or those of names."""
    names = Interner()
    names.intern_all([b"other", b"a", b"b"])
    of_ids = Awaited(range(4), [2, 5], complete=complete)
    of_names = Awaited("pqrs", [b"a", b"b"], complete=complete)
    seen: tuple[set[int], set[int]] = (set(), set())
    for label, feature in batches:
        seen[0].update(label)
        seen[1].update(feature)
        of_ids.see(np.array(label, np.int32), np.array(feature, np.uint32), None)
        of_names.see(np.array(label, np.int32), np.array(feature, np.uint32), names)
    assert of_ids.missing == {f"class {k}" for k in {*range(4)} - seen[0]} | {
        f"attribute {each}" for each in {2, 5} - seen[1]
    }
    wanted = {name: names.find(name) for name in (b"a", b"b")}
    assert {each for each in of_names.missing if each.startswith("attribute")} == {
        f"attribute {name.decode()}" for name, number in wanted.items() if number not in seen[1]
    }
    assert of_ids.has_others == (complete and bool(seen[1] - {2, 5}))


def test_names_may_have_other_numbers_in_each_batch() -> None:
    """Where a pool keeps no number of a name, those of the batch count."""
    awaited = Awaited("pq", [b"a", b"b"], complete=True, kept=False)
    for numbers, feature, missing, has_others in (
        ([b"c", b"d"], [], {"a", "b"}, False),
        ([b"a"], [0], {"b"}, False),
        ([b"b"], [], {"b"}, False),
        ([b"a", b"c"], [0], {"b"}, False),
        ([b"c", b"b"], [1], set(), False),
        ([b"a", b"b", b"c"], [0, 1, 2], set(), True),
    ):
        names = Interner()
        names.intern_all(numbers)
        awaited.see(np.zeros(1, np.int32), np.array(feature, np.uint32), names)
        assert awaited.missing == {"class q", *(f"attribute {each}" for each in missing)}
        assert awaited.has_others == has_others


def _log(folder: Path, events: int, words: dict[str, float]) -> Path:
    path = folder / "events.db"
    with EmbeddedLog(path) as log:
        log.create_topic("days", 2)
        log.append(
            OutRecord(
                "days",
                at % 2,
                b"k",
                encode_event({"temperature": float(at), **words}, ("dry", "wet")[at % 2]),
                (),
                1,
            )
            for at in range(events)
        )
    (folder / "worker.yaml").write_text(SETTINGS)
    return path


@pytest.mark.parametrize("events", [9_999, 10_500])
def test_a_worker_says_so_once(tmp_path: Path, events: int) -> None:
    """The log names what settings name; a feature that comes is data, and is not named."""
    settings = load(_log(tmp_path, events, {"wnd": 1.0}).with_name("worker.yaml"), {})
    with EmbeddedLog(tmp_path / "events.db") as log, capture_logs() as lines:
        worker_on(log, settings).run(lambda: False, until_end=True)
    told = [line["awaited"] for line in lines if "settings and events differ" in line["event"]]
    said = (
        "no event had attribute wind, class snow; events had features that its attributes do not name, which are "
        "taken as binary"
    )
    assert told == [said] * (events > 10_000)
    assert not any("wnd" in str(line) for line in lines)


def test_the_last_words_of_a_run_say_so(tmp_path: Path) -> None:
    """However few events there were; a complete run has nothing to say."""
    _log(tmp_path, 20, {"wind": 3.0})
    told = CliRunner().invoke(main, ["run", str(tmp_path / "worker.yaml"), "--until-end"])
    assert told.exit_code == 0, told.output
    assert "weather: no event had class snow; compare the settings with the events\n" in told.output


def test_splits_of_two_classes_say_so(tmp_path: Path) -> None:
    """They have an index that knows binary features alone, and lists of these are compared all the same."""
    path = tmp_path / "worker.yaml"
    told = (
        SETTINGS.replace("kind: tree", "kind: split")
        .replace("    policy: periodic\n", "")
        .replace("days", "skies")
    )
    told = told.replace("[dry, wet, snow]", "[dry, wet]").replace(
        "numeric: [temperature, wind]", "binary: [rain, wind]"
    )
    path.write_text(told)
    with EmbeddedLog(tmp_path / "events.db") as log:
        log.create_topic("skies", 1)
        log.append(
            OutRecord("skies", 0, b"k", encode_event(["wind", *["fog"] * (at > 4)], ("dry", "wet")[at % 2]), (), 1)
            for at in range(9)
        )
    said = CliRunner().invoke(main, ["run", str(path), "--until-end"])
    assert said.exit_code == 0, said.output
    assert (
        "weather: no event had attribute rain; events had features that its attributes do not name, which are "
        "taken as binary; compare the settings with the events\n"
    ) in said.output
