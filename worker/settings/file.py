"""Read a settings file and the environment into plain data that remembers where every value stood.

The YAML is that of the 1.2 core schema: `yes`, `no`, `on` and dates are text, so that classes may be
called that. Only plain values are built; any other tag is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from worker.safe_text import printable

Location: TypeAlias = tuple[str | int, ...]  # the way to a value: ("models", "spam", "classes", 0)

MAX_FILE_BYTES = 1 << 20
MAX_VALUES = 100_000  # with every alias expanded: a few hundred bytes of aliases can name billions
MAX_DEPTH = 32

PREFIX = "ANABRANCH_"

# Values below are texts as they are written, whatever they look like: a password may be 0123, or begin with @.
# None of them is ever part of a message.
TEXTS: Location = ("log", "kafka", "properties")
REGISTRY_TEXTS: Location = ("registry", "properties")

_OTHERS = ("ANABRANCH_CPU", "ANABRANCH_KERNELS")  # are about compiled kernels: algorithms/core/target.py, cache.py

# What Kubernetes puts into every container of a namespace with a Service whose name starts with
# "anabranch". Refusing these as unknown settings would keep the worker from starting there.
# They never hold the double underscore of a nested setting.
_SERVICE_LINK = re.compile(
    r"(?!.*__)ANABRANCH_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_[A-Z]+(_[A-Z]+)?)?)"
)

_CORE_SCHEMA = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}
_TAG = "tag:yaml.org,2002:"


class Place(NamedTuple):
    """Where something was written: a file with line and column (from 1), or an environment variable."""

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in self if part is not None)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the settings."""

    place: Place
    location: Location  # of the setting, empty where the file as a whole is meant
    message: str  # what was expected and what came

    @property
    def path(self) -> str:
        """The setting's dotted path; names that hold a dot are quoted."""
        return ".".join(f"'{part}'" if "." in str(part) else str(part) for part in self.location)

    def __str__(self) -> str:
        told = ": ".join(part for part in (str(self.place), self.path, self.message) if part)
        return printable(told, len(told))


class SettingsError(Exception):
    """The settings cannot be used; one line for each problem.

    Attributes
    ----------
    problems : list of Problem
        All that was found, in the order of the file.
    """

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass
class Document:
    """Plain values (dict, list, str, int, float, bool, None) and the places they came from."""

    data: Any = None
    keys: dict[Location, Place] = field(default_factory=dict)
    values: dict[Location, Place] = field(default_factory=dict)

    def key_place(self, location: Location) -> Place:
        """Return where the name at this location stands, else that of what encloses it."""
        return self.keys.get(location) or self.value_place(location)

    def value_place(self, location: Location) -> Place:
        """Return where the value at this location stands, else the name of what encloses it."""
        if location in self.values:
            return self.values[location]
        for end in range(len(location) - 1, 0, -1):
            if location[:end] in self.keys:
                return self.keys[location[:end]]
        return self.values[()]

    def put(self, location: Location, other: Document) -> None:
        """Put another document's value at this location, making the mappings on the way to it.

        Raises
        ------
        TypeError
            Where something on the way is there and is not a mapping.
        """
        place = other.values[()]
        if self.data is None:
            self.data = {}
        inside = self.data
        for depth, name in enumerate(location[:-1], 1):
            if isinstance(inside, dict) and inside.get(name) is None:
                inside[name] = {}
                self.keys[location[:depth]] = self.values[location[:depth]] = place
            inside = inside[name]
        if not isinstance(inside, dict):
            raise TypeError("not a mapping")
        inside[location[-1]] = other.data

        for places in (self.keys, self.values):
            for replaced in [known for known in places if known[: len(location)] == location]:
                del places[replaced]
        self.keys[location] = place
        self.keys.update({location + inner: at for inner, at in other.keys.items()})
        self.values.update({location + inner: at for inner, at in other.values.items()})


def read_file(path: Path) -> Document:
    """Read a settings file.

    Raises
    ------
    SettingsError
        Where it cannot be read, is too large, or is not the YAML that settings are written in.
    """
    place = Place(str(path))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        message = f"expected a settings file that can be read, got: {error.strerror}"
        raise SettingsError([Problem(place, (), message)]) from error
    if len(content) > MAX_FILE_BYTES:
        raise SettingsError([Problem(place, (), f"expected at most {MAX_FILE_BYTES} bytes, got more")])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"expected UTF-8, got byte 0x{content[error.start]:02x} at offset {error.start}"
        raise SettingsError([Problem(place, (), message)]) from error
    return read_text(text, str(path))


def is_text(location: Location) -> bool:
    """Return whether the value at a location is a text as it is written."""
    holder = texts_at(location)
    return holder is not None and len(location) > len(holder)


def texts_at(location: Location) -> Location | None:
    """Return the mapping of texts that a location is, or lies in; None where it is elsewhere."""
    return next((each for each in (TEXTS, REGISTRY_TEXTS) if location[: len(each)] == each), None)


def read_text(text: str, source: str, at: Location = ()) -> Document:
    """Read YAML text; `source` is how messages call it, `at` where it will stand. Raises `SettingsError`."""
    try:
        node = _Loader(text, source).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(source, mark.line + 1, mark.column + 1) if mark else Place(source)
        # A name that YAML gives a meaning to may be a password that begins with * or !.
        problem = re.sub(r"(alias|anchor|handle) '.*'", r"\1", error.problem or "")
        raise SettingsError([Problem(place, (), f"expected YAML, got: {problem}")]) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(source, before.count("\n") + 1, error.position - before.rfind("\n"))
        message = f"expected YAML, got the character {error.character:#x}, which it does not allow"
        raise SettingsError([Problem(place, (), message)]) from error

    document = Document(values={(): Place(source)})
    if node is not None:
        builder = _Builder(document, source, at)
        document.data = builder.value(node, ())
        if builder.problems:
            raise SettingsError(builder.problems)
    return document


def override(document: Document, environ: Mapping[str, str]) -> list[Problem]:
    """Lay the `ANABRANCH_*` variables over a document and return what was wrong with them.

    `ANABRANCH_TRANSACTION__RECORDS=1000` sets `transaction.records`. Values are YAML. A part of a name
    stands for the name in the file that has the same letters and digits, whatever its case and with an
    underscore for any other character: `SPAM_FILTER` for `spam-filter`.
    """
    names = [
        name
        for name in environ
        if name.startswith(PREFIX) and name not in _OTHERS and not _SERVICE_LINK.fullmatch(name)
    ]
    problems: list[Problem] = []
    # Short ones first, so that a whole section and then one of its settings can both be given.
    for name in sorted(names, key=lambda name: (name.count("__"), name)):
        location = _locate(document.data, name.removeprefix(PREFIX).split("__"))
        if is_text(location):
            _put_text(document, location, name, environ[name], problems)
            continue
        try:
            value = read_text(environ[name], name, location)
        except SettingsError as error:
            problems += [Problem(Place(name), location, problem.message) for problem in error.problems]
            continue
        whole = Place(name)  # a line and a column inside a variable help nobody
        value.keys = dict.fromkeys(value.keys, whole)
        value.values = dict.fromkeys(value.values, whole)
        try:
            document.put(location, value)
        except TypeError:
            message = "expected the name of a setting, got one inside of something that is not a mapping"
            problems.append(Problem(whole, location, message))
    return problems


def _put_text(document: Document, location: Location, name: str, text: str, problems: list[Problem]) -> None:
    """Lay a variable over a document whose value is a text, taken literally."""
    whole = Place(name)
    if not text:
        problems.append(Problem(whole, location, "expected a value, got an empty variable; set it, or unset it"))
        return
    try:
        document.put(location, Document(text, values={(): whole}))
    except TypeError:
        message = "expected the name of a setting, got one inside of something that is not a mapping"
        problems.append(Problem(whole, location, message))


def _locate(data: Any, parts: list[str]) -> Location:
    """Return the location that the parts of a variable's name stand for."""
    location: list[str] = []
    for part in parts:
        known = data if isinstance(data, dict) else {}
        name = part.lower()
        if name not in known:
            # Properties of the client have dots where a variable can only have underscores.
            new = name.replace("_", ".") if tuple(location) in (TEXTS, REGISTRY_TEXTS) else name
            name = next((other for other in known if _plain(other) == name), new)
        location.append(name)
        data = known.get(name)
    return tuple(location)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", name.lower())


class _Loader(yaml.SafeLoader):
    """Composes nodes with the tags of the core schema, to a bounded depth."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (PyYAML's own way to replace them)

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text)
        self.name = source
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self._depth == MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"nesting deeper than {MAX_DEPTH}", problem_mark=mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode):
            try:
                # JSON escapes one character as two surrogates, which are none on their own.
                node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError as error:
                message = "half of a surrogate pair"
                raise yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark) from error
        return node


for _name, _pattern in _CORE_SCHEMA.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern})$"), None)


class _Builder:
    """Builds plain values from nodes, notes their places and gathers what is wrong with them."""

    def __init__(self, document: Document, source: str, at: Location) -> None:
        self.document = document
        self.source = source
        self._at = at
        self.problems: list[Problem] = []
        self._count = 0

    def value(self, node: yaml.Node, location: Location) -> Any:
        place = self.document.values[location] = self._place(node)
        self._count += 1
        if self._count > MAX_VALUES or len(location) > MAX_DEPTH:
            # Raised and not gathered: going on is what an alias bomb wants.
            message = f"expected at most {MAX_VALUES} values nested at most {MAX_DEPTH} deep, got more"
            raise SettingsError([Problem(place, (), f"{message} (aliases count in full)")])
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.value(item, (*location, i)) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, location)
        return self._wrong(node, location, f"expected plain YAML, got the tag {node.tag!r}")

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._wrong(key, location, "expected a name before the colon, got a list or a mapping")
            elif key.value in built:
                first = self.document.keys[(*location, key.value)].line
                message = f"expected each name once, got it again (first on line {first})"
                self._wrong(key, (*location, key.value), message)
            else:
                self.document.keys[(*location, key.value)] = self._place(key)
                built[key.value] = self.value(value, (*location, key.value))
        return built

    def _scalar(self, node: yaml.ScalarNode, location: Location) -> Any:
        text: str = node.value
        kind = node.tag.removeprefix(_TAG)
        if is_text(self._at + location) and kind in _CORE_SCHEMA and kind != "null":
            return text
        try:
            match kind:
                case "str":
                    return text
                case "null":
                    return None
                case "bool":
                    return {"true": True, "false": False}[text.lower()]
                case "int":
                    return int(text, 0 if text[:2] in ("0o", "0x") else 10)
                case "float":
                    return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
        except (ValueError, KeyError):
            return self._wrong(node, location, f"expected something to be read as {kind}, got {text[:40]!r}")
        return self._wrong(node, location, f"expected plain YAML, got the tag {node.tag!r}")

    def _wrong(self, node: yaml.Node, location: Location, message: str) -> None:
        if is_text(self._at + location):
            holder = texts_at(self._at + location)
            assert holder is not None
            location = location[: len(holder) + 1 - len(self._at)]  # what is inside of a value is not told
            message = "expected a text, or {file: PATH}, got YAML of another kind; put a text into quotes"
        self.problems.append(Problem(self._place(node), location, message))

    def _place(self, node: yaml.Node) -> Place:
        return Place(self.source, node.start_mark.line + 1, node.start_mark.column + 1)
