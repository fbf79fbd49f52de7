"""A tree drawn as SVG, from left to right: what each node tests, and how the weight in each leaf is spread.

It needs nothing beside it, on a page or in a file of its own, and follows the reader's choice of light or dark.
The root is at the top left, which is what a small screen shows first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from worker.codec.encode import AnyTree, Class, Tree
from worker.views.fitting import cut_name
from worker.views.palette import color
from worker.views.text_width import text_width
from worker.views.tree_nodes import counted_word, heaviest
from worker.views.tree_svg_layout import (
    BAR,
    LEGEND_ROW,
    LONGEST,
    MARGIN,
    SIZE,
    WHOLE,
    Drawing,
    Words,
    line,
    text,
    titled,
)
from worker.views.tree_svg_values import ValuesDrawing
from worker.views.words import brief_weight_word, class_word, weight_word

MOST_NODES = 300  # what is drawn; the rest is counted
MOST_DEPTH = 8  # columns after the root's, which bounds the width

_SWATCH = 15  # a square in the colour of a class, and the space behind it
_LEGEND_ABOVE = 2  # rows; a longer legend stands below the tree, so that the tree is seen first
_TOLD = 3  # classes at most whose weights are told one by one in a leaf
_SEEN = 6  # classes at most of which each has its piece of a bar, however small
_NAMED = 10  # classes that are named in a tooltip


def draw(tree: AnyTree, key: bytes | None, most: int = MOST_NODES, deepest: int = MOST_DEPTH) -> str:
    """Return a drawing of a tree as an SVG element.

    Parameters
    ----------
    tree
        The whole snapshot, see `worker.codec.joined`.
    key
        Of the record, for the title.
    most, deepest
        How many nodes are drawn at most, and how many levels below the root; where more are left out, the drawing
        says how many at each place and in all.
    """
    drawing: Drawing[Tree] | ValuesDrawing
    if isinstance(tree, Tree):
        drawing = _ClassesDrawing(tree, key, most, deepest)
    else:
        drawing = ValuesDrawing(tree, key, most, deepest)
    return "\n".join(drawing.lines()) + "\n"


class _ClassesDrawing(Drawing[Tree]):
    """A tree of classes: a bar in each leaf shows how its weight is spread over them."""

    INDENT: ClassVar[int] = _SWATCH

    def _leaf_words(self, node: int) -> Words:
        best = heaviest(self._tree, node)
        return Words("nothing") if best is None else Words(_class(self._tree, best), self._told(node, best))

    def _inner_words(self, node: int) -> str:
        return f"{brief_weight_word(sum(self._tree.counts[node]))} {counted_word(self._tree)}".rstrip()

    def _told(self, node: int, best: int) -> str:
        weights = self._tree.counts[node]
        if len(weights) <= _TOLD:
            return " / ".join(map(brief_weight_word, weights))
        return f"{brief_weight_word(weights[best])} of {brief_weight_word(sum(weights))}"

    def _leaf(self, node: int, x: float, y: float) -> str:
        words, best = self._words[node], heaviest(self._tree, node)
        if best is None:
            return line(x, y + 4, words.main, "faint")
        # The words flow, so that the second never runs into the first, whatever the font is.
        beside = f'<tspan class="faint" dx="8">{text(words.beside)}</tspan>'
        main = f'<tspan class="test">{text(words.main)}</tspan>'
        return (
            _swatch(best, x, y - 11)
            + f'<text x="{x + _SWATCH:g}" y="{y - 2:g}">{main}{beside}</text>'
            + self._bar(node, x, y + 5)
        )

    def _bar(self, node: int, x: float, y: float) -> str:
        weights = self._tree.counts[node]
        whole = sum(weights)
        bar = f'<rect class="bare" x="{x:g}" y="{y:g}" width="{BAR}" height="7" rx="2"/>'
        for index, weight in enumerate(weights):
            width = BAR * weight / whole
            if weight and (width >= 1 or len(weights) <= _SEEN):  # of very many classes not each can be seen
                bar += f'<rect class="c{index}" x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="7"/>'
            x += width
        return bar

    def _knowledge(self, node: int) -> str:
        tree, weights = self._tree, self._tree.counts[node]
        there = [index for index, weight in enumerate(weights) if weight]
        heavy = sorted(sorted(there, key=lambda index: -weights[index])[:_NAMED])
        told = ", ".join(f"{_class(tree, index, WHOLE)} {weight_word(weights[index])}" for index in heavy)
        more = len(there) - len(heavy)
        return told + (f" and {more:,} more classes" if more else "")

    def _place_legend(self, width: float) -> tuple[int, float, bool]:
        self._legend = _placed(self._tree.classes, width)
        rows = self._legend[-1].row + 1 if self._legend else 0
        self._is_below = rows > _LEGEND_ABOVE
        return rows, max((entry.right for entry in self._legend), default=0.0), self._is_below

    def _legend_lines(self) -> Iterator[str]:
        for entry in self._legend:
            y = (self._bottom if self._is_below else 0) + MARGIN + entry.row * LEGEND_ROW
            drawn = _swatch(entry.at, entry.x, y) + line(entry.x + _SWATCH, y + 9, entry.word)
            yield titled(entry.title, drawn, "class")

    def _colors(self) -> tuple[str, str, str]:
        classes = range(len(self._tree.classes))
        light = "; ".join(f"--c{index}: {color(index).light}" for index in classes)
        dark = "; ".join(f"--c{index}: {color(index).dark}" for index in classes)
        return light, dark, "".join(f".tree .c{index} {{ fill: var(--c{index}) }}\n" for index in classes)


class _Entry(NamedTuple):
    """A class in the legend."""

    at: int  # among the classes
    word: str
    title: str
    x: float
    row: int
    right: float  # where it ends


def _placed(classes: Sequence[Class], width: float) -> list[_Entry]:
    """Return where the classes of the legend are, in as many rows as it takes."""
    x, row = float(MARGIN), 0
    placed: list[_Entry] = []
    for index, name in enumerate(classes):
        word = cut_name(class_word(name), LONGEST)
        right = x + _SWATCH + text_width(word, SIZE)
        if placed and right > width and x > MARGIN:
            x, row = float(MARGIN), row + 1
            right = x + _SWATCH + text_width(word, SIZE)
        placed.append(_Entry(index, word, class_word(name, WHOLE), x, row, right))
        x = right + 16
    return placed


def _class(tree: Tree, index: int, most: int = LONGEST) -> str:
    return cut_name(class_word(tree.classes[index], most), most)


def _swatch(index: int, x: float, y: float) -> str:
    return f'<rect class="c{index}" x="{x:g}" y="{y:g}" width="10" height="10" rx="2"/>'
