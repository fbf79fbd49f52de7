"""What an expression of PromQL speaks of: its metrics, and the labels that its result has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

import promql_parser as promql

Labels: TypeAlias = frozenset[str]
Series: TypeAlias = Mapping[str, Set[str]]  # labels by name

_SCRAPED = frozenset({"job", "instance"})  # added by Prometheus
_SETS = ("and", "or", "unless")
_COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")


def exported(families: Mapping[str, tuple[str, set[str]]]) -> dict[str, Labels]:
    """Return the series that these metrics, kinds and labels by name, are scraped as."""
    series = {"up": _SCRAPED}
    for name, (kind, labels) in families.items():
        known = _SCRAPED | labels
        match kind:
            case "counter":
                series[f"{name}_total"] = known
            case "info":
                series[f"{name}_info"] = known
            case "histogram":
                series |= {f"{name}_sum": known, f"{name}_count": known, f"{name}_bucket": known | {"le"}}
            case "gauge":
                series[name] = known
            case _:
                raise ValueError(f"expected a kind of metric that is known here, got {kind!r} of {name}; add it")
    return series


def family_of(name: str) -> str:
    """Return the name that a series is declared under, without the endings of its kind."""
    for ending in ("_total", "_info", "_sum", "_count", "_bucket"):
        name = name.removesuffix(ending)
    return name


def names_in(expression: str) -> set[str]:
    """Return the names of the series that an expression reads."""
    return {selector.name or "" for selector in _selectors(promql.parse(expression))}


def labels_of(expression: str, series: Series) -> Labels:
    """Return the labels of an expression's result.

    Raises
    ------
    ValueError
        Where it is no PromQL, names a series or label that is not there, or matches two sides that have different
        labels and so never meet.
    """
    found = _labels(promql.parse(expression), series)
    return frozenset() if found is None else found


def _selectors(expression: Any) -> Iterator[Any]:
    found: list[Any] = []

    def note(node: Any) -> None:
        if isinstance(node, promql.MatrixSelector):
            found.append(node.vector_selector)
        elif isinstance(node, promql.VectorSelector):
            found.append(node)

    promql.walk(expression, note)
    return iter(found)


def _labels(node: Any, series: Series) -> Labels | None:
    """Return the labels of a result, None of a scalar."""
    match node:
        case promql.VectorSelector():
            return _of_selector(node, series)
        case promql.MatrixSelector():
            return _of_selector(node.vector_selector, series)
        case promql.ParenExpr() | promql.SubqueryExpr() | promql.UnaryExpr():
            return _labels(node.expr, series)
        case promql.Call():
            return _of_call(node, series)
        case promql.AggregateExpr():
            return _of_aggregation(node, series)
        case promql.BinaryExpr():
            return _of_two(node, series)
    return None


def _of_selector(node: Any, series: Series) -> Labels:
    if node.name not in series:
        raise ValueError(f"expected a series that is exported, got {node.name}")
    labels = frozenset(series[node.name])
    _expect({matcher.name for matcher in node.matchers.matchers}, labels, node)
    return labels


def _of_call(node: Any, series: Series) -> Labels | None:
    found = [labels for each in node.args if (labels := _labels(each, series)) is not None]
    if not found or node.func.name == "scalar":
        return None
    if node.func.name == "histogram_quantile":
        _expect({"le"}, found[0], node)
        return found[0] - {"le"}
    return frozenset() if node.func.name == "absent" else found[0]


def _of_aggregation(node: Any, series: Series) -> Labels:
    inner = _labels(node.expr, series)
    assert inner is not None
    if node.modifier is None:
        return frozenset()
    named = frozenset(node.modifier.labels)
    _expect(named, inner, node)
    return named if node.modifier.type == promql.AggModifierType.By else inner - named


def _of_two(node: Any, series: Series) -> Labels | None:
    left, right = _labels(node.lhs, series), _labels(node.rhs, series)
    if left is None or right is None:
        return left if right is None else right
    matched = left, right
    if node.modifier is not None and node.modifier.matching is not None:
        named = frozenset(node.modifier.matching.labels)
        _expect(named, left & right, node)
        if node.modifier.matching.type == promql.LabelModifierType.Include:
            matched = named, named
        else:
            matched = left - named, right - named
    op = str(node.op)
    if op == "or":
        return left | right
    if matched[0] != matched[1]:
        raise ValueError(
            f"expected two sides that can match, got {set(left)} and {set(right)} in {node.prettify()}"
        )
    card = None if node.modifier is None else node.modifier.card
    if card == promql.VectorMatchCardinality.ManyToOne:
        return left | frozenset(node.modifier.group_labels or ())
    return left if op in _SETS or op in _COMPARISONS else matched[0]


def _expect(named: Set[str], there: Set[str], node: Any) -> None:
    if unknown := named - there:
        raise ValueError(f"expected labels among {sorted(there)}, got {sorted(unknown)} in {node.prettify()}")
