"""Colours of classes can be told apart, by readers with any kind of colour vision, on light and on dark pages."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from worker.views.palette import color

Floats = npt.NDArray[np.float64]

# How colours look without one kind of cones: Machado, Oliveira and Fernandes 2009, severity 1, in linear RGB.
VISION = {
    "all cones": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
PAGES = {"light": "#ffffff", "dark": "#121212"}
LEAST = {"light": 3.0, "dark": 4.0}  # contrast with the page


def _linear(code: str) -> Floats:
    value = np.array([int(code[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def _oklab(linear: Floats) -> Floats:
    """Return a colour in OKLab (Ottosson 2020), where distances are as people see them."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.asarray(lab @ np.cbrt(cones @ np.clip(linear, 0, 1)))


def _contrast(one: str, other: str) -> float:
    low, high = sorted(float(_linear(code) @ [0.2126, 0.7152, 0.0722]) for code in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("vision", VISION)
def test_the_first_eight_differ_to_everyone(vision: str, page: str) -> None:
    """Of eight classes no two look alike: some two hundredths are a difference that can just be seen."""
    seen = [_oklab(VISION[vision] @ _linear(getattr(color(index), page))) for index in range(8)]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > 0.09


@pytest.mark.parametrize("page", PAGES)
def test_any_number_of_classes(page: str) -> None:
    """A thousand colours all differ, and each stands out from the page."""
    codes = [getattr(color(index), page) for index in range(1_000)]
    assert len(set(codes)) == 1_000
    assert min(_contrast(code, PAGES[page]) for code in codes) > LEAST[page]
