"""The status page, and the page of a tree: HTML that needs nothing else from anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from urllib.parse import quote

from worker.codec import Tree
from worker.safe_text import printable
from worker.views import tree_svg
from worker.views.words import key_word, model_word, topic_word
from worker.watching.snapshots import MOST_TREES, Snapshot
from worker.watching.status import ModelStatus, Status

TREES = "/models/"  # the page of a tree is TREES + model + "/" + key, quoted

_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem }
table { border-collapse: collapse; margin: 1rem 0 }
caption { text-align: left; font-weight: bold }
td, th { padding: .2rem .8rem; border-bottom: 1px solid #8886; text-align: right }
td:first-child, th:first-child, .trees td { text-align: left }
.wide { overflow-x: auto }
"""
_MODEL = ("name", "keys", "features", "live examples", "bytes", "tree nodes", "depth")
_MEASURES = ("accuracy", "majority", "no_change", "kappa_m", "kappa_temporal")
_LATE = tuple(f"{each.replace('_', ' ')} of late" for each in _MEASURES)  # over the window of each partition


def status_page(status: Status, snapshots: Mapping[tuple[str, bytes], Snapshot], now: float) -> str:
    """Return what the loop does, how far it is, how large its models are, and links to their trees.

    Parameters
    ----------
    status
        As of the loop's last turn.
    snapshots
        By model and key, the oldest first.
    now
        Seconds, on the clock that the loop stamps its ticks with.
    """
    silent = max(0.0, now - status.tick)
    phase = escape(printable(status.phase))
    partitions = [(*row, max(0, row.high - row.position)) for row in status.partitions]
    return _page(
        "Anabranch",
        f"""<p>The worker is <strong>{phase}</strong>; its loop ticked {silent:.1f} s ago.</p>
<p><a href="/metrics">metrics</a> <a href="/livez">livez</a> <a href="/readyz">readyz</a></p>
{_table("Partitions", ("topic", "partition", "position", "high", "lag"), map(_escaped, partitions))}
{_table("Models", (*_MODEL, *_LATE, "error rose"), (_escaped(_model(model)) for model in status.models))}
{_refusals(status)}
{_trees(snapshots)}""",
    )


def tree_page(key: bytes, tree: Tree) -> str:
    """Return the page of a tree, with its drawing."""
    source = tree.source
    after = escape(f"{topic_word(source.topic)}/{source.partition} offset {source.offset}")
    name = escape(f"{model_word(tree.model)}: tree of {key_word(key)}")
    return _page(
        name,
        f"""<p>As it was written after {after}: version {tree.version:,}, {len(tree.node):,} nodes.
<a href="/">All of them</a></p>
<div class="wide">
{tree_svg.draw(tree, key)}</div>""",
    )


def _page(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{_STYLE}</style>
<h1>{title}</h1>
{body}
</html>
"""


def _model(model: ModelStatus) -> tuple[object, ...]:
    trees: tuple[object, ...] = (model.nodes, model.depth) if model.nodes else ("", "")
    measures = model.quality.recent.measures() if model.quality is not None else None
    late = [
        f"{value:.4f}" if math.isfinite(value := getattr(measures, each, math.nan)) else "" for each in _MEASURES
    ]
    return (model.name, model.keys, model.slots, model.examples, model.bytes, *trees, *late, _drifts(model))


def _drifts(model: ModelStatus) -> str:
    """Return how often the error rose, and when it last did."""
    if model.quality is None or not model.quality.drifts:
        return ""
    return f"{model.quality.drifts:,}, {model.quality.since:,} examples ago"


def _refusals(status: Status) -> str:
    """Return what was refused; names and values of data are in the dead letters alone."""
    if not status.refusals:
        return "<p>Nothing was refused.</p>"
    rows = [
        (each.topic, each.model or "the decoder", each.reason, f"{each.events:,}", each.last)
        for each in status.refusals
    ]
    head = ("topic", "refused by", "reason", "events", "the last")
    return _table("Refused events; the dead letters hold them", head, map(_escaped, rows))


def _trees(snapshots: Mapping[tuple[str, bytes], Snapshot]) -> str:
    """Return links to the trees, the latest first."""
    if not snapshots:
        return "<p>No tree was written yet: <code>emit.snapshots</code> of a model says when one is.</p>"
    rows = [
        (
            f'<a href="{TREES}{quote(model)}/{quote(key, safe="")}">{escape(key_word(key))}</a>',
            escape(model_word(model)),
        )
        for (model, key), _ in reversed(list(snapshots.items()))
    ]
    caption = f"Trees, the last {MOST_TREES} that were written" if len(rows) == MOST_TREES else "Trees"
    return _table(caption, ("key", "model"), rows, "trees")


def _escaped(cells: Iterable[object]) -> list[str]:
    return [escape(printable(str(cell), 249)) for cell in cells]


def _table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join([row(head, "th"), *(row(cells, "td") for cells in rows)])
    return f"<table{f' class={kind}' if kind else ''}>\n<caption>{caption}</caption>\n{body}\n</table>"
