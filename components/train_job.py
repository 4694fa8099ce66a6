"""One training run.

What it runs: `jobs` in the stack file. What the object says: components/trainer_objects.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.plans import TrainJobPlan

RUN = "trainyard.io/run"


class TrainJob(pulumi.ComponentResource):
    """A TrainJob that is started by a changed identity, and by nothing else."""

    def __init__(self, name: str, plan: TrainJobPlan, *, namespace: pulumi.Input[str],
                 needs: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:jobs:TrainJob", name, None, opts)
        k8s.apiextensions.CustomResource(
            name, api_version="trainer.kubeflow.org/v1alpha1", kind="TrainJob",
            metadata={"name": plan.name, "namespace": namespace, "annotations": {RUN: plan.run}}, spec=plan.spec,
            opts=pulumi.ResourceOptions(
                parent=self,
                # Runtime, claims and pool are named in the spec and not referred to: at destroy the run ends first.
                depends_on=list(needs),
                # Controllers write to the spec (suspend, overrides); a paid run follows its identity only.
                ignore_changes=["spec"], replace_on_changes=[f'metadata.annotations["{RUN}"]'],
                delete_before_replace=True))
        self.register_outputs({})
