"""A tree drawn as SVG, from left to right: what each node tests, and how the weight in each leaf is spread.

It needs nothing beside it, on a page or in a file of its own, and follows the reader's choice of light or dark.
The root is at the top left, which is what a small screen shows first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from worker.codec.encode import Class, Tree
from worker.views.fitting import cut_name
from worker.views.palette import color
from worker.views.text_width import FONTS, text_width
from worker.views.tree_nodes import (
    branch_to,
    children_of,
    counted_word,
    feature_at,
    heaviest,
    opened,
    preorder,
    sizes,
)
from worker.views.words import brief_weight_word, class_word, key_word, model_word, weight_word

MOST_NODES = 300  # what is drawn; the rest is counted
MOST_DEPTH = 8  # columns after the root's, which bounds the width

# All lengths are pixels at the natural size.
_SIZE, _SMALL = 13, 11  # of letters
_LONGEST, _LONGEST_BRANCH = 24, 12  # cells of a word; the whole is in the tooltip
_WHOLE = 300  # characters of a name in a tooltip
_ROW, _MARGIN = 40, 12
_GAP = 40  # between columns, beside the word of the branch
_BAR = 120  # wide
_SWATCH = 15  # a square in the colour of a class, and the space behind it
_LEGEND_ROW, _LEGEND_WIDTH = 20, 340  # high, and wide where the tree is narrower
_LEGEND_ABOVE = 2  # rows; a longer legend stands below the tree, so that the tree is seen first
_TOLD = 3  # classes at most whose weights are told one by one in a leaf
_SEEN = 6  # classes at most of which each has its piece of a bar, however small
_NAMED = 10  # classes that are named in a tooltip

_LIGHT = "--ink: #1b1f24; --faint: #5d6673; --line: #b8bec6; --bare: #e6e9ed"
_DARK = "--ink: #e8eaed; --faint: #9aa3ad; --line: #4a525c; --bare: #30363d"


def draw(tree: Tree, key: bytes | None, most: int = MOST_NODES, deepest: int = MOST_DEPTH) -> str:
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
    return "\n".join(_Drawing(tree, key, most, deepest).lines()) + "\n"


class _Words(NamedTuple):
    """What stands at a node."""

    main: str
    beside: str = ""  # on the same line
    below: str = ""

    @property
    def width(self) -> float:
        beside = text_width(f"  {self.beside}", _SMALL) if self.beside else 0.0
        return max(text_width(self.main, _SIZE) + beside, text_width(self.below, _SMALL))


class _Drawing:
    """Where everything is: columns by depth, a row for each node that is drawn without children."""

    def __init__(self, tree: Tree, key: bytes | None, most: int, deepest: int) -> None:
        self._tree = tree
        self._key = key
        self._children = children_of(tree)
        self._open = opened(self._children, most, deepest)
        self._depth = dict(preorder(self._children, self._open))
        below = sizes(self._children)
        self._words = {node: self._said(node, below[node] - 1) for node in self._depth}
        self._branches = {
            child: cut_name(branch_to(tree, node, child), _LONGEST_BRANCH)
            for node in self._open
            for child in self._children[node]
        }
        self._left_out = len(tree.node) - len(self._depth)
        self._rest = f"... and {self._left_out:,} more nodes" if self._left_out else ""
        self._x, self._turns, right = self._columns()
        right = max(right, _MARGIN + text_width(self._rest, _SMALL))
        self._legend = _placed(tree.classes, max(right, _LEGEND_WIDTH))
        rows = self._legend[-1].row + 1 if self._legend else 0
        self._is_below = rows > _LEGEND_ABOVE
        high = _MARGIN + _LEGEND_ROW * rows
        self._top = _MARGIN if self._is_below else high
        self._y = self._rows()
        leaves = max(1, len(self._depth) - len(self._open))
        self._bottom = self._top + _ROW * (leaves + bool(self._rest))
        self.height = self._bottom + (high if self._is_below else _MARGIN)
        self.width = round(max(right, *(entry.right for entry in self._legend), 0) + _MARGIN)

    def _said(self, node: int, more: int) -> _Words:
        tree = self._tree
        if not self._children[node]:
            best = heaviest(tree, node)
            return _Words("nothing") if best is None else _Words(_class(tree, best), self._told(node, best))
        test = f"{cut_name(feature_at(tree, node), _LONGEST)} ?"
        if node not in self._open:
            return _Words(test, below=f"... {more:,} more nodes")
        return _Words(test, below=f"{brief_weight_word(sum(tree.counts[node]))} {counted_word(tree)}".rstrip())

    def _told(self, node: int, best: int) -> str:
        weights = self._tree.counts[node]
        if len(weights) <= _TOLD:
            return " / ".join(map(brief_weight_word, weights))
        return f"{brief_weight_word(weights[best])} of {brief_weight_word(sum(weights))}"

    def _columns(self) -> tuple[list[float], list[float], float]:
        """Return where each level begins, where the lines to it turn, and where the last one ends."""
        depths = max(self._depth.values(), default=0) + 1
        inner, branch, widest = [0.0] * depths, [0.0] * depths, [0.0] * depths
        for node, words in self._words.items():
            depth = self._depth[node]
            if node in self._open:
                inner[depth] = max(inner[depth], words.width)
            else:
                bar = 0 if self._children[node] else _BAR
                widest[depth] = max(widest[depth], words.width + (_SWATCH if bar else 0), bar)
            branch[depth] = max(branch[depth], text_width(self._branches.get(node, ""), _SMALL))
        columns, turns = [float(_MARGIN)], [0.0]
        for depth in range(1, depths):
            turns.append(columns[-1] + inner[depth - 1] + _GAP / 2)
            columns.append(turns[-1] + branch[depth] + _GAP / 2)
        return columns, turns, max(at + max(own) for at, *own in zip(columns, inner, widest, strict=True))

    def _rows(self) -> dict[int, float]:
        """Return the height of each node: leaves under each other, the rest beside the first of its children."""
        ends = [node for node in self._depth if node not in self._open]
        y = {node: self._top + (row + 0.5) * _ROW for row, node in enumerate(ends)}
        for node in reversed(self._depth):
            if node in self._open:
                y[node] = y[self._children[node][0]]
        return y

    def lines(self) -> Iterator[str]:
        """Yield the pieces of the element."""
        tree = self._tree
        yield (
            '<svg xmlns="http://www.w3.org/2000/svg" class="tree" role="img" '
            'aria-labelledby="tree-title tree-desc" '
            f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}">'
        )
        yield f'<title id="tree-title">{_text(f"{model_word(tree.model)}: tree of {key_word(self._key)}")}</title>'
        yield f'<desc id="tree-desc">{_text(self._described())}</desc>'
        yield f"<style>{_style(len(tree.classes))}</style>"
        for entry in self._legend:
            y = (self._bottom if self._is_below else 0) + _MARGIN + entry.row * _LEGEND_ROW
            drawn = _swatch(entry.at, entry.x, y) + _line(entry.x + _SWATCH, y + 9, entry.word)
            yield _titled(entry.title, drawn, "class")
        for node in self._open:
            yield from self._edges(node)
        for node in self._depth:
            yield _titled(self._title(node), self._node(node), "node")
        if self._rest:
            yield _line(_MARGIN, self._bottom - _ROW / 2, self._rest, "faint")
        yield "</svg>"

    def _described(self) -> str:
        tree = self._tree
        if not tree.node:
            return f"Version {tree.version:,}: nothing yet."
        leaves = sum(not below for below in self._children)
        root = f"the root tests {feature_at(tree, 0)}" if self._children[0] else "the root is a leaf"
        return f"Version {tree.version:,}: {len(tree.node):,} nodes, {leaves:,} of them leaves; {root}."

    def _edges(self, node: int) -> Iterator[str]:
        x = self._x[self._depth[node]] + text_width(self._words[node].main, _SIZE)
        y = self._y[node]
        for child in self._children[node]:
            to_x, to_y = self._x[self._depth[child]] - 6, self._y[child]
            turn = self._turns[self._depth[child]]
            bend = f"H{turn - 16:g}C{turn:g} {y:g} {turn - 16:g} {to_y:g} {turn:g} {to_y:g}"
            yield f'<path d="M{x:g} {y:g}{bend if to_y != y else ""}H{to_x:g}"/>'
            yield _line(to_x - 2, to_y - 4, self._branches[child], "faint", anchor="end")

    def _node(self, node: int) -> str:
        """Return what stands at a node: what it tests, or what it answers with a bar of the shares."""
        x, y, words = self._x[self._depth[node]], self._y[node], self._words[node]
        if self._children[node]:
            return _line(x, y + 4, words.main, "test") + _line(x, y + 18, words.below, "faint")
        best = heaviest(self._tree, node)
        if best is None:
            return _line(x, y + 4, words.main, "faint")
        # The words flow, so that the second never runs into the first, whatever the font is.
        beside = f'<tspan class="faint" dx="8">{_text(words.beside)}</tspan>'
        main = f'<tspan class="test">{_text(words.main)}</tspan>'
        return (
            _swatch(best, x, y - 11)
            + f'<text x="{x + _SWATCH:g}" y="{y - 2:g}">{main}{beside}</text>'
            + self._bar(node, x, y + 5)
        )

    def _bar(self, node: int, x: float, y: float) -> str:
        weights = self._tree.counts[node]
        whole = sum(weights)
        bar = f'<rect class="bare" x="{x:g}" y="{y:g}" width="{_BAR}" height="7" rx="2"/>'
        for index, weight in enumerate(weights):
            width = _BAR * weight / whole
            if weight and (width >= 1 or len(weights) <= _SEEN):  # of very many classes not each can be seen
                bar += f'<rect class="c{index}" x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="7"/>'
            x += width
        return bar

    def _title(self, node: int) -> str:
        tree, weights = self._tree, self._tree.counts[node]
        there = [index for index, weight in enumerate(weights) if weight]
        heavy = sorted(sorted(there, key=lambda index: -weights[index])[:_NAMED])
        told = ", ".join(f"{_class(tree, index, _WHOLE)} {weight_word(weights[index])}" for index in heavy)
        more = len(there) - len(heavy)
        told += f" and {more:,} more classes" if more else ""
        if not self._children[node]:
            return f"node {tree.node[node]}: {told or 'nothing'}"
        tests = f"node {tree.node[node]}: tests {feature_at(tree, node, _WHOLE)}: "
        return tests + (f"{told} {counted_word(tree)}".rstrip() if told else "nothing")


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
    x, row = float(_MARGIN), 0
    placed: list[_Entry] = []
    for index, name in enumerate(classes):
        word = cut_name(class_word(name), _LONGEST)
        right = x + _SWATCH + text_width(word, _SIZE)
        if placed and right > width and x > _MARGIN:
            x, row = float(_MARGIN), row + 1
            right = x + _SWATCH + text_width(word, _SIZE)
        placed.append(_Entry(index, word, class_word(name, _WHOLE), x, row, right))
        x = right + 16
    return placed


def _style(classes: int) -> str:
    """Return the style; colours of classes by their place."""
    colors = [color(index) for index in range(classes)]
    light = "; ".join([_LIGHT, *(f"--c{index}: {each.light}" for index, each in enumerate(colors))])
    dark = "; ".join([_DARK, *(f"--c{index}: {each.dark}" for index, each in enumerate(colors))])
    fills = "".join(f".tree .c{index} {{ fill: var(--c{index}) }}\n" for index in range(classes))
    return f"""
.tree {{ {light};
  font: {_SIZE}px {FONTS} }}
@media (prefers-color-scheme: dark) {{
  .tree {{ {dark} }}
}}
.tree text, .tree tspan {{ fill: var(--ink); unicode-bidi: isolate }}
.tree .test {{ font-weight: bold }}
.tree .faint {{ fill: var(--faint); font-size: {_SMALL}px }}
.tree path {{ fill: none; stroke: var(--line); stroke-width: 1.5 }}
.tree .bare {{ fill: var(--bare) }}
{fills}"""


def _class(tree: Tree, index: int, most: int = _LONGEST) -> str:
    return cut_name(class_word(tree.classes[index], most), most)


def _titled(title: str, drawn: str, kind: str) -> str:
    """Return what is drawn with all of it in words as the tooltip."""
    return f'<g class="{kind}"><title>{_text(title)}</title>{drawn}</g>'


def _swatch(index: int, x: float, y: float) -> str:
    return f'<rect class="c{index}" x="{x:g}" y="{y:g}" width="10" height="10" rx="2"/>'


def _line(x: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> str:
    marks = f' class="{kind}"' if kind else ""
    marks += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{marks}>{_text(words)}</text>'


def _text(words: str) -> str:
    return escape(words, quote=False)
