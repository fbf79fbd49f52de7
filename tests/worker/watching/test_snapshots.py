"""Snapshots that the worker keeps for its pages."""

from __future__ import annotations

import pytest

from tests.worker.commands.test_show import TREE
from worker.codec import Tree, cut, to_record
from worker.log.port import OutRecord
from worker.watching import snapshots as kept_for_pages
from worker.watching.snapshots import Snapshots, read


def _records(tree: Tree, key: bytes, most: int = 500_000) -> list[OutRecord]:
    return [to_record(part, "sms.out", key, seq) for seq, part in enumerate(cut(tree, most))]


def _after(offset: int, model: str = "spam") -> Tree:
    return TREE._replace(model=model, source=TREE.source._replace(offset=offset))


def test_the_last_snapshot_of_a_key_is_kept() -> None:
    """Of each model and key the last tree is kept, and those written last come last."""
    snapshots = Snapshots()
    snapshots.add([*_records(_after(1), b"a"), *_records(_after(2), b"b"), *_records(_after(3, "x"), b"a")])
    snapshots.add(_records(_after(4), b"a"))
    assert list(snapshots.kept) == [("spam", b"b"), ("x", b"a"), ("spam", b"a")]
    assert [tree.source.offset for each in snapshots.kept.values() for tree in read(each)] == [2, 3, 4]


def test_parts_are_put_together() -> None:
    """A tree that came in parts is whole again, also where one before it came in parts too."""
    snapshots = Snapshots()
    parts = _records(_after(1), b"a", 100)
    assert len(parts) > 2
    snapshots.add([*parts, *_records(_after(2), b"a", 120)])
    assert read(snapshots.kept["spam", b"a"]) == [read_directly(_after(2))]


def test_the_trees_of_a_forest_are_told_apart() -> None:
    """Those of one event are kept together, whatever parts they came in; those before are gone."""
    forest = [_after(2)._replace(tree=number, trees=3) for number in range(3)]
    snapshots = Snapshots()
    snapshots.add(_records(_after(1)._replace(tree=0, trees=3), b"a"))
    parts = [part for number, tree in enumerate(forest) for part in cut(tree, 100 if number == 1 else 500_000)]
    assert len(parts) > 4
    snapshots.add(to_record(part, "sms.out", b"a", seq) for seq, part in enumerate(parts))
    assert [tree._replace(names=None, feature=[]) for tree in read(snapshots.kept["spam", b"a"])] == [
        read_directly(tree)._replace(names=None, feature=[]) for tree in forest
    ]


def read_directly(tree: Tree) -> Tree:
    """Return a tree as it is read from one record."""
    snapshots = Snapshots()
    snapshots.add(_records(tree, b"k"))
    [found] = read(snapshots.kept["spam", b"k"])
    assert isinstance(found, Tree)
    return found


def test_what_is_read_is_not_changed_meanwhile() -> None:
    """A reader's view stays as it is while more is added and dropped."""
    snapshots = Snapshots()
    snapshots.add(_records(_after(1), b"a"))
    seen = snapshots.kept
    snapshots.add(_records(_after(2), b"b"))
    snapshots.keep(set())
    assert list(seen) == [("spam", b"a")]
    assert snapshots.kept == {}


def test_what_others_have_is_dropped() -> None:
    """Trees of a partition that went to another worker are dropped, those of the same model elsewhere stay."""
    snapshots = Snapshots()
    elsewhere = TREE._replace(source=TREE.source._replace(partition=1))
    snapshots.add([*_records(TREE, b"a"), *_records(elsewhere, b"b")])
    snapshots.keep({("spam", 1), ("other", 0)})
    assert list(snapshots.kept) == [("spam", b"b")]


def test_number_and_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest are kept: so many, of so many bytes together, and none that is too large by itself."""
    one = len(_records(_after(1), b"a")[0].value or b"")
    monkeypatch.setattr(kept_for_pages, "MOST_TREES", 3)
    snapshots = Snapshots()
    for number in range(5):
        snapshots.add(_records(_after(number), b"%d" % number))
    assert [key for _, key in snapshots.kept] == [b"2", b"3", b"4"]

    monkeypatch.setattr(kept_for_pages, "MOST_BYTES", 2 * one + one // 2)
    snapshots.add(_records(_after(6), b"6"))
    assert [key for _, key in snapshots.kept] == [b"4", b"6"]

    monkeypatch.setattr(kept_for_pages, "LARGEST", one - 1)
    snapshots.add(_records(_after(7), b"7"))
    assert snapshots.kept == {}
