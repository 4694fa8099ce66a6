"""Changes of the Kubernetes version that EKS carries out on a cluster that runs."""

from __future__ import annotations

from trainyard.catalog.versions import minor


def refusal(now: str, wanted: str) -> str | None:
    """Reason why EKS refuses the change, and what to write instead; None where it does not. Both
    are minor versions, such as 1.34. Source: EKS user guide, update-cluster: one minor version at a
    time; rollback-cluster: back only by a command, nodes first."""
    major, number = minor(now)
    next_one = f"{major}.{number + 1}"
    if minor(wanted) < minor(now):
        return (
            f'environment.cluster.version: must not be lower than the cluster\'s, "{now}"; got'
            f' "{wanted}". Fix: write "{now}"; docs/upgrades.md says how to go back'
        )
    if minor(wanted) > minor(next_one):
        return (
            f"environment.cluster.version: must be at most one minor version above the cluster's,"
            f' "{now}"; got "{wanted}". Fix: write "{next_one}", run pulumi up, then write'
            f' "{wanted}"'
        )
    return None
