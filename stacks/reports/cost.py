"""What a plan costs: exact to the cent where a dated price of its region is known, and None where
none is.

Never a neighbouring region's price, and no sum over what grows with use: that is named beside it,
with its rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from catalog.prices import Price, price
from catalog.storage import GP3_INCLUDED_IOPS, GP3_INCLUDED_MBPS
from catalog.versions import control_plane_prices
from plans.parts import JobPlan
from stacks.derive.capacity import PoolUse
from stacks.plan import EnvironmentPlan, TeamPlan
from stacks.reports.timeline import cold_start

HOURS = 730
"""Of a month, as AWS's price pages count."""
CENT, MILLIONTH = Decimal("1e-2"), Decimal("1e-6")
SERVICES = {"on_demand": "ec2", "reservation": "ec2", "spot": "ec2-spot", "block": "ec2-block"}
"""Kind of capacity → whose prices count. A team is only told "reserved", which may be either of two
and has none."""
PAID_ANYWAY = {
    "reservation": "all of the reservation, used or not",
    "block": "all of the block, for all of its time",
}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing that costs money."""

    what: str
    usd_per_hour: Decimal | None
    """To the millionth; None where no price of the region is known, or where it grows with use."""
    usd_per_month: Decimal | None
    """Of 730 hours, to the cent."""
    assumption: str
    as_of: str | None
    """Date of the oldest price in it."""


@dataclass(frozen=True, kw_only=True)
class Total:
    """A sum of lines: a lower bound unless all are priced."""

    usd_per_hour: Decimal
    usd_per_month: Decimal
    priced: int
    lines: int
    as_of: str | None
    """Date of the oldest price."""


@dataclass(frozen=True, kw_only=True)
class JobCost:
    """The nodes of one job; a team's without their disks, which its environment does not
    promise."""

    job: str
    nodes: int
    usd_per_hour: Decimal | None
    at_least_usd_per_hour: Decimal | None
    """What is known of it, such as the nodes without their disks; None where nothing is."""
    cold_start_seconds: float
    cold_start_usd: Decimal | None
    """From the launch of its nodes to its first step, to the cent."""
    usd: Decimal | None
    """All of it, to the cent; None where its hours or a price are not known."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a stack costs: fixed and storage while idle, work on top. A team has jobs only; the rest
    is not its own."""

    fixed: tuple[Line, ...]
    """Control plane, NAT gateway, system nodes, and nodes that are paid while no job runs."""
    storage: tuple[Line, ...]
    work: tuple[Line, ...]
    """What comes on top while all jobs run, as far as their pools go."""
    usage: tuple[Line, ...]
    """Grows with use, and is in no sum."""
    jobs: tuple[JobCost, ...]
    idle: Total
    at_work: Total


def estimate(plan: EnvironmentPlan | TeamPlan) -> Estimate:
    """Every line of a plan."""
    fixed, storage, work, usage = (
        tuple(lines(plan)) if isinstance(plan, EnvironmentPlan) else ()
        for lines in (_fixed, _storage, _work, _usage)
    )
    return Estimate(
        fixed=fixed,
        storage=storage,
        work=work,
        usage=usage,
        jobs=tuple(_job(plan, job) for job in plan.jobs.values()),
        idle=_total((*fixed, *storage)),
        at_work=_total((*fixed, *storage, *work)),
    )


def _fixed(plan: EnvironmentPlan) -> Iterable[Line]:
    region, system = plan.identity.region, plan.system_nodes
    yield _line(
        "control plane",
        [(each, 1) for each in control_plane_prices(region, plan.cluster.support)],
        f"in {plan.cluster.support} support",
    )
    yield _line("NAT gateway", [(price("nat", "hour", region), 1)])
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
        yield from _nodes(
            plan, name, _paid(use), use.kept_nodes, PAID_ANYWAY.get(use.capacity, "kept running")
        )


def _storage(plan: EnvironmentPlan) -> Iterable[Line]:
    for name, store in plan.lustre.items():
        sku = "-".join(
            str(part) for part in (store.deployment, store.throughput_mbps_per_tib) if part
        )
        found = price("fsx-lustre", sku, plan.identity.region)
        yield _line(f"Lustre {name}, {store.capacity_gib} GiB {sku}", [(found, store.capacity_gib)])


def _work(plan: EnvironmentPlan) -> Iterable[Line]:
    """Karpenter launches nodes for a gang that waits too, so a pool fills up to its limit; a pod
    counts as a node."""
    for name, use in plan.capacity.items():
        most = min(use.max_nodes, sum(j.nodes for j in plan.jobs.values() if j.pool == name))
        yield from _nodes(plan, name, most - _paid(use), most - use.kept_nodes)


def _usage(plan: EnvironmentPlan) -> Iterable[Line]:
    rates = [
        ("NAT gateway data", "nat", "gb"),
        *((f"EFS {name}", "efs", "standard") for name in plan.efs),
        *(
            (f"backups of {name}", "fsx-lustre", "backup")
            for name, s in plan.lustre.items()
            if s.backup_days
        ),
    ]
    for what, service, sku in rates:
        found = price(service, sku, plan.identity.region)
        rate = f"{found.usd} USD a {found.unit}" if found else "no price"
        yield Line(
            what=what,
            usd_per_hour=None,
            usd_per_month=None,
            assumption=f"{rate}, by use",
            as_of=found.as_of if found else None,
        )


def _job(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> JobCost:
    nodes, seconds = job.nodes, cold_start(plan, job)
    cost = _total(_nodes(plan, job.pool, nodes, nodes))
    usd = cost.usd_per_hour if cost.priced == cost.lines else None
    hours = (
        None
        if job.expected_hours is None
        else Decimal(str(job.expected_hours)) + Decimal(seconds) / 3600
    )
    return JobCost(
        job=job.name,
        nodes=nodes,
        usd_per_hour=usd,
        cold_start_seconds=seconds,
        at_least_usd_per_hour=cost.usd_per_hour if cost.priced else None,
        usd=None if usd is None or hours is None else (usd * hours).quantize(CENT),
        cold_start_usd=None if usd is None else (usd * Decimal(seconds) / 3600).quantize(CENT),
    )


def _nodes(
    plan: EnvironmentPlan | TeamPlan, pool: str, nodes: int, disks: int, why: str = ""
) -> Iterable[Line]:
    """Nodes of a pool, of its first choice where it has several types, and their root volumes."""
    region, promised = plan.identity.region, plan.contract["pools"][pool]
    capacity = promised["capacity"] if isinstance(plan, TeamPlan) else plan.capacity[pool].capacity
    kind, service = promised["instance_types"][0], SERVICES.get(capacity, capacity)
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


def _line(what: str, parts: Sequence[tuple[Price | None, int]], assumption: str = "") -> Line:
    """A line from prices and how many of their units, by the hour or by the month; an unknown one
    leaves it open."""
    known = [(found, count) for found, count in parts if found]
    hour = sum(
        (found.usd * count / (HOURS if "month" in found.unit else 1) for found, count in known),
        Decimal(),
    )
    whole = len(known) == len(parts)
    return Line(
        what=what,
        usd_per_hour=hour.quantize(MILLIONTH) if whole else None,
        assumption=assumption,
        usd_per_month=(hour * HOURS).quantize(CENT) if whole else None,
        as_of=min((found.as_of for found, _ in known if whole), default=None),
    )


def _total(lines: Iterable[Line]) -> Total:
    every = tuple(lines)
    return Total(
        usd_per_hour=sum((line.usd_per_hour or Decimal() for line in every), Decimal()),
        usd_per_month=sum((line.usd_per_month or Decimal() for line in every), Decimal()),
        priced=sum(line.usd_per_hour is not None for line in every),
        lines=len(every),
        as_of=min((line.as_of for line in every if line.as_of), default=None),
    )
