"""A program of ours in the cluster: one pod, its files, its namespace, and what it may do.

Which programs there are, and how they differ: trainyard/plans/program.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.lost_node import AWAY, AWAY_SECONDS
from components.base.one_pod import one_pod
from components.base.rbac import RBAC
from components.base.topic import topic
from components.base.unprivileged import files_of, server, system_pod
from components.cluster.cluster_access import ClusterAccess
from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.plans.identity import digest
from trainyard.plans.program import MILLICPUS, PORT, TOPIC_ARN, ProgramPlan

SETTINGS = "settings.json"
"""The file with the settings of a program, beside its others."""
SIZE = {"cpu": f"{MILLICPUS}m", "memory": "128Mi"}


class Program(pulumi.ComponentResource):
    """One pod on a system node: two would write the same ConfigMaps."""

    def __init__(
        self,
        type_: str,
        name: str,
        plan: ProgramPlan,
        *,
        cluster: ClusterAccess,
        needs: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`needs`: what must exist before its pod starts."""
        super().__init__(type_, name, None, opts)
        self._plan, self._child = plan, pulumi.ResourceOptions(parent=self)
        self._topic = topic(self, name, plan.topic, cluster.identity) if plan.topic else None
        self._namespace = k8s.core.v1.Namespace(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=plan.app, labels={"pod-security.kubernetes.io/enforce": "restricted"}
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
        rights = [
            *([self._may(name, subjects)] if plan.may else []),
            *([self._may_remember(name, subjects)] if plan.may_remember else []),
            *self._enters(name, cluster, account.metadata.name),
        ]
        settings = self._filled(plan.settings)
        files = {**plan.files, SETTINGS: settings}
        file = k8s.core.v1.ConfigMap(
            f"{name}-files", metadata=self._called(), data=files, opts=self._child
        )
        one_pod(
            name,
            self._called(),
            {LABEL: plan.app},
            _pod(plan, account.metadata.name, file.metadata.name),
            parent=self,
            needs=[*rights, *cluster.nodes, *needs],
            # It reads its files once: other files are another pod.
            annotations={
                "trainyard/file": settings.apply(
                    lambda text: digest(sorted([*plan.files.values(), text]))
                )
            },
        )
        self.register_outputs({})

    def _filled(self, text: str) -> pulumi.Output[str]:
        """A text of the plan with the ARN of the topic."""
        topic_arn = self._topic or pulumi.Output.from_input("")
        return topic_arn.apply(lambda arn: text.replace(TOPIC_ARN, arn))

    def _called(self) -> k8s.meta.v1.ObjectMetaArgs:
        return k8s.meta.v1.ObjectMetaArgs(name=self._plan.app, namespace=self._namespace)

    def _may(self, name: str, subjects: Sequence[k8s.rbac.v1.SubjectArgs]) -> pulumi.Resource:
        called = k8s.meta.v1.ObjectMetaArgs(name=self._plan.app)
        role = k8s.rbac.v1.ClusterRole(
            f"{name}-{self._plan.may_called}",
            metadata=called,
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[kind], verbs=list(verbs))
                for group, kind, verbs in self._plan.may
            ],
            opts=self._child,
        )
        return k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-{self._plan.may_called}",
            metadata=called,
            role_ref=k8s.rbac.v1.RoleRefArgs(
                api_group=RBAC, kind="ClusterRole", name=role.metadata.name
            ),
            subjects=subjects,
            opts=self._child,
        )

    def _may_remember(
        self, name: str, subjects: Sequence[k8s.rbac.v1.SubjectArgs]
    ) -> pulumi.Resource:
        role = k8s.rbac.v1.Role(
            f"{name}-remembers",
            metadata=self._called(),
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[""], resources=["configmaps"], verbs=list(self._plan.may_remember)
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

    def _enters(
        self, name: str, cluster: ClusterAccess, account: pulumi.Output[str]
    ) -> list[pulumi.Resource]:
        """Give its pod its role, where it has one."""
        if not (role := self._plan.role):
            return []
        _, ready = cluster.pod_role(
            self,
            name,
            role.name,
            cluster.trust_for(self._namespace, self._plan.app),
            namespace=self._namespace,
            service_account=account,
            inline={role.may: self._filled(json.dumps(role.policy, sort_keys=True))},
        )
        return ready


def _pod(
    plan: ProgramPlan, account: pulumi.Output[str], file: pulumi.Output[str]
) -> k8s.core.v1.PodSpecArgs:
    folder = f"/etc/{plan.app}"
    container = server(
        plan.name,
        plan.image,
        port=PORT,
        size=SIZE,
        healthy="/healthz",
        command=("python3", "-B", f"{folder}/{plan.name}.py", f"{folder}/{SETTINGS}", str(PORT)),
        mounts=[k8s.core.v1.VolumeMountArgs(name="files", mount_path=folder)],
    )
    return system_pod(
        container,
        volumes=[files_of("files", file)],
        account=account,
        asks_api_server=True,
        priority_class="system-cluster-critical",
        tolerations=[
            k8s.core.v1.TolerationArgs(
                key=key,
                operator="Exists",
                effect="NoExecute",
                toleration_seconds=AWAY_SECONDS,
            )
            for key in AWAY
        ],
    )
