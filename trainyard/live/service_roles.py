"""Service-linked roles that a plan needs, and the error or warning when the account lacks one."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.service_roles import EKS, NODE_GROUPS, SPOT, ServiceRole
from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputError, InputWarning
from trainyard.stores.kinds import plan_kind


def service_roles(plan: EnvironmentPlan) -> tuple[ServiceRole, ...]:
    """The service-linked roles of the services that the plan uses."""
    of_stores = [plan_kind(store).service_roles(store) for store in plan.stores.values()]
    return (
        EKS,
        NODE_GROUPS,
        *dict.fromkeys(role for roles in of_stores for role in roles),
        *([SPOT] if _spot_pools(plan) else []),
    )


def role_findings(
    plan: EnvironmentPlan, role: ServiceRole, exists: bool
) -> Iterator[InputError | InputWarning]:
    """Nothing where the account has the role."""
    if exists:
        return
    if role.maker:
        yield InputWarning(
            path="account",
            text=(
                f"the account has no role {role.name}. {role.maker} creates it when it is first"
                " needed, if the caller may call iam:CreateServiceLinkedRole; if not, somebody who"
                f" may must run `{role.command}` first"
            ),
        )
        return
    for name in _spot_pools(plan):
        yield InputError(
            path=f"environment.pools.{name}.capacity",
            must=(
                f"not be spot in an account without the role {role.name}: EC2 launches no spot"
                " instance without it, and Karpenter may not create it"
            ),
            got="spot",
            fix=f"run `{role.command}`, once for the account",
        )


def _spot_pools(plan: EnvironmentPlan) -> list[str]:
    return [name for name, pool in plan.pools.items() if pool.capacity_type == "spot"]
