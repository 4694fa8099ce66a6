"""What a plan costs: quantity times unit price where a dated price of its region is known, and at
least that much where one is missing.

Never a neighbouring region's price. A sum with a missing price names it, and says "at least". What
grows with use is in no sum: it is named beside it, with its rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import overload

from trainyard.catalog.aws.latencies import IMAGE_GB
from trainyard.catalog.aws.prices import Price, price
from trainyard.catalog.aws.storage import GP3_INCLUDED_IOPS, GP3_INCLUDED_MBPS
from trainyard.catalog.versions import control_plane_prices
from trainyard.derive.capacity import PoolUse
from trainyard.parts.parts import planned_parts
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.clusters import OwnClusterPlan
from trainyard.plans.parts import JobPlan
from trainyard.reports.amounts import (
    Estimate,
    JobCost,
    Line,
    PaidOnce,
    PricedQuantity,
    TeamEstimate,
    Total,
)
from trainyard.reports.network_cost import by_hour, by_use
from trainyard.reports.timeline import cold_start
from trainyard.stores.kinds import plan_kind

HOURS = 730
"""Hours of a month, as AWS's price pages count."""
CENT, MILLIONTH = Decimal("1e-2"), Decimal("1e-6")
SERVICES = {"on_demand": "ec2", "reservation": "ec2", "spot": "ec2-spot", "block": "ec2-block"}
"""Kind of capacity → whose prices count."""
TEAM_DISKS = "disks of its nodes, which the environment pays"
"""What the price of every job of a team lacks."""


@overload
def estimate(plan: EnvironmentPlan) -> Estimate: ...
@overload
def estimate(plan: TeamPlan) -> TeamEstimate: ...
def estimate(plan: EnvironmentPlan | TeamPlan) -> Estimate | TeamEstimate:
    """Every line of a plan."""
    if isinstance(plan, TeamPlan):
        jobs = tuple(_job(plan, job) for job in plan.jobs.values())
        return TeamEstimate(jobs=jobs, at_work=_all_jobs(plan))
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
        jobs=tuple(_job(plan, job) for job in plan.jobs.values()),
        paid_once=_paid_once(once) if once else None,
        idle=_total((*fixed, *storage)),
        at_work=_total((*fixed, *storage, *work)),
        all_full=_total((*fixed, *storage, *full)),
    )


def _all_jobs(plan: TeamPlan) -> Total:
    """The nodes of all jobs of a team. Their disks have no line here."""
    nodes = [_nodes(plan, job.pool, job.nodes, job.nodes) for job in plan.jobs.values()]
    total = _total(line for lines in nodes for line in lines)
    return replace(total, missing=(*total.missing, TEAM_DISKS)) if total.lines else total


def _fixed(plan: EnvironmentPlan) -> Iterable[Line]:
    region, system, support = plan.identity.region, plan.system_nodes, plan.cluster.support
    if isinstance(plan.cluster, OwnClusterPlan):
        tier = plan.cluster.scaling_tier or "standard"
        prices = [(each, 1) for each in control_plane_prices(region, support, tier)]
        scaled = "" if tier == "standard" else f", {tier}"
        yield _line("control plane", prices, f"in {support} support{scaled}")
    for cost in by_hour(plan.network):
        yield _line(cost.what, [(price(cost.service, cost.sku, region), cost.units)])
    yield _line(
        f"{system.nodes} system nodes {system.instance_type}",
        [(price("ec2", system.instance_type, region), system.nodes)],
    )
    yield _line(
        "disks of system nodes",
        [(price("ebs", "gp3", region), system.nodes * system.disk_gib)],
        "gp3",
    )
    for name, use in plan.capacity.items():
        if use.capacity == "block":
            yield from _nodes(plan, name, 0, use.kept_nodes, "kept running")
        else:
            why = "all of it, used or not" if use.reserved_nodes else "kept running"
            yield from _nodes(plan, name, _paid(use), use.kept_nodes, why)


def _once(plan: EnvironmentPlan) -> Iterable[Line]:
    """Capacity Blocks, which are paid in advance for all of their instances and hours."""
    for name, use in plan.capacity.items():
        if use.capacity != "block":
            continue
        kind, hours = use.instance_types[0], round(use.reserved_hours or 0)
        found = price("ec2-block", kind, plan.identity.region)
        part = _part(found, use.reserved_nodes * hours)
        yield Line(
            what=f"block of {name}, {use.reserved_nodes} x {kind}",
            usd_per_hour=None,
            usd_per_month=None,
            usd_once=(found.usd * part.quantity).quantize(CENT) if found else None,
            assumption=f"{hours} hours, paid in advance",
            as_of=part.as_of,
            parts=(part,),
        )


def _paid_once(lines: Sequence[Line]) -> PaidOnce:
    """What is known of the lines."""
    known = [line.usd_once for line in lines if line.usd_once is not None]
    return PaidOnce(
        usd_once=sum(known, Decimal()) if known else None,
        as_of=min((line.as_of for line in lines if line.as_of), default=None),
        missing=tuple(line.what for line in lines if line.usd_once is None),
    )


def _storage(plan: EnvironmentPlan) -> Iterable[Line]:
    for name, store in plan.stores.items():
        for cost in plan_kind(store).costs(name, store):
            found = price(cost.service, cost.sku, plan.identity.region)
            yield _line(cost.what, [(found, cost.units)])


def _work(plan: EnvironmentPlan) -> Iterable[Line]:
    """Karpenter launches nodes for a gang that waits too, so a pool fills up to its limit; a pod
    counts as a node."""
    for name, use in plan.capacity.items():
        most = min(use.max_nodes, sum(j.nodes for j in plan.jobs.values() if j.pool == name))
        yield from _added(plan, name, use, most)


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
    for line in _nodes(plan, name, most - _paid(use), most - use.kept_nodes, kind=kind):
        yield replace(line, usd_per_month=None)


def _usage(plan: EnvironmentPlan) -> Iterable[Line]:
    rates = [*by_use(plan.network)]
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
        found = price(used.service, used.sku, plan.identity.region)
        rate = f"{found.usd} USD a {found.unit}" if found else "no price"
        yield Line(
            what=used.what,
            usd_per_hour=None,
            usd_per_month=None,
            assumption=f"{rate}, by use",
            as_of=found.as_of if found else None,
        )


def _not_ours(what: str) -> Line:
    """A line for what somebody else pays for."""
    return Line(
        what=what,
        usd_per_hour=None,
        usd_per_month=None,
        assumption="existing: not in this sum",
        as_of=None,
    )


def _job(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> JobCost:
    nodes, seconds = job.nodes, cold_start(plan, job)
    cost = _total(_nodes(plan, job.pool, nodes, nodes))
    missing = cost.missing
    if isinstance(plan, TeamPlan):
        missing = (*missing, TEAM_DISKS)
    known = cost.usd_per_hour if cost.usd_per_hour else None
    pulled = price("nat", "gb", plan.identity.region)
    image = None if pulled is None else (pulled.usd * IMAGE_GB * nodes).quantize(CENT)
    image = image if plan.leads_out else Decimal()
    saved = plan.checkpoints.get(job.name)
    hours = None if job.expected_hours is None else Decimal(str(job.expected_hours))
    run = None if hours is None else _of(known, hours + Decimal(seconds) / 3600)
    return JobCost(
        job=job.name,
        nodes=nodes,
        usd_per_hour=None if missing else known,
        at_least_usd_per_hour=known,
        usd_per_idle_minute=_of(known, Decimal(1) / 60),
        cold_start_seconds=seconds,
        cold_start_usd=_of(known, Decimal(seconds) / 3600),
        image_usd=image,
        failure_usd=_of(known, Decimal(saved.lost_seconds_per_failure) / 3600) if saved else None,
        usd=None if run is None else run + (image or 0),
        prepaid=plan.contract["pools"][job.pool]["capacity"] == "block",
        missing=missing if image is not None else (*missing, "NAT gateway data"),
    )


def _of(usd_per_hour: Decimal | None, hours: Decimal) -> Decimal | None:
    return None if usd_per_hour is None else (usd_per_hour * hours).quantize(CENT)


def _nodes(
    plan: EnvironmentPlan | TeamPlan,
    pool: str,
    nodes: int,
    disks: int,
    why: str = "",
    kind: str = "",
) -> Iterable[Line]:
    """Nodes of a pool, of its first choice unless `kind` names another, and their root volumes."""
    region, promised = plan.identity.region, plan.contract["pools"][pool]
    capacity = promised["capacity"] if isinstance(plan, TeamPlan) else plan.capacity[pool].capacity
    kind, service = kind or promised["instance_types"][0], SERVICES.get(capacity, capacity)
    if nodes > 0:
        yield _line(f"{nodes} x {kind} in {pool}", [(price(service, kind, region), nodes)], why)
    if disks > 0 and isinstance(plan, EnvironmentPlan):
        nodes_of_pool = plan.pools[pool]
        sizes = {
            "gp3": nodes_of_pool.root_volume_gib,
            "gp3-iops": nodes_of_pool.root_volume_iops - GP3_INCLUDED_IOPS,
            "gp3-mbps": nodes_of_pool.root_volume_mbps - GP3_INCLUDED_MBPS,
        }
        parts = [(price("ebs", sku, region), size * disks) for sku, size in sizes.items()]
        yield _line(f"disks of {disks} nodes in {pool}", parts)


def _paid(use: PoolUse) -> int:
    """Nodes that are paid while no job runs."""
    return max(use.reserved_nodes, use.kept_nodes)


def _hour(found: Price, quantity: int) -> Decimal:
    """USD an hour of a quantity, whose price is by the hour or by the month."""
    return found.usd * quantity / (HOURS if "month" in found.unit else 1)


def _part(found: Price | None, quantity: int) -> PricedQuantity:
    if found is None:
        return PricedQuantity(
            quantity=quantity, unit="", usd_each=None, usd_per_hour=None, as_of=None
        )
    return PricedQuantity(
        quantity=quantity,
        unit=found.unit,
        usd_each=found.usd,
        usd_per_hour=_hour(found, quantity).quantize(MILLIONTH),
        as_of=found.as_of,
    )


def _line(what: str, parts: Sequence[tuple[Price | None, int]], assumption: str = "") -> Line:
    """A line from prices and how many of their units, by the hour or by the month; an unknown one
    leaves it open."""
    known = [(found, count) for found, count in parts if found]
    hour = sum((_hour(found, count) for found, count in known), Decimal())
    whole = len(known) == len(parts)
    return Line(
        what=what,
        usd_per_hour=hour.quantize(MILLIONTH) if whole else None,
        assumption=assumption,
        usd_per_month=(hour * HOURS).quantize(CENT) if whole else None,
        as_of=min((found.as_of for found, _ in known), default=None),
        parts=tuple(_part(found, count) for found, count in parts),
    )


def _total(lines: Iterable[Line]) -> Total:
    """What is known of the lines. Their months add up only where all of them have one."""
    every = tuple(lines)
    months = [line.usd_per_month for line in every if not line.missing]
    return Total(
        usd_per_hour=sum((_known(line) for line in every), Decimal()),
        usd_per_month=None
        if None in months
        else sum((month for month in months if month), Decimal())
        + sum((_known(line) * HOURS for line in every if line.missing), Decimal()).quantize(CENT),
        priced=sum(not line.missing for line in every),
        lines=len(every),
        as_of=min((line.as_of for line in every if line.as_of), default=None),
        missing=tuple(line.what for line in every if line.missing),
    )


def _known(line: Line) -> Decimal:
    """What is known of an hour of it."""
    if line.usd_per_hour is not None:
        return line.usd_per_hour
    return sum((part.usd_per_hour or Decimal() for part in line.parts), Decimal())
