"""Prometheus with its rules, and what it may read.

Settings: `metrics` in the stack file. Whom it asks: trainyard/objects/metrics/metrics.py. Why no
chart, and why its history is on the disk of its node: docs/decisions/0013.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.one_pod import one_pod, one_pod_service
from components.base.rbac import RBAC
from components.base.unprivileged import files_of, scratch, server, system_pod
from components.watching.managed_prometheus import ManagedPrometheus
from trainyard.objects.metrics.alerts import rules
from trainyard.objects.metrics.managed_prometheus import SERVICE_ACCOUNT
from trainyard.objects.metrics.metrics import (
    APP,
    FOLDER,
    NAMESPACE,
    PORT,
    RULES,
    MetricsPlan,
    prometheus_config,
)

PROMETHEUS = "prometheus"
LABELS = {APP: PROMETHEUS}
DATA = "/prometheus"
RELOAD_SECONDS = 30
READS = (
    ("", "nodes", ("get", "list", "watch")),
    ("", "pods", ("get", "list", "watch")),
    ("", "services", ("get", "list", "watch")),
    ("discovery.k8s.io", "endpointslices", ("get", "list", "watch")),
    ("", "nodes/metrics", ("get",)),
)
"""API group, resource and verbs: to find pods and nodes, and to ask kubelets."""


class Metrics(pulumi.ComponentResource):
    """The program that collects metrics and judges alerts."""

    namespace: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        plan: MetricsPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        managed: ManagedPrometheus | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on. `managed`: the workspace that gets its samples, too."""
        super().__init__("trainyard:metrics:Metrics", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        namespace = k8s.core.v1.Namespace(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=NAMESPACE, labels={"pod-security.kubernetes.io/enforce": "restricted"}
            ),
            opts=self._child,
        )
        self.namespace = namespace.metadata.name
        called = k8s.meta.v1.ObjectMetaArgs(name=PROMETHEUS, namespace=self.namespace)
        account = k8s.core.v1.ServiceAccount(
            f"{name}-account",
            metadata=k8s.meta.v1.ObjectMetaArgs(name=SERVICE_ACCOUNT, namespace=self.namespace),
            opts=self._child,
        )
        self._may_read(name, account)
        files = k8s.core.v1.ConfigMap(
            f"{name}-files",
            metadata=called,
            data={"prometheus.yml": _config(plan, managed), RULES: rules(plan)},
            opts=self._child,
        )
        one_pod(
            f"{name}-prometheus",
            called,
            LABELS,
            _pod(plan, account.metadata.name, files.metadata.name),
            parent=self,
            needs=[*nodes, *(managed.ready if managed else ())],
            # A pod gets its identity when it starts: another identity is another pod.
            annotations={"trainyard/writes-as": managed.writer} if managed else None,
        )
        one_pod_service(f"{name}-service", called, LABELS, PORT, parent=self)
        self.register_outputs({})

    def _may_read(self, name: str, account: k8s.core.v1.ServiceAccount) -> None:
        called = k8s.meta.v1.ObjectMetaArgs(name=NAMESPACE)
        role = k8s.rbac.v1.ClusterRole(
            f"{name}-reads",
            metadata=called,
            rules=[
                *(
                    k8s.rbac.v1.PolicyRuleArgs(
                        api_groups=[group], resources=[resource], verbs=list(verbs)
                    )
                    for group, resource, verbs in READS
                ),
                k8s.rbac.v1.PolicyRuleArgs(non_resource_urls=["/metrics"], verbs=["get"]),
            ],
            opts=self._child,
        )
        k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-reads",
            metadata=called,
            role_ref=k8s.rbac.v1.RoleRefArgs(
                api_group=RBAC, kind="ClusterRole", name=role.metadata.name
            ),
            subjects=[
                k8s.rbac.v1.SubjectArgs(
                    kind="ServiceAccount", name=account.metadata.name, namespace=self.namespace
                )
            ],
            opts=self._child,
        )


def _config(plan: MetricsPlan, managed: ManagedPrometheus | None) -> pulumi.Input[str]:
    if managed is None:
        return prometheus_config(plan)
    return managed.endpoint.apply(lambda endpoint: prometheus_config(plan, endpoint))


def _pod(
    plan: MetricsPlan, account: pulumi.Output[str], files: pulumi.Output[str]
) -> k8s.core.v1.PodSpecArgs:
    container = server(
        PROMETHEUS,
        plan.image,
        port=PORT,
        size={"cpu": f"{plan.millicpus}m", "memory": f"{plan.memory_mib}Mi"},
        healthy="/-/healthy",
        ready="/-/ready",
        args=[
            f"--config.file={FOLDER}/prometheus.yml",
            f"--storage.tsdb.path={DATA}",
            f"--storage.tsdb.retention.time={plan.retention_days}d",
            f"--storage.tsdb.retention.size={plan.disk_gib}GB",
            # A changed file reaches the pod that runs: a new pod has no history.
            "--config.auto-reload",
            f"--config.auto-reload-interval={RELOAD_SECONDS}s",
        ],
        mounts=[
            k8s.core.v1.VolumeMountArgs(name="files", mount_path=FOLDER),
            k8s.core.v1.VolumeMountArgs(name="data", mount_path=DATA),
        ],
    )
    # The newest hours and what is being written come on top of the history.
    data = scratch("data", f"{plan.disk_gib + plan.disk_gib // 4 + 1}Gi")
    volumes = [files_of("files", files), data]
    return system_pod(container, volumes=volumes, account=account, asks_api_server=True)
