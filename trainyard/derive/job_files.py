"""The ConfigMap that the files of a job from this checkout become. What is refused of them:
trainyard/rules/job_files.py."""

from __future__ import annotations

from pathlib import Path

from trainyard.plans.identity import digest
from trainyard.plans.jobs import ConfigMapPlan
from trainyard.settings.job import JobConfig

CONFIG_MAP_BYTES = 1 << 20
"""Bytes that the API server takes as the data of one ConfigMap (kubernetes core validation,
MaxSecretSize)."""


def config_map(name: str, job: JobConfig, folder: Path) -> ConfigMapPlan | None:
    """Called by its content: a changed script is another run, and a running one keeps the script it
    began with."""
    if job.files is None:
        return None
    paths = {Path(source).name: source for source in job.files.sources}
    data = {each: (folder / source).read_text("utf-8") for each, source in paths.items()}
    return ConfigMapPlan(name=f"{name}-files-{digest(data)[:8]}", data=data, paths=paths)
