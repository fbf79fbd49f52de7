"""Whether the models that read a topic can take an event: told while it is published, not by a dead letter."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.trees.gaussians import LARGEST_VALUE
from worker.codec.event import is_packed
from worker.settings import Settings
from worker.settings.models import ClassifierSettings, ExampleSettings, TargetSettings
from worker.sources import BadLine, Entry
from worker.sources.example import brief

_SHOWN = 6  # classes in a message


class _Reader(NamedTuple):
    """What a model takes."""

    name: str
    kind: str
    classes: Sequence[int | str] | None  # None: labels are numbers
    known: frozenset[tuple[type, int | str]]  # of these, since 1.0 and true are other labels than 1
    features: str
    default: Kind
    kinds: Mapping[int | bytes, Kind]
    scale: Scale | None  # the range of labels, where they are numbers of one

    def misfit(self, fields: Mapping[str, Any]) -> str | None:
        """Return why the model would refuse an event, None where nothing speaks against it."""
        label = fields.get("y")
        if self.classes is None:
            if label is not None and not is_number(label):
                return self._of_text(label)
            if label is not None and self.scale is not None and not self.scale.holds(label):
                return self._of_number(label)
        elif isinstance(label, int | float | str) and (type(label), label) not in self.known:
            return self._of_label(label)
        x = fields.get("x")
        named = x["i"] if isinstance(x, dict) and is_packed(x) else x
        first = next(iter(named), None) if isinstance(named, list | dict) else None
        if isinstance(first, int | str) and isinstance(first, str) != (self.features == "names"):
            got = "names" if isinstance(first, str) else "ids"
            return (
                f"expected features as {self.features}, as the model {self.name!r} has, got {got}, as "
                f"{brief(str(first))}; set features: {got} in the settings"
            )
        for feature, value in _values(x):
            if isinstance(value, int | float) and value not in (0, 1) and self._is_binary(feature):
                return self._of_value(feature, value)
        return None

    def _is_binary(self, feature: int | str) -> bool:
        name = feature.encode() if isinstance(feature, str) else feature
        return self.kinds.get(name, self.default) == Kind.BINARY

    def _of_text(self, label: Any) -> str:
        return (
            f"expected a number up to {LARGEST_VALUE:g} in size as the label, which the model {self.name!r} "
            f"learns, got {brief(str(label))}; name another column with --label, or take a model of classes"
        )

    def _of_number(self, label: float) -> str:
        assert self.scale is not None
        return (
            f"expected a label from {self.scale.low:g} to {self.scale.high:g}, the label_range of the model "
            f"{self.name!r}, got {label!r}; set another label_range in the settings"
        )

    def _of_label(self, label: int | float | str) -> str:
        assert self.classes is not None
        names = ", ".join(map(str, self.classes[:_SHOWN])) + (", ..." if len(self.classes) > _SHOWN else "")
        counted = isinstance(label, int) and 0 <= label < len(self.classes) <= _SHOWN
        # Which class a name stands for is not known; a guess would be copied as it is.
        pairs = enumerate(self.classes) if counted else [(label, "CLASS")]
        mapping = ",".join(f"{old}={new}" for old, new in pairs)
        return (
            f"expected a label among the classes of the model {self.name!r} ({names}), got {brief(str(label))}; "
            f"rename labels, as with --map-label {shlex.quote(mapping)}, or set other classes in the settings"
        )

    def _of_value(self, feature: int | str, value: float) -> str:
        which = brief(feature) if isinstance(feature, str) else str(feature)
        if self.scale is not None and self.kind == "split":  # such splits take no numbers
            advice = (
                "publish it as a category with --nominal, leave it out with --ignore, or take a regression-tree"
            )
        else:
            advice = "set attributes: {default: numeric} of the model, or name its numeric features there"
        return f"expected 0 or 1 of {which}, a binary feature of the model {self.name!r}, got {value:g}; {advice}"


def fitting(entries: Iterable[Entry], settings: Settings, topic: str) -> Iterator[Entry]:
    """Yield entries; an event that all models of the topic would refuse becomes a bad line that says why.

    Only what settings and event alone tell is looked at: classes, ids or names, and binary features.
    """
    models = {name: model for name, model in settings.models.items() if model.input == topic}
    readers = [_reader(name, each) for name, each in models.items() if isinstance(each, ExampleSettings)]
    for entry in entries:
        if not readers or len(readers) < len(models) or isinstance(entry, BadLine):
            yield entry
            continue
        misfits = [reader.misfit(entry.fields) for reader in readers]
        told = next(filter(None, misfits), None)
        yield entry if told is None or None in misfits else BadLine(entry.line, told)


def is_number(label: object) -> bool:
    """Return whether models of numbers take a label."""
    return isinstance(label, int | float) and not isinstance(label, bool) and abs(label) <= LARGEST_VALUE


def _reader(name: str, model: ExampleSettings) -> _Reader:
    classes = (model.classes or None) if isinstance(model, ClassifierSettings) else None
    known = frozenset((type(each), each) for each in classes or ())
    scale = model.scale if isinstance(model, TargetSettings) and model.target == "number" else None
    return _Reader(name, model.kind, classes, known, model.features, *model.feature_kinds, scale)


def _values(x: Any) -> Iterable[tuple[int | str, Any]]:
    if not isinstance(x, dict):
        return ()
    if not is_packed(x):
        return x.items()
    values = x.get("v")
    return zip(x["i"], values, strict=False) if isinstance(values, list) and isinstance(x["i"], list) else ()
