"""Grafana with the pages of the environment. Settings: `metrics.grafana` in the stack file. Its files,
and why nobody has a password: trainyard/objects/metrics/grafana.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.one_pod import one_pod, one_pod_service
from components.base.unprivileged import files_of, scratch, server, system_pod
from trainyard.objects.metrics.grafana import APP, DATA, FOLDER, PORT, policy_spec
from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.objects.metrics.metrics import GrafanaPlan
from trainyard.plans.identity import digest

LABELS = {LABEL: APP}


class Grafana(pulumi.ComponentResource):
    """One replica, which keeps nothing."""

    def __init__(
        self,
        name: str,
        plan: GrafanaPlan,
        *,
        namespace: pulumi.Output[str],
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        super().__init__("trainyard:metrics:Grafana", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        called = k8s.meta.v1.ObjectMetaArgs(name=APP, namespace=namespace)
        files = k8s.core.v1.ConfigMap(
            f"{name}-files",
            metadata=called,
            data={_key(path): text for path, text in plan.files.items()},
            opts=child,
        )
        k8s.networking.v1.NetworkPolicy(
            f"{name}-network", metadata=called, spec=policy_spec(), opts=child
        )
        one_pod(
            name,
            called,
            LABELS,
            _pod(plan, files.metadata.name),
            parent=self,
            needs=nodes,
            # It reads most of its files once: other ones are another pod.
            annotations={"trainyard/file": digest(sorted(plan.files.items()))},
        )
        one_pod_service(f"{name}-service", called, LABELS, PORT, parent=self)
        self.register_outputs({})


def _key(path: str) -> str:
    """The name of a file in its ConfigMap, which has no folders."""
    return path.replace("/", ".")


def _pod(plan: GrafanaPlan, files: pulumi.Output[str]) -> k8s.core.v1.PodSpecArgs:
    items = [k8s.core.v1.KeyToPathArgs(key=_key(path), path=path) for path in plan.files]
    container = server(
        APP,
        plan.image,
        port=PORT,
        size={"cpu": f"{plan.millicpus}m", "memory": f"{plan.memory_mib}Mi"},
        healthy="/healthz",
        ready="/api/health",
        mounts=[
            k8s.core.v1.VolumeMountArgs(name="files", mount_path=FOLDER),
            k8s.core.v1.VolumeMountArgs(name="data", mount_path=DATA),
            k8s.core.v1.VolumeMountArgs(name="data", mount_path="/tmp", sub_path="tmp"),
        ],
    )
    return system_pod(container, volumes=[files_of("files", files, items), scratch("data", "1Gi")])
