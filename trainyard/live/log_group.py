"""Warnings where the log group of the control plane exists before the stack makes it: EKS makes it for a
cluster without retention, and again after `pulumi destroy`, when it delivers the last lines late
(terraform-aws-eks#2446 and #2763)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainyard.live.questions.account import Account
from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import OwnClusterPlan
from trainyard.problems import InputWarning


def log_group_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterator[InputWarning]]]:
    """The question, where the stack makes the group."""
    cluster = plan.cluster
    if not isinstance(cluster, OwnClusterPlan) or cluster.log_days is None:
        return {}
    return {f"log group {cluster.log_group}": lambda: _warnings(account, cluster)}


def _warnings(account: Account, cluster: OwnClusterPlan) -> Iterator[InputWarning]:
    """A group without retention is not one that the stack made."""
    found, me = account.log_group(cluster.log_group), cluster.identity
    if found and "retentionInDays" not in found:
        yield InputWarning(
            path="environment.cluster.log_retention_days",
            text=(
                f"EKS has made the log group {cluster.log_group} already, and `pulumi up` stops where"
                " it exists and is not in the state. To delete it with its lines, run `aws logs"
                f" delete-log-group --log-group-name {cluster.log_group} --region {me.region}`. To keep"
                f" them, run `trainyard repair {me.stack} --live` after that stop, which adds the group"
                " to the state"
            ),
        )
