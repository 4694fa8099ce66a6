"""Waits, before a run begins, until nothing is left of the run before it under the same name, and until the
quota of its namespace counts jobs of its kind (counted.py).

Deletion of a job does not wait for its pods: they may still write a checkpoint, and hold their nodes.
Beside them new pods would read the checkpoint half written, and Karpenter would launch nodes for
them. The Trainer takes a JobSet of the run before for the new run's, with its end (2.1.0 and 2.3.0,
jobset.go, Status): a run that follows one that has ended would never train.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from components.jobs.counted import until_counted
from components.jobs.wait_for_job import Kubectl, answer, kubectl_of
from trainyard.catalog.job_kinds import JOB_KINDS

MINUTES = 20.0
"""Minutes that it waits: longer than a node that is dead stays, docs/heal.md."""
POLL_SECONDS = 1.0
LOOKS = 2
"""Looks in a row that must find nothing. The Trainer can make a JobSet again some milliseconds after its
TrainJob is gone, and the API server's admission policies hear of a deleted pod a little later than
kubectl."""
UNANSWERED = 5
"""Looks in a row without an answer after which the run begins all the same."""

POD_LABELS = (*dict.fromkeys(it.pod_label for it in JOB_KINDS.values()),)
_THREADS = ThreadPoolExecutor(32, thread_name_prefix="run-before")
"""Threads for these waits alone: runs that `up` waits for can hold all threads of the loop for days."""


class StillThere(RuntimeError):
    """Something of the run before is still there; the message names it."""


async def gone(
    kubeconfig: str, kind: str, namespace: str, name: str, *, say: Callable[[str], object]
) -> None:
    """`until_gone` in a thread: other resources go on meanwhile."""
    look = partial(until_gone, kubeconfig, kind, namespace, name, say=say)
    await asyncio.get_running_loop().run_in_executor(_THREADS, look)


def until_gone(
    kubeconfig: str, kind: str, namespace: str, name: str, *, say: Callable[[str], object]
) -> None:
    """Return when nothing is left of a job of this kind and name, and the API server would take another one.
    `say` is told what it waits for.

    Returns at once where this machine has no kubectl: then the cluster's admission policy alone keeps
    runs apart (trainyard/objects/jobs/one_run.py). Raises StillThere after MINUTES.
    """
    if not shutil.which("kubectl"):
        return
    deadline, gone, unanswered, said = time.monotonic() + MINUTES * 60, 0, 0, ""
    with kubectl_of(kubeconfig, namespace) as kubectl:
        while gone < LOOKS and unanswered < UNANSWERED:
            left = _left(kubectl, kind, name)
            unanswered = unanswered + 1 if left is None else 0
            gone = gone + 1 if left == [] else 0
            names = ", ".join(left or [])
            if names and time.monotonic() > deadline:
                raise StillThere(_still(kind, namespace, name, names))
            if names and names != said:
                say(f"waits for the end of the run before it: {names}")
                said = names
            if gone < LOOKS:
                time.sleep(POLL_SECONDS)
        until_counted(kubectl, kind, say=say)


def _still(kind: str, namespace: str, name: str, left: str) -> str:
    return (
        f"{kind} {namespace}/{name} cannot begin: of the run before it there is still {left} after"
        f" {MINUTES:g} minutes. Fix: if the node of a pod is dead, run `kubectl delete pod --force"
        f" --namespace {namespace} <pod>`; then run `pulumi up` again"
    )


def _left(kubectl: Kubectl, kind: str, name: str) -> list[str] | None:
    """Objects of a run that are left, as kubectl names them; None where the API server does not
    answer. The run before can be of another kind: Jobs and pods of all kinds count.

    Each object makes the next one of JobSet, Job and pod, and can be gone before that one is there. So
    they are asked for in this order: in another one a run slips from what was asked to what was not.
    """
    calls = [
        (resource, f"--field-selector=metadata.name={name}") for resource in JOB_KINDS[kind].whole
    ]
    calls += [("jobs.batch,pods", f"--selector={label}={name}") for label in POD_LABELS]
    found: list[str] = []
    for words in calls:
        shown = answer(*kubectl, "get", *words, "--output=json")
        if not shown:
            return None
        found += [
            f"{each['kind']} {each['metadata']['name']}" for each in json.loads(shown)["items"]
        ]
    return found
