"""`python -m trainyard.operations.recovery.drain STACK`: delete every training job on the cluster of a stack, before the
stack is destroyed.

`pulumi destroy` deletes the jobs of the stack itself. A job that a user has submitted by hand keeps
its runtime (by a finalizer) and its nodes (by pods that must not be disrupted): destroy would wait
half an hour for them, and fail. For a team stack only the jobs in the team's namespace are deleted.

The cluster is the one in the stack's own outputs. The current context of kubectl is not used.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.operations.reach.cluster import current_cluster
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import (
    UNSERVED,
    Kubectl,
    Login,
    Object,
    kubectl_with,
    logged_in_to,
)
from trainyard.operations.reach.pulumi import outputs
from trainyard.operations.reach.snapshot import full_name, last_condition

KIND = "trainjobs.trainer.kubeflow.org"
KINDS = (KIND, "pytorchjobs.kubeflow.org")
LOG_LINE = re.compile(r"[EIWF]\d{4} ")
NOTHING = "No job was deleted."
POLL_SECONDS = 2.0
LOOKS = 2
"""Looks in a row that must find no pod: a controller that has not heard yet of a deletion can make
one."""
PATIENCE_SECONDS = 900.0
"""How long the pods of a deleted job may take to end: a grace period in which they write a
checkpoint."""
PROTECTED = (
    "the cluster of stack {stack} is protected from deletion. To delete it, write deletion_protection:"
    " false under environment.cluster of Pulumi.{stack}.yaml and run `pulumi up --stack {stack}` first"
)


class DrainError(RuntimeError):
    """Why the jobs cannot be listed; no job was deleted."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the jobs of a stack are."""

    stack: str
    kubeconfig: str
    cluster: str
    server: str
    """URL of the API server."""
    namespace: str | None
    """The team's namespace; None for all namespaces."""

    def __str__(self) -> str:
        space = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{space} of cluster {self.cluster}, stack {self.stack}"

    @property
    def scope(self) -> str:
        """The flag of kubectl for the namespace."""
        return f"--namespace={self.namespace}" if self.namespace else "--all-namespaces"


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The cluster of a stack that answers."""

    place: Place
    entries: Mapping[str, Mapping[str, Any]]
    """The output `jobs` of the stack."""
    login: Login
    protected: bool
    """EKS refuses to delete the cluster."""


def main(options: argparse.Namespace) -> int:
    """Delete all jobs and print their names. Return 0 if none remain and no pod of them, 1 if one
    remains or the cluster does not answer, 2 if there is no terminal to ask."""
    try:
        with reached(options.stack) as cluster:
            if cluster.protected:
                raise DrainError(PROTECTED.format(stack=options.stack))
            kubectl = kubectl_with(cluster.login, "--request-timeout=150s")
            return drain(cluster.place, kubectl, yes=options.yes)
    except RuntimeError as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1


@contextmanager
def reached(stack: str, to: TextIO | None = None) -> Iterator[Reached]:
    """The cluster of a stack, which answers. Print which one it is, to standard output by default.
    RuntimeError where the stack has none, or it does not answer."""
    stack_outputs = outputs(stack)
    place = place_of(stack, stack_outputs)
    with logged_in_to(place.kubeconfig) as login:
        _reach(place, kubectl_with(login, "--request-timeout=30s"), to)
        yield Reached(
            place=place,
            entries=stack_outputs.get("jobs") or {},
            login=login,
            protected=bool(stack_outputs.get("deletion_protection")),
        )


def place_of(stack: str, stack_outputs: dict[str, Any]) -> Place:
    """Where the jobs of a stack are, from its outputs; DrainError where the outputs do not tell."""
    if not stack_outputs.get("kubeconfig"):
        raise DrainError(
            f"stack {stack} has no output `kubeconfig`: it has no cluster, or `pulumi up --stack"
            f" {stack}` has never succeeded"
        )
    if "contract" not in stack_outputs and not stack_outputs.get("namespace"):
        raise DrainError(
            f"stack {stack} has neither the output `contract` of an environment nor the output"
            f" `namespace` of a team: `pulumi up --stack {stack}` writes it"
        )
    kubeconfig = stack_outputs["kubeconfig"]
    text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
    cluster, server = current_cluster(text) or (None, None)
    if not cluster or not server:
        raise DrainError(f"the output `kubeconfig` of stack {stack} names no cluster")
    return Place(
        stack=stack,
        kubeconfig=text,
        cluster=cluster,
        server=server,
        namespace=None if "contract" in stack_outputs else stack_outputs["namespace"],
    )


def _reach(place: Place, kubectl: Kubectl, to: TextIO | None) -> None:
    """Print which cluster is read; DrainError where it does not answer."""
    other = _another_context(place)
    print(f"reads jobs in {place}{f'; {other}' if other else ''}", file=to, flush=True)
    try:
        kubectl("get", "--raw=/version")
    except RuntimeError as error:
        # Lines of kubectl's log come before the reason, advice after it.
        lines = [line for line in str(error).splitlines() if not LOG_LINE.match(line)]
        reason = lines[0] if lines else error
        raise DrainError(
            f"cluster {place.cluster} ({place.server}) does not answer: {reason}"
        ) from error


def _another_context(place: Place) -> str:
    """A sentence where the current context of kubectl names another cluster; else empty."""
    try:
        kubeconfig = kubectl_with(lambda: os.environ)("config", "view", "--minify", "--output=json")
    except RuntimeError:
        return ""  # there is no current context
    cluster, server = current_cluster(kubeconfig) or ("", "")
    if not server or server == place.server:
        return ""
    return f"the current context names cluster {cluster} ({server}), which does not change"


def drain(place: Place, kubectl: Kubectl, *, yes: bool) -> int:
    """List the jobs, ask, and delete them; the exit code. RuntimeError before a job is deleted."""
    jobs = [(kind, job) for kind in KINDS for job in jobs_of(kubectl, kind, place)]
    if not jobs:
        print(f"no TrainJob and no PyTorchJob in {place}: nothing to delete")
        return 0
    for _, job in jobs:
        print(f"{title(job)}, {last_condition(job)['type']}")
    jobs_to_delete = "this job" if len(jobs) == 1 else f"these {len(jobs)} jobs"
    if code := ask(f"Delete {jobs_to_delete}?", yes=yes, otherwise=NOTHING):
        return code
    for kind, job in jobs:
        delete(kubectl, kind, job)
    remaining = max([_remaining(kubectl, kind, place) for kind in KINDS])
    return remaining or int(not ended(kubectl, [job for _, job in jobs]))


def title(job: Object) -> str:
    """Kind, namespace and name."""
    return f"{job['kind']} {full_name(job)}"


def jobs_of(kubectl: Kubectl, kind: str, place: Place) -> list[Object]:
    """Jobs of a kind; none where the cluster does not serve the kind."""
    try:
        return json.loads(kubectl("get", kind, place.scope, "--output=json"))["items"]
    except RuntimeError as error:
        if UNSERVED in str(error):
            return []
        raise DrainError(f"cannot list {kind}: {error}") from error


def delete(kubectl: Kubectl, kind: str, job: Object) -> None:
    """Delete a job and wait until it is gone, or print why it could not be deleted. Its pods may still
    end. In the foreground the Trainer would make its JobSet again: trainyard/catalog/job_kinds.py."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    print(f"deletes {title(job)}", flush=True)
    try:
        kubectl(
            *("delete", kind, name, f"--namespace={namespace}"),
            *("--cascade=background", "--wait", "--timeout=120s"),
        )
    except RuntimeError as error:
        print(f"could not delete {title(job)}: {error}", flush=True)


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
                print(f"waits for the end of {left}", flush=True)
            said = left
            if gone < LOOKS:
                time.sleep(POLL_SECONDS)
    except RuntimeError as error:
        print(f"cannot list the pods of what was deleted: {error}", flush=True)
        return False
    return True


def _pods(kubectl: Kubectl, job: Object) -> list[str]:
    """Pods of a job. RuntimeError where the cluster does not answer."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    label = f"--selector={JOB_KINDS[job['kind']].pod_label}={name}"
    found = json.loads(kubectl("get", "pods", f"--namespace={namespace}", label, "--output=json"))
    return [f"pod {namespace}/{pod['metadata']['name']}" for pod in found["items"]]


def _remaining(kubectl: Kubectl, kind: str, place: Place) -> int:
    """Return 1 where jobs of the kind remain, or cannot be listed, and print that."""
    try:
        jobs = ", ".join(title(job) for job in jobs_of(kubectl, kind, place))
    except DrainError as error:
        jobs = str(error)
    if jobs:
        print(f"not deleted: {jobs}", flush=True)
    return 1 if jobs else 0
