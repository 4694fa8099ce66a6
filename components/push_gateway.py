"""The Pushgateway: it takes figures from jobs and keeps them until Prometheus reads them.

Settings: `metrics.push_gateway` in the stack file. Its address: plans/push_gateway.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.one_pod import one_pod, one_pod_service
from components.unprivileged import container_security, pod_security, probe
from plans.metrics import APP as LABEL
from plans.pod_template import NODES_FOR
from plans.push_gateway import APP, PORT, PushGatewayPlan

LABELS = {LABEL: APP}
SIZE = {"cpu": "50m", "memory": "256Mi"}
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
        k8s.apps.v1.Deployment(
            name,
            metadata=called,
            # Two at a time would share the pushes of a run between them.
            spec=one_pod(LABELS, _pod(plan)),
            # An edge that no input shows: without nodes the wait for its pod gives up after 10 minutes.
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(nodes)),
        )
        child = pulumi.ResourceOptions(parent=self)
        one_pod_service(f"{name}-service", APP, namespace, LABELS, PORT, child)
        self.register_outputs({})


def _pod(plan: PushGatewayPlan) -> k8s.core.v1.PodSpecArgs:
    container = k8s.core.v1.ContainerArgs(
        name=APP,
        image=plan.image,
        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=PORT)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests=SIZE, limits={"memory": SIZE["memory"]}
        ),
        readiness_probe=probe("/-/ready"),
        liveness_probe=probe("/-/healthy"),
        security_context=container_security(),
    )
    return k8s.core.v1.PodSpecArgs(
        automount_service_account_token=False,  # of the API server, which it does not ask
        node_selector={NODES_FOR: "system"},
        enable_service_links=False,
        security_context=pod_security(),
        containers=[container],
    )
