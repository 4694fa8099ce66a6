"""Controllers that an update moves to another release, and what that does to jobs that are there."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.plan import EnvironmentPlan
from trainyard.plans.controllers import RELEASE
from trainyard.problems import InputWarning
from trainyard.replacing.deployed import Deployed

TRAINER = "kubeflow-trainer"
TYPES = frozenset({RELEASE})
"""Types of resources that the rules look at."""


def moving_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """A Trainer whose TrainJobs have another field for their pods, where queues start and stop TrainJobs."""
    was, to = deployed.output(RELEASE, TRAINER, "version"), plan.trainer.version
    before, after = TRAINER_RELEASES.get(was), TRAINER_RELEASES[to]
    if plan.queues is None or before is None or before.pod_changes == after.pod_changes:
        return
    yield InputWarning(
        path="environment.trainer.version",
        text=(
            f"this update moves the Trainer from {was} to {to}, whose TrainJobs have no {before.pod_changes}:"
            " Kueue can stop TrainJobs of teams that wait or run, and they do not start again. Let them end, or"
            " delete them, before `pulumi up`; `trainyard runs` names them"
        ),
    )
