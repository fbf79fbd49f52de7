"""A tree in the language of Graphviz, all of it: `anabranch show ... --format dot | dot -Tpdf`."""

from __future__ import annotations

from worker.codec.encode import AnyTree, Tree
from worker.views.tree_nodes import branch_to, children_of, feature_at, heaviest, tree_words
from worker.views.words import class_word, key_word, model_word, value_word, weight_word


def draw(tree: AnyTree, key: bytes | None) -> str:
    """Return a directed graph: a box for each node, an arrow with the branch's word for each child."""
    children = children_of(tree)
    lines = [
        f"digraph {_quoted(f'{model_word(tree.model)}: {tree_words(tree)} of {key_word(key)}')} {{",
        "  node [shape=box];",
    ]
    for node, number in enumerate(tree.node):
        lines.append(f"  n{number} [label={_quoted(_label(tree, node, is_leaf=not children[node]))}];")
    for node, below in enumerate(children):
        for child in below:
            word = _quoted(branch_to(tree, node, child))
            lines.append(f"  n{tree.node[node]} -> n{tree.node[child]} [label={word}];")
    return "\n".join([*lines, "}"]) + "\n"


def _label(tree: AnyTree, node: int, *, is_leaf: bool) -> str:
    if not is_leaf:
        return f"{feature_at(tree, node)} ?"
    if not isinstance(tree, Tree):
        value = value_word(tree.value[node], tree.variance[node])
        return f"{value}\nn {weight_word(tree.n[node])}" if tree.n[node] else "nothing"
    best = heaviest(tree, node)
    if best is None:
        return "nothing"
    weights = " / ".join(map(weight_word, tree.counts[node]))
    return f"{class_word(tree.classes[best])}\n{weights}"


def _quoted(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
