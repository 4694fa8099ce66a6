"""The time limit of a job. It is that of its entry where the Trainer knows one, else that of the PyTorchJob which it
can stay."""

from __future__ import annotations

import math

from trainyard.catalog import versions
from trainyard.catalog.job_kinds import job_kind
from trainyard.manifests.context import ManifestContext
from trainyard.migrate.result import Migration


def keep_time_limit(migration: Migration, context: ManifestContext) -> None:
    """Give the result the time limit of the file. What is no number of seconds has an error."""
    job, release = context.workload, "{}.{}".format(*context.trainer_minor)
    path = job_kind(job.kind).time_limit
    seconds = job.get(*path)
    if type(seconds) is not int or seconds < 1:
        return
    minutes, line = math.ceil(seconds / 60), versions.TRAINER_LINES.get(release)
    if line and line.time_limit:
        migration.entry["time_limit_minutes"] = minutes
        return
    if migration.pytorch_job:
        migration.pytorch_job["time_limit_minutes"] = minutes
    migration.no_counterpart.append(
        f"{job.where(*path)}: {seconds}: Trainer {release} has no time limit; set trainer.version to 2.3.0, or use"
        " pytorch_job, or run `timeout` in the script"
    )
