"""The queue of a team: what it is guaranteed, borrows and lends, and where its jobs wait.

What it says: trainyard/objects/queues/queues.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.jobs.namespace import JobNamespace
from components.jobs.queues import kueue_object
from trainyard.objects.queues.queues import API, TeamQueuePlan, cluster_queue_spec


class TeamQueue(pulumi.ComponentResource):
    """ClusterQueue and LocalQueue, both called like the team: a name that is unique shows no team the
    queue of another (kueue#10678)."""

    ready: pulumi.Resource
    """Resource that must exist before a job can wait in the queue."""

    def __init__(
        self,
        name: str,
        plan: TeamQueuePlan,
        *,
        space: JobNamespace,
        needs: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:queues:TeamQueue", name, None, opts)
        # Flavors and cohort are named in the spec only.
        after = pulumi.ResourceOptions(parent=self, depends_on=list(needs))
        share = kueue_object(
            f"{name}-share", "ClusterQueue", plan.team, cluster_queue_spec(plan), after
        )
        self.ready = k8s.apiextensions.CustomResource(
            f"{name}-queue",
            api_version=API,
            kind="LocalQueue",
            metadata={"name": plan.team, "namespace": space.namespace},
            spec={"clusterQueue": plan.team},
            # Named in the spec only.
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[share], deleted_with=space.goes_with
            ),
        )
        self.register_outputs({})
