"""A tree drawn as SVG, from left to right: what each node tests, and how the weight in each leaf is spread.

It needs nothing beside it, on a page or in a file of its own, and follows the reader's choice of light or dark.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rich.cells import cell_len

from worker.codec.encode import Tree
from worker.views.tree_nodes import (
    branch_to,
    children_of,
    heaviest,
    opened,
    preorder,
    sizes,
    tested_word,
)
from worker.views.words import class_word, key_word, model_word, weight_word

MOST_NODES = 300  # what is drawn; the rest is counted
MOST_DEPTH = 8  # columns after the root's, which bounds the width

# All lengths are pixels at the natural size. Letters are reckoned, not measured: the reader's font is not known.
_LETTER = 8.5  # wide, at 13 px and bold; half of what takes two cells in a terminal
_LONGEST = 18  # letters of a word; the whole is in the tooltip
_ROW, _MARGIN, _TOP = 40, 12, 40
_GAP = 100  # between columns: for the word of the branch
_BAR, _LEAF = 120, 230  # wide
_COLORS = 6  # of classes, taken in turn
_TOLD = 3  # classes at most whose weights are told one by one in a leaf
_NAMED = 10  # classes that are named in a tooltip

_STYLE = """
.tree { --ink: #1b1f24; --faint: #667; --line: #b8bec6; --bare: #e6e9ed;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b3589a; --c4: #b38600; --c5: #3b8fc4;
  font: 13px system-ui, sans-serif }
@media (prefers-color-scheme: dark) {
  .tree { --ink: #e8eaed; --faint: #9aa3ad; --line: #4a525c; --bare: #30363d;
    --c0: #4ea8de; --c1: #ff9e64; --c2: #3ddc97; --c3: #e8a0c9; --c4: #ffc857; --c5: #9adcff }
}
.tree text { fill: var(--ink) }
.tree .test { font-weight: 600 }
.tree .faint { fill: var(--faint); font-size: 11px }
.tree path { fill: none; stroke: var(--line); stroke-width: 1.5 }
.tree .bare { fill: var(--bare) }
""" + "".join(f".tree .c{at} {{ fill: var(--c{at}) }}\n" for at in range(_COLORS))


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


class _Drawing:
    """Where everything is: columns by depth, a row for each node that is drawn without children."""

    def __init__(self, tree: Tree, key: bytes | None, most: int, deepest: int) -> None:
        self._tree = tree
        self._key = key
        self._children = children_of(tree)
        self._open = opened(self._children, most, deepest)
        self._depth = dict(preorder(self._children, self._open))
        self._words = {node: _cut(f"{tested_word(tree, node)} ?") for node in self._depth if node in self._open}
        self._x = self._columns()
        self._y = self._rows()

    def _columns(self) -> list[float]:
        """Return where each level begins: after the longest word of the one above, and room for branches."""
        widest = [0.0] * (max(self._depth.values(), default=0) + 1)
        for node, word in self._words.items():
            widest[self._depth[node]] = max(widest[self._depth[node]], _width(word))
        columns = [float(_MARGIN)]
        for width in widest[:-1]:
            columns.append(columns[-1] + width + _GAP)
        return columns

    def _rows(self) -> dict[int, float]:
        """Return the height of each node: leaves under each other, the rest in the middle of its children."""
        ends = [node for node in self._depth if node not in self._open]
        y = {node: _TOP + (row + 0.5) * _ROW for row, node in enumerate(ends)}
        for node in reversed(self._depth):
            if node in self._open:
                y[node] = (y[self._children[node][0]] + y[self._children[node][-1]]) / 2
        return y

    def lines(self) -> Iterator[str]:
        """Yield the pieces of the element."""
        tree = self._tree
        left_out = len(tree.node) - len(self._depth)
        legend, end = self._legend()
        width = round(max(end, self._x[-1] + _LEAF) + _MARGIN)
        height = _TOP + _ROW * max(1, len(self._depth) - len(self._open)) + (_ROW if left_out else 0)
        yield (
            '<svg xmlns="http://www.w3.org/2000/svg" class="tree" role="img" '
            'aria-labelledby="tree-title tree-desc" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        )
        yield f'<title id="tree-title">{_text(f"{model_word(tree.model)}: tree of {key_word(self._key)}")}</title>'
        yield f'<desc id="tree-desc">{_text(self._described())}</desc>'
        yield f"<style>{_STYLE}</style>"
        yield from legend
        for node in self._words:
            yield from self._edges(node)
        below = sizes(self._children)
        for node in self._depth:
            if node in self._open:
                yield self._test(node)
            elif self._children[node]:
                yield self._cut_off(node, below[node] - 1)
            else:
                yield self._leaf(node)
        if left_out:
            yield _words(_MARGIN, height - _ROW / 2, f"... and {left_out:,} more nodes", "faint")
        yield "</svg>"

    def _described(self) -> str:
        tree = self._tree
        if not tree.node:
            return f"Version {tree.version:,}: nothing yet."
        leaves = sum(not below for below in self._children)
        root = f"the root tests {tested_word(tree, 0)}" if self._children[0] else "the root is a leaf"
        return f"Version {tree.version:,}: {len(tree.node):,} nodes, {leaves:,} of them leaves; {root}."

    def _legend(self) -> tuple[list[str], float]:
        """Return the classes with their colours, and where they end."""
        x, drawn = float(_MARGIN), []
        classes = self._tree.classes
        for index, name in enumerate(classes[:_COLORS]):
            word = _cut(class_word(name))
            drawn.append(f'<rect class="{_color(index)}" x="{x:g}" y="12" width="10" height="10" rx="2"/>')
            drawn.append(_words(x + 14, 21, word))
            x += 14 + _width(word) + 16
        if len(classes) > _COLORS:
            more = f"and {len(classes) - _COLORS:,} more classes"
            drawn.append(_words(x, 21, more, "faint"))
            x += _width(more)
        return drawn, x

    def _edges(self, node: int) -> Iterator[str]:
        x = self._x[self._depth[node]] + _width(self._words[node])
        y = self._y[node]
        for child in self._children[node]:
            to_x, to_y = self._x[self._depth[child]] - 6, self._y[child]
            middle = x + 24
            yield f'<path d="M{x:g} {y:g}C{middle:g} {y:g} {x:g} {to_y:g} {middle:g} {to_y:g}H{to_x:g}"/>'
            word = _cut(branch_to(self._tree, node, child), 12)
            yield _words(to_x - 2, to_y - 4, word, "faint", anchor="end")

    def _test(self, node: int) -> str:
        """Return an inner node: its feature, and below it the weight that had come there."""
        x, y = self._x[self._depth[node]], self._y[node]
        n = _words(x, y + 16, weight_word(sum(self._tree.counts[node])), "faint")
        return self._group(node, _words(x, y + 4, self._words[node], "test") + n)

    def _cut_off(self, node: int, more: int) -> str:
        x, y = self._x[self._depth[node]], self._y[node]
        word = _words(x, y, _cut(f"{tested_word(self._tree, node)} ?"), "test")
        return self._group(node, word + _words(x, y + 14, f"... {more:,} more nodes", "faint"))

    def _leaf(self, node: int) -> str:
        """Return a leaf: the class that it answers, the weights, and a bar of their shares."""
        x, y = self._x[self._depth[node]], self._y[node]
        best = heaviest(self._tree, node)
        if best is None:
            return self._group(node, _words(x, y + 4, "nothing", "faint"))
        word = _cut(class_word(self._tree.classes[best]))
        told = _words(x + _width(word) + 10, y - 2, self._told(node), "faint")
        return self._group(node, _words(x, y - 2, word, f"test {_color(best)}") + told + self._bar(node, x, y + 5))

    def _told(self, node: int) -> str:
        weights = self._tree.counts[node]
        few = len(weights) <= _TOLD
        return " / ".join(map(weight_word, weights)) if few else f"{weight_word(sum(weights))} in all"

    def _bar(self, node: int, x: float, y: float) -> str:
        weights = self._tree.counts[node]
        whole = sum(weights)
        bar = f'<rect class="bare" x="{x:g}" y="{y:g}" width="{_BAR}" height="7" rx="2"/>'
        for index, weight in enumerate(weights):
            width = _BAR * weight / whole
            if weight and (width >= 1 or len(weights) <= _COLORS):  # of very many classes not each can be seen
                bar += f'<rect class="{_color(index)}" x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="7"/>'
            x += width
        return bar

    def _group(self, node: int, drawn: str) -> str:
        """Return what is drawn of a node, with all of it in words as the tooltip."""
        tree, weights = self._tree, self._tree.counts[node]
        heavy = self._heaviest(node, _NAMED)
        told = ", ".join(f"{class_word(tree.classes[index])} {weight_word(weights[index])}" for index in heavy)
        tests = f"tests {tested_word(tree, node)}: " if self._children[node] else ""
        title = _text(f"node {tree.node[node]}: {tests}{told or 'nothing'}")
        return f"<g><title>{title}</title>{drawn}</g>"

    def _heaviest(self, node: int, most: int) -> list[int]:
        """Return the classes that weigh most at a node, in the order of the classes."""
        weights = self._tree.counts[node]
        there = [index for index, weight in enumerate(weights) if weight]
        return sorted(sorted(there, key=lambda index: -weights[index])[:most])


def _words(x: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> str:
    marks = f' class="{kind}"' if kind else ""
    marks += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{marks}>{_text(words)}</text>'


def _text(words: str) -> str:
    return escape(words, quote=False)


def _cut(word: str, most: int = _LONGEST) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"


def _width(word: str) -> float:
    return cell_len(word) * _LETTER


def _color(index: int) -> str:
    return f"c{index % _COLORS}"
