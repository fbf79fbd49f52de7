"""A schema registry, asked with confluent-kafka's own client."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any

from worker.formats.schemas import RegistryAway, Schema
from worker.log.port import LogError
from worker.settings.topics import RegistrySettings

_SECONDS = 10.0  # that a request may take
_UNKNOWN = 40403  # the registry's code for a schema that is not there
_MOST_REFERENCES = 200  # of one schema, those of its references included
_PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}  # beside all from 500 on


class Registry:
    """Fetches schemas by their ids.

    Raises
    ------
    LogError
        Where the client is not installed or does not take its properties.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._url = settings.url
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
        except ImportError as error:
            raise LogError(
                f"expected the client of schema registries, got no package {error.name}; "
                "pip install 'anabranch[avro]' or 'anabranch[protobuf]'"
            ) from error
        try:
            # How often it is tried is the worker's to say, who waits without stopping. No connection is held:
            # there are few schemas.
            properties = {**settings.resolved(), "timeout": _SECONDS, "max.retries": 0}
            self._new_client: Any = partial(SchemaRegistryClient, properties)
            with self._new_client():
                pass
        except (ValueError, TypeError, OSError) as error:
            raise LogError(
                "expected properties that the client of the schema registry takes (registry.properties), got an "
                f"error ({getattr(error, 'strerror', None) or type(error).__name__}); check each of them"
            ) from None

    def fetch(self, number: int) -> Schema | None:
        """Return the schema of an id, None where there is none; errors are those of `schemas.Fetch`."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            with self._new_client() as client:
                found = client.get_schema(number)
                references = tuple(_references(client, found).items())
            return Schema(found.schema_type or "AVRO", found.schema_str, references)
        except SchemaRegistryError as error:
            if error.error_code == _UNKNOWN:
                return None
            raise self._explained(number, error) from None
        except (LogError, MemoryError):
            raise
        except (
            Exception
        ) as error:  # of the network, of TLS, of a login server: the client has no one class for them
            raise RegistryAway(f"{self._url}: {type(error).__name__}") from None

    def _explained(self, number: int, error: Any) -> Exception:
        status = error.http_status_code
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
            return RegistryAway(f"{self._url}: HTTP status {status}")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return LogError(
                f"{self._url}: expected the schema registry to let this worker read schema {number}, got HTTP "
                f"status {status}; check basic.auth.user.info or bearer.auth.* (registry.properties), and what "
                "they may read"
            )
        return LogError(
            f"{self._url}: expected a schema registry that answers for schema {number}, got HTTP status {status}; "
            "check registry.url (with the path of the API that is compatible with Confluent's)"
        )


def _references(client: Any, schema: Any) -> dict[str, str]:
    """Return what a schema refers to by name, each after what it refers to itself."""
    texts: dict[str, str] = {}
    seen: set[tuple[str, int]] = set()

    def visit(referring: Any) -> None:
        for reference in referring.references or ():
            version = (reference.subject, reference.version)
            if version in seen:
                continue
            seen.add(version)
            if len(seen) > _MOST_REFERENCES:
                raise LogError(f"expected a schema with at most {_MOST_REFERENCES} references; this one has more")
            referred = client.get_version(reference.subject, reference.version).schema
            visit(referred)
            texts[reference.name] = referred.schema_str

    visit(schema)
    return texts
