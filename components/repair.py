"""The program that replaces sick nodes, and what it may do in the cluster.

Settings: `repair` in the stack file. Rights and configuration: plans/repair.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.one_pod import one_pod
from components.program_pod import program_pod
from plans.metrics import APP as LABEL
from plans.parts import digest
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
RBAC = "rbac.authorization.k8s.io"


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
                program_pod(
                    "repair",
                    plan.image,
                    ["python3", "-B", f"{FOLDER}/{MAIN}", f"{FOLDER}/{SETTINGS}", str(PORT)],
                    port=PORT,
                    folder=FOLDER,
                    account=account.metadata.name,
                    file=file.metadata.name,
                ),
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
