"""What no update can change in objects that are deployed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, environment_plan
from tests.support.teams import both, by_name, checkout, listed, planned, team_of, with_queues
from trainyard.plan import TeamPlan
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.immutable import (
    FLAVOR,
    NODE_POOL,
    OWN_RUNTIME,
    immutable_errors,
    own_runtime_errors,
)
from trainyard.settings.reading.yaml_file import Lines

STATIC = at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 3, "replicas": 2})
DYNAMIC = at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 3})
KEPT = (at("pools.h100.replicas", 2), at("pools.g6e.replicas", 4))
NEAR = (with_queues, at("queues.topology", "preferred"), *KEPT)


def _said(before: tuple[Edit, ...], after: tuple[Edit, ...]) -> list[str]:
    return [*map(str, immutable_errors(environment_plan(*after), deployed(environment(*before))))]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            DYNAMIC,
            STATIC,
            "environment.pools.h100.replicas: must not be set later: Karpenter refuses it; got 2."
            " Fix: delete it",
        ),
        (
            STATIC,
            DYNAMIC,
            "environment.pools.h100.replicas: must stay set: Karpenter refuses a pool that had"
            " replicas and has none; got nothing. Fix: write 2 again",
        ),
    ],
)
def test_a_pool_has_replicas_from_its_first_day_or_never(
    before: Edit, after: Edit, says: str
) -> None:
    [error] = _said((before,), (after,))
    assert error.startswith(says)
    assert error.endswith(
        "; otherwise add a pool of another name, and delete h100 in a later update"
    )


def test_a_static_pool_is_switched_off_and_on_again() -> None:
    off = at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 3, "replicas": 0})
    assert not _said((STATIC,), (off,)) and not _said((off,), (STATIC,))
    [error] = _said((off,), (DYNAMIC,))
    assert "got nothing. Fix: write 0 again" in error


def test_queues_keep_their_topology() -> None:
    far = (with_queues, *KEPT)
    [error] = _said(NEAR, far)
    assert error.startswith("environment.queues.topology: must stay preferred")
    assert not _said(far, NEAR), "Kueue takes one that comes later"


def test_nothing_is_said_of_what_stays_is_new_or_goes() -> None:
    grown = at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 4, "replicas": 3})
    assert not _said((STATIC,), (grown,))
    new = at("pools.more", {"instance_types": ["p5.48xlarge"], "max_nodes": 1, "replicas": 1})
    assert not _said((STATIC,), (STATIC, new))
    assert not _said(NEAR, KEPT), "with the queues the flavors go"


def test_the_graph_has_what_the_rules_look_at() -> None:
    graph = environment(*NEAR)
    assert graph[f"{NODE_POOL} h100-pool"].inputs["spec"]["replicas"] == 2
    assert graph[f"{FLAVOR} flavor-h100"].inputs["spec"]["topologyName"]


BESIDE = CHECKOUT / "tests/workloads/valid/trainjob-own-runtime-beside.yaml"


def _team(folder: Path, environment: Edit = with_queues) -> TeamPlan:
    """A team with a job whose file brings a runtime."""
    runtime, job = yaml.safe_load_all(BESIDE.read_text())
    del runtime["metadata"]["namespace"]
    runtime["spec"]["mlPolicy"]["numNodes"] = 1
    [container] = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"][
        "template"
    ]["spec"]["containers"]
    del container["securityContext"]
    container["image"] = "public.ecr.aws/deep-learning-containers/train:7"
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "vision"}
    (folder / "theirs.yaml").write_text(yaml.safe_dump_all([runtime, job]))
    theirs = {"manifest": "theirs.yaml", "pool": "g6e", "claims": {"fsx": "scratch"}}
    return team_of(checkout(folder, environment, both(by_name, at("jobs", {"theirs": theirs}))))


def _of_the_team(plan: TeamPlan, **container: Any) -> Deployed:
    """The stack of the team as the API server tells it, with other fields of the container."""
    [runtime] = plan.jobs["theirs"].objects
    spec = copy.deepcopy(runtime["spec"])
    [node] = spec["template"]["spec"]["replicatedJobs"]
    node |= {"replicas": 1.0, "groupName": "default"}
    node["template"]["spec"]["template"]["spec"]["containers"][0] |= container
    return Deployed(resources={(OWN_RUNTIME, "theirs-trainingruntime-resilient"): {"spec": spec}})


def test_the_runtime_of_a_job_file_keeps_its_spec_in_a_queue(tmp_path: Path) -> None:
    plan = _team(tmp_path)
    [error] = map(str, own_runtime_errors(plan, _of_the_team(plan, image="acme/train:6")))
    assert error.startswith(
        "team.jobs.theirs.manifest: must keep the spec of TrainingRuntime resil"
    )
    assert "`acme/train:6` → `" in error
    assert error.endswith("Fix: rename it to resilient-2, also in runtimeRef of the job")
    assert not [*own_runtime_errors(plan, _of_the_team(plan))]
    assert not [*own_runtime_errors(plan, Deployed())]
    free = _team(tmp_path, listed)
    assert not [*own_runtime_errors(free, _of_the_team(free, image="acme/train:6"))]


def test_a_preview_of_a_team_says_it(tmp_path: Path) -> None:
    before = _of_the_team(_team(tmp_path), image="acme/train:6")
    found = compared(
        planned("team-vision", tmp_path), Lines(), lambda types, other: before, lambda *_: ()
    )
    assert any("must keep the spec of TrainingRuntime" in str(each) for each in found.errors)
