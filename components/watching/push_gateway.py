"""The Pushgateway: it takes figures from jobs and keeps them until Prometheus reads them.

Settings: `metrics.push_gateway` in the stack file. Its address: trainyard/plans/push_gateway.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.one_pod import one_pod, one_pod_service
from components.base.unprivileged import server, system_pod
from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.plans.push_gateway import APP, MILLICPUS, PORT, PushGatewayPlan

LABELS = {LABEL: APP}
SIZE = {"cpu": f"{MILLICPUS}m", "memory": "256Mi"}
"""Groups of figures take some kB each; 256 MiB are more than 10,000 of them."""


class PushGateway(pulumi.ComponentResource):
    """One replica: figures are in its memory, and a new pod begins without any."""

    def __init__(
        self,
        name: str,
        plan: PushGatewayPlan,
        *,
        namespace: pulumi.Output[str],
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        super().__init__("trainyard:metrics:PushGateway", name, None, opts)
        called = k8s.meta.v1.ObjectMetaArgs(name=APP, namespace=namespace)
        container = server(
            APP, plan.image, port=PORT, size=SIZE, healthy="/-/healthy", ready="/-/ready"
        )
        one_pod(name, called, LABELS, system_pod(container), parent=self, needs=nodes)
        one_pod_service(f"{name}-service", called, LABELS, PORT, parent=self)
        self.register_outputs({})
