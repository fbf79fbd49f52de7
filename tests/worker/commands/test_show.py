import io
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console, RenderableType

from worker.codec import (
    Bounds,
    Output,
    Prediction,
    Reason,
    Source,
    Split,
    Tree,
    cut,
    dead_letter,
    encode,
    joined,
    to_record,
)
from worker.codec.event import encode_batch, encode_event
from worker.commands.show import show
from worker.log import browse
from worker.log.browse import Browser
from worker.log.embedded import EmbeddedLog
from worker.log.embedded_reader import EmbeddedReader
from worker.log.port import OutRecord, Records, TopicPartition, Watermarks
from worker.safe_text import printable
from worker.views import tree_dot, tree_svg
from worker.views.output_text import splits_table, tree_heading
from worker.views.split_text import split_line
from worker.views.tree_text import draw
from worker.views.words import brief_weight_word, feature_word, key_word, weight_word

NOW = 1_700_000_000_000
CLASSES = ("ham", "spam")


def _source(offset: int) -> Source:
    return Source("sms", 0, offset, 0, NOW + offset)


def _split(offset: int, feature: int | str | None = "call", model: str = "spam", gain: float = 0.0889) -> Split:
    return Split(
        model=model,
        node=0,
        feature=feature,
        kind=None if feature is None else "binary",
        threshold=None,
        criterion="entropy",
        score=0.4,
        gain=gain,
        runner_up=None if feature is None else "txt",
        runner_up_gain=None if feature is None else 0.0882,
        n=3267,
        branches=(0, 1),
        counts=((2702, 259), (127, 179)),
        classes=CLASSES,
        source=_source(offset),
    )


TREE = Tree(
    model="spam",
    version=5574,
    chunk=0,
    chunks=1,
    node=[0, 1, 3, 5, 6, 4, 2],
    parent=[-1, 0, 1, 3, 3, 1, 0],
    branch=[0, 0, 0, 0, 1, 1, 1],
    feature=[0, 1, 2, None, None, None, None],
    kind=["binary", "binary", "binary", None, None, None, None],
    threshold=[None] * 7,
    counts=[(4827, 747), (4800, 600), (4700, 100), (4700, 50.5), (0, 49.5), (100, 500), (27, 147)],
    classes=CLASSES,
    names=["call", "free", "www com"],
    parameters={},
    source=_source(9),
)


def _render(renderable: RenderableType, width: int = 80, *, encoding: str = "utf-8") -> str:
    """Return what a terminal of this width would show, without colours or spaces at line ends."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding)
    Console(file=file, width=width, color_system=None, highlight=False).print(renderable)
    file.flush()
    return "\n".join(line.rstrip() for line in raw.getvalue().decode(encoding).splitlines())


def _log(folder: Path) -> Path:
    """Write a log with an input topic, results and dead letters."""
    path = folder / "events.db"
    events = [
        encode_event(["free", "win"], "spam", id=7),
        encode_event({"price": 3.5}, "ham", w=2.5),
        encode_event(op="delete", id=7),
        encode_batch([[1], [2]], [0, 1]),
        b"\xc1",
    ]
    outputs: list[tuple[bytes, Output]] = [
        (b"nz", _split(0, "free")),
        (b"au", _split(1, None)),
        (b"nz", _split(2)),
        (b"nz", TREE),
        (b"nz", Prediction("spam", "q\x1b[2J", "ham", (90, 10.5), 1, True, _source(4))),
        (b"au", Prediction("spam", None, None, (0, 0), 0, False, _source(5))),
        (b"nz", _split(6, model="other")),
    ]
    letter = dead_letter(
        _source(4),
        [(None, Reason.MALFORMED, "expected one msgpack value, found a reserved code")],
        b"nz",
        b"\xc1 caf\xc3\xa9 \x1b[31m",
        Bounds(),
    )
    rows = dead_letter(
        _source(3),
        [(row, Reason.UNKNOWN_CLASS, f"row {row} has no class") for row in (1, 4, 6, 8)],
        b"nz",
        events[3],
        Bounds(),
        model="spam",
    )
    with EmbeddedLog(path) as log:
        log.create_topic("sms", 2)
        log.create_topic("sms.out", 2)
        log.create_topic("sms.dead", 1)
        records = [OutRecord("sms", 0, b"nz", value, (), NOW) for value in events]
        records.append(OutRecord("sms", 0, b"nz", None, (), NOW))
        records += [to_record(output, "sms.out", key) for key, output in outputs]
        records += [to_record(each, "sms.dead", each.key) for each in (rows, letter)]
        log.commit(records, {TopicPartition("sms", 0): 4})
    return path


def _show(*arguments: object) -> Result:
    return CliRunner().invoke(show, [str(argument) for argument in arguments], env={"COLUMNS": "80"})


def _shown(*arguments: object) -> str:
    result = _show(*arguments)
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.output.splitlines()).strip("\n")


def _objects(*arguments: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in _shown(*arguments, "--json").splitlines()]


# --- drawings


def test_draw_a_tree() -> None:
    """A tree is drawn with its tests, branches, and the weight of each class at every node."""
    expected = """\
call ?                       ██████████░░ ham 4,827  spam 747
├─ absent free ?             ███████████░ ham 4,800  spam 600
│ ├─ absent 'www com' ?      ███████████░ ham 4,700  spam 100
│ │ ├─ absent → ham          ███████████░ ham 4,700  spam 50.5
│ │ └─ present → spam        ░░░░░░░░░░░░ ham 0  spam 49.5
│ └─ present → spam          ██░░░░░░░░░░ ham 100  spam 500
└─ present → spam            ██░░░░░░░░░░ ham 27  spam 147"""
    drawn = _render(draw(TREE))
    assert [line.split() for line in drawn.splitlines()] == [line.split() for line in expected.splitlines()]
    assert len({line.index("ham", 30) for line in drawn.splitlines()}) == 1
    assert max(map(len, drawn.splitlines())) <= 80


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"kind": "tree", "policy": "exact"}, ", inner ones as of their split"),
        ({"kind": "tree", "policy": "efdt"}, ", all counts so far"),
        ({"kind": "dynamic-tree"}, ", all counts live"),
        ({"kind": "forest"}, ", all counts live"),
        ({"kind": "forest", "policy": "osm"}, ", inner ones as of their split"),
        ({}, "7 nodes"),
    ],
)
def test_what_stands_beside_an_inner_node(parameters: dict[str, Any], said: str) -> None:
    """It is said whether that is what the node held when it split, less than is below it, or what it holds now."""
    assert tree_heading(b"k", TREE._replace(parameters=parameters)).plain.endswith(said)
    leaf = TREE._replace(node=[0], parent=[-1], parameters=parameters)
    assert tree_heading(b"k", leaf).plain.endswith(", 1 node")


def test_many_classes() -> None:
    """Of many classes the heaviest come first, those without any weight not at all; a bar has its true shares."""
    weights = [0.0] * 30
    weights[7], weights[20], weights[29] = 900, 90, 10
    names = [f"c{number}" for number in range(30)]
    tree = TREE._replace(classes=names, counts=[weights] * 7)
    line = _render(draw(tree)).splitlines()[3]
    assert line.split()[-6:] == ["c7", "900", "c20", "90", "c29", "10"]
    split = _split(1)._replace(classes=names, counts=[weights, weights[::-1]])
    drawn = _render(splits_table("m", [(b"k", split)]), 120)
    assert "c7: 900 of 1,000" in drawn
    assert "c22: 900 of 1,000" in drawn
    even = TREE._replace(classes=names, counts=[[1.0] * 29 + [291.0]] * 7)
    assert _render(draw(even)).splitlines()[3].count("░") >= 10  # the thirtieth's


def test_numeric_splits_in_a_table() -> None:
    """A numeric split has its threshold, and the columns say which side is which."""
    split = _split(1)._replace(kind="numeric", threshold=2.5)
    drawn = _render(splits_table("m", [(b"k", split)]))
    assert " call > 2.5 " in drawn
    assert re.search(r"absent, ≤ +present, >", drawn)
    assert "≤" not in _render(splits_table("m", [(b"k", _split(1))]))


def test_draw_in_ascii() -> None:
    """Where the terminal has only ASCII, so has the drawing."""
    drawn = _render(draw(TREE), encoding="ascii")
    assert drawn.splitlines()[3].split() == [
        "|",
        "|",
        "|-",
        "absent",
        ">",
        "ham",
        "###########.",
        "ham",
        "4,700",
        "spam",
        "50.5",
    ]


def test_draw_a_leaf() -> None:
    """A tree without a split is one line: the class, or that there is nothing yet."""
    leaf = _leaf((3, 1))
    assert _render(draw(leaf)) == "ham █████████░░░ ham 3  spam 1"
    assert _render(draw(_leaf((0, 0)))).split() == ["nothing", "ham", "0", "spam", "0"]


def _leaf(weights: tuple[float, float]) -> Tree:
    return Tree("m", 0, 0, 1, [0], [-1], [0], [None], [None], [None], [weights], CLASSES, None, {}, _source(0))


def _chain(depth: int) -> Tree:
    """Return a tree whose absent branches go down and down."""
    down, sides = range(depth + 1), range(depth)  # node numbers: down the chain even, its sides odd
    return TREE._replace(
        node=[2 * level for level in down] + [2 * level + 1 for level in reversed(sides)],
        parent=[2 * level - 2 if level else -1 for level in down] + [2 * level for level in reversed(sides)],
        branch=[0] * len(down) + [1] * depth,
        feature=[*sides, None] + [None] * depth,
        kind=["binary"] * depth + [None] * (depth + 1),
        threshold=[None] * (2 * depth + 1),
        counts=[(depth - level, 1) for level in down] + [(1, 0)] * depth,
        names=None,
    )


def test_draw_numbers_and_categories() -> None:
    """A numeric split says its threshold, a nominal one its categories, 0 being absent."""
    tree = TREE._replace(
        node=[0, 1, 2, 3, 4],
        parent=[-1, 0, 0, 2, 2],
        branch=[0, 0, 1, 0, 40],
        feature=[7, None, 8, None, None],
        kind=["numeric", None, "nominal", None, None],
        threshold=[2.5, None, None, None, None],
        counts=[(4, 4), (3, 0), (1, 4), (1, 0), (0, 4)],
        names=None,
    )
    drawn = [re.split(" *[█░]", line)[0].strip() for line in _render(draw(tree)).splitlines()]
    assert drawn == ["#7 ?", "├─ ≤ 2.5 → ham", "└─ > 2.5 #8 ?", "├─ absent → ham", "└─ = 40 → spam"]


@pytest.mark.parametrize("names", [None, [f"name {number:04}" for number in range(300)]])
def test_a_tree_in_parts(names: list[str] | None) -> None:
    """A tree that is too large for a record is cut, each part with its own names, and put together again."""
    tree = _chain(300)._replace(names=names)
    found = cut(tree, 4_000)
    assert len(found) > 5
    assert [(part.chunk, part.chunks) for part in found] == [(at, len(found)) for at in range(len(found))]
    assert all(len(encode(part)) < 5_000 for part in found)
    assert joined(found) == tree
    assert cut(tree) == [tree]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_draw_a_deep_tree(width: int) -> None:
    """However deep a tree is, its lines stay within the terminal, and what is left out is counted."""
    lines = _render(draw(_chain(3_000), most=100), width).splitlines()
    assert len(lines) == 101
    assert max(map(len, lines)) <= width
    assert lines[60].startswith("…60 ")
    assert "#60 ?" in lines[60]
    assert lines[-1] == "... and 5,901 more nodes"


def test_split_line() -> None:
    """A split is one line, the important first."""
    assert split_line(_split(0)).plain == (
        "call  with: 58% spam, without: 91% ham  gain 0.0889  next txt 0.0882  n 3,267"
    )
    assert split_line(_split(0, None)).plain == "no split  n 3,267"


def test_words() -> None:
    """Names cannot steer the terminal or be taken for ids, and numbers are short."""
    assert [feature_word(each) for each in (17, "free", "a b", "#17", "", "it's", "\x1b[2J", None)] == [
        "#17",
        "free",
        "'a b'",
        "'#17'",
        "''",
        '"it\'s"',
        "\\x1b[2J",
        "-",
    ]
    assert printable("x" * 100, 10) == "x" * 9 + "…"
    assert [key_word(key) for key in (None, b"a\xff\n")] == ["(none)", "a\\xff\\n"]
    assert [weight_word(weight) for weight in (0, 1234, 0.5, 1 / 3, 100)] == [
        "0",
        "1,234",
        "0.5",
        "0.333",
        "100",
    ]
    estimates = (0, 0.12345, 1 / 3, 12.3456, 165.719, 1781.988, 100)
    assert [brief_weight_word(weight) for weight in estimates] == [
        "0",
        "0.123",
        "0.333",
        "12.35",
        "165.7",
        "1,782",
        "100",
    ]


# --- the command


def test_overview(tmp_path: Path) -> None:
    """Without a topic every partition is listed with its watermarks and what the group has read."""
    lines = [line.split() for line in _shown(_log(tmp_path)).splitlines()]
    assert lines[:2] == [["read", "by"], ["topic", "partition", "records", "low", "high", "anabranch"]]
    assert lines[3:] == [
        ["sms", "0", "6", "0", "6", "4"],
        ["1", "0", "0", "0", "-"],
        ["sms.dead", "0", "2", "0", "2", "-"],
        ["sms.out", "0", "7", "0", "7", "-"],
        ["1", "0", "0", "0", "-"],
    ]
    assert _objects(tmp_path / "events.db", "--group", "g")[0] == {
        "topic": "sms",
        "partition": 0,
        "records": 6,
        "low": 0,
        "high": 6,
        "committed": None,
    }


def test_results(tmp_path: Path) -> None:
    """Of results it shows the latest split and tree of each key, and the last predictions."""
    assert (
        _shown(_log(tmp_path), "--topic", "sms.out", "--model", "spam")
        == """\
spam: the latest split of each key

                                                  absent    present
 key   feature     gain   runner-up        n    ham/spam   ham/spam
 ──────────────────────────────────────────────────────────────────
 au    -         0.0889   -            3,267   2,702/259    127/179
 nz    call      0.0889   txt 0.0882   3,267   2,702/259    127/179

spam: tree of nz  version 5,574, 7 nodes
call ?                  ██████████░░ ham 4,827  spam 747
├─ absent free ?        ███████████░ ham 4,800  spam 600
│ ├─ absent 'www com' ? ███████████░ ham 4,700  spam 100
│ │ ├─ absent → ham     ███████████░ ham 4,700  spam 50.5
│ │ └─ present → spam   ░░░░░░░░░░░░ ham 0  spam 49.5
│ └─ present → spam     ██░░░░░░░░░░ ham 100  spam 500
└─ present → spam       ██░░░░░░░░░░ ham 27  spam 147

predictions

 key   model   id         label     weights   leaf   offset
 ──────────────────────────────────────────────────────────
 nz    spam    q\\x1b[2J   ham       90/10.5      1      0/4
 au    spam    -          unknown   0/0          0      0/5"""
    )


def test_last_and_key(tmp_path: Path) -> None:
    """Only the last records, or those of a key, can be shown."""
    log = _log(tmp_path)
    last = _shown(log, "--topic", "sms.out", "--model", "spam", "--last", 1)
    assert last.splitlines()[0] == "predictions"
    assert "unknown" in last
    assert "x1b" not in last
    assert "unknown" not in _shown(log, "--topic", "sms.out", "--key", "nz")
    assert _shown(log, "--topic", "sms.out", "--key", "nobody").splitlines() == [
        "no such records in sms.out",
        "keys of its last records: au, nz",
        "models of its last records: other, spam",
    ]
    last = _shown(log, "--topic", "sms.out", "--model", "none", "--last", 1)
    assert last.splitlines()[1] == "keys of its last records: au, nz"


def test_a_forest(tmp_path: Path) -> None:
    """A forest is a table of its trees, and --tree shows one of them; --format takes one."""
    path, base = tmp_path / "events.db", TREE._replace(parameters={"kind": "forest"}, trees=3)
    trees = [base._replace(tree=0), base._replace(tree=1, names=["a", "b", "c"]), base._replace(tree=2)]
    before = base._replace(tree=0, source=_source(8), counts=[(1, 1)] * 7)
    parts = [part for tree in trees for part in cut(tree, 100 if tree.tree == 1 else 500_000)]
    assert len(parts) > 4
    with EmbeddedLog(path) as log:
        log.create_topic("sms.out", 1)
        log.append([to_record(before, "sms.out", b"nz")])
        log.append([to_record(part, "sms.out", b"nz", seq) for seq, part in enumerate(parts)])
    asked = (path, "--topic", "sms.out")
    lines = [line.split() for line in _shown(*asked).splitlines() if line.strip()]
    assert lines[0] == ["spam:", "forest", "of", "nz", "version", "5,574,", "3", "trees"]
    assert lines[1] == ["tree", "vote", "nodes", "examples", "root", "tests"]
    assert lines[3:] == [[str(tree), "1", "7", "5,574", word] for tree, word in enumerate(("call", "a", "call"))]
    told = _shown(*asked, "--tree", 1)
    assert "spam: tree 1 of nz  version 5,574, 7 nodes, all counts live" in told
    assert "a ?" in told
    assert "call ?" not in told
    drawn = json.loads(_shown(*asked, "--tree", 1, "--format", "json"))
    assert (drawn["tree"], drawn["trees"], drawn["names"], len(drawn["node"])) == (1, 3, ["a", "b", "c"], 7)
    assert _shown(*asked, "--tree", 2, "--format", "dot").startswith('digraph "spam: tree 2 of nz" {')
    for wrong in ((), ("--tree", 3)):
        result = _show(*asked, *wrong, "--format", "svg")
        assert result.exit_code == 1
        assert result.stderr == (
            "Error: expected --tree with the number of one of the trees that there are; spam of nz is a forest "
            "with the trees 0 to 2\n"
        )


def test_saved_models(tmp_path: Path) -> None:
    """A state topic has no events; its tombstones are not shown as such."""
    path = tmp_path / "events.db"
    with EmbeddedLog(path) as log:
        log.create_topic("sms.state", 1)
        log.append([OutRecord("sms.state", 0, b"\x96\xa4page", None, (), NOW)])
    assert _shown(path, "--topic", "sms.state") == "sms.state holds saved models, which only a worker reads"


def test_many_keys(tmp_path: Path) -> None:
    """Of many keys it shows those that changed last, and tells how many more there are; --last shows them too."""
    path = tmp_path / "events.db"
    with EmbeddedLog(path) as log:
        log.create_topic("sms.out", 1)
        log.append(to_record(_split(n), "sms.out", b"key-%02d" % n) for n in range(12))
    shown = _shown(path, "--topic", "sms.out")
    assert "key-02" in shown
    assert "key-01" not in shown
    assert "... and 2 more keys (--last N shows more)" in shown
    assert "key-00" in _shown(path, "--topic", "sms.out", "--last", 12)


def test_dead_letters(tmp_path: Path) -> None:
    """A dead letter shows its reason, place, detail, and the first bytes as hex and as text."""
    assert (
        _shown(_log(tmp_path), "--topic", "sms.dead")
        == """\
unknown-class  sms/0 offset 3  key nz  refused by spam
  row 1: unknown-class: row 1 has no class
  row 4: unknown-class: row 4 has no class
  row 6: unknown-class: row 6 has no class
  4 rows in all
  hex   84 a1 6e 02 a3 70 74 72 c4 0c 00 00 00 00 01 00 00 00 02 00 00 00 a1 69
  text  ··n··ptr···············i···········y····
  size  40 bytes

malformed  sms/0 offset 4  key nz
  expected one msgpack value, found a reserved code
  hex   c1 20 63 61 66 c3 a9 20 1b 5b 33 31 6d
  text  · café ·[31m
  size  13 bytes"""
    )


def test_events(tmp_path: Path) -> None:
    """Of an input topic it shows the last events, readable or not."""
    assert _shown(_log(tmp_path), "--topic", "sms").splitlines() == [
        "nz  insert 7  spam  free win",
        "nz  insert  ham  w 2.5  price=3.5",
        "nz  delete 7",
        "nz  2 events  insert  0  #1",
        "nz  malformed  expected msgpack, found the reserved code 0xc1 at byte 0; send msgpack maps",
        "nz  drop the model",
    ]


def test_json(tmp_path: Path) -> None:
    """As JSON every record is an object on a line, with the fields of its contents."""
    log = _log(tmp_path)
    first, *_, last = _objects(log, "--topic", "sms.out")
    assert {name: first[name] for name in ("topic", "partition", "offset", "timestamp", "key", "type")} == {
        "topic": "sms.out",
        "partition": 0,
        "offset": 0,
        "timestamp": NOW,
        "key": "nz",
        "type": "split",
    }
    assert (first["feature"], first["counts"]) == ("free", [[2702, 259], [127, 179]])
    assert first["source"] == {"topic": "sms", "partition": 0, "offset": 0, "row": 0, "time": NOW}
    assert (last["model"], last["offset"]) == ("other", 6)
    assert len(_objects(log, "--topic", "sms.out", "--last", 2)) == 2
    letter = _objects(log, "--topic", "sms.dead", "--last", 1)[0]
    assert (letter["reason"], letter["value"]) == ("malformed", "c120636166c3a9201b5b33316d")
    events = _objects(log, "--topic", "sms")
    assert [event["type"] for event in events] == ["event"] * 6
    assert events[0]["events"] == [
        {
            "op": "insert",
            "time": NOW,
            "weight": 1 << 20,
            "id": 7,
            "label": "spam",
            "features": ["free", "win"],
            "values": [1.0, 1.0],
        }
    ]


def test_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Following shows the last records, then those that come, until it is interrupted."""
    path = _log(tmp_path)
    polled = EmbeddedReader.poll

    def poll(reader: EmbeddedReader, limit: int, timeout: float) -> list[Records]:
        assert timeout > 0
        if not (records := polled(reader, limit, 0)):
            raise KeyboardInterrupt
        return records

    def assign(reader: EmbeddedReader, positions: dict[object, int]) -> None:
        assigned(reader, positions)  # type: ignore[arg-type]
        # Another process writes while the last records are being shown.
        with EmbeddedLog(path) as other:
            other.append([to_record(_split(8, "prize"), "sms.out", b"nz"), to_record(TREE, "sms.out", b"nz")])

    assigned = EmbeddedReader.assign
    monkeypatch.setattr(EmbeddedReader, "poll", poll)
    monkeypatch.setattr(EmbeddedReader, "assign", assign)
    lines = _shown(path, "--topic", "sms.out", "--follow", "--last", 2).splitlines()
    assert lines[:4] == [
        "au  spam  - is unknown  0/0",
        "nz  other  call  with: 58% spam, without: 91% ham  gain 0.0889  next txt 0.0882  n 3,267",
        "nz  spam  prize  with: 58% spam, without: 91% ham  gain 0.0889  next txt 0.0882  n 3,267",
        "nz  spam  tree  version 5,574, 7 nodes",
    ]
    assert lines[4].startswith("call ?")


def test_partitions_are_merged(tmp_path: Path) -> None:
    """The records of several partitions come in the order of their timestamps."""
    path = tmp_path / "events.db"
    value = encode_event([1], 1)
    with EmbeddedLog(path) as log:
        log.create_topic("t", 3)
        log.append(OutRecord("t", n % 3, b"%d" % n, value, (), n + 1) for n in range(30))
    assert [each["key"] for each in _objects(path, "--topic", "t", "--last", 7)] == [str(n) for n in range(23, 30)]


def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While all of a topic is read, a terminal shows how far it is and how to read less."""
    assert "all of" not in _show(_log(tmp_path), "--topic", "sms.out").stderr
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "all of sms.out (for its end: --last N)" in _show(tmp_path / "events.db", "--topic", "sms.out").stderr
    assert _show(tmp_path / "events.db", "--topic", "sms.out", "--last", 5).stderr == ""


def _assignments(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, int]]:
    """Return what readers are told to read from now on: offsets by partition."""
    told: list[dict[int, int]] = []
    assign = EmbeddedReader.assign

    def noted(reader: EmbeddedReader, positions: Mapping[TopicPartition, int]) -> None:
        told.append({source.partition: offset for source, offset in positions.items()})
        assign(reader, positions)

    monkeypatch.setattr(EmbeddedReader, "assign", noted)
    return told


def test_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last records are looked for from the end of each partition, further back where not all are wanted."""
    path = tmp_path / "events.db"
    with EmbeddedLog(path) as log:
        log.create_topic("sms.out", 2)
        models = ["rare" if n % 100 == 0 else "spam" for n in range(1_000)]
        splits = (to_record(_split(n, model=model), "sms.out", b"k") for n, model in enumerate(models))
        log.append(split._replace(partition=n % 2) for n, split in enumerate(splits))
    told = _assignments(monkeypatch)
    shown = _objects(path, "--topic", "sms.out", "--last", 3)
    assert [each["timestamp"] for each in shown] == [NOW + 997, NOW + 998, NOW + 999]
    assert told == [{0: 497, 1: 497}]
    told.clear()
    shown = _objects(path, "--topic", "sms.out", "--model", "rare", "--last", 2)
    assert [each["timestamp"] for each in shown] == [NOW + 800, NOW + 900]
    # The first partition has two of them among its last 170 records, the second has none at all.
    assert told == [{0: 498, 1: 498}, {0: 490, 1: 490}, {0: 458, 1: 458}, {0: 330, 1: 330}, {1: 0}]


@pytest.mark.parametrize("name", ["worker.yaml", "worker.yml"])
def test_settings(tmp_path: Path, name: str) -> None:
    """Settings in place of the log's file show the topics that they name, and those that are not there yet."""
    with EmbeddedLog(_log(tmp_path), group="readers") as log:
        log.commit([], {TopicPartition("sms", 0): 3})
        log.create_topic("others", 1)
    path = tmp_path / name
    path.write_text(
        """
log: {embedded: events.db}
group: readers
models:
  spam: {kind: split, input: sms, classes: [ham, spam], features: names}
"""
    )
    shown = _objects(path)
    assert [each["topic"] for each in shown] == ["sms", "sms", "sms.out", "sms.out", "sms.dead"]
    assert shown[0]["committed"] == 3
    assert _objects(path, "--group", "anabranch")[0]["committed"] == 4
    headings = _shown(path).splitlines()[:2]
    assert [line.split()[-1] for line in headings] == ["by", "readers"]
    assert _shown(path).splitlines()[-1] == "not there yet: sms.state (anabranch topics create)"
    assert _shown(path, "--topic", "sms.out") == _shown(tmp_path / "events.db", "--topic", "sms.out")
    assert "expected a topic of the log (sms, sms.out, sms.dead)" in _show(path, "--topic", "x").stderr


def test_reading_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic longer than one read is shown to its end, and no further than where it ended at the start."""
    monkeypatch.setattr(browse, "READ_RECORDS", 3)
    path = tmp_path / "events.db"
    record = OutRecord("t", 0, b"k", encode_event([1], 1), (), NOW)
    with EmbeddedLog(path) as log:
        log.create_topic("t", 1)
        log.append([record] * 10)

        def each() -> Iterator[int]:
            for found in Browser(log, {TopicPartition("t", 0): Watermarks(0, 10)}).scan():
                log.append([record])
                yield found.offset

        assert list(islice(each(), 20)) == list(range(10))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--topic", "sns"], 1, "expected a topic of the log (sms, sms.dead, sms.out), got 'sns'"),
        (["--follow"], 2, "expected --topic with --key, --model, --last, --follow, --format and --tree"),
        (["--topic", "sms.out", "--tree", "1", "--json"], 2, "expected --tree without --follow and --json"),
        (["--topic", "sms.out", "--format", "svg", "--json"], 2, "expected --format without --follow and --json"),
    ],
)
def test_usage(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    """What cannot be shown is told with what can."""
    result = _show(_log(tmp_path), *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())


def test_no_log(tmp_path: Path) -> None:
    """A wrong path is told, and no log is made there; an empty log says how to fill it."""
    result = _show(tmp_path / "none.db")
    assert result.exit_code == 1
    assert "expected an existing log file, found none" in result.stderr
    assert not (tmp_path / "none.db").exists()
    EmbeddedLog(tmp_path / "empty.db").close()
    assert _shown(tmp_path / "empty.db") == "no topics; publish events first (anabranch publish)"


def test_records_of_others(tmp_path: Path) -> None:
    """A result of a type that is not known here is told with its place; a header of that name alone makes none."""
    path = tmp_path / "events.db"
    with EmbeddedLog(path) as log:
        log.create_topic("t", 1)
        log.append([OutRecord("t", 0, b"k", b"x", (("type", b"poem"),), NOW)])
    assert _show(path, "--topic", "t").exit_code == 0
    with EmbeddedLog(path) as log:
        log.append([OutRecord("t", 0, b"k", b"x", (("type", b"poem"), ("out_id", b"m:0:0:0:0")), NOW)])
    result = _show(path, "--topic", "t")
    assert result.exit_code == 1
    assert "t/0 offset 1: expected the header type to be one of split, tree" in result.stderr


def test_one_tree_alone(tmp_path: Path) -> None:
    """With --format the last snapshot of one tree is all that comes out: as SVG, for Graphviz or as JSON."""
    log, asked = _log(tmp_path), ("--topic", "sms.out", "--key", "nz", "--model", "spam", "--format")
    assert _show(log, *asked, "svg").stdout == tree_svg.draw(TREE, b"nz")
    assert _show(log, *asked, "dot").stdout == tree_dot.draw(TREE, b"nz")
    found = json.loads(_show(log, *asked, "json").stdout)
    assert (found["key"], found["node"], found["names"]) == ("nz", TREE.node, TREE.names)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "expected one tree in sms.out, got none; set emit.snapshots"),
        (["nz", "au"], "expected one tree in sms.out, got 2: spam of nz, spam of au; choose by --model and --key"),
    ],
)
def test_which_tree(tmp_path: Path, keys: list[str], message: str) -> None:
    """Where there is no tree or more than one, that is told and nothing is drawn."""
    path = tmp_path / "events.db"
    with EmbeddedLog(path) as log:
        log.create_topic("sms.out", 1)
        log.append(to_record(TREE, "sms.out", key.encode()) for key in keys)
    result = _show(path, "--topic", "sms.out", "--format", "svg")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
