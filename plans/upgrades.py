"""Which change of the Kubernetes version EKS carries out on a cluster that runs."""

from __future__ import annotations


def refusal(now: str, wanted: str) -> str | None:
    """Why EKS refuses the change, and what to write instead; None where it does not. Both are minor
    versions, such as 1.34. Source: EKS user guide, update-cluster: one minor version at a time;
    rollback-cluster: back only by a command, nodes first."""
    (major, minor), (wanted_major, wanted_minor) = _numbers(now), _numbers(wanted)
    next_one = f"{major}.{minor + 1}"
    if (wanted_major, wanted_minor) < (major, minor):
        return (
            f'environment.cluster.version: must not be lower than the cluster\'s, "{now}"; got'
            f' "{wanted}". Fix: write "{now}"; docs/upgrades.md says how to go back'
        )
    if (wanted_major, wanted_minor) > (major, minor + 1):
        return (
            f"environment.cluster.version: must be at most one minor version above the cluster's,"
            f' "{now}"; got "{wanted}". Fix: write "{next_one}", run pulumi up, then write'
            f' "{wanted}"'
        )
    return None


def _numbers(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)
