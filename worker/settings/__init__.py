"""The settings: one YAML file, `ANABRANCH_*` variables over it, checked into frozen typed values.

`load` is the way in; the classes here and in models.py are the reference of what the file may hold.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from annotated_types import Ge, Le
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from algorithms.core.crew import MOST_THREADS
from worker.codec.bounds import Bounds
from worker.settings.by_kind import kind_of
from worker.settings.file import REGISTRY_TEXTS, TEXTS, Location, SettingsError, override, read_file
from worker.settings.models import AnyModelSettings, ClassifierSettings
from worker.settings.problems import Conflict, Words, conflicting, expected, explain
from worker.settings.properties import Property, SecretFile, beside_the_file, resolved
from worker.settings.topics import PACKAGES, REGISTRY_PROPERTIES, WITH_SCHEMAS, RegistrySettings, TopicSettings
from worker.settings.values import ModelName, Section, TopicName


class KafkaSettings(Section):
    """A Kafka cluster, and this worker's place in its group."""

    bootstrap: Annotated[str, Field(min_length=1)]  # host:port, more after commas
    # Tells the workers of a group apart and stays the same over restarts: group.instance.id, and part of the
    # transactional.id. The host's name unless told otherwise; a StatefulSet's pods keep theirs.
    instance: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once"
    topic_wait_seconds: Annotated[float, Ge(0), Le(86_400)] = 300.0  # at a start, for missing ones
    # Of librdkafka, as they are called there. Among them are secrets, so they are never shown.
    properties: Mapping[str, Property] = Field(default={}, repr=False)

    @field_validator("bootstrap")
    @classmethod
    def _no_user(cls, bootstrap: str) -> str:
        if "@" in bootstrap:
            raise expected("host:port, more after commas, without a user (see sasl.username among the properties)")
        return bootstrap

    @property
    def name(self) -> str:
        """The instance, the default filled in."""
        return self.instance or socket.gethostname()

    def resolved(self) -> dict[str, str]:
        """Return all properties, with those that are kept in files; raise `LogError` where one cannot be read."""
        return {"bootstrap.servers": self.bootstrap, **resolved(self.properties)}


class LogSettings(Section):
    """Where the topics are: one of the two."""

    kafka: KafkaSettings | None = None
    embedded: Path | None = None  # the embedded log's file; a relative path starts at the settings file

    @field_validator("embedded")
    @classmethod
    def _from_the_settings(cls, path: Path | None, info: ValidationInfo) -> Path | None:
        return None if path is None else beside_the_file(path, info)

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.kafka is None) == (self.embedded is None):
            raise expected("either kafka or embedded")
        return self


class TransactionSettings(Section):
    """When outputs and offsets are committed: at whichever of these comes first."""

    # A broker aborts a transaction after transaction.timeout.ms, 60 s unless told otherwise.
    interval_ms: Annotated[int, Ge(1), Le(30_000)] = 250
    records: Annotated[int, Ge(1), Le(10_000_000)] = 5_000  # consumed
    bytes: Annotated[int, Ge(1), Le(1 << 30)] = 8_000_000  # consumed


class CheckpointSettings(Section):
    """When a partition's state is written to the state topic, at whichever comes first, and how fast."""

    interval_ms: Annotated[int, Ge(1), Le(86_400_000)] = 60_000
    records: Annotated[int, Ge(1), Le(1 << 40)] = 1_000_000  # consumed: as many are replayed at most
    bytes_per_second: Annotated[int, Ge(1_000), Le(1 << 40)] = 20_000_000


class MetricsSettings(Section):
    """The page of metrics, health and status."""

    port: Annotated[int, Ge(0), Le(65_535)] | None = 9464  # 0 is any free port, null no page
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    stall_seconds: Annotated[float, Ge(0.1), Le(86_400)] = 30.0  # a loop silent for longer is not alive


class LoggingSettings(Section):
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


class Settings(Section):
    """Everything a worker is told."""

    log: LogSettings
    group: Annotated[str, Field(min_length=1, max_length=249)] = "anabranch"  # consumer group
    topics: Mapping[TopicName, TopicSettings] = {}  # by input topic
    registry: RegistrySettings | None = None  # of schemas, for the formats that have them
    models: Annotated[Mapping[ModelName, AnyModelSettings], Field(min_length=1, max_length=1_000)]
    bounds: Bounds = Bounds()
    start: Literal["earliest", "latest"] = "earliest"  # where a group begins that has never committed
    # Of these settings: raised to go back to some that the group has had before.
    revision: Annotated[int, Ge(0), Le(1 << 30)] = 0
    on_change: Literal["apply", "refuse"] = "apply"  # what to do where models would lose what they have learned
    on_defect: Literal["stop", "quarantine"] = "stop"  # what to do with a record at which processing fails
    threads: Annotated[int, Ge(1), Le(MOST_THREADS)] = 1  # how many process partitions; results are the same
    transaction: TransactionSettings = TransactionSettings()
    checkpoint: CheckpointSettings | None = CheckpointSettings()
    metrics: MetricsSettings = MetricsSettings()
    logging: LoggingSettings = LoggingSettings()

    @property
    def routes(self) -> dict[str, Route]:
        """Every input topic and where its results go, by name."""
        routes = {}
        for source in sorted({model.input for model in self.models.values()}):
            topic = self.topic(source)
            routes[source] = Route(
                topic.output or f"{source}.out",
                topic.dead_letters or f"{source}.dead",
                topic.state or f"{source}.state",
            )
        return routes

    def topic(self, name: str) -> TopicSettings:
        """Return what is said of an input topic, the defaults where nothing is."""
        return self.topics.get(name, TopicSettings())

    @field_validator("metrics", mode="before")
    @classmethod
    def _metrics_off(cls, value: Any) -> Any:
        return {"port": None} if value is None else value

    @model_validator(mode="after")
    def _fit_together(self, info: ValidationInfo) -> Self:
        thorough = bool((info.context or {}).get("thorough"))
        if found := [
            *_topic_conflicts(self),
            *_class_conflicts(self),
            *_start_conflicts(self),
            *_defect_conflicts(self),
            *_property_conflicts(self, thorough=thorough),
            *_format_conflicts(self),
            *_pending_conflicts(self),
            *_registry_conflicts(self, thorough=thorough),
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


_CLASSES_BYTES = 256_000  # of all names of a model's classes: a thousand of the usual bounds.name_bytes


def _class_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield the class names that no event could carry."""
    most = settings.bounds.name_bytes
    classifiers = {n: model for n, model in settings.models.items() if isinstance(model, ClassifierSettings)}
    for name, model in classifiers.items():
        for index, text in enumerate(model.classes):
            if isinstance(text, str) and len(text.encode()) > most:
                location = ("models", name, "classes", index)
                yield Conflict(location, f"at most {most} bytes (bounds.name_bytes)", text)
        is_json = settings.topic(model.input).results == "json"
        size = sum(_written_bytes(text, is_json) for text in model.classes if isinstance(text, str))
        if size > _CLASSES_BYTES:
            wanted = f"names of at most {_CLASSES_BYTES:,} bytes together, which are part of many records"
            yield Conflict(("models", name, "classes"), wanted, Words(f"{size:,} bytes"))


def _written_bytes(text: str, is_json: bool) -> int:
    """Return how many bytes a name takes in a record; JSON escapes some characters."""
    return len((json.dumps(text, ensure_ascii=False) if is_json else text).encode())


def _start_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield a start that could not be found again: only a checkpoint tells what was left out."""
    if settings.checkpoint is not None:
        return
    if settings.start == "latest":
        yield Conflict(("start",), "'earliest' where checkpoint is null", settings.start)
    for name, model in settings.models.items():
        if model.start == "latest":
            yield Conflict(("models", name, "start"), "'earliest' where checkpoint is null", model.start)
        if model.shadow:
            yield Conflict(("models", name, "shadow"), "false where checkpoint is null", model.shadow)


def _defect_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield a quarantine that could not be remembered: what is passed by is kept where checkpoints are."""
    if settings.on_defect == "quarantine" and settings.checkpoint is None:
        yield Conflict(("on_defect",), "'stop' where checkpoint is null", settings.on_defect)


def _property_conflicts(settings: Settings, *, thorough: bool) -> Iterator[Conflict]:
    """Yield the properties of the Kafka client that are not the user's to set, or that it does not take."""
    if settings.log.kafka is None:
        return
    from worker.log.kafka.checking import faults  # loads the client
    from worker.log.kafka.properties import refused_properties

    given = settings.log.kafka.properties
    refused = {name: f"no property '{name}' ({why})" for name, why in refused_properties(given).items()}
    if "bootstrap.servers" in given:
        refused["bootstrap.servers"] = "it as log.kafka.bootstrap"
    for name, wanted in refused.items():
        yield Conflict((*TEXTS, name), wanted, Words("it here"))
    values: dict[str, str | None] = {}
    for name, value in given.items():
        if isinstance(value, str):
            values[name] = value
            continue
        wrong = value.wrong() if thorough else None
        if wrong is not None:
            yield Conflict((*TEXTS, name, "file"), f"a file with the value, got {value.file}", Words(wrong))
        values[name] = value.read(name) if thorough and wrong is None else None
    for name, fault in faults({name: value for name, value in values.items() if name not in refused}).items():
        choices = (fault.meant,) if fault.meant else ()
        got: str = name if fault.about_name else Words("another (it is not shown)")
        yield Conflict((*TEXTS, name), fault.expected, got, fault.about_name, choices)


def _format_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield the formats of topics that cannot be read, and what does not go with them."""
    for name, topic in settings.topics.items():
        at: Location = ("topics", name)
        if topic.format == "msgpack" and topic.columns is not None:
            yield Conflict((*at, "columns"), "it with format json, avro or protobuf", Words("format msgpack"))
        if topic.format != "avro" and topic.reader_schema is not None:
            yield Conflict((*at, "reader_schema"), "it with format avro", Words(f"format {topic.format}"))
        if topic.columns is not None:
            for reader, model in settings.models.items():
                if model.input == name and getattr(model, "features", None) == "ids":
                    wanted = f"'names', as the columns of '{name}' have names"
                    yield Conflict(("models", reader, "features"), wanted, "ids")
        if topic.format in WITH_SCHEMAS:
            if settings.registry is None:
                wanted = f"a registry beside it (registry: {{url: ...}}), or another format than {topic.format}"
                yield Conflict((*at, "format"), wanted, Words("none"))
            if lacking := [package for package in PACKAGES[topic.format] if not _is_installed(package)]:
                wanted = f"the packages for it: pip install 'anabranch[{topic.format}]'"
                yield Conflict((*at, "format"), wanted, Words(f"no {', no '.join(lacking)}"))
        if topic.reader_schema is not None and not topic.reader_schema.is_file():
            yield Conflict((*at, "reader_schema"), "the path of a file", str(topic.reader_schema))
        if topic.results == "json" and settings.bounds.name_bytes > _JSON_NAME_BYTES:
            wanted = f"bounds.name_bytes of at most {_JSON_NAME_BYTES:,}, so that each result fits a record"
            yield Conflict((*at, "results"), wanted, Words(f"{settings.bounds.name_bytes:,}"))


def _pending_conflicts(settings: Settings) -> Iterator[Conflict]:
    """Yield the stores of pending examples that no model learns from."""
    for name, topic in settings.topics.items():
        readers = [model for model in settings.models.values() if model.input == name]
        if topic.pending is not None and not any(model.late_labels for model in readers):
            wanted = "it where a model of the topic takes part"
            yield Conflict(("topics", name, "pending"), wanted, Words("late_labels: false of all"))


_JSON_NAME_BYTES = 1 << 14  # an escape of a character takes up to six times as many bytes


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def _registry_conflicts(settings: Settings, *, thorough: bool) -> Iterator[Conflict]:
    """Yield the properties that the client of registries does not take from the settings."""
    for name, value in settings.registry.properties.items() if settings.registry is not None else ():
        if name not in REGISTRY_PROPERTIES:
            wanted = f"one of {', '.join(REGISTRY_PROPERTIES)}"
            yield Conflict((*REGISTRY_TEXTS, name), wanted, name, about_name=True, choices=REGISTRY_PROPERTIES)
        elif thorough and isinstance(value, SecretFile) and (wrong := value.wrong()) is not None:
            wanted = f"a file with the value, got {value.file}"
            yield Conflict((*REGISTRY_TEXTS, name, "file"), wanted, Words(wrong))


def load(path: Path, environ: Mapping[str, str], *, thorough: bool = False) -> Settings:
    """Read, override and check the settings.

    Parameters
    ----------
    path : Path
        The YAML file.
    environ : Mapping[str, str]
        The environment; variables without the prefix `ANABRANCH_` are not looked at.
    thorough : bool, optional
        Whether the files of secrets are looked for, too.

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
        context = {"folder": path.parent, "thorough": thorough}
        settings = Settings.model_validate_json(json.dumps(document.data), context=context)
    except ValidationError as error:
        problems += explain(error, document, Settings)
    if problems:
        raise SettingsError(problems)
    return settings


def fingerprint(settings: Settings) -> str:
    """Return a digest of all that the bytes of the outputs depend on: models, their kinds, bounds, other formats.

    Left out are where results go and how the worker is run: topics, group, log, start, on_defect, threads,
    transaction, checkpoint, metrics and logging. Where settings are never changed it is the note beside offsets,
    see worker/epochs.py.
    """
    from worker.models import KINDS  # not above: models know their settings

    relevant = settings.model_dump(mode="json", include={"bounds"})
    relevant["models"] = {name: model.relevant() for name, model in settings.models.items()}
    kinds = {kind_of(type(model)) for model in settings.models.values()}
    behaviours = {kind: KINDS[kind].behaviour for kind in kinds}
    if raised := {kind: number for kind, number in behaviours.items() if number > 1}:
        relevant["behaviours"] = raised
    formats = {name: topic.relevant() for name, topic in settings.topics.items()}
    if told := {name: each for name, each in formats.items() if each}:
        relevant["formats"] = told
    pending = {name: topic.pending.told() for name, topic in settings.topics.items() if topic.pending is not None}
    if pending:
        relevant["pending"] = pending
    canonical = json.dumps(relevant, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"anabranch settings 1\n" + canonical.encode()).hexdigest()
