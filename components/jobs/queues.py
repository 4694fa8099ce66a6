"""Kueue, by Helm, and what all teams share of the queues: flavors of nodes, the nodes that are nobody's
guarantee, and urgencies.

Settings: `queues` in the stack file. What the objects say: trainyard/objects/queues/queues.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.chart import release
from components.base.lost_node import leaves_lost_nodes
from trainyard.catalog.limits import RELEASE_BEFORE_NODES_MINUTES
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.objects.queues.queues import (
    API,
    COHORT,
    KUEUE,
    NAMESPACE,
    REPLICAS,
    TOPOLOGY,
    URGENCIES,
    QueuesPlan,
    cohort_spec,
    configuration,
    flavor_spec,
    topology_spec,
)
from trainyard.plans.jobs import Spec


class Queues(pulumi.ComponentResource):
    """The controller that starts the jobs of teams."""

    admission: list[pulumi.Resource]
    """The controller, whose webhooks every new job goes through."""
    ready: list[pulumi.Resource]
    """Objects that the queue of a team refers to."""

    def __init__(
        self,
        name: str,
        plan: QueuesPlan,
        *,
        controllers: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`controllers`: of jobs."""
        super().__init__("trainyard:queues:Queues", name, None, opts)
        chart = release(
            self,
            KUEUE,
            plan.chart,
            namespace=NAMESPACE,
            create_namespace=True,
            values=_values(plan),
            # Kueue looks for the kinds of jobs when it starts.
            needs=controllers,
            minutes=RELEASE_BEFORE_NODES_MINUTES,
        )
        # Controller and webhooks: a deletion waits for a finalizer that Kueue takes off.
        opts = self._opts = pulumi.ResourceOptions(parent=self, depends_on=[chart])
        self.admission = [chart]
        if any(each.by_topology for each in plan.flavors):
            kueue_object(f"{name}-topology", "Topology", TOPOLOGY, topology_spec(), opts)
        flavors = [
            kueue_object(
                f"flavor-{each.pool}", "ResourceFlavor", each.pool, flavor_spec(each), opts
            )
            for each in plan.flavors
        ]
        cohort = kueue_object(f"{name}-cohort", "Cohort", COHORT, cohort_spec(plan.flavors), opts)
        classes = [self._urgency(called, value) for called, value in URGENCIES.items()]
        self.ready = [*flavors, cohort, *classes, *controllers]
        self.register_outputs({})

    def _urgency(self, called: str, value: int) -> pulumi.Resource:
        """A WorkloadPriorityClass has no spec, which the SDK's own class of custom resources
        demands."""
        kind = "WorkloadPriorityClass"
        return pulumi.CustomResource(
            f"kubernetes:{API}:{kind}",
            f"urgency-{called}",
            {
                "apiVersion": API,
                "kind": kind,
                "metadata": {"name": called},
                "value": value,
                "description": "Of trainyard's stack file: urgency of jobs",
            },
            self._opts,
        )


def kueue_object(
    name: str, kind: str, called: str, spec: Spec, opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """An object of Kueue in no namespace. `called`: its name in the cluster."""
    return k8s.apiextensions.CustomResource(
        name, api_version=API, kind=kind, metadata={"name": called}, spec=spec, opts=opts
    )


def _values(plan: QueuesPlan) -> Spec:
    """Values of the chart, without the image, which is in plan.chart."""
    return {
        "controllerManager": {
            "replicas": REPLICAS,
            "podDisruptionBudget": {"enabled": True},
            # On other nodes of an existing cluster the API server may not reach its visibility server, and while an
            # APIService does not answer, no namespace of the cluster ends (kubernetes-sigs/kueue#1769).
            "nodeSelector": {NODES_FOR: "system"},
            "tolerations": leaves_lost_nodes(),
            "manager": {"image": {"pullPolicy": "IfNotPresent"}},
        },
        "managerConfig": {
            "controllerManagerConfigYaml": json.dumps(configuration(plan), sort_keys=True)
        },
    }
