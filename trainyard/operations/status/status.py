"""`trainyard status STACK [--silence MINUTES]`: print nodes and jobs, what keeps jobs from running, and which
jobs have logged nothing for MINUTES.

At the end come what keeps no job from running now: jobs that lost nodes to another job or to AWS, what would break
an upgrade of the Trainer, idle pools that cannot launch nodes, and objects of the stack that somebody has deleted or
changed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

from trainyard import command_line
from trainyard.catalog.job_kinds import ENTRY_KINDS
from trainyard.catalog.logs.first_end import ROLE
from trainyard.catalog.logs.waiting import phase
from trainyard.derive.schedule import next_times
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.operations.reach.cluster import kubeconfig_in
from trainyard.operations.reach.made import made_jobs
from trainyard.operations.reach.proxy import asking
from trainyard.operations.reach.pulumi import deployment
from trainyard.operations.reach.snapshot import (
    RECENT,
    Object,
    Snapshot,
    condition_of,
    snapshot_of,
)
from trainyard.operations.reach.stack import own_prices
from trainyard.operations.reach.target import (
    answer_of,
    destroy_command,
    environment_of,
    kubeconfig,
)
from trainyard.operations.reach.updates import History, history_of
from trainyard.operations.recovery import instances, kept
from trainyard.operations.recovery.reservations import reservations
from trainyard.operations.status import by_hand, helm_releases, last_update, pools, upgrade
from trainyard.operations.status.diagnosis import SILENCE, diagnose
from trainyard.operations.status.finding import Finding
from trainyard.operations.status.interruptions import interruptions
from trainyard.operations.status.locks import locks_of
from trainyard.plans.jobs import entry_of_sweep

STACK = "pulumi:pulumi:Stack"
"""Type of the resource whose outputs are those of the stack."""
NAMED = 5
"""Findings with one cause that are named."""


def main(options: argparse.Namespace) -> int:
    """Return 0 when nothing keeps a job from running, else 1."""
    silence = SILENCE if options.silence is None else timedelta(minutes=options.silence)
    left = answer_of(lambda: (deployment(options.stack), history_of(options.stack)), out=sys.stdout)
    if left is None:
        return 1
    locks = locks_of(options.stack)
    open_update = last_update.line(options.stack, *left, live=options.live, locks=locks)
    if kubeconfig_in(left[0]) is None and any(each.lives for each in locks):
        print(f"{options.stack} has no cluster yet. {open_update}")
        options.then = f"trainyard status {options.stack}"
        return 1
    answer = answer_of(
        lambda: look(options.stack, *left, silence, live=options.live), out=sys.stdout
    )
    if answer is None:
        return _without_answer(options, left[0], open_update)
    snapshot, changed, halves = answer
    print(tables(snapshot))
    findings = diagnose(snapshot, silence)
    lines = [f"! {each}" for each in (*together(findings), open_update, *halves) if each]
    lines += _besides(snapshot, options.stack, changed)
    if lines:
        print(
            f"\nIt is {snapshot.taken_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC; all times are UTC."
        )
    for line in lines:
        print(f"\n{line}")
    return 1 if findings else 0


def _without_answer(options: argparse.Namespace, state: Object, open_update: str) -> int:
    """Print what the state alone knows. Without a cluster there are no logs to read next."""
    if open_update:
        print(open_update)
    for line in instances.named(options.stack, state):
        print(line)
    if kubeconfig_in(state) is None:
        there = state["deployment"].get("resources") or []
        destroy = destroy_command(options.stack, options.live)
        for line in (*kept.listed(there, destroy=destroy), *reservations(options.stack)):
            print(line)
        environment = environment_of(options.stack)
        options.then = f"trainyard status {environment}" if environment else "{up}"
    return 1


def _besides(snapshot: Snapshot, stack: str, changed: list[Finding]) -> Iterator[str]:
    """Lines about what keeps no job from running now."""
    for interruption in interruptions(snapshot):
        yield f"Interrupted: {interruption}"
    for finding in upgrade.unreadable(snapshot) if not upgrade.stuck(snapshot) else ():
        yield f"Not a problem until you upgrade the Trainer: {finding}"
    for finding in pools.unready(snapshot, wanted=False):
        yield f"An idle pool cannot launch nodes: {finding}"
    for finding in together(changed):
        yield f"Not as the last update of {stack} left it: {finding}"


def tables(snapshot: Snapshot) -> str:
    """Nodes, jobs and the pods of jobs."""
    return "\n\n".join(
        "\n".join(command_line.table(rows, indent=0))
        for rows in (_nodes(snapshot), _jobs(snapshot), _pods(snapshot), _schedules(snapshot))
        if rows
    )


def together(findings: list[Finding]) -> Iterator[Finding]:
    """Findings with one cause and one way out as one, which names the first of them."""
    same: dict[tuple[str, str], list[str]] = {}
    for each in findings:
        same.setdefault((each.why, each.do), []).append(each.what)
    for (why, do), whats in same.items():
        rest = len(whats) - NAMED
        more = [f"and {rest} more, for the same reason:"] if rest > 0 else []
        yield Finding(what="\n  ".join([*whats[:NAMED], *more]), why=why, do=do)


def look(
    stack: str, state: Object, history: History, silence: timedelta, *, live: bool
) -> tuple[Snapshot, list[Finding], list[Finding]]:
    """The cluster of a stack; what in it is not as the last update left it; and the Helm releases that an update
    has left which did not end well. RuntimeError where the stack has no cluster, or it does not answer."""
    with asking(kubeconfig(stack, state)) as kubectl:
        snapshot = snapshot_of(stack, kubectl, logs=True, recent=min(silence, RECENT))
        changed = by_hand.drifted(by_hand.wanted(state), kubectl, stack)
        settled = history.is_settled(state)
        halves = [] if settled else [*helm_releases.unended(stack, kubectl, live=live)]
    schedules = _output(state, "schedules")
    snapshot = replace(
        snapshot,
        entries=_entries(state),
        schedules=schedules,
        stack=stack,
        environment=environment_of(stack) or stack,
        prices=own_prices(stack),
    )
    return snapshot, changed, halves


def _entries(state: Object) -> dict[str, Any]:
    """The stack output `jobs` in a state, and the jobs that an update has made which has not ended yet."""
    return {**made_jobs(state), **_output(state, "jobs")}


def _output(state: Object, name: str) -> dict[str, Any]:
    """An output of the stack in a state; {} where there is none."""
    resources = state["deployment"].get("resources") or []
    outputs = [each.get("outputs") or {} for each in resources if each["type"] == STACK]
    return next((each[name] for each in outputs if each.get(name)), {})


def _nodes(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    if "nodes" in snapshot.unseen:
        yield ("nodes and pools are not shown: a team that the environment lists cannot read them",)
        return
    yield "NODE", "INSTANCE", "ZONE", "GPU", "EFA", "READY"
    for node in snapshot.of("nodes"):
        labels, allocatable = node["metadata"]["labels"], node["status"].get("allocatable", {})
        yield (
            node["metadata"]["name"],
            labels.get("node.kubernetes.io/instance-type", ""),
            labels.get("topology.kubernetes.io/zone", ""),
            allocatable.get(GPU, "0"),
            allocatable.get(EFA, "0"),
            condition_of(node, "Ready").get("status", "Unknown"),
        )


def _jobs(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    of_entries = bool(snapshot.entries)
    yield "JOB", *(["ENTRY"] * of_entries), "KIND", "RUNTIME", "NODES", "STATE", "RESTARTS"
    for job in snapshot.jobs():
        yield (
            f"{job.namespace}/{job.name}",
            *([entry_of_sweep(job.body) or job.entry or "-"] * of_entries),
            job.kind,
            job.runtime,
            str(job.nodes),
            " ".join(filter(None, [job.shown, job.percent])),
            str(job.restarts),
        )
    there = {job.entry for job in snapshot.jobs()} | snapshot.schedules.keys()
    for entry, each in snapshot.entries.items():
        if entry not in there:  # it was stopped, or an update was killed that had ended it
            yield (
                f"{each['namespace']}/{each['name']}",
                entry,
                each["kind"],
                "-",
                "-",
                "no run",
                "-",
            )


def _pods(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    yield "POD", "RANK", "PHASE", "NODE"
    for pod in (pod for job in snapshot.jobs() for pod in job.pods):
        yield (
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}",
            _rank(pod),
            phase(pod),
            pod["spec"].get("nodeName", "-"),
        )


def _schedules(snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Times of the jobs that have a schedule, and the next one of each; nothing without one."""
    rows = [("SCHEDULE", "TIMES", "NEXT RUN")]
    for name, each in sorted(snapshot.schedules.items()):
        found = next_times(each["cron"], each["time_zone"], snapshot.taken_at)
        following = found[0].strftime("%Y-%m-%dT%H:%M:%SZ")
        shown = "none: suspended" if each.get("suspended") else following
        rows.append((f"{each['namespace']}/{name}", f"{each['cron']} {each['time_zone']}", shown))
    return rows if len(rows) > 1 else []


def _rank(pod: Object) -> str:
    """Number of the pod's node; for a PyTorchJob behind the pod's role."""
    labels = pod["metadata"]["labels"]
    numbers = [
        labels[kind.rank_label] for kind in ENTRY_KINDS.values() if kind.rank_label in labels
    ]
    return " ".join(filter(None, [labels.get(ROLE), *(numbers or "-")]))
