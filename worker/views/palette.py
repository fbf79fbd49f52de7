"""A colour for each of any number of classes, for light pages and for dark ones.

The first eight differ for readers with each of the common kinds of colour blindness too. Beyond, all differ, and
those that follow each other much, though of a hundred not every two can be told apart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Found by a search that keeps the two most alike as far apart as it can, as seen with full colour vision and
# without red, green or blue cones; each contrasts with the page at least 3:1 (light) or 4.5:1 (dark).
_LIGHT = ("#0072b2", "#d55e00", "#0f5d22", "#6e0059", "#442e13", "#1f0897", "#b3275f", "#929292")
_DARK = ("#4ea8de", "#ff9e64", "#5ffec0", "#b36691", "#fef03c", "#7469fe", "#fe3119", "#b5c7ca")

# Steps around the circle of hues and through the lightnesses, which together fill both evenly however many colours
# there are (Roberts 2018, the sequence R2).
_HUE, _DEPTH = 0.7548776662466927, 0.5698402909980532
_LIGHTNESS = ((0.38, 0.64), (0.66, 0.90))  # of OKLCH: on light pages, on dark ones
_CHROMA = 0.11


class Color(NamedTuple):
    """A colour as CSS writes it."""

    light: str
    dark: str


def color(index: int) -> Color:
    """Return the colour of a class by its place among the classes."""
    if index < len(_LIGHT):
        return Color(_LIGHT[index], _DARK[index])
    hue, depth = 2 * math.pi * (index * _HUE % 1), index * _DEPTH % 1
    light, dark = (_hex(least + depth * (most - least), hue) for least, most in _LIGHTNESS)
    return Color(light, dark)


def _hex(lightness: float, hue: float) -> str:
    """Return a colour of OKLCH as #rrggbb; what sRGB cannot show of it is cut off."""
    a, b = _CHROMA * math.cos(hue), _CHROMA * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    return "#" + "".join(f"{_byte(value):02x}" for value in linear)


def _byte(linear: float) -> int:
    bounded = min(1.0, max(0.0, linear))
    gamma = 12.92 * bounded if bounded <= 0.0031308 else 1.055 * bounded ** (1 / 2.4) - 0.055
    return round(255 * gamma)
