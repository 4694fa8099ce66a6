"""Asks the cluster for objects before an update begins: what a plan does not know, such as which runs are complete
(trainyard/replacing). A preview asks, too."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from components.jobs.wait_for_job import kubectl_of, listed


def can_ask() -> bool:
    """True where this machine has kubectl."""
    return bool(shutil.which("kubectl"))


def shown(kubeconfig: str, kind: str, namespace: str | None) -> Sequence[Any]:
    """Objects of a kind in a namespace, or with None in all; none where nobody answers, where nobody serves the
    kind, or where this machine has no kubectl."""
    if not can_ask():
        return ()
    with kubectl_of(kubeconfig, namespace or "default") as kubectl:
        return listed(kubectl, kind, *(() if namespace else ("--all-namespaces",))) or ()
