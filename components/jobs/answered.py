"""Asks, before an update begins, which runs are complete: a changed run could then end without a step
(trainyard/replacing/new_runs.py). A preview asks, too."""

from __future__ import annotations

import shutil
from collections.abc import Collection

from components.jobs.wait_for_job import kubectl_of, listed
from trainyard.catalog.job_kinds import ENTRY_KINDS, SUCCEEDED, outcome


def complete_runs(kubeconfig: str, namespaces: Collection[str]) -> set[tuple[str, str]]:
    """Namespace and name of each job there, of either kind, that is complete; none where nobody answers, or
    this machine has no kubectl."""
    found: set[tuple[str, str]] = set()
    for namespace in namespaces if shutil.which("kubectl") else ():
        with kubectl_of(kubeconfig, namespace) as kubectl:
            # In one call, a kind that is not served would hide the other.
            jobs = [job for kind in ENTRY_KINDS for job in listed(kubectl, kind.lower()) or ()]
        found |= {(namespace, job["metadata"]["name"]) for job in jobs if outcome(job) in SUCCEEDED}
    return found
