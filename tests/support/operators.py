"""What the kinds of two operators, of Prometheus and KEDA, look like: the fields that manifests here may use."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Duration = Annotated[str, Field(pattern=r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$", min_length=2)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Metadata(_Strict):
    name: str
    labels: dict[str, str]


class _Selector(_Strict):
    matchLabels: dict[str, str]  # noqa: N815 - as it is called there


# --- monitoring.coreos.com/v1


class _Rule(_Strict):
    record: str | None = None
    alert: str | None = None
    expr: str
    for_: Annotated[Duration | None, Field(alias="for")] = None
    keep_firing_for: Duration | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        assert (self.record is None) != (self.alert is None)
        assert self.record is None or (self.for_ is None and not self.annotations), "of alerts only"
        return self


class _Group(_Strict):
    name: Annotated[str, Field(min_length=1)]
    interval: Duration | None = None
    rules: Annotated[list[_Rule], Field(min_length=1)]


class _Groups(_Strict):
    groups: Annotated[list[_Group], Field(min_length=1)]

    @model_validator(mode="after")
    def _by_name(self) -> Self:
        names = [group.name for group in self.groups]
        assert len(set(names)) == len(names), "the groups of a PrometheusRule are a map by name"
        return self


class PrometheusRule(_Strict):
    """Rules of Prometheus."""

    apiVersion: Literal["monitoring.coreos.com/v1"]  # noqa: N815
    kind: Literal["PrometheusRule"]
    metadata: _Metadata
    spec: _Groups


class _Endpoint(_Strict):
    port: str
    path: str
    interval: Duration


class _Pods(_Strict):
    jobLabel: str  # noqa: N815
    selector: _Selector
    podMetricsEndpoints: Annotated[list[_Endpoint], Field(min_length=1)]  # noqa: N815


class PodMonitor(_Strict):
    """Which pods to scrape."""

    apiVersion: Literal["monitoring.coreos.com/v1"]  # noqa: N815
    kind: Literal["PodMonitor"]
    metadata: _Metadata
    spec: _Pods


# --- keda.sh/v1alpha1


class _Target(_Strict):
    apiVersion: str  # noqa: N815
    kind: str
    name: str


class _Reference(_Strict):
    name: str


class _Trigger(_Strict):
    type: str
    authenticationRef: _Reference  # noqa: N815
    metadata: dict[str, str]  # numbers are texts there, too


class _Scaled(_Strict):
    scaleTargetRef: _Target  # noqa: N815
    minReplicaCount: int  # noqa: N815
    maxReplicaCount: int  # noqa: N815
    cooldownPeriod: int  # noqa: N815
    advanced: dict[Literal["horizontalPodAutoscalerConfig"], dict[Literal["behavior"], Any]]
    triggers: Annotated[list[_Trigger], Field(min_length=1)]


class ScaledObject(_Strict):
    """How many workers there are."""

    apiVersion: Literal["keda.sh/v1alpha1"]  # noqa: N815
    kind: Literal["ScaledObject"]
    metadata: _Metadata
    spec: _Scaled


class _FromSecret(_Strict):
    parameter: str
    name: str
    key: str


class _Authentication(_Strict):
    secretTargetRef: Annotated[list[_FromSecret], Field(min_length=1)]  # noqa: N815


class TriggerAuthentication(_Strict):
    """How KEDA logs in."""

    apiVersion: Literal["keda.sh/v1alpha1"]  # noqa: N815
    kind: Literal["TriggerAuthentication"]
    metadata: _Metadata
    spec: _Authentication


KINDS: dict[str, type[BaseModel]] = {
    each.__name__: each for each in (PrometheusRule, PodMonitor, ScaledObject, TriggerAuthentication)
}
