"""What test files share: real Apache Kafka, Prometheus and Kustomize, there when a test first asks for them."""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.examples import THOROUGH, budget
from tests.support.kustomize import Kustomize, KustomizeUnavailable, find_kustomize
from tests.support.prometheus import Programs, PrometheusUnavailable, find_programs
from tests.support.schema_registry import SchemaRegistry, running_registry
from tests.support.secured import Secured, secured_node
from worker.broker import BrokerUnavailable, Cluster, Installation, install

_BROKERS = ("schema_registry", "secured", "kafka3", "kafka", "installation")
_FETCHING = 240.0  # s for the jars, the first time; less than a test may take
_MEMORY = Path("/dev/shm")  # a file system in memory, where there is one
_LONG = 100  # characters of a parameter in a test's name
_ENOUGH = 8 << 30  # bytes free in it; all tests together write some three


def pytest_configure() -> None:
    """Let what tests start be interrupted, and properties take their time.

    Background jobs of a script ignore SIGINT, and so do their children. Hypothesis allows an example 200 ms, which
    is too few on a busy machine.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if _has_memory():
        # Each commit of the embedded log waits for the disk, and tests commit some hundred thousand times.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    settings.register_profile("ours", deadline=None, max_examples=100 if THOROUGH else budget(40))
    settings.load_profile("ours")


def _has_memory() -> bool:
    """Return whether the tests' files find room in memory, programs that they write to start among them."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize >= _ENOUGH and not found.f_flag & os.ST_NOEXEC


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes `-n auto` means: one more for the tests with brokers, which mostly wait."""
    brokers = "not broker" not in config.getoption("markexpr")
    return (os.cpu_count() or 1) + brokers


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Return a short name for a long text or bytes: pytest spells them out, a file of 64 MB in 256 MB a test."""
    if isinstance(val, str | bytes) and len(val) > _LONG:
        return f"{argname}-{len(val)}-{zlib.crc32(val.encode() if isinstance(val, str) else val):08x}"
    return None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that start brokers; with `--dist loadgroup` one process has all tests with the same ones.

    VARIANTS=3 leaves three variants of each test, always the same ones and others in each test, so that all tests
    together still come by each kind, policy and criterion. Tests marked `wide(n)` have n at most; with THOROUGH=1
    all variants of all tests run.
    """
    if not THOROUGH:
        left_out = _all_but(items, int(os.environ.get("VARIANTS", "1000000")))
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        if started := [name for name in _BROKERS if name in getattr(item, "fixturenames", ())]:
            item.add_marker("broker")
            item.add_marker(pytest.mark.xdist_group(started[0]))


def _all_but(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    """Return the items beyond so many variants of a test, or fewer as marked, in an order that differs by test."""
    variants: dict[str, list[pytest.Item]] = {}
    for item in items:
        variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for some in variants.values():
        some.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
    return [item for some in variants.values() for item in some[min(most, _width(some[0], most)) :]]


def _width(item: pytest.Item, most: int) -> int:
    mark = item.get_closest_marker("wide")
    return mark.args[0] if mark is not None else most


@pytest.fixture(scope="session")
def installation() -> Installation:
    """Return Java and Kafka's jars; skip where they are not to be had, fail with REQUIRE_KAFKA=1."""
    try:
        return install(timeout=_FETCHING)
    except BrokerUnavailable as error:
        if os.environ.get("REQUIRE_KAFKA") == "1":
            raise
        pytest.skip(f"needs Apache Kafka: {error}")


@pytest.fixture(scope="session")
def kafka(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return one running node, for all tests: each has topics, groups and transactional ids of its own."""
    # The cleaner looks for work every second rather than 15: compacted topics can be tested.
    often = {"log.cleaner.backoff.ms": "1000"}
    with Cluster(installation, tmp_path_factory.mktemp("kafka"), properties=often) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka3(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return three running nodes, for all tests: one that takes a node down brings it back."""
    with Cluster(installation, tmp_path_factory.mktemp("kafka"), 3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secured(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Return a running node with TLS, logins and ACLs, for all tests: each has users of its own."""
    with secured_node(installation, tmp_path_factory.mktemp("secured")) as node:
        yield node


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """Return a running registry, for all tests: each has subjects of its own."""
    try:
        with running_registry(tmp_path_factory.mktemp("registry")) as registry:
            yield registry
    except BrokerUnavailable as error:
        if os.environ.get("REQUIRE_KAFKA") == "1":
            raise
        pytest.skip(f"needs a schema registry: {error}")


@pytest.fixture(scope="session")
def prometheus_programs() -> Programs:
    """Return Prometheus and promtool; skip where they are not to be had, fail with REQUIRE_PROMETHEUS=1."""
    try:
        return find_programs()
    except PrometheusUnavailable as error:
        if os.environ.get("REQUIRE_PROMETHEUS") == "1":
            raise
        pytest.skip(f"needs Prometheus: {error}")


@pytest.fixture(scope="session")
def kustomize() -> Kustomize:
    """Return Kustomize; skip where it is not to be had, fail with REQUIRE_KUSTOMIZE=1."""
    try:
        return find_kustomize()
    except KustomizeUnavailable as error:
        if os.environ.get("REQUIRE_KUSTOMIZE") == "1":
            raise
        pytest.skip(f"needs Kustomize: {error}")
