"""Limits that end before a slow start of a plan does, as warnings of `trainyard check` and lines of
`trainyard plan`; and the pauses that a run meets.

Limits: trainyard/catalog/limits.py. How slow a start is: trainyard/reports/minutes/timeline.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainyard.catalog.aws.latencies import IMAGE_GB, LATENCIES, NAT_START_GBPS
from trainyard.catalog.job_kinds import time_limit
from trainyard.catalog.limits import (
    COLLECTIVE_SECONDS,
    CRASH_BACKOFF_SECONDS,
    FIRST_STEP,
    LIMITS,
    LONGEST_CRASH_BACKOFF_SECONDS,
    STEADY_SECONDS,
    WHOLE_START,
    Limit,
)
from trainyard.objects.jobs.pod_template import GPU, pod_requests
from trainyard.parts.parts import planned_parts
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import JobPlan
from trainyard.problems import At, InputWarning, few
from trainyard.reports.minutes.timeline import (
    Timeline,
    gateway_gb,
    image_pull,
    in_words,
    schedule,
    slow_start,
)

Plan = EnvironmentPlan | TeamPlan


def below(plan: Plan) -> list[InputWarning]:
    """Every limit that ends before a slow start does, with the sentence of `trainyard plan`."""
    timeline = schedule(plan)
    return [
        *_of_parts(plan, timeline),
        *_of_settings(plan, timeline),
        *_of_collectives(plan),
        *_of_gateways(plan),
    ]


def needed_seconds(limit: Limit, timeline: Timeline) -> float:
    """Seconds that must fit into a limit on a slow day. A stage that the plan does without takes none."""
    if limit.over == WHOLE_START:
        return timeline.slow_seconds
    rows = {stage.row for stage in timeline.stages}
    return sum(LATENCIES[row].slow for row in limit.over if row in rows)


def _of_parts(plan: Plan, timeline: Timeline) -> Iterator[InputWarning]:
    """Rows of the table."""
    for limit in LIMITS:
        seconds, needed = _seconds(limit, plan), needed_seconds(limit, timeline)
        if seconds is not None and needed > seconds:
            yield At(_section(plan)).warning(
                f"{limit.part} ends a slow start: {limit.limit} is {_minutes(seconds)}, and"
                f" {_minutes(needed)} are needed where each stage is as slow as one time in ten, after"
                f" which it {limit.then}; the plan: {in_words(timeline)}"
            )


def _seconds(limit: Limit, plan: Plan) -> float | None:
    """Seconds of a limit in this plan; None where it has none."""
    if limit.seconds is not None or limit.default is None:
        return limit.seconds
    queues = plan.queues if isinstance(plan, EnvironmentPlan) else None
    return queues.ready_minutes * 60 if queues else None


def _of_settings(plan: Plan, timeline: Timeline) -> Iterator[InputWarning]:
    """Limits that the stack file sets."""
    for name, job in plan.jobs.items():
        at, needed = f"{_section(plan)}.jobs.{name}", slow_start(plan, job)
        if job.wait != "none" and job.wait_minutes * 60 < needed:
            yield At(f"{at}.wait_minutes").warning(
                f"`pulumi up` gives up after {_minutes(job.wait_minutes * 60)}, and"
                f" {_start(needed, timeline)}"
            )
        limit = time_limit(job.kind, {"spec": job.spec})
        if limit is not None and limit < needed:
            yield At(f"{at}.time_limit_minutes").warning(
                f"the run fails after {_minutes(limit)}, its wait for nodes included, and"
                f" {_start(needed, timeline)}"
            )
    if isinstance(plan, EnvironmentPlan):
        yield from _of_hangs(plan)


def _start(needed: float, timeline: Timeline) -> str:
    """Words for a slow start of a job, and for its minutes. It draws the time line, which is
    a tenth of what a check costs: only a limit that is too short asks for it."""
    return (
        f"a slow start takes {_minutes(needed)} from the job to its first step; write"
        f" {math.ceil(needed / 60) + 1} or more (the plan: {in_words(timeline)})"
    )


def _of_hangs(plan: EnvironmentPlan) -> Iterator[InputWarning]:
    """Minutes without a log line after which a run counts as hung."""
    needed = sum(LATENCIES[row].slow for row in FIRST_STEP)
    for part, its in planned_parts(plan):
        silence = part.silence(its)
        if silence and silence.minutes * 60 < needed:
            yield At(f"environment.{part.section}.hung_minutes").warning(
                f"a run that logs nothing for {_minutes(silence.minutes * 60)} {silence.then}, and"
                f" one in ten takes {_minutes(needed)} from the start of its ranks to the first step;"
                f" write {math.ceil(needed / 60) + 1} or more, or log a line before"
            )


def _of_collectives(plan: Plan) -> Iterator[InputWarning]:
    """Checkpoints that one rank reads or writes while the others wait for it in a collective."""
    for name, verdict in plan.checkpoints.items():
        backend = "NCCL" if pod_requests(plan.jobs[name].spec).get(GPU) else "gloo"
        limit = COLLECTIVE_SECONDS[backend]
        slow = {"written": verdict.write_seconds, "read": verdict.read_seconds}
        verb = max(slow, key=lambda word: slow[word])
        if slow[verb] > limit:
            yield At(f"{_section(plan)}.jobs.{name}.checkpoints").warning(
                f"a checkpoint is {verb} in {_minutes(slow[verb])}, and a rank that waits for another"
                f" one in a collective of {backend} gives up after {_minutes(limit)}; write"
                f" init_process_group(timeout=…) with more than that in the script"
            )


def _of_gateways(plan: Plan) -> Iterator[InputWarning]:
    """Jobs with so many nodes that a NAT gateway decides how fast they pull their image."""
    for name, job in plan.jobs.items():
        gigabytes = gateway_gb(plan, job)
        alone = LATENCIES["job.image-pull"].slow * job.image_gb / float(IMAGE_GB)
        late = image_pull(plan, job, ()).slow_seconds
        if late >= 2 * alone:
            yield At(f"{_section(plan)}.jobs.{name}.image").warning(
                f"{job.nodes} nodes pull {gigabytes:,.0f} GB through one NAT gateway, which starts at"
                f" {NAT_START_GBPS} Gb/s: that takes {_minutes(late)}, and {_minutes(alone)} for one node;"
                f" images in ECR of {plan.identity.region} do not pass it: `trainyard image` and"
                f" `trainyard mirror` bring them there"
            )


def pauses(plan: Plan) -> list[str]:
    """Pauses between two starts of ranks that end with an error again and again, in words."""
    jobs = [name for name, job in plan.jobs.items() if restarts_in_place(job)]
    if not jobs:
        return []
    return [
        f"ranks of {few(jobs)} that end with an error start again in their pods: kubelet waits"
        f" {CRASH_BACKOFF_SECONDS} s before the first time and twice as long before each further one,"
        f" {_minutes(LONGEST_CRASH_BACKOFF_SECONDS)} at most, until a rank has run for"
        f" {_minutes(STEADY_SECONDS)}; a pod that is deleted starts without a pause"
    ]


def restarts_in_place(job: JobPlan) -> bool:
    """True where kubelet starts containers of the job again in the pods in which they failed."""
    replicas = job.spec.get("pytorchReplicaSpecs", {}).values()
    return any(each.get("restartPolicy") in ("OnFailure", "Always") for each in replicas)


def _section(plan: Plan) -> str:
    return "environment" if isinstance(plan, EnvironmentPlan) else "team"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.3g} min"
