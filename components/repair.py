"""The program that replaces sick nodes, and what it may do in the cluster.

Settings: `repair` in the stack file. Rights and configuration: plans/repair.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.one_pod import one_pod
from components.unprivileged import container_security, pod_security
from plans.metrics import APP as LABEL
from plans.parts import digest
from plans.pod_template import NODES_FOR
from plans.repair import (
    APP,
    FOLDER,
    MAIN,
    MAY_REMEMBER,
    PORT,
    SETTINGS,
    RepairPlan,
    settings,
)

LABELS = {LABEL: APP}
SIZE = {"cpu": "50m", "memory": "128Mi"}
RBAC = "rbac.authorization.k8s.io"
AWAY_SECONDS = 30
"""How long its pod stays on a system node that died. The default of Kubernetes is 300."""


class Repair(pulumi.ComponentResource):
    """One pod on a system node: two would both act."""

    def __init__(
        self,
        name: str,
        plan: RepairPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        super().__init__("trainyard:nodes:Repair", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        self._namespace = k8s.core.v1.Namespace(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=APP, labels={"pod-security.kubernetes.io/enforce": "restricted"}
            ),
            opts=self._child,
        ).metadata.name
        account = k8s.core.v1.ServiceAccount(
            f"{name}-account", metadata=self._called(), opts=self._child
        )
        rights = [*self._may_act(name, plan, account), self._may_remember(name, account)]
        files = {**plan.files, SETTINGS: settings(plan)}
        file = k8s.core.v1.ConfigMap(
            f"{name}-files", metadata=self._called(), data=files, opts=self._child
        )
        k8s.apps.v1.Deployment(
            name,
            metadata=self._called(),
            spec=one_pod(
                LABELS,
                _pod(plan, account.metadata.name, file.metadata.name),
                # It reads its files once: other files are another pod.
                annotations={"trainyard/file": digest(sorted(files.values()))},
            ),
            # Edges that no input shows: without rights it does nothing, and without nodes the wait for
            # its pod gives up after 10 minutes.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*rights, *nodes]),
        )
        self.register_outputs({})

    def _called(self) -> k8s.meta.v1.ObjectMetaArgs:
        return k8s.meta.v1.ObjectMetaArgs(name=APP, namespace=self._namespace)

    def _may_act(
        self, name: str, plan: RepairPlan, account: k8s.core.v1.ServiceAccount
    ) -> list[pulumi.Resource]:
        called = k8s.meta.v1.ObjectMetaArgs(name=APP)
        role = k8s.rbac.v1.ClusterRole(
            f"{name}-acts",
            metadata=called,
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[kind], verbs=list(verbs))
                for group, kind, verbs in plan.may
            ],
            opts=self._child,
        )
        return [
            k8s.rbac.v1.ClusterRoleBinding(
                f"{name}-acts",
                metadata=called,
                role_ref=k8s.rbac.v1.RoleRefArgs(
                    api_group=RBAC, kind="ClusterRole", name=role.metadata.name
                ),
                subjects=[self._subject(account)],
                opts=self._child,
            )
        ]

    def _may_remember(self, name: str, account: k8s.core.v1.ServiceAccount) -> pulumi.Resource:
        role = k8s.rbac.v1.Role(
            f"{name}-remembers",
            metadata=self._called(),
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[""], resources=["configmaps"], verbs=list(MAY_REMEMBER)
                )
            ],
            opts=self._child,
        )
        return k8s.rbac.v1.RoleBinding(
            f"{name}-remembers",
            metadata=self._called(),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name=role.metadata.name),
            subjects=[self._subject(account)],
            opts=self._child,
        )

    def _subject(self, account: k8s.core.v1.ServiceAccount) -> k8s.rbac.v1.SubjectArgs:
        return k8s.rbac.v1.SubjectArgs(
            kind="ServiceAccount", name=account.metadata.name, namespace=self._namespace
        )


def _pod(
    plan: RepairPlan, account: pulumi.Output[str], file: pulumi.Output[str]
) -> k8s.core.v1.PodSpecArgs:
    container = k8s.core.v1.ContainerArgs(
        name="repair",
        image=plan.image,
        command=["python3", "-B", f"{FOLDER}/{MAIN}", f"{FOLDER}/{SETTINGS}", str(PORT)],
        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=PORT)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests=SIZE, limits={"memory": SIZE["memory"]}
        ),
        liveness_probe=k8s.core.v1.ProbeArgs(
            http_get=k8s.core.v1.HTTPGetActionArgs(path="/healthz", port="http"),
            timeout_seconds=5,
            failure_threshold=6,
        ),
        security_context=container_security(),
        volume_mounts=[k8s.core.v1.VolumeMountArgs(name="files", mount_path=FOLDER)],
    )
    return k8s.core.v1.PodSpecArgs(
        service_account_name=account,
        node_selector={NODES_FOR: "system"},
        priority_class_name="system-cluster-critical",
        enable_service_links=False,
        security_context=pod_security(),
        tolerations=[
            k8s.core.v1.TolerationArgs(
                key=f"node.kubernetes.io/{key}",
                operator="Exists",
                effect="NoExecute",
                toleration_seconds=AWAY_SECONDS,
            )
            for key in ("unreachable", "not-ready")
        ],
        containers=[container],
        volumes=[
            k8s.core.v1.VolumeArgs(
                name="files", config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name=file)
            )
        ],
    )
