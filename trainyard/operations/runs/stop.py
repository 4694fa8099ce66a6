"""`trainyard stop [JOB]`: end one job of a stack, after a question.

The job is deleted on the cluster, with its pods and their logs, and the command returns when the pods
are gone: until then they may write a checkpoint. Its checkpoints stay. The stack file
still has its entry, so the last lines say how it begins again and how it stays away. A job that has ended is left
alone, unless a pod of it still holds a node.

The cluster is the one in the stack's own outputs. The current context of kubectl is not used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from trainyard.catalog.job_kinds import outcome
from trainyard.derive.next_run import Way, next_run
from trainyard.operations.reach.chosen import Chosen, choose
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import Kubectl, Object, kubectl_with
from trainyard.operations.reach.place import jobs_of, reached
from trainyard.operations.reach.snapshot import last_condition
from trainyard.operations.reach.target import forget_command, update_command
from trainyard.operations.recovery.drain import delete, ended, pods_that_go_on
from trainyard.operations.runs.again import CannotCount, is_gone, job_of, sweep_with
from trainyard.plans.jobs import SCHEDULE
from trainyard.settings.job import JobConfig

NOTHING = "No job was stopped."


def main(options: argparse.Namespace) -> int:
    """Return 0 where the job and its pods are gone, or the job had ended before, 1 where they are not or the
    cluster does not answer, 2 where there is no terminal to ask."""
    try:
        with reached(options.stack) as cluster:
            kubectl = kubectl_with(cluster.login, "--request-timeout=150s")
            job = choose(kubectl, cluster.place, cluster.entries, options.job, word="stop")
            if _over(kubectl, job):
                print("\n".join(_nothing_to_stop(job, options.stack, live=options.live)))
                return 0
            if code := _asked(job, yes=options.yes):
                return code
            delete(kubectl, job.kind, job.body)
            still = _uid(job.body) in map(_uid, jobs_of(kubectl, job.kind, cluster.place))
            if still or not ended(kubectl, [job.body]):
                print(f"not stopped: {job}", file=sys.stderr)
                return 1
    except RuntimeError as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1
    print("\n".join(_afterwards(job, options.stack, live=options.live)))
    return 0


def _over(kubectl: Kubectl, job: Chosen) -> bool:
    """True where the job has ended, and none of its pods holds a node."""
    return outcome(job.body) is not None and not pods_that_go_on(kubectl, job.body)


def _nothing_to_stop(job: Chosen, stack: str, *, live: bool) -> list[str]:
    """Lines about a job that has ended, and how it is deleted."""
    alone = not job.entry or _scheduled(job)
    by_hand = f"kubectl -n {job.namespace} delete {job.body['kind'].lower()} {job.name}"
    return [
        _titled(job),
        "nothing to stop: it has ended, and no pod of it runs. It stays with its pods and their logs",
        f"to be without it: {by_hand}" if alone else _afterwards(job, stack, live=live)[-1],
    ]


def _scheduled(job: Chosen) -> bool:
    """True of a run of a schedule."""
    return bool(job.body["metadata"].get("labels", {}).get(SCHEDULE))


def _titled(job: Chosen) -> str:
    """A job with its entry and its state."""
    state = last_condition(job.body)
    since = f" since {state['lastTransitionTime']}" if "lastTransitionTime" in state else ""
    entry = f", jobs.{job.entry} of the stack file" if job.entry else ", in no stack file"
    return f"{job}{entry}: {state['type']}{since}"


def _asked(job: Chosen, *, yes: bool) -> int:
    """Name the job, and ask."""
    print(_titled(job))
    return ask(
        "Stop this job, and delete its pods and their logs? Its checkpoints stay.",
        yes=yes,
        otherwise=NOTHING,
    )


def _beginnings(entry: str, stack: str, up: str) -> Iterator[str]:
    """Lines about the two ways in which the next run can begin."""
    try:
        described = job_of(stack, entry)
    except (CannotCount, FileNotFoundError):  # it is a job of another checkout
        described = None
    after = next_run(described) if isinstance(described, JobConfig) else None
    if after is None:
        yield f"to begin again: trainyard again {entry} --stack {stack}, then {up}"
        return
    place = f"to go on from its checkpoint in {after.goes_on.at}, if it wrote one"
    yield f"{place}: {_steps(after.goes_on, entry, stack, up)}"
    yield f"to begin afresh in {after.afresh.at}: {_steps(after.afresh, entry, stack, up)}"


def _steps(way: Way, entry: str, stack: str, up: str) -> str:
    """The steps that somebody takes, one after the other."""
    written = f"write checkpoints.directory: {way.directory} into jobs.{entry}"
    steps = [
        *([written] if way.directory else []),
        *([f"trainyard again {entry} --stack {stack}"] if way.counts else []),
        up,
    ]
    return ", then ".join(steps)


def _uid(body: Object) -> str:
    return body["metadata"]["uid"]


def _afterwards(job: Chosen, stack: str, *, live: bool) -> list[str]:
    """Lines about how the job begins again, and how it stays away. `live`: on an AWS account."""
    up = update_command(stack, live)
    if not job.entry:
        return ["stopped; no stack file describes it: send it again to begin again"]
    if _scheduled(job):
        return [
            f"stopped; the schedule of {job.entry} in Pulumi.{stack}.yaml starts the next run at its time",
            f"to be without it: write suspend: true under jobs.{job.entry}.schedule, then {up}",
        ]
    if sweep := sweep_with(stack, job.entry):
        return [
            f"stopped; the sweep {sweep} of Pulumi.{stack}.yaml still has it, and {up} starts no run of the"
            " same number",
            f"to begin this run alone again: {forget_command(job.body['kind'], job.entry, stack, live)}, then {up}",
            f"to begin all runs of {sweep} again: trainyard again {sweep} --stack {stack}, then {up}",
            f"to be without it: delete its value from jobs.{sweep}.sweep.over, and all runs with that value, then {up}",
        ]
    if is_gone(stack, job.entry):
        return [f"stopped; Pulumi.{stack}.yaml does not describe it any more: {up} forgets it"]
    return [
        f"stopped; Pulumi.{stack}.yaml still describes it, and {up} starts no run of the same number",
        *_beginnings(job.entry, stack, up),
        f"to be without it: delete jobs.{job.entry} from Pulumi.{stack}.yaml, then {up}",
    ]
