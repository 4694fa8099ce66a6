"""Logs that outlive their pods: what CloudWatch Logs keeps of a job, where the environment has `logs`.

It asks AWS alone, as the stack itself does: the pods, the job and the cluster may be gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainyard.objects.metrics.metrics import POD_NAMES
from trainyard.objects.programs.pod_logs import PREFIX, stream
from trainyard.operations.reach.pulumi import deployment, outputs
from trainyard.operations.reach.stack_account import session_of
from trainyard.problems import by_option


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The log of one container."""

    name: str
    """Name of its stream."""
    namespace: str
    run: str
    """Name of its job."""
    role: str
    """node or launcher of a TrainJob; master or worker of a PyTorchJob."""
    number: int
    pod: str
    container: str
    since: int
    """First line, in milliseconds since 1970."""

    @property
    def job(self) -> str:
        return f"{self.namespace}/{self.run}"


def print_job(stack: str, job: str | None, rank: int | None) -> int:
    """Print the kept logs of a job, the pod that began first first. Return 1 where there are none.
    RuntimeError where the stack keeps none, or AWS does not answer. `job`: an entry of the stack
    file, a name, or namespace/name."""
    told = outputs(stack)
    if not (group := told.get("log_group")):
        raise RuntimeError(
            f"stack {stack} keeps no logs: a log goes with its pod. Fix: write logs: {{}} into its"
            " environment; for a stack of a team, name the stack of its environment"
        )
    logs: Any = session_of(deployment(stack)).client("logs")
    named = (told.get("jobs") or {}).get(job) or {}
    namespace, _, name = (job or "").rpartition("/")
    namespace, name = named.get("namespace", namespace), named.get("name", name)
    try:
        found = list(_kept(logs, group, stream(namespace, name) if namespace else PREFIX))
        for each in _of_node(_of_job(found, namespace, name), rank):
            for line in _lines(logs, group, each.name):
                print(f"[pod/{each.pod}/{each.container}] {line}")
    except (BotoCoreError, ClientError) as error:
        raise RuntimeError(f"log group {group}: {error}") from error
    return 0


def _kept(logs: Any, group: str, prefix: str) -> Iterator[Kept]:
    """All logs of pods of jobs whose streams begin so."""
    pages = logs.get_paginator("describe_log_streams").paginate(
        logGroupName=group, logStreamNamePrefix=prefix
    )
    for page in pages:
        for each in page["logStreams"]:
            words = each["logStreamName"].removeprefix(PREFIX).split(".", 2)
            matches = (re.fullmatch(name, words[1]) for name in POD_NAMES) if words[2:] else ()
            if match := next(filter(None, matches), None):
                yield Kept(
                    name=each["logStreamName"],
                    namespace=words[0],
                    run=match[1],
                    role=match[2],
                    number=int(match[3]),
                    pod=words[1],
                    container=words[2],
                    since=each.get("firstEventTimestamp", 0),
                )


def _of_job(found: list[Kept], namespace: str, name: str) -> list[Kept]:
    """Logs of one job, which may be the only one. RuntimeError where it is not one."""
    named = [each for each in found if name in ("", each.run) and namespace in ("", each.namespace)]
    jobs = {each.job for each in named}
    if len(jobs) == 1:
        return named
    which = f"of {name} " if name else ""
    if not found:
        raise RuntimeError(
            f"no log {which}is kept: no pod has logged since the setting `logs`, or its days are over"
        )
    kept = by_option("--job", sorted({each.job for each in found}), "a job")
    raise RuntimeError(f"logs {which}are kept of {len(jobs)} jobs. Fix: {kept}")


def _of_node(found: list[Kept], rank: int | None) -> list[Kept]:
    """Logs of one node of the job, counted as `trainyard logs` counts; all without a number.
    RuntimeError where there is none."""
    masters = any(each.role == "master" for each in found)
    ranks = {each.name: each.number + (masters and each.role == "worker") for each in found}
    chosen = [each for each in found if rank in (None, ranks[each.name])]
    if not chosen:
        known = by_option("--rank", map(str, sorted({*ranks.values()})), "a job")
        raise RuntimeError(f"{found[0].job} has no node {rank}. Fix: {known}")
    return sorted(chosen, key=lambda each: (each.since, each.name))


def _lines(logs: Any, group: str, name: str) -> Iterator[str]:
    """The text of each line, the oldest first. The token of the last page is its own."""
    asked: dict[str, Any] = {"startFromHead": True}
    while True:
        page = logs.get_log_events(logGroupName=group, logStreamName=name, **asked)
        yield from (event["message"] for event in page["events"])
        if page["nextForwardToken"] == asked.get("nextToken"):
            return
        asked["nextToken"] = page["nextForwardToken"]
