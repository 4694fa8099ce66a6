"""`make plan`: what a stack file comes to in nodes, minutes and money, before anything is created.

For a person as text, one function a section; for a program as `--json`; for the documents as
`--picture`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import command_line
from catalog.storage import SCRATCH_2_PER_TIB
from catalog.versions import known_good
from stacks.derive.capacity import quota_needed, quota_takers
from stacks.plan import EnvironmentPlan, TeamPlan, plan_stack
from stacks.reports.cost import Estimate, Line, Total, estimate
from stacks.reports.timeline import Stage, Timeline, schedule
from stacks.reports.upgrade import versions_section
from stacks.settings.problems import counted, listed
from stacks.settings.reader import read_file

Plan = EnvironmentPlan | TeamPlan
BAR = 40
"""Characters that the whole way to the first step takes."""


def main(arguments: list[str]) -> int:
    """Print the plan of one stack; 1 with the errors where the stack is refused, 2 where it has no
    file."""
    parser = command_line.parser(
        "stacks.reports.plan", "Print what a stack file comes to in nodes, minutes and money."
    )
    parser.add_argument("stack", metavar="STACK", help="read Pulumi.STACK.yaml of this folder")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as JSON, for programs")
    form.add_argument(
        "--picture", action="store_true", help="print the chart of docs/critical-path.md"
    )
    options = parser.parse_args(arguments)
    stack = options.stack
    try:
        planned = plan_stack(read_file(stack))
    except FileNotFoundError as error:
        print(f"{stack}: no stack file ({error.filename}); copy Pulumi.dev.yaml")
        return 2
    if planned.plan is None:
        print(
            as_json({"stack": stack, "errors": planned.errors})
            if options.json
            else "\n".join([*listed(planned.errors), f"{stack}: {counted(planned.errors)}"])
        )
        return 1
    if options.json:
        print(as_json(data(planned.plan)))
    else:
        print((picture if options.picture else text)(planned.plan))
    return 0


def text(plan: Plan) -> str:
    """Every section, for a person."""
    sections = (
        title(plan),
        capacity(plan),
        storage(plan),
        versions_section(plan) if isinstance(plan, EnvironmentPlan) else [],
        jobs(plan),
        time(schedule(plan)),
        money(estimate(plan)),
        next_command(plan),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def data(plan: Plan) -> dict[str, Any]:
    """Everything the text says and what it follows from."""
    return {
        "stack": plan.identity.stack,
        "plan": plan,
        "time": schedule(plan),
        "money": estimate(plan),
    }


def summary(plan: Plan) -> dict[str, Any]:
    """The few figures that `pulumi preview` shows as an output."""
    costs, timeline = estimate(plan), schedule(plan)
    whole = costs.at_work.priced == costs.at_work.lines
    return {
        "minutes_to_first_step": round(timeline.seconds / 60, 1),
        "usd_per_hour_idle": str(costs.idle.usd_per_hour) if whole else "no price",
        "usd_per_hour_at_work": str(costs.at_work.usd_per_hour) if whole else "no price",
        "quota_vcpus": (
            quota_needed(plan.capacity, plan.system_nodes)
            if isinstance(plan, EnvironmentPlan)
            else {}
        ),
        "goodput": {name: round(verdict.goodput, 3) for name, verdict in plan.checkpoints.items()},
        "see": f"make plan STACK={plan.identity.stack}",
    }


def as_json(value: Any) -> str:
    """Plain data in a stable order; money as text, which no reader rounds."""
    return json.dumps(value, default=_plain, sort_keys=True)


def picture(plan: Plan) -> str:
    """docs/critical-path.md: the timeline as a chart that GitHub draws."""
    timeline, stack = schedule(plan), plan.identity.stack
    rows = [
        f"    {s.name}"
        f" :{'crit, ' if s.name in timeline.critical else ''}{_moment(timeline.start[s.name])},"
        f" {max(1, round(s.seconds))}s"
        for s in _in_time(timeline)
    ]
    return "\n".join(
        [
            "# From nothing to the first training step",
            "",
            f"`Pulumi.{stack}.yaml` on AWS: {_minutes(timeline)}.",
            "What is red is on the longest way: only a change there brings the first step forward.",
            "",
            "```mermaid",
            "gantt",
            "    dateFormat HH:mm:ss",
            "    axisFormat %M:%S",
            "    tickInterval 2minute",
            *rows,
            "```",
            "",
            (
                f"Made by `python -m stacks.reports.plan {stack} --picture > docs/critical-path.md`; a test"
                " compares."
            ),
        ]
    )


def title(plan: Plan) -> list[str]:
    """Whose plan this is, and where."""
    me = plan.identity
    if isinstance(plan, TeamPlan):
        limit = f", at most {plan.workspace.max_gpus} GPUs" if plan.workspace.max_gpus else ""
        return [
            f"{me.stack}: namespace {plan.workspace.namespace} on {plan.environment},"
            f" {me.region}{limit}"
        ]
    return [
        f"{me.stack}: {me.region}, training in {plan.zone}",
        *_versions(plan.cluster.version, plan.trainer.version),
    ]


def _versions(kubernetes: str, trainer: str) -> list[str]:
    """What else goes with the versions that are set; nothing where they were never tried
    together."""
    known = known_good(kubernetes, trainer)
    return (
        [
            f"  Kubernetes {kubernetes}, Karpenter {known.karpenter}, Trainer {trainer}, JobSet"
            f" {known.jobset}; made for them: Kueue {known.kueue}, SDK kubeflow {known.sdk}"
        ]
        if known
        else []
    )


def capacity(plan: Plan) -> list[str]:
    """The pools, and the quota that they take when full beside the system nodes."""
    if isinstance(plan, TeamPlan):
        return []
    rows = [("pool", "type", "capacity", "nodes", "GPUs", "EFA a node")]
    rows += [
        (
            name,
            " or ".join(use.instance_types),
            use.capacity.replace("_", " "),
            f"{use.kept_nodes} to {max(use.kept_nodes, use.max_nodes)}",
            str(use.gpus_per_node * use.max_nodes),
            str(use.efa_per_node),
        )
        for name, use in plan.capacity.items()
    ]
    quota = [
        f"  quota {code}: {sum(takers.values())} vCPUs for {', '.join(takers)}"
        for code, takers in quota_takers(plan.capacity, plan.system_nodes).items()
    ]
    return ["capacity", *command_line.table(rows), *quota]


def storage(plan: Plan) -> list[str]:
    """The file systems, and what becomes of them with the stack."""
    if isinstance(plan, TeamPlan):
        return []
    rows = [
        (
            name,
            f"Lustre {s.deployment}{', EFA' if s.efa else ''}",
            f"{s.capacity_gib} GiB",
            f"{s.throughput_mbps_per_tib or SCRATCH_2_PER_TIB.write / 1e6:.0f} MB/s per TiB",
            _kept(s.keep),
        )
        for name, s in plan.lustre.items()
    ]
    rows += [(name, "EFS", "grows", "elastic", _kept(s.keep)) for name, s in plan.efs.items()]
    links = [
        f"  {name} {link.path} shows {link.s3}: imports {_events(link.auto_import)}, exports"
        f" {_events(link.auto_export)}"
        for name, s in plan.lustre.items()
        for link in s.repositories
    ]
    return (
        [
            "storage",
            *command_line.table([("store", "kind", "size", "speed", "at destroy"), *rows]),
            *links,
        ]
        if rows
        else []
    )


def _events(automatic: Iterable[str]) -> str:
    """What of files FSx carries over by itself."""
    return f"what is {', '.join(automatic).lower()}" if automatic else "nothing by itself"


def _kept(keep: bool) -> str:
    return "stays" if keep else "goes"


def jobs(plan: Plan) -> list[str]:
    """What runs, how many of each at once, and where its checkpoints go."""
    rows = [("job", "pool", "nodes", "at once", "checkpoints")]
    for name, job in plan.jobs.items():
        most = plan.contract["pools"][job.pool]["max_nodes"]
        at_once = (
            plan.capacity[job.pool].at_once[name]
            if isinstance(plan, EnvironmentPlan)
            else most // job.nodes
        )
        rows.append((name, job.pool, str(job.nodes), str(at_once), job.checkpoints or "none"))
    saves = [
        f"  {name}: {v.bytes / 1e9:,.0f} GB every {v.interval_seconds / 60:.0f}"
        f" min{'' if v.interval_given else ' (the best)'}, a save takes {v.write_seconds:,.0f} s, a"
        f" failure every {v.mtbf_hours:,.0f} h: {v.goodput:.1%} of the time trains"
        for name, v in plan.checkpoints.items()
    ]
    return ["jobs", *command_line.table(rows), *saves] if plan.jobs else []


def time(timeline: Timeline) -> list[str]:
    """Every stage as a bar: # where it decides when the first step comes, - elsewhere."""
    each = BAR / timeline.seconds if timeline.seconds else 0
    rows = [("stage", "from", "takes", "# decides")]
    for stage in _in_time(timeline):
        start, mark = timeline.start[stage.name], "#" if stage.name in timeline.critical else "-"
        bar = " " * round(start * each) + mark * max(1, round(stage.seconds * each))
        rows.append((stage.name, _moment(start)[3:], _moment(stage.seconds)[3:], bar))
    return [f"time: {_minutes(timeline)}", *command_line.table(rows)]


def money(costs: Estimate) -> list[str]:
    """What is paid while nothing runs and at work, line by line; what has no price says so."""
    rows = [("", "USD", "     an hour", "     a month", "")]
    rows += [
        ("idle", line.what, *_amounts(line), line.assumption)
        for line in (*costs.fixed, *costs.storage)
    ]
    rows += [("at work", line.what, *_amounts(line), line.assumption) for line in costs.work]
    rows += [
        (
            "",
            f"sum {name}",
            *_amounts(total),
            "" if total.priced == total.lines else "and what has no price",
        )
        for name, total in (("idle", costs.idle), ("at work", costs.at_work))
        if total.priced
    ]
    rows += [("by use", line.what, "", "", line.assumption) for line in costs.usage]
    rows += [
        (
            "job",
            f"{job.job}, nodes: {job.nodes}",
            _usd(job.usd_per_hour, 4),
            "",
            (
                f"cold start {job.cold_start_seconds:.0f} s: {_usd(job.cold_start_usd).strip()}"
                f"{'' if job.usd is None else f', in all {job.usd:,.2f}'}"
            ),
        )
        for job in costs.jobs
    ]
    known = costs.at_work
    said = (
        f"{known.priced} of {known.lines} lines have a dated price of this region"
        if known.lines
        else "jobs only"
    )
    return [
        f"money: {said}{f', the oldest of {known.as_of}' if known.as_of else ''}",
        *command_line.table(rows),
    ]


def next_command(plan: Plan) -> list[str]:
    return [f"next: make preview STACK={plan.identity.stack}"]


def _amounts(of: Line | Total) -> tuple[str, str]:
    return _usd(of.usd_per_hour, 4), _usd(of.usd_per_month)


def _usd(amount: Decimal | None, places: int = 2) -> str:
    return ("no price" if amount is None else f"{amount:,.{places}f}").rjust(12)


def _in_time(timeline: Timeline) -> list[Stage]:
    return sorted(
        timeline.stages, key=lambda stage: (timeline.start[stage.name], timeline.end[stage.name])
    )


def _minutes(timeline: Timeline) -> str:
    end = f"the first step of {timeline.job}" if timeline.job else "all of it"
    return f"{timeline.seconds / 60:.1f} minutes to {end} (model: medians, nothing queues)"


def _moment(seconds: float) -> str:
    """00:01:05"""
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _plain(value: Any) -> Any:
    """What JSON does not know: dataclasses as objects, money as text."""
    return vars(value) if dataclasses.is_dataclass(value) else str(value)


if __name__ == "__main__":
    command_line.run(main)
