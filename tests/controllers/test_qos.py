"""What each typed job of the samples asks of its nodes, as a real API server sees it: the QoS class of
its pods, and whether they fit the type of their node."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
import yaml

from rehearsal.kube import Object
from tests.support.cases.trainer import runtime, train_job
from tests.support.recording import WORKLOADS
from tests.support.stackfile import at, environment_plan, planned, team_plan
from tests.support.tool import run_word
from tests.support.trainer_server import TrainerServer
from trainyard.catalog.aws.instances import InstanceType
from trainyard.catalog.quantities import amount
from trainyard.derive.pools import TYPES
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.plan import EnvironmentPlan
from trainyard.plans.jobs import JobPlan

one_release = pytest.mark.parametrize("trainer", ["2.1.0"], indirect=True)
NODES = {
    "cpu": "m7i.8xlarge",
    "gpu": "p5.48xlarge",
    "l40s": "g6e.48xlarge",
    "p5": "p5.48xlarge",
}
"""Pool in a sample → the type of its nodes here. Others are those of the dev file."""
DEV_NODES = {"g6e": "g6e.48xlarge", "h100": "p5.48xlarge"}
BESIDE = {"d-trainjob": "d-training-runtime-demo", "runtime": ""}
"""Beginning of a sample → the file beside it, without which it has no image."""
PLACEHOLDERS = {
    "<your-registry>": "registry.example.com",
    "<GIT_REPO>": "https://github.com/example/repo.git",
}
NO_PLAN = {
    "d-trainjob-with-configmap": "files.sources",
    "pytorchjob-with-its-objects": "got NODE_RANK",
    "trainjob-nfs-and-local-cache": "got /nfs/run",
    "trainjob-script-from-configmap": "files.sources",
}
"""Sample → what its entry lacks as it is printed: a file, or a field without a counterpart."""
NO_ENTRY = ("trainjob-unknown-runtime",)
"""Its image is in a runtime that is in no file."""
BEFORE = ("dataset-initializer", "model-initializer")
"""Pods that fetch data before others train. Upstream's runtimes give them no requests."""
SAMPLES = sorted(path.stem for path in WORKLOADS.glob("**/*.yaml") if "job" in path.stem)


def _entries(sample: str) -> dict[str, Any]:
    """The entries that `trainyard migrate` prints."""
    more = next((file for start, file in BESIDE.items() if sample.startswith(start)), "")
    paths = [next(WORKLOADS.glob(f"**/{name}.yaml")) for name in (sample, more) if name]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run_word("migrate", [str(path) for path in paths])
    text = printed.getvalue()
    for placeholder, value in PLACEHOLDERS.items():
        text = text.replace(placeholder, value)
    return (yaml.safe_load(text) or {}).get("jobs") or {}


def _planned(sample: str) -> tuple[Mapping[str, JobPlan], EnvironmentPlan | None, list[str]]:
    """Jobs of a sample in the dev environment, with what they name; and what it lacks."""
    entries = _entries(sample)
    edits = [
        at(f"pools.{pool}", {"instance_types": [kind], "max_nodes": 64})
        for pool, kind in NODES.items()
    ]
    edits += [
        at(f"trainer.own_runtimes.{entry['runtime']}", {"image": "a/b:1"})
        for entry in entries.values()
        if entry["runtime"] in ("resilient", "jax-distributed", "training-runtime-demo")
    ]
    for name, entry in entries.items():
        edits += [at(f"storage.{store}", {"efs": {}}) for store in entry.get("storage", {})]
        edits.append(at(f"jobs.{name}", {**entry, "allow_no_checkpoint": True}))
    found = planned(*edits)
    plan = found.plan if isinstance(found.plan, EnvironmentPlan) and not found.errors else None
    jobs = {name: plan.jobs[name] for name in entries} if plan else {}
    return jobs, plan, [str(error) for error in found.errors]


def _judged(
    trainer: TrainerServer, name: str, job: JobPlan, plan: EnvironmentPlan, kind: InstanceType
) -> None:
    """No pod of a job that trains is BestEffort, and each fits a node."""
    for each in plan.runtimes:
        trainer.api.apply(runtime(each.name, each.spec, each.framework), manager="tests")
    trainer.create(train_job(name, job.spec))
    pods = [pod for pod in trainer.pods(name, 1) if _replicated(pod) not in BEFORE]
    assert pods or _replicated(trainer.pods(name, 1)[0]) in BEFORE
    for pod in pods:
        assert pod["status"]["qosClass"] in ("Burstable", "Guaranteed"), pod["metadata"]["name"]
        asked = _asked(pod)
        assert asked["cpu"] > 0 and asked["memory"] > 0
        room = {
            "cpu": Fraction(kind.allocatable_millicpus, 1000),
            "memory": Fraction(kind.allocatable_mib * 2**20),
            GPU: Fraction(kind.gpus),
            EFA: Fraction(kind.efa),
        }
        too_much = {what: number for what, number in asked.items() if number > room.get(what, 0)}
        assert too_much == {}, room
    trainer.api.delete(train_job(name, {}))


def _replicated(pod: Object) -> str:
    return pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"]


def _asked(pod: Object) -> dict[str, Fraction]:
    """What the scheduler counts: the sum of the containers, or the largest init container."""
    asked: dict[str, Fraction] = {}
    for container in pod["spec"]["containers"]:
        for what, quantity in container["resources"].get("requests", {}).items():
            asked[what] = asked.get(what, Fraction(0)) + (amount(quantity) or 0)
    for container in pod["spec"].get("initContainers", ()):
        for what, quantity in container.get("resources", {}).get("requests", {}).items():
            asked[what] = max(asked.get(what, Fraction(0)), amount(quantity) or Fraction(0))
    return asked


@one_release
def test_the_jobs_of_the_stack_files_are_not_the_first_that_a_node_kills(
    trainer: TrainerServer,
) -> None:
    environment, team = environment_plan(), team_plan()
    for name, job in {**environment.jobs, **team.jobs}.items():
        kind = TYPES[DEV_NODES[job.pool]]
        _judged(trainer, f"of-{name}", job, environment, kind)


@one_release
@pytest.mark.parametrize("sample", [each for each in SAMPLES if each not in {*NO_PLAN, *NO_ENTRY}])
def test_the_typed_job_of_a_sample_is_not_the_first_that_a_node_kills(
    trainer: TrainerServer, sample: str
) -> None:
    jobs, plan, lacks = _planned(sample)
    assert plan is not None and jobs, lacks
    for number, (name, job) in enumerate(jobs.items()):
        kind = TYPES[{**DEV_NODES, **NODES}[job.pool]]
        _judged(trainer, f"{name[:20].rstrip('-')}-q{number}", job, plan, kind)


@pytest.mark.parametrize("sample", NO_PLAN)
def test_a_sample_that_is_not_judged_says_what_it_lacks(sample: str) -> None:
    _, plan, lacks = _planned(sample)
    assert plan is None and all(NO_PLAN[sample] in each for each in lacks)


def test_every_sample_of_a_job_is_judged_or_says_why_not() -> None:
    assert {*NO_PLAN, *NO_ENTRY} <= {*SAMPLES} and len(SAMPLES) > 35
    assert [name for name in NO_ENTRY if _entries(name)] == []
