"""Whole runs are a function of recording and settings: not of batches, saves, restarts or the day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.places import GOLDEN
from tests.support.recordings import (
    CLICKS,
    IN_PARTS,
    NUMBERS_KEPT,
    PARTITIONS,
    SETTINGS,
    WORDS,
    mixed,
    sample,
    understood,
    write,
)
from worker import demo
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition
from worker.models import KINDS

TOPICS = {WORDS: PARTITIONS, CLICKS: PARTITIONS}


def _replay(settings: Path, recording: Path, output: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["replay", str(settings), str(recording), str(output), *options])


@pytest.fixture(scope="module")
def sms(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Return settings, the recording of the demo's events, and what a replay of it in large batches gives."""
    folder = tmp_path_factory.mktemp("sms")
    settings, recording, output = folder / "sms.yaml", folder / "sms.db", folder / "expected.db"
    settings.write_text(
        """
log: {embedded: sms.db}
models:
  spam:
    kind: split
    input: sms
    classes: [ham, spam]
    features: names
    on_duplicate: replace
    emit: {splits: change, snapshots: {every: 50}}
"""
    )
    write(recording, demo.records(), {demo.TOPIC: 1})
    assert _replay(settings, recording, output, "--batch", "1000").exit_code == 0
    return settings, recording, output


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [["--batch", "1"], ["--batch", "7"], ["--restore-every", "3", "--batch", "500"], []], ids=" ".join
)
def test_sms_replay_is_the_same(sms: tuple[Path, Path, Path], tmp_path: Path, options: list[str]) -> None:
    """The SMS recording gives the same bytes in batches of 1, 7 and 1000, and with saves in the middle."""
    settings, recording, expected = sms
    result = _replay(settings, recording, tmp_path / "out.db", "--expect", str(expected), *options)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "options",
    [[], ["--batch", "1"], ["--batch", "7"], ["--batch", "1000"], ["--batch", "7", "--restore-every", "2"]],
    ids=" ".join,
)
def test_mixed_replay_gives_the_golden_bytes(tmp_path: Path, options: list[str]) -> None:
    """A recording of everything that may come gives the results kept in golden/, however it is batched."""
    output = tmp_path / "out.db"
    expect = ["--expect", str(GOLDEN / "mixed.out.db")]
    result = _replay(GOLDEN / "mixed.yaml", GOLDEN / "mixed.db", output, *expect, *options)
    assert result.exit_code == 0, result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "models"),
    [(kind, {topic: sample(kind, topic) for topic in TOPICS}) for kind in KINDS]
    + [("dynamic-tree", IN_PARTS), ("dynamic-tree", NUMBERS_KEPT)],
    ids=[*KINDS, "dynamic-tree in parts", "dynamic-tree of numbers with floors"],
)
def test_every_kind_replays_the_same(tmp_path: Path, kind: str, models: dict[str, dict[str, Any]]) -> None:
    """A model of each kind that is registered gives the same bytes however its input is batched and restored."""
    settings, recording, expected = (tmp_path / name for name in ("kind.yaml", "mixed.db", "expected.db"))
    settings.write_text(yaml.safe_dump({"log": {"embedded": "mixed.db"}, "models": models}, sort_keys=False))
    write(recording, understood(kind, mixed(300)), TOPICS)
    assert _replay(settings, recording, expected, "--batch", "1000").exit_code == 0
    with EmbeddedLog(expected) as log:
        inputs = sorted({model["input"] for model in models.values()})
        results = [TopicPartition(f"{topic}.out", number) for topic in inputs for number in range(PARTITIONS)]
        assert sum(log.watermarks(source).high for source in results) > 40
    for at, options in enumerate((["--batch", "1"], ["--batch", "7", "--restore-every", "2"])):
        output = tmp_path / f"{at}.db"
        result = _replay(settings, recording, output, "--expect", str(expected), *options)
        assert result.exit_code == 0, result.output


def test_golden_recording_is_what_its_generator_makes(tmp_path: Path) -> None:
    """The recording in golden/ can be made again."""
    write(tmp_path / "mixed.db", mixed(), TOPICS)
    assert (GOLDEN / "mixed.yaml").read_text() == SETTINGS
    with EmbeddedLog(tmp_path / "mixed.db") as made, EmbeddedLog(GOLDEN / "mixed.db") as kept:
        for topic, partitions in TOPICS.items():
            for number in range(partitions):
                source = TopicPartition(topic, number)
                ours, theirs = made.read(source, 0, 10_000), kept.read(source, 0, 10_000)
                assert (ours.keys, ours.values, ours.headers) == (theirs.keys, theirs.values, theirs.headers)
                assert ours.timestamps.tolist() == theirs.timestamps.tolist()


def test_golden_results_cover_every_type() -> None:
    """The golden results hold splits, trees, predictions, evaluations and dead letters of many kinds."""
    with EmbeddedLog(GOLDEN / "mixed.out.db") as log:
        types = {
            dict(headers)["type"]
            for topic in log.topics()
            for number in range(PARTITIONS)
            for headers in log.read(TopicPartition(topic, number), 0, 10_000).headers
        }
    assert types == {b"split", b"tree", b"prediction", b"evaluation", b"dead-letter"}


def test_a_difference_is_shown(tmp_path: Path) -> None:
    """Results that differ end the command with exit code 1 and the first difference."""
    altered = tmp_path / "altered.yaml"
    altered.write_text(SETTINGS.replace("every: 7", "every: 8"))
    expected = str(GOLDEN / "mixed.out.db")
    result = _replay(altered, GOLDEN / "mixed.db", tmp_path / "out.db", "--expect", expected)
    assert result.exit_code == 1
    assert "the results differ from" in result.output
    assert "words.out/0, record" in result.output


def test_an_output_that_exists_is_refused(tmp_path: Path) -> None:
    """Results are never mixed with older ones."""
    (tmp_path / "out.db").touch()
    result = _replay(GOLDEN / "mixed.yaml", GOLDEN / "mixed.db", tmp_path / "out.db")
    assert result.exit_code == 1
    assert "not to exist" in result.output


if __name__ == "__main__":  # make golden/ anew, after a change of the formats that is meant
    for old in GOLDEN.glob("mixed*"):
        old.unlink()
    (GOLDEN / "mixed.yaml").write_text(SETTINGS)
    write(GOLDEN / "mixed.db", mixed(), TOPICS)
    print(_replay(GOLDEN / "mixed.yaml", GOLDEN / "mixed.db", GOLDEN / "mixed.out.db").output)
