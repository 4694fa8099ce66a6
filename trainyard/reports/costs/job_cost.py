"""Costs of a job, of a sweep, and of the nodes of a pool: a start, a failure, an idle minute, a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from trainyard import command_line
from trainyard.catalog.aws.latencies import TYPICAL
from trainyard.catalog.aws.own_prices import OwnPrices
from trainyard.catalog.aws.prices import CAPACITY_SERVICES
from trainyard.catalog.aws.quotes import Quote
from trainyard.catalog.aws.storage import GP3_INCLUDED_IOPS, GP3_INCLUDED_MBPS
from trainyard.derive.pools import PoolUse
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import JobPlan, LoadPlan
from trainyard.reports.costs.amounts import Amount, Bounds, JobCost, Line, amount
from trainyard.reports.costs.lines import CENT, HOURS, bounds_of, line_of, sum_of, times, total_of
from trainyard.reports.minutes.timeline import cold_start, gateway_gb
from trainyard.stores.figures import UsageCost
from trainyard.stores.kinds import plan_kind

TEAM_DISKS = "disks of its nodes, which the environment pays"
"""Part that the price of every job of a team lacks."""
UNKNOWN = "?"
"""Figure that needs expected_hours."""


def job_cost(plan: EnvironmentPlan | TeamPlan, job: JobPlan, idle: Sequence[Line] = ()) -> JobCost:
    """Costs of one job of a plan. `idle`: the lines that are paid while nothing runs."""
    nodes, seconds = job.nodes, cold_start(plan, job)
    cost = total_of(nodes_of(plan, job.pool, nodes, nodes))
    missing = cost.missing
    if isinstance(plan, TeamPlan):
        missing = (*missing, TEAM_DISKS)
    known, most = cost.usd_per_hour or None, None if missing else cost.most_usd_per_hour
    rate = known if missing else most
    image, saves = _images(plan, job), _saves(plan, job)
    saved, hours = plan.checkpoints.get(job.name), _paid_hours(job, seconds)
    least, whole = (image.usd or Decimal()) + (saves.usd or Decimal()), _plus(image.usd, saves.usd)
    data = _Data(usd=whole, bounds=sum_of([image.bounds, saves.bounds]))
    return JobCost(
        job=job.name,
        nodes=nodes,
        usd_per_hour=known if most == known else None,
        at_least_usd_per_hour=known,
        most_usd_per_hour=most,
        usd_per_idle_minute=_of(rate, Decimal(1) / 60),
        cold_start_seconds=seconds,
        cold_start_usd=_of(rate, Decimal(seconds) / 3600),
        image_usd=image.usd,
        failure_usd=_of(rate, Decimal(saved.lost_seconds_per_failure) / 3600) if saved else None,
        saves_usd=saves.usd,
        usd=_plus(_of(known, hours), least),
        most_usd=_plus(_of(most, hours), whole),
        added=_run(plan, job, (), least, data, hours),
        all_in=_run(plan, job, idle, least, data, hours),
        prepaid=plan.capacity[job.pool].capacity == "block",
        missing=(*missing, *saves.unpriced, *image.unpriced),
    )


@dataclass(frozen=True, kw_only=True)
class _Data:
    """Price of data that a run moves."""

    usd: Decimal | None
    """To the cent; None where a price is missing."""
    bounds: Bounds | None
    """Price with guesses; None where a price has none."""
    unpriced: tuple[str, ...] = ()
    """Names of what has no price."""


_NO_DATA = _Data(usd=Decimal(), bounds=Bounds(usd=Decimal(), most_usd=Decimal()))


def _data(costs: Sequence[UsageCost], gigabytes: Decimal, region: str, prices: OwnPrices) -> _Data:
    """Price of so many GB, each of which is paid by all these."""
    offered = [prices.quote(cost.service, cost.sku, region) for cost in costs]
    unpriced = tuple(
        cost.what for cost, each in zip(costs, offered, strict=True) if each.price is None
    )
    each = sum_of(map(_each, offered))
    bounds = times(each, gigabytes)
    return _Data(
        usd=bounds.usd if bounds and not unpriced else None, bounds=bounds, unpriced=unpriced
    )


def _each(offered: Quote) -> Bounds | None:
    """Price of one unit, or a guess at it."""
    if offered.price:
        return bounds_of(offered.price.usd, offered.price.usd)
    guess = offered.guess
    return Bounds(usd=guess.usd, most_usd=guess.most_usd) if guess else None


def _images(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> _Data:
    """Data of the images that new nodes pull through the NAT gateway."""
    gigabytes = gateway_gb(plan, job)
    if not gigabytes:
        return _NO_DATA
    pulled = UsageCost(what="NAT gateway data", service="nat", sku="gb")
    return _data([pulled], Decimal(str(gigabytes)), plan.identity.region, plan.prices)


def _saves(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> _Data:
    """Writes of all checkpoints of a run. Each interval of the expected hours ends with one save."""
    saved, store = plan.checkpoints.get(job.name), (job.checkpoints or "").partition("/")[0]
    if isinstance(plan, TeamPlan) or saved is None or store not in plan.stores:
        return _NO_DATA
    if job.expected_hours is None:
        return _NO_DATA
    saves = int(job.expected_hours * 3600 / saved.interval_seconds)
    gigabytes = Decimal(str(saved.bytes)) / 10**9 * saves
    costs = [*plan_kind(plan.stores[store]).save_costs(store, plan.stores[store])]
    return _data(costs, gigabytes, plan.identity.region, plan.prices)


def _paid_hours(job: JobPlan, start_seconds: float) -> Decimal | None:
    """Hours of a run with the start of its nodes; None where the job does not say its hours."""
    if job.expected_hours is None:
        return None
    return Decimal(str(job.expected_hours)) + Decimal(start_seconds) / 3600


def _plus(usd: Decimal | None, more: Decimal | None) -> Decimal | None:
    return None if usd is None or more is None else usd + more


def _run(
    plan: EnvironmentPlan | TeamPlan,
    job: JobPlan,
    idle: Sequence[Line],
    least: Decimal,
    data: _Data,
    hours: Decimal | None,
) -> Amount | None:
    """A run with the lines of `idle` beside it. Nodes that are paid while nothing runs are among those.
    `data`: of images and checkpoints; `least`: what is known of its price."""
    if hours is None:
        return None
    rate = total_of((*idle, *_beside_idle(plan, job)))
    least += (rate.usd_per_hour * hours).quantize(CENT)
    if isinstance(plan, TeamPlan):
        return amount(least, None, rate.as_of)
    most = _plus(_of(rate.most_usd_per_hour, hours), data.usd)
    bounds = rate.guess or bounds_of(rate.usd_per_hour, rate.most_usd_per_hour)
    guess = sum_of([times(bounds, hours), data.bounds]) if most is None else None
    return amount(least, most, rate.as_of, guess=guess)


def _beside_idle(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> Iterable[Line]:
    """Nodes of a job that are paid because it runs, and their disks. Those of a Capacity Block are paid
    already, and their share is the job's."""
    if isinstance(plan, TeamPlan):
        yield from nodes_of(plan, job.pool, job.nodes, job.nodes)
        return
    use = plan.capacity[job.pool]
    launched = job.nodes if use.capacity == "block" else job.nodes - paid(use)
    yield from nodes_of(plan, job.pool, launched, job.nodes - use.kept_nodes)


def _of(usd_per_hour: Decimal | None, hours: Decimal | None) -> Decimal | None:
    if usd_per_hour is None or hours is None:
        return None
    return (usd_per_hour * hours).quantize(CENT)


def nodes_of(
    plan: EnvironmentPlan | TeamPlan,
    pool: str,
    nodes: int,
    disks: int,
    why: str = "",
    kind: str = "",
) -> Iterable[Line]:
    """Nodes of a pool, of its first choice unless `kind` names another, and their root volumes."""
    region, use = plan.identity.region, plan.capacity[pool]
    kind, service = kind or use.instance_types[0], CAPACITY_SERVICES.get(use.capacity, use.capacity)
    if nodes > 0:
        yield line_of(
            f"{nodes} x {kind} in {pool}", [(plan.prices.quote(service, kind, region), nodes)], why
        )
    if disks > 0 and isinstance(plan, EnvironmentPlan):
        nodes_of_pool = plan.pools[pool]
        sizes = {
            "gp3": nodes_of_pool.root_volume_gib,
            "gp3-iops": nodes_of_pool.root_volume_iops - GP3_INCLUDED_IOPS,
            "gp3-mbps": nodes_of_pool.root_volume_mbps - GP3_INCLUDED_MBPS,
        }
        parts = [
            (plan.prices.quote("ebs", sku, region), size * disks) for sku, size in sizes.items()
        ]
        yield line_of(f"disks of {disks} nodes in {pool}", parts)


def paid(use: PoolUse) -> int:
    """Nodes that are paid while no job runs."""
    return max(use.reserved_nodes, use.kept_nodes)


_LONG = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28}\b")
"""A commit, of which 12 digits tell it from all others of its repository."""


def loads(plan: EnvironmentPlan | TeamPlan) -> list[str]:
    """Everything that is loaded before jobs: where to, how large it is, minutes and money."""
    wanted = {each.name: each for job in plan.jobs.values() for each in job.loads}
    rows = [("source", "place", "GB", "minutes", "USD", "for")]
    for name, load in wanted.items():
        jobs = [job.name for job in plan.jobs.values() if name in {each.name for each in job.loads}]
        what = _LONG.sub(r"\1", load.what)
        rows.append((what, load.place, *_load_figures(plan, load), ", ".join(jobs)))
    notes = "once, on a node of their pool without GPUs; their jobs ask for GPUs when it is there"
    if any(load.gigabytes is None for load in wanted.values()):
        notes += ". Minutes and money follow from check.bytes"
    return ["loads", *command_line.table(rows), *command_line.wrapped(notes)] if wanted else []


def _load_figures(plan: EnvironmentPlan | TeamPlan, load: LoadPlan) -> tuple[str, str, str]:
    """Size, minutes with the start of the node, and price with its data. A model of AWS's and the source's
    speed."""
    if load.gigabytes is None or load.seconds is None:
        return "?", "?", "?"
    seconds = TYPICAL["ec2.instance-boot"] + load.seconds
    node = total_of(nodes_of(plan, load.pool, 1, 1))
    data = (
        plan.prices.price("nat", "gb", plan.identity.region)
        if load.from_internet and plan.leads_out
        else None
    )
    unknown = bool(node.missing) or (load.from_internet and plan.leads_out and data is None)
    usd = node.usd_per_hour * Decimal(seconds) / 3600
    usd += data.usd * Decimal(load.gigabytes) if data else 0
    least = "at least " if unknown else ""
    return f"{load.gigabytes:,.1f}", f"{seconds / 60:.0f}", f"{least}{usd.quantize(CENT)}"


def sweeps(plan: EnvironmentPlan | TeamPlan, costs: Sequence[JobCost]) -> list[str]:
    """A line for each sweep. `costs`: of all jobs."""
    runs: dict[str, list[JobPlan]] = {}
    for job in plan.jobs.values():
        if job.sweep:
            runs.setdefault(job.sweep.entry, []).append(job)
    by_job = {cost.job: cost for cost in costs}
    rows = [("sweep", "runs", "at once", "nodes", "hours", "USD")]
    for entry, jobs in runs.items():
        first, number = jobs[0], _runs_at_once(plan, jobs)
        rows.append(
            (
                entry,
                str(len(jobs)),
                str(number),
                str(number * first.nodes),
                _hours(first, len(jobs), number),
                _dollars([by_job[job.name] for job in jobs]),
            )
        )
    notes = "hours and USD of all runs, without the start of nodes in the hours; they need expected_hours"
    return ["sweeps", *command_line.table(rows), f"  {notes}"] if runs else []


def schedules(plan: EnvironmentPlan | TeamPlan, costs: Sequence[JobCost]) -> list[str]:
    """A line for each schedule: how often, and what a month takes. `costs`: of all jobs."""
    by_job = {cost.job: cost for cost in costs}
    rows = [("schedule", "times", "runs a month", "hours a month", "USD a month")]
    for job in plan.jobs.values():
        if job.schedule:
            runs, cost = _runs_a_month(job), by_job[job.name]
            hours = UNKNOWN if job.expected_hours is None else f"{runs * job.expected_hours:,.1f}"
            times = f"{job.schedule.cron} {job.schedule.time_zone}"
            rows.append((job.name, times, f"{runs:,.1f}", hours, _month(cost, runs)))
    notes = (
        "a month on average; hours and USD need expected_hours. A suspended schedule has no runs"
    )
    return ["schedules", *command_line.table(rows), f"  {notes}"] if len(rows) > 1 else []


def _runs_a_month(job: JobPlan) -> float:
    """Runs of a schedule in a month: its times, and no more than can follow one another."""
    if not job.schedule or job.schedule.suspended:
        return 0.0
    asked = job.schedule.runs_a_month
    return min(asked, float(HOURS) / job.expected_hours) if job.expected_hours else asked


def _month(cost: JobCost, runs: float) -> str:
    """Price of so many runs."""
    if cost.usd is None or not runs:
        return UNKNOWN if runs else "0"
    times_it = Decimal(str(runs))
    most = None if cost.most_usd is None else (cost.most_usd * times_it).quantize(CENT)
    return amount((cost.usd * times_it).quantize(CENT), most, None).said


def _runs_at_once(plan: EnvironmentPlan | TeamPlan, jobs: Sequence[JobPlan]) -> int:
    """Runs that go on at the same time: as many as the sweep says and the pool holds."""
    first = jobs[0]
    held = (
        plan.capacity[first.pool].at_once if isinstance(plan, EnvironmentPlan) else plan.at_once
    )[first.name]
    asked = first.sweep and first.sweep.at_most
    return min(len(jobs), held, asked or held)


def _hours(job: JobPlan, runs: int, at_once: int) -> str:
    """Hours from the first run to the last, where each takes as long as its owner expects."""
    if job.expected_hours is None or not at_once:
        return UNKNOWN
    return f"{-(-runs // at_once) * job.expected_hours:g}"


def _dollars(costs: Sequence[JobCost]) -> str:
    known = [cost.usd for cost in costs if cost.usd is not None]
    most = [cost.most_usd for cost in costs if cost.most_usd is not None]
    if not known:
        return UNKNOWN
    whole = sum(most, Decimal()) if len(most) == len(costs) else None
    return amount(sum(known, Decimal()), whole, None).said
