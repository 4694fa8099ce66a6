"""When a preview knows the spec of an object whose kind a Helm release brings."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pulumi
import pytest

from components.base.chart import judged_by
from tests.support.recording import CHECKOUT, WORKLOADS, Graph, deploy
from tests.support.stackfile import ENVIRONMENT, at

RUNTIME = "ClusterTrainingRuntime torch-distributed"
CRDS = "Release kubeflow-trainer-crds"
FILE = WORKLOADS / "valid" / "trainjob-own-runtime-beside.yaml"


@pytest.mark.parametrize(
    ("answered", "known"),
    [
        ({"id", "status"}, True),
        ({"id"}, False),
        (set(), True),
    ],
    ids=["unchanged", "changed", "made"],
)
def test_a_preview_does_not_know_a_spec_while_it_changes_its_crds(
    answered: set[str], known: bool
) -> None:
    """`answered`: outputs of the release that the engine knows."""

    def output(name: str) -> pulumi.Output[Any]:
        return pulumi.Output(set(), _now(name), _now(name in answered))

    async def asked() -> tuple[bool, Any]:
        spec = judged_by(
            cast(Any, _Release(output("id"), output("status"))), {"mlPolicy": {"torch": {}}}
        )
        return await spec.is_known(), await spec.future()

    is_known, spec = asyncio.run(asked())
    assert is_known is known
    assert spec == {"mlPolicy": {"torch": {}}}


@dataclass(frozen=True)
class _Release:
    id: pulumi.Output[Any]
    status: pulumi.Output[Any]


async def _now(value: Any) -> Any:
    return value


def test_runtimes_and_train_jobs_are_judged_by_the_crds_of_the_trainer(dev: Graph) -> None:
    for label in (RUNTIME, "TrainJob t5-large"):
        told = dev[label].options.propertyDependencies["spec"].urns
        assert [*told] == [dev[CRDS].urn]


def test_a_runtime_that_a_job_file_brings_is_judged_by_them_too(tmp_path: Path) -> None:
    text = FILE.read_text().replace(", namespace: a", "")
    (tmp_path / "job.yaml").write_text(text)
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    job = {"manifest": "job.yaml", "pool": "g6e", "claims": {"fsx": "scratch"}}
    theirs = at(f"{ENVIRONMENT}.jobs", {"theirs": job | {"privileged_pods": True}})
    graph = deploy("dev", theirs, folder=tmp_path)
    [brought] = graph.of("TrainingRuntime")
    assert [*brought.options.propertyDependencies["spec"].urns] == [graph[CRDS].urn]


def test_the_first_preview_shows_every_spec(dev: Graph) -> None:
    first = deploy("dev", preview=True)
    for label in (RUNTIME, "TrainJob t5-large"):
        assert first[label].inputs["spec"] == dev[label].inputs["spec"]
