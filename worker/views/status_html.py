"""The status page, and the page of a tree: HTML that needs nothing else from anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from worker.codec import AnyTree
from worker.safe_text import printable
from worker.views import tree_svg
from worker.views.output_text import AGAINST
from worker.views.tree_nodes import tree_words
from worker.views.words import key_word, model_word, number_word, topic_word
from worker.watching.snapshots import MOST_TREES, Snapshot
from worker.watching.status import DELAYED, About, ModelStatus, Status, comparisons

TREES = "/models/"  # the page of a tree is TREES + model + "/" + key, quoted; of a forest's, + "/" + its number

_TOP_NODES, _TOP_DEPTH = 15, 3  # of each tree that the page of a forest draws
_MOST_DRAWN = 100  # trees of a forest

REFRESH_SECONDS = 5  # after which a browser loads the status page anew

_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem }
h1 { line-height: 1.2; overflow-wrap: anywhere }
table { border-collapse: collapse }
caption { text-align: left; font-weight: bold; white-space: nowrap }
td, th { padding: .2rem .8rem; border-bottom: 1px solid #8886; text-align: right; vertical-align: bottom }
td:first-child, th:first-child, .words td, .words th { text-align: left; padding-left: 0 }
td { white-space: nowrap; font-variant-numeric: tabular-nums }
.wide { overflow-x: auto; margin: 1.5rem 0 }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem }
.grid svg { width: 100%; height: auto }
@media (max-width: 40rem) { body { margin: 1rem } h1 { font-size: 1.5rem } }
"""
_SIZES = ("model", "keys", "feature counts", "live examples", "bytes", "tree nodes", "depth")
_MEASURES = ("accuracy", "majority", "no_change", "kappa_m", "kappa_temporal")  # as `AGAINST` has them
_QUALITY = ("model", *AGAINST, "error rose")
_OF_NUMBERS = ("mae", "mean_mae", "no_change_mae", "rmse", "mean_rmse", "no_change_rmse")
_ERRORS = ("model", "MAE", "mean's", "no change's", "RMSE", "mean's", "no change's", "R2", "R2 of all")
_DIGEST = 12  # hex digits of the settings' fingerprint, as in messages


def status_page(status: Status, snapshots: Mapping[tuple[str, bytes], Snapshot], now: float, about: About) -> str:
    """Return what the loop does, how far it is, how large its models are, and links to their trees.

    Parameters
    ----------
    status
        As of the loop's last turn.
    snapshots
        By model and key, the oldest first.
    now
        Seconds, on the clock that the loop stamps its ticks with.
    about
        What runs.
    """
    silent = max(0.0, now - status.tick)
    phase = escape(printable(status.phase))
    settings = escape(about.settings[:_DIGEST])
    waits = any(row.pending is not None for row in status.partitions)
    partitions = [
        (*row[:4], max(0, row.high - row.position), *([row.pending or 0] if waits else []))
        for row in status.partitions
    ]
    head = (
        "topic",
        "partition",
        "next offset",
        "end",
        "lag",
        *(["examples that wait for labels"] if waits else []),
    )
    quality = [model for model in status.models if model.quality is not None]
    measured = [model for model in quality if model.is_of_numbers]
    judged = [model for model in quality if model not in measured]
    errors = _table(
        "Predictions of numbers of late, over the window of each partition", _ERRORS, map(_late_errors, measured)
    )
    evaluated = _table("Predictions of late, over the window of each partition", _QUALITY, map(_late, judged))
    return _page(
        "Anabranch",
        f"""<p>The worker is <strong>{phase}</strong>; its loop ticked {silent:.1f} s ago.<br>
Version {escape(about.version)}, settings {settings}, up {_duration(now - about.started)}.</p>
<p><a href="/metrics">metrics</a> <a href="/livez">livez</a> <a href="/readyz">readyz</a></p>
{_table("Partitions", head, partitions)}
{_table("Models", _SIZES, map(_sizes, status.models))}
{evaluated if judged else ""}{errors if measured else ""}{_intervals(measured)}
{_due(status)}{_delayed(status)}{_shadows(status)}{_refusals(status)}
{_trees(snapshots, about)}""",
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">\n',
    )


def forest_page(key: bytes, trees: Sequence[AnyTree]) -> str:
    """Return the page of a forest: the top of each tree, which leads to the tree's own page."""
    first = trees[0]
    name = escape(f"{model_word(first.model)}: forest of {key_word(key)}")
    nodes = sum(len(tree.node) for tree in trees)
    figures = [
        f'<a href="{_address(tree.model, key)}/{number}">{tree_svg.draw(tree, key, _TOP_NODES, _TOP_DEPTH)}</a>'
        for number, tree in enumerate(trees[:_MOST_DRAWN])
    ]
    rest = f"<p>and {len(trees) - _MOST_DRAWN:,} more trees</p>" if len(trees) > _MOST_DRAWN else ""
    return _page(
        name,
        f"""<p>As it was written after {_place(first)}: version {first.version:,}, {len(trees):,} trees of
{nodes:,} nodes in all. Each is drawn to a depth of {_TOP_DEPTH}; it leads to the whole tree.
<a href="/">Status, and all trees</a></p>
<div class="grid">
{"".join(figures)}</div>{rest}""",
    )


def tree_page(key: bytes, tree: AnyTree) -> str:
    """Return the page of a tree, with its drawing."""
    of_forest = f' <a href="{_address(tree.model, key)}">The forest</a>' if tree_words(tree) != "tree" else ""
    name = escape(f"{model_word(tree.model)}: {tree_words(tree)} of {key_word(key)}")
    return _page(
        name,
        f"""<p>As it was written after {_place(tree)}: version {tree.version:,}, {len(tree.node):,} nodes.
<a href="/">Status, and all trees</a>{of_forest}</p>
<div class="wide">
{tree_svg.draw(tree, key)}</div>""",
    )


def _place(tree: AnyTree) -> str:
    """Return which event a tree was written after."""
    source = tree.source
    return escape(f"{topic_word(source.topic)}/{source.partition} offset {source.offset:,}")


def _page(title: str, body: str, more: str = "") -> str:
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{more}<title>{title}</title>
<style>{_STYLE}</style>
<h1>{title}</h1>
{body}
</html>
"""


def _duration(seconds: float) -> str:
    """Return a time in its two largest units."""
    whole = max(0, int(seconds))
    parts = (("d", whole // 86_400), ("h", whole // 3_600 % 24), ("min", whole // 60 % 60), ("s", whole % 60))
    first = next((at for at, (_, count) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count:,} {unit}" for unit, count in parts[first : first + 2])


def _sizes(model: ModelStatus) -> tuple[object, ...]:
    trees: tuple[object, ...] = (model.nodes, model.depth) if model.nodes else ("", "")
    name = f"{model.name} (shadow)" if model.shadow else model.name
    return (name, model.keys, model.slots, model.examples, model.bytes, *trees)


def _due(status: Status) -> str:
    """Return what is older than its span and has not gone yet; nothing where all of it went."""
    rows = [(each.name, each.due, each.examples_due) for each in status.models if each.due or each.examples_due]
    if not rows:
        return ""
    return _table("Due, to go with the next events", ("model", "keys", "examples"), rows) + "\n"


def _late(model: ModelStatus) -> tuple[object, ...]:
    """Return how good predictions were, and how often and when their error rose."""
    assert model.quality is not None
    measures = model.quality.recent.measures()
    values = [getattr(measures, each, math.nan) for each in _MEASURES]
    late = [f"{value:.4f}" if math.isfinite(value) else "" for value in values]
    drifts, since = model.quality.drifts, model.quality.since
    rose = f"{drifts:,} times, {since:,} examples ago" if drifts else ""
    return (model.name, *late, rose)


def _delayed(status: Status) -> str:
    """Return how good answers were whose labels came later; nothing where there are none."""
    rows = []
    for model in status.models:
        if model.delayed is not None and model.delayed.examples:
            measures: Any = model.delayed.recent.measures()
            values = [getattr(measures, each, math.nan) for each in DELAYED]
            rows.append((model.name, *(number_word(value) if math.isfinite(value) else "" for value in values)))
    if not rows:
        return ""
    head = ("model", *(each.replace("_", " ") for each in DELAYED))
    return _table("Answers given, judged by labels that came later, over the window", head, rows) + "\n"


def _shadows(status: Status) -> str:
    """Return how models that write no results do beside those that they may replace; nothing without such."""
    rows = [
        (each.shadow, each.beside, f"{each.accuracy:.4f}", f"{each.theirs:.4f}", f"{each.lead:+.4f}")
        for each in comparisons(status.models)
    ]
    if not rows:
        return ""
    head = ("shadow", "beside", "accuracy or R2 of late", "theirs", "lead")
    return _table("Shadows, beside models of the same input", head, rows) + "\n"


def _late_errors(model: ModelStatus) -> tuple[object, ...]:
    """Return how far predictions of numbers were off."""
    assert model.quality is not None
    measures: Any = model.quality.recent.measures()
    total: Any = model.quality.total.measures()
    values = [getattr(measures, each) for each in _OF_NUMBERS]
    shares = [f"{r2:.4f}" if math.isfinite(r2) else "" for r2 in (measures.r2, total.r2)]
    return (model.name, *(number_word(value) if math.isfinite(value) else "" for value in values), *shares)


def _intervals(models: Sequence[ModelStatus]) -> str:
    """Return how many labels were within the intervals of predictions; nothing where nobody asks for these."""
    rows = []
    for model in models:
        assert model.quality is not None
        covered = model.quality.covered, model.quality.covered_recently
        shares = [each.measures() for each in covered if each is not None]
        words = [
            word if math.isfinite(value) else ""
            for coverage, width in shares
            for value, word in ((coverage, f"{coverage:.4f}"), (width, number_word(width)))
        ]
        if words:
            rows.append((model.name, *words))
    if not rows:
        return ""
    head = ("model", "within", "mean width", "within of late", "mean width of late")
    return _table("Intervals: the share of labels within, and how wide they are", head, rows)


def _refusals(status: Status) -> str:
    """Return what was refused; names and values of data are in the dead letters alone."""
    if not status.refusals:
        return "<p>Nothing was refused.</p>"
    rows = [
        (each.topic, each.model or "the decoder", each.reason, each.events, each.last) for each in status.refusals
    ]
    head = ("topic", "refused by", "reason", "events", "the last")
    return _table("Refused events; the dead letters hold them", head, rows, "words")


def _trees(snapshots: Mapping[tuple[str, bytes], Snapshot], about: About) -> str:
    """Return links to the trees, the latest first, or when there will be one."""
    if not snapshots:
        due = [f"<li>{escape(model_word(model))}: {escape(when)}</li>" for model, when in about.snapshots.items()]
        return (
            "<p>No tree was written since the worker started; <code>anabranch show</code> has those from before. "
            f"{'The next ones are written' if due else 'No model has trees.'}</p>\n<ul>{''.join(due)}</ul>"
        )
    rows = [(_link(model, key), _after(snapshot)) for (model, key), snapshot in reversed(list(snapshots.items()))]
    caption = f"Trees, the last {MOST_TREES} that were written" if len(rows) == MOST_TREES else "Trees"
    return _html_table(caption, ("tree", "after partition/offset"), rows, "words")


def _link(model: str, key: bytes) -> str:
    name = escape(f"{model_word(model)}: tree of {key_word(key)}")
    return f'<a href="{_address(model, key)}">{name}</a>'


def _address(model: str, key: bytes) -> str:
    return f"{TREES}{quote(model)}/{quote(key, safe='')}"


def _after(snapshot: Snapshot) -> str:
    """Return which partition and offset a tree was written after."""
    _, partition, offset, _ = snapshot.event.decode().rsplit(":", 3)
    return f"{int(partition):,}/{int(offset):,}"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(printable(str(value), 249))


def _table(caption: str, head: Iterable[str], rows: Iterable[Iterable[object]], kind: str = "") -> str:
    """Return a table of texts and numbers."""
    return _html_table(caption, head, ([_cell(cell) for cell in row] for row in rows), kind)


def _html_table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    """Return a table that scrolls where the page is too narrow for it."""

    def row(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join([row(head, "th"), *(row(cells, "td") for cells in rows)])
    table = f"<table{f' class={kind}' if kind else ''}>\n<caption>{caption}</caption>\n{body}\n</table>"
    return f'<div class="wide" role="region" aria-label="{caption}" tabindex="0">\n{table}</div>'
