"""AGR: ten rules of a bank on who gets a loan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int64s
from worker.sources.generators.balance import Balance
from worker.sources.generators.draws import Draws
from worker.sources.generators.port import NUMERIC, Attribute, Examples, Schema, at_least, within

Bools: TypeAlias = npt.NDArray[np.bool_]

SCHEMA = Schema(
    (
        Attribute("salary", NUMERIC),
        Attribute("commission", NUMERIC),
        Attribute("age", NUMERIC),
        Attribute("elevel", 5),
        Attribute("car", 20),
        Attribute("zipcode", 9),
        Attribute("hvalue", NUMERIC),
        Attribute("hyears", NUMERIC),
        Attribute("loan", NUMERIC),
    ),
    classes=2,
)


class _People(NamedTuple):
    """The attributes, before perturbation; float64[n] each."""

    salary: Float64s
    commission: Float64s
    age: Float64s
    elevel: Float64s  # level of education
    car: Float64s
    zipcode: Float64s
    hvalue: Float64s  # value of the house
    hyears: Float64s  # years for which it has been owned
    loan: Float64s


@dataclass(eq=False, kw_only=True)
class Agr:
    """Six numeric and three nominal attributes of people; class 0 or 1, groups A and B, by one of ten functions.

    Agrawal, Imielinski and Swami: Database mining: a performance perspective. IEEE Transactions on Knowledge and
    Data Engineering 5(6), 1993; functions on page 924. MOA's `AgrawalGenerator`. Drift is `drift` from one
    function to another.

    Parameters
    ----------
    function : int
        1 to 10.
    perturbation : float
        0 to 1: numeric attributes move by up to this share of their range, after the class is known.
    balance : bool
        Let the classes alternate.
    seed : int
        0 or more.
    """

    function: int = 1
    perturbation: float = 0.05
    balance: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        within("function", self.function, 1, len(_FUNCTIONS))
        within("perturbation", self.perturbation, 0, 1)
        at_least("seed", self.seed, 0)
        self.schema = SCHEMA
        self._draws = Draws(self.seed)
        self._balance = Balance()

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        rows, group = self._balance.take(self._candidates, n) if self.balance else self._candidates(n)
        people, moves = _People(*rows[:, :9].T), rows[:, 9:].T
        if self.perturbation > 0:
            people = self._perturbed(people, moves)
        return Examples(np.stack(people, axis=1), group)

    def _candidates(self, n: int) -> tuple[Float64s, Int64s]:
        """Return nine attributes and six numbers from [0, 1) for the perturbation; and the classes."""
        drawn = self._draws.uniform(n, 15)
        salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan = drawn.T[:9]
        salary = 20_000.0 + 130_000.0 * salary
        zipcode = np.floor(9 * zipcode)
        people = _People(
            salary=salary,
            commission=np.where(salary >= 75_000.0, 0.0, 10_000.0 + 65_000.0 * commission),
            age=20 + np.floor(61 * age),
            elevel=np.floor(5 * elevel),
            car=np.floor(20 * car),
            zipcode=zipcode,
            hvalue=(9.0 - zipcode) * 100_000.0 * (0.5 + hvalue),
            hyears=1 + np.floor(30 * hyears),
            loan=loan * 500_000.0,
        )
        group = np.where(_FUNCTIONS[self.function - 1](people), 0, 1)
        return np.concatenate([np.stack(people, axis=1), drawn[:, 9:]], axis=1), group

    def _perturbed(self, people: _People, moves: Float64s) -> _People:
        def moved(value: Float64s, move: Float64s, low: float, high: float, reach: Any) -> Float64s:
            beyond = value + reach * (2.0 * (move - 0.5)) * self.perturbation
            clipped: Float64s = np.clip(beyond, low, high)
            return clipped

        commission = moved(people.commission, moves[1], 10_000, 75_000, 65_000)
        return people._replace(
            salary=moved(people.salary, moves[0], 20_000, 150_000, 130_000),
            commission=np.where(people.commission > 0, commission, 0.0),
            age=np.floor(moved(people.age, moves[2], 20, 80, 60) + 0.5),
            # The bound is MOA's, though houses cost up to ten times as much: published results have it in them.
            hvalue=moved(people.hvalue, moves[3], 0, 135_000, (9.0 - people.zipcode) * 100_000.0),
            hyears=np.floor(moved(people.hyears, moves[4], 1, 30, 29) + 0.5),
            loan=moved(people.loan, moves[5], 0, 500_000, 500_000),
        )


# Each function says who belongs to group A. Most have a rule for the young, one below 60, one for the rest.


def _by_age(people: _People, young: Bools, middle: Bools, old: Bools) -> Bools:
    return np.where(people.age < 40, young, np.where(people.age < 60, middle, old))


def _between(low: float, value: Float64s, high: float) -> Bools:
    return (low <= value) & (value <= high)


def _function_1(people: _People) -> Bools:
    return (people.age < 40) | (people.age >= 60)


def _by_income(people: _People, income: Float64s) -> Bools:
    return _by_age(
        people,
        _between(50_000, income, 100_000),
        _between(75_000, income, 125_000),
        _between(25_000, income, 75_000),
    )


def _function_2(people: _People) -> Bools:
    return _by_income(people, people.salary)


def _function_3(people: _People) -> Bools:
    return _by_age(people, people.elevel <= 1, _between(1, people.elevel, 3), _between(2, people.elevel, 4))


def _function_4(people: _People) -> Bools:
    lower = _between(25_000, people.salary, 75_000)
    middle = _between(50_000, people.salary, 100_000)
    higher = _between(75_000, people.salary, 125_000)
    return _by_age(
        people,
        np.where(people.elevel <= 1, lower, middle),
        np.where(_between(1, people.elevel, 3), middle, higher),
        np.where(_between(2, people.elevel, 4), middle, lower),
    )


def _function_5(people: _People) -> Bools:
    small = _between(100_000, people.loan, 300_000)
    medium = _between(200_000, people.loan, 400_000)
    large = _between(300_000, people.loan, 500_000)
    return _by_age(
        people,
        np.where(_between(50_000, people.salary, 100_000), small, medium),
        np.where(_between(75_000, people.salary, 125_000), medium, large),
        np.where(_between(25_000, people.salary, 75_000), large, small),
    )


def _function_6(people: _People) -> Bools:
    return _by_income(people, people.salary + people.commission)


def _net(people: _People) -> Float64s:
    return 2.0 * (people.salary + people.commission) / 3.0


def _function_7(people: _People) -> Bools:
    return _net(people) - people.loan / 5.0 - 20_000.0 > 0


def _function_8(people: _People) -> Bools:
    return _net(people) - 5_000.0 * people.elevel - 20_000.0 > 0


def _function_9(people: _People) -> Bools:
    return _net(people) - 5_000.0 * people.elevel - people.loan / 5.0 - 10_000.0 > 0


def _function_10(people: _People) -> Bools:
    equity = np.where(people.hyears >= 20, people.hvalue * (people.hyears - 20.0) / 10.0, 0.0)
    return _net(people) - 5_000.0 * people.elevel + equity / 5.0 - 10_000.0 > 0


_FUNCTIONS: tuple[Callable[[_People], Bools], ...] = (
    _function_1,
    _function_2,
    _function_3,
    _function_4,
    _function_5,
    _function_6,
    _function_7,
    _function_8,
    _function_9,
    _function_10,
)
