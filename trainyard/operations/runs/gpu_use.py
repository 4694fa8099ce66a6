"""Use of GPUs by runs: the share of their SMs that worked, as the Prometheus of `environment.metrics` has it.

What nvidia-smi calls GPU utilization is 100 % while ranks wait for each other in NCCL, so it says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from trainyard.objects.metrics.metrics import PORT
from trainyard.objects.metrics.queries import SM
from trainyard.operations.reach.kubectl import Kubectl
from trainyard.operations.runs.node_time import Run, uid_of
from trainyard.plans.push_gateway import NAMESPACE

ASK = f"/api/v1/namespaces/{NAMESPACE}/services/prometheus:{PORT}/proxy/api/v1/query?query="
AT_ONCE = 10
"""Runs of one question: an address has at most 8 KiB."""
LAST = 90
"""Number of runs that are asked for, the newest: nine questions. Prometheus forgets the others by default after 15
days."""
LACKS = (
    "The share of SMs at work is known of no run here. It needs environment.metrics while the run goes on, a"
    " history of Prometheus that goes back to it, GPUs, and the right to ask Prometheus, which a team has not."
)


def sms_at_work(kubectl: Kubectl, runs: Iterable[Run]) -> dict[str, float]:
    """Uid of a run's job → the mean share of its SMs that worked, 0 to 1, from its first node to its end. Runs
    that Prometheus does not know are left out, and all where it cannot be asked."""
    began = sorted((run for run in runs if run.began), key=lambda run: run.ended)[-LAST:]
    found: dict[str, float] = {}
    for first in range(0, len(began), AT_ONCE):
        try:
            answer = json.loads(
                kubectl("get", "--raw", ASK + quote(promql(began[first:][:AT_ONCE])))
            )
            results = answer["data"]["result"]
        except (RuntimeError, ValueError, KeyError):
            return found
        found |= {each["metric"]["uid"]: float(each["value"][1]) for each in results}
    return found


def promql(runs: Sequence[Run]) -> str:
    """One query for several runs, each with its own time."""
    return " or ".join(map(_of_run, runs))


def _of_run(run: Run) -> str:
    """The mean of all samples. One of the means of series would give a pod that lived for minutes the weight of one
    that trained for days."""
    assert run.began
    seconds = max(1, round((run.ended - run.began).total_seconds()))
    labels = f'namespace="{run.job.namespace}",run="{run.job.name}"'
    over = f"{SM}{{{labels}}}[{seconds}s] @ {run.ended.timestamp():.0f}"
    mean = f"sum(sum_over_time({over}))/sum(count_over_time({over}))"
    return f'label_replace({mean}, "uid", "{uid_of(run)}", "", "")'
