"""The trees of all forests: tree t of the forest of key k is tree k T + t of one `DynamicPool`.

One kernel call serves all trees, however many there are, and their arrays have room for each other. As a tree
reads nothing of another, the forest is that of T pools.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from algorithms.core import example_store
from algorithms.dynamic import events as kernel
from algorithms.dynamic import indexes, nodes
from algorithms.dynamic.looks import is_current, look_at_all
from algorithms.dynamic.nodes import NONE
from algorithms.dynamic.pool import DynamicPool
from algorithms.dynamic.state import ENTRIES
from algorithms.dynamic.terms import EPSILON


class Trees(DynamicPool):
    """Trees that are looked at many at a time; see `DynamicPool`."""

    _is_copy = False  # whether the state is one to look at, which counts on its own who holds a name

    def _show_names(self) -> None:
        if not self._is_copy:
            super()._show_names()

    def look(self, numbers: range) -> int:
        """Look through all of some trees, as a record does; return how many examples were rebuilt.

        O(nodes), and what is scanned and rebuilt; nothing where trees do not wait for looks.
        """
        self._show_names()  # which a state that was just restored does not have yet
        out = self._out(1, 0)
        for number in numbers if self.rules.terms.policy != EPSILON else ():
            if self._root(number) != NONE:
                self._make_room(number)
                look_at_all(self._state.slack, self._state, self.rules, self._scratch, number, 0, out)
        return int(out.rebuilt[0])

    @contextmanager
    def looked_through(self, numbers: range) -> Iterator[None]:
        """Have some trees as a look at all of them would leave them, and then as they are: nothing is changed.

        Where one of them waits for a look, the nodes of all trees are copied, once.
        """
        self._show_names()
        own = self._state
        if not self._are_current(numbers):
            parts = ("trees", "nodes", "slack", "chain", "names")
            self._state = own._replace(**{part: _copied(getattr(own, part)) for part in parts})
            self._is_copy = True
        try:
            if self._is_copy:
                self.look(numbers)
            yield
        finally:
            self._state, self._is_copy = own, False

    def _are_current(self, numbers: range) -> bool:
        if self.rules.terms.policy == EPSILON:
            return True
        for number in numbers:
            if self._root(number) != NONE:
                self._make_room(number)
                if not is_current(self._state, self.rules, self._scratch, number):
                    return False
        return True

    def _make_room(self, number: int) -> None:
        """Enlarge what could be short when a tree is looked through."""
        lives = int(self._state.store.heads[number, example_store.LIVES])
        wanted = int(nodes.needed(lives, self.rules.terms.max_depth))
        while len(self._state.nodes.links) - int(self._state.nodes.used[nodes.USED]) < wanted:
            self._enlarge(kernel.NODES, number, 0)
        if indexes.is_short(self._state.slack.indexes):
            self._enlarge(kernel.INDEXES, number, 0)
        room = self._scratch
        is_enough = len(room.rows) > lives and len(room.column) >= self._state.trees[number, ENTRIES]
        if not is_enough or len(room.present) < len(self._state.words.cells):
            self._enlarge(kernel.SCRATCH, number, 0)


def _copied(part: Any) -> Any:
    """Return copies of the arrays of a NamedTuple, and of those in it."""
    if isinstance(part, np.ndarray):
        return part.copy()
    return type(part)(*map(_copied, part))
