"""Audits: deleted examples are gone, or it is told what is left of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

import worker.state
from algorithms.core import example_store, free_list
from algorithms.dynamic.state import ROOT
from algorithms.splits import slots
from worker.audit import Audit, audit, digest_of
from worker.codec.event import encode_event
from worker.commands import main
from worker.commands.running import worker_on
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError, OutRecord
from worker.models import Model
from worker.restore import restore as honest_restore
from worker.settings import load

_BASE: dict[str, Any] = {"input": "t", "classes": ["a", "b"], "features": "names"}
MODELS: dict[str, Any] = {
    "counts": _BASE | {"kind": "split", "on_duplicate": "replace"},
    "recent": _BASE | {"kind": "split", "window": 8},
    "greedy": _BASE | {"kind": "dynamic-tree", "epsilon": 0, "attributes": {"numeric": ["size"]}},
    "exact": _BASE | {"kind": "dynamic-tree", "guarantee": "exact", "attributes": {"numeric": ["size"]}},
    "forest": _BASE
    | {
        "kind": "forest",
        "guarantee": "exact",
        "trees": 4,
        "bagging": "2 of 4",
        "attributes": {"numeric": ["size"]},
    },
    "eager": _BASE | {"kind": "forest", "epsilon": 0, "trees": 3, "bagging": "poisson:1"},
    "mixed": _BASE | {"kind": "split", "classes": ["a", "b", "c"], "attributes": {"numeric": ["size"]}},
    "prices": {
        "kind": "split",
        "input": "t",
        "features": "names",
        "target": "number",
        "label_range": [-5, 5],
        "label_unit": 0.01,
    },
    "forgotten-prices": {
        "kind": "dynamic-tree",
        "input": "t",
        "features": "names",
        "target": "number",
        "label_range": [-5, 5],
        "label_unit": 0.01,
        "epsilon": 0,
    },
    "exact-prices": {
        "kind": "dynamic-tree",
        "input": "t",
        "features": "names",
        "attributes": {"numeric": ["size"]},
        "target": "number",
        "label_range": [-5, 5],
        "label_unit": 0.01,
        "guarantee": "exact",
    },
    "near": _BASE | {"kind": "dynamic-tree", "epsilon": 0.1},
    "counted": _BASE | {"kind": "tree", "policy": "exact", "on_delete": "ignore", "evaluate": {}},
}
DELETED = (3, "17", 20, 55)
LIVE = 56
EXAMPLES = 60


def _records(seed: int, models: dict[str, Any]) -> Iterator[OutRecord]:
    """Yield a history of two keys, with numbers only where all models take them."""

    def record(number: int, value: bytes) -> OutRecord:
        return OutRecord("t", 0, b"key %d" % (number % 2), value, (), 1_000)

    draw = random.Random(seed)
    has_numbers = set(models) <= {"greedy", "exact", "exact-prices", "forest", "mixed"}
    for number in range(EXAMPLES):
        named = str(number) if number == 17 else number
        words = {f"w{draw.randrange(12)}" for _ in range(3)} | {f"only {number}"}
        x: Any = dict.fromkeys(words, 1.0) | {"size": draw.gauss(0, 1)} if has_numbers else sorted(words)
        label = round(draw.gauss(0, 1), 2) if any("prices" in name for name in models) else draw.choice("ab")
        yield record(number, encode_event(x, label, id=named))
    for named in DELETED:
        yield record(int(named), encode_event(op="delete", id=named))


def _ran(folder: Path, models: dict[str, Any], seed: int = 1) -> Path:
    """Let a worker learn a history; return its settings."""
    path = folder / "worker.yaml"
    told = {"log": {"embedded": str(folder / "log.db")}, "metrics": {"port": None}, "models": models}
    path.write_text(yaml.safe_dump(told))
    settings = load(path, {})
    with EmbeddedLog(folder / "log.db", group=settings.group) as log:
        log.create_topic("t", 1)
        log.append(_records(seed, models))
        with worker_on(log, settings) as (worker, _):
            worker.run(lambda: False, until_end=True)
    return path


def _audited(path: Path, *ids: int | str, sample: int = 0) -> Audit:
    settings = load(path, {})
    assert settings.log.embedded is not None
    with EmbeddedLog(settings.log.embedded, group=settings.group) as log:
        return audit(log, settings, ids, sample)


def _said(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments])


@pytest.mark.parametrize(
    "names",
    [
        ["counts"],
        ["greedy"],
        ["exact"],
        ["forest"],
        ["eager"],
        ["mixed"],
        ["prices"],
        ["forgotten-prices"],
        ["exact-prices"],
        ["counts", "near", "counted"],
    ],
    ids="-".join,
)
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_of_what_was_deleted(tmp_path: Path, names: list[str], seed: int) -> None:
    """A model that forgets equals one that never saw the examples; of others it is told what is not proven."""
    path = _ran(tmp_path, {name: MODELS[name] for name in names}, seed)
    found = _audited(path, *DELETED)
    assert found.is_clean
    assert found.ids == DELETED
    for finding in found.findings:
        assert finding.offset == 64
        assert bool(finding.unproven) == (finding.model in ("near", "counted"))
        assert bool(finding.digest) == (finding.model != "counted")


def test_an_example_that_is_live_is_found(tmp_path: Path) -> None:
    """It is live, its name is there, and the model is another than without it."""
    path = _ran(tmp_path, {"counts": MODELS["counts"], "greedy": MODELS["greedy"] | {"attributes": {}}})
    found = _audited(path, LIVE)
    assert found.live == (LIVE,)
    assert not found.is_clean
    for finding in found.findings:
        assert [words.split(":")[0].split(",")[0] for words in finding.left] == [
            f"the example {LIVE} is live",
            "names of features that only they had",
            "keys that hold something else than without them",
        ]


def test_what_a_window_remembers_is_told(tmp_path: Path) -> None:
    """An example that the window dropped before it was deleted leaves the digest of its id for a while."""
    path = _ran(tmp_path, {"recent": MODELS["recent"]})
    (finding,) = _audited(path, 3, 55).findings
    assert finding.left == ()  # so long ago that it is not remembered
    assert finding.unproven == ("its window has let others go at other events than if these had never come",)
    (finding,) = _audited(path, 40).findings
    assert finding.left == ("that the window dropped 40 is remembered, by the digest of the id",)


@pytest.mark.parametrize("name", ["exact", "exact-prices", "forest"])
def test_a_hundred_that_exact_trees_have_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Deleted in any order after any history, each of them alone has left no trace, nor have all together."""
    monkeypatch.setattr(f"{__name__}.EXAMPLES", 160)
    monkeypatch.setattr(f"{__name__}.DELETED", [n for n in random.Random(4).sample(range(160), 110) if n != 17])
    found = _audited(_ran(tmp_path, {name: MODELS[name]}), sample=100)
    assert len(found.ids) == 100
    assert found.is_clean
    (finding,) = found.findings
    assert (finding.left, finding.unproven) == ((), ())


def test_a_count_of_an_exact_tree_that_was_tampered_with_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One class weight of one node that is one unit too large, in a tree that waits for no look."""
    path = _ran(tmp_path, {"exact": MODELS["exact"] | {"emit": {"snapshots": {"every": 1}}}})

    def restore(log: Any, pipeline: Any, *rest: Any) -> Any:
        start = yield from honest_restore(log, pipeline, *rest)
        (model,) = pipeline.models
        arrays = model.arrays()
        arrays["nodes.weights"][arrays["trees"][1, ROOT], 0] += 1
        return start

    monkeypatch.setattr(worker.state, "restore", restore)
    (finding,) = _audited(path, 20).findings
    assert finding.left == ("keys that hold something else than without them: 1, first b'key 1'",)


@pytest.mark.parametrize("what", ["count", "name", "row"])
def test_what_was_tampered_with_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """One count that is one too large, a name and a digest that stayed: each is found."""
    path = _ran(tmp_path, {"counts": MODELS["counts"]})

    def restore(log: Any, pipeline: Any, *rest: Any) -> Any:
        start = yield from honest_restore(log, pipeline, *rest)
        (model,) = pipeline.models
        _tamper(model, what)
        return start

    monkeypatch.setattr(worker.state, "restore", restore)
    (finding,) = _audited(path, 20).findings
    expected = {
        "count": "keys that hold something else than without them: 1, first b'key 1'",
        "name": "names of features that only they had: 1",
        "row": "the digest of the id 20 is in a row that is not in use",
    }
    assert finding.left == (expected[what],)


def _tamper(model: Model, what: str) -> None:
    arrays = model.arrays()
    if what == "count":
        arrays["slots.rows"][5, slots.C0] += 1
    elif what == "name":
        model._pool.names.intern(b"only 20")  # type: ignore[attr-defined]
    else:
        free = int(arrays["ledger.counts"][free_list.FREE])
        arrays["ledger.rows"][free, [example_store.HIGH, example_store.LOW]] = digest_of(20)


def test_a_draw_is_of_deleted_examples(tmp_path: Path) -> None:
    """A sample is drawn of those whose last event is a delete, the same by the same seed."""
    path = _ran(tmp_path, {"counts": MODELS["counts"]})
    assert set(_audited(path, sample=100).ids) == set(DELETED)
    some = _audited(path, sample=2)
    assert some.ids == _audited(path, sample=2).ids
    assert len(some.ids) == 2
    assert some.is_clean


def test_records_that_are_gone_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the first records nobody can make the model that never saw the example; what can be looked at is."""
    path = _ran(tmp_path, {"counts": MODELS["counts"]})
    honest = EmbeddedLog.watermarks
    monkeypatch.setattr(
        EmbeddedLog,
        "watermarks",
        lambda log, source: honest(log, source)._replace(low=10) if source.topic == "t" else honest(log, source),
    )
    (finding,) = _audited(path, 20).findings
    assert finding.unproven == (
        "it cannot be compared with a model that never saw them: the records from offset 0 to 9 are gone",
    )


def test_other_settings_are_refused(tmp_path: Path) -> None:
    """The state is that of other settings: no conclusion is drawn from it."""
    path = _ran(tmp_path, {"counts": MODELS["counts"]})
    told = yaml.safe_load(path.read_text())
    told["models"]["counts"]["criterion"] = "gini"
    path.write_text(yaml.safe_dump(told))
    said = _said(str(path), "--id", "20")
    assert said.exit_code == 1
    assert "expected the settings with which its state was made" in said.output


def test_the_command(tmp_path: Path) -> None:
    """It says what it found in words or as JSON, and ends with 1 unless all is well."""
    path = str(_ran(tmp_path, {name: MODELS[name] for name in ("counts", "counted")}))
    said = _said(path, "--id", "3", "--text-id", "17")
    assert said.exit_code == 0, said.output
    assert said.output.startswith("looked for 3, '17'\n")
    assert "counts (split), t/0 below offset 64: nothing left\n" in said.output
    assert "counted (tree), t/0 below offset 64: nothing found, not all is proven\n" in said.output
    wrong = _said(path, "--id", "17", "--id", str(LIVE))
    assert wrong.exit_code == 1
    assert "no event names 17; check them (--text-id 17 is text)\n" in wrong.output
    assert f"not deleted: {LIVE}; publish a delete\n" in wrong.output
    report = json.loads(_said(path, "--sample", "2", "--json").output)
    assert report["clean"]
    assert [finding["model"] for finding in report["findings"]] == ["counted", "counts"]
    none = _said(path)
    assert none.exit_code == 2
    assert "expected examples to look for" in none.output


def test_a_worker_that_goes_on_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that fails since a worker has committed is begun again; one that fails by itself is told."""
    path = _ran(tmp_path, {"counts": MODELS["counts"]})
    fails = [LogError("a checkpoint of later")]
    honest = EmbeddedLog.committed
    moved = [True]

    def restore(*given: Any) -> Any:
        if fails:
            raise fails.pop()
        return (yield from honest_restore(*given))

    monkeypatch.setattr(worker.state, "restore", restore)
    monkeypatch.setattr(
        EmbeddedLog, "committed", lambda log, source: (honest(log, source) or 0) - (moved.pop() if moved else 0)
    )
    assert _audited(path, 20).is_clean
    fails.append(LogError("for good"))
    with pytest.raises(LogError, match="for good"):
        _audited(path, 20)


def test_ids_belong_to_keys(tmp_path: Path) -> None:
    """An id that one key has deleted and another has not is live; a tombstone deletes all of a key."""
    path = _ran(tmp_path, {"counts": MODELS["counts"]})
    settings = load(path, {})
    with EmbeddedLog(tmp_path / "log.db", group=settings.group) as log:
        for key, value in (
            (b"key 0", encode_event(["x"], "a", id=3)),  # key 1 has deleted its own
            (b"key 2", encode_event(["x"], "a", id="gone")),
            (b"key 2", None),
        ):
            log.append([OutRecord("t", 0, key, value, (), 1_000)])
        with worker_on(log, settings) as (worker, _):
            worker.run(lambda: False, until_end=True)
    found = _audited(path, 3, "gone")
    assert found.live == (3,)
    assert _audited(path, "gone").is_clean
    assert set(_audited(path, sample=100).ids) == {*DELETED[1:], "gone"}


def test_a_draw_where_nothing_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to draw from, which is told."""
    monkeypatch.setattr(f"{__name__}.DELETED", ())
    said = _said(str(_ran(tmp_path, {"counts": MODELS["counts"]})), "--sample", "3")
    assert said.exit_code == 1
    assert "expected ids whose last event is a delete, to draw from" in said.output


WAITS = {"max": 40, "for": "30d"}


def _ran_with_labels(folder: Path, pending: dict[str, Any], *, forget: bool = True) -> Path:
    """Let a worker learn from labels that come later; some of what waits for them is deleted."""
    path = _ran(folder, {"counts": MODELS["counts"], "counted": MODELS["counted"]})
    told = yaml.safe_load(path.read_text()) | {"topics": {"t": {"pending": pending}}}
    told["models"]["counts"]["verify_deletes"] = True
    path.write_text(yaml.safe_dump(told))
    settings = load(path, {})
    values = []
    for number in range(100, 140):
        values.append(encode_event([f"w{number % 7}", f"only {number}"], op="predict", id=number))
        if number % 4 == 0:
            values.append(encode_event(op="label", y="a", id=number))
    gone = (101, 104, 105) if forget else ()
    values += [encode_event(op="delete", id=number) for number in gone]
    with EmbeddedLog(folder / "log.db", group=settings.group) as log:
        log.append([OutRecord("t", 0, b"key", value, (), 2_000) for value in values])
        with worker_on(log, settings) as (worker, _):
            worker.run(lambda: False, until_end=True)
    return path


def test_nothing_is_left_of_an_example_that_waited_for_its_label(tmp_path: Path) -> None:
    """Deleted while it waited, or after its label was learned: neither the store nor a model knows of it."""
    found = _audited(_ran_with_labels(tmp_path, WAITS), 101, 104, 105)
    assert found.is_clean
    findings = {finding.model: finding for finding in found.findings}
    assert set(findings) == {"pending", "counts", "counted"}
    assert findings["pending"].digest
    assert not findings["pending"].unproven
    assert not findings["counts"].unproven


def test_an_example_that_waits_for_its_label_is_found(tmp_path: Path) -> None:
    """It has not been deleted; its features are there."""
    found = _audited(_ran_with_labels(tmp_path, WAITS), 107, 108)
    assert found.live == (107, 108)
    left = {finding.model: finding.left for finding in found.findings}
    assert left["pending"] == (
        "the example 107 waits for its label",
        "names of features that only they had: 1",
        "examples that wait and would not without them: 1",
    )
    assert left["counts"][0] == "the example 108 is live"


def test_what_had_to_go_for_an_example_is_not_proven(tmp_path: Path) -> None:
    """Without it, others would wait that had to go."""
    found = _audited(_ran_with_labels(tmp_path, WAITS | {"max": 10}, forget=False), 139)
    pending = next(finding for finding in found.findings if finding.model == "pending")
    assert pending.unproven == ("others had to go for them that would wait if these had never come (pending.max)",)


@pytest.mark.parametrize("what", ["digest", "example"])
def test_a_store_that_forgets_badly_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A digest in a free row of the store is found, and an example that is not as it would be."""

    def spoiled(*given: Any) -> Any:
        start = yield from honest_restore(*given)
        store = given[1].late.store
        rows = store._pending.examples.rows
        if what == "digest":
            rows[-1, [example_store.HIGH, example_store.LOW]] = digest_of(101)
        else:
            row, _ = next(store.waiting())
            store._pending.examples.features[rows[row, example_store.START]] += 1
        return start

    path = _ran_with_labels(tmp_path, WAITS)
    monkeypatch.setattr(worker.state, "restore", spoiled)
    left = next(finding.left for finding in _audited(path, 101).findings if finding.model == "pending")
    assert (
        left[0]
        == {
            "digest": "the digest of the id 101 is in a row that is not in use",
            "example": "examples that wait and would not without them: 1",
        }[what]
    )
