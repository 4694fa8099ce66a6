"""`trainyard logs [JOB] [--rank RANK] [--follow | --past]`: print the whole logs of a job, each line behind
the name of its pod.

The cluster is the one in the stack's own outputs. The current context of kubectl is not used. What is
kept of pods that are gone: kept_logs.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from trainyard.catalog.job_kinds import ENTRY_KINDS, SUCCEEDED, outcome
from trainyard.catalog.logs.cause import most_told
from trainyard.catalog.logs.first_end import ROLE, ranks
from trainyard.catalog.logs.known_failures import NO_LOG
from trainyard.catalog.logs.noted import noted
from trainyard.operations.reach.chosen import Chosen, choose
from trainyard.operations.reach.kubectl import Kubectl, Object, kubectl_with
from trainyard.operations.reach.place import reached
from trainyard.operations.reach.rank_logs import cause_on
from trainyard.problems import by_option

RANK_LABELS = tuple(kind.rank_label for kind in ENTRY_KINDS.values())
MOST_PODS = 1000
"""Number of pods that can be followed at once; kubectl's own limit is 5."""


def main(options: argparse.Namespace) -> int:
    """Return 0; 1 where kubectl fails, the cluster does not answer or the job has no pod."""
    try:
        if options.past:
            return _print_kept(options)
        with reached(options.stack, to=sys.stderr) as cluster:
            kubectl = kubectl_with(cluster.login, "--request-timeout=30s")
            job = choose(kubectl, cluster.place, cluster.entries, options.job)
            selector = selected(job, _pods(kubectl, job), options.rank)
            command = _command(job, selector, follow=options.follow)
            sys.stdout.flush()
            code = subprocess.run(command, env=cluster.login()).returncode
            _say_why(kubectl, job)
            return min(code, 1)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1


def _say_why(kubectl: Kubectl, job: Chosen) -> None:
    """Print the sentence about a job whose ranks have ended with an error, beside the log."""
    if outcome(job.body) in SUCCEEDED:
        return
    there = cause_on(kubectl, job.namespace, _pods(kubectl, job))
    if cause := most_told(there, noted(job.body)):
        print(f"\nwhy: {cause.sentence}", file=sys.stderr)
        if cause.do:
            print(f"fix: {cause.do}", file=sys.stderr)


def _print_kept(options: argparse.Namespace) -> int:
    from trainyard.operations.runs import kept_logs  # only here: boto3 is slow to load

    if options.follow:
        raise RuntimeError("--past prints what is kept, and does not wait. Fix: leave out --follow")
    return kept_logs.print_job(options.stack, options.job, options.rank)


def _pods(kubectl: Kubectl, job: Chosen) -> list[Object]:
    shown = kubectl(
        *("get", "pods", f"--namespace={job.namespace}", f"--selector={job.selector}"),
        "--output=json",
    )
    return json.loads(shown)["items"]


def selected(job: Chosen, pods: list[Object], rank: int | None) -> str:
    """A selector of all pods of the job, or of those of one node. RuntimeError where there is
    none."""
    if not pods and (cause := noted(job.body)):
        fix = f". Fix: {cause.do}" if cause.do else ""
        raise RuntimeError(
            f"{job} has no pod any more, so there is no log. The update that waited for it read why:"
            f" {cause.sentence}{fix}"
        )
    if not pods:
        raise RuntimeError(
            f"{job} has no pod, so there is no log: it has not started, its runtime deleted the"
            " pods when it failed, or their nodes are gone. `trainyard status` says what the cluster still knows; with"
            f" environment.logs, --past prints the logs of pods that are gone; {NO_LOG}"
        )
    if rank is None:
        return job.selector
    selectors = {node_number(pod, pods): _selector_of_node(job, pod) for pod in pods}
    if rank not in selectors:
        known = by_option("--rank", map(str, sorted(selectors)), "a job")
        raise RuntimeError(f"{job} has no node {rank}. Fix: {known}")
    return selectors[rank]


def node_number(pod: Object, pods: list[Object]) -> int:
    """The number of the pod's node, as trainyard/catalog/logs/first_end.py counts. `pods`: those of its
    job."""
    return next(number for each, number in ranks(pods) if each is pod)


def _selector_of_node(job: Chosen, pod: Object) -> str:
    labels = pod["metadata"]["labels"]
    own = [f"{key}={labels[key]}" for key in (ROLE, *RANK_LABELS) if key in labels]
    return ",".join([job.selector, *own])


def _command(job: Chosen, selector: str, *, follow: bool) -> list[str]:
    """kubectl prints the last 10 lines of each pod unless it is told to print all."""
    return [
        *("kubectl", "logs", f"--namespace={job.namespace}", f"--selector={selector}"),
        *("--all-containers", "--prefix", "--tail=-1", "--ignore-errors"),
        *([f"--max-log-requests={MOST_PODS}", "--follow"] if follow else []),
    ]
