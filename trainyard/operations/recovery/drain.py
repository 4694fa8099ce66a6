"""`trainyard drain STACK`: delete the training jobs on the cluster of a stack, before the stack is destroyed.

`pulumi destroy` deletes the jobs of the stack itself. A job that a user has submitted by hand keeps
its runtime (by a finalizer) and its nodes (by pods that must not be disrupted): destroy would wait
half an hour for them, and fail. For a team stack only the jobs in the team's namespace are deleted, and in a
cluster of somebody else only what the destroy deletes or would wait for (own_jobs.py).

The cluster is the one in the stack's own outputs. The current context of kubectl is not used.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from trainyard.catalog.logs.waiting import goes_on
from trainyard.operations.reach.cluster import kubeconfig_in
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import (
    Kubectl,
    Object,
    kubectl_with,
)
from trainyard.operations.reach.place import Place, every_job, pods_of, reached, title
from trainyard.operations.reach.pulumi import deployment
from trainyard.operations.reach.snapshot import last_condition
from trainyard.operations.reach.target import update_command
from trainyard.operations.recovery.kept import before, exporting, forgotten
from trainyard.operations.recovery.own_jobs import MadeByStack, made_in, split
from trainyard.operations.recovery.reservations import reservations

NOTHING = "No job was deleted."
LEFT_ALONE = "left alone, in no namespace of the stack and on none of its pools"
POLL_SECONDS = 2.0
LOOKS = 2
"""Looks in a row that must find no pod: a controller that has not heard yet of a deletion can make
one."""
PATIENCE_SECONDS = 900.0
"""Seconds that the pods of a deleted job may take to end: a grace period in which they write a
checkpoint."""
PROTECTED = (
    "the cluster of stack {stack} is protected from deletion. To delete it, write deletion_protection:"
    " false under environment.cluster of Pulumi.{stack}.yaml and run `{up}` first"
)


class DrainError(RuntimeError):
    """Error: the jobs cannot be listed. No job was deleted."""


def main(options: argparse.Namespace) -> int:
    """Delete all jobs and print their names. Return 0 if none remain and no pod of them, 1 if one
    remains or the cluster does not answer, 2 if there is no terminal to ask."""
    try:
        state = deployment(options.stack)
        resources = state["deployment"].get("resources") or []
        if resources and kubeconfig_in(state) is None:
            print(f"stack {options.stack} has no cluster: no job to delete")
            return 0
        with reached(options.stack) as cluster:
            if cluster.protected:
                raise DrainError(
                    PROTECTED.format(
                        stack=options.stack, up=update_command(options.stack, options.live)
                    )
                )
            kubectl = kubectl_with(cluster.login, "--request-timeout=150s")
            code = drain(cluster.place, kubectl, made_in(state), yes=options.yes)
    except RuntimeError as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1
    kept = before(resources, options.stack, up=update_command(options.stack, options.live))
    lost = (*exporting(resources), *forgotten(resources, options.stack))
    for line in (*lost, *kept, *reservations(options.stack)):
        print(line)
    return code


def drain(place: Place, kubectl: Kubectl, made: MadeByStack | None, *, yes: bool) -> int:
    """List the jobs, ask, and delete them; the exit code. `made`: what the stack has in a cluster of somebody
    else. RuntimeError before a job is deleted."""
    made = None if place.namespace else made
    jobs, others = split(kubectl, every_job(kubectl, place), made)
    for _, job in others:
        print(f"{LEFT_ALONE}: {title(job)}")
    if not jobs:
        whose = f" of stack {place.stack}" if others else ""
        print(f"no training job{whose} in {place}: nothing to delete")
        return 0
    for _, job in jobs:
        print(f"{title(job)}, {last_condition(job)['type']}")
    jobs_to_delete = "this job" if len(jobs) == 1 else f"these {len(jobs)} jobs"
    if code := ask(f"Delete {jobs_to_delete}?", yes=yes, otherwise=NOTHING):
        return code
    for kind, job in jobs:
        delete(kubectl, kind, job)
    return _remaining(kubectl, place, made) or int(not ended(kubectl, [job for _, job in jobs]))


def delete(kubectl: Kubectl, kind: str, job: Object) -> None:
    """Delete a job and wait until it is gone, or print why it could not be deleted. Its pods may still
    end."""
    print(f"deletes {title(job)}", flush=True)
    try:
        delete_once(kubectl, kind, job)
    except RuntimeError as error:
        print(f"could not delete {title(job)}: {error}", flush=True)


def delete_once(kubectl: Kubectl, kind: str, job: Object, *flags: str) -> None:
    """Delete a job and wait until it is gone; RuntimeError where it is not. In the foreground the Trainer would make
    its JobSet again: trainyard/catalog/job_kinds.py."""
    kubectl(
        *("delete", kind, job["metadata"]["name"], f"--namespace={job['metadata']['namespace']}"),
        *("--cascade=background", "--wait", "--timeout=120s", *flags),
    )


def ended(kubectl: Kubectl, jobs: Iterable[Object]) -> bool:
    """Wait until the pods of deleted jobs are gone, and print which ones are waited for. False, with the
    reason printed, where some are left after PATIENCE_SECONDS or the cluster does not answer."""
    deadline, said, gone, jobs = time.monotonic() + PATIENCE_SECONDS, "", 0, [*jobs]
    try:
        while gone < LOOKS:
            left = ", ".join(pod for job in jobs for pod in _pods(kubectl, job))
            gone = 0 if left else gone + 1
            if left and time.monotonic() > deadline:
                print(f"not ended after {PATIENCE_SECONDS / 60:g} minutes: {left}", flush=True)
                return False
            if left and left != said:
                print(f"waits until these are gone, which go after their jobs: {left}", flush=True)
            said = left
            if gone < LOOKS:
                time.sleep(POLL_SECONDS)
    except RuntimeError as error:
        print(f"cannot list the pods of what was deleted: {error}", flush=True)
        return False
    return True


def pods_that_go_on(kubectl: Kubectl, job: Object) -> list[Object]:
    """Pods of a job that hold a node, or wait for one. RuntimeError where the cluster does not answer."""
    return [pod for pod in pods_of(kubectl, job) if goes_on(pod)]


def _pods(kubectl: Kubectl, job: Object) -> list[str]:
    """Pods of a job with their phase: those of a job that is complete are there until it is deleted, and
    hold its claims. RuntimeError where the cluster does not answer."""
    return [
        f"pod {job['metadata']['namespace']}/{pod['metadata']['name']} ({_phase(pod)})"
        for pod in pods_of(kubectl, job)
    ]


def _phase(pod: Object) -> str:
    return pod.get("status", {}).get("phase", "Unknown")


def _remaining(kubectl: Kubectl, place: Place, made: MadeByStack | None) -> int:
    """Return 1 where jobs remain, or cannot be listed, and print that."""
    try:
        own, _ = split(kubectl, every_job(kubectl, place), made)
        jobs = ", ".join(title(job) for _, job in own)
    except RuntimeError as error:
        jobs = str(error)
    if jobs:
        print(f"not deleted: {jobs}", flush=True)
    return 1 if jobs else 0
