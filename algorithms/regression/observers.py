"""The registry of observers of numeric features, and the best split of what one has seen.

A new one is one file like ebst.py and one line in `OBSERVERS`. It is a NamedTuple of its settings and these
functions, of which the first argument is that; elements.py keeps what it saw:

===========  =========================================================================
``begin``    an observer starts
``observe``  count a value, a label and a weight
``between``  the threshold between the prototypes of two neighbouring elements
===========  =========================================================================

and outside kernels ``check``, and a function that makes the settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.jit import dispatch, jit
from algorithms.regression import ebst, qo
from algorithms.regression.elements import FIRST, NEXT, NONE, Elements, X, check_tree, moments_of, room
from algorithms.regression.moments import Moments, learned, merged, nothing, reduction, unmerged


class Maker(NamedTuple):
    """How an observer is made."""

    kind: type  # of its settings
    module: ModuleType
    make: Callable[..., Any]  # its settings


OBSERVERS: dict[str, Maker] = {
    "qo": Maker(qo.Qo, qo, qo.make),
    "ebst": Maker(ebst.Ebst, ebst, ebst.make),
    "tebst": Maker(ebst.Ebst, ebst, ebst.make_truncated),
}


def _hook(name: str, doc: str) -> Callable[..., Any]:
    return dispatch(doc, {each.kind: getattr(each.module, name) for each in OBSERVERS.values()})


begin = _hook("begin", "Start an observer that has seen nothing.")
observe = _hook("observe", "Count a value, a label and a weight; there must be room for an element.")
_between = _hook("between", "Return the threshold between the prototypes of two neighbouring elements.")


class Cut(NamedTuple):
    """The best split of a feature; there is none where the merit is -inf."""

    merit: float  # VR
    threshold: float  # what is at most this goes low
    low: Moments
    high: Moments


@jit
def best_cut(kind: Any, elements: Elements, observer: int, whole: Moments, zeros: Moments, one: float) -> Cut:
    """Return the best threshold; of equal merits the lowest. Algorithm 2. O(elements).

    Parameters
    ----------
    whole : Moments
        Of all labels, those of `zeros` included.
    zeros : Moments
        Of labels whose value is 0 and was not observed; they stand as a point of their own.
    one : float
        The weight of a mean example, in examples, see `variance`.
    """
    best = Cut(-np.inf, 0.0, nothing(), nothing())
    low = nothing()
    x_below = 0.0
    pending = zeros.weight > 0
    element = elements.heads[observer, FIRST]
    while pending or element != NONE:
        point = zeros
        x = 0.0
        if element != NONE and (not pending or elements.numbers[element, X] <= 0.0):
            x = elements.numbers[element, X]
            point = moments_of(elements, element)
            element = elements.links[element, NEXT]
            if pending and x == 0.0:
                point = merged(point, zeros)
                pending = False
        else:
            pending = False
        if low.weight > 0:
            high = unmerged(whole, low)
            merit = reduction(whole, low, high, one)
            if merit > best.merit:
                best = Cut(merit, _between(kind, x_below, x), low, high)
        low = merged(low, point)
        x_below = x
    return best


@jit
def observe_all(
    kind: Any,
    elements: Elements,
    observer: int,
    x: Float64s,
    y: Float64s,
    weight: Int64s,
    counts: Int64s,
    moments: Float64s,
    start: int,
) -> int:
    """Observe examples from `start` on; return where it stopped: before the end for want of room.

    Parameters
    ----------
    x, y : float64[n]
        Values and labels.
    weight : int64[n]
        Above 0.
    counts, moments : int64[2], float64[3]
        Weight and number of all examples; mean and M_2 of their labels less the first label, and that label.
        Brought up to date.
    """
    at = start
    while at < x.size and room(elements) > 0:
        if counts[1] == 0:
            moments[2] = y[at]
        label = y[at] - moments[2]
        observe(kind, elements, observer, x[at], label, weight[at])
        total = learned(Moments(counts[0], moments[0], moments[1]), label, weight[at])
        counts[0] = total.weight
        counts[1] += 1
        moments[0] = total.mean
        moments[1] = total.squares
        at += 1
    return at


def made(name: str, options: Mapping[str, Any]) -> Any:
    """Return the settings of an observer.

    Raises
    ------
    ValueError
        With what was expected.
    """
    if name not in OBSERVERS:
        raise ValueError(f"expected an observer of {', '.join(OBSERVERS)}, got {name!r}")
    make = OBSERVERS[name].make
    known = list(inspect.signature(make).parameters)
    if unknown := [option for option in options if option not in known]:
        raise ValueError(f"expected options of {name} ({', '.join(known) or 'none'}), got {', '.join(unknown)}")
    return make(**options)


def check(kind: Any, elements: Elements, observer: int) -> list[int]:
    """Raise AssertionError unless every invariant of an observer holds; return its elements."""
    own = check_tree(elements, observer)
    prototypes = elements.numbers[own, X]
    assert (np.diff(prototypes) > 0.0).all(), "prototypes are out of order"
    next(each.module for each in OBSERVERS.values() if each.kind is type(kind)).check(
        kind, elements, observer, own
    )
    return own
