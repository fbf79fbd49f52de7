"""A recording holds which settings held where, and a replay of it makes the worker's bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.recordings import WORDS, every_kind
from tests.worker.state.test_epochs import NEW, SOURCES, Desk
from worker.commands import main
from worker.commands.replay import by_itself
from worker.log.embedded import EmbeddedLog
from worker.models import KINDS


def _done(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a log on which workers ran, each with other settings than the one before."""
    desk = Desk(tmp_path_factory.mktemp("changes"), models=yaml.safe_load(every_kind())["models"])
    desk.run(120)
    desk.models |= {"late": NEW, "later": NEW | {"start": "latest"}}
    desk.told["bounds"]["keys"] = 4
    desk.run(80)
    desk.models["clicks"] |= {"criterion": "entropy"}
    desk.models["late"] = NEW | {"emit": {"snapshots": {"every": 4}}}
    desk.run(80)
    del desk.models["recent"]
    desk.models["later"]["delta"] = 0.2
    desk.models["shadow"] = NEW | {"shadow": True}
    desk.run(60)
    desk.models["shadow"] = NEW
    desk.run(60)
    return desk


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [[], ["--batch", "7"], ["--batch", "1", "--restore-every", "40"]], ids=" ".join
)
@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "the log itself"])
def test_a_replay_follows_the_settings(desk: Desk, tmp_path: Path, options: list[str], is_recorded: bool) -> None:
    """Without settings of one's own a replay gives the bytes that the workers wrote, in any batches."""
    recording = desk.folder / "log.db"
    if is_recorded:
        recording = tmp_path / "rec.db"
        _ = desk.settings  # written as it is told last
        said = _done("record", desk.folder / "worker.yaml", recording)
        assert "12 changes of settings; a replay without settings follows them" in said.output
    said = _done("replay", recording, tmp_path / "out.db", "--expect", desk.folder / "log.db", *options)
    assert f"the results equal {desk.folder / 'log.db'}" in said.output


@pytest.mark.slow
def test_a_replay_in_threads_follows_the_settings(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the last change one partition comes after the other, behind it they go side by side."""
    monkeypatch.setattr(
        "worker.commands.replay.by_itself", lambda *given: by_itself(*given).model_copy(update={"threads": 3})
    )
    log = desk.folder / "log.db"
    assert f"the results equal {log}" in _done("replay", log, tmp_path / "out.db", "--expect", log).output


def test_settings_of_ones_own_hold_from_the_first_record_on(desk: Desk, tmp_path: Path) -> None:
    """They are used for all records, and the command says so; without settings to be found it asks for some."""
    _ = desk.settings
    recording = tmp_path / "rec.db"
    _done("record", desk.folder / "worker.yaml", recording)
    said = _done("replay", desk.folder / "worker.yaml", recording, tmp_path / "out.db")
    assert (
        "worker.yaml holds from the first record on; the worker that was recorded had other settings"
        in said.output
    )
    plain = Desk(tmp_path)
    plain.told = yaml.safe_load((desk.folder / "worker.yaml").read_text()) | {"group": "anabranch"}
    plain.run(400)
    _done("replay", recording, tmp_path / "mine.db", "--expect", tmp_path / "out.db", code=1)
    with EmbeddedLog(tmp_path / "out.db") as one, EmbeddedLog(tmp_path / "log.db") as other:
        for number in range(2):
            source = SOURCES[0]._replace(topic=f"{WORDS}.out", partition=number)
            assert one.read(source, 0, 100_000).values == other.read(source, 0, 100_000).values
    # A log whose worker kept nothing.
    (tmp_path / "bare").mkdir()
    bare = Desk(tmp_path / "bare", checkpoint=None)
    bare.run(20)
    said = _done("replay", tmp_path / "bare" / "log.db", tmp_path / "no.db", code=1)
    assert "expected a recording that holds the settings of one group, got none; name settings" in said.output


def test_a_version_that_lacks_a_kind_says_so(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the models, and which version to run; that one makes the bytes."""
    recording = desk.folder / "log.db"
    with monkeypatch.context() as older:
        older.delitem(KINDS, "tree")
        said = _done("replay", recording, tmp_path / "none.db", code=1)
    assert "expected models that this version has, got others since offset" in said.output
    assert "run the version that wrote them" in said.output
    _done("replay", recording, tmp_path / "out.db", "--expect", recording)
