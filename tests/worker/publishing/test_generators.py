import hashlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import generator_twins as twins
from worker.sources.generators import (
    BINARY,
    GENERATORS,
    NUMBERS,
    NUMERIC,
    Attribute,
    Examples,
    Generator,
    Schema,
    drift,
    generate,
)
from worker.sources.generators.draws import MODEL, NORMALS, Draws, ln
from worker.sources.generators.led import DIGITS

TWINS: dict[str, tuple[str, Callable[[], Iterator[twins.Row]]]] = {
    "sea": ("sea", twins.sea),
    **{
        f"sea {function}": (f"sea:function={function},seed=5", partial(twins.sea, function, seed=5))
        for function in (1, 2, 3, 4)
    },
    "sea balanced": ("sea:balance=true,noise=2.5", partial(twins.sea, balance=True, noise=2.5)),
    "led": ("led", twins.led),
    "led drifted": ("led:noise=30,drift=3,seed=9", partial(twins.led, 30, 3, seed=9)),
    "led all drifted": ("led:drift=7,noise=0", partial(twins.led, 0, 7)),
    "led relevant": ("led:irrelevant=false", partial(twins.led, irrelevant=False)),
    **{
        f"agr {function}": (f"agr:function={function},seed=3", partial(twins.agr, function, seed=3))
        for function in range(1, 11)
    },
    "agr exact": ("agr:perturbation=0", partial(twins.agr, perturbation=0)),
    "agr balanced": ("agr:function=8,balance=true", partial(twins.agr, 8, balance=True)),
    "rtg": ("rtg", twins.rtg),
    "rtg nominal": (
        "rtg:classes=4,nominals=3,numerics=0,values=3,depth=9,first_leaf=1",
        partial(twins.rtg, 3, 0, 3, classes=4, depth=9, first_leaf=1),
    ),
    "rtg numeric": (
        "rtg:nominals=0,numerics=2,depth=8,first_leaf=8,tree_seed=7,seed=8",
        partial(twins.rtg, 0, 2, seed=8, depth=8, first_leaf=8, tree_seed=7),
    ),
    "rbf": ("rbf", twins.rbf),
    "rbf moving": (
        "rbf:classes=5,attributes=3,centroids=7,speed=0.05,drifting=4,model_seed=2,seed=4",
        partial(twins.rbf, 5, 3, 7, 0.05, 4, 2, 4),
    ),
    "rbf all moving": (
        "rbf:attributes=1,centroids=3,speed=0.7",
        partial(twins.rbf, attributes=1, centroids=3, speed=0.7),
    ),
    "abrupt": (
        "led+led:drift=3@200",
        lambda: twins.drift(twins.led(), twins.led(drift=3, seed=2), 200, 0, seed=2),
    ),
    "gradual": (
        "agr+agr:function=2,seed=6@200/150+agr:function=3@300/20",
        lambda: twins.drift(
            twins.drift(twins.agr(), twins.agr(2, seed=6), 200, 150, seed=2), twins.agr(3, seed=3), 300, 20, seed=3
        ),
    ),
}


def _digest(examples: Examples) -> str:
    value, label = examples
    told = label.astype("<f8" if label.dtype == np.float64 else "<i8").tobytes()
    return hashlib.sha256(value.astype("<f8").tobytes() + told).hexdigest()


def _joined(parts: list[Examples]) -> Examples:
    return Examples(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _spread(n: int, probability: float) -> float:
    """Return five standard deviations of a count."""
    return 5 * math.sqrt(n * probability * (1 - probability))


# --- all of them


@pytest.mark.parametrize("name", TWINS)
def test_equals_its_twin(name: str) -> None:
    """A generator gives, to the bit, what its definition gives one example at a time."""
    text, twin = TWINS[name]
    values, labels = twins.taken(twin(), 500)
    examples = generate(text).take(500)
    assert examples.label.tolist() == labels
    assert examples.value.tolist() == values
    assert examples.value.dtype == np.float64
    assert examples.label.dtype == np.int64


@pytest.mark.parametrize("name", ["friedman", "planes"])
@pytest.mark.parametrize("options", [{}, {"function": 2, "noise": 0.5, "seed": 7}, {"noise": 0.0}])
def test_numbers_are_those_of_the_twin(name: str, options: dict[str, float]) -> None:
    """Streams of numbers are what their definition gives, but for the last bits of sines, in any batches."""
    text = f"{name}:{','.join(f'{each}={value}' for each, value in options.items())}".rstrip(":")
    twin = getattr(twins, name)(**options)
    values, labels = zip(*(next(twin) for _ in range(500)), strict=True)
    stream = generate(text)
    parts = _joined([stream.take(size) for size in (1, 0, 99, 400)])
    assert parts.value.tolist() == list(values)
    assert parts.label.tolist() == pytest.approx(labels, rel=1e-12, abs=1e-12)
    assert parts.label.dtype == np.float64
    assert stream.schema.classes == NUMBERS
    assert _digest(parts) == _digest(generate(text).take(500))
    drifting = generate(f"{text}+{name}:function=2@250").take(500)
    assert drifting.label[:250].tolist() == parts.label[:250].tolist()


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8))
@pytest.mark.parametrize("text", [text for text, _ in TWINS.values()])
def test_batches_change_nothing(text: str, sizes: list[int]) -> None:
    """However the examples are taken, they are the same."""
    stream = generate(text)
    assert _digest(_joined([stream.take(size) for size in sizes])) == _digest(generate(text).take(sum(sizes)))


@pytest.mark.parametrize("name", GENERATORS)
def test_seeds(name: str) -> None:
    """The same seed gives the same stream, every other seed of the generator another one."""
    seeds = [field.name for field in fields(GENERATORS[name]) if field.name.endswith("seed")]
    digests = {_digest(generate(f"{name}:{seed}={value}").take(50)) for seed in seeds for value in (2, 3, 1 << 62)}
    assert len(digests) == 3 * len(seeds)
    assert _digest(generate(name).take(50)) == _digest(generate(f"{name}:seed=1").take(50))


@pytest.mark.parametrize("text", [text for text, _ in TWINS.values()])
def test_examples_follow_the_schema(text: str) -> None:
    """Labels and values of nominal attributes are whole numbers within bounds, all other values are finite."""
    stream = generate(text)
    value, label = stream.take(2_000)
    assert value.shape == (2_000, len(stream.schema.attributes))
    assert set(label.tolist()) <= set(range(stream.schema.classes))
    for attribute, column in zip(stream.schema.attributes, value.T, strict=True):
        if attribute.values == NUMERIC:
            assert np.isfinite(column).all()
        else:
            assert set(column.tolist()) == set(range(attribute.values))
    names = [attribute.name for attribute in stream.schema.attributes]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", GENERATORS)
def test_parameters_are_explained(name: str) -> None:
    """The docstring explains every parameter and which generator of MOA or river it follows; all have defaults."""
    kind = GENERATORS[name]
    text = kind.__doc__ or ""
    for parameter in fields(kind):
        assert re.search(rf"\b{parameter.name}\b.* : ", text)
        assert isinstance(parameter.default, bool | int | float)
    whose = "river" if generate(name).schema.classes == NUMBERS else "MOA"
    assert f"{whose}'s `" in " ".join(text.split())


# What the first 1,000 examples are, so that no change goes unseen.
GOLDEN = {
    "sea": "83cff7ed94202833347354c560b32631e37aa43d1d74667d9837c40edbf8af89",
    "sea:function=4,balance=true,seed=7": "45ae2e919bc391f3ae799d7e69609304e86e952686d3a2adeaf4ba948e09ec1c",
    "led": "8d6c517d22be21c6a9f143fba9d409d665b35016521f514f563e93542bbbb3a3",
    "led:noise=10,seed=7": "b3fa8d2916d5833617242eda79f88e5e741fe24588f9a7e2bc3382c86f2c7dcf",
    "agr": "ad13ada8dcd8152cc0bc33d763176d28a5ac2f910e237d29ca2254901110805d",
    "agr:function=5,seed=7": "cb7c5c524072da752782a9fd9d7062862255071cb912f479437bd62f280481d7",
    "agr:function=10,balance=true": "b122bbb53d2c5bd6a7455f0fb0bf46ebec38f84e299981e6c41300aa8b1536ab",
    "rtg": "d2803838e9d6497b0656190c24cedfe13a56c9c5ee22b9c577d676df118809e0",
    "rtg:classes=25,nominals=200,numerics=200": "52eabad871ce29e2f4202d11a03a6b345ba02d18ed5a5df52fcc3d6212a7563a",
    "rbf": "e378b003ae82436f10671ad38e3a7e23a3bdfe18d10afaed1d3d2cd5cc38a203",
    "rbf:classes=5,speed=0.001": "834d849011256e747a072cebab2a6665f7cf5c2e2ec83afe364b8339a0f33fba",
    "friedman": "558841aa97f90df487b004ed3c7bc64d2a534d71ca3f427e9590c6cad31de92a",
    "planes": "69cfddfd9dc5fb55c7b6e9526931c5fa4bbf48657e0f5f459bd785dfac6a6856",
    "friedman+friedman:function=2@400/200": "0a368bf3cebb3e694957306e513e35b727328c5f8c7558c0e55bd15aa942b421",
    "led+led:drift=3@300/200+led:drift=5@600": "38a0d90cfd446c664f39e86274dd5614ce3b52ccdc822de7a0cf273a2141ad49",
}


@pytest.mark.parametrize("text", GOLDEN)
def test_golden(text: str) -> None:
    """Streams stay what they were in every version, on every machine."""
    assert _digest(generate(text).take(1_000)) == GOLDEN[text]


# --- each of them


@given(st.floats(2.0**-53, 1.5) | st.floats(1e-300, 1e300))
def test_logarithms_are_near_those_of_the_library(x: float) -> None:
    """Ours and the library's differ by three units in the last place at most."""
    theirs = math.log(x)
    assert abs(ln(np.array([x]))[0] - theirs) <= 3.0 * math.ulp(theirs)


def test_numbers_are_uniform_and_normal() -> None:
    """Uniform numbers fill [0, 1) evenly, normal ones have the normal distribution."""
    n = 20_000
    uniform = np.sort(Draws(5).uniform(n))
    assert 0 <= uniform[0]
    assert uniform[-1] < 1
    steps = np.arange(n) / n
    assert np.abs(uniform - steps).max() < 1.95 / math.sqrt(n)  # Kolmogorov and Smirnov, one run in 1,000
    normal = np.sort(Draws(5, NORMALS).normal(n))
    below = np.array([(1 + math.erf(each / math.sqrt(2))) / 2 for each in normal])
    assert np.abs(below - steps).max() < 1.95 / math.sqrt(n)


@pytest.mark.parametrize(("function", "threshold"), [(1, 8), (2, 9), (3, 7), (4, 9.5)])
def test_sea(function: int, threshold: float) -> None:
    """SEA is class 0 where two numbers add up to at most the threshold; noise flips its share of each class."""
    n = 20_000
    value, label = generate(f"sea:function={function},noise=0").take(n)
    rule = (value[:, 0] + value[:, 1] > threshold).astype(int)
    assert (label == rule).all()
    share = threshold**2 / 200 if threshold <= 10 else 1 - (20 - threshold) ** 2 / 200
    assert abs((label == 0).sum() - n * share) < _spread(n, share)
    noisy = generate(f"sea:function={function},noise=10").take(n)
    assert (noisy.value == value).all()
    flipped = noisy.label != rule
    for group in (0, 1):
        size = int((rule == group).sum())
        assert abs(flipped[rule == group].sum() - size / 10) < _spread(size, 0.1)


@pytest.mark.parametrize("text", ["sea:noise=0", "agr:function=8", "agr:function=2"])
def test_balance(text: str) -> None:
    """Balanced classes alternate, and every example is one of the unbalanced stream, in its order."""
    value, label = generate(f"{text},balance=true").take(200)
    assert label.tolist() == [1, 0] * 100
    source = generate(text).take(20_000).value.tolist()
    places = [source.index(row) for row in value.tolist()]
    assert all(first < second for first, second in pairwise(places))


def test_led() -> None:
    """Without noise the segments show the digit and the rest is chance; noise turns its share of them over."""
    n = 10_000
    value, label = generate("led:noise=0").take(n)
    assert (value[:, :7] == DIGITS[label]).all()
    assert (np.abs(value[:, 7:].sum(axis=0) - n / 2) < _spread(n, 0.5)).all()
    noisy = generate("led:noise=10").take(n)
    turned = noisy.value[:, :7] != DIGITS[noisy.label]
    assert (np.abs(turned.sum(axis=0) - n / 10) < _spread(n, 0.1)).all()
    counts = np.bincount(label, minlength=10)
    assert (np.abs(counts - n / 10) < _spread(n, 0.1)).all()


@pytest.mark.parametrize("moved", range(8))
def test_led_drift(moved: int) -> None:
    """With drift the first segments have changed places with irrelevant attributes, and nothing else differs."""
    plain, drifted = (generate(f"led:drift={count}").take(300).value for count in (0, moved))
    order = [*range(7, 7 + moved), *range(moved, 7), *range(moved), *range(7 + moved, 24)]
    assert (drifted == plain[:, order]).all()


def test_agr() -> None:
    """People are as the paper has them; perturbation leaves class, nominal attributes and ranges as they are."""
    exact, moved = generate("agr:perturbation=0").take(5_000), generate("agr:perturbation=0.3").take(5_000)
    assert (exact.label == moved.label).all()
    ranges = [
        ("salary", 20_000, 150_000),
        ("commission", 0, 75_000),
        ("age", 20, 80),
        ("elevel", 0, 4),
        ("car", 0, 19),
        ("zipcode", 0, 8),
        ("hvalue", 50_000, 1_350_000),
        ("hyears", 1, 30),
        ("loan", 0, 500_000),
    ]
    schema = generate("agr").schema
    assert [attribute.name for attribute in schema.attributes] == [name for name, _, _ in ranges]
    for column, (name, low, high) in enumerate(ranges):
        for examples in (exact, moved):
            if examples is exact or name != "hvalue":
                assert low <= examples.value[:, column].min()
                assert examples.value[:, column].max() <= high
    salary, commission = exact.value[:, :2].T
    assert ((commission == 0) == (salary >= 75_000)).all()
    assert (exact.value[:, 3:6] == moved.value[:, 3:6]).all()
    reach = 0.3 * np.array([130_000, 60, 29, 500_000])
    rounding = np.array([0, 0.5, 0.5, 0])
    distance = np.abs(exact.value - moved.value)[:, [0, 2, 7, 8]]
    assert (distance <= reach + rounding).all()
    assert (distance.max(axis=0) > 0.9 * reach).all()


def test_rtg_depth() -> None:
    """A tree of depth 0 is one leaf; from its first leaf level on, a fraction of 1 leaves nothing but leaves."""
    for text in ("rtg:depth=0", "rtg:depth=9,first_leaf=0,leaf_fraction=1"):
        assert len(set(generate(text).take(100).label.tolist())) == 1


def test_rtg_tree_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that would fill the memory is refused."""
    monkeypatch.setattr("worker.sources.generators.rtg.NODES", 1_000)
    with pytest.raises(ValueError, match="expected a tree of at most 1000 nodes, got more; lower depth or values"):
        generate("rtg:depth=12")


def test_rbf_distance() -> None:
    """Around a centroid the distance of the examples is normal, and they lie in every direction."""
    n = 10_000
    value, _ = generate("rbf:centroids=1,attributes=4").take(n)
    *centre, _, deviation, _ = Draws(1, MODEL).uniform(7)
    distance = np.sort(np.linalg.norm(value - np.array(centre), axis=1)) / deviation
    below = np.array([math.erf(each / math.sqrt(2)) for each in distance])
    assert np.abs(below - np.arange(n) / n).max() < 1.95 / math.sqrt(n)
    assert (np.abs((value > np.array(centre)).sum(axis=0) - n / 2) < _spread(n, 0.5)).all()


def test_rbf_moves() -> None:
    """A centroid moves by the speed before each example, and stays within the walls; one not named rests."""
    n, speed = 2_000, 0.01
    resting, moving = (generate(f"rbf:centroids=1,attributes=2,speed={each}").take(n) for each in (0, speed))
    start = Draws(1, MODEL).uniform(2)
    path = np.vstack([start, start + moving.value - resting.value])
    assert -1e-9 < path.min() < speed
    assert 1 - speed < path.max() < 1 + 1e-9
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert (steps < speed + 1e-9).all()
    turns = steps < speed - 1e-9  # a step ends at a wall
    assert 10 < turns.sum() < n / 20
    named = generate(f"rbf:centroids=1,attributes=2,speed={speed},drifting=0").take(n)
    assert (named.value == resting.value).all()


# --- drift


class Counting:
    """A stream that counts: the value is the number of the example, the label tells the stream."""

    def __init__(self, label: int, classes: int = 2) -> None:
        self.schema = Schema((Attribute("number", NUMERIC),), classes)
        self._label, self._next = label, 0

    def take(self, n: int) -> Examples:
        """Return the next n numbers."""
        numbers = np.arange(self._next, self._next + n, dtype=float)
        self._next += n
        return Examples(numbers[:, np.newaxis], np.full(n, self._label))


@pytest.mark.parametrize("at", [0, 1, 100, 500])
def test_abrupt_drift(at: int) -> None:
    """With width 0, exactly the first examples are of the one stream, and the other begins at its beginning."""
    value, label = drift(Counting(0), Counting(1), at).take(500)
    assert label.tolist() == [0] * at + [1] * (500 - at)
    assert value[:, 0].tolist() == [*range(at), *range(500 - at)]


def test_gradual_drift() -> None:
    """The share of the other stream follows the sigmoid, and each stream goes on where it was."""
    at, width, n = 10_000, 4_000, 20_000
    value, label = drift(Counting(0), Counting(1), at, width, seed=3).take(n)
    for stream in (0, 1):
        assert value[label == stream, 0].tolist() == list(range((label == stream).sum()))
    for start in range(0, n, 1_000):
        middle = start + 500.5
        share = 1 / (1 + math.exp(-4 * (middle - at) / width))
        assert abs(label[start : start + 1_000].sum() - 1_000 * share) < _spread(1_000, max(share, 0.01)) + 1
    assert label[:2_000].sum() <= 5
    assert (label[-2_000:] == 0).sum() <= 5


def test_drift_of_drifts() -> None:
    """Drifts compose, with places counted from the start of the whole."""
    streams = [Counting(label, 3) for label in range(3)]
    label = drift(drift(streams[0], streams[1], 10), streams[2], 30).take(50).label
    assert label.tolist() == [0] * 10 + [1] * 20 + [2] * 20


def test_a_far_drift_overflows_nothing() -> None:
    """Far from its place a narrow drift is as good as abrupt."""
    label = drift(Counting(0), Counting(1), 50_000, 1e-9).take(100_000).label
    assert 49_999 <= (label == 0).sum() <= 50_000


def test_concepts_change_where_the_drift_is() -> None:
    """Before a drift labels follow the one function, after it the other."""
    value, label = generate("sea:noise=0+sea:function=4,noise=0@1000").take(3_000)
    total = value[:, 0] + value[:, 1]
    assert (label[:1_000] == (total[:1_000] > 8)).all()
    assert (label[1_000:] == (total[1_000:] > 9.5)).all()
    assert (label[:1_000] != (total[:1_000] > 9.5)).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: drift(generate("sea"), generate("led"), 5),
            "expected streams of the same attributes and classes",
        ),
        (
            lambda: drift(Counting(0), Counting(0, 3), 5),
            r"got 1 \(number; 2 classes\) and 1 \(number; 3 classes\)",
        ),
        (lambda: drift(Counting(0), Counting(1), -1), "expected the place of a drift from 0"),
        (lambda: drift(Counting(0), Counting(1), 1, -1), "expected the width of a drift from 0"),
        (lambda: drift(Counting(0), Counting(1), 1, math.nan), "expected the width of a drift from 0"),
        (lambda: drift(Counting(0), Counting(1), 1, seed=-1), "expected seed from 0"),
    ],
)
def test_drift_refuses(make: Callable[[], Generator], message: str) -> None:
    """Streams that do not fit together, and negative numbers, are refused."""
    with pytest.raises(ValueError, match=message):
        make()


# --- descriptions


def test_seeds_of_parts_differ() -> None:
    """Parts without a seed get 1, 2, 3: the example before a drift does not come again after it."""
    text = "sea+sea:function=2@10+sea:function=3@20"
    given = "sea:seed=1+sea:function=2,seed=2@10/0+sea:function=3,seed=3@20"
    assert _digest(generate(text).take(50)) == _digest(generate(given).take(50))
    value = generate(text).take(50).value
    assert len(set(value[:, 0].tolist())) == 50


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one of sea, led, agr, rtg, rbf, friedman, planes, got ''"),
        (
            "hyperplane",
            "expected one of sea, led, agr, rtg, rbf, friedman, planes, got 'hyperplane'; see led:noise=10,seed=7",
        ),
        ("sea:theta=3", "expected some of function=1, noise=10.0, balance=false, seed=1, got 'theta=3'; name"),
        ("sea:function", "expected function to be a whole number, got ''; write one"),
        ("sea:function=1.5", "expected function to be a whole number, got '1.5'; write one"),
        ("sea:noise=much", "expected noise to be a number, got 'much'; write one"),
        ("sea:balance=1", "expected balance=true or balance=false, got '1'; write one of these"),
        ("sea:noise=1,noise=2", "expected noise once, got it again; leave one out"),
        ("sea+led", "expected NAME:...@AT or NAME:...@AT/WIDTH after [+], got 'led'; say where the drift is"),
        ("sea+sea@", "expected the place of a drift to be a whole number, got ''"),
        ("sea+sea@5/", "expected the width of a drift to be a whole number, got ''"),
        ("sea+led@5", "expected streams of the same attributes and classes, got 3"),
        ("planes+sea@5", "got 10 [(]attrib1, attrib2, attrib3, ...; numbers[)]"),
        ("friedman:function=3", "expected function from 1 to 2, got 3"),
        ("planes:noise=-1", "expected noise from 0"),
        ("sea:function=0", "expected function from 1 to 4, got 0; choose another"),
        ("sea:function=5", "expected function from 1 to 4, got 5; choose another"),
        ("sea:noise=101", "expected noise from 0 to 100, got 101.0"),
        ("sea:noise=nan", "expected noise from 0 to 100, got nan"),
        ("sea:seed=-1", "expected seed from 0 to 9223372036854775807, got -1"),
        ("led:noise=-1", "expected noise from 0 to 100"),
        ("led:drift=8", "expected drift from 0 to 7, got 8"),
        ("led:drift=1,irrelevant=false", "expected drift=0 with irrelevant=false, got drift=1"),
        ("agr:function=11", "expected function from 1 to 10, got 11"),
        ("agr:perturbation=2", "expected perturbation from 0 to 1, got 2.0"),
        ("rtg:classes=1", "expected classes from 2"),
        ("rtg:nominals=-1", "expected nominals from 0"),
        ("rtg:numerics=-1", "expected numerics from 0"),
        ("rtg:nominals=0,numerics=0", "expected nominals [+] numerics from 1"),
        ("rtg:values=1", "expected values from 2"),
        ("rtg:depth=-1", "expected depth from 0"),
        ("rtg:first_leaf=-1", "expected first_leaf from 0"),
        ("rtg:leaf_fraction=1.5", "expected leaf_fraction from 0 to 1, got 1.5"),
        ("rtg:tree_seed=-1", "expected tree_seed from 0"),
        ("rbf:classes=1", "expected classes from 2"),
        ("rbf:attributes=0", "expected attributes from 1"),
        ("rbf:centroids=0", "expected centroids from 1"),
        ("rbf:speed=-0.1", "expected speed from 0"),
        ("rbf:speed=inf", "expected speed from 0"),
        ("rbf:drifting=-1", "expected drifting from 0"),
        ("rbf:model_seed=-1", "expected model_seed from 0"),
    ],
)
def test_bad_descriptions(text: str, message: str) -> None:
    """What is wrong in a description is told with what was expected."""
    with pytest.raises(ValueError, match=message):
        generate(text)


def test_binary_schemas() -> None:
    """Only LED is all binary."""
    assert [name for name in GENERATORS if generate(name).schema.is_binary] == ["led"]
    assert {attribute.values for attribute in generate("led").schema.attributes} == {BINARY}


def test_a_new_one_needs_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator is known by its name once it is in the registry."""
    monkeypatch.setitem(GENERATORS, "other", GENERATORS["sea"])
    assert _digest(generate("other").take(10)) == _digest(generate("sea").take(10))
