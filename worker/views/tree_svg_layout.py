"""Where everything is in the drawing of a tree as SVG: columns by depth, a row for each node without children.

What stands at a node, and the legend, are those of a kind of trees: tree_svg.py has them of classes,
tree_svg_values.py of numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from html import escape
from typing import ClassVar, Generic, NamedTuple, TypeVar

from worker.codec.encode import Tree
from worker.codec.regression import RegressionTree
from worker.views.fitting import cut_name
from worker.views.text_width import FONTS, text_width
from worker.views.tree_nodes import (
    branch_to,
    children_of,
    counted_word,
    feature_at,
    opened,
    preorder,
    sizes,
    tree_words,
)
from worker.views.words import key_word, model_word

# All lengths are pixels at the natural size.
SIZE, SMALL = 13, 11  # of letters
LONGEST, LONGEST_BRANCH = 24, 12  # cells of a word; the whole is in the tooltip
WHOLE = 300  # characters of a name in a tooltip
ROW, MARGIN = 40, 12
GAP = 40  # between columns, beside the word of the branch
BAR = 120  # wide
LEGEND_ROW, LEGEND_WIDTH = 20, 340  # high, and wide where the tree is narrower

_LIGHT = "--ink: #1b1f24; --faint: #5d6673; --line: #b8bec6; --bare: #e6e9ed"
_DARK = "--ink: #e8eaed; --faint: #9aa3ad; --line: #4a525c; --bare: #30363d"

T = TypeVar("T", Tree, RegressionTree)


class Words(NamedTuple):
    """What stands at a node."""

    main: str
    beside: str = ""  # on the same line
    below: str = ""

    @property
    def width(self) -> float:
        """Pixels."""
        beside = text_width(f"  {self.beside}", SMALL) if self.beside else 0.0
        return max(text_width(self.main, SIZE) + beside, text_width(self.below, SMALL))


class Drawing(ABC, Generic[T]):
    """A tree and where its nodes are.

    Parameters
    ----------
    tree, key, most, deepest
        As `tree_svg.draw` takes them.
    """

    # Pixels before the words of a leaf.
    INDENT: ClassVar[int] = 0

    def __init__(self, tree: T, key: bytes | None, most: int, deepest: int) -> None:
        self._tree: T = tree
        self._key = key
        self._children = children_of(tree)
        self._open = opened(self._children, most, deepest)
        self._depth = dict(preorder(self._children, self._open))
        below = sizes(self._children)
        self._words = {node: self._said(node, below[node] - 1) for node in self._depth}
        self._branches = {
            child: cut_name(branch_to(tree, node, child), LONGEST_BRANCH)
            for node in self._open
            for child in self._children[node]
        }
        self._left_out = len(tree.node) - len(self._depth)
        self._rest = f"... and {self._left_out:,} more nodes" if self._left_out else ""
        self._x, self._turns, right = self._columns()
        right = max(right, MARGIN + text_width(self._rest, SMALL))
        rows, legend_right, is_below = self._place_legend(max(right, LEGEND_WIDTH))
        high = MARGIN + LEGEND_ROW * rows
        self._top = MARGIN if is_below else high
        self._y = self._rows()
        leaves = max(1, len(self._depth) - len(self._open))
        self._bottom = self._top + ROW * (leaves + bool(self._rest))
        self.height = self._bottom + (high if is_below else MARGIN)
        self.width = round(max(right, legend_right) + MARGIN)

    # --- what a kind of trees fills in

    @abstractmethod
    def _leaf_words(self, node: int) -> Words:
        """Return what stands at a leaf."""

    @abstractmethod
    def _inner_words(self, node: int) -> str:
        """Return what stands below the test of an inner node."""

    @abstractmethod
    def _leaf(self, node: int, x: float, y: float) -> str:
        """Return a leaf."""

    @abstractmethod
    def _knowledge(self, node: int) -> str:
        """Return what is known at a node, for its tooltip; empty: nothing."""

    @abstractmethod
    def _place_legend(self, width: float) -> tuple[int, float, bool]:
        """Return how many rows the legend has, where it ends, and whether it stands below the tree."""

    @abstractmethod
    def _legend_lines(self) -> Iterator[str]:
        """Yield the pieces of the legend."""

    @abstractmethod
    def _colors(self) -> tuple[str, str, str]:
        """Return the names of colours with their values in light and in dark, and the rules that use them."""

    # --- the same for all

    def _said(self, node: int, more: int) -> Words:
        if not self._children[node]:
            return self._leaf_words(node)
        test = f"{cut_name(feature_at(self._tree, node), LONGEST)} ?"
        if node not in self._open:
            return Words(test, below=f"... {more:,} more nodes")
        return Words(test, below=self._inner_words(node))

    def _columns(self) -> tuple[list[float], list[float], float]:
        """Return where each level begins, where the lines to it turn, and where the last one ends."""
        depths = max(self._depth.values(), default=0) + 1
        inner, branch, widest = [0.0] * depths, [0.0] * depths, [0.0] * depths
        for node, words in self._words.items():
            depth = self._depth[node]
            if node in self._open:
                inner[depth] = max(inner[depth], words.width)
            else:
                bar = 0 if self._children[node] else BAR
                widest[depth] = max(widest[depth], words.width + (self.INDENT if bar else 0), bar)
            branch[depth] = max(branch[depth], text_width(self._branches.get(node, ""), SMALL))
        columns, turns = [float(MARGIN)], [0.0]
        for depth in range(1, depths):
            turns.append(columns[-1] + inner[depth - 1] + GAP / 2)
            columns.append(turns[-1] + branch[depth] + GAP / 2)
        return columns, turns, max(at + max(own) for at, *own in zip(columns, inner, widest, strict=True))

    def _rows(self) -> dict[int, float]:
        """Return the height of each node: leaves under each other, the rest beside the first of its children."""
        ends = [node for node in self._depth if node not in self._open]
        y = {node: self._top + (row + 0.5) * ROW for row, node in enumerate(ends)}
        for node in reversed(self._depth):
            if node in self._open:
                y[node] = y[self._children[node][0]]
        return y

    def lines(self) -> Iterator[str]:
        """Yield the pieces of the element."""
        tree = self._tree
        name = tree_words(tree).replace(" ", "-")  # a page may have all trees of a forest
        yield (
            '<svg xmlns="http://www.w3.org/2000/svg" class="tree" role="img" '
            f'aria-labelledby="{name}-title {name}-desc" '
            f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}">'
        )
        said = f"{model_word(tree.model)}: {tree_words(tree)} of {key_word(self._key)}"
        yield f'<title id="{name}-title">{text(said)}</title>'
        yield f'<desc id="{name}-desc">{text(self._described())}</desc>'
        yield f"<style>{self._style()}</style>"
        yield from self._legend_lines()
        for node in self._open:
            yield from self._edges(node)
        for node in self._depth:
            yield titled(self._title(node), self._node(node), "node")
        if self._rest:
            yield line(MARGIN, self._bottom - ROW / 2, self._rest, "faint")
        yield "</svg>"

    def _described(self) -> str:
        tree = self._tree
        if not tree.node:
            return f"Version {tree.version:,}: nothing yet."
        leaves = sum(not below for below in self._children)
        root = f"the root tests {feature_at(tree, 0)}" if self._children[0] else "the root is a leaf"
        return f"Version {tree.version:,}: {len(tree.node):,} nodes, {leaves:,} of them leaves; {root}."

    def _edges(self, node: int) -> Iterator[str]:
        x = self._x[self._depth[node]] + text_width(self._words[node].main, SIZE)
        y = self._y[node]
        for child in self._children[node]:
            to_x, to_y = self._x[self._depth[child]] - 6, self._y[child]
            turn = self._turns[self._depth[child]]
            bend = f"H{turn - 16:g}C{turn:g} {y:g} {turn - 16:g} {to_y:g} {turn:g} {to_y:g}"
            yield f'<path d="M{x:g} {y:g}{bend if to_y != y else ""}H{to_x:g}"/>'
            yield line(to_x - 2, to_y - 4, self._branches[child], "faint", anchor="end")

    def _node(self, node: int) -> str:
        """Return what stands at a node: what it tests, or what it answers."""
        x, y, words = self._x[self._depth[node]], self._y[node], self._words[node]
        if self._children[node]:
            return line(x, y + 4, words.main, "test") + line(x, y + 18, words.below, "faint")
        return self._leaf(node, x, y)

    def _title(self, node: int) -> str:
        known = self._knowledge(node)
        if not self._children[node]:
            return f"node {self._tree.node[node]}: {known or 'nothing'}"
        tests = f"node {self._tree.node[node]}: tests {feature_at(self._tree, node, WHOLE)}: "
        return tests + (f"{known} {counted_word(self._tree)}".rstrip() if known else "nothing")

    def _style(self) -> str:
        own_light, own_dark, rules = self._colors()
        return f"""
.tree {{ {"; ".join(filter(None, [_LIGHT, own_light]))};
  font: {SIZE}px {FONTS} }}
@media (prefers-color-scheme: dark) {{
  .tree {{ {"; ".join(filter(None, [_DARK, own_dark]))} }}
}}
.tree text, .tree tspan {{ fill: var(--ink); unicode-bidi: isolate }}
.tree .test {{ font-weight: bold }}
.tree .faint {{ fill: var(--faint); font-size: {SMALL}px }}
.tree path {{ fill: none; stroke: var(--line); stroke-width: 1.5 }}
.tree .bare {{ fill: var(--bare) }}
{rules}"""


def titled(title: str, drawn: str, kind: str) -> str:
    """Return what is drawn with all of it in words as the tooltip."""
    return f'<g class="{kind}"><title>{text(title)}</title>{drawn}</g>'


def line(x: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> str:
    """Return a line of text."""
    marks = f' class="{kind}"' if kind else ""
    marks += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{marks}>{text(words)}</text>'


def text(words: str) -> str:
    """Return words as XML has them."""
    return escape(words, quote=False)
