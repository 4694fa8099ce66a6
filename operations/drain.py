"""`python -m operations.drain STACK`: end every training job on the cluster of a stack, before the
stack is destroyed.

`pulumi destroy` ends the jobs of the stack itself. A job that somebody sent by hand keeps its
runtime (by a finalizer) and its nodes (by pods that must not be disrupted): destroy would wait half
an hour for each of them, and fail. Of a team stack only the jobs in the team's namespace end.

The cluster is the one in the stack's own outputs. The current context of kubectl is not used.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from typing import Any

import yaml

import command_line
from operations.consent import ask
from operations.kubectl import UNSERVED, Kubectl, Object, kubectl_with, logged_in_to
from operations.pulumi import outputs
from operations.snapshot import full_name, last_condition

KIND = "trainjobs.trainer.kubeflow.org"
KINDS = (KIND, "pytorchjobs.kubeflow.org")
LOG_LINE = re.compile(r"[EIWF]\d{4} ")
NOTHING = "Nothing was ended."


class DrainError(RuntimeError):
    """Why nobody can say what is to end; nothing was ended."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the jobs of a stack are."""

    stack: str
    kubeconfig: str
    cluster: str
    server: str
    """URL of the API server."""
    namespace: str | None
    """The team's; None for all namespaces."""

    def __str__(self) -> str:
        space = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{space} of cluster {self.cluster}, stack {self.stack}"

    @property
    def scope(self) -> str:
        """As kubectl is told it."""
        return f"--namespace={self.namespace}" if self.namespace else "--all-namespaces"


def main(arguments: list[str]) -> int:
    """0 where no job is left, 1 where one is left or the cluster cannot be asked, 2 where nobody
    can be asked."""
    parser = command_line.parser(
        "operations.drain", "List the training jobs on the cluster of a stack, ask, and end them."
    )
    parser.add_argument(
        "stack", metavar="STACK", help="the Pulumi stack whose outputs name the cluster"
    )
    parser.add_argument(
        "--yes", action="store_true", help="end the jobs without a question, for programs"
    )
    options = parser.parse_args(arguments)
    try:
        place = place_of(options.stack, outputs(options.stack))
        with logged_in_to(place.kubeconfig) as login:
            _reach(place, kubectl_with(login, "--request-timeout=30s"))
            return drain(place, kubectl_with(login, "--request-timeout=150s"), yes=options.yes)
    except RuntimeError as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1


def place_of(stack: str, given: dict[str, Any]) -> Place:
    """Where the outputs of a stack say that its jobs are; DrainError where they do not say it."""
    if not given.get("kubeconfig"):
        raise DrainError(
            f"stack {stack} has no output `kubeconfig`: it has no cluster, or its first"
            f" `pulumi up --stack {stack}` never came to its end"
        )
    if "contract" not in given and not given.get("namespace"):
        raise DrainError(
            f"stack {stack} has neither the output `contract` of an environment nor the output"
            f" `namespace` of a team; `pulumi up --stack {stack}` writes it"
        )
    kubeconfig = given["kubeconfig"]
    text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
    cluster, server = _current(text) or (None, None)
    if not cluster or not server:
        raise DrainError(f"the output `kubeconfig` of stack {stack} names no cluster")
    return Place(
        stack=stack,
        kubeconfig=text,
        cluster=cluster,
        server=server,
        namespace=None if "contract" in given else given["namespace"],
    )


def _current(kubeconfig: str) -> tuple[str, str] | None:
    """Name and server of the current context's cluster; None where there is none."""
    try:
        config = yaml.safe_load(kubeconfig)
        contexts = {each["name"]: each["context"] for each in config["contexts"]}
        clusters = {each["name"]: each["cluster"] for each in config["clusters"]}
        name = contexts[config["current-context"]]["cluster"]
        return name, clusters[name]["server"]
    except (yaml.YAMLError, KeyError, TypeError):
        return None


def _reach(place: Place, kubectl: Kubectl) -> None:
    """Say which cluster is asked; DrainError where it does not answer."""
    other = _another_context(place)
    print(f"asks for jobs in {place}{f'; {other}' if other else ''}", flush=True)
    try:
        kubectl("get", "--raw=/version")
    except RuntimeError as error:
        # Lines of kubectl's log come before the reason, advice after it.
        said = [line for line in str(error).splitlines() if not LOG_LINE.match(line)]
        raise DrainError(
            f"cluster {place.cluster} ({place.server}) does not answer: {said[0] if said else error}"
        ) from error


def _another_context(place: Place) -> str:
    """What is said where the current context of kubectl is of another cluster."""
    try:
        shown = kubectl_with(lambda: os.environ)("config", "view", "--minify", "--output=json")
    except RuntimeError:
        return ""  # there is no current context
    cluster, server = _current(shown) or ("", "")
    if not server or server == place.server:
        return ""
    return f"the current context is of cluster {cluster} ({server}), which is not touched"


def drain(place: Place, kubectl: Kubectl, *, yes: bool) -> int:
    """List the jobs, ask, and end them; the exit code. RuntimeError before anything has ended."""
    jobs = [(kind, job) for kind in KINDS for job in _jobs(kubectl, kind, place)]
    if not jobs:
        print(f"no TrainJob and no PyTorchJob in {place}: nothing to end")
        return 0
    for _, job in jobs:
        print(f"{_title(job)}, {last_condition(job)['type']}")
    which = "this job" if len(jobs) == 1 else f"these {len(jobs)} jobs"
    if code := ask(f"End {which}?", yes=yes, otherwise=NOTHING):
        return code
    for kind, job in jobs:
        _end(kubectl, kind, job)
    return max([_left(kubectl, kind, place) for kind in KINDS])


def _title(job: Object) -> str:
    return f"{job['kind']} {full_name(job)}"


def _jobs(kubectl: Kubectl, kind: str, place: Place) -> list[Object]:
    """None where the cluster does not know the kind."""
    try:
        return json.loads(kubectl("get", kind, place.scope, "--output=json"))["items"]
    except RuntimeError as error:
        if UNSERVED in str(error):
            return []
        raise DrainError(f"nobody knows which {kind} there are: {error}") from error


def _end(kubectl: Kubectl, kind: str, job: Object) -> None:
    space, name = job["metadata"]["namespace"], job["metadata"]["name"]
    print(f"ends {_title(job)}", flush=True)
    try:
        kubectl("delete", kind, name, f"--namespace={space}", "--wait", "--timeout=120s")
    except RuntimeError as error:
        print(f"could not end {_title(job)}: {error}", flush=True)


def _left(kubectl: Kubectl, kind: str, place: Place) -> int:
    """1 where jobs of the kind are left, or nobody knows, with a line that says so."""
    try:
        left = ", ".join(_title(job) for job in _jobs(kubectl, kind, place))
    except DrainError as error:
        left = str(error)
    if left:
        print(f"still there: {left}", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    command_line.run(main)
