"""The cluster and the namespace in which the jobs of a stack are, from the outputs of the stack. The current
context of kubectl is not used."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.operations.reach.cluster import current_cluster
from trainyard.operations.reach.kubectl import (
    UNSERVED,
    Kubectl,
    Login,
    Object,
    kubectl_with,
    logged_in_to,
)
from trainyard.operations.reach.pods import full_name
from trainyard.operations.reach.pulumi import outputs
from trainyard.operations.reach.served import KIND, served

LOG_LINE = re.compile(r"[EIWF]\d{4} ")


class PlaceError(RuntimeError):
    """Error: the jobs of a stack cannot be reached."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Place of a stack's jobs: cluster and namespace."""

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
    """Where the jobs of a stack are, from its outputs; PlaceError where the outputs do not tell."""
    if not stack_outputs.get("kubeconfig"):
        raise PlaceError(
            f"stack {stack} has no output `kubeconfig`: it has no cluster, or `pulumi up --stack"
            f" {stack}` has never succeeded"
        )
    if "contract" not in stack_outputs and not stack_outputs.get("namespace"):
        raise PlaceError(
            f"stack {stack} has neither the output `contract` of an environment nor the output"
            f" `namespace` of a team: `pulumi up --stack {stack}` writes it"
        )
    kubeconfig = stack_outputs["kubeconfig"]
    text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
    cluster, server = current_cluster(text) or (None, None)
    if not cluster or not server:
        raise PlaceError(f"the output `kubeconfig` of stack {stack} names no cluster")
    return Place(
        stack=stack,
        kubeconfig=text,
        cluster=cluster,
        server=server,
        namespace=None if "contract" in stack_outputs else stack_outputs["namespace"],
    )


def _reach(place: Place, kubectl: Kubectl, to: TextIO | None) -> None:
    """Print which cluster is read; PlaceError where it does not answer."""
    other = _another_context(place)
    print(f"reads jobs in {place}{f'; {other}' if other else ''}", file=to, flush=True)
    try:
        kubectl("get", "--raw=/version")
    except RuntimeError as error:
        # Lines of kubectl's log come before the reason, advice after it.
        lines = [line for line in str(error).splitlines() if not LOG_LINE.match(line)]
        reason = lines[0] if lines else error
        raise PlaceError(
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


def title(job: Object) -> str:
    """Kind, namespace and name."""
    return f"{job['kind']} {full_name(job)}"


def every_job(kubectl: Kubectl, place: Place) -> list[tuple[str, Object]]:
    """Each job there, with its kind as kubectl calls it."""
    return [
        (kind, job) for kind in (KIND, *served(kubectl)) for job in jobs_of(kubectl, kind, place)
    ]


def jobs_of(kubectl: Kubectl, kind: str, place: Place) -> list[Object]:
    """Jobs of a kind; none where the cluster does not serve the kind."""
    try:
        return json.loads(kubectl("get", kind, place.scope, "--output=json"))["items"]
    except RuntimeError as error:
        if UNSERVED in str(error):
            return []
        raise PlaceError(f"cannot list {kind}: {error}") from error


def pods_of(kubectl: Kubectl, job: Object) -> list[Object]:
    """Pods of a job. RuntimeError where the cluster does not answer."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    label = f"--selector={JOB_KINDS[job['kind']].pod_label}={name}"
    found = kubectl("get", "pods", f"--namespace={namespace}", label, "--output=json")
    return json.loads(found)["items"]
