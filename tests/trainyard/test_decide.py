"""What follows from a stack file: names, ranges, interfaces, one zone, and which changes start a
run."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.recording import CHECKOUT
from tests.support.stackfile import (
    ENVIRONMENT,
    SCRATCH,
    Edit,
    at,
    environment_plan,
    sound_stacks,
    team_plan,
    values,
    without,
)
from trainyard.catalog import versions
from trainyard.catalog.aws.instances import GPU_TYPES, InstanceType
from trainyard.decide import plan_stack
from trainyard.derive.output import VARIABLE as UNBUFFERED
from trainyard.derive.pools import efa_interfaces
from trainyard.objects.jobs.rendezvous import VARIABLE, conf
from trainyard.plan import EnvironmentPlan
from trainyard.plans.identity import Identity
from trainyard.settings.reading.contracts import core
from trainyard.settings.reading.reader import read

JOB = "jobs.t5-large"
OWN = "trainer.own_runtimes.torch-distributed-resilient"

# Names and tags.

ME = Identity(project="trainyard", stack="dev", region="ap-northeast-2")


def test_the_same_inputs_give_the_same_name_and_a_forcing_change_gives_another() -> None:
    assert (
        ME.name("cluster", "10.0.0.0/16")
        == ME.name("cluster", "10.0.0.0/16")
        == "dev-cluster-b00cb939"
    )
    others = [
        dataclasses.replace(ME, stack="prod"),
        dataclasses.replace(ME, project="other"),
        dataclasses.replace(ME, region="us-east-1"),
    ]
    names = [
        ME.name("cluster"),
        ME.name("cluster", "a"),
        ME.name("cluster", "b"),
        *(o.name("cluster") for o in others),
    ]
    assert len(set(names)) == len(names)


def test_a_name_begins_with_stack_and_logical_name_so_that_a_person_finds_it() -> None:
    assert re.fullmatch(r"dev-interruptions-[0-9a-f]{8}", ME.name("interruptions"))


def test_tags_of_our_own_win_over_tags_of_the_stack_file() -> None:
    tags = dataclasses.replace(ME, extra_tags=(("Name", "mine"), ("team", "a"))).tags(
        "scratch", role="x"
    )
    assert tags == {
        "team": "a",
        "Name": "dev-scratch",
        "trainyard:project": "trainyard",
        "trainyard:stack": "dev",
        "trainyard:name": "scratch",
        "role": "x",
    }


@pytest.mark.parametrize("longest", ["a" * 32])
def test_names_stay_within_what_aws_takes_whatever_the_stack_is_called(longest: str) -> None:
    found = plan_stack(read(values(), stack=longest, project="trainyard")).accepted()
    assert isinstance(found, EnvironmentPlan)
    assert len(found.karpenter.role_name) <= 64 and len(found.gpu_nodes.role_name) <= 64  # IAM
    assert len(found.cluster.name) <= 100 and len(found.karpenter.queue_name) <= 80  # EKS, SQS
    assert len(found.identity.name("karpenter-reservation")) <= 64  # EventBridge


# Nodes.


@pytest.mark.parametrize("name", GPU_TYPES)
def test_a_node_has_one_address_and_as_many_efa_devices_as_its_type(name: str) -> None:
    kind = GPU_TYPES[name]
    addressed, *fabric = efa_interfaces(kind)
    assert (addressed.card, addressed.device, addressed.kind) == (0, 0, "interface")
    assert [i.kind for i in fabric] == ["efa-only"] * kind.efa
    assert len({i.card for i in fabric}) == len(fabric), "one EFA device a network card"
    assert len({(i.card, i.device) for i in (addressed, *fabric)}) == len(fabric) + 1
    assert max((i.card for i in fabric), default=0) == kind.cards - 1


@pytest.mark.parametrize(
    ("name", "first", "last", "count"),
    [
        ("g6e.48xlarge", (0, 1), (3, 0), 4),
        ("p5.48xlarge", (0, 1), (31, 0), 32),
        ("g6.48xlarge", (0, 1), (0, 1), 1),
        ("p6-b300.48xlarge", (1, 0), (16, 0), 16),
    ],
)  # card 0 of the b300 takes no EFA
def test_efa_devices_sit_where_the_ec2_guide_puts_them(
    name: str, first: tuple[int, int], last: tuple[int, int], count: int
) -> None:
    fabric = [(i.card, i.device) for i in efa_interfaces(GPU_TYPES[name])[1:]]
    assert (fabric[0], fabric[-1], len(fabric)) == (first, last, count)


@given(cards=st.integers(1, 40), spare=st.integers(0, 1))
def test_the_layout_holds_for_types_that_do_not_exist_yet(cards: int, spare: int) -> None:
    assume(cards > spare)
    kind = dataclasses.replace(GPU_TYPES["p5.48xlarge"], cards=cards, efa=cards - spare)
    assert len(efa_interfaces(kind)) == kind.efa + 1


def test_a_pool_knows_what_its_type_has() -> None:
    pools = environment_plan().pools
    [g6e], [h100] = pools["g6e"].types, pools["h100"].types
    assert (g6e.gpus, g6e.efa, h100.efa) == (8, 4, 32)
    assert pools["g6e"].ami == versions.NODE_AMI and "latest" not in versions.NODE_AMI


# One zone.


@given(stack=sound_stacks())
def test_gpu_nodes_file_systems_and_jobs_of_an_environment_are_in_one_zone(
    stack: dict[str, Any],
) -> None:
    plan = plan_stack(read(stack, stack="dev", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    zone = stack[ENVIRONMENT]["zone"]
    assert {
        plan.zone,
        plan.network.zones[0].name,
        plan.contract["environment"]["zone"],
        *(zone for pool in plan.pools.values() for zone in pool.zones),
        *(_selector(plan, job)["topology.kubernetes.io/zone"] for job in plan.jobs),
    } == {zone}
    assert 2 <= len({z.name for z in plan.network.zones}) <= 3, "EKS refuses a cluster in one zone"


@given(stack=sound_stacks())
def test_a_job_asks_for_what_a_node_of_its_pool_has(stack: dict[str, Any]) -> None:
    plan = plan_stack(read(stack, stack="dev", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    for name, job in plan.jobs.items():
        [kind], trainer = plan.pools[job.pool].types, job.spec["trainer"]
        fabric = (
            {"vpc.amazonaws.com/efa": str(kind.efa)} if trainer["numNodes"] > 1 and kind.efa else {}
        )
        asked = {"nvidia.com/gpu": str(kind.gpus), **fabric}
        requests, limits = (trainer["resourcesPerNode"][part] for part in ("requests", "limits"))
        assert limits == {**asked, "memory": requests["memory"]}
        assert requests == {**limits, "cpu": requests["cpu"]} and int(requests["cpu"]) >= 1
        assert _selector(plan, name)["trainyard.io/pool"] == job.pool
        assert _selector(plan, name)["node.kubernetes.io/instance-type"] == kind.instance_type


def _selector(plan: EnvironmentPlan, job: str) -> dict[str, str]:
    return plan.jobs[job].spec["podTemplateOverrides"][0]["spec"]["nodeSelector"]


@pytest.mark.parametrize("kind", GPU_TYPES.values(), ids=list(GPU_TYPES))
def test_the_facts_of_a_type_agree_with_each_other(kind: InstanceType) -> None:
    assert kind.gpus in (1, 2, 4, 8) and kind.efa <= kind.cards <= kind.efa + 1
    assert 0.8 * kind.memory_mib < kind.allocatable_mib < kind.memory_mib
    assert kind.nvlink == (kind.quota == "P" and kind.gpus > 1) and (
        kind.gpudirect or not kind.nvlink
    )


# A run and its identity.


def _run(*edits: Edit) -> str:
    return environment_plan(*edits).jobs["t5-large"].run


RUNS_AGAIN: dict[str, list[Edit]] = {
    "run counter": [at(f"{JOB}.run", 2)],
    "nodes": [at(f"{JOB}.nodes", 3)],
    "script": [at(f"{JOB}.script", "true")],
    "image": [at(f"{JOB}.image", "other:1")],
    "pool": [at(f"{JOB}.pool", "h100")],
    "environment": [at(f"{JOB}.env.LR", "1")],
    "checkpoints": [at(f"{JOB}.checkpoints.directory", "again")],
    "mount": [at(f"{JOB}.storage.home", {"path": "/home"})],
    "zone": [at("zone", "ap-northeast-2b")],
    "shared memory": [at(f"{JOB}.shared_memory_gib", 65)],
    "vCPUs": [at(f"{JOB}.cpus_per_node", 100)],
    "memory": [at(f"{JOB}.memory_gib", 1000)],
    "gpus": [at(f"{JOB}.gpus_per_node", 4), at(f"{JOB}.script", "accelerate launch t5.py")],
}
OTHER_DIRECTORY = {"store": "scratch", "directory": "other"}
RUNS_ON: dict[str, list[Edit]] = {
    "another job": [
        lambda s: s["jobs"].update(
            other={**s["jobs"]["t5-large"], "run": 7, "checkpoints": OTHER_DIRECTORY}
        )
    ],
    "size of the pool": [at("pools.g6e.max_nodes", 8)],
    "another pool": [without("pools.h100")],
    "size of the store": [at("storage.scratch.lustre.capacity_gib", 9600)],
    "tags": [at("tags.team", "a")],
    "restarts of the runtime": [at(f"{OWN}.max_restarts", 9)],
    "charts": [at("artifacts.charts", "/charts")],
    "dry runs of Karpenter": [at("karpenter.dry_run", False)],
    "endpoint": [at("cluster.public_access_cidrs", ["203.0.113.7/32"])],
    "what is the default anyway": [at(f"{JOB}.run", 1), at(f"{JOB}.processes_per_node", "auto")],
}


@pytest.mark.parametrize("change", RUNS_AGAIN)
def test_a_change_of_what_the_job_does_is_another_run(change: str) -> None:
    assert _run(*RUNS_AGAIN[change]) != _run()


@pytest.mark.parametrize("change", RUNS_ON)
def test_a_paid_run_goes_on_when_something_else_changes(change: str) -> None:
    assert _run(*RUNS_ON[change]) == _run()


def test_the_order_of_lines_in_a_stack_file_starts_no_run() -> None:
    both = at(f"{JOB}.storage", {"scratch": {"path": "/mnt/scratch"}, "home": {"path": "/home"}})
    assert _run(both) == _run(both, _reversed)
    assert environment_plan(both).contract == environment_plan(both, _reversed).contract


def _reversed(settings: dict[str, Any]) -> None:
    for key, value in reversed(list(settings.items())):
        del settings[key]
        settings[key] = value
        if isinstance(value, dict):
            _reversed(value)


# Jobs.


def test_checkpoints_are_found_in_one_place_whatever_store_and_directory_they_lie_in() -> None:
    job = environment_plan(
        at(f"{JOB}.checkpoints", {"store": "home", "directory": "t5/large"}),
        at(f"{JOB}.env.A", "1"),
    ).jobs["t5-large"]
    assert job.spec["trainer"]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "CHECKPOINT_DIR", "value": "/checkpoints"},
        {"name": VARIABLE, "value": conf()},
        {"name": UNBUFFERED, "value": "1"},
    ]
    mounts = job.spec["podTemplateOverrides"][0]["spec"]["containers"][0]["volumeMounts"]
    assert mounts[1:] == [{"name": "home", "mountPath": "/checkpoints", "subPath": "t5/large"}]
    assert job.stores == ("home",)


def test_a_store_that_a_job_mounts_anyway_is_not_mounted_again_for_checkpoints() -> None:
    """The TrainJob CRD keys mounts by volume; two volumes of a claim never start before Kubernetes
    1.35."""
    job = environment_plan(at(f"{JOB}.storage", {"scratch": {"path": "/mnt/"}})).jobs["t5-large"]
    pod = job.spec["podTemplateOverrides"][0]["spec"]
    assert [v["name"] for v in pod["volumes"]] == ["dshm", "scratch"]
    assert [m["mountPath"] for m in pod["containers"][0]["volumeMounts"]] == ["/dev/shm", "/mnt"]
    env = {each["name"]: each["value"] for each in job.spec["trainer"]["env"]}
    assert env == {"CHECKPOINT_DIR": "/mnt/t5-large", VARIABLE: conf(), UNBUFFERED: "1"}


def test_a_script_stops_at_its_first_failure_and_a_command_runs_as_it_is() -> None:
    script = (
        environment_plan(at(f"{JOB}.script", "echo hello\n"))
        .jobs["t5-large"]
        .spec["trainer"]["command"]
    )
    assert script == ["/bin/bash", "-c", "set -euo pipefail\necho hello\n"]
    command = environment_plan(
        without(f"{JOB}.script"), at(f"{JOB}.command", ["python", "a b"])
    ).jobs["t5-large"]
    assert command.spec["trainer"]["command"] == ["python", "a b"]


# What teams rely on.


def test_a_teams_plan_is_made_against_its_environments_promise() -> None:
    team, environment = team_plan(), environment_plan()
    assert team.contract == core(environment.contract)
    assert team.workspace.namespace == "team-vision" and team.workspace.max_gpus == 16
    assert [c.volume_name for c in team.workspace.claims] == [f"team-vision-{SCRATCH}"], (
        "only what its jobs use"
    )
    job = team.jobs["vit-base"]
    assert (
        job.namespace == "team-vision"
        and job.spec["runtimeRef"]["name"] == "torch-distributed-resilient"
    )
    selector = job.spec["podTemplateOverrides"][0]["spec"]["nodeSelector"]
    assert selector["topology.kubernetes.io/zone"] == environment.zone


# Without an engine.


def _in_a_fresh_process(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout


def test_a_stack_is_checked_without_loading_the_sdk() -> None:
    said = _in_a_fresh_process(
        "import sys; from trainyard.cli.main import typed; typed(['check', 'dev']);"
        "typed(['check', 'team-vision']); print([m for m in sys.modules"
        " if m.partition('.')[0] in ('pulumi', 'pulumi_aws', 'pulumi_eks', 'grpc')])"
    )
    assert said.splitlines()[-1] == "[]"


@pytest.mark.parametrize("make", [environment_plan, team_plan])
def test_the_same_file_gives_the_same_plan(make: Callable[[], object]) -> None:
    assert make() == make()
