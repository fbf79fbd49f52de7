"""What the settings say of an input topic: where its results go, and in which formats events and results are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le, Len
from pydantic import Field, ValidationInfo, field_validator, model_validator

from worker.settings.problems import expected
from worker.settings.properties import Property, beside_the_file, resolved
from worker.settings.values import Section, TimeSpan, TopicName

Format = Literal["msgpack", "json", "avro", "protobuf"]

WITH_SCHEMAS = ("avro", "protobuf")  # in a registry

# What a format needs beside the packages that are always there, and the extra that brings it.
PACKAGES = {"avro": ("fastavro", "authlib"), "protobuf": ("google.protobuf", "grpc_tools", "authlib")}

# Of confluent-kafka's client of schema registries; how often and how long it tries is the worker's to say.
REGISTRY_PROPERTIES = (
    "basic.auth.user.info",
    "bearer.auth.client.id",
    "bearer.auth.client.secret",
    "bearer.auth.credentials.source",
    "bearer.auth.identity.pool.id",
    "bearer.auth.issuer.endpoint.url",
    "bearer.auth.logical.cluster",
    "bearer.auth.scope",
    "bearer.auth.token",
    "proxy",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)

ColumnName = Annotated[str, Len(1, 1_024)]


class ColumnSettings(Section):
    """What the columns of a record are, where it is no event by itself; one inside another is OUTER.INNER."""

    label: ColumnName | None = None
    id: ColumnName | None = None
    weight: ColumnName | None = None
    time: ColumnName | None = None
    time_unit: Literal["s", "ms", "us", "ns"] = "ms"  # of times that are numbers
    op: ColumnName | None = None
    features: Annotated[tuple[ColumnName, ...], Len(1, 65_536)] | None = None  # None: all other columns
    ignore: tuple[ColumnName, ...] = ()

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are no features, by what they are."""
        named = {role: getattr(self, role) for role in ("label", "id", "weight", "time", "op")}
        return {role: name for role, name in named.items() if name is not None}

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        if self.features is not None and self.ignore:
            raise expected("either features or ignore: a column that is no feature is ignored")
        given = [*self.roles.values(), *(self.features or self.ignore)]
        if len(set(given)) < len(given):
            raise expected("each column once, in one of label, id, weight, time, op, features and ignore")
        return self


class PendingSettings(Section):
    """For how long, and for how many predicts, labels that come later are waited for."""

    max: Annotated[int, Ge(1), Le(1 << 30)]  # of a partition; the oldest goes for the next
    for_: Annotated[TimeSpan, Field(alias="for")]

    def told(self) -> dict[str, Any]:
        """Return the settings as they are written."""
        return self.model_dump(mode="json", by_alias=True)


class TopicSettings(Section):
    """Where the results of one input topic go, the checkpoints of its models, and how records are written."""

    output: TopicName | None = None  # <input>.out
    dead_letters: TopicName | None = None  # <input>.dead
    state: TopicName | None = None  # <input>.state
    format: Format = "msgpack"  # of events
    columns: ColumnSettings | None = None  # None: a record is an event, with the fields of a msgpack event
    reader_schema: Path | None = None  # Avro: what records are read as; relative to the settings file
    results: Literal["msgpack", "json"] = "msgpack"  # the format of results and dead letters
    pending: PendingSettings | None = None  # what is predicted with an id is kept until its label comes

    @field_validator("reader_schema")
    @classmethod
    def _from_the_settings(cls, path: Path | None, info: ValidationInfo) -> Path | None:
        return None if path is None else beside_the_file(path, info)

    @model_validator(mode="after")
    def _can_wait(self) -> Self:
        if self.pending is not None and self.columns is not None and None in (self.columns.op, self.columns.id):
            raise expected(
                "columns with op and id beside pending: a record is a predict or a label by its op, and the label "
                "has the id of its predict"
            )
        return self

    def relevant(self) -> dict[str, Any]:
        """Return what the bytes of outputs depend on, as far as it is not the default and cannot be changed."""
        told: dict[str, Any] = {} if self.format == "msgpack" else {"format": self.format}
        if self.columns is not None:
            told["columns"] = self.columns.model_dump(mode="json", exclude_defaults=True)
        if self.reader_schema is not None:
            told["reader_schema"] = hashlib.sha256(self.reader_schema.read_bytes()).hexdigest()
        return told if self.results == "msgpack" else {**told, "results": self.results}


class RegistrySettings(Section):
    """A schema registry with the API of Confluent's."""

    url: Annotated[str, Field(min_length=1)]  # more after commas
    properties: Mapping[str, Property] = Field(default={}, repr=False)  # of the client; among them are secrets

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if "@" in url:
            raise expected("http(s)://host:port, without a user (see basic.auth.user.info among the properties)")
        if not all(each.strip().startswith(("http://", "https://")) for each in url.split(",")):
            raise expected("http://host:port or https://host:port, more after commas")
        return url

    def resolved(self) -> dict[str, str]:
        """Return all properties, with those that are kept in files; raise `LogError` where one cannot be read."""
        return {"url": self.url, **resolved(self.properties)}
