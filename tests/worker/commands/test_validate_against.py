"""`anabranch validate --against`: what a start would keep, learn, drop or refuse."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tests.worker.state.test_epochs import NEW, Desk
from worker.commands import main


def _against(desk: Desk, what: object, code: int = 0) -> list[str]:
    _ = desk.settings  # written
    result = CliRunner().invoke(main, ["validate", str(desk.folder / "worker.yaml"), "--against", str(what)])
    assert result.exit_code == code, result.output
    told = result.output.splitlines()
    return told[1 + next(at for at, line in enumerate(told) if "results depend on" in line) :]


def test_it_tells_what_a_start_would_do(tmp_path: Path) -> None:
    """Each model with its fate, and how much is learned first; afterwards a start does that."""
    desk = Desk(tmp_path)
    assert "words, group anabranch: nothing is committed, all models are new" in _against(desk, "anabranch")
    desk.run(200)
    assert _against(desk, "anabranch") == [
        "clicks, group anabranch: partitions 2, offsets still to read 0",
        "  all models: kept",
        "words, group anabranch: partitions 2, offsets still to read 0",
        "  all models: kept",
    ]
    words = sum(end for source, end in desk.ends().items() if source.topic == "words")
    desk.models |= {"late": NEW, "later": NEW | {"start": "latest"}}
    desk.models["tree"]["delta"] = 0.25
    desk.models["everything"]["emit"] = {"splits": "never"}
    del desk.models["recent"]
    desk.told["bounds"]["keys"] = 5
    desk.publish(10)
    for what in ("anabranch", tmp_path / "log.db"):
        told = _against(desk, what)
        told = told[next(at for at, line in enumerate(told) if line.startswith("words")) :]
        assert "  bounds: others from here on" in told
        on_words = [name for name, model in desk.models.items() if model["input"] == "words"]
        fates = dict.fromkeys(on_words, "kept") | {
            "everything": "kept; what it writes, and when, changes from here on",
            "late": f"new; learns {words:,} offsets silently",
            "later": "new; begins at the committed offset",
            "recent": "removed: what it has learned goes",
            "tree": f"changed: begins anew, what it has learned goes; learns {words:,} offsets silently",
            "bounds": "others from here on",
        }
        said = told[1 : 1 + len(fates)]
        assert {line.partition(":")[0].strip(): line.partition(": ")[2] for line in said} == fates
        assert f"  read again before results go on: {words:,} offsets, at 20,000 a second about 1 s" in told
    desk.told["on_change"] = "refuse"
    assert "set on_change: apply" in "\n".join(_against(desk, "anabranch", code=1))


def test_a_recording_holds_a_group(tmp_path: Path) -> None:
    """What a recording says of its group is enough."""
    desk = Desk(tmp_path)
    desk.run(100)
    recorded = CliRunner().invoke(main, ["record", str(tmp_path / "worker.yaml"), str(tmp_path / "rec.db")])
    assert recorded.exit_code == 0, recorded.output
    del desk.models["recent"]
    desk.told["group"] = "another"
    assert "  recent: removed: what it has learned goes" in _against(desk, tmp_path / "rec.db")
