"""The identity of every sample's run is what it was when it was recorded: an upgrade of this program
starts no paid run again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.corpus import bad_manifests
from tests.support.cases.jobs import JOB, OPERATOR, SCRIPT, TOKEN, pytorch_job
from tests.support.recording import CHECKOUT, WORKLOADS
from tests.support.stackfile import Edit, at, environment_plan, team_plan, without
from tests.support.stacks import STACKS
from tests.trainyard.manifests.test_admission import environment, made
from trainyard.derive.jobs import runtime_plans
from trainyard.settings.job import ManifestConfig

RUNS = CHECKOUT / "tests" / "golden" / "runs.json"
"""Sample → identity of its run. `pytest --golden` adds samples, and changes none."""
CORPUS = CHECKOUT / "tests" / "corpus"
TORCHRUN: tuple[Edit, ...] = (
    without(SCRIPT),
    at(f"{JOB}.torchrun", {"script": "/app/train.py", "max_restarts": 1}),
)
ETCD = at(f"{JOB}.torchrun.rendezvous", {"etcd": "etcd.ops.svc:2379"})
ENTRIES: dict[str, tuple[Edit, ...]] = {
    "torchrun": TORCHRUN,
    "torchrun with etcd": (*TORCHRUN, ETCD),
    "one node": (at(f"{JOB}.nodes", 1),),
    "secret": (at(f"{JOB}.secrets", TOKEN),),
    "PyTorchJob": (*pytorch_job(),),
    "PyTorchJob with torchrun": (*pytorch_job(), *TORCHRUN),
    "PyTorchJob with a coordinator": (*pytorch_job(coordinator=True),),
    "elastic": (
        *pytorch_job(),
        *TORCHRUN,
        at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4}),
    ),
    "variable of its own": (at(f"{JOB}.env.PET_RDZV_CONF", "join_timeout=1200"),),
}


def _entries() -> Iterator[tuple[str, str]]:
    """Jobs that are entries, of every stack that has a recorded graph."""
    for name, edits in STACKS.items():
        for job, plan in environment_plan(*edits).jobs.items():
            yield f"{name}: {job}", plan.run
    for name, edits in ENTRIES.items():
        yield f"entry: {name}", environment_plan(*edits).jobs["t5-large"].run
    for job, plan in team_plan().jobs.items():
        yield f"team-vision: {job}", plan.run


def _texts() -> Iterator[tuple[str, str]]:
    """YAML files of jobs, sound or flawed."""
    for path in sorted(WORKLOADS.rglob("*.yaml")):
        yield path.relative_to(WORKLOADS).as_posix(), path.read_text()
    for path in sorted(CORPUS.glob("sound_jobs_*.yaml")):
        for number, text in enumerate(path.read_text().split("#= ")[1:]):
            yield f"{path.name} {number}", f"# {text}"
    for name, body in bad_manifests.FILES.items():
        yield f"bad_manifests {name}", yaml.safe_dump(body)


def _files() -> Iterator[tuple[str, str]]:
    """Jobs that are files: what a file is refused for is no matter here."""
    config = environment(OPERATOR)
    runtimes = {runtime.name: runtime for runtime in runtime_plans(config)}
    for name, text in _texts():
        for pool in ("g6e", "cpu"):
            found = made(text, pool, environment=config)
            if found.nodes and found.objects[-1]["metadata"].get("name"):
                wanted = ManifestConfig(manifest="x.yaml", pool=pool)
                yield f"file: {name} on {pool}", found.plan(wanted, "training", runtimes).run


def test_no_sample_starts_again(request: pytest.FixtureRequest) -> None:
    now = {**dict(_entries()), **dict(_files())}
    assert len(now) > 100, "entries and files are found"
    recorded = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    if request.config.getoption("--golden"):
        recorded = {**now, **recorded}
        RUNS.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n")
    assert {name: now.get(name) for name in recorded} == recorded
    assert now.keys() == recorded.keys(), "record new samples with pytest --golden"
