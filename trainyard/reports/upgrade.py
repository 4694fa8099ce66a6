"""Report of `trainyard plan` about versions: the end of their support, and what an upgrade
restarts."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.command_line import table, wrapped
from trainyard.plan import EnvironmentPlan


def versions_section(plan: EnvironmentPlan) -> list[str]:
    """Pinned versions with the end of their support, and the step to the next one."""
    kubernetes = plan.cluster.version
    release = versions.KUBERNETES[kubernetes]
    rows = [
        (
            f"Kubernetes {kubernetes}",
            f"standard support until {release.standard_ends}, extended support until"
            f" {release.extended_ends}",
        ),
        ("system nodes", f"AMI release {plan.system_nodes.release}"),
        ("GPU nodes", f"AMI {versions.NODE_AMI}"),
    ]
    return ["versions", *table(rows), *wrapped(_next_step(kubernetes, plan))]


def _next_step(kubernetes: str, plan: EnvironmentPlan) -> str:
    later = [*versions.KUBERNETES][[*versions.KUBERNETES].index(kubernetes) + 1 :]
    if not later:
        return f"no version after {kubernetes} is known to this program"
    trainer, karpenter = plan.trainer.version, plan.karpenter.version
    tried = versions.known_good(later[0], trainer, karpenter)
    never = "" if tried else f", never tested with Trainer {trainer} and Karpenter {karpenter}"
    return (
        f"next: {later[0]}{never}. It replaces the {plan.system_nodes.nodes} system nodes one by one;"
        " GPU nodes that run keep their version (docs/upgrades.md)"
    )
