"""The generators in plain Python, one example at a time, as their papers and MOA define them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

import numpy as np

from worker.sources.generators.draws import CHOICE, EXAMPLES, MODEL, NORMALS

Row: TypeAlias = tuple[list[float], int]
NumberRow: TypeAlias = tuple[list[float], float]


class Dice:
    """One number after the other, of the words that numpy's generator makes."""

    def __init__(self, seed: int, sequence: int) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(sequence,)))

    def uniform(self) -> float:
        """Return a number from [0, 1): the upper 53 bits of a word."""
        return (int(self._words.random_raw()) >> 11) / (1 << 53)

    def below(self, limit: int) -> int:
        """Return one of 0, 1, ..., limit - 1."""
        return int(self.uniform() * limit)

    def normal(self) -> float:
        """Return a standard normal number: Kinderman and Monahan's ratios."""
        while True:
            first = self.uniform()
            second = 1.0 - self.uniform()
            ratio = 1.7155277699214135 * (first - 0.5) / second
            if ratio * ratio / 4.0 <= -math.log(second):
                return ratio


def sea(function: int = 1, noise: float = 10, balance: bool = False, seed: int = 1) -> Iterator[Row]:
    """Yield SEA: Street and Kim 2001."""
    dice = Dice(seed, EXAMPLES)
    threshold = {1: 8, 2: 9, 3: 7, 4: 9.5}[function]
    wanted = 1
    while True:
        values = [10 * dice.uniform() for _ in range(3)]
        flips = 100 * dice.uniform() < noise
        group = 0 if values[0] + values[1] <= threshold else 1
        if balance:
            if group != wanted:
                continue
            wanted = 1 - wanted
        yield values, 1 - group if flips else group


SEGMENTS = [
    "abc efg",
    "  c  f ",
    "a cde g",
    "a cd fg",
    " bcd f ",
    "ab d fg",
    "ab defg",
    "a c  f ",
    "abcdefg",
    "abcd fg",
]


def led(noise: float = 10, drift: int = 0, irrelevant: bool = True, seed: int = 1) -> Iterator[Row]:
    """Yield LED: Breiman et al. 1984, with MOA's way of drifting."""
    dice = Dice(seed, EXAMPLES)
    while True:
        digit = dice.below(10)
        values = []
        for segment in SEGMENTS[digit]:
            shown = 0 if segment == " " else 1
            values.append(float(1 - shown if 100 * dice.uniform() < noise else shown))
        if irrelevant:
            values += [float(dice.below(2)) for _ in range(17)]
        for place in range(drift):
            values[place], values[7 + place] = values[7 + place], values[place]
        yield values, digit


def agr(function: int = 1, perturbation: float = 0.05, balance: bool = False, seed: int = 1) -> Iterator[Row]:
    """Yield AGR: Agrawal et al. 1993, with MOA's perturbation."""
    dice = Dice(seed, EXAMPLES)
    wanted = 1
    while True:
        salary = 20000 + 130000 * dice.uniform()
        commission = 10000 + 65000 * dice.uniform()
        if salary >= 75000:
            commission = 0
        age = 20 + dice.below(61)
        elevel = dice.below(5)
        car = dice.below(20)
        zipcode = dice.below(9)
        hvalue = (9 - zipcode) * 100000 * (0.5 + dice.uniform())
        hyears = 1 + dice.below(30)
        loan = dice.uniform() * 500000
        moves = [2 * (dice.uniform() - 0.5) * 1.0 for _ in range(6)]
        group = agr_class(function, salary, commission, age, elevel, hvalue, hyears, loan)
        if balance:
            if group != wanted:
                continue
            wanted = 1 - wanted
        if perturbation > 0:

            def moved(value: float, move: float, reach: float, low: float, high: float) -> float:
                return min(max(value + reach * move * perturbation, low), high)

            salary = moved(salary, moves[0], 130000, 20000, 150000)
            if commission > 0:
                commission = moved(commission, moves[1], 65000, 10000, 75000)
            age = math.floor(moved(age, moves[2], 60, 20, 80) + 0.5)
            hvalue = moved(hvalue, moves[3], (9 - zipcode) * 100000, 0, 135000)
            hyears = math.floor(moved(hyears, moves[4], 29, 1, 30) + 0.5)
            loan = moved(loan, moves[5], 500000, 0, 500000)
        yield [salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan], group


def agr_class(
    function: int,
    salary: float,
    commission: float,
    age: float,
    elevel: int,
    hvalue: float,
    hyears: float,
    loan: float,
) -> int:
    """Return 0 for group A, 1 for group B: the paper's page 924."""
    total = salary + commission
    group_a: bool
    match function:
        case 1:
            group_a = age < 40 or age >= 60
        case 2 | 6:
            income = salary if function == 2 else total
            if age < 40:
                group_a = 50000 <= income <= 100000
            elif age < 60:
                group_a = 75000 <= income <= 125000
            else:
                group_a = 25000 <= income <= 75000
        case 3:
            if age < 40:
                group_a = elevel in (0, 1)
            elif age < 60:
                group_a = elevel in (1, 2, 3)
            else:
                group_a = elevel in (2, 3, 4)
        case 4:
            if age < 40:
                low, high = (25000, 75000) if elevel in (0, 1) else (50000, 100000)
            elif age < 60:
                low, high = (50000, 100000) if elevel in (1, 2, 3) else (75000, 125000)
            else:
                low, high = (50000, 100000) if elevel in (2, 3, 4) else (25000, 75000)
            group_a = low <= salary <= high
        case 5:
            if age < 40:
                low, high = (100000, 300000) if 50000 <= salary <= 100000 else (200000, 400000)
            elif age < 60:
                low, high = (200000, 400000) if 75000 <= salary <= 125000 else (300000, 500000)
            else:
                low, high = (300000, 500000) if 25000 <= salary <= 75000 else (100000, 300000)
            group_a = low <= loan <= high
        case 7:
            group_a = 2 * total / 3 - loan / 5 - 20000 > 0
        case 8:
            group_a = 2 * total / 3 - 5000 * elevel - 20000 > 0
        case 9:
            group_a = 2 * total / 3 - 5000 * elevel - loan / 5 - 10000 > 0
        case _:
            equity = hvalue * (hyears - 20) / 10 if hyears >= 20 else 0
            group_a = 2 * total / 3 - 5000 * elevel + equity / 5 - 10000 > 0
    return 0 if group_a else 1


@dataclass
class Node:
    """A node of the random tree; a leaf has no children."""

    depth: int
    nominals: list[int]
    low: list[float]
    high: list[float]
    label: int = -1
    attribute: int = -1
    threshold: float = math.nan
    children: list[Node] = field(default_factory=list)


def rtg_tree(
    classes: int = 2,
    nominals: int = 5,
    numerics: int = 5,
    values: int = 5,
    depth: int = 5,
    first_leaf: int = 3,
    leaf_fraction: float = 0.15,
    tree_seed: int = 1,
) -> Node:
    """Return MOA's random tree, made level by level."""
    dice = Dice(tree_seed, MODEL)
    root = Node(0, list(range(nominals)), [0.0] * numerics, [1.0] * numerics)
    level = [root]
    while level:
        below = []
        for node in level:
            choices = len(node.nominals) + numerics
            if node.depth >= depth or choices == 0:
                node.label = dice.below(classes)
                continue
            if node.depth >= first_leaf and leaf_fraction >= 1 - dice.uniform():
                node.label = dice.below(classes)
                continue
            chosen = dice.below(choices)
            if chosen < len(node.nominals):
                node.attribute = node.nominals[chosen]
                left = [each for each in node.nominals if each != node.attribute]
                node.children = [Node(node.depth + 1, left, node.low, node.high) for _ in range(values)]
            else:
                numeric = chosen - len(node.nominals)
                node.attribute = nominals + numeric
                low, high = node.low[numeric], node.high[numeric]
                node.threshold = (high - low) * dice.uniform() + low
                lower, upper = node.high.copy(), node.low.copy()
                lower[numeric] = upper[numeric] = node.threshold
                node.children = [
                    Node(node.depth + 1, node.nominals, node.low, lower),
                    Node(node.depth + 1, node.nominals, upper, node.high),
                ]
            below += node.children
        level = below
    return root


def rtg_class(node: Node, row: list[float], nominals: int) -> int:
    """Return what the tree says of a row."""
    if not node.children:
        return node.label
    value = row[node.attribute]
    if node.attribute < nominals:
        return rtg_class(node.children[int(value)], row, nominals)
    return rtg_class(node.children[0 if value < node.threshold else 1], row, nominals)


def rtg(
    nominals: int = 5, numerics: int = 5, values: int = 5, seed: int = 1, **of_tree: int | float
) -> Iterator[Row]:
    """Yield RTG: Domingos and Hulten 2000."""
    dice = Dice(seed, EXAMPLES)
    tree = rtg_tree(nominals=nominals, numerics=numerics, values=values, **of_tree)  # type: ignore[arg-type]
    while True:
        row: list[float] = [dice.below(values) for _ in range(nominals)]
        row += [dice.uniform() for _ in range(numerics)]
        yield row, rtg_class(tree, row, nominals)


@dataclass
class Centroid:
    """One centroid; `velocity` is what it moves by before an example."""

    centre: list[float]
    label: int
    deviation: float
    weight: float
    velocity: list[float] = field(default_factory=list)


def rbf(
    classes: int = 2,
    attributes: int = 10,
    centroids: int = 50,
    speed: float = 0.0,
    drifting: int = 50,
    model_seed: int = 1,
    seed: int = 1,
) -> Iterator[Row]:
    """Yield RBF: Bifet et al. 2009."""
    model = Dice(model_seed, MODEL)
    crowd = []
    for _ in range(centroids):
        centre = [model.uniform() for _ in range(attributes)]
        crowd.append(Centroid(centre, model.below(classes), model.uniform(), model.uniform()))
    movers = crowd[:drifting]
    for mover in movers:
        direction = [model.uniform() for _ in range(attributes)]
        length = math.sqrt(sum(each * each for each in direction))
        mover.velocity = [each / length * speed for each in direction]
    dice, normals = Dice(seed, EXAMPLES), Dice(seed, NORMALS)
    while True:
        for mover in movers:
            for axis in range(attributes):
                mover.centre[axis] += mover.velocity[axis]
                if not 0 <= mover.centre[axis] <= 1:
                    mover.centre[axis] = 1.0 if mover.centre[axis] > 1 else 0.0
                    mover.velocity[axis] *= -1
        total = 0.0
        for centroid in crowd:
            total += centroid.weight
        mark = dice.uniform() * total
        passed = 0.0
        for chosen in crowd:
            passed += chosen.weight
            if passed > mark:
                break
        direction = [dice.uniform() * 2 - 1 for _ in range(attributes)]
        length = 0.0
        for each in direction:
            length += each * each
        scale = normals.normal() * chosen.deviation / math.sqrt(length)
        yield [centre + step * scale for centre, step in zip(chosen.centre, direction, strict=True)], chosen.label


def drift(one: Iterator[Row], other: Iterator[Row], at: int, width: float, seed: int) -> Iterator[Row]:
    """Yield MOA's `ConceptDriftStream`."""
    dice = Dice(seed, CHOICE)
    t = 0
    while True:
        t += 1
        drawn = dice.uniform()
        if width == 0:
            yield next(other if t > at else one)
        else:
            yield next(other if drawn < 1 / (1 + math.exp(-4 * (t - at) / width)) else one)


def friedman(function: int = 1, noise: float = 1.0, seed: int = 1) -> Iterator[NumberRow]:
    """Yield Friedman 1991; the sine's last bits are the library's."""
    dice, normals = Dice(seed, EXAMPLES), Dice(seed, NORMALS)
    while True:
        values = [dice.uniform() for _ in range(10)]
        a, b, c, d, e = values[:5] if function == 1 else values[:4:-1]
        told = 10 * math.sin(math.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
        yield values, told + noise * normals.normal()


def planes(function: int = 1, noise: float = 1.0, seed: int = 1) -> Iterator[NumberRow]:
    """Yield Breiman et al. 1984."""
    dice, normals = Dice(seed, EXAMPLES), Dice(seed, NORMALS)
    while True:
        drawn = [dice.uniform() for _ in range(10)]
        values = [-1.0 if drawn[0] < 0.5 else 1.0, *(float(math.floor(3 * each)) - 1 for each in drawn[1:])]
        a, b, c, d, e, f = values[1:7]
        told = 3 + 3 * a + 2 * b + c if values[0] == 1 else -3 + 3 * d + 2 * e + f
        yield values, (told if function == 1 else -told) + noise * normals.normal()


def taken(twin: Iterator[Row], n: int) -> tuple[list[list[float]], list[int]]:
    """Return the values and labels of the next n examples."""
    rows = list(islice(twin, n))
    return [values for values, _ in rows], [label for _, label in rows]
