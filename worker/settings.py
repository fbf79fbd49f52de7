"""The settings: one YAML file, `ANABRANCH_*` variables over it, checked into frozen typed values.

`load` is the way in; the classes below are the reference of what the file may hold.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

from annotated_types import Ge, Gt, Le, Lt
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from algorithms.cadence import Emit, When
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.kinds import Kind
from algorithms.trees.policies import POLICIES
from worker.codec.bounds import Bounds
from worker.log.kafka.properties import refused_properties
from worker.log.port import LogError
from worker.settings_file import Location, SettingsError, override, read_file
from worker.settings_problems import Conflict, conflicting, expected, explain


def _model_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise expected("a model name (a-z, 0-9, '_' and '-', at most 64, a letter or digit first)")
    return name


def _topic_name(name: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in (".", ".."):
        raise expected("a topic name (letters, digits, '.', '_' and '-', at most 249)")
    return name


def _feature_name(name: object) -> int | str:
    if (type(name) is int and 0 <= name < 1 << 32) or (isinstance(name, str) and name):
        return name
    raise expected("a feature: an id from 0 to 4294967295, or a name")


class Cadence(NamedTuple):
    """When something is written: on change, every n events of the key, every n ms of event time, or never."""

    kind: Literal["change", "every", "every_ms", "never"]
    n: int = 0  # events or milliseconds; 0 for the kinds without a number

    @property
    def due(self) -> Emit:
        """The same in the words of the pools."""
        return Emit(When[self.kind.upper()], max(self.n, 1))


def _cadence(value: object) -> Cadence:
    if isinstance(value, Cadence):
        return value
    if value == "change" or value == "never":
        return Cadence(value)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, n),) = value.items()
        if kind in ("every", "every_ms") and type(n) is int and n >= 1:
            return Cadence(kind, n)
    raise expected("'change', 'never', {every: N} or {every_ms: T} with a number from 1", ("change", "never"))


def _written(cadence: Cadence) -> str | dict[str, int]:
    return {cadence.kind: cadence.n} if cadence.n else cadence.kind


ModelName: TypeAlias = Annotated[str, AfterValidator(_model_name)]
TopicName: TypeAlias = Annotated[str, AfterValidator(_topic_name)]
Due: TypeAlias = Annotated[Cadence, PlainValidator(_cadence), PlainSerializer(_written)]

ClassName: TypeAlias = int | str
FeatureName: TypeAlias = Annotated[int | str, PlainValidator(_feature_name)]
FeatureKind: TypeAlias = Literal["binary", "nominal", "numeric", "quantised"]
_MOST_CLASSES = 1_000
*_MOST, _LAST = (name for name, policy in POLICIES.items() if not policy.only_binary)
_OTHERS = f"{', '.join(_MOST)} or {_LAST}"  # policies that are not for two classes and binary features only
Criterion: TypeAlias = Literal["entropy", "gini", "sqrt"]
_IMPLIED: dict[str, Criterion] = {"updent": "entropy", "updgini": "gini", "baseent": "entropy", "basegini": "gini"}
_APPROXIMATE = ("updent", "updgini")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SecretFile(_Section):
    """A value that is kept in a file of its own."""

    file: Path  # a relative path starts at the settings file

    @field_validator("file")
    @classmethod
    def _from_the_settings(cls, path: Path, info: ValidationInfo) -> Path:
        return _beside_the_file(path, info)

    def read(self, name: str) -> str:
        """Return the value of the property of that name, without the line break at its end."""
        try:
            return self.file.read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, ValueError) as error:
            raise LogError(
                f"{self.file}: expected a file with the value of the property {name!r}, in UTF-8 ({error}); "
                "check the path and its permissions"
            ) from error


class KafkaSettings(_Section):
    """A Kafka cluster, and this worker's place in its group."""

    bootstrap: Annotated[str, Field(min_length=1)]  # host:port, more after commas
    # Tells the workers of a group apart and stays the same over restarts: group.instance.id, and part of the
    # transactional.id. The host's name unless told otherwise; a StatefulSet's pods keep theirs.
    instance: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once"
    properties: Mapping[str, bool | int | float | str | SecretFile] = {}  # of librdkafka, as they are called there

    @property
    def name(self) -> str:
        """The instance, the default filled in."""
        return self.instance or socket.gethostname()

    def resolved(self) -> dict[str, bool | int | float | str]:
        """Return all properties, with those that are kept in files; raise `LogError` where one cannot be read."""
        read = {
            name: value.read(name) if isinstance(value, SecretFile) else value
            for name, value in self.properties.items()
        }
        return {"bootstrap.servers": self.bootstrap, **read}


class LogSettings(_Section):
    """Where the topics are: one of the two."""

    kafka: KafkaSettings | None = None
    embedded: Path | None = None  # the embedded log's file; a relative path starts at the settings file

    @field_validator("embedded")
    @classmethod
    def _from_the_settings(cls, path: Path | None, info: ValidationInfo) -> Path | None:
        return None if path is None else _beside_the_file(path, info)

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.kafka is None) == (self.embedded is None):
            raise expected("either kafka or embedded")
        return self


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("folder", "")) / path


class TopicSettings(_Section):
    """Where the results of one input topic go, and the checkpoints of its models."""

    output: TopicName | None = None  # <input>.out
    dead_letters: TopicName | None = None  # <input>.dead
    state: TopicName | None = None  # <input>.state


class EmitSettings(_Section):
    """What a model writes without being asked, and when."""

    splits: Due = Cadence("change")
    snapshots: Due = Cadence("never")


class SplitSettings(_Section):
    """A model that keeps the best split of each key's examples."""

    kind: Literal["split"]
    input: TopicName
    finder: Literal["exact", "updent", "updgini", "baseent", "basegini"] = "exact"
    criterion: Criterion = "entropy"  # updent and baseent imply entropy, updgini and basegini gini
    # Of updent and updgini, whose splits score at most (1 + alpha) times the best: 0.1 unless told otherwise.
    alpha: Annotated[float, Ge(0.001), Le(100.0)] | None = None
    classes: tuple[ClassName, ClassName]  # label 0, label 1
    features: Literal["ids", "names"]
    window: Annotated[int, Ge(1), Le(1 << 30)] | None = None  # the last W examples of each key
    verify_deletes: bool = False  # keep every live example, so that a delete by value is checked exactly
    on_duplicate: Literal["reject", "ignore", "replace"] = "reject"  # an id that is inserted twice
    emit: EmitSettings = EmitSettings()

    @model_validator(mode="before")
    @classmethod
    def _follow_the_finder(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("finder"), str):
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

    @field_validator("classes", mode="before")
    @classmethod
    def _two_classes(cls, value: Any) -> Any:
        return _classes(value, 2, "two different classes, both integers or both strings")


def _classes(value: Any, most: int, what: str) -> tuple[ClassName, ...]:
    """Return the classes of a model, 2 to `most`; `what` says so."""
    kinds = {type(name) for name in value} if isinstance(value, list | tuple) else set()
    if kinds not in ({int}, {str}) or not 2 <= len(value) <= most or len(set(value)) < len(value):
        raise expected(what)
    if kinds == {int} and not all(-(1 << 63) <= name < 1 << 63 for name in value):
        raise expected("classes that fit into 64 bits")
    return tuple(value)


class AttributeSettings(_Section):
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

    @property
    def only_binary(self) -> bool:
        """Whether all features are."""
        return self.default == "binary" and not self.nominal and not self.numeric and not self.quantised


class EvaluateSettings(_Section):
    """Every example is predicted before it is learned; how good that was is measured over all keys together."""

    window: Annotated[int, Ge(1), Le(1 << 16)] = 1_000  # the last examples of a partition, beside all of them
    emit: Due = Cadence("every", 1_000)  # when a record tells of it; counted over the keys of a partition

    @field_validator("emit")
    @classmethod
    def _no_change(cls, emit: Cadence) -> Cadence:
        if emit.kind == "change":
            raise expected("'never', {every: N} or {every_ms: T} with a number from 1", ("never",))
        return emit


class TreeEmitSettings(_Section):
    """What a tree writes without being asked, and when."""

    splits: Literal["change", "never"] = "change"  # a record for each split that is made
    snapshots: Due = Cadence("never")  # of the key's tree; on change: after every split


class TreeSettings(_Section):
    """A model that grows a classification tree from each key's examples. It cannot forget."""

    # What a model of kind `split` has and a tree has not, and why.
    ELSEWHERE: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("window", "verify_deletes", "on_duplicate"), "a tree cannot forget; a model of kind 'split' can"
    )

    kind: Literal["tree"]
    input: TopicName
    classes: tuple[ClassName, ...]  # label 0, label 1 and so on
    features: Literal["ids", "names"]
    attributes: AttributeSettings = AttributeSettings()
    # When a leaf tries to split: every `period` examples as in VFDT; OSM, IMAC, EFDT, HAT; or by the exact index,
    # which is never late and serves two classes and binary features.
    policy: Literal["periodic", "osm", "imac", "efdt", "hat", "exact"] = "imac"
    criterion: Literal["entropy", "gini"] = "entropy"
    predict: Literal["majority", "naive_bayes", "adaptive", "adaptive_present"] = "majority"
    period: Annotated[int, Ge(1), Le(1 << 30)] = 200  # n_min, eta of imac
    check_every: Annotated[int, Ge(1), Le(1 << 30)] = 200  # mu of imac, and of efdt's inner nodes
    delta: Annotated[float, Gt(0.0), Lt(1.0)] = 1e-7  # how likely a split may be another than the best
    tau: Annotated[float, Ge(0.0), Le(1.0)] = 0.05  # where the bound is below it the best split is taken
    max_depth: Annotated[int, Ge(1), Le(1 << 20)] = 1 << 20
    # The bound of a new leaf also counts the examples that its parent saw for it, as in MOA and river.
    inherit: bool = False
    # After an attempt that failed a leaf looks no more at features that are worse than the best by more than the
    # bound, and forgets their values.
    drop_poor: bool = False
    # Bytes in a partition for what leaves saw: where more would be needed those that promise least sleep.
    memory_limit: Annotated[int, Ge(1 << 20), Le(1 << 40)] | None = None
    on_delete: Literal["reject", "ignore"] = "reject"
    evaluate: EvaluateSettings | None = None
    emit: TreeEmitSettings = TreeEmitSettings()

    @field_validator("classes", mode="before")
    @classmethod
    def _some_classes(cls, value: Any) -> Any:
        return _classes(
            value, _MOST_CLASSES, f"2 to {_MOST_CLASSES} different classes, all integers or all strings"
        )

    @field_validator("attributes")
    @classmethod
    def _of_the_space(cls, attributes: AttributeSettings, info: ValidationInfo) -> AttributeSettings:
        named = [*attributes.binary, *attributes.nominal, *attributes.numeric, *attributes.quantised]
        wanted = int if info.data.get("features") == "ids" else str
        if "features" in info.data and not all(type(name) is wanted for name in named):
            raise expected(f"features as {info.data['features']}, as 'features' says")
        if len(set(named)) < len(named):
            raise expected("each feature once")
        return attributes

    @field_validator("policy")
    @classmethod
    def _serves(cls, policy: str, info: ValidationInfo) -> str:
        if POLICIES[policy].only_binary:
            if len(info.data.get("classes", (0, 1))) != 2:
                raise expected(f"a policy for more than two classes ({_OTHERS})")
            if not info.data.get("attributes", AttributeSettings()).only_binary:
                raise expected(f"a policy for nominal and numeric features ({_OTHERS})")
        return policy

    @field_validator("drop_poor")
    @classmethod
    def _not_where_all_are_needed(cls, drop: bool, info: ValidationInfo) -> bool:
        policy = info.data.get("policy")
        if drop and policy in POLICIES and not POLICIES[policy].drops:
            raise expected(f"false with the policy {policy!r}, which needs all features")
        return drop

    @field_validator("memory_limit")
    @classmethod
    def _where_one_node_counts(cls, limit: int | None, info: ValidationInfo) -> int | None:
        policy = info.data.get("policy")
        if limit is not None and policy in POLICIES and not POLICIES[policy].limits:
            raise expected(f"none with the policy {policy!r}, where an example is counted in more than one node")
        return limit


ModelSettings: TypeAlias = Annotated[SplitSettings | TreeSettings, Field(discriminator="kind")]


class TransactionSettings(_Section):
    """When outputs and offsets are committed: at whichever of these comes first."""

    # A broker aborts a transaction after transaction.timeout.ms, 60 s unless told otherwise.
    interval_ms: Annotated[int, Ge(1), Le(30_000)] = 250
    records: Annotated[int, Ge(1), Le(10_000_000)] = 5_000  # consumed
    bytes: Annotated[int, Ge(1), Le(1 << 30)] = 8_000_000  # consumed


class CheckpointSettings(_Section):
    """When a partition's state is written to the state topic, at whichever comes first, and how fast."""

    interval_ms: Annotated[int, Ge(1), Le(86_400_000)] = 60_000
    records: Annotated[int, Ge(1), Le(1 << 40)] = 1_000_000  # consumed: as many are replayed at most
    bytes_per_second: Annotated[int, Ge(1_000), Le(1 << 40)] = 20_000_000


class MetricsSettings(_Section):
    """The page of metrics, health and status."""

    port: Annotated[int, Ge(0), Le(65_535)] | None = 9464  # 0 is any free port, null no page
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    stall_seconds: Annotated[float, Ge(0.1), Le(86_400)] = 30.0  # a loop silent for longer is not alive


class LoggingSettings(_Section):
    """What the worker says about itself."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "text", "json"] = "auto"  # auto: text on a terminal, JSON lines otherwise


class Route(NamedTuple):
    """Where the results of an input topic go and its checkpoints, defaults filled in."""

    output: str
    dead_letters: str
    state: str

    @property
    def results(self) -> tuple[str, str]:
        """The topics that the results and the dead letters go to."""
        return self.output, self.dead_letters


class Settings(_Section):
    """Everything a worker is told."""

    log: LogSettings
    group: Annotated[str, Field(min_length=1, max_length=249)] = "anabranch"  # consumer group
    topics: Mapping[TopicName, TopicSettings] = {}  # by input topic
    models: Annotated[Mapping[ModelName, ModelSettings], Field(min_length=1)]
    bounds: Bounds = Bounds()
    start: Literal["earliest", "latest"] = "earliest"  # where a group begins that has never committed
    transaction: TransactionSettings = TransactionSettings()
    checkpoint: CheckpointSettings | None = CheckpointSettings()
    metrics: MetricsSettings = MetricsSettings()
    logging: LoggingSettings = LoggingSettings()

    @property
    def routes(self) -> dict[str, Route]:
        """Every input topic and where its results go, by name."""
        routes = {}
        for source in sorted({model.input for model in self.models.values()}):
            topic = self.topics.get(source, TopicSettings())
            routes[source] = Route(
                topic.output or f"{source}.out",
                topic.dead_letters or f"{source}.dead",
                topic.state or f"{source}.state",
            )
        return routes

    @field_validator("metrics", mode="before")
    @classmethod
    def _metrics_off(cls, value: Any) -> Any:
        return {"port": None} if value is None else value

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if found := [
            *_topic_conflicts(self),
            *_class_conflicts(self),
            *_start_conflicts(self),
            *_property_conflicts(self),
        ]:
            raise conflicting(found)
        return self


def _topic_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield what is wrong among the topics: each output takes the results of one input and nothing else."""
    routes = settings.routes
    for name in settings.topics:
        if name not in routes:
            what = f"the input topic of a model ({', '.join(routes)})"
            yield Conflict(("topics", name), what, name, about_name=True, choices=tuple(routes))
    taken: dict[str, str] = {}
    for source, route in routes.items():
        for use, topic in route._asdict().items():
            location, advice = _location_of(settings, source, use)
            what = f"a topic for the {_USES[use]} of '{source}'"
            if topic in routes:
                yield Conflict(location, f"{what} that is no input{advice}", topic)
            elif topic in taken:
                yield Conflict(location, f"{what} other than that for {taken[topic]}{advice}", topic)
            elif len(topic) > 249:
                yield Conflict(location, f"{what} of at most 249 characters{advice}", topic)
            taken.setdefault(topic, f"the {_USES[use]} of '{source}'")


_USES = {"output": "results", "dead_letters": "dead letters", "state": "checkpoints"}


def _location_of(settings: Settings, source: str, use: str) -> tuple[Location, str]:
    """Return the setting that a topic follows from, with advice where that is not the topic's own setting."""
    if source in settings.topics and getattr(settings.topics[source], use) is not None:
        return ("topics", source, use), ""
    reader = next(name for name, model in settings.models.items() if model.input == source)
    return ("models", reader, "input"), f" (this one is a default: set topics.{source}.{use})"


def _class_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield the class names that no event could carry."""
    most = settings.bounds.name_bytes
    for name, model in settings.models.items():
        for index, text in enumerate(model.classes):
            if isinstance(text, str) and len(text.encode()) > most:
                location = ("models", name, "classes", index)
                yield Conflict(location, f"at most {most} bytes (bounds.name_bytes)", text)


def _start_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield a start that could not be found again: only a checkpoint tells what was left out."""
    if settings.start == "latest" and settings.checkpoint is None:
        yield Conflict(("start",), "'earliest' where checkpoint is null", settings.start)


def _property_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield the properties of the Kafka client that are not the user's to set."""
    if settings.log.kafka is None:
        return
    given = settings.log.kafka.properties
    for name, reason in refused_properties(given).items():
        yield Conflict(("log", "kafka", "properties", name), f"no property '{name}' ({reason})", given[name])
    if "bootstrap.servers" in given:
        name = "bootstrap.servers"
        yield Conflict(("log", "kafka", "properties", name), "it as log.kafka.bootstrap", given[name])


def load(path: Path, environ: Mapping[str, str]) -> Settings:
    """Read, override and check the settings.

    Parameters
    ----------
    path : Path
        The YAML file.
    environ : Mapping[str, str]
        The environment; variables without the prefix `ANABRANCH_` are not looked at.

    Returns
    -------
    Settings

    Raises
    ------
    SettingsError
        With everything that was wrong, each with its place.
    """
    document = read_file(path)
    problems = override(document, environ)
    try:
        # As JSON, because that is what YAML holds: lists become tuples and mappings become sections,
        # while strict typing still keeps "5", 5.0 and true from passing as 5.
        settings = Settings.model_validate_json(json.dumps(document.data), context={"folder": path.parent})
    except ValidationError as error:
        problems += explain(error, document, Settings)
    if problems:
        raise SettingsError(problems)
    return settings


def fingerprint(settings: Settings) -> str:
    """Return a digest of all that the bytes of the outputs depend on: the models and the bounds.

    Left out are where results go and how the worker is run: topics, group, log, start, transaction,
    checkpoint, metrics and logging.
    """
    relevant = settings.model_dump(mode="json", include={"models", "bounds"})
    for model in relevant["models"].values():
        # What a model does not use changes no fingerprint, so that older ones hold.
        if model.get("alpha", 0) is None:
            del model["alpha"]
        for name in ("drop_poor", "inherit"):
            if not model.get(name, True):
                del model[name]
        attributes = model.get("attributes", {})
        for name in ("quantised", "radius", "radius_fraction"):
            if not attributes.get(name, 0):
                attributes.pop(name, None)
    canonical = json.dumps(relevant, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"anabranch settings 1\n" + canonical.encode()).hexdigest()
