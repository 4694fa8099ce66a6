"""The program that records what each run took, and what it may do in the cluster.

Settings: `history` in the stack file. Rights and configuration: plans/history.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.one_pod import one_pod
from components.program_pod import program_pod
from plans.history import (
    APP,
    FOLDER,
    MAIN,
    MAY,
    MAY_REMEMBER,
    PORT,
    SETTINGS,
    HistoryPlan,
    settings,
)
from plans.metrics import APP as LABEL
from plans.parts import digest

LABELS = {LABEL: APP}
RBAC = "rbac.authorization.k8s.io"


class History(pulumi.ComponentResource):
    """One pod on a system node: two would write the same ConfigMaps."""

    def __init__(
        self,
        name: str,
        plan: HistoryPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        super().__init__("trainyard:jobs:History", name, None, opts)
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
        subjects = [
            k8s.rbac.v1.SubjectArgs(
                kind="ServiceAccount", name=account.metadata.name, namespace=self._namespace
            )
        ]
        rights = [self._may_look(name, subjects), self._may_remember(name, subjects)]
        files = {**plan.files, SETTINGS: settings(plan)}
        file = k8s.core.v1.ConfigMap(
            f"{name}-files", metadata=self._called(), data=files, opts=self._child
        )
        pod = program_pod(
            "history",
            plan.image,
            ["python3", "-B", f"{FOLDER}/{MAIN}", f"{FOLDER}/{SETTINGS}", str(PORT)],
            port=PORT,
            folder=FOLDER,
            account=account.metadata.name,
            file=file.metadata.name,
        )
        # It reads its files once: other files are another pod.
        notes = {"trainyard/file": digest(sorted(files.values()))}
        k8s.apps.v1.Deployment(
            name,
            metadata=self._called(),
            spec=one_pod(LABELS, pod, annotations=notes),
            # Edges that no input shows: without rights it sees nothing, and without nodes the wait for
            # its pod gives up after 10 minutes.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*rights, *nodes]),
        )
        self.register_outputs({})

    def _called(self) -> k8s.meta.v1.ObjectMetaArgs:
        return k8s.meta.v1.ObjectMetaArgs(name=APP, namespace=self._namespace)

    def _may_look(
        self, name: str, subjects: Sequence[k8s.rbac.v1.SubjectArgs]
    ) -> k8s.rbac.v1.ClusterRoleBinding:
        called = k8s.meta.v1.ObjectMetaArgs(name=APP)
        role = k8s.rbac.v1.ClusterRole(
            f"{name}-looks",
            metadata=called,
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[kind], verbs=list(verbs))
                for group, kind, verbs in MAY
            ],
            opts=self._child,
        )
        return k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-looks",
            metadata=called,
            role_ref=k8s.rbac.v1.RoleRefArgs(
                api_group=RBAC, kind="ClusterRole", name=role.metadata.name
            ),
            subjects=subjects,
            opts=self._child,
        )

    def _may_remember(
        self, name: str, subjects: Sequence[k8s.rbac.v1.SubjectArgs]
    ) -> k8s.rbac.v1.RoleBinding:
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
            subjects=subjects,
            opts=self._child,
        )
