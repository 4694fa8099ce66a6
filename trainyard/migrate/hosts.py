"""Hosts of training-operator v1, which makes a Service of each pod: `<job>-master-0`. Trainer v2 makes none of these
names; its first pod is `<job>-node-0-0.<job>` (kubeflow/trainer v2.1.0, pkg/runtime/framework/plugins/torch)."""

from __future__ import annotations

import re

from trainyard.manifests.document import Workload

VARIABLE = "PET_MASTER_ADDR"
"""Variable with the first pod's host, of either controller."""
WHY = "since Trainer v2 makes no host of the other name"


def meeting_of_script(job: Workload, text: str) -> tuple[str, list[str]]:
    """A script that meets at the Trainer's first pod, and the changes. bash replaces no variable in single quotes or
    in a heredoc; there Kubernetes does."""
    made, changes, start = "", list[str](), 0
    for found in _first_pods(job).finditer(text):
        before = text[: found.start()]
        is_literal = "<<" in before or before.count("'") % 2
        host = f"$({VARIABLE})" if is_literal else f"${{{VARIABLE}}}"
        made += text[start : found.start()] + host
        start = found.end()
        changes.append(f"script: {found[0]} is now {host}, {WHY}")
    return made + text[start:], [*dict.fromkeys(changes)]


def meeting_of_variable(job: Workload, entry: str, name: str, value: str) -> tuple[str, list[str]]:
    """The value of a variable with the Trainer's first pod, and the changes. The Trainer sets its variables behind
    those of the job, so Kubernetes replaces none of them here. `entry`: its name."""
    host = f"{entry}-node-0-0.{entry}"
    hosts = dict.fromkeys(found[0] for found in _first_pods(job).finditer(value))
    return (
        _first_pods(job).sub(host, value),
        [f"env.{name}: {each} is now {host}, {WHY}; a PyTorchJob keeps {each}" for each in hosts],
    )


def _first_pods(job: Workload) -> re.Pattern[str]:
    """The name of a job's first pod by the training-operator, alone or in its namespace; never a part of a path."""
    if not job.replicas or not job.name:
        return re.compile(r"(?!)")
    namespace = re.escape(str(job.get("metadata", "namespace") or "default"))
    domain = rf"(?:\.{namespace}(?![\w.-])|\.[a-z0-9-]+\.svc(?:\.[a-z0-9.-]+)?)?"
    return re.compile(
        rf"(?:(?<![\w./-])|(?<=://)){re.escape(job.name)}-(?:master|worker)-0{domain}(?![\w./-])"
    )
