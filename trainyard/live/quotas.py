"""Quotas: whether the account has room for the nodes of an environment, their disks and its Lustre file systems, and
a VPC and public addresses for its network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from trainyard.catalog.aws.instances import ADDRESS_QUOTA
from trainyard.catalog.aws.quotas import VOLUME_QUOTA, VPC_QUOTA, more_of_quota
from trainyard.catalog.aws.storage import LUSTRE_QUOTA_GIB, LUSTRE_QUOTAS
from trainyard.derive.disks import GIB_A_TIB, disks_of_up, disks_when_full, in_tib
from trainyard.derive.pools import SYSTEM, quota_of_up, quota_takers
from trainyard.live.questions.account import Account
from trainyard.plan import EnvironmentPlan
from trainyard.plans.networks import AnyNetworkPlan, OwnNetworkPlan
from trainyard.plans.stores import LustrePlan
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig

Finding = InputError | InputWarning


def quota_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterable[Finding]]]:
    """The question about each quota that nodes of the environment take from."""
    return {
        f"quota {code}": lambda code=code, takers=takers: _findings(
            plan, code, takers, *account.quota(plan.identity, plan.system_nodes.name, code)
        )
        for code, takers in quota_takers(plan.capacity, plan.system_nodes).items()
    }


def _findings(
    plan: EnvironmentPlan, code: str, takers: Mapping[str, int], quota: float, others: int
) -> Iterator[Finding]:
    """A quota that the stack's own jobs exceed, or that only nodes of teams or full pools exceed: then `up` works,
    and Karpenter would report the quota as lack of capacity. `takers`: of full pools. `others`: vCPUs of others."""
    full, beside = sum(takers.values()), f", beside {others} that others use" * bool(others)
    if full + others <= quota:
        return
    now = quota_of_up(plan.capacity, plan.jobs, plan.system_nodes).get(code, {})
    command = more_of_quota("ec2", code, full + others, plan.identity.region)
    if not now or sum(now.values()) + others <= quota:
        promised = _guaranteed(plan, code)
        kept = not promised or promised + others <= quota
        short = "" if kept else f", and not for the {promised} of nodes that teams are guaranteed"
        yield InputWarning(
            path="environment.pools" if kept else "environment.teams",
            text=(
                f"quota {code} is {quota:g} vCPUs, enough for the jobs of this stack{short}; in all it takes"
                f" {full} for {', '.join(takers)}{beside}: run `{command}` before larger jobs and updates"
            ),
        )
        return
    pools = [*now] != [SYSTEM]
    yield InputError(
        path="environment.pools" if pools else "environment.system_nodes",
        must=f"need at most the {quota:g} vCPUs of quota {code}",
        got=f"{sum(now.values())} for {', '.join(now)}{beside}",
        fix=f"run `{command}`" + ", or lower the nodes of the jobs" * pools,
    )


def _guaranteed(plan: EnvironmentPlan, code: str) -> int:
    """vCPUs of a quota that the nodes take which teams are guaranteed."""
    return sum(
        plan.capacity[share.pool].certain_quota(share.guaranteed).get(code, 0)
        for team in plan.teams.values()
        if team.queue
        for share in team.queue.shares
    )


def lustre_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterator[Finding]]]:
    """The question about each quota that Lustre file systems of the stack take from."""
    sizes = dict[str, dict[str, int]]()
    for name, store in plan.stores.items():
        if isinstance(store, LustrePlan):
            sizes.setdefault(store.deployment, {})[name] = store.capacity_gib
    return {
        f"quota {LUSTRE_QUOTAS[deployment]}": lambda deployment=deployment, of=of: _lustre_findings(
            plan, deployment, of, *account.lustre_storage(plan.identity, deployment)
        )
        for deployment, of in sizes.items()
    }


def _lustre_findings(
    plan: EnvironmentPlan,
    deployment: str,
    sizes: Mapping[str, int],
    quota: float | None,
    others: int,
) -> Iterator[Finding]:
    """File systems that exceed a quota. Without a number of the account the default is no proof: a
    warning. `others`: GiB of others."""
    total, code = sum(sizes.values()), LUSTRE_QUOTAS[deployment]
    limit = LUSTRE_QUOTA_GIB if quota is None else quota
    if total + others <= limit:
        return
    command = more_of_quota("fsx", code, total + others, plan.identity.region)
    beside = f", beside {others} that others use" * bool(others)
    if quota is None:
        yield InputWarning(
            path="environment.storage",
            text=f"quota {code} is {limit:g} GiB by default, and the account has no number of its own; file"
            f" systems of {deployment} take {total} for {', '.join(sizes)}{beside}: run `{command}` before"
            " `pulumi up`",
        )
        return
    yield InputError(
        path="environment.storage",
        must=f"need at most the {limit:g} GiB of quota {code}",
        got=f"{total} of {deployment} for {', '.join(sizes)}{beside}",
        fix=f"run `{command}`, or lower capacity_gib",
    )


def disk_checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig
) -> dict[str, Callable[[], Iterator[Finding]]]:
    """The question about the quota that disks of nodes take from."""
    full = disks_when_full(wanted)
    now = disks_of_up(wanted, plan.capacity, plan.jobs)
    return {
        f"quota {VOLUME_QUOTA}": lambda: _disk_findings(
            plan.identity.region, full, now, *account.disks(plan.identity)
        )
    }


def _disk_findings(
    region: str, full: Mapping[str, int], now: Mapping[str, int], quota: float, others: int
) -> Iterator[Finding]:
    """Disks that exceed the quota while the stack's own jobs run, or only those of full pools: then `up` works.
    `full`, `now`: GiB by taker. `others`: GiB of others."""
    room, total = quota * GIB_A_TIB - others, sum(full.values())
    if total <= room:
        return
    command = more_of_quota("ebs", VOLUME_QUOTA, in_tib(total + others), region)
    beside = f", beside {others} that others use" * bool(others)
    if sum(now.values()) <= room:
        yield InputWarning(
            path="environment.pools",
            text=f"quota {VOLUME_QUOTA} is {quota:g} TiB, enough for the jobs of this stack; in all disks take"
            f" {total} GiB for {', '.join(full)}{beside}. EC2 ends instances beyond it at launch: lower"
            f" root_volume_gib, or run `{command}` before larger jobs",
        )
        return
    yield InputError(
        path="environment.pools",
        must=f"need at most the {quota:g} TiB of quota {VOLUME_QUOTA} for disks, or instances end at launch with"
        " Client.VolumeLimitExceeded",
        got=f"{sum(now.values())} GiB for {', '.join(now)}{beside}",
        fix=f"run `{command}`, or lower root_volume_gib",
    )


def vpc_quota_checks(
    account: Account, network: AnyNetworkPlan
) -> dict[str, Callable[[], Iterator[InputError]]]:
    """The question, where the stack makes its VPC."""
    if not isinstance(network, OwnNetworkPlan):
        return {}
    me = network.identity
    return {f"quota {VPC_QUOTA}": lambda: _vpc_errors(me.region, *account.vpcs(me))}


def _vpc_errors(region: str, quota: float, others: int) -> Iterator[InputError]:
    """No room for the VPC of the stack. `others`: VPCs of the account that are not of this stack."""
    if others + 1 > quota:
        command = more_of_quota("vpc", VPC_QUOTA, others + 1, region)
        yield InputError(
            path="environment.network",
            must=f"need at most the {quota:g} VPCs of quota {VPC_QUOTA}",
            got=f"one, beside {others} that others use",
            fix=f"run `{command}`, or write vpc_id and private_subnets of an existing VPC",
        )


def public_address_checks(
    account: Account, network: AnyNetworkPlan
) -> dict[str, Callable[[], Iterator[InputError]]]:
    """The question, where the stack makes NAT gateways."""
    if not isinstance(network, OwnNetworkPlan) or not network.ways_out:
        return {}
    return {
        "public addresses": lambda: _address_errors(
            network, *account.public_addresses(network.identity)
        )
    }


def _address_errors(network: OwnNetworkPlan, quota: float, others: int) -> Iterator[InputError]:
    """More NAT gateways than the account has addresses for. `others`: addresses that are not of this
    stack."""
    wanted, region = len(network.ways_out), network.identity.region
    if wanted + others <= quota:
        return
    fewer = "write nat: single, or " if wanted > 1 and others + 1 <= quota else ""
    yield InputError(
        path="environment.network.nat",
        must=f"need at most the {quota:g} public addresses of quota {ADDRESS_QUOTA}",
        got=f"{wanted} for NAT gateways" + f", beside {others} that others use" * bool(others),
        fix=f"{fewer}run `{more_of_quota('ec2', ADDRESS_QUOTA, wanted + others, region)}`",
    )
