"""What every view makes of strings and numbers from outside, in any width."""

import io
import json
import logging
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from tests.support.about import ABOUT
from tests.worker.commands.test_show import NOW, TREE
from worker.codec import (
    Bounds,
    DeadLetter,
    Drift,
    Evaluation,
    Expired,
    LetGo,
    Measures,
    Output,
    Prediction,
    Reason,
    Source,
    Split,
    Tree,
    dead_letter,
    to_record,
)
from worker.codec.event import encode_event
from worker.commands.show import show
from worker.commands.validate import validate
from worker.log.embedded import EmbeddedLog
from worker.views import tree_dot, tree_svg
from worker.views.fitting import Column, Sheet, fitted
from worker.views.output_text import (
    baselines_table,
    dead_letter_text,
    drifts_table,
    evaluations_table,
    event_line,
    output_line,
    predictions_table,
    splits_table,
    tree_heading,
)
from worker.views.overview_text import PartitionRow, overview
from worker.views.status_html import status_page, tree_page
from worker.views.tree_text import draw
from worker.watching import logs
from worker.watching.metrics import Metrics
from worker.watching.status import ModelStatus, PartitionStatus, Status, StatusBoard

HOSTILE = [
    "[/red]ham",
    "[red]ham[/red]",
    "[link=http://x]y[/link]",
    ":smile:",
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m",
    "\u202egnp.exe\u2066",
    "a\rb\nc\td\x00",
    "</text></svg><script>alert(1)</script>",
    "\"quoted\" 'too' \\",
    "a<b&amp;c>",
    "{task.x} %s {0}",
    "\u2028\ufeff\ue000\U000e0001",
    'x" -> y [label="z',
]


def _source(topic: str) -> Source:
    return Source(topic, 3, 9_007_199_254_740_993, 41, NOW)


def _outputs(name: str, topic: str, weights: tuple[float, ...] = (1_295, 50.5)) -> list[Output]:
    """Return a result of each type whose names are all this one."""
    classes = [f"{name}{'x' * index}" for index in range(len(weights))]
    measures = Measures(3, 0.5, 0.25, [0.1] * len(weights), 0.75, 0.125, 0.5, 0.25, -0.125, None)
    tree = TREE._replace(
        model=name,
        classes=classes,
        counts=[weights] * len(TREE.node),
        names=[name, f"{name}b", f"{name}c"],
        source=_source(topic),
        kind=["numeric", "nominal", "binary", None, None, None, None],
        threshold=[1234.5] + [None] * 6,
        branch=[0, 1, 4_294_967_295, 0, 1, 1, 1],
    )
    split = Split(
        name, 0, name, "binary", None, "entropy", 0.4, 0.0889, f"{name}b", 0.0882, 4_398_046_511_104,
        (0, 1), (weights, weights), classes, _source(topic),
    )  # fmt: skip
    return [
        split,
        split._replace(kind="numeric", threshold=-1.23457e-308),
        tree,
        Prediction(name, name, classes[0], weights, 7_654_321, True, _source(topic)),
        Evaluation(name, 123_456_789, measures, measures, 1_000, classes, _source(topic)),
        Drift(name, 123_456_789, 0.125, 0.5, 5_242_875, _source(topic)),
        Expired(name, 1_600_000_000_000, 123_456_789, 5_242_875, _source(topic)),
        LetGo(name, 1_600_000_000_000, 123_456_789, 5_242_875, _source(topic)),
        DeadLetter(
            Reason.UNKNOWN_CLASS, name, name, _source(topic), [], 0, name.encode(), name.encode(), 1_009_347, None
        ),
    ]


def _renderables(name: str, topic: str, weights: tuple[float, ...] = (1_295, 50.5)) -> list[RenderableType]:
    """Return each view for a terminal of results in which all names are this one."""
    key = name.encode()
    outputs = _outputs(name, topic, weights)
    split, other, tree, prediction, evaluation, drift, expired, let_go, letter = outputs
    assert isinstance(split, Split)
    assert isinstance(other, Split)
    assert isinstance(tree, Tree)
    assert isinstance(prediction, Prediction)
    assert isinstance(evaluation, Evaluation)
    assert isinstance(drift, Drift)
    assert isinstance(expired, Expired)
    assert isinstance(let_go, LetGo)
    assert isinstance(letter, DeadLetter)
    event = encode_event({name: 2.5, "b": 1}, name, id=name, w=1_234.5)
    return [
        splits_table(name, [(key, split), (None, other)]),
        predictions_table([(key, prediction)]),
        evaluations_table([evaluation]),
        baselines_table([evaluation]),
        drifts_table([drift]),
        tree_heading(key, tree),
        draw(tree),
        dead_letter_text(letter),
        overview(name, [PartitionRow(topic, 0, 4_096, 1_024, 5_120, None), PartitionRow(topic, 12, 1, 2, 3, 4)]),
        *(output_line(key, output) for output in outputs),
        event_line(key, event, NOW),
        event_line(key, b"\xa5" + key[:5], NOW),
    ]


def _rendered(shown: RenderableType, width: int) -> str:
    """Return what a terminal of this width shows."""
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, highlight=False)
    console.print(fitted(shown, width) if isinstance(shown, Text) and shown.no_wrap else shown)
    return file.getvalue()


def _is_safe(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_terminal_is_not_steered(name: str) -> None:
    """Whatever names, keys, labels and reasons hold, a terminal shows it as text, whole or escaped."""
    for shown in _renderables(name, "t" + name):
        for width in (40, 400):
            assert _is_safe(_rendered(shown, width))
    whole = "".join(_rendered(shown, 400) for shown in _renderables(name, name))
    if name.isprintable():
        assert name[:20] in whole


@pytest.mark.parametrize("options", [(), ("--json",), ("--last", "3"), ("--format", "svg"), ("--format", "dot")])
@pytest.mark.parametrize("name", HOSTILE)
def test_show_is_not_steered(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    """Nor does the command show anything but text, in any of its formats; JSON says the same as before."""
    path = tmp_path / "events.db"
    with EmbeddedLog(path) as log:
        log.create_topic("out", 4)
        log.append(to_record(output, "out", name.encode()) for output in _outputs(name, "sms"))
    result = CliRunner().invoke(show, [str(path), "--topic", "out", *options], env={"COLUMNS": "90"})
    assert result.exit_code == 0, result.output
    assert _is_safe(result.output)
    if "--json" in options:
        found = [json.loads(line) for line in result.output.splitlines()]
        assert {each["model"] for each in found} == {name}
    if "svg" in options:
        assert ElementTree.fromstring(result.output) is not None


@pytest.mark.parametrize("name", HOSTILE)
def test_drawings_are_not_broken(name: str) -> None:
    """An SVG is well-formed, holds no element of the names', and a graph's strings end where they should."""
    (tree,) = [output for output in _outputs(name, "t" + name) if isinstance(output, Tree)]
    drawn = tree_svg.draw(tree, name.encode())
    assert _is_safe(drawn)
    assert not [each for each in ElementTree.fromstring(drawn).iter() if each.tag.endswith("script")]
    dot = tree_dot.draw(tree, name.encode())
    assert _is_safe(dot)
    for line in dot.splitlines():
        left = re.sub(r'"(\\.|[^"\\])*"', "S", line)
        assert re.fullmatch(r"digraph S \{|  node \[shape=box\];|  n\d+( -> n\d+)? \[label=S\];|\}", left), line


@pytest.mark.parametrize("name", HOSTILE)
def test_pages_are_not_broken(name: str) -> None:
    """A page shows names as text."""
    board = StatusBoard(
        Status(1.0, "running", (PartitionStatus(name, 0, 1, 2),), (ModelStatus(name, 1, 2, 3, 4),))
    )
    (tree,) = [output for output in _outputs(name, name) if isinstance(output, Tree)]
    board.snapshots.add([to_record(tree, "out", name.encode())])
    for page in (status_page(board.status, board.snapshots.kept, 2.0, ABOUT), tree_page(name.encode(), tree)):
        assert _is_safe(page)
        assert "<script" not in page
        assert "</svg><" not in page


@pytest.mark.parametrize("name", HOSTILE)
def test_metrics_are_not_broken(name: str) -> None:
    """A label of a metric reads back as it was."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, "1")
    metrics.applied(name, "insert", 1)
    metrics.rejected_events(name, Reason.BAD_ID)
    text = generate_latest(registry).decode()
    found = {
        sample.labels.get("model") for family in text_string_to_metric_families(text) for sample in family.samples
    }
    assert name in found


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("name", HOSTILE)
def test_logs_are_not_steered(name: str, format: str) -> None:
    """A line of the log is one line, whatever is logged: by the worker, by a library, of an error."""
    file = io.StringIO()
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        logs.configure("debug", format, file)  # type: ignore[arg-type]
        structlog.get_logger("anabranch").warning(name, topic=name, names=[name], model={name: name})
        logging.getLogger("library").warning("said %s", name)
        assert len(file.getvalue().splitlines()) == 2
        try:
            raise ValueError(name)
        except ValueError:
            structlog.get_logger("anabranch").exception("it failed")
    finally:
        logging.getLogger().handlers[:], logging.getLogger().level = before
        structlog.reset_defaults()
    assert _is_safe(file.getvalue())


@pytest.mark.parametrize("name", HOSTILE)
def test_problems_of_settings_are_not_steered(tmp_path: Path, name: str) -> None:
    """A message about settings quotes what it found as text, on one line."""
    quoted = json.dumps(name)
    for text in (
        f"log: {{embedded: a.db}}\nmodels: {{{quoted}: {{kind: split}}}}\n",
        f"log: {{embedded: a.db, {quoted}: 1}}\nmodels: {{m: {{kind: {quoted}, input: {quoted}}}}}\n",
        f"log: {{kafka: {{bootstrap: a, properties: {{{quoted}: 1}}}}}}\ntopics: {{{quoted}: {{output: 1}}}}\n",
    ):
        path = tmp_path / "worker.yaml"
        path.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(validate, [str(path)])
        assert result.exit_code == 1
        assert _is_safe(result.output)


# --- numbers


LARGEST = float(1 << 42)
WEIGHTS = [(1_295.0, 50.5), (LARGEST, LARGEST - 0.875), (0.0, 12_345.0), tuple(range(1_000, 1_040))]
NAMES = ["up", "a-very-long-name-of-something-that-is-measured", "two words", "日本語の名前"]


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_never_cut(name: str, weights: tuple[float, ...]) -> None:
    """In a terminal of any width a number is there whole or not at all, and lines stay within the terminal."""
    # Every width with every name, and with all weights; all three with one another would take half a minute.
    first = 20 + (NAMES.index(name) + WEIGHTS.index(weights)) % 4
    for at, shown in enumerate(_renderables(name, f"a-topic-of-{name}", weights)):
        wide = _numbers(_rendered(shown, 5_000))
        for width in range(first, 201, 4):
            drawn = _rendered(shown, width)
            assert _numbers(drawn) <= wide, (at, width, drawn)
            assert max(map(cell_len, drawn.splitlines()), default=0) <= width, (at, width, drawn)


def _numbers(drawn: str) -> set[str]:
    return set(re.findall(r"-?\d[\d,.]*(?:e-?\d+)?", re.sub(r"…\d+ ", "", drawn)))  # less depths


def test_a_table_closes_up_before_it_is_taken_apart() -> None:
    """Where a table is some cells too wide its columns stand closer; then each row is some lines."""
    sheet = Sheet([Column("model"), *(Column("number", is_number=True) for _ in range(7))], [["tree", *["1"] * 7]])
    narrowest = 5 + 7 * 6 + 7 * 2 + 2
    for width in (narrowest, narrowest + 6, narrowest + 7, 200):
        lines = _rendered(sheet, width).splitlines()
        assert max(map(cell_len, lines)) <= width
        assert lines[1].split() == ["model", *["number"] * 7]
    assert _rendered(sheet, narrowest - 1).split() == ["model", "tree", *["number", "1"] * 7]


def test_names_are_folded_between_their_words() -> None:
    """A column of one word has its room before a column of two has it for both in a line."""
    sheet = Sheet([Column("key"), Column("feature")], [["electricity", "date > 0.694177"]])
    lines = [line.split() for line in _rendered(sheet, 27).splitlines()]
    assert ["electricity", "date", ">"] in lines
    assert ["0.694177"] in lines


def test_a_narrow_tree_keeps_its_heaviest_numbers() -> None:
    """At 80 columns a long name is cut, and the weight beside it stands there whole."""
    name = "a-class-name-of-24-chars"
    tree = TREE._replace(names=["x" * 50] * 3, classes=[name, "spam"])
    lines = _rendered(draw(tree), 80).splitlines()
    assert all(re.search(rf"{weight:,g}( |$)", line) for (weight, _), line in zip(tree.counts, lines, strict=True))
    assert all("…" in line for line in lines[:3])


def test_dead_letters_of_rows_are_text() -> None:
    """Reasons of rows are shown as text too."""
    rows = [(row, Reason.UNKNOWN_CLASS, HOSTILE[0] + HOSTILE[4]) for row in (1, 2)]
    letter = dead_letter(_source("sms"), rows, b"k", b"v", Bounds())
    shown = _rendered(dead_letter_text(letter), 120)
    assert _is_safe(shown)
    assert HOSTILE[0] in shown
