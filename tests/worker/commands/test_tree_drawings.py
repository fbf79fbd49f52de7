"""Trees as SVG and for Graphviz."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import budget
from tests.worker.commands.test_show import TREE
from worker.codec import Tree
from worker.views import tree_dot, tree_svg
from worker.views.text_width import text_width
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
    """Return the texts, each in one piece; of a class also those that are a piece of a text."""
    tags = {f"{SVG}text"} if kind is None else {f"{SVG}text", f"{SVG}tspan"}
    return [
        "".join(each.itertext())
        for each in element.iter()
        if each.tag in tags and kind in (None, each.get("class"))
    ]


def _nodes(svg: ET.Element) -> list[ET.Element]:
    return [each for each in svg.iter(f"{SVG}g") if each.get("class") == "node"]


def _legend(svg: ET.Element) -> list[tuple[str, str]]:
    """Return the colour and the word of each class in the legend."""
    groups = [each for each in svg.iter(f"{SVG}g") if each.get("class") == "class"]
    return [(each.find(f"{SVG}rect").get("class") or "", _texts(each)[0]) for each in groups]  # type: ignore[union-attr]


def test_what_is_drawn() -> None:
    """A drawing has the tests, the words of the branches, the answers with their weights, and the classes."""
    svg = ET.fromstring(tree_svg.draw(TREE, b"everyone"))
    assert {"call ?", "free ?", "'www com' ?"} <= set(_texts(svg, "test"))
    answers = [_texts(node, "test")[0] for node in _nodes(svg) if node.find(f"{SVG}rect") is not None]
    assert sorted(answers) == ["ham", "spam", "spam", "spam"]
    assert sorted(word for word in _texts(svg, "faint") if word.isalpha()) == ["absent"] * 3 + ["present"] * 3
    assert {"4,700 / 50.5", "0 / 49.5", "100 / 500", "27 / 147"} <= set(_texts(svg, "faint"))
    assert _legend(svg) == [("c0", "ham"), ("c1", "spam")]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"kind": "tree", "policy": "hat"}, "5,574 at the split"),
        ({"kind": "tree", "policy": "efdt"}, "5,574 so far"),
        ({"kind": "dynamic-tree"}, "5,574 live"),
        ({}, "5,574"),
    ],
)
def test_of_when_counts_are(parameters: dict[str, Any], said: str) -> None:
    """An inner node says whether its count is that of its split; so does its tooltip."""
    svg = ET.fromstring(tree_svg.draw(TREE._replace(parameters=parameters), b"k"))
    assert said in _texts(svg, "faint")
    (title,) = [each.findtext(f"{SVG}title") or "" for each in _nodes(svg)][:1]
    assert title == f"node 0: tests call: ham 4,827, spam 747{said.removeprefix('5,574')}"


def _of_classes(count: int) -> Tree:
    """Return a tree whose leaves hold all of so many classes."""
    names = [f"class {number}" for number in range(count)]
    return TREE._replace(classes=names, counts=[[1 + number % 7 for number in range(count)]] * 7)


@pytest.mark.parametrize("count", [2, 7, 20, 100])
def test_every_class_has_a_colour_and_is_in_the_legend(count: int) -> None:
    """No colour comes twice, in light or in dark, and each class is named."""
    svg = ET.fromstring(tree_svg.draw(_of_classes(count), b"k"))
    assert _legend(svg) == [(f"c{number}", f"class {number}") for number in range(count)]
    light, dark = (svg.findtext(f"{SVG}style") or "").split("@media (prefers-color-scheme: dark)")
    for style in (light, dark.partition("}")[0]):
        assert len(set(re.findall(r"--c\d+: (#\w{6})", style))) == count


@pytest.mark.parametrize("count", [2, 7, 20, 100])
def test_the_root_is_at_the_top_left(count: int) -> None:
    """It is on the first screen of a phone, however many leaves and classes there are."""
    svg = ET.fromstring(tree_svg.draw(_of_classes(count), b"k"))
    text = _nodes(svg)[0].find(f"{SVG}text")
    assert text is not None
    assert float(text.attrib["x"]) < 20
    assert float(text.attrib["y"]) < 100


def test_whole_names_are_in_tooltips() -> None:
    """A name that is cut ends with an ellipsis, and its tooltip has all of it."""
    feature, name = "sensor." * 10 + "mean", "a class " * 20 + "of many"
    svg = ET.fromstring(tree_svg.draw(TREE._replace(names=[feature, "b", "c"], classes=[name, "spam"]), b"k"))
    titles = [each.text or "" for each in svg.iter(f"{SVG}title")]
    assert [feature in title for title in titles].count(True) == 1
    assert [name in title for title in titles].count(True) == 7  # of each node that has any, and in the legend
    cut = [word for word in _texts(svg) if "…" in word]
    assert {word.split("…")[0] for word in cut} == {feature[:23], name[:23]}


def test_who_cannot_see_it() -> None:
    """A drawing is announced as an image with a title and a description, and each node says what it is."""
    svg = ET.fromstring(tree_svg.draw(TREE, b"everyone"))
    assert svg.get("role") == "img"
    ids = {each.get("id"): each.text for each in svg}
    title, description = (ids[name] for name in svg.attrib["aria-labelledby"].split())
    assert title == "spam: tree of everyone"
    assert description == "Version 5,574: 7 nodes, 4 of them leaves; the root tests call."
    assert [node.findtext(f"{SVG}title") for node in _nodes(svg)][:2] == [
        "node 0: tests call: ham 4,827, spam 747",
        "node 1: tests free: ham 4,800, spam 600",
    ]


def test_light_and_dark() -> None:
    """Every colour has a value for readers who prefer dark pages, and is used by its name alone."""
    style = ET.fromstring(tree_svg.draw(TREE, b"k")).findtext(f"{SVG}style") or ""
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    assert set(re.findall(r"(--\w+):", light)) == set(re.findall(r"(--\w+):", dark)) >= {"--ink", "--c0", "--c1"}
    assert "#" not in re.sub(r"--\w+: #\w+", "", style)


def test_a_tree_that_has_learned_nothing() -> None:
    """A tree without nodes, and one whose only node is empty, can be drawn."""
    nothing = TREE._replace(node=[], parent=[], branch=[], feature=[], kind=[], threshold=[], counts=[])
    assert "nothing yet" in tree_svg.draw(nothing, b"k")
    leaf = TREE._replace(
        node=[0], parent=[-1], branch=[0], feature=[None], kind=[None], threshold=[None], counts=[(0, 0)]
    )
    assert _texts(ET.fromstring(tree_svg.draw(leaf, b"k")), "faint") == ["nothing"]
    assert "nothing yet" in tree_svg.draw(nothing._replace(classes=[]), b"k")


@settings(max_examples=budget(150), deadline=None)
@given(trees(), st.binary(max_size=20), st.integers(1, 30), st.integers(0, 8))
def test_drawings_hold_for_any_tree(tree: Tree, key: bytes, most: int, deepest: int) -> None:
    """Any tree gives well-formed XML with at most so many nodes; the rest is counted; nothing lies outside."""
    tree = _numbered(tree)
    svg = ET.fromstring(tree_svg.draw(tree, key, most, deepest))
    drawn = len(_nodes(svg))
    assert 1 <= drawn <= most
    left_out = [word for word in _texts(svg) if word.startswith("... and ")]
    assert left_out == ([f"... and {len(tree.node) - drawn:,} more nodes"] if drawn < len(tree.node) else [])
    cut = [int(found[1]) for word in _texts(svg) if (found := re.fullmatch(r"\.\.\. (\d+) more nodes", word))]
    assert sum(cut) == len(tree.node) - drawn
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for text in svg.iter(f"{SVG}text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        wide = _wide(text)
        left = x - wide if text.get("text-anchor") == "end" else x
        assert 0 <= left <= left + wide <= width
        assert 0 <= y < height
    _check_rows(svg)


def _wide(text: ET.Element) -> float:
    """Return how wide a text is, with the pieces that flow behind each other."""
    size = 11 if "faint" in text.get("class", "") else 13
    return text_width(text.text or "", size) + sum(float(each.get("dx", 0)) + _wide(each) for each in text)


def _check_rows(svg: ET.Element) -> None:
    """Check that no two nodes whose words are in the same rows overlap, as wide as the widest font makes them."""
    places = []
    for node in _nodes(svg):
        texts = list(node.iter(f"{SVG}text"))
        left = min(float(text.attrib["x"]) for text in texts)
        right = max(float(text.attrib["x"]) + _wide(text) for text in texts)
        places.append((float(texts[0].attrib["y"]), left, right))
    for at, (y, left, right) in enumerate(places):
        for other_y, other_left, other_right in places[:at]:
            assert abs(y - other_y) > 20 or right < other_left or other_right < left


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
    assert float(svg.attrib["width"]) <= 2_800
    assert len(_nodes(svg)) == 1 + 2 * tree_svg.MOST_DEPTH


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
