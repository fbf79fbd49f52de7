"""Trees as SVG and for Graphviz."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.naive import budget
from tests.worker.commands.test_show import TREE
from worker.codec import Tree
from worker.views import tree_dot, tree_svg
from worker.views.tree_nodes import children_of, opened, preorder, sizes

SVG = "{http://www.w3.org/2000/svg}"
ODD = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)  # names that producers may send


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Draw a tree of any shape, with names and numbers of any kind, nodes before their children."""
    shape = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(2, 4)), max_size=12))
    parent, leaves = [-1], [0]
    for which, branches in shape:
        split = leaves.pop(which % len(leaves))
        leaves += range(len(parent), len(parent) + branches)
        parent += [split] * branches
    n = len(parent)
    inner = set(parent)
    classes = draw(st.lists(ODD, min_size=2, max_size=8, unique=True))
    names = draw(st.none() | st.lists(ODD, min_size=1, max_size=5))
    some = draw(st.randoms(use_true_random=False))
    kind = [some.choice(["binary", "nominal", "numeric"]) if node in inner else None for node in range(n)]
    return Tree(
        model="spam",
        version=draw(st.integers(0, 10**9)),
        chunk=0,
        chunks=1,
        node=some.sample(range(10 * n), n),
        parent=parent,
        branch=[some.randrange(5) for _ in range(n)],
        feature=[some.randrange(len(names or "12345")) if node in inner else None for node in range(n)],
        kind=kind,
        threshold=[some.uniform(-1e9, 1e9) if each == "numeric" else None for each in kind],
        counts=[[some.choice([0, 1, 2.5, 1e6]) for _ in classes] for _ in range(n)],
        classes=classes,
        names=names,
        parameters={},
        source=TREE.source,
    )


def _numbered(tree: Tree) -> Tree:
    """Return a tree whose parents are called by their numbers, as in a snapshot."""
    return tree._replace(parent=[-1 if parent < 0 else tree.node[parent] for parent in tree.parent])


def _texts(element: ET.Element, kind: str | None = None) -> list[str]:
    return [each.text or "" for each in element.iter(f"{SVG}text") if kind in (None, each.get("class"))]


def test_what_is_drawn() -> None:
    """A drawing has the tests, the words of the branches, the answers with their weights, and the classes."""
    svg = ET.fromstring(tree_svg.draw(TREE, b"everyone"))
    assert {"call ?", "free ?", "'www com' ?"} <= set(_texts(svg, "test"))
    assert _texts(svg, "test c0") == ["ham"]
    assert _texts(svg, "test c1") == ["spam"] * 3
    assert sorted(word for word in _texts(svg, "faint") if word.isalpha()) == ["absent"] * 3 + ["present"] * 3
    assert {"4,700 / 50.5", "0 / 49.5", "100 / 500", "27 / 147"} <= set(_texts(svg, "faint"))
    assert _texts(svg)[:2] == ["ham", "spam"]


def test_who_cannot_see_it() -> None:
    """A drawing is announced as an image with a title and a description, and each node says what it is."""
    svg = ET.fromstring(tree_svg.draw(TREE, b"everyone"))
    assert svg.get("role") == "img"
    ids = {each.get("id"): each.text for each in svg}
    title, description = (ids[name] for name in svg.attrib["aria-labelledby"].split())
    assert title == "spam: tree of everyone"
    assert description == "Version 5,574: 7 nodes, 4 of them leaves; the root tests call."
    assert [node.findtext(f"{SVG}title") for node in svg.iter(f"{SVG}g")][:2] == [
        "node 0: tests call: ham 4,827, spam 747",
        "node 1: tests free: ham 4,800, spam 600",
    ]


def test_light_and_dark() -> None:
    """Every colour has a value for readers who prefer dark pages, and is used by its name alone."""
    style = ET.fromstring(tree_svg.draw(TREE, b"k")).findtext(f"{SVG}style") or ""
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    assert set(re.findall(r"(--\w+):", light)) == set(re.findall(r"(--\w+):", dark)) >= {"--ink", "--c0", "--c5"}
    assert "#" not in re.sub(r"--\w+: #\w+", "", style)


def test_a_tree_that_has_learned_nothing() -> None:
    """A tree without nodes, and one whose only node is empty, can be drawn."""
    nothing = TREE._replace(node=[], parent=[], branch=[], feature=[], kind=[], threshold=[], counts=[])
    assert "nothing yet" in tree_svg.draw(nothing, b"k")
    leaf = TREE._replace(
        node=[0], parent=[-1], branch=[0], feature=[None], kind=[None], threshold=[None], counts=[(0, 0)]
    )
    assert _texts(ET.fromstring(tree_svg.draw(leaf, b"k")), "faint") == ["nothing"]


@settings(max_examples=budget(150), deadline=None)
@given(trees(), st.binary(max_size=20), st.integers(1, 30), st.integers(0, 8))
def test_drawings_hold_for_any_tree(tree: Tree, key: bytes, most: int, deepest: int) -> None:
    """Any tree gives well-formed XML with at most so many nodes; the rest is counted; nothing lies outside."""
    tree = _numbered(tree)
    svg = ET.fromstring(tree_svg.draw(tree, key, most, deepest))
    drawn = len(list(svg.iter(f"{SVG}g")))
    assert 1 <= drawn <= most
    left_out = [word for word in _texts(svg) if word.startswith("... and ")]
    assert left_out == ([f"... and {len(tree.node) - drawn:,} more nodes"] if drawn < len(tree.node) else [])
    cut = [int(found[1]) for word in _texts(svg) if (found := re.fullmatch(r"\.\.\. (\d+) more nodes", word))]
    assert sum(cut) == len(tree.node) - drawn
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for text in svg.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) < width
        assert 0 <= float(text.attrib["y"]) < height


@settings(max_examples=budget(100), deadline=None)
@given(trees(), st.integers(1, 40), st.integers(0, 8))
def test_the_top_of_the_tree_comes_first(tree: Tree, most: int, deepest: int) -> None:
    """The nodes that are drawn are those of a walk by levels in which each node has all children or none."""
    tree = _numbered(tree)
    children = children_of(tree)
    assert sorted(child for below in children for child in below) == list(range(1, len(tree.node)))
    nodes = opened(children, most, deepest)
    shown = dict(preorder(children, nodes))
    assert len(shown) == 1 + sum(len(children[node]) for node in nodes) <= max(1, most)
    assert max(shown.values()) <= deepest
    assert sizes(children)[0] == len(tree.node)
    if most >= len(tree.node) and deepest >= 12:
        assert len(shown) == len(tree.node)


def test_the_width_is_bounded() -> None:
    """A tree of a thousand levels with long names is no wider than the levels that are drawn allow."""
    n = 2001
    deep = TREE._replace(
        node=range(n),
        parent=[-1, *(at // 2 * 2 for at in range(n - 1))],
        branch=[0, *(at % 2 for at in range(n - 1))],
        feature=[0 if at % 2 == 0 and at < n - 1 else None for at in range(n)],
        kind=["binary" if at % 2 == 0 and at < n - 1 else None for at in range(n)],
        threshold=[None] * n,
        counts=[(1, 2)] * n,
        names=["x" * 200],
    )
    svg = ET.fromstring(tree_svg.draw(deep, b"k" * 500))
    assert float(svg.attrib["width"]) <= 2_300
    assert len(list(svg.iter(f"{SVG}g"))) == 1 + 2 * tree_svg.MOST_DEPTH


@pytest.mark.parametrize("name", ['a"b', "a\\", 'x"]; evil', "<b>"])
def test_dot_quotes_names(name: str) -> None:
    """Whatever a feature is called, it stays inside the quotes of its label."""
    drawn = tree_dot.draw(TREE._replace(names=[name, "free", "www com"]), b"k")
    (label,) = re.findall(r'^  n0 \[label="((?:[^"\\]|\\.)*)"\];$', drawn, re.MULTILINE)
    assert re.sub(r"\\(.)", r"\1", label) in (f"{name} ?", f"{name!r} ?")


def test_dot_has_every_node_and_edge() -> None:
    """The graph has a box for each node and an arrow to each but the root."""
    drawn = tree_dot.draw(TREE, b"everyone")
    assert drawn.startswith('digraph "spam: tree of everyone" {\n')
    assert len(re.findall(r"^  n\d+ \[", drawn, re.MULTILINE)) == 7
    assert re.findall(r"^  n3 -> n(\d+) \[label=\"(\w+)\"\];$", drawn, re.MULTILINE) == [
        ("5", "absent"),
        ("6", "present"),
    ]
