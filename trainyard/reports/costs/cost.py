"""Costs of a plan: quantity times unit price where a dated price of its region is known, and at
least that much where one is missing. Arithmetic of lines: lines.py; nodes and jobs: job_cost.py.

Never a neighbouring region's price. A sum with a missing price names it, and says "at least"; a range of its
own has guesses from the regions that are known. What grows with use is in no sum: it is named beside it, with its rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import overload

from trainyard.catalog.aws.own_prices import LIST
from trainyard.catalog.aws.prices import Price
from trainyard.catalog.versions import control_plane_skus
from trainyard.derive.pools import PoolUse, nodes_wanted
from trainyard.parts.parts import planned_parts
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.clusters import OwnClusterPlan
from trainyard.reports.costs.amounts import (
    Bounds,
    Estimate,
    JobCost,
    Line,
    PaidOnce,
    TeamEstimate,
    Total,
)
from trainyard.reports.costs.job_cost import TEAM_DISKS, job_cost, nodes_of, paid
from trainyard.reports.costs.lines import (
    CENT,
    HOURS,
    bounds_of,
    line_of,
    part_of,
    sum_of,
    times,
    total_of,
)
from trainyard.reports.costs.network_cost import by_hour, by_use
from trainyard.stores.figures import UsageCost
from trainyard.stores.kinds import plan_kind

CONTROL_PLANE_LOG_GB_A_DAY = 3
"""An estimate of ours: audit and authenticator logs of a busy cluster are several GB a day."""


def _jobs(plan: EnvironmentPlan | TeamPlan, idle: Sequence[Line] = ()) -> tuple[JobCost, ...]:
    """Costs of each job, called as its entry is: a file's job can have another name. `idle`: as of job_cost."""
    return tuple(replace(job_cost(plan, job, idle), job=entry) for entry, job in plan.jobs.items())


@overload
def estimate(plan: EnvironmentPlan) -> Estimate: ...
@overload
def estimate(plan: TeamPlan) -> TeamEstimate: ...
def estimate(plan: EnvironmentPlan | TeamPlan) -> Estimate | TeamEstimate:
    """Every line of a plan."""
    if isinstance(plan, TeamPlan):
        return TeamEstimate(jobs=_jobs(plan), at_work=_all_jobs(plan))
    fixed, storage, work, full, once, usage = (
        tuple(lines(plan)) for lines in (_fixed, _storage, _work, _full, _once, _usage)
    )
    return Estimate(
        fixed=fixed,
        storage=storage,
        work=work,
        full=full,
        once=once,
        usage=usage,
        jobs=_jobs(plan, (*fixed, *storage)),
        paid_once=_paid_once(once) if once else None,
        idle=total_of((*fixed, *storage)),
        at_work=total_of((*fixed, *storage, *work)) if plan.jobs else None,
        all_full=total_of((*fixed, *storage, *full)),
    )


def at_list(plan: EnvironmentPlan | TeamPlan) -> Estimate | TeamEstimate | None:
    """Every line at the prices of AWS's list; None where the own prices of the plan are the same."""
    return estimate(replace(plan, prices=LIST)) if plan.prices.lower else None


def _all_jobs(plan: TeamPlan) -> Total:
    """The nodes of all jobs of a team, up to the limits of the pools. Their disks have no line here."""
    wanted = nodes_wanted(plan.jobs.values())
    counts = {pool: min(most, plan.capacity[pool].max_nodes) for pool, most in wanted.items()}
    nodes = [nodes_of(plan, pool, count, count) for pool, count in counts.items()]
    total = total_of(line for lines in nodes for line in lines)
    if not total.lines:
        return total
    return replace(total, most_usd_per_hour=None, missing=(*total.missing, TEAM_DISKS))


def _fixed(plan: EnvironmentPlan) -> Iterable[Line]:
    region, system, support = plan.identity.region, plan.system_nodes, plan.cluster.support
    if isinstance(plan.cluster, OwnClusterPlan):
        tier = plan.cluster.scaling_tier or "standard"
        prices = [
            (plan.prices.quote("eks", sku, region), 1) for sku in control_plane_skus(support, tier)
        ]
        scaled = "" if tier == "standard" else f", {tier}"
        since = plan.cluster.support_from
        then = f" from {since} on" if since else ""
        yield line_of("control plane", prices, f"in {support} support{then}{scaled}")
    for cost in by_hour(plan.network):
        yield line_of(cost.what, [(plan.prices.quote(cost.service, cost.sku, region), cost.units)])
    yield line_of(
        f"{system.nodes} system nodes {system.instance_type}",
        [(plan.prices.quote("ec2", system.instance_type, region), system.nodes)],
    )
    yield line_of(
        "disks of system nodes",
        [(plan.prices.quote("ebs", "gp3", region), system.nodes * system.disk_gib)],
        "gp3",
    )
    for name, use in plan.capacity.items():
        if use.capacity == "block":
            yield from nodes_of(plan, name, 0, use.kept_nodes, "kept running")
        else:
            why = "all of it, used or not" if use.reserved_nodes else "kept running"
            yield from nodes_of(plan, name, paid(use), use.kept_nodes, why)


def _once(plan: EnvironmentPlan) -> Iterable[Line]:
    """Capacity Blocks, which are paid in advance for all of their instances and hours."""
    for name, use in plan.capacity.items():
        if use.capacity != "block":
            continue
        kind, hours = use.instance_types[0], round(use.reserved_hours or 0)
        offered = plan.prices.quote("ec2-block", kind, plan.identity.region)
        part = part_of(offered, use.reserved_nodes * hours)
        yield Line(
            what=f"block of {name}, {use.reserved_nodes} x {kind}",
            usd_per_hour=None,
            usd_per_month=None,
            usd_once=(part.usd_each * part.quantity).quantize(CENT) if part.usd_each else None,
            assumption=f"{hours} hours, paid in advance",
            as_of=part.as_of,
            parts=(part,),
            guess=part.guess,
        )


def _paid_once(lines: Sequence[Line]) -> PaidOnce:
    """Sum of the known advance payments of the lines."""
    known = [line.usd_once for line in lines if line.usd_once is not None]
    return PaidOnce(
        usd_once=sum(known, Decimal()) if known else None,
        as_of=min((line.as_of for line in lines if line.as_of), default=None),
        missing=tuple(line.what for line in lines if line.usd_once is None),
        guess=_once_with_guesses(lines) if len(known) < len(lines) else None,
    )


def _once_with_guesses(lines: Sequence[Line]) -> Bounds | None:
    """Sum of advance payments with guesses; None where a block has none."""
    paid = [line.guess or bounds_of(line.usd_once or Decimal(), line.usd_once) for line in lines]
    return times(sum_of(paid), 1)


def _storage(plan: EnvironmentPlan) -> Iterable[Line]:
    for name, store in plan.stores.items():
        for cost in plan_kind(store).costs(name, store):
            offered = plan.prices.quote(cost.service, cost.sku, plan.identity.region)
            yield line_of(cost.what, [(offered, cost.units)])


def _work(plan: EnvironmentPlan) -> Iterable[Line]:
    """Karpenter launches nodes for a gang that waits too, so a pool fills up to its limit; a pod
    counts as a node."""
    wanted = nodes_wanted(plan.jobs.values())
    for name, use in plan.capacity.items():
        yield from _added(plan, name, use, min(use.max_nodes, wanted[name]))


def _full(plan: EnvironmentPlan) -> Iterable[Line]:
    """Every pool at its limit, and a pool of several types at the limit of each."""
    for name, use in plan.capacity.items():
        yield from _added(plan, name, use, max(use.max_nodes, use.kept_nodes))
        for kind in use.instance_types[1:]:
            yield from _added(plan, name, replace(use, kept_nodes=0), use.max_nodes, kind)


def _added(
    plan: EnvironmentPlan, name: str, use: PoolUse, most: int, kind: str = ""
) -> Iterable[Line]:
    """Nodes of a pool beyond those that are paid while no job runs, and their disks."""
    for line in nodes_of(plan, name, most - paid(use), most - use.kept_nodes, kind=kind):
        yield replace(line, usd_per_month=None)


def _usage(plan: EnvironmentPlan) -> Iterable[Line]:
    most = sum(
        max(use.max_nodes, use.kept_nodes) * len(use.instance_types)
        for use in plan.capacity.values()
    )
    rates = [*by_use(plan.network, most), *_control_plane_logs(plan)]
    for part, its in planned_parts(plan):
        rates += part.usage_costs(its)
    if not plan.own_cluster:
        yield _not_ours(f"control plane of {plan.cluster.name}")
    for name, store in plan.stores.items():
        kind = plan_kind(store)
        rates += kind.usage_costs(name, store)
        if kind.existing:
            yield _not_ours(f"{kind.row(store).kind} {name}")
    for used in rates:
        found = plan.prices.price(used.service, used.sku, plan.identity.region)
        yield Line(
            what=used.what,
            usd_per_hour=None,
            usd_per_month=None,
            assumption=f"{_rate(used, found)}, by use",
            as_of=found.as_of if found else None,
        )


def _control_plane_logs(plan: EnvironmentPlan) -> Iterable[UsageCost]:
    if isinstance(plan.cluster, OwnClusterPlan) and plan.cluster.logs:
        yield UsageCost(
            what="logs of the control plane",
            service="logs",
            sku="ingested",
            quantity=round(CONTROL_PLANE_LOG_GB_A_DAY * HOURS / 24),
            over="a month of a busy cluster",
        )


def _rate(used: UsageCost, found: Price | None) -> str:
    """Price of a unit, and of the quantity where one is expected."""
    rate = f"{found.usd} USD a {found.unit}" if found else "no price"
    if not used.quantity:
        return rate
    unit = found.unit if found else "units"
    usd = f", {(found.usd * used.quantity).quantize(CENT):,} USD" if found else ""
    return f"{rate}; {used.quantity:,} {unit}{usd} {used.over}"


def _not_ours(what: str) -> Line:
    """A line for what somebody else pays for."""
    return Line(
        what=what,
        usd_per_hour=None,
        usd_per_month=None,
        assumption="existing: not in this sum",
        as_of=None,
    )
