"""The settings of models: a class for each kind, told apart by `kind`.

What is here is known to the worker by its line in `worker.models`, as is a kind whose settings stand elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import (
    AliasChoices,
    Field,
    PlainValidator,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic.feasibility import DEFAULT, LEAST_WORK, UNBOUNDED_WITH, missing
from algorithms.forests.draws import BAGGINGS, MOST_PARTS, MOST_SEED, MOST_TREES, SUBSPACES, bag, share_of
from algorithms.regression.qo import LEAST_RADIUS
from algorithms.trees.gaussians import LARGEST_VALUE
from worker.settings.by_kind import ByKind, kind_of
from worker.settings.problems import expected
from worker.settings.values import Cadence, Due, Section, Span, TimeSpan, TopicName, Window

if TYPE_CHECKING:
    from algorithms.trees.policies import Policy


def _feature_name(name: object) -> int | str:
    if (type(name) is int and 0 <= name < 1 << 32) or (isinstance(name, str) and name):
        return name
    raise expected("a feature: an id from 0 to 4294967295, or a name")


ClassName: TypeAlias = int | str
FeatureName: TypeAlias = Annotated[int | str, PlainValidator(_feature_name)]
FeatureKind: TypeAlias = Literal["binary", "nominal", "numeric", "quantised"]
Criterion: TypeAlias = Literal["entropy", "gini", "sqrt", "variance"]
Bound: TypeAlias = Annotated[float, Ge(-LARGEST_VALUE), Le(LARGEST_VALUE)]
_IMPLIED: dict[str, Criterion] = {"updent": "entropy", "updgini": "gini", "baseent": "entropy", "basegini": "gini"}
_APPROXIMATE = ("updent", "updgini")


def _also(name: str, alias: str) -> Any:
    """Return what lets a setting be called by another name, too; in messages it has its own."""
    return Field(validation_alias=AliasChoices(name, alias))


class ModelSettings(Section):
    """What every kind of model is told; each has a class of its own with what is its own.

    Attributes
    ----------
    ELSEWHERE : mapping of str to str
        Settings that other kinds have and this one has not, and why: for whoever looks for them here.
    LATER : tuple of str
        Settings that came when there were checkpoints of the kind already. Where they are not used (null, false)
        the fingerprint is the one from before.
    RECORDED : mapping of str to str
        How fingerprints and results call settings that were renamed since.
    WHEN : tuple of paths
        Settings that say when and what a model writes, or where it begins. They change from an offset on and the
        model goes on with its state; with another value of any other setting it is another model.
    HOW : tuple of str
        Settings that say how a model is run. Nothing that it writes depends on them, so neither fingerprints nor
        epochs tell of them.
    SAMPLE : mapping
        Settings beside `kind`, `input`, `classes` and `features` with which some hundred events make the kind do
        all that it can. Every suite over all kinds runs a model of these, so a kind is tested once it is
        registered.
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {}
    LATER: ClassVar[tuple[str, ...]] = ()
    RECORDED: ClassVar[Mapping[str, str]] = {}
    WHEN: ClassVar[tuple[tuple[str, ...], ...]] = (("start",), ("shadow",), ("emit",), ("evaluate", "emit"))
    HOW: ClassVar[tuple[str, ...]] = ()
    SAMPLE: ClassVar[Mapping[str, Any]] = {}

    kind: str
    input: TopicName
    # Where a model begins that is new in a group: with what its topic still has, or at the committed offset; the
    # group's start unless told otherwise.
    start: Literal["earliest", "latest"] | None = None
    shadow: bool = False  # learns and is evaluated, and writes evaluations alone
    late_labels: bool = True  # learns examples whose labels come later, where its topic has `pending`

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return ""

    @property
    def names_all_features(self) -> bool:
        """Whether features are named, and nothing is said of others."""
        return False

    def relevant(self) -> dict[str, Any]:
        """Return what results depend on, for the fingerprint."""
        told = self.model_dump(mode="json", exclude={"start", "shadow", *self.HOW})
        later = ("expire", *self.LATER)
        if self.late_labels:
            del told["late_labels"]
        return {self.recorded(name): value for name, value in told.items() if value or name not in later}

    def run_as(self, other: ModelSettings | None) -> Self:
        """Return the same settings, run as those of another model of the kind are."""
        if not self.HOW or type(other) is not type(self):
            return self
        return self.model_copy(update={name: getattr(other, name) for name in self.HOW})

    @classmethod
    def recorded(cls, name: str) -> str:
        """Return how fingerprints and results call a setting."""
        return cls.RECORDED.get(name, name)


def _policies() -> Mapping[str, Policy]:
    from algorithms.trees.policies import POLICIES  # with all their kernels, which other kinds do without

    return POLICIES


def _registered() -> dict[str, type[ModelSettings]]:
    from worker.models import KINDS  # not above: models know their settings

    return {name: kind.settings for name, kind in KINDS.items()}


AnyModelSettings: TypeAlias = Annotated[ModelSettings, ByKind(_registered)]


class ExampleSettings(ModelSettings):
    """A model of examples: features, and a label that is a class or a number."""

    features: Literal["ids", "names"]
    expire: TimeSpan | None = None  # a key that had no event for so long is dropped

    @property
    def feature_kinds(self) -> tuple[Kind, Mapping[int | bytes, Kind]]:
        """The kind of features that are not named, and of those that are: any number, where a model takes any."""
        return Kind.NUMERIC, {}


class ClassifierSettings(ExampleSettings):
    """A model of examples that belong to classes.

    Attributes
    ----------
    MOST_CLASSES : int
        How many there may be.
    SOME_CLASSES : str
        What is expected of them.
    """

    MOST_CLASSES: ClassVar[int] = 1_000
    SOME_CLASSES: ClassVar[str] = "2 to 1000 different classes, all integers or all strings"

    classes: tuple[ClassName, ...]  # label 0, label 1 and so on

    @field_validator("classes", mode="before")
    @classmethod
    def _different_classes(cls, value: Any) -> Any:
        kinds = {type(name) for name in value} if isinstance(value, list | tuple) else set()
        if kinds not in ({int}, {str}) or not 2 <= len(set(value)) == len(value) <= cls.MOST_CLASSES:
            raise expected(cls.SOME_CLASSES)
        if kinds == {int} and not all(-(1 << 63) <= name < 1 << 63 for name in value):
            raise expected("classes that fit into 64 bits")
        return tuple(value)

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return f"{len(self.classes)} classes"


class EmitSettings(Section):
    """What a model writes without being asked, and when."""

    splits: Due = Cadence("change")
    snapshots: Due = Cadence("never")


class AttributeSettings(Section):
    """What the values of features are."""

    default: FeatureKind = "binary"  # of all features that are not named below
    binary: tuple[FeatureName, ...] = ()  # present or absent
    nominal: tuple[FeatureName, ...] = ()  # a category, as a whole number from 0 to 4294967295
    numeric: tuple[FeatureName, ...] = ()  # a number, observed by a normal distribution for each class
    quantised: tuple[FeatureName, ...] = ()  # a number, counted in slots as wide as the next two say
    # The width of the slots of all of them. Without one each has its own in each leaf, a share of the standard
    # deviation of its first values there: 0.5 unless told otherwise.
    radius: Annotated[float, Gt(0.0), Le(LARGEST_VALUE)] | None = None
    radius_fraction: Annotated[float, Gt(0.0), Le(100.0)] | None = Field(default=None, validate_default=True)

    @field_validator("radius", "radius_fraction")
    @classmethod
    def _only_where_it_is_used(cls, width: float | None, info: ValidationInfo) -> float | None:
        slots = info.data.get("default") == "quantised" or bool(info.data.get("quantised"))
        if width is not None and not slots:
            raise expected(f"no {info.field_name}, which only quantised features have a use for")
        if info.field_name == "radius" or not slots:
            return width
        radius = info.data.get("radius")
        if width is not None and radius is not None:
            raise expected("no radius_fraction beside a radius, which is that of all quantised features")
        return 0.5 if width is None and radius is None else width

    @property
    def kinds(self) -> dict[int | bytes, Kind]:
        """The kind of each feature that is named, in the words of the pool."""
        return {
            name.encode() if isinstance(name, str) else name: kind
            for kind in Kind
            for name in getattr(self, kind.name.lower())
        }

    def check_space(self, features: str | None) -> None:
        """Raise an error unless each feature is named once, as ids or names; None: nobody knows which."""
        named = [*self.binary, *self.nominal, *self.numeric, *self.quantised]
        wanted = int if features == "ids" else str
        if features is not None and not all(type(name) is wanted for name in named):
            raise expected(f"features as {features}, as 'features' says")
        if len(set(named)) < len(named):
            raise expected("each feature once")

    def check_two_kinds(self, kind: str, features: str | None) -> None:
        """Raise an error unless features can be taken as binary and numeric, as those of a kind of model."""
        if self.default == "nominal" or self.nominal:
            if features == "ids":
                raise expected(
                    f"features: names, which nominal features need in models of kind '{kind}': a category is the "
                    "binary feature FEATURE=CATEGORY"
                )
            if self.default in ("numeric", "quantised"):
                raise expected(
                    "numeric features in a list, and binary or nominal as the default, beside nominal features "
                    f"of kind '{kind}', whose categories are binary features"
                )
        if (self.default == "quantised" or self.quantised) and self.radius is None:
            raise expected(f"a radius beside quantised features of kind '{kind}', which rounds to multiples of it")

    def check_not_quantised(self, kind: str) -> None:
        """Raise an error where a feature is quantised, in a kind of model where the observer says how to count."""
        if self.default == "quantised" or self.quantised:
            raise expected(
                f"numeric features in place of quantised ones: 'observer: qo' of kind '{kind}' has slots"
            )

    def relevant(self) -> dict[str, Any]:
        """Return what results depend on, for the fingerprint; what came later is left out where it is not used."""
        told = self.model_dump(mode="json")
        return {
            name: value
            for name, value in told.items()
            if value or name not in ("quantised", "radius", "radius_fraction")
        }

    @property
    def are_complete(self) -> bool:
        """Whether features are named, and nothing is said of others."""
        return bool(self.kinds) and "default" not in self.model_fields_set

    @property
    def only_binary(self) -> bool:
        """Whether all features are."""
        return self.default == "binary" and not self.nominal and not self.numeric and not self.quantised


_NO_CLASSES = object()  # as the classes of labels that are numbers: what no file can hold


class TargetSettings(ClassifierSettings):
    """A model of examples whose labels are classes or, where the settings say so, numbers."""

    target: Literal["class", "number"] = "class"  # what labels are; numbers have a range instead of classes
    label_range: tuple[Bound, Bound] | None = None  # of labels that are numbers: the least and the greatest
    label_unit: Annotated[float, Gt(0.0), Le(LARGEST_VALUE)] | None = None  # to which they are told apart

    @model_validator(mode="before")
    @classmethod
    def _without_classes(cls, data: Any) -> Any:
        """Let labels that are numbers have no classes, and a criterion of their own."""
        if not isinstance(data, dict) or data.get("target") != "number":
            return data
        told = {"criterion": "variance", "label_range": None, "label_unit": None, **data}
        return told | {"classes": data.get("classes") or _NO_CLASSES}

    @field_validator("classes", mode="before")
    @classmethod
    def _different_classes(cls, value: Any) -> Any:
        return () if value is _NO_CLASSES else super()._different_classes(value)

    @field_validator("target")
    @classmethod
    def _has_no_classes(cls, target: str, info: ValidationInfo) -> str:
        if target == "number" and info.data.get("classes"):
            raise expected("'class', or no classes beside it: labels that are numbers have a label_range")
        return target

    @field_validator("label_range", "label_unit")
    @classmethod
    def _of_numbers(cls, told: Any, info: ValidationInfo) -> Any:
        target = info.data.get("target")
        if target == "class" and told is not None:
            raise expected("null, or beside it 'target: number'")
        if target == "number" and told is None:
            is_range = info.field_name == "label_range"
            raise expected("the least and the greatest label, as in [0, 500]" if is_range else "a number, as 0.01")
        if info.field_name == "label_range" and told is not None and not told[0] < told[1]:
            raise expected("the least label and then a greater one, as in [0, 500]")
        bounds = info.data.get("label_range")
        if info.field_name == "label_unit" and told is not None and bounds is not None:
            low, high = bounds
            try:
                Scale(low, high, told)
            except ValueError:
                raise expected(f"a unit of which 1 to 2^40 are in the range from {low:g} to {high:g}") from None
        return told

    @field_validator("attributes", "label_range", mode="before", check_fields=False)
    @classmethod
    def _as_tuples(cls, told: Any) -> Any:
        """Take lists for tuples: what a validator of the whole section returned is no JSON any more."""
        if isinstance(told, list):
            return tuple(told)
        if not isinstance(told, dict):
            return told
        return {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}

    @field_validator("criterion", check_fields=False)
    @classmethod
    def _agrees_with_target(cls, criterion: str, info: ValidationInfo) -> str:
        target = info.data.get("target")
        if target is not None and (target == "number") != (criterion == "variance"):
            raise expected("'variance', as labels are numbers" if target == "number" else "one of classes")
        return criterion

    @property
    def scale(self) -> Scale:
        """The range of labels that are numbers, and their unit."""
        assert self.label_range is not None
        assert self.label_unit is not None
        return Scale(*self.label_range, self.label_unit)

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return "numbers" if self.target == "number" else super().summary

    def relevant(self) -> dict[str, Any]:
        """Return what results depend on, for the fingerprint."""
        told = super().relevant()
        if self.target == "class":
            del told["target"]  # it came later
        return told


class SplitSettings(TargetSettings):
    """A model that keeps the best split of each key's examples."""

    LATER: ClassVar[tuple[str, ...]] = ("alpha", "attributes", "label_range", "label_unit")
    SAMPLE: ClassVar[Mapping[str, Any]] = {
        "window": 20,
        "emit": {"splits": {"every": 7}, "snapshots": {"every": 25}},
    }

    kind: Literal["split"]
    attributes: AttributeSettings | None = None  # null: all features are binary
    finder: Literal["exact", "updent", "updgini", "baseent", "basegini"] = "exact"
    criterion: Criterion = "entropy"  # updent and baseent imply entropy, updgini and basegini gini
    # Of updent and updgini, whose splits score at most (1 + alpha) times the best: 0.1 unless told otherwise.
    alpha: Annotated[float, Ge(0.001), Le(100.0)] | None = None
    window: Window | None = None  # the last W examples of each key, or those of a time span
    verify_deletes: bool = False  # keep every live example, so that a delete by value is checked exactly
    on_duplicate: Literal["reject", "ignore", "replace"] = "reject"  # an id that is inserted twice
    emit: EmitSettings = EmitSettings()

    @field_validator("attributes")
    @classmethod
    def _of_the_space(cls, attributes: AttributeSettings | None, info: ValidationInfo) -> AttributeSettings | None:
        if attributes is not None:
            attributes.check_space(info.data.get("features"))
            if attributes.default == "quantised" or attributes.quantised:
                raise expected("no quantised features, kind 'split' looks at each value; declare them as numeric")
            if info.data.get("target") == "number" and not attributes.only_binary:
                raise expected("binary features only, as labels are numbers")
        return attributes

    @field_validator("finder")
    @classmethod
    def _serves(cls, finder: str, info: ValidationInfo) -> str:
        if finder != "exact" and _is_mixed(info.data):
            raise expected(f"'exact', {_ALONE}")
        if finder != "exact" and info.data.get("target") == "number":
            raise expected("'exact', as labels are numbers")
        return finder

    @field_validator("verify_deletes")
    @classmethod
    def _always(cls, verify: bool, info: ValidationInfo) -> bool:
        if verify and _is_mixed(info.data):
            raise expected(f"false: {_MIXED} all live examples are kept, so deletes are always verified")
        return verify

    @model_validator(mode="before")
    @classmethod
    def _follow_the_finder(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("finder"), str) or data.get("target") == "number":
            return data
        implied: dict[str, Any] = {"criterion": _IMPLIED.get(data["finder"], "entropy")}
        if data["finder"] in _APPROXIMATE:
            implied["alpha"] = 0.1
        return {**implied, **data}

    @field_validator("criterion")
    @classmethod
    def _agree_with_finder(cls, criterion: Criterion, info: ValidationInfo) -> Criterion:
        finder = info.data.get("finder", "")
        implied = _IMPLIED.get(finder, criterion)
        if criterion != implied:
            raise expected(f"'{implied}', which the finder '{finder}' implies")
        if criterion == "sqrt" and _is_mixed(info.data):
            raise expected(f"'entropy' or 'gini', {_ALONE}")
        return criterion

    @field_validator("alpha")
    @classmethod
    def _only_where_it_is_used(cls, alpha: float | None, info: ValidationInfo) -> float | None:
        finder = info.data.get("finder", _APPROXIMATE[0])
        if finder in _APPROXIMATE and alpha is None:
            raise expected("a number from 0.001 to 100")
        if finder not in _APPROXIMATE and alpha is not None:
            raise expected(f"no alpha, which the finder '{finder}' has no use for (updent and updgini have)")
        return alpha

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        classes = f", {super().summary}" if self.is_mixed else ""
        return f"{self.finder}, {self.criterion}{classes}{_of_the_last(self.window)}"

    @property
    def is_mixed(self) -> bool:
        """Whether there are more than two classes, or features that are not binary."""
        return _is_mixed({"classes": self.classes, "attributes": self.attributes})

    @property
    def names_all_features(self) -> bool:
        """Whether there are attributes without a default."""
        attributes = self.attributes
        return attributes is not None and attributes.are_complete

    @property
    def feature_kinds(self) -> tuple[Kind, Mapping[int | bytes, Kind]]:
        """As the attributes say; without any all are binary."""
        if self.attributes is None:
            return Kind.BINARY, {}
        return Kind[self.attributes.default.upper()], self.attributes.kinds

    def relevant(self) -> dict[str, Any]:
        """Return what results depend on, for the fingerprint."""
        told = super().relevant()
        if self.attributes is None:
            return told
        if not self.is_mixed:  # features are binary, named or not
            return {name: value for name, value in told.items() if name != "attributes"}
        return told | {"attributes": self.attributes.relevant()}


_MIXED = "with more than two classes, or features that are not binary,"
_ALONE = "as others serve two classes and binary features"


def _is_mixed(told: Mapping[str, Any]) -> bool:
    """Return whether what is told of a model of splits asks for more than two classes and binary features."""
    attributes = told.get("attributes")
    return len(told.get("classes", ())) > 2 or (attributes is not None and not attributes.only_binary)


def _of_the_last(window: int | Span | None) -> str:
    if isinstance(window, Span):
        return f", last {window.words}"
    return f", last {window} examples" if window else ""


class DriftSettings(Section):
    """Right and wrong predictions are watched: a record tells when the error has risen, by ADWIN."""

    delta: Annotated[float, Gt(0.0), Lt(1.0)] = 0.002  # how likely a look finds a change where there is none


class PrequentialSettings(Section):
    """Every example is predicted before it is learned; how good that was is measured over all keys together."""

    window: Annotated[int, Ge(1), Le(1 << 16)] = 1_000  # the last examples of a partition, beside all of them
    emit: Due = Cadence("every", 1_000)  # when a record tells of it; counted over the keys of a partition

    @field_validator("emit")
    @classmethod
    def _no_change(cls, emit: Cadence) -> Cadence:
        if emit.kind == "change":
            raise expected("'never', {every: N} or {every_ms: T} with a number from 1", ("never",))
        return emit


class EvaluateSettings(PrequentialSettings):
    """The same of predictions that are right or wrong."""

    drift: DriftSettings | None = DriftSettings()  # null: nobody watches

    @field_validator("drift", mode="before")
    @classmethod
    def _off(cls, drift: object) -> object:
        return None if drift is False else drift

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what came later where it is as it is unless told: fingerprints stay as they were."""
        written: dict[str, Any] = write(self)
        if self.drift == DriftSettings():
            written.pop("drift", None)  # where defaults are left out it is not there
        return written


class TreesSettings(ClassifierSettings):
    """What all kinds of classification trees are told."""

    attributes: AttributeSettings = AttributeSettings()
    evaluate: EvaluateSettings | None = None

    @field_validator("attributes")
    @classmethod
    def _of_the_space(cls, attributes: AttributeSettings, info: ValidationInfo) -> AttributeSettings:
        attributes.check_space(info.data.get("features"))
        return attributes

    @property
    def names_all_features(self) -> bool:
        """Whether there are attributes without a default."""
        return self.attributes.are_complete

    @property
    def feature_kinds(self) -> tuple[Kind, Mapping[int | bytes, Kind]]:
        """As the attributes say."""
        return Kind[self.attributes.default.upper()], self.attributes.kinds

    def relevant(self) -> dict[str, Any]:
        """Return what results depend on, for the fingerprint."""
        return super().relevant() | {"attributes": self.attributes.relevant()}


def _others_than(policy: str, policies: Mapping[str, Policy], told: Mapping[str, Any]) -> str:
    """Return what a policy does not serve of what is told, and of `policies` those that do; empty: it serves."""
    if not policies[policy].only_binary:
        return ""
    *most, last = (name for name, each in policies.items() if not each.only_binary)
    others = f"{', '.join(most)} or {last}"
    if len(told.get("classes", (0, 1))) != 2:
        return f"more than two classes ({others})"
    if not told.get("attributes", AttributeSettings()).only_binary:
        return f"nominal and numeric features ({others})"
    return ""


def _checked_range(local: bool, told: Mapping[str, Any]) -> bool:
    """Return whether the range is local; raise an error where it cannot be."""
    if local and told.get("criterion") == "gini":
        raise expected("false with the criterion gini, whose range is 1 whatever the classes")
    return local


class TreeEmitSettings(Section):
    """What a tree writes without being asked, and when."""

    splits: Literal["change", "never"] = "change"  # a record for each split that is made
    snapshots: Due = Cadence("never")  # of the key's tree; on change: after every split


class TreeSettings(TreesSettings):
    """A model that grows a classification tree from each key's examples. It cannot forget."""

    # What a model of kind `split` has and a tree has not, and why.
    ELSEWHERE: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("window", "verify_deletes", "on_duplicate"),
        "a tree cannot forget; kinds 'dynamic-tree' and 'split' can",
    )

    LATER: ClassVar[tuple[str, ...]] = ("candidates", "drop_poor", "inherit", "local_range")
    RECORDED: ClassVar[Mapping[str, str]] = {
        "grace_period": "period",
        "split_confidence": "delta",
        "tie_threshold": "tau",
    }
    SAMPLE: ClassVar[Mapping[str, Any]] = {
        "policy": "periodic",
        "grace_period": 10,
        "split_confidence": 0.3,
        "tie_threshold": 0.3,
        "on_delete": "ignore",
        "evaluate": {"window": 20, "emit": {"every": 15}},
        "emit": {"snapshots": {"every": 25}},
    }

    kind: Literal["tree"]
    # When a leaf tries to split: every `grace_period` examples as in VFDT; OSM, IMAC, EFDT, HAT, or these two when
    # IMAC would; or by the exact index, which is never late and serves two classes and binary features.
    policy: Literal["periodic", "osm", "imac", "efdt", "efdt-imac", "hat", "hat-imac", "exact"] = "imac"
    criterion: Literal["entropy", "gini"] = "entropy"
    predict: Literal["majority", "naive_bayes", "adaptive", "adaptive_present"] = "majority"
    grace_period: Annotated[int, Ge(1), Le(1 << 30), _also("grace_period", "period")] = 200  # n_min, eta of imac
    check_every: Annotated[int, Ge(1), Le(1 << 30)] = 200  # mu of imac, and of efdt's inner nodes
    # K of imac: how many features of a leaf it keeps the scores of; a tenth of them, from 5 to 10, unless given.
    candidates: Annotated[int, Ge(2), Le(1_000)] | None = None
    # How likely a split may be another than the best, and below which bound the best is taken all the same.
    split_confidence: Annotated[float, Gt(0.0), Lt(1.0), _also("split_confidence", "delta")] = 1e-7
    tie_threshold: Annotated[float, Ge(0.0), Le(1.0), _also("tie_threshold", "tau")] = 0.05
    max_depth: Annotated[int, Ge(1), Le(1 << 20)] = 1 << 20
    # The bound of a new leaf also counts the examples that its parent saw for it, as in MOA and river.
    inherit: bool = False
    # The range of the bound is that of the classes that a leaf has seen, as in MOA and river.
    local_range: bool = False
    # After an attempt that failed a leaf looks no more at features that are worse than the best by more than the
    # bound, and forgets their values.
    drop_poor: bool = False
    # Bytes in a partition for what leaves saw: where more would be needed those that promise least sleep.
    memory_limit: Annotated[int, Ge(1 << 20), Le(1 << 40)] | None = None
    on_delete: Literal["reject", "ignore"] = "reject"
    emit: TreeEmitSettings = TreeEmitSettings()

    @field_validator("policy")
    @classmethod
    def _serves(cls, policy: str, info: ValidationInfo) -> str:
        others = _others_than(policy, _policies(), info.data)
        if others:
            raise expected(f"a policy for {others}")
        return policy

    @field_validator("candidates")
    @classmethod
    def _are_of_imac(cls, candidates: int | None, info: ValidationInfo) -> int | None:
        policy = info.data.get("policy")
        if candidates is not None and policy is not None and not _policies()[policy].scores:
            having = ", ".join(name for name, each in _policies().items() if each.scores)
            raise expected(f"none with the policy {policy!r}, only {having} have candidates")
        return candidates

    @field_validator("local_range")
    @classmethod
    def _has_a_range_of_classes(cls, local: bool, info: ValidationInfo) -> bool:
        return _checked_range(local, info.data)

    @field_validator("drop_poor")
    @classmethod
    def _not_where_all_are_needed(cls, drop: bool, info: ValidationInfo) -> bool:
        policy = info.data.get("policy")
        if drop and policy is not None and not _policies()[policy].drops:
            raise expected(f"false with the policy {policy!r}, which needs all features")
        return drop

    @field_validator("memory_limit")
    @classmethod
    def _where_one_node_counts(cls, limit: int | None, info: ValidationInfo) -> int | None:
        policy = info.data.get("policy")
        if limit is not None and policy is not None and not _policies()[policy].limits:
            raise expected(f"none with the policy {policy!r}, where an example is counted in more than one node")
        return limit

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return f"{self.policy}, {self.criterion}, {super().summary}"


class DynamicEmitSettings(Section):
    """What a tree that forgets writes without being asked, and when."""

    snapshots: Due = Cadence("never")  # of the key's tree; on change: after a subtree was rebuilt


class ForgettingTreesSettings(TreesSettings):
    """What all kinds of trees of live examples are told."""

    # What other kinds have and this has not, and why.
    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "on_delete": "it takes deletes; a model of kind 'tree' does not",
        "verify_deletes": "all live examples are kept, so deletes are always verified",
        "finder": "a model of kind 'split' has one",
        **dict.fromkeys(("policy", "grace_period", "period", "check_every"), "a model of kind 'tree' has it"),
        **dict.fromkeys(("split_confidence", "delta", "tie_threshold", "tau"), "a model of kind 'tree' has it"),
    }

    LATER: ClassVar[tuple[str, ...]] = ("guarantee", "max_work")

    criterion: Literal["gini", "entropy"] = "gini"
    # A subtree of s examples is rebuilt after more than epsilon s inserts and deletes: 0 after each; 0.1, unless
    # `guarantee` or `beta` says when.
    epsilon: Annotated[float, Ge(0.0), Le(1_000.0)] | None = None
    min_examples: Annotated[int, Ge(1), Le(1 << 30)] = 1  # a node of at most so many is a leaf
    max_depth: Annotated[int, Ge(1), Le(1 << 20)] = 10
    alpha: Annotated[float, Ge(0.0), Le(1.0)] = 0.0  # a node with at most half this impurity is a leaf
    # Above 0: every split gains at most so much less than the best, after every event; epsilon must be small.
    beta: Annotated[float, Ge(0.0), Le(1.0)] = 0.0
    # 'exact': what a record looks through is what a batch learner builds from the live examples.
    guarantee: Literal["exact"] | None = None
    window: Window | None = None  # the last W examples of each key, or those of a time span
    on_duplicate: Literal["reject", "ignore", "replace"] = "reject"  # an id that is inserted twice
    # Entries of examples that an event may touch to rebuild subtrees of a tree; what is more is spread out.
    max_work: Annotated[int, Ge(LEAST_WORK), Le(1 << 40)] | None = None

    @field_validator("attributes")
    @classmethod
    def _of_two_kinds(cls, attributes: AttributeSettings, info: ValidationInfo) -> AttributeSettings:
        attributes.check_two_kinds(kind_of(cls), info.data.get("features"))
        return attributes

    @field_validator("beta")
    @classmethod
    def _kept_by_epsilon(cls, beta: float, info: ValidationInfo) -> float:
        beside = ("epsilon", "alpha", "min_examples", "criterion")
        if all(name in info.data for name in beside):  # else what is wrong with them is told already
            told = {name: info.data[name] for name in beside}
            needed = missing(beta=beta, **told) if told["epsilon"] is not None else None
            if needed is not None:
                raise expected(f"0, which promises nothing, or beside it {needed}")
        return beta

    @field_validator("guarantee")
    @classmethod
    def _alone(cls, guarantee: str | None, info: ValidationInfo) -> str | None:
        told = [name for name in ("epsilon", "beta") if info.data.get(name)]
        if guarantee is not None and (told or info.data.get("epsilon") is not None):
            raise expected(f"null, or no {' and no '.join(told or ['epsilon'])} beside it")
        return guarantee

    @field_validator("max_work")
    @classmethod
    def _where_rebuilds_are_bounded(cls, max_work: int | None, info: ValidationInfo) -> int | None:
        told = info.data
        by_looks = told.get("guarantee") is not None or (told.get("beta") and told.get("epsilon") is None)
        if max_work is not None and by_looks:
            raise expected(f"null {UNBOUNDED_WITH}")
        return max_work

    @model_validator(mode="after")
    def _by_the_clock(self) -> Self:
        if self.epsilon is None and self.guarantee is None and self.beta == 0.0:
            object.__setattr__(self, "epsilon", DEFAULT)
        return self

    @property
    def rebuilds(self) -> str:
        """When a subtree is rebuilt, in a few words."""
        if self.epsilon is not None:
            return f"epsilon {self.epsilon:g}"
        return self.guarantee or f"beta {self.beta:g}"

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return f"{self.rebuilds}, {self.criterion}, {super().summary}{_of_the_last(self.window)}"


class DynamicTreeSettings(ForgettingTreesSettings, TargetSettings):
    """A model that keeps a tree of each key's live examples. It forgets what is deleted."""

    SAMPLE: ClassVar[Mapping[str, Any]] = {
        "epsilon": 0.3,
        "max_depth": 4,
        "window": 40,
        "evaluate": {"window": 20, "emit": {"every": 25}},
        "emit": {"snapshots": {"every": 25}},
    }

    LATER: ClassVar[tuple[str, ...]] = (*ForgettingTreesSettings.LATER, "label_range", "label_unit")

    kind: Literal["dynamic-tree"]
    criterion: Literal["gini", "entropy", "variance"] = "gini"  # type: ignore[assignment]  # variance: of numbers
    emit: DynamicEmitSettings = DynamicEmitSettings()

    @model_validator(mode="before")
    @classmethod
    def _without_drift(cls, data: Any) -> Any:
        """Let predictions of numbers, which are not right or wrong, be evaluated without a watch for drift."""
        evaluate = data.get("evaluate") if isinstance(data, dict) else None
        if not isinstance(evaluate, dict) or data.get("target") != "number":
            return data
        return data | {"evaluate": {"drift": None, **evaluate}}

    @field_validator("evaluate")
    @classmethod
    def _of_numbers_without_drift(
        cls, evaluate: EvaluateSettings | None, info: ValidationInfo
    ) -> EvaluateSettings | None:
        if evaluate is not None and evaluate.drift is not None and info.data.get("target") == "number":
            raise expected("no drift, as labels are numbers: it watches predictions that are right or wrong")
        return evaluate

    @field_validator("alpha", "max_work", mode="before")
    @classmethod
    def _of_classes(cls, told: Any, info: ValidationInfo) -> Any:
        if told and info.data.get("target") == "number":
            nothing = "0" if info.field_name == "alpha" else "null"
            raise expected(f"{nothing}, as labels are numbers: {info.field_name} needs classes")
        return told


class ForestEmitSettings(Section):
    """What a forest writes without being asked, and when."""

    snapshots: Due = Cadence("never")  # of all trees of the key, a record for each at least

    @field_validator("snapshots")
    @classmethod
    def _no_change(cls, snapshots: Cadence) -> Cadence:
        if snapshots.kind == "change":
            raise expected(
                "'never', {every: N} or {every_ms: T} with a number from 1, as some tree always changes",
                ("never",),
            )
        return snapshots


class SampledSettings(ModelSettings):
    """What each tree of a forest sees, and how trees are run."""

    HOW: ClassVar[tuple[str, ...]] = ("threads",)

    trees: Annotated[int, Ge(1), Le(MOST_TREES)] = 10
    # How often an example weighs its weight in a tree: none, poisson:1 or poisson:6; k of T: it is in k trees.
    bagging: str = Field(default="poisson:6", validate_default=True)
    subspace: float | str = 0.6  # the share of the features that a tree sees, or 'sqrt of D'
    seed: Annotated[int, Ge(0), Le(MOST_SEED)] = 0  # another one, another forest
    threads: Annotated[int, Ge(1), Le(MOST_PARTS)] = 1  # how many run its trees; results are the same
    emit: ForestEmitSettings = ForestEmitSettings()

    @field_validator("bagging", mode="plain")
    @classmethod
    def _known_bagging(cls, bagging: Any, info: ValidationInfo) -> str:
        trees = info.data.get("trees")
        try:
            bag(trees or MOST_TREES, bagging)
        except ValueError:
            if trees is not None or not isinstance(bagging, str):  # else what is wrong with trees is told already
                there = f", where there are {trees} trees" if trees else ""
                raise expected(f"{BAGGINGS}{there}") from None
        told: str = bagging
        return told

    @field_validator("subspace", mode="plain")
    @classmethod
    def _known_subspace(cls, subspace: Any) -> float | str:
        try:
            share_of(subspace)
        except ValueError:
            raise expected(SUBSPACES) from None
        return subspace if isinstance(subspace, str) else float(subspace)

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return f"{self.trees} trees, {self.bagging}, subspace {self.subspace}, {super().summary}"


class ForestSettings(SampledSettings, ForgettingTreesSettings):
    """A model that keeps a forest of each key's live examples. It forgets what is deleted."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **ForgettingTreesSettings.ELSEWHERE,
        **dict.fromkeys(
            ("warning", "drift"), "a forest of trees that grow has it, with 'of: {kind: tree}' beside it"
        ),
        **dict.fromkeys(
            ("target", "label_range", "label_unit"),
            "the trees of a forest vote for classes; kind 'dynamic-tree' has it",
        ),
    }
    SAMPLE: ClassVar[Mapping[str, Any]] = {
        "trees": 3,
        "bagging": "poisson:1",
        "seed": 5,
        "threads": 2,
        "epsilon": 0.3,
        "max_depth": 4,
        "window": 40,
        "on_duplicate": "replace",
        "evaluate": {"window": 20, "emit": {"every": 25}},
        "emit": {"snapshots": {"every": 25}},
    }

    kind: Literal["forest"]


class MemberSettings(Section):
    """The trees of a forest that grow; they split sooner than a tree that is alone."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "check_every": "candidates are looked at every grace_period examples",
        **dict.fromkeys(("candidates", "drop_poor", "memory_limit"), "a tree that is alone has it"),
        **dict.fromkeys(("attributes", "evaluate", "on_delete", "emit"), "it stands beside 'of'"),
    }

    kind: Literal["tree"]
    policy: Literal["periodic", "osm", "imac", "exact"] = "periodic"
    criterion: Literal["entropy", "gini"] = "gini"
    predict: Literal["majority", "naive_bayes", "adaptive", "adaptive_present"] = "adaptive"
    grace_period: Annotated[int, Ge(1), Le(1 << 30)] = 10
    split_confidence: Annotated[float, Gt(0.0), Lt(1.0)] = 0.5
    tie_threshold: Annotated[float, Ge(0.0), Le(1.0)] = 0.05
    max_depth: Annotated[int, Ge(1), Le(1 << 20)] = 1 << 20
    inherit: bool = False
    local_range: bool = False

    @field_validator("kind", mode="before")
    @classmethod
    def _of_trees(cls, kind: Any) -> Any:
        if kind != "tree":
            raise expected("'tree' (a forest without 'of' is one of dynamic trees)")
        return kind

    @field_validator("local_range")
    @classmethod
    def _has_a_range_of_classes(cls, local: bool, info: ValidationInfo) -> bool:
        return _checked_range(local, info.data)


class GrowingForestSettings(SampledSettings, TreesSettings):
    """A model that grows a forest from each key's examples, and replaces trees that drift. It cannot forget."""

    # What other kinds have and this has not, and why.
    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("window", "verify_deletes", "on_duplicate"),
            "trees that grow cannot forget; a forest without 'of' can",
        ),
        **dict.fromkeys(
            ("epsilon", "beta", "guarantee", "alpha", "min_examples"),
            "a forest without 'of' has it, which forgets",
        ),
        **dict.fromkeys(MemberSettings.model_fields, "it is one of the settings in 'of'"),
        "max_work": "trees that grow are never rebuilt",
        "memory_limit": "a model of kind 'tree' has it",
    }
    SAMPLE: ClassVar[Mapping[str, Any]] = {
        "of": {"kind": "tree", "tie_threshold": 0.3},
        "trees": 3,
        "bagging": "poisson:1",
        "subspace": 0.8,
        "threads": 2,
        "warning": 0.9,
        "drift": 0.5,
        "on_delete": "ignore",
        "evaluate": {"window": 20, "emit": {"every": 15}},
        "emit": {"snapshots": {"every": 25}},
    }

    kind: Literal["forest"]
    of: MemberSettings
    # How likely a look at a tree's errors finds that they rose where they did not: at a warning another tree is
    # begun beside it, at a drift that one takes its place.
    warning: Annotated[float, Gt(0.0), Lt(1.0)] = 0.01
    drift: Annotated[float, Gt(0.0), Lt(1.0)] = 0.001
    on_delete: Literal["reject", "ignore"] = "reject"

    @field_validator("of")
    @classmethod
    def _serves(cls, of: MemberSettings, info: ValidationInfo) -> MemberSettings:
        others = _others_than(of.policy, {name: _policies()[name] for name in _IN_FORESTS}, info.data)
        if others:
            raise expected(f"trees with a policy for {others}")
        return of

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return f"{self.of.policy}, {self.of.criterion}, {super().summary}"


_IN_FORESTS = get_args(MemberSettings.model_fields["policy"].annotation)


class RegressionTreeSettings(ExampleSettings):
    """A model that grows a regression tree from each key's examples. Labels are numbers; it cannot forget."""

    LATER: ClassVar[tuple[str, ...]] = ("memory_limit",)

    # What other kinds have and this has not, and why.
    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "classes": "labels are numbers",
        "criterion": "splits reduce the variance of labels",
        **dict.fromkeys(
            ("window", "verify_deletes", "on_duplicate"),
            "a regression tree cannot forget; kind 'dynamic-tree' can, with 'target: number'",
        ),
        **dict.fromkeys(("target", "label_range", "label_unit"), "its labels are numbers of any size"),
    }
    RECORDED: ClassVar[Mapping[str, str]] = TreeSettings.RECORDED
    SAMPLE: ClassVar[Mapping[str, Any]] = {
        "grace_period": 10,
        "split_confidence": 0.3,
        "tie_threshold": 0.5,
        "attributes": {"default": "numeric"},
        "predict": "adaptive",
        "interval": 0.8,
        "on_delete": "ignore",
        "evaluate": {"window": 20, "emit": {"every": 15}},
        "emit": {"snapshots": {"every": 25}},
    }

    kind: Literal["regression-tree"]
    attributes: AttributeSettings = AttributeSettings()
    # How numeric features are observed: in slots, or value by value, whole or to some decimals.
    observer: Literal["qo", "ebst", "tebst"] = "qo"
    # Of qo: the width of the slots of all features. Without one each has its own in each leaf, a share of the
    # standard deviation of its first values there: 0.5 unless told otherwise.
    radius: Annotated[float, Ge(LEAST_RADIUS), Le(LARGEST_VALUE)] | None = None
    radius_fraction: Annotated[float, Gt(0.0), Le(100.0)] | None = Field(default=None, validate_default=True)
    decimals: Annotated[int, Ge(0), Le(15)] | None = Field(default=None, validate_default=True)  # of tebst
    # Slots or values that are kept of a feature in a leaf: 256 unless told otherwise, 65,536 with a radius, and
    # 4,096 of ebst and tebst.
    max_elements: Annotated[int, Ge(2), Le(1 << 20)] | None = Field(default=None, validate_default=True)
    # A leaf predicts the mean of its labels, by a linear model of present features, or by what was less wrong.
    predict: Literal["mean", "linear", "adaptive"] = "mean"
    # The share of labels that are to be within an interval around the prediction; null: there is no interval.
    interval: Annotated[float, Gt(0.0), Lt(1.0)] | None = None
    grace_period: Annotated[int, Ge(1), Le(1 << 30), _also("grace_period", "period")] = 200
    split_confidence: Annotated[float, Gt(0.0), Lt(1.0), _also("split_confidence", "delta")] = 1e-7
    tie_threshold: Annotated[float, Ge(0.0), Le(1.0), _also("tie_threshold", "tau")] = 0.05
    # 0: one leaf, as where a linear model of all examples is best.
    max_depth: Annotated[int, Ge(0), Le(1 << 20)] = 1 << 20
    # Bytes in a partition for what leaves saw: where more would be needed those that promise least sleep.
    memory_limit: Annotated[int, Ge(1 << 20), Le(1 << 40)] | None = None
    on_delete: Literal["reject", "ignore"] = "reject"
    evaluate: PrequentialSettings | None = None
    emit: TreeEmitSettings = TreeEmitSettings()

    @field_validator("attributes")
    @classmethod
    def _of_three_kinds(cls, attributes: AttributeSettings, info: ValidationInfo) -> AttributeSettings:
        attributes.check_not_quantised("regression-tree")
        attributes.check_space(info.data.get("features"))
        return attributes

    @field_validator("radius")
    @classmethod
    def _only_of_slots(cls, radius: float | None, info: ValidationInfo) -> float | None:
        observer = info.data.get("observer", "qo")
        if radius is not None and observer != "qo":
            raise expected(f"no radius, which the observer '{observer}' has no use for (qo has)")
        return radius

    @field_validator("radius_fraction")
    @classmethod
    def _only_without_a_radius(cls, fraction: float | None, info: ValidationInfo) -> float | None:
        observer, radius = info.data.get("observer", "qo"), info.data.get("radius")
        if fraction is not None and observer != "qo":
            raise expected(f"no radius_fraction, which the observer '{observer}' has no use for (qo has)")
        if fraction is not None and radius is not None:
            raise expected("no radius_fraction beside a radius, which is that of all features")
        return 0.5 if observer == "qo" and radius is None and fraction is None else fraction

    @field_validator("decimals")
    @classmethod
    def _only_of_truncated_values(cls, decimals: int | None, info: ValidationInfo) -> int | None:
        observer = info.data.get("observer", "tebst")
        if decimals is not None and observer != "tebst":
            raise expected(f"no decimals, which the observer '{observer}' has no use for (tebst has)")
        return 3 if observer == "tebst" and decimals is None else decimals

    @field_validator("max_elements")
    @classmethod
    def _as_many_as_are_needed(cls, most: int | None, info: ValidationInfo) -> int:
        if most is not None:
            return most
        if info.data.get("observer") != "qo":
            return 4_096
        return 256 if info.data.get("radius") is None else 1 << 16

    @property
    def observer_options(self) -> dict[str, Any]:
        """The observer's settings, in the words of the pool."""
        told = {
            "radius": self.radius,
            "fraction": self.radius_fraction,
            "decimals": self.decimals,
            "most": self.max_elements,
        }
        return {name: value for name, value in told.items() if value is not None}

    @property
    def summary(self) -> str:
        """How it learns, in a few words."""
        return f"{self.observer}, numbers" + ("" if self.predict == "mean" else f", {self.predict} leaves")

    @property
    def names_all_features(self) -> bool:
        """Whether there are attributes without a default."""
        return self.attributes.are_complete

    @property
    def feature_kinds(self) -> tuple[Kind, Mapping[int | bytes, Kind]]:
        """As the attributes say."""
        return Kind[self.attributes.default.upper()], self.attributes.kinds

    def relevant(self) -> dict[str, Any]:
        """Return what results depend on, for the fingerprint."""
        return super().relevant() | {"attributes": self.attributes.relevant()}
