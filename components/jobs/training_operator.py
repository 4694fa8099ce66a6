"""Kubeflow's training-operator, which runs PyTorchJobs and other kinds of v1 jobs, by a chart of ours:
upstream has published none.

The chart and what it leaves out: components/charts/training-operator/README.md. Jobs:
trainyard/objects/jobs/pytorch.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.base.chart import release
from components.base.lost_node import leaves_lost_nodes
from trainyard.catalog.limits import RELEASE_BEFORE_NODES_MINUTES
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.plans.controllers import OPERATOR, TrainingOperatorPlan

NAMESPACE = "kubeflow"
"""Upstream's: people look for it there."""


class TrainingOperator(pulumi.ComponentResource):
    """The controller and webhook that turn a PyTorchJob into pods."""

    ready: list[pulumi.Resource]
    """The controller, and the nodes that it runs on."""

    def __init__(
        self,
        name: str,
        plan: TrainingOperatorPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:trainer:TrainingOperator", name, None, opts)
        more = [kind.lower() for kind in plan.more_kinds]
        controller = release(
            self,
            OPERATOR,
            plan.chart,
            namespace=NAMESPACE,
            create_namespace=True,
            values={
                "initTries": plan.init_tries,
                "tolerations": leaves_lost_nodes(),
                "nodeSelector": {NODES_FOR: "system"},
                **({"moreKinds": more} if more else {}),
            },
            minutes=RELEASE_BEFORE_NODES_MINUTES,
        )
        self.ready = [controller, *nodes]
        self.register_outputs({})
