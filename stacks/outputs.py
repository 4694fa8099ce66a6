"""Outputs of a stack about its jobs: the cost of a start, and the commands to follow, end and
repeat it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.derive.pools import nodes_wanted
from trainyard.objects.jobs.schedule import starts_now
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import SCHEDULE, JobPlan
from trainyard.problems import few
from trainyard.replacing.new_runs import resumes
from trainyard.reports.costs.amounts import JobCost, figures
from trainyard.reports.costs.cost import estimate

FEW = 5
"""Runs of one update that have a line each."""


def job_starts(plan: EnvironmentPlan | TeamPlan) -> dict[str, str]:
    """job → what is said whenever a run of it begins: the nodes it takes, what an hour of them
    costs or that it is paid already, and which checkpoint it resumes from."""
    return {
        key: (
            f"{key} starts a run: {cost.nodes} x {_types(plan, key)}, "
            f"{_hourly(cost, plan.identity.region)}{resumes(plan.jobs[key])}"
        )
        for key, cost in zip(plan.jobs, estimate(plan).jobs, strict=True)
    }


def prices_of_runs(plan: EnvironmentPlan | TeamPlan, starts: Collection[str]) -> list[str]:
    """Lines about the runs that an update starts, to be said before it makes anything: nodes, and what an hour and
    the whole run cost. Of more than FEW runs the first ones, and one line about all. `starts`: their jobs."""
    every = [cost for cost in estimate(plan).jobs if cost.job in starts] if starts else []
    costs = [cost for cost in every if plan.jobs[cost.job].schedule is None]
    lines = [
        f"this update starts a run of {cost.job}: {cost.nodes} x {_types(plan, cost.job)},"
        f" {_hourly(cost, plan.identity.region)}{_whole(plan.jobs[cost.job], cost)}"
        for cost in costs[: FEW if len(costs) > FEW + 1 else None]
    ]
    if len(costs) > 1:
        more = f"; {len(costs) - FEW} are not listed above" if len(lines) < len(costs) else ""
        lines.append(f"these {len(costs)} runs: {_together(plan, costs)}{more}")
    return [*lines, *(_begun(plan, cost) for cost in every if plan.jobs[cost.job].schedule)]


def _begun(plan: EnvironmentPlan | TeamPlan, cost: JobCost) -> str:
    """A line about a schedule that an update begins."""
    schedule = plan.jobs[cost.job].schedule
    assert schedule is not None
    return (
        f"this update begins the schedule of {cost.job}, {schedule.cron} ({schedule.time_zone}): about"
        f" {schedule.runs_a_month:,.0f} runs a month of {cost.nodes} x {_types(plan, cost.job)},"
        f" {_hourly(cost, plan.identity.region, names=False)}"
    )


def _types(plan: EnvironmentPlan | TeamPlan, job: str) -> str:
    return " or ".join(plan.capacity[plan.jobs[job].pool].instance_types)


def _whole(job: JobPlan, cost: JobCost) -> str:
    """Price of the whole run, where its hours are known; with the start of its nodes."""
    if cost.usd is None or job.expected_hours is None:
        return ""
    usd = figures(cost.usd, cost.most_usd)
    return f"; {usd} USD for the {job.expected_hours:g} hours of its expected_hours"


def _together(plan: EnvironmentPlan | TeamPlan, costs: Sequence[JobCost]) -> str:
    """Price of an hour in which all these runs go on, where none waits for another one. What is paid already is left
    out."""
    jobs = [plan.jobs[cost.job] for cost in costs]
    if any(job.after or (job.sweep and job.sweep.earlier) for job in jobs):
        return "some wait for others; `trainyard plan` has the price of all"
    wanted = nodes_wanted(jobs)
    own = [(cost, _part(plan, cost, wanted)) for cost in costs if not cost.prepaid]
    known = sum(((cost.at_least_usd_per_hour or 0) * part for cost, part in own), Decimal())
    most = [
        cost.most_usd_per_hour * part for cost, part in own if cost.most_usd_per_hour is not None
    ]
    whole = sum(most, Decimal()) if len(most) == len(own) else None
    said = figures(known, whole)
    return "no price known" if said == "no price" else f"{said} USD an hour while all of them run"


def _part(plan: EnvironmentPlan | TeamPlan, cost: JobCost, wanted: Mapping[str, int]) -> Decimal:
    """Part of its nodes that a run can have beside the others: together they have no more than their pool. `wanted`:
    pool → nodes of all of them."""
    pool = plan.jobs[cost.job].pool
    use = plan.capacity[pool]
    return min(Decimal(1), Decimal(use.max_nodes * len(use.instance_types)) / max(1, wanted[pool]))


def _hourly(cost: JobCost, region: str, *, names: bool = True) -> str:
    """Price of an hour of the job's nodes in a region, in words. `names`: of what has no price, where the rest has
    one."""
    if cost.prepaid:
        return f"paid already with a Capacity Block, in {region}"
    if cost.at_most:
        return f"at most ${cost.most_usd_per_hour:,.2f} an hour while it runs in {region}"
    known = cost.at_least_usd_per_hour
    if known is None:
        return f"no price known in {region}"
    said = f"${known:,.2f} an hour while it runs"
    if known == cost.usd_per_hour:
        return f"{said} in {region}"
    lacks = f" ({few(cost.missing)})" if names and cost.missing else ""
    return f"{said}, and what has no price in {region}{lacks}"


def job_outputs(stack: str, jobs: Mapping[str, JobPlan]) -> dict[str, dict[str, str]]:
    """Facts about each job, and the commands for it. Its kubectl commands need the stack's
    kubeconfig."""
    return {
        key: {
            "kind": job.kind,
            "namespace": job.namespace,
            "name": job.name,
            **_commands(stack, key, job),
        }
        for key, job in jobs.items()
        if job.schedule is None
    }


def schedule_outputs(jobs: Mapping[str, JobPlan]) -> dict[str, dict[str, dict[str, str]]]:
    """The output `schedules`: times of each job that has a schedule, and the commands for it; nothing without
    one."""
    found = {
        key: {
            "kind": job.kind,
            "namespace": job.namespace,
            "name": job.name,
            "cron": job.schedule.cron,
            "time_zone": job.schedule.time_zone,
            **({"suspended": "true"} if job.schedule.suspended else {}),
            **_schedule_commands(job),
        }
        for key, job in jobs.items()
        if job.schedule
    }
    return {"schedules": found} if found else {}


def _schedule_commands(job: JobPlan) -> dict[str, str]:
    kubectl, runs = f"kubectl -n {job.namespace}", f"{SCHEDULE}={job.name}"
    return {
        "status": f"{kubectl} get cronjob {job.name} && {kubectl} get {job.kind.lower()},jobs -l {runs}",
        "start": starts_now(kubectl, job.name),
    }


def _commands(stack: str, key: str, job: JobPlan) -> dict[str, str]:
    kubectl, kind = f"kubectl -n {job.namespace}", job.kind.lower()
    kind_of_job = JOB_KINDS[job.kind]
    own = f"{kind_of_job.pod_label}={job.name}"
    return {
        "status": f"{kubectl} get {kind} {job.name} && {kubectl} get pods -o wide -l {own}",
        "logs": (
            f"{kubectl} logs -l {own} --prefix --tail=-1 --max-log-requests={max(job.nodes, 5)}"
        ),
        "logs_of_rank_0": f"{kubectl} logs -l {own},{kind_of_job.rank_label}=0 --tail=-1 -f",
        "events": f"{kubectl} get events --sort-by=.lastTimestamp | grep {job.name}",
        "describe": f"{kubectl} describe {kind} {job.name}",
        "delete": f"{kubectl} delete {kind} {job.name}",
        "again": (
            f"trainyard again {job.sweep.entry if job.sweep else key} --stack {stack}, then pulumi up"
        ),
    }
