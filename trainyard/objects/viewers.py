"""Rights of the roles of `cluster.viewers`: they look at the whole cluster and change nothing.

AWS's own access policies do not fit: AmazonEKSAdminViewPolicy reads Secrets, and AmazonEKSViewPolicy neither nodes
nor custom resources (EKS user guide, access-policy-permissions). So the access entries name a group only, which
two roles of Kubernetes are bound to.
"""

from __future__ import annotations

from trainyard.objects.teams.team_access import READ, Grant

VIEWERS = "trainyard:viewers"
"""Group of all viewers."""
ROLE = "trainyard-viewers"
"""ClusterRole of ours."""
VIEW = "view"
"""ClusterRole that Kubernetes has itself: the objects of namespaces but Secrets and roles (Kubernetes, RBAC,
User-facing roles)."""

GRANTS = (
    Grant(
        group="",
        resources=("nodes", "persistentvolumes"),
        verbs=READ,
    ),
    *(
        Grant(group=group, resources=("*",), verbs=READ)
        for group in (
            "karpenter.sh",
            "karpenter.k8s.aws",
            "trainer.kubeflow.org",
            "kubeflow.org",
            "jobset.x-k8s.io",
            "kueue.x-k8s.io",
        )
    ),
    Grant(group="scheduling.k8s.io", resources=("priorityclasses",), verbs=READ),
    Grant(
        group="storage.k8s.io", resources=("csidrivers", "csinodes", "storageclasses"), verbs=READ
    ),
)
"""Rights that VIEW lacks: on everything that `trainyard status` reads, and on objects that its commands name."""
