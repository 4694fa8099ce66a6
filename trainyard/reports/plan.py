"""`trainyard plan`: what a stack file comes to in nodes, minutes and money, before anything is created.

For a person as text, one function a section; for a program as `--json`; for the documents as
`--picture`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from trainyard import command_line
from trainyard.catalog.aws.instances import QUOTA_NAMES
from trainyard.catalog.versions import known_good
from trainyard.decide import plan_stack
from trainyard.derive.after import diagram
from trainyard.derive.pools import quota_needed, quota_takers
from trainyard.live.encryption import encryption
from trainyard.objects.jobs.pod_template import EFA, GPU, pod_requests
from trainyard.parts.parts import planned_parts
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.directories import PARENT
from trainyard.plans.jobs import Spec
from trainyard.problems import InputError, InputWarning, few
from trainyard.reports.box import Box, box_of, rows
from trainyard.reports.costs.cost import at_list, estimate
from trainyard.reports.costs.job_cost import loads, schedules, sweeps
from trainyard.reports.costs.money import money
from trainyard.reports.minutes.limits import below, pauses
from trainyard.reports.minutes.printed import picture_of, time
from trainyard.reports.minutes.timeline import drawn, schedule, thin
from trainyard.reports.page.plan_page import plan_page
from trainyard.reports.stack_file import errors_of, report_on
from trainyard.reports.upgrade import versions_section
from trainyard.settings.reading.reader import Reading
from trainyard.stores.goodput import Verdict
from trainyard.stores.kinds import plan_kind

Plan = EnvironmentPlan | TeamPlan
REQUESTS = {GPU: "GPUs", EFA: "EFA devices", "cpu": "CPUs", "memory": "memory"}
"""Resource of a pod → what is behind its amount."""


def main(options: argparse.Namespace) -> int:
    """Print the plan of one stack; 1 with the errors where the stack is refused, 2 where it has no
    file."""

    def report(reading: Reading, plan: Plan) -> int:
        if options.html:
            Path(options.html).write_text(html(plan, plan_stack(reading).warnings))
            print(options.html)
        elif options.json:
            print(as_json(data(plan)))
        else:
            print((picture if options.picture else text)(plan))
        return 0

    return report_on(options.stack, report, errors_as_json if options.json else errors_of)


def text(plan: Plan) -> str:
    """Every section, for a person."""
    costs, timeline = estimate(plan), schedule(plan)
    sections = (
        title(plan),
        top(box_of(plan, costs, timeline)),
        capacity(plan),
        storage(plan),
        encryption(plan),
        versions_section(plan) if isinstance(plan, EnvironmentPlan) else [],
        queues(plan),
        *parts(plan),
        loads(plan),
        jobs(plan),
        sweeps(plan, costs.jobs),
        schedules(plan, costs.jobs),
        diagram(plan.jobs),
        time(timeline, [*_block_starts(plan), *thin(plan, timeline)]),
        limits(plan),
        money(costs, date.today(), at_list(plan)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def html(plan: Plan, warnings: Iterable[InputWarning] = ()) -> str:
    """A page with the figures of `data`, for people who look."""
    costs, timeline = estimate(plan), schedule(plan)
    said = [*warnings, *below(plan)]
    box = box_of(plan, costs, timeline)
    return plan_page(plan, costs, timeline, box, said, at_list(plan))


def data(plan: Plan) -> dict[str, Any]:
    """Everything the text says and what it follows from."""
    costs, listed, timeline = estimate(plan), at_list(plan), schedule(plan)
    return {
        "stack": plan.identity.stack,
        "plan": _with_parts(plan) if isinstance(plan, EnvironmentPlan) else plan,
        "box": box_of(plan, costs, timeline),
        "time": {**vars(timeline), "spread": drawn(timeline)},
        "money": costs,
        **({"money_at_list": listed} if listed else {}),
    }


def _with_parts(plan: EnvironmentPlan) -> dict[str, Any]:
    """The plan with each of its parts beside what every environment has."""
    fields = {**vars(plan), **plan.parts}
    del fields["parts"]
    return fields


def summary(plan: Plan) -> dict[str, Any]:
    """The box, and the few figures beside it that `pulumi preview` shows as an output."""
    quotas = {}
    if isinstance(plan, EnvironmentPlan):
        quotas = {"quota_vcpus": quota_needed(plan.capacity, plan.system_nodes)}
    return {
        **rows(box_of(plan, estimate(plan), schedule(plan))),
        **quotas,
        "goodput": {name: round(verdict.goodput, 3) for name, verdict in plan.checkpoints.items()},
        "see": f"trainyard plan {plan.identity.stack}",
    }


def as_json(value: Any) -> str:
    """Plain data in a stable order; money as text, which no reader rounds."""
    return json.dumps(value, default=_plain, sort_keys=True)


def errors_as_json(stack: str, errors: Sequence[InputError]) -> str:
    """JSON for a program where there is no plan."""
    return as_json({"stack": stack, "errors": errors})


def picture(plan: Plan) -> str:
    """docs/critical-path.md: the timeline as a chart that GitHub draws."""
    return picture_of(schedule(plan), plan.identity.stack)


def top(box: Box) -> list[str]:
    """The box, a row a line; a long one goes on below."""
    shown = {name.replace("_", " "): str(words) for name, words in rows(box).items()}
    width = max(map(len, shown))
    lines = ["summary: in USD without tax; what is paid by use is in no sum"]
    for name, words in shown.items():
        begin, *more = textwrap.wrap(
            words, 96 - width, break_on_hyphens=False, break_long_words=False
        )
        lines += [f"  {name:{width}}  {begin}", *(" " * (width + 4) + each for each in more)]
    return lines


def title(plan: Plan) -> list[str]:
    """Title of a plan: stack, region and zone."""
    me = plan.identity
    if isinstance(plan, TeamPlan):
        limit = f", at most {plan.workspace.max_gpus} GPUs" if plan.workspace.max_gpus else ""
        return [
            f"{me.stack}: namespace {plan.workspace.namespace} on {plan.environment},"
            f" {me.region}{limit}"
        ]
    return [
        f"{me.stack}: {me.region}, training in {plan.zone}",
        *_versions(plan.cluster.version, plan.trainer.version, plan.karpenter.version),
    ]


def _versions(kubernetes: str, trainer: str, karpenter: str) -> list[str]:
    """Versions that go with those that are set; nothing where they were never tried together."""
    known = known_good(kubernetes, trainer, karpenter)
    if not known:
        return []
    return [
        f"  Kubernetes {kubernetes}, Karpenter {karpenter}, Trainer {trainer}, JobSet"
        f" {known.jobset}",
        f"  matching releases: Kueue {known.kueue}, SDK kubeflow {known.sdk}",
    ]


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
    return ["capacity", *command_line.table(rows), *_quotas(plan)]


def _quotas(plan: EnvironmentPlan) -> list[str]:
    """The quotas that full pools take, by AWS's name and code."""
    taken = quota_takers(plan.capacity, plan.system_nodes)
    if not taken:
        return []
    rows = [("quota", "vCPUs", "for")]
    for code, takers in taken.items():
        name = f"{code} {QUOTA_NAMES[code]}"
        rows.append((name, str(sum(takers.values())), _few(list(takers))))
    return [
        *command_line.table(rows),
        "  (a new account has a quota of 0 GPU vCPUs: request an increase early)",
    ]


def _few(names: list[str]) -> str:
    """As many of the names as fit the line, and how many more there are."""
    shown = [name for number, name in enumerate(names) if len(", ".join(names[: number + 1])) < 32]
    more = len(names) - len(shown)
    if not shown:
        return f"{more} pools"
    return f"{', '.join(shown)}{f' and {more} more' if more else ''}"


def storage(plan: Plan) -> list[str]:
    """The file systems, and what becomes of them with the stack; of a team, what it sees of them."""
    if isinstance(plan, TeamPlan):
        return _seen(plan.contract.get("team", {}))
    rows = [("store", "kind", "size", "speed", "at destroy")]
    notes: list[str] = []
    for name, store in plan.stores.items():
        kind = plan_kind(store)
        row = kind.row(store)
        rows.append((name, row.kind, row.size, row.speed, "stays" if store.keep else "goes"))
        notes += [f"  {note}" for note in kind.notes(name, store)]
        notes += [f"  {name} has a directory for each team: {PARENT}/<team>"] if store.apart else []
        if len(teams := _writers(plan, name)) > 1 and not store.apart:
            notes.append(f"  {name} is one for all: {few(teams)} read, write and delete all of it")
    return ["storage", *command_line.table(rows), *notes] if plan.stores else []


def _writers(plan: EnvironmentPlan, store: str) -> list[str]:
    """Teams that write to a store."""
    return [
        name
        for name, team in plan.teams.items()
        for claim in team.workspace.claims
        if (claim.store, claim.access_mode) == (store, "ReadWriteMany")
        and store not in team.contract.get("team", {}).get("read_only", ())
    ]


def _seen(team: Mapping[str, Any]) -> list[str]:
    """The stores that the team does not see as a whole, or cannot write to. `team`: of its
    contract."""
    own = [
        f"  {store} is the directory {path}" for store, path in team.get("directories", {}).items()
    ]
    reads = [f"  {store} is for reading only" for store in team.get("read_only", ())]
    return ["storage", *own, *reads] if own or reads else []


def jobs(plan: Plan) -> list[str]:
    """Jobs: how many of each run at once, and where their checkpoints go."""
    rows = [("job", "pool", "nodes", "each pod requests", "at once", "checkpoints")]
    for name, job in plan.jobs.items():
        at_once = (
            plan.capacity[job.pool].at_once[name]
            if isinstance(plan, EnvironmentPlan)
            else plan.at_once[name]
        )
        rows.append(
            (
                name,
                job.pool,
                str(job.nodes),
                requested(job.spec),
                str(at_once),
                job.checkpoints or "none",
            )
        )
    said = [_saves(name, verdict) for name, verdict in plan.checkpoints.items()]
    said += [f"{name}: {fit.in_words}" for name, fit in plan.fits.items()]
    lines = [line for each in said for line in command_line.wrapped(each)]
    return ["jobs", *command_line.table(rows), *lines] if plan.jobs else []


def requested(spec: Spec) -> str:
    """Requests of a pod that trains: GPUs, EFA, CPUs and memory, as far as the object of its job says
    it."""
    found = pod_requests(spec)
    words = [f"{found[name]} {unit}" for name, unit in REQUESTS.items() if name in found]
    return ", ".join(words) or "what its runtime says"


def _saves(name: str, v: Verdict) -> str:
    """Checkpoints of a job in words: size, interval, duration of a save, goodput."""
    return (
        f"{name}: {v.bytes / 1e9:,.0f} GB every {v.interval_seconds / 60:.0f}"
        f" min{'' if v.interval_given else ' (the best)'}, a save takes {v.write_seconds:,.0f} s, a"
        f" stop every {v.mtbf_hours:,.0f} h: {v.goodput:.1%} of the time trains,"
        f" {v.stall_share:.1%} saves, {max(0, 1 - v.goodput - v.stall_share):.1%} is lost to stops and"
        " restarts; expected_hours include all three"
    )


def queues(plan: Plan) -> list[str]:
    """Nodes of each pool that each team is guaranteed, and those that it gets while others leave
    them idle."""
    if isinstance(plan, TeamPlan) or plan.queues is None:
        return []
    rows = [("queue", "pool", "guaranteed GPUs", "possible GPUs")]
    rows += [
        (name, share.pool, str(share.guaranteed * share.gpus), str(share.possible * share.gpus))
        for name, team in plan.teams.items()
        if team.queue
        for share in team.queue.shares
    ]
    limit = (
        f"a gang that has not got all its pods after {plan.queues.ready_minutes} minutes gives its"
        " nodes back, and tries again"
    )
    if plan.queues.recovery_minutes > plan.queues.ready_minutes:
        limit += f"; one that has lost a node after {plan.queues.recovery_minutes}"
    if near := [each.pool for each in plan.queues.flavors if each.by_topology]:
        limit += f"; nodes are chosen by their place in the network of AWS: pools {', '.join(near)}"
    return ["queues", *command_line.table(rows), *command_line.wrapped(limit)]


def parts(plan: Plan) -> list[list[str]]:
    """The sections of an environment's optional parts."""
    if isinstance(plan, TeamPlan):
        return []
    most = {name: use.max_nodes for name, use in plan.capacity.items()}
    return [part.report(its, most) for part, its in planned_parts(plan)]


def _block_starts(plan: Plan) -> list[str]:
    """Starts of Capacity Blocks that jobs wait for."""
    if isinstance(plan, TeamPlan):
        return []
    used = {job.pool for job in plan.jobs.values()}
    return [
        f"the block of {name} starts at {use.starts:%Y-%m-%d %H:%M} UTC: its jobs wait until then"
        for name, use in plan.capacity.items()
        if use.capacity == "block" and use.starts and name in used
    ]


def limits(plan: Plan) -> list[str]:
    """Time limits that a slow start meets, and pauses that a run meets."""
    found = [f"{each.path}: {each.text}" for each in below(plan)] + pauses(plan)
    lines = [line for each in found for line in command_line.wrapped(each)]
    return ["limits", *lines] if lines else []


def _plain(value: Any) -> Any:
    """Value in a form that JSON knows: dataclasses as objects, money as text."""
    return vars(value) if dataclasses.is_dataclass(value) else str(value)
