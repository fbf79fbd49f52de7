"""A node of Kafka that lets in who has a certificate's trust, a password and an ACL, as clusters of others do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from worker.broker import Cluster, Installation
from worker.broker.ports import HOST, free_ports

_SECONDS = 30.0


class Certificate(NamedTuple):
    """A certificate that signs itself, so that it is its own authority, with its key."""

    authority: Path
    both: Path

    @classmethod
    def make(cls, folder: Path, name: str) -> Certificate:
        """Make one for the loopback address."""
        made = cls(folder / f"{name}.crt", folder / f"{name}.pem")
        key = folder / f"{name}.key"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{HOST}"]
        files = ["-keyout", str(key), "-out", str(made.authority)]
        subprocess.run([*command, *names, *files], check=True, capture_output=True)
        made.both.write_text(key.read_text() + made.authority.read_text())
        return made


class Secured(NamedTuple):
    """A running node: one port wants TLS and a login, the other one is open and its clients may do anything."""

    cluster: Cluster
    address: str
    certificate: Certificate
    stranger: Certificate  # of somebody else
    admin: AdminClient

    def user(self) -> dict[str, str]:
        """Add a user, who may do nothing yet, and return the client properties to be that user."""
        name, password = f"user-{uuid4().hex[:10]}", uuid4().hex
        credentials = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        added = UserScramCredentialUpsertion(name, credentials, password.encode())
        for future in self.admin.alter_user_scram_credentials([added]).values():
            future.result(_SECONDS)
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.certificate.authority),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": name,
            "sasl.password": password,
        }

    def allow(self, bindings: Iterable[AclBinding]) -> None:
        """Create ACLs of one user; they hold when this returns."""
        wanted = list(bindings)
        for future in self.admin.create_acls(wanted).values():
            future.result(_SECONDS)
        self._until(lambda found: all(each in found for each in wanted), wanted[0].principal)

    def acls(self, user: Mapping[str, str]) -> list[AclBinding]:
        """Return the ACLs of a user."""
        return self._found(principal(user))

    def await_acls(self, user: Mapping[str, str], count: int) -> None:
        """Wait until so many ACLs of a user hold: the node hears of them a moment after they were made."""
        self._until(lambda found: len(found) == count, principal(user))

    def _found(self, name: str) -> list[AclBinding]:
        return list(self.admin.describe_acls(_of(name)).result(_SECONDS))

    def _until(self, done: Callable[[list[AclBinding]], bool], name: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not done(self._found(name)):
            assert time.monotonic() < deadline

    def forbid(self, user: Mapping[str, str]) -> None:
        """Delete the ACLs of a user; they no longer hold when this returns."""
        for future in self.admin.delete_acls([_of(principal(user))]).values():
            future.result(_SECONDS)
        self.await_acls(user, 0)


def principal(user: Mapping[str, str]) -> str:
    """Return what brokers call a user."""
    return f"User:{user['sasl.username']}"


def _of(name: str) -> AclBindingFilter:
    anything = (ResourceType.ANY, None, ResourcePatternType.ANY)
    return AclBindingFilter(*anything, name, None, AclOperation.ANY, AclPermissionType.ANY)


@contextmanager
def secured_node(installation: Installation, folder: Path) -> Iterator[Secured]:
    """Run a node for a while."""
    certificate, stranger = (Certificate.make(folder, name) for name in ("node", "stranger"))
    (port,) = free_ports(1)
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    properties = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": module,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate.both),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Cluster(installation, folder / "kafka", properties=properties, listeners={"SASL_SSL": port}) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        yield Secured(cluster, f"{HOST}:{port}", certificate, stranger, admin)
