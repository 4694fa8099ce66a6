"""Grafana with the pages of the environment. Settings: `metrics.grafana` in the stack file. Its files,
and why nobody has a password: plans/grafana.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.one_pod import one_pod, one_pod_service
from components.unprivileged import container_security, pod_security, probe
from plans.grafana import APP, DATA, FOLDER, PORT, policy_spec
from plans.metrics import APP as LABEL
from plans.metrics import GrafanaPlan
from plans.parts import digest
from plans.pod_template import NODES_FOR

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
        k8s.apps.v1.Deployment(
            name,
            metadata=called,
            spec=one_pod(
                LABELS,
                _pod(plan, files.metadata.name),
                # It reads most of its files once: other ones are another pod.
                annotations={"trainyard/file": digest(sorted(plan.files.items()))},
            ),
            # An edge that no input shows: without nodes the wait for its pod gives up after 10 minutes.
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(nodes)),
        )
        one_pod_service(f"{name}-service", APP, namespace, LABELS, PORT, child)
        self.register_outputs({})


def _key(path: str) -> str:
    """The name of a file in its ConfigMap, which has no folders."""
    return path.replace("/", ".")


def _pod(plan: GrafanaPlan, files: pulumi.Output[str]) -> k8s.core.v1.PodSpecArgs:
    items = [k8s.core.v1.KeyToPathArgs(key=_key(path), path=path) for path in plan.files]
    size = {"cpu": f"{plan.millicpus}m", "memory": f"{plan.memory_mib}Mi"}
    container = k8s.core.v1.ContainerArgs(
        name=APP,
        image=plan.image,
        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=PORT)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests=size, limits={"memory": size["memory"]}
        ),
        readiness_probe=probe("/api/health"),
        liveness_probe=probe("/healthz"),
        security_context=container_security(),
        volume_mounts=[
            k8s.core.v1.VolumeMountArgs(name="files", mount_path=FOLDER),
            k8s.core.v1.VolumeMountArgs(name="data", mount_path=DATA),
            k8s.core.v1.VolumeMountArgs(name="data", mount_path="/tmp", sub_path="tmp"),
        ],
    )
    return k8s.core.v1.PodSpecArgs(
        automount_service_account_token=False,  # of the API server, which it does not ask
        node_selector={NODES_FOR: "system"},
        enable_service_links=False,
        security_context=pod_security(),
        containers=[container],
        volumes=[
            k8s.core.v1.VolumeArgs(
                name="files",
                config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name=files, items=items),
            ),
            k8s.core.v1.VolumeArgs(
                name="data", empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(size_limit="1Gi")
            ),
        ],
    )
