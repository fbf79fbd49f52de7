"""Plots of benchmark results: one colour for each finder, everywhere. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from worker.bench.anchor import NAME as ANCHOR
from worker.bench.cases import Row
from worker.bench.kinds import DECODE, MAJORITY, SIDES
from worker.bench.sides import criteria_of

# The colours of Okabe and Ito, which colour-blind readers can tell apart; of kinds of models, and one beside them.
_OF_KINDS = (
    "#0072B2",
    "#009E73",
    "#56B4E9",
    "#D55E00",
    "#E69F00",
    "#CC79A7",
    "#F0E442",
    "#882255",
    "#000000",
    "#777777",
)
_COLOURS = {
    "exact": "#0072B2",
    "updent": "#D55E00",
    "updgini": "#E69F00",
    "baseent": "#009E73",
    "basegini": "#56B4E9",
    "count-only": "#000000",
    "count-hash": "#777777",
    ANCHOR: "#CC79A7",
    **dict(zip((*SIDES, DECODE, MAJORITY), _OF_KINDS, strict=True)),
}
_OTHER = "#A0A000"
_DASHED = ", gini"  # of a finder that serves both criteria

# Text stays text, and the same figures give the same file.
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "anabranch", "font.size": 9, "axes.spines.top": False}
_STYLE |= {"axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3}


class View(NamedTuple):
    """What is drawn against what: keys of the rows, and what to call them."""

    name: str
    x: str
    x_label: str
    y: str
    y_label: str


def name_of(row: Row) -> str:
    """Return what a row's finder is called in plots and tables."""
    finder, criterion = row["finder"], row["criterion"]
    several = criterion is not None and len(criteria_of(finder)) > 1
    return f"{finder}, {criterion}" if several else str(finder)


def series(view: View, rows: Sequence[Row]) -> dict[str, dict[Any, float]]:
    """Return the line of each finder: y by x; x is None where the finder has none (a level line)."""
    lines: dict[str, dict[Any, float]] = {}
    for row in rows:
        if view.y in row:
            lines.setdefault(name_of(row), {})[row.get(view.x)] = row[view.y]
    return lines


def draw(path: Path, view: View, lines: Mapping[str, Mapping[Any, float]]) -> None:
    """Write the plot of some lines as SVG. Both axes are logarithmic, x only where it is a number."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        named = any(isinstance(x, str) for line in lines.values() for x in line)
        for name, line in lines.items():
            style: dict[str, Any] = {
                "color": _COLOURS.get(name, _COLOURS.get(name.partition(",")[0], _OTHER)),
                "linestyle": "--" if name.endswith(_DASHED) else "-",
                "label": name,
            }
            if None in line:
                axes.axhline(line[None], **style)
            elif named:
                hollow = {"markerfacecolor": "none"} if name.endswith(_DASHED) else {}
                axes.plot(list(line), list(line.values()), **style | {"linestyle": ""} | hollow, marker="o")
            else:
                axes.plot(list(line), list(line.values()), **style, marker="o", markersize=3)
        axes.set_yscale("log")
        if not named:
            axes.set_xscale("log")
        axes.tick_params(axis="x", labelrotation=15 if named else 0)
        axes.set_xlabel(view.x_label)
        axes.set_ylabel(view.y_label)
        axes.legend(bbox_to_anchor=(1.02, 1), loc="upper left", frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})
