"""Properties of clients: texts as they are written, some of them secrets that are kept in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import PlainValidator, ValidationInfo

from worker.log.port import LogError
from worker.settings.problems import expected
from worker.settings.values import Section

_MOST_SECRET = 1 << 20  # bytes; a device has no end


class SecretFile(Section):
    """A value that is kept in a file of its own."""

    file: Path  # a relative path starts at the settings file

    def read(self, name: str) -> str:
        """Return the value of the property of that name, without line ends behind it; `LogError` says why not."""
        wrong = self.wrong()
        if wrong is not None:
            raise LogError(
                f"{self.file}: expected a file with the value of the property {name!r}, got {wrong}; "
                "check the path, its permissions and what it holds"
            )
        return self._content()

    def wrong(self) -> str | None:
        """Return why the file has no value, None where it has one."""
        try:
            content = self._content()
            return "an empty file" if not content else "the character NUL in it" if "\0" in content else None
        except UnicodeDecodeError:
            return "bytes that are not UTF-8"
        except OSError as error:
            return f"an error: {error.strerror}"

    def _content(self) -> str:
        with self.file.open("rb") as file:
            return file.read(_MOST_SECRET).decode("utf-8-sig").rstrip("\r\n")


def _property(value: object, info: ValidationInfo) -> str | SecretFile:
    match value:
        case str() | SecretFile():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case {"file": str(path), **others} if path and not others:
            return SecretFile(file=beside_the_file(Path(path), info))
    raise expected("a text, or {file: PATH} with the path of a file that holds it")


Property: TypeAlias = Annotated[str | SecretFile, PlainValidator(_property)]


def resolved(properties: Mapping[str, Property]) -> dict[str, str]:
    """Return all properties, with those that are kept in files; raise `LogError` where one cannot be read."""
    return {
        name: value.read(name) if isinstance(value, SecretFile) else value for name, value in properties.items()
    }


def beside_the_file(path: Path, info: ValidationInfo) -> Path:
    """Return a path of the settings file, which is relative to that file."""
    return Path((info.context or {}).get("folder", "")) / path
