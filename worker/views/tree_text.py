"""A tree drawn in the terminal: what each node tests, and the weight of each class there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from worker.codec.encode import Tree
from worker.views.tree_nodes import branch_to, children_of, heaviest, tested_word
from worker.views.words import class_word, weight_word

MOST_NODES = 500  # what a person scrolls through; the rest is counted

_BAR = 12  # cells of a bar
_BAR_FROM = 60  # columns of the terminal
_COLORS = ("cyan", "magenta", "yellow", "green", "blue", "red")
_LAST, _MIDDLE, _THROUGH, _GAP = "└─", "├─", "│ ", "  "
_SHADES = "█░▓▒"  # told apart without colours too
_ASCII = str.maketrans(
    {"≤": "<", "└": "`", "├": "|", "│": "|", "─": "-", "█": "#", "░": ".", "▓": "=", "▒": "-", "→": ">", "…": "~"}
)


class _Node(NamedTuple):
    at: int  # in the columns
    branch: str  # which of the parent's, "" for the root
    depth: int
    stems: str  # what the lines above go on with: of each ancestor below the root, one piece


def draw(tree: Tree, most: int = MOST_NODES) -> RenderableType:
    """Return a drawing of a tree for a rich console: one line a node, children in the order of their branches.

    A bar shows how the weight at a node is spread over the classes. At great depth the stems shrink to the
    node's depth; a tree of more than `most` nodes is drawn in part and says so.

    Parameters
    ----------
    tree
        The snapshot.
    most
        How many nodes are drawn at most.
    """
    return _Drawing(tree, most)


class _Drawing:
    def __init__(self, tree: Tree, most: int) -> None:
        self._tree = tree
        self._most = most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tree = self._tree
        if not tree.node:
            yield Text("nothing", "dim")
            return
        room = max(8, options.max_width // 4)  # for stems
        lines: list[tuple[Text, ...]] = []
        for node in islice(_walk(tree), self._most):
            weights = tree.counts[node.at]
            line = (_label(tree, node, room), _bar(weights), _classes(tree, weights))
            lines.append(tuple(map(_in_ascii, line)) if options.ascii_only else line)
        grid = Table.grid(padding=(0, 1))
        # Where space is short, what a node tests matters most, and the bar least.
        longest = max(cells[0].cell_len for cells in lines)
        grid.add_column(no_wrap=True, overflow="ellipsis", min_width=min(longest, options.max_width * 2 // 3))
        if options.max_width >= _BAR_FROM:
            grid.add_column(no_wrap=True, min_width=_BAR)
        else:
            lines = [(label, classes) for label, _, classes in lines]
        grid.add_column(no_wrap=True, overflow="ellipsis")
        for cells in lines:
            grid.add_row(*cells)
        yield grid
        if len(lines) < len(tree.feature):
            yield Text(f"... and {len(tree.feature) - len(lines):,} more nodes", "dim")


def _walk(tree: Tree) -> Iterator[_Node]:
    """Yield the nodes in the order of their lines. A stack of its own: trees may be deeper than Python's."""
    children = children_of(tree)
    stack = [_Node(0, "", 0, "")]
    while stack:
        node = stack.pop()
        yield node
        stems = node.stems[:-2] + (_GAP if node.stems.endswith(_LAST) else _THROUGH) if node.depth else ""
        last = _LAST
        for child in reversed(children[node.at]):
            stack.append(_Node(child, branch_to(tree, node.at, child), node.depth + 1, stems + last))
            last = _MIDDLE


def _label(tree: Tree, node: _Node, room: int) -> Text:
    stems = node.stems
    if len(stems) > room:
        depth = f"…{node.depth} "
        stems = depth + stems[-(room - len(depth)) & ~1 :]
    text = Text(stems, "dim")
    if node.branch:
        text.append(f" {node.branch}")
    if tree.feature[node.at] is not None:
        word = tested_word(tree, node.at)
        return text.append(f" {word} ?" if node.branch else f"{word} ?", "bold")
    if node.branch:
        text.append(" → ", "dim")
    best = heaviest(tree, node.at)
    if best is None:
        return text.append("nothing", "dim")
    return text.append(class_word(tree.classes[best]), f"bold {_COLORS[best % len(_COLORS)]}")


def _bar(weights: Sequence[float]) -> Text:
    """Return the shares of the classes as cells; a class with any weight gets one, while there are enough."""
    whole = sum(weights)
    bar = Text()
    if not whole:
        return bar
    cells = [max(round(_BAR * weight / whole), weight > 0) for weight in weights]
    while sum(cells) != _BAR:
        cells[max(range(len(cells)), key=cells.__getitem__)] += 1 if sum(cells) < _BAR else -1
    for index, count in enumerate(cells):
        bar.append(_SHADES[index % len(_SHADES)] * count, _COLORS[index % len(_COLORS)])
    return bar


def _classes(tree: Tree, weights: Sequence[float]) -> Text:
    text = Text()
    for index, (name, weight) in enumerate(zip(tree.classes, weights, strict=True)):
        color = _COLORS[index % len(_COLORS)] if weight else "dim"
        text.append(f"{'  ' if index else ''}{class_word(name)} {weight_word(weight)}", color)
    return text


def _in_ascii(text: Text) -> Text:
    """Return the same drawing in ASCII; only its strokes change, names stay what they are."""
    copy = text.copy()
    copy.plain = text.plain.translate(_ASCII)
    return copy
