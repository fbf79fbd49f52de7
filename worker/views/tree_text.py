"""A tree drawn in the terminal: what each node tests, and the weight of each class there, or the value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from worker.codec.encode import AnyTree, Tree
from worker.codec.regression import RegressionTree
from worker.views.fitting import cut_name
from worker.views.tree_nodes import Scale, branch_to, children_of, feature_at, heaviest
from worker.views.words import brief_weight_word, class_word, deviation_word, number_word, value_word

MOST_NODES = 500  # what a person scrolls through; the rest is counted

_BAR = 12  # cells of a bar
_NAME = 8  # cells that a class's name has at least, where it is as long
_BAR_FROM = 60  # columns of the terminal
_SEEN = 6  # classes with any weight at most of which each has its piece of a bar
_TOLD = 3  # classes at most that are told in the order of the settings
_COLORS = ("cyan", "magenta", "yellow", "green", "blue", "red")
_LAST, _MIDDLE, _THROUGH, _GAP = "└─", "├─", "│ ", "  "
_SHADES = "█░▓▒"  # told apart without colours too
_ASCII = str.maketrans(
    {"≤": "<", "└": "`", "├": "|", "│": "|", "─": "-", "█": "#", "░": ".", "▓": "=", "▒": "-", "→": ">", "…": "~"}
)


T = TypeVar("T", Tree, RegressionTree)


class _Node(NamedTuple):
    at: int  # in the columns
    branch: str  # which of the parent's, "" for the root
    depth: int
    stems: str  # what the lines above go on with: of each ancestor below the root, one piece


def draw(tree: AnyTree, most: int = MOST_NODES) -> RenderableType:
    """Return a drawing of a tree for a rich console: one line a node, children in the order of their branches.

    A bar shows how the weight at a node is spread over the classes. Of numbers it is a scale from the least value
    of a leaf to the greatest, with a mark at the value and a standard deviation around it. At great depth the
    stems shrink to the node's depth; a tree of more than `most` nodes is drawn in part and says so.

    Parameters
    ----------
    tree
        The snapshot.
    most
        How many nodes are drawn at most.
    """
    return _ClassesDrawing(tree, most) if isinstance(tree, Tree) else _ValuesDrawing(tree, most)


class _Answer(NamedTuple):
    word: str
    is_name: bool  # which may be cut
    style: str


class _Drawing(ABC, Generic[T]):
    def __init__(self, tree: T, most: int) -> None:
        self._tree: T = tree
        self._most = most

    @abstractmethod
    def _answer(self, at: int) -> _Answer:
        """Return what a leaf answers."""

    @abstractmethod
    def _bar(self, at: int) -> Text:
        """Return the bar of a node."""

    @abstractmethod
    def _told(self, at: int, most: int) -> Text:
        """Return what stands behind the bar, in at most so many cells."""

    @abstractmethod
    def _least(self, nodes: Sequence[_Node]) -> int:
        """Return how many cells that needs at least."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tree, width = self._tree, options.max_width
        if not tree.node:
            yield Text("nothing", "dim")
            return
        nodes = list(islice(_walk(tree), self._most))
        stems = max(8, width // 4)  # cells for them
        labels = [self._label(node, width, stems) for node in nodes]
        told = [self._told(node.at, width) for node in nodes]
        bar = _BAR + 1 if width >= _BAR_FROM else 0
        room = width - bar - 1  # for labels and weights
        longest = max(label.cell_len for label in labels)
        if longest + max(each.cell_len for each in told) > room:
            # What a node tests matters most, but for one weight with a piece of its class's name.
            longest = min(longest, max(room - self._least(nodes), width // 2))
            labels = [self._label(node, longest, stems) for node in nodes]
            told = [self._told(node.at, room - longest) for node in nodes]
        for node, label, behind in zip(nodes, labels, told, strict=True):
            label.pad_right(longest + 1 - label.cell_len)
            if bar:
                shares = self._bar(node.at)
                shares.pad_right(bar - shares.cell_len)
                label.append_text(shares)
            line = label.append_text(behind)
            yield _in_ascii(line) if options.ascii_only else line
        if len(nodes) < len(tree.feature):
            yield Text(f"... and {len(tree.feature) - len(nodes):,} more nodes", "dim")

    def _label(self, node: _Node, most: int, room: int) -> Text:
        """Return the first column of a line, of at most so many cells: a name is cut, a number left out."""
        tree = self._tree
        branch = f" {node.branch}" if node.branch else ""
        stems = _stems(node, min(room, most - cell_len(branch) - 2))
        if cell_len(stems + branch) + 2 > most:
            stems, branch = "", ""
        text = Text(stems, "dim").append(branch)
        left = most - text.cell_len
        feature = tree.feature[node.at]
        if feature is not None:
            is_name = tree.names is not None
            return text.append(
                _cut(f"{' ' if text else ''}", feature_at(tree, node.at), " ?", left, is_name=is_name), "bold"
            )
        answer = self._answer(node.at)
        arrow = " → " if text else ""
        cut = _cut(arrow, answer.word, "", left, is_name=answer.is_name)
        return text.append(cut[: len(arrow)], "dim").append(cut[len(arrow) :], answer.style)


class _ClassesDrawing(_Drawing[Tree]):
    """A tree of classes."""

    def _answer(self, at: int) -> _Answer:
        best = heaviest(self._tree, at)
        if best is None:
            return _Answer("nothing", True, "dim")
        name = self._tree.classes[best]
        return _Answer(class_word(name), isinstance(name, str), f"bold {_COLORS[best % len(_COLORS)]}")

    def _bar(self, at: int) -> Text:
        return _bar(self._tree.counts[at])

    def _told(self, at: int, most: int) -> Text:
        return _classes(self._tree, self._tree.counts[at], most)

    def _least(self, nodes: Sequence[_Node]) -> int:
        return _least(self._tree, nodes)


class _ValuesDrawing(_Drawing[RegressionTree]):
    """A tree of numbers."""

    def __init__(self, tree: RegressionTree, most: int) -> None:
        super().__init__(tree, most)
        self._scale = Scale.of(tree)

    def _answer(self, at: int) -> _Answer:
        tree = self._tree
        if not tree.n[at]:
            return _Answer("nothing", True, "dim")
        return _Answer(number_word(tree.value[at]), False, f"bold {_COLORS[0]}")

    def _bar(self, at: int) -> Text:
        if not self._tree.n[at]:
            return Text()
        low, value, high = (min(int(_BAR * place), _BAR - 1) for place in self._scale.spread(self._tree, at))
        bar = Text()
        for cell in range(_BAR):
            is_within = low <= cell <= high
            bar.append("█" if cell == value else "▒" if is_within else "░", _COLORS[0] if is_within else "dim")
        return bar

    def _told(self, at: int, most: int) -> Text:
        """Return value, deviation and weight, those that fit; a leaf has its value before the bar already."""
        tree, text = self._tree, Text()
        if not tree.n[at]:
            return text
        is_inner = tree.feature[at] is not None
        about = value_word(tree.value[at], tree.variance[at]) if is_inner else deviation_word(tree.variance[at])
        pieces = [*([about] if about else []), f"n {brief_weight_word(tree.n[at])}"]
        for number, piece in enumerate(pieces):
            gap, last = "  " if number else "", number == len(pieces) - 1
            if text.cell_len + cell_len(gap + piece) > most - (0 if last else 2):
                return text.append(" …" if text else "…", "dim")
            text.append(gap + piece, "dim" if number else "")
        return text

    def _least(self, nodes: Sequence[_Node]) -> int:  # noqa: ARG002
        return 1


def _walk(tree: AnyTree) -> Iterator[_Node]:
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


def _stems(node: _Node, room: int) -> str:
    """Return what leads to a node from its ancestors, of which only the depth and the last may have room."""
    if len(node.stems) <= room:
        return node.stems
    depth = f"…{node.depth} "
    return "" if room < len(depth) + 2 else depth + node.stems[-(room - len(depth)) & ~1 :]


def _cut(before: str, word: str, after: str, most: int, *, is_name: bool) -> str:
    """Return a word with what stands around it, cut to so many cells; a number is left out rather than cut."""
    if cell_len(before + word + after) <= most:
        return before + word + after
    room = most - cell_len(before + after)
    if is_name and room >= 2:
        return before + cut_name(word, room) + after
    return (before[:1] + "…")[:most]


def _bar(weights: Sequence[float]) -> Text:
    """Return the shares of the classes as cells; of a few classes each with any weight gets one."""
    whole = sum(weights)
    bar = Text()
    if not whole:
        return bar
    few = len(weights) - weights.count(0) <= _SEEN
    cells = [max(round(_BAR * weight / whole), few and weight > 0) for weight in weights]
    while sum(cells) != _BAR:
        cells[max(range(len(cells)), key=cells.__getitem__)] += 1 if sum(cells) < _BAR else -1
    for index, count in enumerate(cells):
        bar.append(_SHADES[index % len(_SHADES)] * count, _COLORS[index % len(_COLORS)])
    return bar


def _classes(tree: Tree, weights: Sequence[float], most: int) -> Text:
    """Return the weights of the classes, those that fit; the name of the first may be cut."""
    text = Text()
    order = _order(weights)
    for at, index in enumerate(order):
        name, weight = tree.classes[index], weights[index]
        word, number = class_word(name), brief_weight_word(weight)
        last = at == len(order) - 1
        if not at and cell_len(f"{word} {number}") > most - (0 if last else 2):
            word = _cut("", word, f" {number}", most - (0 if last else 2), is_name=isinstance(name, str))
            piece = word if word.endswith(f" {number}") else "…"
        else:
            piece = f"{'  ' if at else ''}{word} {number}"
        if text.cell_len + cell_len(piece) > most - (0 if last else 2):
            return text.append(" …" if text else "…", "dim")
        text.append(piece, _COLORS[index % len(_COLORS)] if weight else "dim")
    return text


def _order(weights: Sequence[float]) -> list[int]:
    """Return the classes in the order of the settings; of many those with any weight, the heaviest first."""
    if len(weights) <= _TOLD:
        return list(range(len(weights)))
    there = [index for index, weight in enumerate(weights) if weight]
    return sorted(there, key=lambda index: -weights[index])


def _least(tree: Tree, nodes: Sequence[_Node]) -> int:
    """Return how many cells the weights need at least: for one, a piece of its name and a mark for the others."""
    least = 0
    for weights in (tree.counts[node.at] for node in nodes):
        for first in _order(weights)[:1]:
            name = min(_NAME, cell_len(class_word(tree.classes[first])))
            least = max(least, name + 1 + len(brief_weight_word(weights[first])) + 2)
    return least


def _in_ascii(text: Text) -> Text:
    """Return the same drawing in ASCII; only its strokes change, names stay what they are."""
    copy = text.copy()
    copy.plain = text.plain.translate(_ASCII)
    return copy
