"""Asks, before a run is replaced, whether it is complete: a changed run could then end without a step.

The engine replaces a run when its identity is another one, so the new identity is known only after the cluster
has answered. A program that ends with an error before that replaces nothing. A preview asks, too.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence

import pulumi

from components.jobs.wait_for_job import Kubectl, jobs_named, kubectl_of
from trainyard.catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome
from trainyard.plans.jobs import JobPlan


def answered(
    plans: Mapping[str, JobPlan], kubeconfig: pulumi.Output[str]
) -> dict[str, pulumi.Input[str]]:
    """The identity of each run. Where plans have a question, theirs are refused with all the questions of
    which the run before is complete. Where nobody answers, or this machine has no kubectl, none is."""
    asked = [plan for plan in plans.values() if plan.question]
    known = (
        kubeconfig.apply(lambda config: asyncio.to_thread(_ask, asked, config)) if asked else None
    )
    return {
        key: plan.run
        if known is None or plan.question is None
        else pulumi.Output.unsecret(known.apply(lambda _, run=plan.run: run))
        for key, plan in plans.items()
    }


def _ask(plans: Sequence[JobPlan], kubeconfig: str) -> None:
    """Raises pulumi.RunError with the questions of the plans whose run before is complete."""
    if not shutil.which("kubectl"):
        return
    with kubectl_of(kubeconfig, plans[0].namespace) as kubectl:
        refused = [plan.question or "" for plan in plans if _complete(kubectl, plan.name)]
    if refused:
        raise pulumi.RunError("\n".join(refused))


def _complete(kubectl: Kubectl, name: str) -> bool:
    """True where a job of the name, of either kind, is complete."""
    found = (job for kind in JOB_KINDS for job in jobs_named(kubectl, kind, name) or ())
    return any(outcome(job) in SUCCEEDED for job in found)
