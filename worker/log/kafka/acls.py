"""Access control lists, as the brokers keep them."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import wait
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from worker.log.kafka.errors import as_log_errors
from worker.log.kafka.outage import Outage
from worker.log.permission import Permission
from worker.log.port import LogError

_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}
_ANY_HOST = "*"


def create_acls(admin: AdminClient, outage: Outage, principal: str, permissions: Iterable[Permission]) -> None:
    """Give permissions; those that are there already stay. Raises `LogError` where that is refused."""
    bindings = [
        AclBinding(
            _RESOURCES[resource],
            name,
            ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
            principal,
            _ANY_HOST,
            _OPERATIONS[operation],
            AclPermissionType.ALLOW,
        )
        for resource, name, operations, prefixed in permissions
        for operation in operations
    ]

    def create(seconds: float) -> None:
        answers: Any = admin.create_acls(bindings, request_timeout=seconds).values()
        admin.poll(0)
        wait(answers)
        for answer in answers:
            answer.result()

    what = f"permissions for {principal}, to be given"
    with as_log_errors(what):
        try:
            outage.wait_for(what, create)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                raise
            raise LogError(
                f"{what}: expected the permission Alter for the cluster; the brokers refuse it; use the login of "
                "an administrator, or let one run the commands"
            ) from failure
