"""A plot of lines as SVG, which needs nothing beside it and follows the reader's choice of light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

from worker.views.palette import color

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 180, 50, 50
_LOGARITHMIC = 30.0  # an axis is, whose largest value is so many times its least
_ROW = 16

Lines: TypeAlias = "Mapping[str, Mapping[Any, float]]"  # of each name y by x
_Axis: TypeAlias = "tuple[Callable[[Any], float], list[tuple[float, str]]]"  # where a value is, and marks


def line_plot(title: str, x_label: str, y_label: str, lines: Lines) -> str:
    """Return a plot; values along x are numbers, or names in the order in which they come.

    An axis whose values are above 0 and far apart is logarithmic. The same lines give the same text.
    """
    xs = list(dict.fromkeys(x for line in lines.values() for x in line))
    at_x, x_marks = _axis(xs, _LEFT, _WIDTH - _RIGHT)
    at_y, y_marks = _axis([y for line in lines.values() for y in line.values()], _HEIGHT - _BOTTOM, _TOP)
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-size="11" '
        'font-family="sans-serif">',
        f"<title>{escape(title)}</title>",
        _style(len(lines)),
        _text(_LEFT, 16, title, "start", 'font-weight="bold"'),
        _text((_LEFT + right) / 2, _HEIGHT - 8, x_label, "middle"),
        _text(_LEFT, _TOP - 10, y_label, "start"),
    ]
    for place, mark in x_marks:
        parts.append(f'<path class="g" d="M{place:.1f} {_TOP}V{bottom}"/>')
        parts.append(_text(place, bottom + 15, mark, "middle"))
    for place, mark in y_marks:
        parts.append(f'<path class="g" d="M{_LEFT} {place:.1f}H{right}"/>')
        parts.append(_text(_LEFT - 6, place + 4, mark, "end"))
    for number, (name, line) in enumerate(lines.items()):
        dashes = ' stroke-dasharray="5 3"' if number % 2 else ""
        own = f'class="l{number}" stroke="currentColor" stroke-width="2"{dashes}'
        points = [(at_x(x), at_y(line[x])) for x in (sorted(line) if _are_numbers(xs) else line)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" {own}/>')
        parts += [
            f'<circle class="l{number}" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>' for x, y in points
        ]
        row = _TOP + 8 + _ROW * number
        parts.append(f'<path d="M{right + 12} {row}h18" {own}/>')
        parts.append(_text(right + 35, row + 4, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def _style(lines: int) -> str:
    colours = [color(number) for number in range(lines)]
    light = "".join(f".l{number}{{color:{each.light}}}" for number, each in enumerate(colours))
    dark = "".join(f".l{number}{{color:{each.dark}}}" for number, each in enumerate(colours))
    return (
        f"<style>text{{fill:#222}}.g{{stroke:#8884}}{light}"
        f"@media(prefers-color-scheme:dark){{text{{fill:#ddd}}{dark}}}</style>"
    )


def _axis(values: Sequence[Any], start: float, stop: float) -> _Axis:
    """Return where on an axis values are, and its marks."""
    if not _are_numbers(values):
        places = {value: start + (stop - start) * (at + 0.5) / len(values) for at, value in enumerate(values)}
        return places.__getitem__, [(place, str(value)) for value, place in places.items()]
    least, greatest = float(min(values)), float(max(values))
    if least > 0.0 and greatest / least > _LOGARITHMIC:
        low, high = math.log10(least), math.log10(greatest)
        powers = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
        return (
            lambda value: start + (stop - start) * (math.log10(value) - low) / (high - low),
            [(start + (stop - start) * (math.log10(mark) - low) / (high - low), f"{mark:g}") for mark in powers],
        )
    low, high = min(0.0, least), max(greatest, least + 1e-9, 1e-9)
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1.0, 2.0) if (high - low) / (step * part) <= 6)
    marks = [step * at for at in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]
    return (
        lambda value: start + (stop - start) * (value - low) / (high - low),
        [(start + (stop - start) * (mark - low) / (high - low), f"{mark:g}") for mark in marks],
    )


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'
