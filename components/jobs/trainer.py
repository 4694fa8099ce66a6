"""Kubeflow Trainer v2 with JobSet, by Helm, and the runtimes that jobs refer to.

Version and runtimes: `trainer` in the stack file. What a runtime says: trainyard/objects/jobs/own_runtimes.py and
trainyard/objects/jobs/upstream_runtimes.py. Why the CRDs have a chart of our own: docs/decisions/0002.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.admission_policy import admission_policy
from components.base.chart import judged_by, release
from components.base.lost_node import leaves_lost_nodes
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.limits import RELEASE_BEFORE_NODES_MINUTES
from trainyard.objects.jobs import one_run
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.plans.controllers import TrainerPlan
from trainyard.plans.jobs import RuntimePlan

NAMESPACE = "kubeflow-system"
API = JOB_KINDS["TrainJob"].api_version
"""API version of the kinds that the Trainer's CRDs bring."""


class Trainer(pulumi.ComponentResource):
    """The controllers and webhooks that turn a TrainJob into pods."""

    crds: k8s.helm.v3.Release
    """The kinds TrainJob, TrainingRuntime and ClusterTrainingRuntime."""
    ready: list[pulumi.Resource]
    """The controllers, and the nodes that they run on: a finalizer of theirs is only taken off by
    pods that run."""

    def __init__(
        self,
        name: str,
        plan: TrainerPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:trainer:Trainer", name, None, opts)
        self.crds = release(
            self,
            "kubeflow-trainer-crds",
            plan.crds,
            namespace=NAMESPACE,
            create_namespace=True,
            # CRDs that an earlier chart of upstream created belong to nobody.
            take_ownership=True,
        )
        pods = {"tolerations": leaves_lost_nodes(), "nodeSelector": {NODES_FOR: "system"}}
        controllers = release(
            self,
            "kubeflow-trainer",
            plan.chart,
            namespace=NAMESPACE,
            skip_crds=True,
            # From the chart's version the tag does not follow in every release.
            values={
                "image": {"tag": plan.image_tag},
                "crds": {"enabled": False},
                "manager": pods,
                "jobset": {"controller": pods},
            },
            # Controllers of a newer release need its CRDs; an older CRD drops their fields. Nodes
            # are no need: the pods wait for them, and the release for the pods.
            needs=[self.crds],
            minutes=RELEASE_BEFORE_NODES_MINUTES,
        )
        # Also of jobs of the training-operator.
        admission_policy(
            self, "one-run", one_run.POLICY, spec=one_run.policy(), binding=one_run.binding()
        )
        self.ready = [controllers, *nodes]
        self.register_outputs({})


class Runtimes(pulumi.ComponentResource):
    """ClusterTrainingRuntimes: the upstream ones and our own."""

    ready: dict[str, pulumi.Resource]
    """name → runtime."""

    def __init__(
        self,
        name: str,
        plan: Sequence[RuntimePlan],
        *,
        trainer: Trainer,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:trainer:Runtimes", name, None, opts)
        self.ready = {runtime.name: self._runtime(runtime, trainer) for runtime in plan}
        self.register_outputs({})

    def _runtime(self, plan: RuntimePlan, trainer: Trainer) -> k8s.apiextensions.CustomResource:
        return k8s.apiextensions.CustomResource(
            plan.name,
            api_version=API,
            kind="ClusterTrainingRuntime",
            metadata={
                "name": plan.name,
                "labels": {"trainer.kubeflow.org/framework": plan.framework},
            },
            spec=judged_by(trainer.crds, plan.spec),
            opts=pulumi.ResourceOptions(
                parent=self,
                # The webhook that admits it comes with the chart.
                depends_on=[*trainer.ready],
                # JobSet's failure policy cannot be edited in place, and the name is what jobs refer
                # to.
                replace_on_changes=["spec.template.spec.failurePolicy"],
                delete_before_replace=True,
            ),
        )
