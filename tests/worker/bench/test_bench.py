import json
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from algorithms.core.criteria import CRITERIA
from algorithms.core.events import Op
from algorithms.splits.finders import FINDERS
from worker.bench import anchor, figures, kinds
from worker.bench.cases import Case, measured
from worker.bench.experiments import EXPERIMENTS
from worker.bench.forms import FORMS
from worker.bench.hard import hard
from worker.bench.report import SECTIONS
from worker.bench.sides import count_dense, criteria_of, finding
from worker.bench.splits import answers
from worker.bench.streams import Stream, first, load, sparse
from worker.bench.updates import BATCH, Workload, workload
from worker.commands import main
from worker.models import KINDS

STREAM = sparse(60, 3, 40, 0.1)
UPDATES = ["incremental", "window:1", "window:25", "window:60", "random:0", "random:0.5", "random:0.9"]

Example = tuple[int, tuple[int, ...]]  # label, features


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


def _examples(stream: Stream) -> list[Example]:
    spans = pairwise(stream.pointer.tolist())
    return [
        (int(label), tuple(stream.feature[start:stop].tolist()))
        for label, (start, stop) in zip(stream.label, spans, strict=True)
    ]


def _events(work: Workload) -> Iterator[tuple[Op, Example]]:
    """Yield the operations of all batches with their examples."""
    for batch in work.batches:
        spans = pairwise(batch.pointer.tolist())
        for op, label, (start, stop) in zip(batch.op.tolist(), batch.label.tolist(), spans, strict=True):
            yield Op(op), (label, tuple(batch.feature[start:stop].tolist()))


def _after(work: Workload) -> Counter[Example]:
    """Return the examples that live after all events; no delete may come before its insert."""
    live: Counter[Example] = Counter()
    for op, example in _events(work):
        live[example] += 1 if op == Op.INSERT else -1
        assert live[example] >= 0
    return +live


# --- updates


@pytest.mark.parametrize("updates", UPDATES)
def test_every_example_is_inserted_once_and_in_order(updates: str) -> None:
    """Whatever is deleted, the inserts are the stream."""
    work = workload(STREAM, updates)
    assert [example for op, example in _events(work) if op == Op.INSERT] == _examples(STREAM)
    assert work.examples == 60
    assert work.events == sum(len(batch.op) for batch in work.batches)
    assert work.ones == sum(len(example[1]) for _, example in _events(work))


def test_incremental_deletes_nothing() -> None:
    """The incremental model only inserts."""
    assert {op for op, _ in _events(workload(STREAM))} == {Op.INSERT}


@pytest.mark.parametrize("size", [1, 25, 60, 1_000])
def test_a_window_deletes_what_is_w_examples_old(size: int) -> None:
    """The insert of example t > W is followed by the delete of example t - W."""
    expected = []
    window: deque[Example] = deque()
    for example in _examples(STREAM):
        expected.append((Op.INSERT, example))
        window.append(example)
        if len(window) > size:
            expected.append((Op.DELETE, window.popleft()))
    assert list(_events(workload(STREAM, f"window:{size}"))) == expected


@pytest.mark.parametrize("probability", [0.0, 0.3, 0.5, 0.9])
def test_random_updates_delete_live_examples_as_often_as_said(probability: float) -> None:
    """Deletes are of live examples, and their share is P as far as something lives."""
    stream = sparse(2_000, 2, 10, 0.2)
    work = workload(stream, f"random:{probability}")
    deletes = work.events - work.examples
    assert sum(_after(work).values()) == 2_000 - deletes
    # In the long run no more can be deleted than is inserted.
    assert deletes / work.events == pytest.approx(min(probability, 0.5), abs=0.03)


def test_random_updates_follow_their_seed() -> None:
    """The same seed gives the same events, another one others."""
    one, again, other = (list(_events(workload(STREAM, "random:0.5", seed))) for seed in (1, 1, 2))
    assert one == again != other


def test_events_are_cut_into_batches() -> None:
    """No batch is longer than a kernel call takes, none is empty, nothing is lost between them."""
    stream = sparse(2 * BATCH + 1, 1, 3, 0.5)
    work = workload(stream)
    assert [len(batch.op) for batch in work.batches] == [BATCH, BATCH, 1]
    assert [example for _, example in _events(work)] == _examples(stream)


@pytest.mark.parametrize(
    "updates", ["", "window", "window:", "window:0", "window:-1", "random:1", "random:x", "random:nan", "x:1"]
)
def test_unknown_updates_are_refused(updates: str) -> None:
    """The message names what was expected and what came."""
    with pytest.raises(ValueError, match=r"expected incremental, window:W .*, or random:P .*, got ") as error:
        workload(STREAM, updates)
    assert repr(updates) in str(error.value)


def test_a_stream_without_examples_is_refused() -> None:
    """Nothing can be measured on nothing."""
    with pytest.raises(ValueError, match="expected at least one example"):
        workload(first(STREAM, 0))


def test_the_floor_follows_the_deletes() -> None:
    """After a window's events the counts are those of the last W examples."""
    counts = np.zeros((STREAM.features, 2), np.int64)
    for batch in workload(STREAM, "window:7").batches:
        count_dense(counts, batch)
    expected = np.zeros_like(counts)
    for label, features in _examples(STREAM)[-7:]:
        expected[list(features), label] += 1
    assert np.array_equal(counts, expected)


# --- finders


@pytest.mark.parametrize("updates", UPDATES)
def test_exact_and_scan_answer_alike(updates: str) -> None:
    """Both find the same best scores after every event, and no event is refused."""
    work = workload(STREAM, updates)
    exact, scan = (answers(finding(work, finder, "entropy")) for finder in ("exact", "baseent"))
    assert exact["sum_of_scores"] == scan["sum_of_scores"]
    assert (exact["best"], exact["score"]) == (scan["best"], scan["score"])
    assert exact["refused"] == scan["refused"] == 0


@pytest.mark.parametrize("work", list(hard(100, 60)), ids=lambda work: work.data)
def test_hard_streams_are_valid(work: Workload) -> None:
    """No event of a hard stream is refused, no example lists a feature twice, exact and scan answer alike."""
    for _, (_, features) in _events(work):
        assert len(set(features)) == len(features)
        assert max(features, default=0) < work.features
    exact, scan = (answers(finding(work, finder, "entropy")) for finder in ("exact", "baseent"))
    assert exact["sum_of_scores"] == scan["sum_of_scores"]
    assert exact["refused"] == scan["refused"] == 0


# --- measuring


def _clock(finder: str, work: Workload, *seconds: float) -> Case:
    taken = iter(seconds)
    return Case(finder, None, work, lambda: next(taken))


def test_figures_are_medians_and_ratios_are_taken_round_by_round() -> None:
    """A machine that slows down in one round changes no ratio."""
    work = workload(STREAM)
    cases = [_clock("base", work, 1.0, 10.0, 1.5), _clock("other", work, 3.0, 30.0, 4.5)]
    base, other = measured(cases, ["base"], 3, lambda step: None)
    assert (base["seconds"], other["seconds"]) == (1.5, 4.5)
    assert (base["to_base"], other["to_base"]) == (1.0, 3.0)
    assert other["us_per_example"] == 75_000.0


def test_a_slow_case_is_not_run_again() -> None:
    """What has taken more than the time limit in all has fewer rounds; the line says how many."""
    work = workload(STREAM)
    cases = [_clock("base", work, 1.0, 1.0, 1.0), _clock("slow", work, 9.0)]
    base, slow = measured(cases, ["base"], 3, lambda step: None, time_limit=5.0)
    assert (base["repeats"], slow["repeats"]) == (3, 1)
    assert slow["to_base"] == 9.0


# --- commands

COSTS = {
    "bench",
    "data",
    "updates",
    "finder",
    "criterion",
    "examples",
    "events",
    "features",
    "ones",
    "seconds",
    "us_per_example",
    "ns_per_one",
    "to_count_only",
    "to_count_hash",
    "repeats",
    "machine",
}
ANSWERS = {"sum_of_scores", "best", "score", "state_bytes", "refused"}


def _lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("updates", ["incremental", "window:20", "random:0.4"])
def test_bench_splits_prints_a_line_for_each_floor_and_finder(updates: str) -> None:
    """Each line is JSON with every figure; finders add what they answered."""
    arguments = ["--data", "sparse:50,2,20,0.2", "--repeats", "2", "--updates", updates]
    floors, found = (lambda lines: (lines[:2], lines[2:]))(_lines(_bench("splits", *arguments)))
    assert [line["finder"] for line in floors] == ["count-only", "count-hash"]
    assert all(set(line) == COSTS for line in floors)
    assert [line["finder"] for line in found] == list(FINDERS)
    assert all(set(line) == COSTS | ANSWERS for line in found)
    assert {line["updates"] for line in floors + found} == {updates}
    assert {line["sum_of_scores"] for line in found if line["finder"] in ("exact", "baseent")} == {
        found[0]["sum_of_scores"]
    }


def test_bench_splits_tells_how_long_single_events_take() -> None:
    """With --latency lines of finders have the median and the longest of all events."""
    arguments = ["--data", "fresh:50,2,3", "--repeats", "1", "--finders", "exact", "--latency"]
    floors, (found,) = (lambda lines: (lines[:2], lines[2:]))(_lines(_bench("splits", *arguments)))
    assert all(set(line) == COSTS for line in floors)
    assert set(found) - COSTS - ANSWERS == {
        "median_event_us",
        "p999_event_us",
        "longest_event_ms",
        "longest_event",
    }
    assert 0 < found["median_event_us"] <= found["p999_event_us"] <= 1e3 * found["longest_event_ms"]
    assert 0 <= found["longest_event"] < 50


def test_features_of_a_fresh_stream_are_new() -> None:
    """Each example has those of `sparse`, and as many as asked for that none had before."""
    stream, known = load("fresh:30,4,3"), sparse(30, 4, 0, 0.0)
    assert np.array_equal(stream.label, known.label)
    for example in range(30):
        given = stream.feature[slice(*stream.pointer[example : example + 2])].tolist()
        new = [4 + 3 * example + each for each in range(3)]
        assert given == [*known.feature[slice(*known.pointer[example : example + 2])].tolist(), *new]
    assert (stream.features, stream.pointer[-1]) == (4 + 90, len(stream.feature))


def test_bench_pipeline_prints_a_line_for_each_form_and_number_of_keys() -> None:
    """Each line is JSON with every figure."""
    lines = _lines(
        _bench("pipeline", "--forms", "packed,columns", "--keys", "1,5", "--events", "40", "--repeats", "1")
    )
    assert [(line["form"], line["keys"]) for line in lines] == [
        ("packed", 1),
        ("packed", 5),
        ("columns", 1),
        ("columns", 5),
    ]
    for line in lines:
        assert line["examples_per_second"] > 0
        assert line["ones"] == 40 * 15
        assert 0 < line["cpu_seconds"] < 60
        assert {"seconds", "results", "live_keys", "state_bytes_per_key", "repeats", "machine"} <= set(line)


def test_threads_of_bench_pipeline_are_sides_of_one_run() -> None:
    """Each has a line of its own, which says the same of all but time."""
    options = ("--forms", "packed", "--keys", "5", "--events", "400", "--partitions", "4", "--threads", "1,2")
    one, two = _lines(_bench("pipeline", *options, "--repeats", "2"))
    assert (one["threads"], two["threads"], one["partitions"]) == (1, 2, 4)
    assert (one["live_keys"], one["times_the_first"]) == (4 * 5, 1.0)
    times = {"threads", "seconds", "cpu_seconds", "examples_per_second", "times_the_first"}
    assert {name for name in one if one[name] != two[name]} <= times


def test_bench_pipeline_compares_formats() -> None:
    """Events of every form are learned: as many results for the same features, whatever wrote them."""
    lines = _lines(
        _bench("pipeline", "--forms", ",".join(FORMS), "--keys", "1", "--events", "300", "--repeats", "1")
    )
    results = {line["form"]: line["results"] for line in lines}
    assert list(results) == list(FORMS)
    assert len({results[form] for form in ("list", "packed", "columns", "json", "avro", "protobuf")}) == 1
    assert results["named"] == results["json-columns"] > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["splits"], "Missing option '--data'"),
        (["splits", "--data", "sparse:1"], "expected sparse:n,d1,d2,q as in sparse:10000,10,10000,0.001"),
        (["splits", "--data", "absent.npz"], "expected sparse:n,d1,d2,q, fresh:n,d1,new or an .npz"),
        (["splits", "--data", "fresh:9,1"], "expected fresh:n,d1,new as in fresh:100000,10,100, got 'fresh:9,1'"),
        (["splits", "--data", "sparse:9,1,1,0.5", "--finders", "best"], "expected some of exact, "),
        (["splits", "--data", "sparse:9,1,1,0.5", "--updates", "window:0"], "--updates: expected incremental, "),
        (["pipeline", "--keys", "0"], "expected whole numbers from 1, got '0'"),
        (["pipeline", "--forms", "xml"], "expected some of list, packed, columns, named, json, json-columns"),
        (
            ["pipeline", "--forms", "json", "--kafka"],
            "expected --forms of list, packed, columns with --kafka",
        ),
        (["pipeline", "--threads", "1,2", "--kafka"], "expected --partitions and --threads without --kafka"),
        (["pipeline", "--threads", "65"], "--threads: expected threads, a whole number from 1 to 64, got 65"),
        (["report", "--data", "absent"], "'absent' does not exist"),
    ],
)
def test_bad_arguments_give_a_clear_message(arguments: list[str], message: str) -> None:
    """The message names the option and what was expected; nothing is measured."""
    result = _bench(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


# --- the report


def _save(path: Path, stream: Stream) -> None:
    np.savez(
        path,
        indptr=stream.pointer,
        indices=stream.feature,
        labels=stream.label,
        shape=(len(stream.label), stream.features),
    )


def _program(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return path


# Reads the file that it is given, so that its format is tested as well.
ANCHOR = """
import array, sys
algorithm, file, alpha = sys.argv[1:]
content = open(file, "rb").read()
n, features, ones = array.array("q", content[:24])
assert (algorithm, alpha) == ("updent", "0.1")
assert len(content) == 24 + 8 * (n + 1) + 4 * ones + n
pointer = array.array("q", content[24 : 24 + 8 * (n + 1)])
assert (pointer[0], pointer[n]) == (0, ones)
print(f"{algorithm} n={n} t=1.500s us/ex=3")
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Return the page of a quick report with two recorded sets and another program, and its lines."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "sets").mkdir()
    for name in ("farm_ads", "news20_bigram"):
        _save(folder / "sets" / f"{name}.npz", STREAM)
    other = _program(folder / "other", ANCHOR)
    page = folder / "out" / "RESULTS.md"
    lines = _lines(
        _bench(
            *("report", "--quick", "--repeats", "1", "--date", "2026-01-02"),
            *("--out", str(page), "--data", str(folder / "sets"), "--anchor", str(other)),
        )
    )
    return page, lines


@pytest.mark.slow
def test_a_report_runs_every_experiment(report: tuple[Path, list[dict[str, Any]]]) -> None:
    """There are lines of every experiment, each with every figure, and each has a section on the page."""
    _, lines = report
    assert list(dict.fromkeys(line["experiment"] for line in lines)) == list(EXPERIMENTS)
    others = ("trees", "points", "along", "kinds")
    assert all(COSTS <= set(line) for line in lines if line["experiment"] not in others)
    for name, data in (("points", "sparse"), ("along", "farm_ads")):
        own = [line for line in lines if line["experiment"] == name and line["data"].startswith(data)]
        exact = [line for line in own if (line["finder"], line["criterion"]) == ("exact", "gini")]
        assert [line["examples"] for line in exact] == sorted({line["examples"] for line in exact})
        assert [line["seconds"] for line in exact] == sorted(line["seconds"] for line in exact)
        assert len(exact) > 5
        assert {line["finder"] for line in own if "trees" in line} == {"updent", "updgini"}
    trees = [line["trees"] for line in lines if line["experiment"] == "trees" and line["finder"] == "updent"]
    assert trees == sorted(trees, reverse=True)
    assert trees[0] > trees[-1] >= 1
    assert set(SECTIONS) == set(EXPERIMENTS)


@pytest.mark.slow
def test_a_report_has_every_kind_of_model(report: tuple[Path, list[dict[str, Any]]]) -> None:
    """Each that is registered is measured; whatever predicts has a quality."""
    _, lines = report
    own = [line for line in lines if line["experiment"] == "kinds"]
    models = [*kinds._classes("adaptive").values(), *kinds._NUMBERS.values()]
    kinds_told = {f"{told['kind']} of {told['of']['kind']}" if "of" in told else told["kind"] for told in models}
    assert kinds_told == set(KINDS) - {"majority"}, "but for the kind of tests/support/majority.py"
    assert {line["finder"] for line in own} == {*kinds.SIDES, kinds.DECODE, kinds.MAJORITY}
    for line in own:
        if line["finder"] in kinds.SIDES:
            assert line["us_per_example"] > 0
            assert line["state_bytes"] > 0
            assert ("quality" in line) == (line["finder"] != "split")


@pytest.mark.slow
def test_the_page_of_a_report_has_tables_plots_and_where_it_was_made(
    report: tuple[Path, list[dict[str, Any]]],
) -> None:
    """Every plot that the page shows lies beside it and names what it draws; every finder has its column."""
    page, _ = report
    text = page.read_text()
    for section in SECTIONS.values():
        assert f"## {section.title}\n" in text
    shown = {line.partition("](")[2].removesuffix(")") for line in text.splitlines() if line.startswith("![")}
    assert shown == {plot.name for plot in page.parent.glob("*.svg")}
    assert len(shown) >= 12
    for plot in shown:
        drawn = (page.parent / plot).read_text()
        of_others = "regression-tree" if plot.startswith("results-kinds") else "exact, entropy"
        assert ("updent" if plot.endswith("trees.svg") else of_others) in drawn
        assert "<text" in drawn
    assert "| data: time per example (µs) | count-only | count-hash | exact, entropy | exact, gini |" in text
    assert "* date: 2026-01-02\n" in text
    assert "* command: `anabranch bench report --quick --data sets --anchor other --repeats 1`\n" in text
    assert "* machine: " in text
    assert "* commit: " in text
    assert str(page.parent.parent) not in text
    assert text.count("target at most") == 3


@pytest.mark.slow
def test_a_report_compares_with_another_program(report: tuple[Path, list[dict[str, Any]]]) -> None:
    """The other program's own measure of its time is a line, and every line of a set is put beside it."""
    _, lines = report
    sets = [line for line in lines if line["experiment"] == "sets"]
    assert {line["data"] for line in sets} == {"farm_ads", "news20_bigram"}
    assert [line["seconds"] for line in sets if line["finder"] == "anchor"] == [1.5, 1.5]
    assert all(line["to_anchor"] == pytest.approx(line["seconds"] / 1.5, rel=0.01) for line in sets)


@pytest.mark.slow
def test_deletes_are_measured_against_inserts(report: tuple[Path, list[dict[str, Any]]]) -> None:
    """Explicit deletes, checked ones, a pool's own window and random deletes each have their ratio."""
    _, lines = report
    ratios = {line["updates"]: line["to_inserts"] for line in lines if "to_inserts" in line}
    assert list(ratios) == [
        "incremental",
        "window:50",
        "window:50, checked",
        "window:50, the pool's own",
        "random:0.5",
    ]
    assert ratios["incremental"] == 1.0


def test_another_program_that_prints_no_time_is_refused(tmp_path: Path) -> None:
    """The message says what was expected of the program and what it printed."""
    for body, message in [
        ("print('hello')", "expected t=1.234s in what other prints, got 'hello"),
        ("exit(3)", "3"),
    ]:
        with pytest.raises(ValueError, match="expected") as error:
            anchor.check(_program(tmp_path / "other", body))
        assert message in str(error.value)


def test_another_program_needs_recorded_sets(tmp_path: Path) -> None:
    """Without a folder of sets there is nothing to run the other program on."""
    result = _bench(
        "report", "--anchor", str(_program(tmp_path / "other", "")), "--out", str(tmp_path / "page.md")
    )
    assert result.exit_code == 2
    assert "expected --data as well" in " ".join(result.stderr.split())


def test_a_folder_without_recorded_sets_is_refused(tmp_path: Path) -> None:
    """The message names the files that were looked for; nothing is measured."""
    result = _bench("report", "--data", str(tmp_path), "--out", str(tmp_path / "RESULTS.md"))
    assert result.exit_code == 2
    assert "news20_bigram.npz" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_report_without_matplotlib_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is measured, the message names the extra to install."""
    for module in ("worker.bench.report", "worker.bench.figures"):
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr("worker.bench.report")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = _bench("report", "--quick", "--out", str(tmp_path / "RESULTS.md"))
    assert result.exit_code == 1
    assert "pip install 'anabranch[bench]'" in result.stderr
    assert result.stdout == ""


def test_the_other_commands_need_no_matplotlib() -> None:
    """The command line does not import what only the report's plots need."""
    code = "import sys, worker.commands; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_plot_depends_on_its_figures_alone(tmp_path: Path) -> None:
    """Drawn twice it is the same file, so that a commit shows what has changed."""
    view = SECTIONS["width"].views[0]
    lines = {"exact, entropy": {10: 1.0, 100: 2.0}, "unheard-of": {10: 3.0}}
    for name in ("one.svg", "two.svg"):
        figures.draw(tmp_path / name, view, lines)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_criteria_of_a_finder() -> None:
    """A finder is measured with the criteria that it serves."""
    assert criteria_of("exact") == list(CRITERIA)
    assert criteria_of("baseent") == ["entropy"]


def test_a_prefix_of_a_stream(tmp_path: Path) -> None:
    """A limit takes the first examples, and a recorded set is read as it was written."""
    _save(tmp_path / "set.npz", STREAM)
    stream = load(str(tmp_path / "set.npz"), 7)
    assert _examples(stream) == _examples(STREAM)[:7]
    assert _examples(load(str(tmp_path / "set.npz"), 1_000)) == _examples(STREAM)


def test_labels_beside_inserts() -> None:
    """What waited is learned as by inserts at label time; the line has bytes and rates."""
    [line] = _lines(_bench("pending", "--examples", "300", "--features", "4"))
    assert line["same_results"]
    assert line["same_model"]
    assert line["pending"] == line["examples"] == 300
    assert {"bytes_each", "predicts_per_second", "labels_per_second", "inserts_per_second"} <= set(line)
    assert line["labels_over_inserts"] > 0


def test_bench_idle_says_what_is_left_of_a_state_of_which_most_expires() -> None:
    """A tenth of the keys is left in both runs, with arrays of the same size; the longest batches are told."""
    result = _bench("idle", "--keys", "30000", "--ones", "8")
    assert result.exit_code == 0, result.output
    lines = _lines(result)
    assert [line["run"] for line in lines] == ["a tenth lives", "only the tenth"]
    assert [line["keys"] for line in lines] == [3_000, 3_000]
    assert lines[1]["times_state_bytes"] <= 1.5
    assert lines[1]["times_checkpoint_bytes"] <= 1.5
    assert min(line["longest_expiring_ms"] for line in lines) > 0


def test_splits_that_are_not_the_best_are_counted() -> None:
    """Each order, finder and alpha has a line; no ratio is beyond the promise, with alpha 40 some are worse."""
    result = CliRunner().invoke(
        main, ["bench", "optimal", "--data", "sparse:400,5,100,0.05", "--alphas", "0.1,40", "--orders", "1"]
    )
    assert result.exit_code == 0, result.output
    rows = list(map(json.loads, result.stdout.splitlines()))
    cells = [(order, finder, alpha) for order in (0, 1) for finder in ("updent", "updgini") for alpha in (0.1, 40)]
    assert [(row["order"], row["finder"], row["alpha"]) for row in rows] == cells
    for row in rows:
        assert row["updates"] == 400
        assert 1.0 <= row["largest_ratio"] <= 1 + row["alpha"]
        assert (row["suboptimal"] > 0) == (row["largest_ratio"] > 1.0)
        assert row["share"] == pytest.approx(row["suboptimal"] / 400, rel=1e-3)
    assert sum(row["suboptimal"] for row in rows if row["alpha"] == 40) > 0
    assert [row["suboptimal"] for row in rows[:4]] != [row["suboptimal"] for row in rows[4:]]
    refused = CliRunner().invoke(main, ["bench", "optimal", "--data", "sparse:9,1,1,0.1", "--alphas", "0"])
    assert "--alphas: expected numbers above 0, got 0" in " ".join(refused.output.split())
