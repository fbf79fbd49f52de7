"""Names of features and values of examples: a bijection, and errors that say what to do."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.estimators.encoding import Encoder, decoded, encoded, is_numeric, mapping_of
from tests.algorithms.estimators.peers import needed

WHOLE = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(exclude_categories=[]))  # lone surrogates are text, too
FEATURES = st.one_of(TEXT, st.binary(), WHOLE)


@given(FEATURES)
def test_names_lead_back(feature: str | bytes | int) -> None:
    """What a feature was called, and of which type, is known from its name."""
    back = decoded(encoded(feature))
    assert back == feature
    assert type(back) is type(feature)


@given(FEATURES, FEATURES)
def test_different_features_have_different_names(one: Any, other: Any) -> None:
    """7, "7" and b"7" are three features."""
    same = type(one) is type(other) and one == other
    assert (encoded(one) == encoded(other)) == same


@given(WHOLE, WHOLE)
def test_whole_numbers_keep_their_order(one: int, other: int) -> None:
    """Ties, which go by the bytes of names, go to the lower number."""
    assert (encoded(one) < encoded(other)) == (one < other)


def test_numbers_of_numpy_are_numbers() -> None:
    """A feature that is numpy's is that of Python."""
    assert encoded(np.int32(7)) == encoded(7)
    assert encoded(np.str_("a")) == encoded("a")


@pytest.mark.parametrize("feature", [1.5, True, None, ("a",), 1 << 63, -(1 << 63) - 1, np.float64(1), object()])
def test_what_is_no_feature(feature: Any) -> None:
    """What is neither text nor a whole number nor bytes is refused, however often and in whatever it comes."""
    encoder = Encoder()
    encoder.entries([1], numeric=False)  # equal to True, and no reason to let that pass
    for x in ([feature], {feature: 1}, {feature: None}, {feature: "text"}, {feature: 0}):
        for _ in range(2):
            with pytest.raises(ValueError, match="expected a"):
                encoder.entries(x, numeric=True)


def test_an_unhashable_feature() -> None:
    """A list in a list is no feature, and the message shows it."""
    with pytest.raises(ValueError, match=r"expected features.*\[\['a'\]\]"):
        Encoder().entries([["a"]], numeric=False)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (["b", "a"], {"b": 1.0, "a": 1.0}),
        (["a", "a"], {"a": 1.0}),
        (("a", 7), {"a": 1.0, 7: 1.0}),
        ({"a", b"a"}, {"a": 1.0, b"a": 1.0}),
        ({"a": True, "b": False, "c": None, "d": 1, "e": 0.0}, {"a": 1.0, "d": 1.0}),
        ({"colour": "red", 7: "x", b"k": "v"}, {"colour=red": 1.0, "7=x": 1.0, b"k=v": 1.0}),
        ({"a": np.bool_(True), "b": np.int8(1), "c": np.str_("x")}, {"a": 1.0, "b": 1.0, "c=x": 1.0}),
        ([], {}),
        ({}, {}),
    ],
)
@pytest.mark.parametrize("numeric", [False, True])
def test_entries(x: Any, expected: dict[Any, float], numeric: bool) -> None:
    """What is present has a name and a value; what is absent is left out."""
    names, values = Encoder().entries(x, numeric)
    assert {decoded(name): value for name, value in zip(names, values, strict=True)} == expected
    assert len(names) == len(set(names))


def test_numbers() -> None:
    """Numbers of any type are values where features are numeric."""
    x = {"a": 2.5, "b": -3, "c": np.float32(0.5), "d": Fraction(1, 4), "e": -0.0}
    names, values = Encoder().entries(x, numeric=True)
    assert dict(zip(map(decoded, names), values, strict=True)) == {"a": 2.5, "b": -3, "c": 0.5, "d": 0.25}


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 1e141, 10**400, np.float32("nan"), Fraction(10**400), -Fraction(10**400)],
)
def test_values_that_are_not_finite(value: Any) -> None:
    """The message says to leave the feature out."""
    with pytest.raises(ValueError, match=r"expected a finite number.*leave the feature out, or give None"):
        Encoder().entries({"a": value}, numeric=True)


@pytest.mark.parametrize("value", [2, 0.5, -1, math.nan, np.float32(2), 10**400])
def test_numbers_where_features_are_present_or_absent(value: Any) -> None:
    """A number that would be taken for "present" is refused, and the message says how to have it counted."""
    with pytest.raises(ValueError, match="features='numeric'"):
        Encoder().entries({"a": value}, numeric=False)


@pytest.mark.parametrize("value", [[1], b"x", object(), 1j, {}])
def test_values_that_are_none(value: Any) -> None:
    """A value of another type is refused."""
    with pytest.raises(ValueError, match="expected a number, text, True, False or None"):
        Encoder().entries({"a": value}, numeric=True)


def test_a_feature_that_is_named_twice_in_a_mapping() -> None:
    """As a category and as its feature."""
    with pytest.raises(ValueError, match="one twice"):
        Encoder().entries({"colour": "red", "colour=red": True}, numeric=True)


@pytest.mark.parametrize(
    ("x", "hint"),
    [
        ("text", r"text\.split\(\)"),
        (np.zeros(3), r"dict\(enumerate\(row\)\)"),
        (7, "make a dict"),
        (None, "make a dict"),
        ((word for word in "ab"), "make a dict or a list"),
    ],
)
def test_examples_that_are_none(x: Any, hint: str) -> None:
    """The message says what to make of it."""
    with pytest.raises(ValueError, match=hint):
        mapping_of(x)


@pytest.mark.parametrize(
    ("x", "numeric"),
    [
        (["a"], False),
        ({"a": True, "b": "red", "c": None}, False),
        ({"a": True, "b": 2}, True),
        ({"a": np.float32(1)}, True),
        ({"a": np.bool_(True)}, False),
        ({}, True),
        ([], False),
    ],
)
def test_kind_of_the_first_example(x: Any, numeric: bool) -> None:
    """A mapping with a number that is not a bool has numeric features; an empty one may have them later."""
    assert is_numeric(x) is numeric


def test_rows_of_sparse_matrices() -> None:
    """Columns are features. Ones alone are words that are present."""
    sparse = needed("scipy.sparse")
    matrix = sparse.csr_matrix(np.array([[0, 2.5, 0, 1], [1, 0, 0, 1]]))
    assert mapping_of(matrix[0]) == {1: 2.5, 3: 1.0}
    assert mapping_of(matrix[1]) == {0: True, 3: True}
    assert mapping_of(sparse.csr_array(np.array([[0, 2.5, 0, 1]]))[0]) == {1: 2.5, 3: 1.0}
    with pytest.raises(ValueError, match="one row, got a matrix of 2"):
        mapping_of(matrix)
    twice = sparse.csr_matrix((np.array([1.0, 1.5]), np.array([2, 2]), np.array([0, 2])), shape=(1, 4))
    assert mapping_of(twice) == {2: 2.5}
    assert twice.nnz == 2, "the caller's matrix was changed"


def test_rows_of_pandas() -> None:
    """A row of a table is a mapping from its columns."""
    pandas = needed("pandas")
    table = pandas.DataFrame({"a": [1.5, 2.0], "b": ["x", "y"]})
    assert mapping_of(table.iloc[0]) == {"a": 1.5, "b": "x"}
    with pytest.raises(ValueError, match="make a dict or a list"):
        mapping_of(table)
    with pytest.raises(ValueError, match="repeated names"):
        mapping_of(pandas.Series([1, 2], index=["a", "a"]))
