"""The wire format, pinned: every form of an event in, every record out."""

from __future__ import annotations

import hashlib

import msgpack
import numpy as np
import pytest

from tests.support.contents import contents
from worker.codec.bounds import Bounds
from worker.codec.columns import decode_batch
from worker.codec.encode import (
    DeadLetter,
    Drift,
    Evaluation,
    Expired,
    LetGo,
    Measures,
    Output,
    Prediction,
    Source,
    Split,
    Tree,
    dead_letter,
    decode_output,
    encode,
    to_record,
)
from worker.codec.events import DELETE, DROP, INSERT, PREDICT
from worker.codec.reasons import Reason
from worker.codec.reference import Event, decode

UNIT = 1 << 20
BOUNDS = Bounds()

# name, hex of the value, the events it means; the record's timestamp is 1,000
EVENTS = [
    (
        "list of ids",
        "82 a178 93 01 cc80 cd0100 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, (1, 128, 256), (1.0,) * 3)],
    ),
    (
        "largest id",
        "82 a178 91 ceffffffff a179 00",
        [Event(INSERT, 1000, UNIT, None, 0, (4294967295,), (1.0,))],
    ),
    ("order is kept", "82 a178 92 05 03 a179 00", [Event(INSERT, 1000, UNIT, None, 0, (5, 3), (1.0, 1.0))]),
    ("no features", "82 a178 90 a179 00", [Event(INSERT, 1000, UNIT, None, 0)]),
    (
        "names",
        "82 a178 92 a474617869 a3c3a974 a179 a473 70 61 6d",
        [Event(INSERT, 1000, UNIT, None, "spam", ("taxi", "ét"), (1.0, 1.0))],
    ),
    (
        "map of names",
        "82 a178 82 a161 02 a162 cb3fe0000000000000 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, ("a", "b"), (2.0, 0.5))],
    ),
    ("map of ids", "82 a178 81 07 ff a179 01", [Event(INSERT, 1000, UNIT, None, 1, (7,), (-1.0,))]),
    (
        "zeros are absent",
        "82 a178 83 a161 00 a162 cb8000000000000000 a163 03 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, ("c",), (3.0,))],
    ),
    ("nothing but zeros", "82 a178 81 a161 00 a179 01", [Event(INSERT, 1000, UNIT, None, 1)]),
    (
        "a feature called i",
        "82 a178 81 a169 02 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, ("i",), (2.0,))],
    ),
    (
        "i list",
        "82 a178 81 a169 92 a161 a162 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, ("a", "b"), (1.0, 1.0))],
    ),
    (
        "i and v lists",
        "82 a178 82 a169 92 01 02 a176 92 05 ca3f000000 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, (1, 2), (5.0, 0.5))],
    ),
    (
        "v before i",
        "82 a178 82 a176 91 05 a169 91 01 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, (1,), (5.0,))],
    ),
    (
        "packed ids",
        "82 a178 81 a169 c408 0100000000010000 a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, (1, 256), (1.0, 1.0))],
    ),
    (
        "packed float32",
        "82 a178 82 a169 c404 01000000 a176 c404 0000003f a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, (1,), (0.5,))],
    ),
    (
        "packed float64",
        "82 a178 82 a169 c404 01000000 a176 c408 000000000000e03f a179 01",
        [Event(INSERT, 1000, UNIT, None, 1, (1,), (0.5,))],
    ),
    (
        "all fields",
        "86 a26f70 a6696e73657274 a26964 a175"
        " a178 9101 a179 cb3ff8000000000000 a177 cb3fe0000000000000 a27473 cd0384",
        [Event(INSERT, 900, UNIT // 2, "u", 1.5, (1,), (1.0,))],
    ),
    ("float label, minus zero", "82 a178 90 a179 cb8000000000000000", [Event(INSERT, 1000, UNIT, None, 0.0)]),
    ("negative id and label", "83 a26964 d0 80 a178 90 a179 fe", [Event(INSERT, 1000, UNIT, -128, -2)]),
    ("delete by id", "82 a26f70 a664656c657465 a26964 2a", [Event(DELETE, 1000, UNIT, 42)]),
    (
        "delete by value",
        "83 a26f70 a664656c657465 a178 9101 a179 01",
        [Event(DELETE, 1000, UNIT, None, 1, (1,), (1.0,))],
    ),
    (
        "predict",
        "83 a26f70 a770726564696374 a26964 a171 a178 9101",
        [Event(PREDICT, 1000, UNIT, "q", None, (1,), (1.0,))],
    ),
    ("smallest weight", "83 a178 90 a179 01 a177 cb3eb0000000000000", [Event(INSERT, 1000, 1, None, 1)]),
    (
        "half a unit more rounds to even",
        "83 a178 90 a179 01 a177 cb3ff0000080000000",
        [Event(INSERT, 1000, UNIT, None, 1)],
    ),
    ("largest weight", "83 a178 90 a179 01 a177 ce80000000", [Event(INSERT, 1000, 1 << 51, None, 1)]),
    (
        "batch",
        "84 a16e 02 a3707472 c40c 000000000100000003000000 a169 c40c 050000000100000002000000 a179 c402 0001",
        [
            Event(INSERT, 1000, UNIT, None, 0, (5,), (1.0,)),
            Event(INSERT, 1000, UNIT, None, 1, (1, 2), (1.0, 1.0)),
        ],
    ),
    (
        "batch of all columns",
        "89 a26f70 a6696e73657274 a16e 02 a3707472 c40c 000000000100000002000000"
        " a169 c408 0500000006000000 a176 c408 0000003f00000000"
        " a179 c410 000000000000f83f 0000000000000080 a3696473 92 a161 c0"
        " a177 c410 000000000000e03f 0000000000000040"
        " a27473 c410 8403000000000000 e703000000000000",
        [Event(INSERT, 900, UNIT // 2, "a", 1.5, (5,), (0.5,)), Event(INSERT, 999, 2 * UNIT, None, 0.0)],
    ),
    (
        "batch of lists",
        "86 a16e 02 a3707472 c40c 000000000100000002000000"
        " a169 92 a161 07 a179 92 a179 01 a177 92 01 02 a27473 cd0384",
        [
            Event(INSERT, 900, UNIT, None, "y", ("a",), (1.0,)),
            Event(INSERT, 900, 2 * UNIT, None, 1, (7,), (1.0,)),
        ],
    ),
    (
        "batch delete by ids",
        "83 a16e 02 a26f70 a664656c657465 a3696473 92 01 a162",
        [Event(DELETE, 1000, UNIT, 1), Event(DELETE, 1000, UNIT, "b")],
    ),
    (
        "batch predict",
        "84 a16e 01 a26f70 a770726564696374 a3707472 c408 0000000001000000 a169 c404 05000000",
        [Event(PREDICT, 1000, UNIT, None, None, (5,), (1.0,))],
    ),
    ("empty batch", "84 a16e 00 a3707472 c404 00000000 a169 c400 a179 c400", []),
]


@pytest.mark.parametrize(("name", "data", "expected"), EVENTS, ids=[name for name, _, _ in EVENTS])
def test_bytes_mean_the_same_events_to_both_decoders(name: str, data: str, expected: list[Event]) -> None:
    """Each form of an event reads as pinned here."""
    del name
    value = bytes.fromhex(data)
    assert decode(value, 1000, BOUNDS) == expected
    events, faults = decode_batch([value], np.array([1000]), BOUNDS, [b"k"])
    assert faults == []
    assert contents(events) == [(0, row, event) for row, event in enumerate(expected)]


def test_a_tombstone_is_a_drop_and_time_starts_at_one() -> None:
    """A null value reads as DROP; without a timestamp the time is 1."""
    events, faults = decode_batch([None, None], np.array([-1, 77]), BOUNDS, [b"k", b"k"])
    assert faults == []
    assert contents(events) == [(0, 0, Event(DROP, 1)), (1, 0, Event(DROP, 77))]
    assert decode(None, -1, BOUNDS) == [Event(DROP, 1)]


def test_a_record_without_a_timestamp_takes_any_ts() -> None:
    """How far ahead ts may be is only judged against a timestamp that is there."""
    value = msgpack.packb({"x": [], "y": 1, "ts": 1 << 53})
    for timestamp in (-1, 0):
        events, faults = decode_batch([value], np.array([timestamp]), BOUNDS, [b"k"])
        assert faults == []
        assert events.time.tolist() == [1 << 53]


def test_digests_of_ids_are_pinned() -> None:
    """Digests of ids are part of stored state and never change; an int has one, however wide its form."""
    values = [
        bytes.fromhex(text)
        for text in (
            "83 a26964 2a a178 90 a179 01",
            "83 a26964 d3 000000000000002a a178 90 a179 01",
            "83 a26964 ff a178 90 a179 01",
            "83 a26964 a23432 a178 90 a179 01",
            "83 a26964 ac 75736572 2d313233 34353637 a178 90 a179 01",
        )
    ]
    events, _ = decode_batch(values, np.ones(5, np.int64), BOUNDS, [b"k"] * 5)
    digests = [f"{high:016x}{low:016x}" for high, low in zip(events.id_high, events.id_low, strict=True)]
    assert digests == DIGESTS


DIGESTS = [
    "de91185d2d6748fcdb0e0cecf4fcf40d",
    "de91185d2d6748fcdb0e0cecf4fcf40d",
    "e3760f638d71e555a6456e395395c67c",
    "165719ac4d274f6377458ca1517a6eec",
    "04b07b06b5643aa843b32458610c617c",
]

SOURCE = Source("clicks", 3, 41, 2, 1_700_000_000_123)
SPLIT = Split(
    "spam",
    0,
    "taxi",
    "binary",
    None,
    "gini",
    0.25,
    0.125,
    7,
    0.0625,
    12.0,
    [0, 1],
    [[4.0, 1.0], [0.0, 7.0]],
    [0, "spam"],
    SOURCE,
)
TREE = Tree(
    "spam", 5, 0, 1, [0, 1, 4], [-1, 0, 0], [0, 0, 1], [0, None, None], ["numeric", None, None], [0.5, None, None],
    [[4.0, 8.0], [4.0, 1.0], [0.0, 7.0]], [0, 1], ["taxi"], {"alpha": 0.5, "criterion": "gini"}, SOURCE,
)  # fmt: skip
PREDICTION = Prediction("spam", "q-1", 1, [0.0, 7.0], 2, True, SOURCE)
EVALUATION = Evaluation(
    "spam",
    3,
    Measures(3.0, 0.5, None, [0.5, 0.0], 0.25, 0.75, 0.25, 0.75, 0.5, -1.0),
    Measures(1.0, 1.0, 0.25, [1.0, 1.0], 1.0, 0.125, 0.0, 1.0, 1.0, None),
    1,
    [0, 1],
    SOURCE,
)
EXPIRED = Expired("spam", 1_600_000_000_000, 12, 300, SOURCE)
LET_GO = LetGo("spam", 1_600_000_000_000, 101, 300, SOURCE)
DRIFT = Drift("spam", 4_096, 0.125, 0.5, 300, SOURCE)
LETTER = DeadLetter(
    Reason.BAD_LABEL,
    "expected y",
    None,
    SOURCE,
    [(2, Reason.BAD_LABEL, "expected y")],
    1,
    b"key",
    b"\x80",
    1,
    None,
)

OUTPUTS: list[tuple[Output, bytes, str]] = [
    (
        SPLIT,
        b"split",
        "8fa56d6f64656ca47370616da46e6f646500a766656174757265a474617869a46b696e64a662696e617279a974"
        "68726573686f6c64c0a9637269746572696f6ea467696e69a573636f7265cb3fd0000000000000a46761696ecb"
        "3fc0000000000000a972756e6e65725f757007ae72756e6e65725f75705f6761696ecb3fb0000000000000a16e"
        "cb4028000000000000a86272616e63686573920001a6636f756e74739292cb4010000000000000cb3ff0000000"
        "00000092cb0000000000000000cb401c000000000000a7636c61737365739200a47370616da6736f7572636585"
        "a5746f706963a6636c69636b73a9706172746974696f6e03a66f666673657429a3726f7702a474696d65cf0000"
        "018bcfe5687b",
    ),
    (
        TREE,
        b"tree",
        "8fa56d6f64656ca47370616da776657273696f6e05a56368756e6b00a66368756e6b7301a46e6f646593000104"
        "a6706172656e7493ff0000a66272616e636893000001a7666561747572659300c0c0a46b696e6493a76e756d65"
        "726963c0c0a97468726573686f6c6493cb3fe0000000000000c0c0a6636f756e74739392cb4010000000000000"
        "cb402000000000000092cb4010000000000000cb3ff000000000000092cb0000000000000000cb401c00000000"
        "0000a7636c6173736573920001a56e616d657391a474617869aa706172616d657465727382a5616c706861cb3f"
        "e0000000000000a9637269746572696f6ea467696e69a6736f7572636585a5746f706963a6636c69636b73a970"
        "6172746974696f6e03a66f666673657429a3726f7702a474696d65cf0000018bcfe5687b",
    ),
    (
        PREDICTION,
        b"prediction",
        "87a56d6f64656ca47370616da26964a3712d31a56c6162656c01a77765696768747392cb0000000000000000cb"
        "401c000000000000a46c65616602a56b6e6f776ec3a6736f7572636585a5746f706963a6636c69636b73a97061"
        "72746974696f6e03a66f666673657429a3726f7702a474696d65cf0000018bcfe5687b",
    ),
    (
        EVALUATION,
        b"evaluation",
        "87a56d6f64656ca47370616da86578616d706c657303a5746f74616c8aa6776569676874cb4008000000000000"
        "a86163637572616379cb3fe0000000000000a56b61707061c0a2663192cb3fe0000000000000cb000000000000"
        "0000a86d6163726f5f6631cb3fd0000000000000a86c6f675f6c6f7373cb3fe8000000000000a86d616a6f7269"
        "7479cb3fd0000000000000a96e6f5f6368616e6765cb3fe8000000000000a76b617070615f6dcb3fe000000000"
        "0000ae6b617070615f74656d706f72616ccbbff0000000000000a6726563656e748aa6776569676874cb3ff000"
        "0000000000a86163637572616379cb3ff0000000000000a56b61707061cb3fd0000000000000a2663192cb3ff0"
        "000000000000cb3ff0000000000000a86d6163726f5f6631cb3ff0000000000000a86c6f675f6c6f7373cb3fc0"
        "000000000000a86d616a6f72697479cb0000000000000000a96e6f5f6368616e6765cb3ff0000000000000a76b"
        "617070615f6dcb3ff0000000000000ae6b617070615f74656d706f72616cc0a677696e646f7701a7636c617373"
        "6573920001a6736f7572636585a5746f706963a6636c69636b73a9706172746974696f6e03a66f666673657429"
        "a3726f7702a474696d65cf0000018bcfe5687b",
    ),
    (
        DRIFT,
        b"drift",
        "86a56d6f64656ca47370616da86578616d706c6573cd1000a66265666f7265cb3fc0000000000000a561667465"
        "72cb3fe0000000000000a57769647468cd012ca6736f7572636585a5746f706963a6636c69636b73a970617274"
        "6974696f6e03a66f666673657429a3726f7702a474696d65cf0000018bcfe5687b",
    ),
    (
        EXPIRED,
        b"expired",
        "85a56d6f64656ca47370616daa69646c655f73696e6365cf00000174876e8000a7657870697265640ca3647565"
        "cd012ca6736f7572636585a5746f706963a6636c69636b73a9706172746974696f6e03a66f666673657429a372"
        "6f7702a474696d65cf0000018bcfe5687b",
    ),
    (
        LET_GO,
        b"let-go",
        "85a56d6f64656ca47370616da573696e6365cf00000174876e8000a4676f6e6565a3647565cd012ca6736f75"
        "72636585a5746f706963a6636c69636b73a9706172746974696f6e03a66f666673657429a3726f7702a47469"
        "6d65cf0000018bcfe5687b",
    ),
    (
        LETTER,
        b"dead-letter",
        "8aa6726561736f6ea96261642d6c6162656ca664657461696caa65787065637465642079a56d6f64656cc0a673"
        "6f7572636585a5746f706963a6636c69636b73a9706172746974696f6e03a66f666673657429a3726f7702a474"
        "696d65cf0000018bcfe5687ba4726f7773919302a96261642d6c6162656caa65787065637465642079a7726566"
        "7573656401a36b6579c4036b6579a576616c7565c40180a473697a6501a6736861323536c0",
    ),
]


@pytest.mark.parametrize(("output", "kind", "data"), OUTPUTS, ids=[kind.decode() for _, kind, _ in OUTPUTS])
def test_results_are_written_as_pinned(output: Output, kind: bytes, data: str) -> None:
    """Each result has these bytes and headers, goes to its source's partition, and reads back as it was."""
    record = to_record(output, "out", b"key", 9)
    assert record.value is not None
    assert record.value.hex() == data
    model = output.model or ""
    assert record.headers == (("type", kind), ("out_id", f"{model}:3:41:2:9".encode()))
    assert (record.topic, record.partition, record.key, record.timestamp) == ("out", 3, b"key", SOURCE.time)
    again = decode_output(record.value, record.headers)
    assert type(again) is type(output)
    assert encode(again) == record.value


EARLIER_EVALUATION = (  # as versions without baselines wrote it
    "87a56d6f64656ca47370616da86578616d706c657303a5746f74616c86a6776569676874cb4008000000000000"
    "a86163637572616379cb3fe0000000000000a56b61707061c0a2663192cb3fe0000000000000cb000000000000"
    "0000a86d6163726f5f6631cb3fd0000000000000a86c6f675f6c6f7373cb3fe8000000000000a6726563656e74"
    "86a6776569676874cb3ff0000000000000a86163637572616379cb3ff0000000000000a56b61707061cb3fd000"
    "0000000000a2663192cb3ff0000000000000cb3ff0000000000000a86d6163726f5f6631cb3ff0000000000000"
    "a86c6f675f6c6f7373cb3fc0000000000000a677696e646f7701a7636c6173736573920001a6736f7572636585"
    "a5746f706963a6636c69636b73a9706172746974696f6e03a66f666673657429a3726f7702a474696d65cf0000"
    "018bcfe5687b"
)


def test_an_evaluation_of_an_earlier_version_is_read() -> None:
    """Measures that it did not have are None, the others as they were."""
    found = decode_output(bytes.fromhex(EARLIER_EVALUATION), (("type", b"evaluation"),))
    assert isinstance(found, Evaluation)
    for then, now in ((found.total, EVALUATION.total), (found.recent, EVALUATION.recent)):
        assert then[:6] == now[:6]
        assert then[6:] == (None,) * 4
    assert found._replace(total=EVALUATION.total, recent=EVALUATION.recent) == EVALUATION


def test_a_dead_letter_keeps_what_fits_and_a_digest_of_the_rest() -> None:
    """Values and keys are cut to their bounds; a cut value comes with its size and SHA-256."""
    bounds = Bounds(dead_letter_bytes=64, key_bytes=4)
    rows = [(row, Reason.BAD_ID, "expected an id") for row in range(3, 2_000)]
    value = bytes(range(100))
    letter = dead_letter(SOURCE, rows, b"long key", value, bounds)
    assert (letter.key, letter.value, letter.size) == (b"long", value[:64], 100)
    assert letter.sha256 == hashlib.sha256(value).digest()
    assert (letter.source.row, letter.refused, len(letter.rows)) == (3, 1_997, 100)
    whole = dead_letter(SOURCE, [(None, Reason.NO_KEY, "expected a key")], None, None, bounds)
    assert (whole.key, whole.value, whole.size, whole.sha256) == (None, None, None, None)
    assert (whole.source.row, whole.refused, whole.rows) == (0, 0, [])


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x80", b"\x90", b"\x81\xa5model\x01"])
def test_other_bytes_are_no_result(value: bytes) -> None:
    """Reading back something else says so."""
    with pytest.raises(ValueError, match="expected a split record"):
        decode_output(value, (("type", b"split"),))
    with pytest.raises(ValueError, match="expected the header type"):
        decode_output(value, (("type", None),))
