"""What a worker must be allowed to do in a cluster that asks, and the commands that allow it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from worker.log.permission import Permission
from worker.settings import Settings


def permissions(settings: Settings) -> Iterator[Permission]:
    """Yield what a worker with these settings does, once its topics are there."""
    for topic, route in settings.routes.items():
        yield Permission("topic", topic, ("Read", "DescribeConfigs"))
        for results in route.results:
            yield Permission("topic", results, ("Write", "DescribeConfigs"))
        if settings.checkpoint is not None:
            yield Permission("topic", route.state, ("Read", "Write", "DescribeConfigs"))
        else:  # it may be there from before, and say what is passed by
            yield Permission("topic", route.state, ("Read",))
    yield Permission("group", settings.group, ("Read",))
    kafka = settings.log.kafka
    if kafka is not None and kafka.guarantee == "exactly_once":
        # Without an instance in the settings it is the name of the worker's host, which is not known here.
        from worker.log.kafka.properties import transactional_id  # loads the client

        name = transactional_id(settings.group, kafka.instance or "")
        yield Permission("transactional-id", name, ("Write",), prefixed=kafka.instance is None)


def command(permission: Permission, principal: str, bootstrap: str) -> str:
    """Return the command line that gives a permission."""
    words = ["kafka-acls.sh", "--bootstrap-server", bootstrap, "--add", "--allow-principal", principal]
    words += [word for operation in permission.operations for word in ("--operation", operation)]
    words += [f"--{permission.resource}", permission.name]
    words += ["--resource-pattern-type", "prefixed"] * permission.prefixed
    return shlex.join(words)
