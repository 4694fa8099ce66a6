"""Changes of the Kubernetes version that EKS carries out on a cluster that runs."""

from __future__ import annotations

from trainyard.catalog.versions import minor
from trainyard.problems import At, InputError

AT = At("environment.cluster.version")


def refusal(now: str, wanted: str) -> InputError | None:
    """The error of a change that EKS refuses, or that would take a control plane back; None where there is none. Both
    are minor versions, such as 1.34. Source: EKS user guide, update-cluster: one minor version at a time;
    rollback-cluster: UpdateClusterVersion takes the version before for seven days, and nodes must go back first."""
    major, number = minor(now)
    next_one = f"{major}.{number + 1}"
    if minor(wanted) < minor(now):
        return AT.must(
            f'not be lower than the cluster\'s, "{now}"',
            got=f'"{wanted}"',
            fix=f'write "{now}"; docs/upgrades.md says how to go back',
        )
    if minor(wanted) > minor(next_one):
        return AT.must(
            f'be at most one minor version above the cluster\'s, "{now}"',
            got=f'"{wanted}"',
            fix=f'write "{next_one}", run pulumi up, then write "{wanted}"',
        )
    return None
