"""A program of ours in the cluster: one pod, its files, its namespace, and what it may do.

Which programs there are: repair.py, history.py, dispatch.py, gangs.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.one_pod import one_pod
from components.program_pod import program_pod
from frozen import dataclass
from plans.metrics import APP as LABEL
from plans.parts import digest

RBAC = "rbac.authorization.k8s.io"
SETTINGS = "settings.json"
"""The file with the settings of a program, beside its others."""


@dataclass(frozen=True, kw_only=True)
class ProgramArgs:
    """What one program differs by from another."""

    app: str
    """Its name in the cluster, and that of its namespace."""
    container: str
    image: str
    files: Mapping[str, str]
    """Name → text."""
    main: str
    """The file that runs. It is told where its settings are, and the port."""
    settings: str
    """As JSON."""
    port: int
    may: Sequence[tuple[str, str, tuple[str, ...]]] = ()
    """API group, resource and verbs that it needs in the whole cluster."""
    may_called: str = "acts"
    """What the role with these rights is called by."""
    may_remember: Sequence[str] = ()
    """Verbs on ConfigMaps of its namespace."""


class Program(pulumi.ComponentResource):
    """One pod on a system node: two would write the same ConfigMaps."""

    def __init__(
        self,
        type_: str,
        name: str,
        args: ProgramArgs,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        super().__init__(type_, name, None, opts)
        self._args, self._child = args, pulumi.ResourceOptions(parent=self)
        self._namespace = k8s.core.v1.Namespace(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=args.app, labels={"pod-security.kubernetes.io/enforce": "restricted"}
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
            *([self._may(name, subjects)] if args.may else []),
            *([self._may_remember(name, subjects)] if args.may_remember else []),
        ]
        files = {**args.files, SETTINGS: args.settings}
        file = k8s.core.v1.ConfigMap(
            f"{name}-files", metadata=self._called(), data=files, opts=self._child
        )
        folder = f"/etc/{args.app}"
        pod = program_pod(
            args.container,
            args.image,
            ("python3", "-B", f"{folder}/{args.main}", f"{folder}/{SETTINGS}", str(args.port)),
            port=args.port,
            folder=folder,
            account=account.metadata.name,
            file=file.metadata.name,
        )
        # It reads its files once: other files are another pod.
        notes = {"trainyard/file": digest(sorted(files.values()))}
        k8s.apps.v1.Deployment(
            name,
            metadata=self._called(),
            spec=one_pod({LABEL: args.app}, pod, annotations=notes),
            # Edges that no input shows: without rights it does nothing, and without nodes the wait for
            # its pod gives up after 10 minutes.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*rights, *nodes]),
        )
        self.register_outputs({})

    def _called(self) -> k8s.meta.v1.ObjectMetaArgs:
        return k8s.meta.v1.ObjectMetaArgs(name=self._args.app, namespace=self._namespace)

    def _may(self, name: str, subjects: Sequence[k8s.rbac.v1.SubjectArgs]) -> pulumi.Resource:
        called = k8s.meta.v1.ObjectMetaArgs(name=self._args.app)
        role = k8s.rbac.v1.ClusterRole(
            f"{name}-{self._args.may_called}",
            metadata=called,
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[kind], verbs=list(verbs))
                for group, kind, verbs in self._args.may
            ],
            opts=self._child,
        )
        return k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-{self._args.may_called}",
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
                    api_groups=[""], resources=["configmaps"], verbs=list(self._args.may_remember)
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
