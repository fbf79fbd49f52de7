"""Ten numeric attributes, two functions of them, and noise: what streams of labels that are numbers share."""

from __future__ import annotations

from dataclasses import dataclass

from worker.sources.generators.draws import NORMALS, Draws
from worker.sources.generators.port import NUMBERS, NUMERIC, Attribute, Schema, at_least, within

ATTRIBUTES = 10


@dataclass(eq=False, kw_only=True)
class TenNumbers:
    """The settings of such a stream, and what it is drawn from."""

    function: int = 1
    noise: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        within("function", self.function, 1, 2)
        within("noise", self.noise, 0, 1e100)
        at_least("seed", self.seed, 0)
        names = (f"attrib{number}" for number in range(1, ATTRIBUTES + 1))
        self.schema = Schema(tuple(Attribute(name, NUMERIC) for name in names), NUMBERS)
        self._draws, self._normals = Draws(self.seed), Draws(self.seed, NORMALS)
