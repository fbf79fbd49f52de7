"""A regression tree drawn as SVG: a mark on a scale shows what each leaf predicts, and how its labels spread.

The scale is the same in all leaves and goes from the least value of a leaf to the greatest.
"""

from __future__ import annotations

from collections.abc import Iterator

from worker.codec.regression import RegressionTree
from worker.views.palette import color
from worker.views.text_width import text_width
from worker.views.tree_nodes import Scale, counted_word
from worker.views.tree_svg_layout import BAR, MARGIN, SIZE, Drawing, Words, line, text, titled
from worker.views.words import brief_weight_word, deviation_word, number_word, value_word, weight_word

_THICK = 3  # pixels of the mark at a value


class ValuesDrawing(Drawing[RegressionTree]):
    """A tree of numbers; see `Drawing`."""

    def __init__(self, tree: RegressionTree, key: bytes | None, most: int, deepest: int) -> None:
        self._scale = Scale.of(tree)
        super().__init__(tree, key, most, deepest)

    def _leaf_words(self, node: int) -> Words:
        tree = self._tree
        if not tree.n[node]:
            return Words("nothing")
        spread = f"{deviation_word(tree.variance[node])}  n {brief_weight_word(tree.n[node])}".lstrip()
        return Words(number_word(tree.value[node]), spread)

    def _inner_words(self, node: int) -> str:
        tree = self._tree
        known = f"{brief_weight_word(tree.n[node])} {counted_word(tree)}".rstrip()
        return f"{known}, {number_word(tree.value[node])}"

    def _leaf(self, node: int, x: float, y: float) -> str:
        words = self._words[node]
        if not self._tree.n[node]:
            return line(x, y + 4, words.main, "faint")
        # The words flow, so that the second never runs into the first, whatever the font is.
        beside = f'<tspan class="faint" dx="8">{text(words.beside)}</tspan>'
        main = f'<tspan class="test">{text(words.main)}</tspan>'
        low, at, high = (BAR * place for place in self._scale.spread(self._tree, node))
        return (
            f'<text x="{x:g}" y="{y - 2:g}">{main}{beside}</text>'
            f'<rect class="bare" x="{x:g}" y="{y + 5:g}" width="{BAR}" height="7" rx="2"/>'
            f'<rect class="spread" x="{x + low:.2f}" y="{y + 7:g}" width="{high - low:.2f}" height="3"/>'
            f'<rect class="c0" x="{x + min(at, BAR - _THICK):.2f}" y="{y + 5:g}" width="{_THICK}" height="7"/>'
        )

    def _knowledge(self, node: int) -> str:
        tree = self._tree
        if not tree.n[node]:
            return ""
        value = value_word(tree.value[node], tree.variance[node])
        return f"{value}, n {weight_word(tree.n[node])}"

    def _place_legend(self, width: float) -> tuple[int, float, bool]:  # noqa: ARG002
        self._ends = number_word(self._scale.low), number_word(self._scale.high)
        self._bar_x = MARGIN + text_width(self._ends[0], SIZE) + 8
        return int(bool(self._tree.node)), self._bar_x + BAR + 8 + text_width(self._ends[1], SIZE), False

    def _legend_lines(self) -> Iterator[str]:
        if not self._tree.node:
            return
        low, high = self._ends
        x, y = self._bar_x, MARGIN
        drawn = (
            line(MARGIN, y + 9, low)
            + f'<rect class="bare" x="{x:g}" y="{y + 2:g}" width="{BAR}" height="7" rx="2"/>'
            + f'<rect class="spread" x="{x + BAR / 3:.2f}" y="{y + 4:g}" width="{BAR / 3:.2f}" height="3"/>'
            + f'<rect class="c0" x="{x + BAR / 2:.2f}" y="{y + 2:g}" width="{_THICK}" height="7"/>'
            + line(x + BAR + 8, y + 9, high)
        )
        yield titled(
            f"the value of a leaf and a standard deviation around it, from {low} to {high}", drawn, "scale"
        )

    def _colors(self) -> tuple[str, str, str]:
        rules = ".tree .c0 { fill: var(--c0) }\n.tree .spread { fill: var(--c0); opacity: .45 }\n"
        return f"--c0: {color(0).light}", f"--c0: {color(0).dark}", rules
