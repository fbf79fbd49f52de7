"""What somebody may do in a cluster that asks."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Operation: TypeAlias = Literal["Read", "Write", "Describe", "DescribeConfigs"]


class Permission(NamedTuple):
    """What must be allowed of one thing. Read and Write allow Describe as well."""

    resource: Literal["topic", "group", "transactional-id"]
    name: str
    operations: tuple[Operation, ...]
    prefixed: bool = False  # of all whose names begin so
