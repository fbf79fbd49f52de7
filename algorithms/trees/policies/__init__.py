"""The registry of policies, which say when a leaf tries to split.

A new one is one file like periodic.py and one line in `POLICIES`. A policy is a NamedTuple of arrays and these
functions, of which default.py has those that the file leaves out. The first argument is the policy's state (the
kernels compile a version of themselves for each):

================  ==================================================================================
``begin``         a leaf was made
``end``           a leaf is a leaf no more
``ready``         can so many leaves learn an example of so many features before the arrays must be enlarged?
``learn``         an example is about to be counted at a leaf
``due``           an example was counted: shall its leaf (or, with `keeps`, a node above) try to split now?
``seek``          the best split of a leaf; SHORT: enlarge and ask again; LATER: no split is due after all
``failed``        the best split was not sure enough
``feature_at``    the feature of a choice
``weight_above``  the weight of a class on the present or greater side of a choice
================  ==================================================================================

and outside kernels ``make``, ``grown``, ``enlarged``, ``check``; for a limit of memory ``is_full``; and ``keys``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from algorithms.core.jit import dispatch
from algorithms.trees.policies import default, efdt, efdt_imac, exact, hat, hat_imac, imac, osm, periodic


class Policy(NamedTuple):
    """How a policy is made."""

    kind: type  # of its state
    module: ModuleType
    only_binary: bool = False  # serves two classes and binary features only
    counted: bool = True  # needs what the observers count
    keeps: bool = False  # inner nodes go on counting, and may be split anew
    adapts: bool = False  # subtrees are replaced by alternates that do better, see alternates.py
    scores: bool = False  # the scores of a few candidates are kept up to date

    def function(self, name: str) -> Callable[..., Any]:
        """Return the policy's own function, or the default one."""
        own: Callable[..., Any] | None = getattr(self.module, name, None)
        return getattr(default, name) if own is None else own

    @property
    def limits(self) -> bool:
        """Whether it can keep to a limit of memory: only one node counts an example."""
        return not (self.keeps or self.adapts)

    @property
    def drops(self) -> bool:
        """Whether leaves may drop poor features: it asks the observers alone, and only at leaves."""
        return self.counted and not self.keeps


POLICIES: dict[str, Policy] = {
    "periodic": Policy(periodic.Periodic, periodic),
    "osm": Policy(osm.Osm, osm),
    "imac": Policy(imac.Imac, imac, scores=True),
    "efdt": Policy(efdt.Efdt, efdt, keeps=True),
    "efdt-imac": Policy(efdt_imac.EfdtImac, efdt_imac, keeps=True, scores=True),
    "hat": Policy(hat.Hat, hat, adapts=True),
    "hat-imac": Policy(hat_imac.HatImac, hat_imac, adapts=True, scores=True),
    "exact": Policy(exact.Exact, exact, only_binary=True, counted=False),
}


def _hook(name: str, doc: str) -> Callable[..., Any]:
    return dispatch(doc, {policy.kind: policy.function(name) for policy in POLICIES.values()})


def _outside(name: str, doc: str) -> Callable[..., Any]:
    functions = {policy.kind: policy.function(name) for policy in POLICIES.values()}

    def call(policy: Any, *arguments: Any) -> Any:
        return functions[type(policy)](policy, *arguments)

    call.__doc__ = doc
    return call


begin = _hook("begin", "Tell the policy that a leaf was made.")
end = _hook("end", "Tell the policy that a leaf is a leaf no more.")
ready = _hook("ready", "Return whether so many leaves can learn an example of so many features.")
learn = _hook("learn", "Tell the policy that an example is about to be counted at a leaf.")
due = _hook("due", "Return whether the leaf whose example was just counted shall try to split.")
seek = _hook("seek", "Return the best split of a leaf.")
failed = _hook("failed", "Tell the policy that the best split was not sure enough.")
feature_at = _hook("feature_at", "Return the feature of a choice.")
weight_above = _hook("weight_above", "Return the weight of a class on the present or greater side of a choice.")

grown = _outside("grown", "Return the policy with room for more nodes.")
enlarged = _outside(
    "enlarged", "Return the policy with room for an example of so many features, and so many rows."
)
is_full = _outside("is_full", "Return whether leaves must give up what they saw before so many can be learned.")
keys = _outside("keys", "Return leaf << 32 | feature of each row of the policy's own.")
check = _outside("check", "Raise AssertionError unless the policy's state is right.")
