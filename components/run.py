"""A paid run, whichever kind of object describes it: a changed identity starts it, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pulumi
import pulumi_kubernetes as k8s

from components.plans import Spec

RUN = "trainyard.io/run"
"""Annotation with the identity of the run."""


class RunPlan(Protocol):
    """What every plan of a job says."""

    @property
    def name(self) -> str: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def run(self) -> str: ...


def run(parent: pulumi.Resource, name: str, plan: RunPlan, *, api_version: str, kind: str,
        namespace: pulumi.Input[str], needs: Sequence[pulumi.Resource]) -> k8s.apiextensions.CustomResource:
    """The object of a run."""
    return k8s.apiextensions.CustomResource(
        name, api_version=api_version, kind=kind, spec=plan.spec,
        metadata={"name": plan.name, "namespace": namespace, "annotations": {RUN: plan.run}},
        opts=pulumi.ResourceOptions(
            parent=parent,
            # Claims, pool and the job's controller are named in the spec and not referred to: at destroy the run ends
            # first.
            depends_on=list(needs),
            # Controllers write to the spec (suspend, overrides); a paid run follows its identity only.
            ignore_changes=["spec"], replace_on_changes=[f'metadata.annotations["{RUN}"]'],
            delete_before_replace=True))
