"""What a stack says about its jobs: the commands to follow, end and repeat each, ready to paste."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.runs import RUN_KINDS
from components.plans import JobPlan


def job_outputs(jobs: Mapping[str, JobPlan]) -> dict[str, dict[str, str]]:
    """Of each job, what it is and the commands for it; kubectl goes by the stack's kubeconfig."""
    return {key: {"kind": job.kind, "namespace": job.namespace, "name": job.name, **_commands(key, job)}
            for key, job in jobs.items()}


def _commands(key: str, job: JobPlan) -> dict[str, str]:
    kubectl, kind = f"kubectl -n {job.namespace}", job.kind.lower()
    run = RUN_KINDS[job.kind]
    own = f"{run.pods}={job.name}"
    return {
        "status": f"{kubectl} get {kind} {job.name} && {kubectl} get pods -o wide -l {own}",
        "logs": f"{kubectl} logs -l {own} --prefix --tail=-1 --max-log-requests={max(job.nodes, 5)}",
        "logs_of_rank_0": f"{kubectl} logs -l {own},{run.rank}=0 --tail=-1 -f",
        "events": f"{kubectl} get events --sort-by=.lastTimestamp | grep {job.name}",
        "describe": f"{kubectl} describe {kind} {job.name}",
        "delete": f"{kubectl} delete {kind} {job.name}",
        "again": f"count jobs.{key}.run up from {job.run.rpartition('-')[2]}, then pulumi up",
    }
