"""Brokers that ask who may do what: what a worker needs, and what it says where something of that is missing."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from click.testing import CliRunner, Result
from confluent_kafka.admin import AclBinding, AclOperation

from tests.support.logs import Interrupted
from tests.support.secured import Secured, principal
from worker.codec.event import encode_event
from worker.commands import main
from worker.log.kafka import KafkaLog
from worker.log.permission import Permission
from worker.log.port import LogError, OutRecord
from worker.permissions import command, permissions
from worker.settings import Settings

_EVENTS = [encode_event(["word"], "spam"), encode_event([], "ham"), b"bad"]
_SENTENCES = {"transactional-id": "transactional id"}


class Tenant:
    """Topics in the secured cluster with an event each that is fine and one that is not, and users of them."""

    def __init__(self, secured: Secured, folder: Path) -> None:
        self.secured = secured
        self.folder = folder
        self.topic = f"sms-{uuid4().hex[:10]}"
        self.opened = self.settings({"bootstrap.servers": secured.cluster.bootstrap})
        result = self.run("topics", "create", self.opened, "--inputs", 1, "--yes")
        assert result.exit_code == 0, result.output
        with KafkaLog({"bootstrap.servers": secured.cluster.bootstrap}, group="g", instance=self.topic) as log:
            log.commit([OutRecord(self.topic, 0, b"k", value, (), 1) for value in _EVENTS], {})

    def settings(self, user: Mapping[str, str], *, checkpoints: bool = True, **kafka: object) -> Path:
        """Return a settings file for a user."""
        document: dict[str, Any] = {
            "log": {
                "kafka": {
                    "bootstrap": user["bootstrap.servers"],
                    "instance": "w",
                    "properties": {name: value for name, value in user.items() if name != "bootstrap.servers"},
                    **kafka,
                }
            },
            "group": f"g-{self.topic}-{user.get('sasl.username', '')}",
            "models": {
                "spam": {"kind": "split", "input": self.topic, "classes": ["ham", "spam"], "features": "names"}
            },
            "checkpoint": {"records": 1} if checkpoints else None,
            "metrics": None,
        }
        path = self.folder / f"{uuid4().hex}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    def run(self, *arguments: object) -> Result:
        """Run a command."""
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    def permitted(self, *, checkpoints: bool = True, **kafka: object) -> tuple[Mapping[str, str], Path]:
        """Return a user who may do what the command says, with settings."""
        user = self.secured.user()
        given = {"bootstrap": self.secured.cluster.bootstrap, "properties": {}, **kafka}
        told = self.settings(user, checkpoints=checkpoints, **given)
        done = self.run("topics", "create", told, "--acls", principal(user), "--yes")
        assert done.exit_code == 0, done.output
        self.secured.await_acls(user, done.output.count("--operation"))
        return user, self.settings(user, checkpoints=checkpoints, **kafka)


@pytest.fixture
def tenant(secured: Secured, tmp_path: Path) -> Tenant:
    """Return topics of the test's own."""
    return Tenant(secured, tmp_path)


def _minimal() -> Settings:
    model = {"kind": "split", "input": "T", "classes": [0, 1], "features": "ids"}
    kafka = {"bootstrap": "b:1", "instance": "w"}
    return Settings.model_validate({"log": {"kafka": kafka}, "group": "G", "models": {"m": model}})


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_what_the_command_gives_is_enough(tenant: Tenant, guarantee: str) -> None:
    """With the permissions of `topics create --acls` a worker runs, leaves a checkpoint, and starts again."""
    user, settings = tenant.permitted(guarantee=guarantee)
    assert AclOperation.ALL not in {acl.operation for acl in tenant.secured.acls(user)}
    for _ in range(2):
        result = tenant.run("run", settings, "--until-end")
        assert result.exit_code == 0, result.output


def test_it_is_enough_without_checkpoints(tenant: Tenant) -> None:
    """A worker that leaves none still reads what the state topic says is passed by."""
    _, settings = tenant.permitted(checkpoints=False)
    for _ in range(2):
        result = tenant.run("run", settings, "--until-end")
        assert result.exit_code == 0, result.output


def test_an_instance_that_is_not_known_is_any(tenant: Tenant) -> None:
    """Where the name of the host is the instance, a worker on any host may write."""
    _, settings = tenant.permitted(instance=None)
    assert tenant.run("run", settings, "--until-end").exit_code == 0


_CASES = [
    pytest.param(each.resource, each.name, operation, instead, id=f"{each.name}-{operation}-{instead}")
    for each in permissions(_minimal())
    for operation in each.operations
    for instead in (None, "DESCRIBE")
    if instead is None or operation != "DescribeConfigs"
]


def _take(secured: Secured, user: Mapping[str, str], name: str, operation: str, instead: str | None) -> None:
    """Take one permission from a user, and give another one instead."""
    given = secured.acls(user)
    wanted = AclOperation["DESCRIBE_CONFIGS" if operation == "DescribeConfigs" else operation.upper()]
    (missing,) = [acl for acl in given if (acl.name, acl.operation) == (name, wanted)]
    secured.forbid(user)
    secured.allow(acl for acl in given if acl != missing)
    if instead is not None:
        pattern = (missing.restype, missing.name, missing.resource_pattern_type, missing.principal, missing.host)
        secured.allow([AclBinding(*pattern, AclOperation[instead], missing.permission_type)])


@pytest.mark.parametrize(("resource", "name", "operation", "instead"), _CASES)
def test_what_is_missing_is_named(
    tenant: Tenant, resource: str, name: str, operation: str, instead: str | None
) -> None:
    """Without any one of the permissions the worker ends, and names the thing and the operation."""
    user, settings = tenant.permitted()
    if (name, operation) == ("T.state", "Read"):
        assert tenant.run("run", settings, "--until-end").exit_code == 0
    name = name.replace("T", tenant.topic).replace("G", f"g-{tenant.topic}-{user['sasl.username']}")
    _take(tenant.secured, user, name, operation, instead)
    result = tenant.run("run", settings, "--until-end")
    assert result.exit_code == 1
    told = result.output.splitlines()[-1]
    what = f"for the {_SENTENCES.get(resource, resource)} '{name}'"
    if f"Describe {what}" in told:  # a topic that it must not know about
        assert instead is None
        assert "(Read and Write include it)" in told
    else:
        assert f"expected the permission {operation} {what}" in told
    assert f"--{resource} {name}; " in told
    assert "anabranch topics create SETTINGS --acls User:NAME" in told


def test_what_is_missing_is_named_while_records_are_handed_over(tenant: Tenant) -> None:
    """A client that has heard of the refusal takes no record more, and does not say why by itself."""
    user, _ = tenant.permitted()
    name = f"{tenant.topic}.out"
    _take(tenant.secured, user, name, "Write", "DESCRIBE")
    records = [OutRecord(name, 0, b"k", b"value", (), 1)] * 2
    with (
        KafkaLog(user, group=f"g-{tenant.topic}-{user['sasl.username']}", instance="w") as log,
        pytest.raises(LogError, match=f"expected the permission Write for the topic '{name}'"),
    ):
        log.commit(Interrupted(records, lambda: time.sleep(2.0)), {})


def test_the_commands_are_shown(tenant: Tenant) -> None:
    """Without --yes nothing is done, and each line is a command for the tool that comes with Kafka."""
    user = tenant.secured.user()
    settings = tenant.settings(user)
    result = tenant.run("topics", "create", settings, "--acls", principal(user))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert all(
        line.startswith(f"kafka-acls.sh --bootstrap-server {tenant.secured.address} --add") for line in lines
    )
    assert "nothing is done yet" in result.stderr
    assert tenant.secured.acls(user) == []


def test_only_an_administrator_gives_permissions(tenant: Tenant) -> None:
    """A user without the permission to give some is told so."""
    user = tenant.secured.user()
    result = tenant.run("topics", "create", tenant.settings(user), "--acls", principal(user), "--yes")
    assert result.exit_code == 1
    assert "expected the permission Alter for the cluster" in result.output


def test_topics_to_be_created_need_a_permission(tenant: Tenant) -> None:
    """Who may not create topics is told which permission it takes."""
    name = f"{tenant.topic}-new"
    with (
        KafkaLog(tenant.secured.user(), group="g", instance="i") as log,
        pytest.raises(LogError, match=f"Create for the topic '{name}'"),
    ):
        log.create_topic(name, 1)


def test_commands_are_quoted() -> None:
    """A name with blanks is one word, and a prefix is told as such."""
    settings = _minimal().model_copy(update={"group": "my group"})
    kafka = settings.log.kafka
    assert kafka is not None
    anywhere = settings.log.model_copy(update={"kafka": kafka.model_copy(update={"instance": None})})
    *_, group, writer = permissions(settings.model_copy(update={"log": anywhere}))
    assert shlex.split(command(group, "User:a b", "h:1"))[-5:] == [
        *("User:a b", "--operation", "Read"),
        *("--group", "my group"),
    ]
    assert command(writer, "User:x", "h:1").endswith(
        "--transactional-id 'my group-' --resource-pattern-type prefixed"
    )


def test_the_page_says_what_other_commands_need(tenant: Tenant) -> None:
    """Publishing, recording and showing take the permissions that the page names."""
    user = tenant.secured.user()
    settings = tenant.settings(user)
    group = f"g-{tenant.topic}-{user['sasl.username']}"
    described = Permission("group", group, ("Describe",))
    reading = [Permission("topic", tenant.topic, ("Read", "DescribeConfigs")), described]
    state = Permission("topic", f"{tenant.topic}.state", ("Read",))
    others = [Permission("topic", f"{tenant.topic}.{each}", ("Describe",)) for each in ("out", "dead", "state")]
    name = f"{group}-w-publish-{tenant.topic}"
    writing = [Permission("topic", tenant.topic, ("Write",)), Permission("transactional-id", name, ("Write",))]
    (tenant.folder / "messages.txt").write_text("ham\tsee you\n")
    with KafkaLog({"bootstrap.servers": tenant.secured.cluster.bootstrap}, group="g", instance="i") as admin:
        for given, *arguments in (
            ([*reading, state], "record", settings, tenant.folder / "rec.db"),
            ([*reading, *others], "show", settings, "--topic", tenant.topic),
            (writing, "publish", tenant.folder / "messages.txt", "--to", settings),
        ):
            tenant.secured.forbid(user)
            admin.allow(principal(user), given)
            tenant.secured.await_acls(user, sum(len(each.operations) for each in given))
            result = tenant.run(*arguments)
            assert result.exit_code == 0, result.output
        tenant.secured.forbid(user)
        admin.allow(principal(user), reading[:1])
    tenant.secured.await_acls(user, 2)
    result = tenant.run("record", settings, tenant.folder / "other.db")
    assert f"expected the permission Describe for the group '{group}'" in result.output
