"""Expressions that several panels have the like of, over what is chosen at the top of the page."""

from __future__ import annotations

from worker.watching.dashboards.panels import Query

WORKERS = 'instance=~"$instance"'
TOPICS = f'{WORKERS}, topic=~"$topic"'
MODELS = f'{WORKERS}, model=~"$model"'


def rate(metric: str, by: str, chosen: str = WORKERS) -> str:
    """Return a counter's increase a second, summed over all labels but those it is told `by`."""
    return f"sum by ({by}) (rate({metric}{{{chosen}}}[$__rate_interval]))"


def rates(metric: str, by: str, chosen: str = WORKERS, more: str = "") -> Query:
    """Return the same as a query, whose lines are called by these labels, and what `more` adds."""
    return Query(rate(metric, by, chosen), _words(by) + more)


def gauges(metric: str, by: str, chosen: str = WORKERS, how: str = "sum") -> Query:
    """Return a gauge for each of these labels: summed over the workers, or otherwise brought together."""
    return Query(f"{how} by ({by}) ({metric}{{{chosen}}})", _words(by))


def ages(metric: str, by: str, chosen: str = WORKERS) -> Query:
    """Return how long ago a Unix time is."""
    return Query(f"time() - max by ({by}) ({metric}{{{chosen}}})", _words(by))


def quantile(share: float, metric: str, by: str = "", chosen: str = WORKERS) -> Query:
    """Return a quantile of a histogram over all workers, for each of these labels."""
    buckets = rate(f"{metric}_bucket", f"le, {by}" if by else "le", chosen)
    return Query(f"histogram_quantile({share:g}, {buckets})", f"{_words(by)} p{100 * share:g}".strip())


def _words(labels: str) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in labels.split(", ") if label)
