"""A Helm chart as one resource. Where it comes from is the plan's business, what it is told the
component's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from trainyard.catalog.limits import RELEASE_MINUTES
from trainyard.plans.controllers import ChartPlan
from trainyard.plans.images import chart_values, merged


def release(
    parent: pulumi.Resource,
    name: str,
    chart: ChartPlan,
    *,
    namespace: str,
    values: Mapping[str, Any] | None = None,
    needs: Sequence[pulumi.Resource] = (),
    skip_crds: bool = False,
    create_namespace: bool = False,
    take_ownership: bool = False,
    minutes: int = RELEASE_MINUTES,
    waits: bool = True,
) -> k8s.helm.v3.Release:
    """Install, and wait for `minutes` at most until its workloads are ready, unless `waits` is false. A release is
    named like its resource, so a lost one is found."""
    repository = k8s.helm.v3.RepositoryOptsArgs(repo=chart.repository) if chart.repository else None
    return k8s.helm.v3.Release(
        name,
        name=name,
        chart=chart.chart,
        version=chart.version,
        repository_opts=repository,
        namespace=namespace,
        create_namespace=create_namespace,
        values=merged(values or {}, chart_values(chart.images) if chart.named else {}),
        skip_crds=skip_crds,
        take_ownership=take_ownership or None,
        timeout=minutes * 60,
        skip_await=None if waits else True,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(needs)),
    )


def judged_by(crds: k8s.helm.v3.Release, spec: Mapping[str, Any]) -> pulumi.Output[dict[str, Any]]:
    """The spec of an object whose kind the release `crds` brings. A preview that changes the release does not
    know the spec, and so lets the API server try none by the CRDs that are about to be replaced. A preview that
    makes the release knows it: there is no API server yet, or it does not serve the kind."""

    async def value() -> dict[str, Any]:
        return {**spec}

    async def known() -> bool:
        return await crds.status.is_known() or not await crds.id.is_known()

    return pulumi.Output({crds}, value(), known())
