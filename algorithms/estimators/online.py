"""Models for one stream, with river's words: `learn_one`, `predict_one`, `predict_proba_one`, and `unlearn_one`.

Nothing but numpy and numba is needed. river.py makes them parts of river, sklearn.py has scikit-learn's words.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Never

from algorithms.core.cadence import Emit
from algorithms.core.criteria import CRITERIA
from algorithms.core.fixed_point import PER_UNIT, UNIT
from algorithms.core.given import number, whole
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic import variance
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.pool import DynamicPool
from algorithms.estimators.base import NUMBER_MESSAGES, Estimator
from algorithms.estimators.drawing import (
    Node,
    class_impurity,
    class_nodes,
    forest_text,
    html,
    importances,
    mean_importances,
    number_nodes,
    text,
    word,
)
from algorithms.estimators.encoding import Feature, Label, decoded
from algorithms.estimators.forgetting import Forgetting
from algorithms.estimators.labels import Classifier, Regressor
from algorithms.estimators.parameters import check_choice, check_growth, check_whole, depth_of
from algorithms.forests.draws import MOST_SEED, MOST_TREES, draws
from algorithms.forests.growing import POLICIES as GROWING
from algorithms.forests.growing import GrowingForestPool, check_chances
from algorithms.forests.pool import ForestPool
from algorithms.regression.pool import WAYS, RegressionPool
from algorithms.splits.pool import SplitPool
from algorithms.trees.bounds import check_range
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict

LABEL_RANGE, LABEL_UNIT = (
    (-1e6, 1e6),
    2**-17,
)  # of regressors that forget; halves, quarters .. are kept as they are
LEAF_PREDICTIONS = {each.name.lower(): each for each in Predict}


def kind_of(numeric: bool) -> Kind:
    """Return the kind of all features of a model."""
    return Kind.NUMERIC if numeric else Kind.BINARY


class _Drawn(Estimator):
    """A model that is a tree."""

    def _nodes(self) -> list[Node]:
        """Return the tree for people."""
        raise NotImplementedError

    def _tree(self) -> Any:
        """Return the pool's tree, None where nothing was learned."""
        self._settle()
        return None if self._pool is None else self._pool.tree()

    def to_text(self) -> str:
        """Return the tree as text, a line for each of its first nodes."""
        return text(repr(self), self._nodes())

    def _repr_html_(self) -> str:
        return html(repr(self), self._nodes())

    @property
    def feature_importances_(self) -> dict[Feature, float]:
        """The share of each feature in what all splits of the tree lower the impurity, or the variance, by.

        A feature that no node splits on is not there. They sum to 1, where there is a split at all.
        """
        return importances(self._nodes())

    @property
    def n_leaves(self) -> int:
        """How many leaves the tree has; 0 where nothing was learned."""
        tree = self._tree()
        return 0 if tree is None else sum(feature is None for feature in tree.feature)


def _cannot_forget(kind: str, other: str) -> NotImplementedError:
    return NotImplementedError(f"a {kind} only grows and takes no example back; use {other}, which does")


class TreeClassifier(_Drawn, Classifier):
    """A decision tree that grows with a stream and never sees an example twice: a Hoeffding tree.

    It takes any hashable label, and new ones at any time. The Hoeffding bound decides which split is good enough.
    With ``criterion="entropy"`` the bound grows with the number of classes that the tree has seen so far. A
    `TreePool` that knows all its classes from the start splits later for that reason. With `local_range` only the
    classes that a leaf has seen count, and with `inherit` as well the bound is that of MOA and river.

    Parameters
    ----------
    policy : str
        When a leaf tries to split: ``periodic`` (VFDT), ``osm``, ``imac``, ``efdt``, ``hat``, or ``exact``, which
        is never late and serves two labels and binary features.
    criterion : str
        ``entropy`` or ``gini``.
    grace_period : int
        Examples between two attempts of a leaf to split.
    split_confidence : float
        How likely a split may be another than the best.
    tie_threshold : float
        Where the bound falls below it the best feature is taken, however near the second.
    leaf_prediction : str
        ``majority``, ``naive_bayes``, or ``adaptive``, which is whichever of these two was right more often. With
        ``adaptive_present`` absent features say nothing: a prediction costs as much as the example is long.
    max_depth : int, optional
        A leaf so deep does not split.
    features : str
        ``numeric``: values are numbers, absent is 0. ``binary``: features are present or absent. ``auto``: numeric
        where the first example is a mapping with a number that is not a bool, or an empty one.
    inherit : bool
        The bound of a new leaf also counts the examples that its parent saw for it.
    local_range : bool
        The range of the bound is that of the classes that a leaf has seen; only of ``entropy``.

    Examples
    --------
    >>> from algorithms import TreeClassifier
    >>> model = TreeClassifier(grace_period=20)
    >>> for t in range(200):
    ...     model.learn_one({"heat": t % 40, "wet": t % 3 == 0}, "stay" if t % 40 > 25 else "go")
    >>> model.predict_one({"heat": 38}), model.predict_one({"heat": 3})
    ('stay', 'go')
    >>> print(model.to_text())
    TreeClassifier(grace_period=20)
    heat?                go 130  stay 70
    ├─ ≤ 24.818: → go    go 124.73
    └─ > 24.818: → stay  go 5.2655  stay 70
    >>> list(model.feature_importances_)
    ['heat']
    """

    def __init__(
        self,
        policy: str = "periodic",
        criterion: str = "entropy",
        grace_period: int = 200,
        split_confidence: float = 1e-7,
        tie_threshold: float = 0.05,
        leaf_prediction: str = "adaptive_present",
        max_depth: int | None = None,
        features: str = "auto",
        inherit: bool = False,
        local_range: bool = False,
    ) -> None:
        self.policy = policy
        self.criterion = criterion
        self.grace_period = grace_period
        self.split_confidence = split_confidence
        self.tie_threshold = tie_threshold
        self.leaf_prediction = leaf_prediction
        self.max_depth = max_depth
        self.features = features
        self.inherit = inherit
        self.local_range = local_range
        self._begin()

    def _check(self) -> None:
        check_tree(self)

    def _made_for(self, numeric: bool, classes: int) -> TreePool:
        return tree_pool(self, numeric, classes, names=True)

    def unlearn_one(self, *_: Any, **__: Any) -> Never:
        """Raise NotImplementedError: this tree only grows."""
        raise _cannot_forget("TreeClassifier", "ForgettingTreeClassifier")

    def _nodes(self) -> list[Node]:
        tree = self._tree()
        return [] if tree is None else class_nodes(tree, self._labels, self.criterion)


def check_tree(model: Any) -> None:
    """Raise ValueError where a parameter of `TreeClassifier` is none."""
    check_choice("a policy", model.policy, POLICIES)
    check_choice("a criterion", model.criterion, ("entropy", "gini"))
    check_choice("a leaf_prediction", model.leaf_prediction, LEAF_PREDICTIONS)
    check_range(model.criterion, local=model.local_range)
    _check_growing(model)


def check_regression(model: Any) -> None:
    """Raise ValueError where a parameter of `TreeRegressor` is none."""
    check_choice("a leaf_prediction", model.leaf_prediction, WAYS)
    _check_growing(model)


def _check_growing(model: Any) -> None:
    check_growth(model.grace_period, model.split_confidence, model.tie_threshold, model.max_depth)


def tree_pool(model: Any, numeric: bool, classes: int, *, names: bool) -> TreePool:
    """Return the pool of a model with the parameters of `TreeClassifier`."""
    return TreePool(
        policy=model.policy,
        criterion=model.criterion,
        classes=classes,
        predict=LEAF_PREDICTIONS[model.leaf_prediction],
        grace_period=int(model.grace_period),
        check_every=int(model.grace_period),
        split_confidence=float(model.split_confidence),
        tie_threshold=float(model.tie_threshold),
        default=kind_of(numeric),
        names=names,
        max_depth=depth_of(model.max_depth),
        inherit=bool(model.inherit),
        local_range=bool(model.local_range),
    )


class ForgettingTreeClassifier(_Drawn, Forgetting, Classifier):
    """A decision tree of the examples that are live: learned, and neither unlearned nor older than the window.

    With ``epsilon=0`` it is, whenever it is asked, the greedy tree of these examples, as if it had never seen
    another one. Else a subtree is rebuilt after enough changes, and stays near that tree until then (FuDyADT).
    Live examples are kept, so memory follows their number. A label without examples keeps its place until a new
    label needs it.

    Parameters
    ----------
    criterion : str
        ``gini`` or ``entropy``.
    epsilon : float
        A subtree built from s examples is rebuilt after more than epsilon s changes. 0: as the answer needs it.
    window : int, optional
        Keep only the last so many examples.
    min_examples : int
        A node of at most so many examples is a leaf.
    max_depth : int, optional
        A node so deep is a leaf.
    features : str
        ``numeric``, ``binary`` or ``auto``, as of `TreeClassifier`.

    Examples
    --------
    >>> from algorithms import ForgettingTreeClassifier
    >>> model = ForgettingTreeClassifier(epsilon=0)
    >>> model.learn_one(["win", "prize"], "spam")
    >>> model.learn_one(["see", "you"], "ham")
    >>> model.learn_one(["see", "prize"], "ham", id="mail 3")
    >>> model.predict_one(["win"])
    'spam'
    >>> model.unlearn_one(id="mail 3")  # by its id
    >>> model.unlearn_one(["win", "prize"], "spam")  # or by value
    >>> model.predict_one(["win"])
    'ham'
    """

    def __init__(
        self,
        criterion: str = "gini",
        epsilon: float = 0.1,
        window: int | None = None,
        min_examples: int = 1,
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.criterion = criterion
        self.epsilon = epsilon
        self.window = window
        self.min_examples = min_examples
        self.max_depth = max_depth
        self.features = features
        self._begin()

    def _check(self) -> None:
        check_forgetting(self)

    def _made_for(self, numeric: bool, classes: int) -> DynamicPool:
        return forgetting_pool(self, numeric, classes, names=True)

    def _is_forgotten(self, number: int) -> bool:
        weight = self._tree().weight
        return not len(weight) or not weight[0, number]

    def _nodes(self) -> list[Node]:
        tree = self._tree()
        return [] if tree is None else class_nodes(tree, self._labels, self.criterion)


def check_forgetting(model: Any) -> None:
    """Raise ValueError where a parameter of `ForgettingTreeClassifier` is none."""
    check_choice("a criterion", model.criterion, ("gini", "entropy"))
    _check_live(model)


def _check_live(model: Any) -> None:
    if number("epsilon", model.epsilon, 1e300) < 0.0:
        raise ValueError(f"expected an epsilon of at least 0, got {model.epsilon}")
    check_whole("window", model.window, 1, optional=True)
    check_whole("min_examples", model.min_examples, 1)
    check_whole("max_depth", model.max_depth, 0, optional=True)


def _near(model: Any) -> dict[str, Any]:
    """Return how near a pool keeps its trees: to be the greedy tree, one that is asked has to be it only then."""
    return {"epsilon": float(model.epsilon)} if model.epsilon else {"guarantee": "exact"}


def forgetting_pool(model: Any, numeric: bool, classes: int, *, names: bool) -> DynamicPool:
    """Return the pool of a model with the parameters of `ForgettingTreeClassifier`."""
    return DynamicPool(
        **_near(model),
        min_examples=int(model.min_examples),
        max_depth=depth_of(model.max_depth),
        criterion=model.criterion,
        classes=classes,
        default=kind_of(numeric),
        window=model.window,
        names=names,
    )


class _Voting(Estimator):
    """A model that is a forest."""

    trees: int
    criterion: str
    _labels: dict[Label, int]

    def _tree_nodes(self, tree: int) -> list[Node]:
        self._settle()
        return [] if self._pool is None else class_nodes(self._pool.tree(tree), self._labels, self.criterion)

    def to_text(self, tree: int | None = None) -> str:
        """Return a tree, by its number from 0, as text; or a line for each tree."""
        if tree is not None:
            return text(f"{self!r}, tree {tree}", self._tree_nodes(tree))
        return forest_text(repr(self), [self._tree_nodes(number) for number in range(self.trees)])

    @property
    def feature_importances_(self) -> dict[Feature, float]:
        """The mean over all trees that have a split of the share of each feature in what splits gain."""
        return mean_importances([importances(self._tree_nodes(number)) for number in range(self.trees)])

    @property
    def n_leaves(self) -> int:
        """How many leaves all trees have; 0 where nothing was learned."""
        self._settle()
        return 0 if self._pool is None else int(self._pool.sizes().leaves)


class ForgettingForestClassifier(_Voting, Forgetting, Classifier):
    """A forest of trees of the live examples: each sees some of the features, and weighs examples its own way.

    Which tree sees what follows from hashes, so an example is unlearned from all trees that have it. With
    ``epsilon=0`` the forest is always that of the live examples alone, as if it had never seen another one but for
    the order in which labels came.

    Parameters
    ----------
    trees : int
        How many trees.
    subspace : float or str
        The share of the features that a tree sees, or ``sqrt of D`` for 1 / sqrt(D).
    bagging : str
        ``poisson:6``, ``poisson:1``: an example weighs so many times its weight in a tree, as that distribution
        says. ``3 of 10``: it is in exactly three of ten trees, so learning and unlearning cost less. ``none``.
    seed : int
        Another one, another forest.
    criterion, epsilon, window, min_examples, max_depth, features
        As of `ForgettingTreeClassifier`. The window counts the examples that were learned, wherever they are.

    Examples
    --------
    >>> from algorithms import ForgettingForestClassifier
    >>> model = ForgettingForestClassifier(trees=5, window=200)
    >>> for t in range(300):
    ...     model.learn_one({"heat": t % 40, "wet": t % 3 == 0}, "stay" if t % 40 > 25 else "go", id=t)
    >>> model.predict_one({"heat": 38, "wet": True}), model.predict_one({"heat": 3})
    ('stay', 'go')
    >>> model.unlearn_one(id=299)
    >>> list(model.feature_importances_)[0]
    'heat'
    """

    def __init__(
        self,
        trees: int = 10,
        subspace: float | str = 0.6,
        bagging: str = "poisson:6",
        seed: int = 0,
        criterion: str = "gini",
        epsilon: float = 0.1,
        window: int | None = None,
        min_examples: int = 1,
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.trees = trees
        self.subspace = subspace
        self.bagging = bagging
        self.seed = seed
        self.criterion = criterion
        self.epsilon = epsilon
        self.window = window
        self.min_examples = min_examples
        self.max_depth = max_depth
        self.features = features
        self._begin()

    def _check(self) -> None:
        check_forest(self)

    def _made_for(self, numeric: bool, classes: int) -> ForestPool:
        return forest_pool(self, numeric, classes, names=True)

    def _is_forgotten(self, number: int) -> bool:
        return not self._pool.live_weights()[number]


def check_forest(model: Any) -> None:
    """Raise ValueError where a parameter of `ForgettingForestClassifier` is none."""
    check_forgetting(model)
    _check_sampling(model)


def _check_sampling(model: Any) -> None:
    trees = whole("trees", model.trees, 1, MOST_TREES)
    draws(trees, whole("a seed", model.seed, 0, MOST_SEED), model.subspace, model.bagging)


def forest_pool(model: Any, numeric: bool, classes: int, *, names: bool) -> ForestPool:
    """Return the pool of a model with the parameters of `ForgettingForestClassifier`."""
    return ForestPool(
        trees=int(model.trees),
        subspace=model.subspace,
        bagging=model.bagging,
        seed=int(model.seed),
        **_near(model),
        min_examples=int(model.min_examples),
        max_depth=depth_of(model.max_depth),
        criterion=model.criterion,
        classes=classes,
        default=kind_of(numeric),
        window=model.window,
        names=names,
    )


class ForestClassifier(_Voting, Classifier):
    """A forest of trees that grow with a stream; where its errors rise a tree is replaced.

    Each tree sees some of the features, and weighs examples its own way. It is asked before it learns, and ADWIN
    watches whether it is right: at a warning another tree is begun beside it, which takes its place at a drift. A
    vote weighs as much as its tree has lately been right. These are adaptive random forests.

    Parameters
    ----------
    trees, subspace, bagging, seed
        As of `ForgettingForestClassifier`.
    warning, drift : float
        How likely a look at a tree's errors finds that they rose where they did not.
    policy, criterion, grace_period, split_confidence, tie_threshold, leaf_prediction, max_depth, features
        As of `TreeClassifier`; trees of a forest split sooner. Of the policies ``periodic``, ``osm``, ``imac`` and
        ``exact``.

    Examples
    --------
    >>> from algorithms import ForestClassifier
    >>> model = ForestClassifier(trees=5)
    >>> for t in range(300):
    ...     model.learn_one({"heat": t % 40, "wet": t % 3 == 0}, "stay" if t % 40 > 25 else "go")
    >>> model.predict_one({"heat": 38, "wet": True}), model.predict_one({"heat": 3})
    ('stay', 'go')
    >>> list(model.feature_importances_)[0]
    'heat'
    """

    def __init__(
        self,
        trees: int = 10,
        subspace: float | str = 0.6,
        bagging: str = "poisson:6",
        seed: int = 0,
        warning: float = 0.01,
        drift: float = 0.001,
        policy: str = "periodic",
        criterion: str = "gini",
        grace_period: int = 10,
        split_confidence: float = 0.5,
        tie_threshold: float = 0.05,
        leaf_prediction: str = "adaptive",
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.trees = trees
        self.subspace = subspace
        self.bagging = bagging
        self.seed = seed
        self.warning = warning
        self.drift = drift
        self.policy = policy
        self.criterion = criterion
        self.grace_period = grace_period
        self.split_confidence = split_confidence
        self.tie_threshold = tie_threshold
        self.leaf_prediction = leaf_prediction
        self.max_depth = max_depth
        self.features = features
        self._begin()

    def _check(self) -> None:
        check_growing_forest(self)

    def _made_for(self, numeric: bool, classes: int) -> GrowingForestPool:
        return growing_forest_pool(self, numeric, classes, names=True)

    def unlearn_one(self, *_: Any, **__: Any) -> Never:
        """Raise NotImplementedError: these trees only grow."""
        raise _cannot_forget("ForestClassifier", "ForgettingForestClassifier")


def check_growing_forest(model: Any) -> None:
    """Raise ValueError where a parameter of `ForestClassifier` is none."""
    check_choice("a policy", model.policy, GROWING)
    check_choice("a criterion", model.criterion, ("entropy", "gini"))
    check_choice("a leaf_prediction", model.leaf_prediction, LEAF_PREDICTIONS)
    check_chances(model.warning, model.drift)
    _check_growing(model)
    _check_sampling(model)


def growing_forest_pool(model: Any, numeric: bool, classes: int, *, names: bool) -> GrowingForestPool:
    """Return the pool of a model with the parameters of `ForestClassifier`."""
    return GrowingForestPool(
        trees=int(model.trees),
        subspace=model.subspace,
        bagging=model.bagging,
        seed=int(model.seed),
        warning=float(model.warning),
        drift=float(model.drift),
        policy=model.policy,
        criterion=model.criterion,
        predict=LEAF_PREDICTIONS[model.leaf_prediction],
        grace_period=int(model.grace_period),
        split_confidence=float(model.split_confidence),
        tie_threshold=float(model.tie_threshold),
        max_depth=depth_of(model.max_depth),
        classes=classes,
        default=kind_of(numeric),
        names=names,
    )


class Best(NamedTuple):
    """The best split of the examples."""

    feature: Feature | None  # None: nothing splits them
    gain: float  # the impurity of an example that it removes; in bits, of entropy
    score: float  # the impurity of an example that remains
    runner_up: Feature | None
    runner_up_gain: float
    n: float  # weight of all examples
    absent: dict[Label, float]  # weight of the examples without the feature
    present: dict[Label, float]  # of those with it


class Ranked(NamedTuple):
    """One of the best features."""

    feature: Feature
    gain: float  # the impurity of an example that a split on it removes
    present: dict[Label, float]  # weight of the examples that have it


class BestSplit(Forgetting, Classifier):
    """The best feature to split examples of two labels by, exact after every example that comes or goes.

    Features are present or absent, and there may be millions of them. Memory follows the number of different
    features; examples are kept only for a window, for ids, and for `verify`. A third label is refused while the
    other two have examples.

    Parameters
    ----------
    criterion : str
        ``entropy``, ``gini`` or ``sqrt``.
    window : int, optional
        Keep only the last so many examples.
    verify : bool
        Keep all live examples, so that only what was learned can be unlearned. Without it an example is refused
        only where the counts show that it was not learned.

    Examples
    --------
    >>> from algorithms import BestSplit
    >>> model = BestSplit(criterion="gini")
    >>> mails = {"win a prize": "spam", "win now": "spam", "see you": "ham", "a prize": "ham"}
    >>> for text, label in mails.items():
    ...     model.learn_one(text.split(), label)
    >>> model.best().feature, model.best().present
    ('win', {'spam': 2.0, 'ham': 0.0})
    >>> model.unlearn_one(["win", "now"], "spam")
    >>> [row.feature for row in model.top(2)]
    ['win', 'a']
    >>> model.predict_one(["win"])
    'spam'
    """

    features = "binary"

    def __init__(self, criterion: str = "entropy", window: int | None = None, verify: bool = False) -> None:
        self.criterion = criterion
        self.window = window
        self.verify = verify
        self._begin()

    def _check(self) -> None:
        check_choice("a criterion", self.criterion, CRITERIA)
        check_whole("window", self.window, 1, optional=True)

    def _made_for(self, numeric: bool, classes: int) -> SplitPool:  # noqa: ARG002  (all are called alike)
        return SplitPool(
            criterion=self.criterion,
            window=self.window,
            verify_deletes=bool(self.verify),
            names=True,
            splits=Emit(),
        )

    def _weights(self, answers: Any) -> list[float]:
        weights: list[float] = (answers.weights[0] / UNIT).tolist()
        return weights

    def _is_forgotten(self, number: int) -> bool:
        return not self._pool.best().totals[number]

    def _widen(self, y: Label) -> None:
        raise ValueError(
            f"expected one of the labels {', '.join(map(repr, self._labels))}, as BestSplit tells two apart, got "
            f"{y!r}; use TreeClassifier or ForgettingTreeClassifier"
        )

    def _by_label(self, units: tuple[int, int]) -> dict[Label, float]:
        return {label: units[number] * PER_UNIT for label, number in self._labels.items()}

    def best(self) -> Best:
        """Return the best split of the examples that are live; ties go to the first name by its bytes."""
        self._settle()
        if self._pool is None:
            return Best(None, 0.0, 0.0, None, 0.0, 0.0, {}, {})
        best = self._pool.best()
        n, whole = self._whole(best.totals)
        size = n or 1.0
        absent = (best.totals[0] - best.present[0], best.totals[1] - best.present[1])
        return Best(
            feature=None if best.feature is None else decoded(best.feature),
            gain=0.0 if best.feature is None else (whole - best.score) / size,
            score=best.score / size,
            runner_up=None if best.runner_up is None else decoded(best.runner_up),
            runner_up_gain=0.0 if best.runner_up is None else (whole - best.runner_up_score) / size,
            n=n,
            absent=self._by_label(absent),
            present=self._by_label(best.present),
        )

    def top(self, k: int = 10) -> list[Ranked]:
        """Return the `k` best features, the best first."""
        self._settle()
        if self._pool is None:
            return []
        n, whole = self._whole(self._pool.best().totals)
        return [
            Ranked(decoded(row.feature), (whole - row.score) / n, self._by_label(row.present))
            for row in self._pool.top(0, k)
        ]

    def _whole(self, totals: tuple[int, int]) -> tuple[float, float]:
        """Return the weight of all examples, and that times their impurity."""
        weights = [each * PER_UNIT for each in totals]
        return sum(weights), class_impurity(self.criterion, weights)

    def to_text(self) -> str:
        """Return the best split, and what comes behind it, as text."""
        rows = [f"{row.gain:.4f}  {word(row.feature)}  {row.present}" for row in self.top()]
        return "\n".join([repr(self), *rows]) if rows else text(repr(self), [])


class TreeRegressor(_Drawn, Regressor):
    """A regression tree that grows with a stream: a Hoeffding tree for labels that are numbers.

    Parameters
    ----------
    grace_period, split_confidence, tie_threshold, max_depth, features
        As of `TreeClassifier`.
    leaf_prediction : str
        How a leaf predicts: by the ``mean`` of its labels; ``linear``, by a linear model of the features that are
        present, within the labels seen; ``adaptive``, by whichever was less wrong of late.

    Examples
    --------
    >>> from algorithms import TreeRegressor
    >>> model = TreeRegressor(grace_period=20)
    >>> for t in range(200):
    ...     model.learn_one({"x": t % 10}, 5.0 if t % 10 > 4 else 1.0)
    >>> model.predict_one({"x": 8}), model.predict_one({"x": 2})
    (5.0, 1.0)
    """

    def __init__(
        self,
        grace_period: int = 200,
        split_confidence: float = 1e-7,
        tie_threshold: float = 0.05,
        max_depth: int | None = None,
        features: str = "auto",
        leaf_prediction: str = "mean",
    ) -> None:
        self.grace_period = grace_period
        self.split_confidence = split_confidence
        self.tie_threshold = tie_threshold
        self.max_depth = max_depth
        self.features = features
        self.leaf_prediction = leaf_prediction
        self._begin()

    def _check(self) -> None:
        check_regression(self)

    def _made(self, numeric: bool) -> RegressionPool:
        return regression_pool(self, numeric, names=True)

    def unlearn_one(self, *_: Any, **__: Any) -> Never:
        """Raise NotImplementedError: this tree only grows."""
        raise _cannot_forget("TreeRegressor", "ForgettingTreeRegressor")

    def _nodes(self) -> list[Node]:
        tree = self._tree()
        return [] if tree is None else number_nodes(tree)


def regression_pool(model: Any, numeric: bool, *, names: bool) -> RegressionPool:
    """Return the pool of a model with the parameters of `TreeRegressor`."""
    return RegressionPool(
        predict=model.leaf_prediction,
        grace_period=int(model.grace_period),
        split_confidence=float(model.split_confidence),
        tie_threshold=float(model.tie_threshold),
        default=kind_of(numeric),
        names=names,
        max_depth=depth_of(model.max_depth),
    )


class ForgettingTreeRegressor(_Drawn, Forgetting, Regressor):
    """A regression tree of the examples that are live: learned, and neither unlearned nor older than the window.

    Labels are numbers in a declared range, rounded to a declared unit, so that sums are exact and what was
    unlearned leaves nothing. A leaf predicts the mean of its labels. Weights are whole numbers.

    Parameters
    ----------
    label_range : (float, float)
        The least and the greatest label.
    label_unit : float
        Labels are told apart to this unit; 1 to 2^40 of them are in the range. A range of few units has room for
        more examples.
    epsilon, window, min_examples, max_depth, features
        As of `ForgettingTreeClassifier`, with the variance in the place of the criterion.

    Examples
    --------
    >>> from algorithms import ForgettingTreeRegressor
    >>> model = ForgettingTreeRegressor(label_range=(0, 500), label_unit=0.01, epsilon=0)
    >>> model.learn_one(["airport"], 52.5)
    >>> model.learn_one(["short"], 7.5, id="ride 2")
    >>> model.learn_one(["short", "night"], 9.5)
    >>> model.predict_one(["short"]), model.predict_one(["airport"])
    (7.5, 52.5)
    >>> model.unlearn_one(id="ride 2")  # by its id
    >>> model.unlearn_one(["airport"], 52.5)  # or by value
    >>> model.predict_one(["short"])
    9.5
    """

    _MESSAGES = NUMBER_MESSAGES

    def __init__(
        self,
        label_range: tuple[float, float] = LABEL_RANGE,
        label_unit: float = LABEL_UNIT,
        epsilon: float = 0.1,
        window: int | None = None,
        min_examples: int = 1,
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.label_range = label_range
        self.label_unit = label_unit
        self.epsilon = epsilon
        self.window = window
        self.min_examples = min_examples
        self.max_depth = max_depth
        self.features = features
        self._begin()

    def _check(self) -> None:
        check_forgetting_numbers(self)
        self._scale = scale_of(self)
        self._heavy = variance.make(self._scale.whole - 2).most_weight * UNIT

    def _made(self, numeric: bool) -> DynamicNumberPool:
        return forgetting_number_pool(self, numeric, names=True)

    def _number(self, y: Any) -> float:
        label = super()._number(y)
        if not self._scale.holds(label):
            raise not_in_range(self, label)
        return label

    @property
    def _any_label(self) -> float:
        return self._scale.low

    def _units(self, w: Any) -> int:
        units = super()._units(w)
        if units % UNIT:
            raise ValueError(f"expected a weight that is a whole number, got {w!r}")
        return units

    def _nodes(self) -> list[Node]:
        tree = self._tree()
        return [] if tree is None else number_nodes(tree)


def scale_of(model: Any) -> Scale:
    """Return the scale of the labels of a model; raise ValueError where its parameters make none."""
    given = model.label_range
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(f"expected a label_range of the least and the greatest label, got {given!r}")
    low, high = given
    return Scale(low, high, model.label_unit)


def not_in_range(model: Any, label: float) -> ValueError:
    """Return what is said of a label that is not in the range."""
    low, high = model.label_range
    return ValueError(
        f"expected a label from {low} to {high}, got {label}; make the model with a label_range that holds all of "
        "them"
    )


def check_forgetting_numbers(model: Any) -> None:
    """Raise ValueError where a parameter of `ForgettingTreeRegressor` is none."""
    _check_live(model)
    scale_of(model)


def forgetting_number_pool(model: Any, numeric: bool, *, names: bool) -> DynamicNumberPool:
    """Return the pool of a model with the parameters of `ForgettingTreeRegressor`."""
    return DynamicNumberPool(
        scale_of(model),
        **_near(model),
        min_examples=int(model.min_examples),
        max_depth=depth_of(model.max_depth),
        default=kind_of(numeric),
        window=model.window,
        names=names,
    )
