"""Results as JSON fit into a record, too, although JSON takes more room and escapes some characters six times."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from worker.codec import (
    Bounds,
    DeadLetter,
    Evaluation,
    Measures,
    Output,
    Prediction,
    Reason,
    Source,
    Split,
    Tree,
    cut,
    dead_letter,
    decode_output,
    encode,
    joined,
    to_record,
)
from worker.log.port import LARGEST_RECORD

SOURCE = Source("t" * 249, 1 << 31, 1 << 62, 1 << 24, 1 << 53)
KEY = b"k" * 65_536
MODEL = "m" * 64
NAME = "\x01" * 16_384  # the longest that results as JSON may have: 98,306 bytes
ID = "\x01" * 65_536
CLASSES = [f"{number:03}" + "é\x01" * 31 for number in range(1_000)]  # 251,000 bytes in JSON
NUMBER = -1.2345678901234567e-300  # takes 24 bytes


def _split(branches: int, classes: list[str]) -> Split:
    counts = [[NUMBER] * len(classes)] * branches
    return Split(
        MODEL, 1 << 62, NAME, "nominal", NUMBER, "entropy", NUMBER, NUMBER, NAME[:-1] + "2", NUMBER, NUMBER,
        list(range(branches)), counts, classes, SOURCE,
    )  # fmt: skip


def _tree(nodes: int, classes: list[str], names: list[str]) -> Tree:
    number = list(range(nodes))
    return Tree(
        MODEL, 1 << 62, 0, 1, number, [-1, *number[:-1]], [1 << 31] * nodes, [at % len(names) for at in number],
        ["nominal"] * nodes, [NUMBER] * nodes, [[NUMBER] * len(classes)] * nodes, classes, names,
        {f"parameter {at}": NUMBER for at in range(20)}, SOURCE,
    )  # fmt: skip


def _results() -> Iterator[Output]:
    measures = Measures(NUMBER, NUMBER, NUMBER, [NUMBER] * len(CLASSES), *[NUMBER] * 6)
    yield Prediction(MODEL, ID, CLASSES[0], [NUMBER] * len(CLASSES), 1 << 62, True, SOURCE)
    yield Evaluation(MODEL, 1 << 62, measures, measures, 1 << 16, CLASSES, SOURCE)
    yield _split(2, CLASSES)
    yield _split(100_000, CLASSES)
    yield _split(100_000, ["a", "b"])
    long = [f"{number:03}{NAME[3:]}" for number in range(20)]
    for nodes, classes, names in (
        (100, CLASSES, long),
        (300, ["a", "b"], long),
        (20_000, ["a", "b"], [f"name {number:05}" for number in range(20_000)]),
        (1, CLASSES, long[:1]),
    ):
        yield from cut(_tree(nodes, classes, names), form="json")


@pytest.mark.slow
def test_results_fit() -> None:
    """Each result fits, whatever its names, classes, branches and nodes."""
    for output in _results():
        record = to_record(output, SOURCE.topic, KEY, form="json")
        assert record.size <= LARGEST_RECORD, (type(output), record.size)
        back = decode_output(record.value or b"", record.headers)
        assert type(back) is type(output)
        assert encode(back, "json") == record.value


def test_classes_are_as_long_as_settings_allow() -> None:
    """The test's classes are near the bound that settings set."""
    size = sum(len(json.dumps(each, ensure_ascii=False).encode()) for each in CLASSES)
    assert 240_000 < size <= 256_000


def test_large_trees_are_whole_in_parts() -> None:
    """A tree is cut into more parts than as msgpack, and is whole when they are joined."""
    tree = _tree(3_000, ["a", "b"], [f"name {number:05}" for number in range(3_000)])
    parts = cut(tree, 100_000, "json")
    assert len(parts) > len(cut(tree, 100_000)) > 1
    assert joined(parts) == tree
    assert max(len(encode(part, "json")) for part in parts) < 110_000
    small = tree._replace(chunks=1)
    assert cut(small, 10_000_000, "json") == [small]


@pytest.mark.parametrize("value", [None, b"", bytes(10), bytes(700_000), bytes(1 << 23)])
@pytest.mark.parametrize("detail", ["", "\x01" * 5_000, "\U0001f600" * 5_000, '"' * 5_000])
@pytest.mark.parametrize("rows", [0, 1, 100, 9_800])
def test_dead_letters_fit(rows: int, detail: str, value: bytes | None) -> None:
    """A dead letter fits, whatever was refused, why and how often, and keeps what fits of the value."""
    complaints = [((1 << 24) + row, Reason.WRONG_FEATURE_SPACE, detail) for row in range(rows)]
    bounds = Bounds(key_bytes=65_536, dead_letter_bytes=1 << 23)
    letter = dead_letter(
        SOURCE, complaints or [(None, Reason.MALFORMED, detail)], KEY, value, bounds, MODEL, form="json"
    )
    record = to_record(letter, SOURCE.topic, letter.key, form="json")
    assert record.size <= LARGEST_RECORD
    back = decode_output(record.value or b"", record.headers)
    assert isinstance(back, DeadLetter)
    assert back == letter
    if value is not None:
        is_cut = len(back.value or b"") < len(value)
        assert back.sha256 == (hashlib.sha256(value).digest() if is_cut else None)
        if is_cut:
            assert record.size > 0.99 * LARGEST_RECORD
