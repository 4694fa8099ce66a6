"""Kinds of jobs that a cluster serves."""

from __future__ import annotations

import json

from trainyard.catalog.job_kinds import JOB_KINDS, resource_of
from trainyard.operations.reach.kubectl import NOT_FOUND, Kubectl

KIND = resource_of("TrainJob")


def served(kubectl: Kubectl) -> tuple[str, ...]:
    """Kinds of jobs that the training-operator runs in the cluster, as kubectl calls them; none without it. Raises
    RuntimeError with kubectl's error."""
    try:
        found = json.loads(kubectl("get", "--raw", f"/apis/{JOB_KINDS['PyTorchJob'].api_version}"))
    except RuntimeError as error:
        if NOT_FOUND in str(error):
            return ()
        raise RuntimeError(f"cannot list kinds of jobs: {error}") from error
    names = {each["name"] for each in found["resources"]}
    every = [resource_of(kind) for kind in JOB_KINDS]
    return tuple(kind for kind in every if kind != KIND and kind.partition(".")[0] in names)
