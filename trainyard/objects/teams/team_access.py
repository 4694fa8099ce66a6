"""Rights in a team's namespace: the one table of roles, groups and verbs.

EKS's own access policies do not fit: AmazonEKSEditPolicy can delete network policies, impersonate
service accounts and read Secrets, and cannot create a TrainJob (EKS user guide,
access-policy-permissions). So access entries name groups only, and these roles say what a group may
do. docs/teams.md has the same table; a test compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.objects.iam.secrets import GROUP

EVERYBODY = "trainyard:teams"
"""Group of all roles of all teams."""
READ = ("get", "list", "watch")
_WRITE = ("create", "patch", "delete")


@dataclass(frozen=True, kw_only=True)
class Grant:
    """Verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


def _on_jobs(*verbs: str) -> tuple[Grant, ...]:
    return (
        Grant(group="trainer.kubeflow.org", resources=("trainjobs",), verbs=verbs),
        Grant(group="kubeflow.org", resources=("pytorchjobs",), verbs=verbs),
    )


def _on_runtimes(*verbs: str) -> tuple[Grant, ...]:
    return (Grant(group="trainer.kubeflow.org", resources=("trainingruntimes",), verbs=verbs),)


def _on_files(*verbs: str) -> tuple[Grant, ...]:
    return (Grant(group="", resources=("configmaps",), verbs=verbs),)


_CONNECT = Grant(group="", resources=("pods/portforward",), verbs=("get", "create"))
"""Right to ports of pods, for whoever may start pods (decision 0033). kubectl asks by GET from 1.31 on, and by
POST before; from Kubernetes 1.35 on GET needs `create`, too."""
_LOOK = (
    Grant(
        group="",
        resources=(
            "pods",
            "pods/log",
            "events",
            "persistentvolumeclaims",
            "services",
            "resourcequotas",
            "limitranges",
            "namespaces",
        ),
        verbs=READ,
    ),
    Grant(group="batch", resources=("jobs",), verbs=READ),
    Grant(group="jobset.x-k8s.io", resources=("jobsets",), verbs=READ),
)
"""Objects that everybody of a team reads. In a Role `namespaces` is the own namespace only."""

ROLES: dict[str, tuple[Grant, ...]] = {
    "deployer": (
        *_on_jobs(*READ, *_WRITE),
        *_on_runtimes(*READ, *_WRITE),
        *_on_files(*READ, *_WRITE),
        _CONNECT,
        *_LOOK,
    ),
    "member": (
        *_on_jobs(*READ, *_WRITE, "update"),
        *_on_runtimes(*READ),
        *_on_files(*READ, *_WRITE, "update"),
        _CONNECT,
        *_LOOK,
    ),
    "viewer": (*_on_jobs(*READ), *_on_runtimes(*READ), *_on_files("get"), *_LOOK),
}
"""Role → its grants, in the team's namespace. Server-side apply needs patch and create. No role has
Secrets, pods/exec, pods/attach, serviceaccounts/token, or a write on pods, Jobs, JobSets, claims, quotas or
roles, but what OF_SCHEDULES adds."""
IN_QUEUES = Grant(group="kueue.x-k8s.io", resources=("localqueues", "workloads"), verbs=READ)
"""Objects that everybody of a team reads besides, where the environment has queues: they show why a
job waits."""
SCALES = Grant(
    group="kubeflow.org", resources=("pytorchjobs/scale",), verbs=("get", "update", "patch")
)
"""Right of whoever starts jobs besides, where the environment has no queues: kubectl scale of an elastic job. In a
queue Kueue stops a job with another number of pods, and queues it anew (0.16.2 and 0.19.2,
pkg/util/equality/podset.go)."""
OF_THE_CLUSTER = (
    Grant(group="trainer.kubeflow.org", resources=("clustertrainingruntimes",), verbs=READ),
)
"""Objects outside of namespaces that EVERYBODY reads."""


_CLASSES = "secretproviderclasses"
OF_SECRETS: dict[str, Grant] = {
    "deployer": Grant(group=GROUP, resources=(_CLASSES,), verbs=(*READ, *_WRITE)),
    "member": Grant(group=GROUP, resources=(_CLASSES,), verbs=(*READ, *_WRITE, "update")),
    "viewer": Grant(group=GROUP, resources=(_CLASSES,), verbs=READ),
}
"""Rights that each role has besides, where a team reads Secrets Manager. An object that names a
secret is no secret: whether its pods get the value is for IAM to say."""


def _on_schedules(*verbs: str) -> Grant:
    return Grant(group="batch", resources=("cronjobs",), verbs=verbs)


OF_SCHEDULES: dict[str, tuple[Grant, ...]] = {
    "deployer": (
        _on_schedules(*READ, *_WRITE),
        Grant(group="batch", resources=("jobs",), verbs=("create",)),
    ),
    "member": (_on_schedules(*READ),),
    "viewer": (_on_schedules(*READ),),
}
"""Rights that each role has besides, where a team has schedules. With a Job of a CronJob a deployer starts a run
now."""
STARTS = "starter"
"""Role of the service account of schedules."""
OF_STARTER: tuple[Grant, ...] = (
    *_on_jobs("create", "get", "list"),
    *_on_files("create"),
    Grant(group="", resources=("pods",), verbs=("list",)),
)
"""Rights of the service account of schedules: it makes runs, and sees whether earlier ones are gone. A member
has each of them, so a pod that somebody starts under this account can do nothing new."""


def grants(role: str, *, queues: bool, secrets: bool, schedules: bool) -> tuple[Grant, ...]:
    """All that a role has. `queues`, `secrets`, `schedules`: the environment has them."""
    in_queues = (IN_QUEUES,) if queues else (SCALES,) if role != "viewer" else ()
    of_secrets = (OF_SECRETS[role],) if secrets else ()
    return (*ROLES[role], *in_queues, *of_secrets, *(OF_SCHEDULES[role] if schedules else ()))


def role_name(role: str) -> str:
    """The ClusterRole that each team's namespace binds."""
    return f"trainyard-team-{role}"


def group_name(namespace: str, role: str) -> str:
    """The Kubernetes group of a role in a team's namespace."""
    return f"trainyard:{namespace}:{role}"
