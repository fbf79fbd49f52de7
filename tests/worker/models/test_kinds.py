"""What every kind of model does that is registered, and that a kind needs no more than that.

The kind of tests/support/majority.py is known to all of this by its last line alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from tests.support.about import ABOUT
from tests.support.majority import MajorityModel, MajoritySettings
from tests.support.model_contents import model_contents
from tests.support.one_model import one_model, records_of, results_of, run, same_however_run
from tests.support.places import ROOT
from tests.support.recordings import CLICKS, PARTITIONS, WORDS, mixed, sample, understood
from tests.support.workers import worker_on
from worker.codec import DeadLetter, Evaluation, Prediction
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.loop import Worker
from worker.models import KINDS, Kind, register
from worker.settings import fingerprint, load
from worker.settings.file import SettingsError
from worker.settings.models import ClassifierSettings, ModelSettings
from worker.watching.http import Pages
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard

every_kind = pytest.mark.parametrize("kind", KINDS)


def _settings(folder: Path, kind: str, **changed: Any) -> Path:
    """Write settings with the sample of a kind."""
    path = folder / "worker.yaml"
    models = {"it": sample(kind, WORDS) | changed}
    path.write_text(
        yaml.safe_dump({"log": {"embedded": "log.db"}, "metrics": None, "models": models}, sort_keys=False)
    )
    return path


def _problems(path: Path) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(path, {})
    return [f"{'.'.join(map(str, problem.location))}: {problem.message}" for problem in caught.value.problems]


def _run(folder: Path, kind: str) -> tuple[Worker, CollectorRegistry, StatusBoard]:
    """Let a worker read the recording to its end; return it with what it says about itself."""
    settings = load(_settings(folder, kind), {})
    registry, board = CollectorRegistry(), StatusBoard(Status(0.0))
    with EmbeddedLog(folder / "log.db", group=settings.group) as log:
        for topic in (WORDS, CLICKS):
            log.create_topic(topic, PARTITIONS)
        log.append(understood(kind, mixed(300)))
        # Sizes are told once a second: at each look at the clock one more has passed.
        worker = Worker(log, settings, WorkerListener(Metrics(registry, "0"), board, count().__next__))
        worker.run(lambda: False, until_end=True)
    return worker, registry, board


# --- all kinds


@every_kind
def test_settings_are_parsed_and_named(tmp_path: Path, kind: str) -> None:
    """The sample is valid as a file, `validate` says so, and a name that is almost right is told."""
    path = _settings(tmp_path, kind)
    model = load(path, {}).models["it"]
    assert type(model) is KINDS[kind].settings
    result = CliRunner().invoke(main, ["validate", str(path)])
    assert result.exit_code == 0, result.output
    assert f"  it: {model.kind} ({model.summary}) words -> words.out" in result.output
    assert fingerprint(load(path, {}))[:12] in result.output
    own = next(iter(KINDS[kind].settings.SAMPLE))
    [message] = _problems(_settings(tmp_path, kind, **{f"{own}x": 1}))
    fields = ", ".join(sorted(KINDS[kind].settings.model_fields))
    assert message == f"models.it.{own}x: expected one of {fields}, got '{own}x' (did you mean '{own}'?)"


@every_kind
@pytest.mark.parametrize("topic", [WORDS, CLICKS])
def test_results_depend_on_events_alone(kind: str, topic: str) -> None:
    """Batches of any size, and a restart after each, give the same results and the same state."""
    model = sample(kind, topic) | {"input": "in"}
    events = [record for record in understood(kind, mixed(300)) if record.topic == topic and record.key]
    keyed = [(record.key or b"", record.value) for record in events]

    def processed(size: int, *, restart: bool) -> tuple[list[Any], Any]:
        pipeline = one_model(model, {"keys": 6, "live_ids": 150})
        outputs = []
        for start in range(0, len(keyed), size):
            batch = records_of(keyed[start : start + size], start)._replace(
                values=[value for _, value in keyed[start : start + size]]
            )
            outputs += pipeline.process(batch).outputs
            pipeline.models[0].check()
            if restart:
                pipeline.restore(
                    {
                        name: {each: array.copy() for each, array in arrays.items()}
                        for name, arrays in pipeline.arrays().items()
                    }
                )
        return sorted(outputs, key=lambda record: record.topic), model_contents(pipeline.models[0])

    expected = processed(1_000, restart=False)
    assert len(expected[0]) > 20
    assert processed(1, restart=False) == expected
    assert processed(7, restart=True) == expected


@every_kind
def test_checkpoints_hold_all_of_it(tmp_path: Path, kind: str) -> None:
    """A worker that starts from a checkpoint, its input gone, has the models that were written."""
    before, _, _ = _run(tmp_path, kind)
    settings = load(tmp_path / "worker.yaml", {})
    with EmbeddedLog(tmp_path / "log.db", group=settings.group) as log:
        for source in before.partitions:
            committed = log.committed(source)
            assert committed
            log.truncate(source, committed)
        after = worker_on(log, settings)
        after.run(lambda: False, until_end=True)
    for source, partition in before.partitions.items():
        [was], [model] = partition.pipeline.models, after.partitions[source].pipeline.models
        model.check()
        assert was.status().keys > 0
        assert model_contents(model) == model_contents(was)


@every_kind
def test_metrics_and_pages_tell_of_it(tmp_path: Path, kind: str) -> None:
    """Metrics count its events and keys, the status page has its size, and `show` its results."""
    worker, registry, board = _run(tmp_path, kind)
    sizes = [partition.pipeline.models[0].status() for partition in worker.partitions.values()]
    keys = sum(size.keys for size in sizes)
    assert registry.get_sample_value("anabranch_keys", {"model": "it"}) == keys > 0
    for op in ("insert", "predict"):
        applied = {"model": "it", "op": op}
        assert (registry.get_sample_value("anabranch_events_applied_total", applied) or 0) > 0
    [status] = board.status.models
    assert (status.name, status.keys) == ("it", keys)
    page = Pages(registry, board, 30.0, lambda: 0.0, ABOUT).get("/", "*/*").body.decode()
    assert re.search(rf"<td>it</td><td>{keys}</td>", page)
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "log.db"), "--topic", "words.out"])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"\bit\b", shown.output)


# --- a kind that a test adds


def test_it_is_one_file_with_one_line_of_registration() -> None:
    """No code but its own file names the kind; suites have it because it is registered."""
    assert KINDS["majority"] == Kind(MajoritySettings, MajorityModel)
    runs = ["late/test_late_labels.py", "models/test_expiry.py", "models/test_kinds.py"]
    naming = ["tests/support/__init__.py", *(f"tests/worker/{each}" for each in runs)]
    assert list(_files_that_name_it()) == naming, "one imports it, the others run it"
    own = (ROOT / "tests/support/majority.py").read_text()
    assert own.count("register(") == 1


def _files_that_name_it() -> Iterator[str]:
    for path in sorted([*ROOT.glob("worker/**/*.py"), *ROOT.glob("tests/**/*.py")]):
        name = str(path.relative_to(ROOT))
        text = path.read_text()
        if name != "tests/support/majority.py" and re.search(r"support\.majority|Majority(Model|Settings)", text):
            yield name


@pytest.mark.parametrize(
    ("least", "message"),
    [
        (-1.0, "models.it.least: expected 0.0 or more, got -1.0"),
        ("much", "models.it.least: expected a number, got 'much'"),
    ],
)
def test_its_own_options_are_checked(tmp_path: Path, least: Any, message: str) -> None:
    """What is wrong in an option of a kind that was added is told as of any other."""
    assert _problems(_settings(tmp_path, "majority", least=least)) == [message]


def test_it_predicts_evaluates_and_refuses() -> None:
    """Predictions, evaluations and dead letters are those of the majority; a key can be forgotten."""
    insert = {"x": [], "y": "ham", "w": 2}
    events = [
        (b"a", {"op": "predict", "x": ["any"]}),
        (b"a", insert),
        (b"a", {"x": ["b"], "y": "spam", "w": 3}),
        (b"a", {"op": "predict", "x": [], "id": 7}),
        (b"a", {"op": "delete", "x": [], "y": "spam", "w": 2}),
        (b"a", {"op": "delete", "x": [], "y": "spam", "w": 2}),
        (b"a", {"op": "predict", "x": []}),
        (b"a", None),
        (b"a", {"op": "predict", "x": []}),
    ]
    model = sample("majority", WORDS) | {"input": "in", "evaluate": {"emit": {"every": 2}}}
    found = run(one_model(model), events)
    predictions = [each for each in found if isinstance(each, Prediction)]
    assert [(each.label, list(each.weights)) for each in predictions] == [
        (None, [0.0, 0.0]),
        ("spam", [2.0, 3.0]),
        ("ham", [2.0, 1.0]),
        (None, [0.0, 0.0]),
    ]
    [evaluation] = [each for each in found if isinstance(each, Evaluation)]
    assert (evaluation.examples, evaluation.total.weight, evaluation.total.accuracy) == (2, 5.0, 0.0)
    assert [each.reason for each in found if isinstance(each, DeadLetter)] == ["absent-example"]


def test_a_key_without_examples_stays_until_its_tombstone() -> None:
    """Deletes leave a key's labels known to the baselines, whatever the batches are; a tombstone does not."""
    ham = {"x": [], "y": "ham"}
    events = [
        *((b"a", ham), (b"a", {"op": "delete", **ham}), (b"b", {"x": [], "y": "spam"})),
        *((b"a", ham), (b"a", None), (b"c", {"x": [], "y": "spam"}), (b"a", ham)),
    ]
    model = sample("majority", WORDS) | {"input": "in", "evaluate": {"emit": {"every": 1}}}
    outputs = same_however_run(lambda: one_model(model), events)
    told = [each for each in results_of(outputs) if isinstance(each, Evaluation)]
    assert [each.total.no_change for each in told] == [0.0, 0.0, 1 / 3, 1 / 4, 1 / 5]


def test_same_results_where_keys_are_too_many() -> None:
    """Bounds hold, whatever the batches are."""
    events = [(b"%d" % (at % 5), {"x": [], "y": "ham"} if at % 7 else None) for at in range(60)]
    model = sample("majority", WORDS) | {"input": "in"}
    outputs = same_however_run(lambda: one_model(model, {"keys": 3}), events)
    reasons = [each.reason for each in results_of(outputs) if isinstance(each, DeadLetter)]
    assert set(reasons) == {"too-many-keys"}


def test_a_name_is_one_kind() -> None:
    """A second kind of the same name is refused, the same once more is not, and a kind has a name."""

    class Other(MajoritySettings):
        """Another kind of that name."""

    class Nameless(ClassifierSettings):
        """A kind without a name."""

        SAMPLE: ClassVar[dict[str, Any]] = {}

    class Two(ModelSettings):
        """A kind of two names."""

        kind: Literal["one", "two"]

    known = dict(KINDS)
    register(MajoritySettings, MajorityModel)
    with pytest.raises(ValueError, match="expected a kind of a new name, got 'majority', which is Maj"):
        register(Other, MajorityModel)
    for section in (Nameless, Two):
        with pytest.raises(TypeError, match="expected a field 'kind' of the type Literal"):
            register(section, MajorityModel)
    assert known == KINDS
