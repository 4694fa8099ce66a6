"""When the first training step comes, and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.support.cases.jobs import pytorch_job
from tests.support.recording import Graph, deploy
from tests.support.stackfile import (
    at,
    environment_plan,
    sound_stacks,
    team_plan,
    values,
    without,
)
from trainyard.catalog.aws.latencies import STAGES, Latency
from trainyard.decide import plan_stack
from trainyard.reports.minutes import timeline
from trainyard.reports.minutes.timeline import Timeline, cold_start, drawn, schedule
from trainyard.settings.reading.reader import read

# What waits for what.

RESOURCES: dict[str, list[str]] = {
    "VPC": ["Vpc network"],
    "subnets": ["Subnet network-private-a", "Subnet network-public-a"],
    "NAT gateway": ["NatGateway network-nat-a"],
    "security groups": ["SecurityGroup nodes", "SecurityGroup scratch", "SecurityGroup home"],
    "file system scratch": ["LustreFileSystem scratch"],
    "file system home": ["FileSystem home"],
    "mount target home": ["MountTarget home.a"],
    "cluster": ["eks:index:Cluster cluster"],
    "first add-ons": ["Addon vpc-cni", "Addon kube-proxy", "Addon eks-pod-identity-agent"],
    "system nodes": ["NodeGroup system"],
    "coredns": ["Addon coredns"],
    "aws-fsx-csi-driver": ["Addon aws-fsx-csi-driver"],
    "aws-efs-csi-driver": ["Addon aws-efs-csi-driver"],
    "interruption queue": ["Queue karpenter"],
    "Karpenter": ["Release karpenter"],
    "pools": ["NodePool g6e-pool"],
    "Trainer": ["Release kubeflow-trainer"],
    "runtimes": ["ClusterTrainingRuntime torch-distributed-resilient"],
    "batching": ["TrainJob t5-large"],
}
"""Stage → the resources it is about; batching begins when the job is there."""
READY = "system nodes Ready"
"""Pods of a release wait for it, and the release for its pods: an edge that no graph shows."""


def test_every_stage_before_the_jobs_nodes_is_about_resources() -> None:
    assert {s.name for s in schedule(environment_plan()).stages} - set(RESOURCES) == {
        READY,
        "first node",
        "first node Ready",
        "image pull",
        "first step",
    }


@pytest.mark.parametrize("stage", RESOURCES)
def test_a_stage_waits_for_exactly_what_its_resources_wait_for(dev: Graph, stage: str) -> None:
    waited = _before(schedule(environment_plan()), stage)
    unseen = {READY} | _in_graph(dev, "system nodes") if READY in waited else set[str]()
    assert waited == _in_graph(dev, stage) | unseen


def _in_graph(dev: Graph, stage: str) -> set[str]:
    """The stages whose resources those of a stage wait for."""
    earlier = set[str]().union(*(dev.before(dev[resource]) for resource in RESOURCES[stage]))
    return {
        other
        for other, resources in RESOURCES.items()
        if other != stage and earlier & {str(dev[resource]) for resource in resources}
    }


def test_pods_of_controllers_wait_for_nodes_and_the_releases_begin_before() -> None:
    timeline = schedule(environment_plan())
    for stage in ("Karpenter", "Trainer"):
        assert timeline.start[stage] == timeline.end[READY] < timeline.end["system nodes"]
        assert READY in _before(timeline, stage)


def test_a_job_waits_for_the_links_of_its_store_which_fsx_makes_one_after_the_other() -> None:
    linked = at(
        "storage.scratch.lustre.repositories",
        {name: {"s3": f"s3://{name}-sets", "path": f"/{name}"} for name in ("text", "images")},
    )
    timeline = schedule(environment_plan(linked))
    assert "repositories scratch" in _before(timeline, "batching")
    assert timeline.end["repositories scratch"] - timeline.end["file system scratch"] == 2 * 300


def test_a_pytorch_job_waits_for_its_operator_and_for_no_runtime() -> None:
    edits = pytorch_job()
    graph = deploy("dev", lambda given: given.update(values(*edits)))
    run, operator = (
        graph["kubernetes:kubeflow.org/v1:PyTorchJob t5-large"],
        graph["Release training-operator"],
    )
    assert graph.waits_for(run, operator) and not any(
        "Runtime" in each for each in graph.before(run)
    )
    timeline = schedule(environment_plan(*edits))
    before = _before(timeline, "batching")
    assert "training-operator" in before and not {"runtimes", "Trainer"} & before
    assert graph.waits_for(run, graph["NodeGroup system"]), "the operator's pod ends the run"
    assert _before(timeline, "training-operator") == _before(timeline, "Trainer")
    assert not any(
        "training-operator" in stage.name for stage in schedule(environment_plan()).stages
    )


def _sooner(timeline: Timeline, changed: str, seconds: float) -> float:
    """Seconds by which the first step comes earlier where a stage takes `seconds`."""
    assert changed in timeline.start
    end: dict[str, float] = {}
    for stage in timeline.stages:
        start = max((end[name] for name in stage.after), default=0)
        end[stage.name] = start + (seconds if stage.name == changed else stage.seconds)
    return timeline.seconds - end["first step"]


def _before(timeline: Timeline, stage: str) -> set[str]:
    after = next(s.after for s in timeline.stages if s.name == stage)
    return set(after).union(*(_before(timeline, earlier) for earlier in after))


@given(stack=sound_stacks())
def test_no_stage_begins_early_and_the_longest_way_is_as_long_as_all_of_it(
    stack: dict[str, Any],
) -> None:
    timeline = schedule(plan_stack(read(stack, stack="dev", project="trainyard")).accepted())
    for stage in timeline.stages:
        assert all(timeline.end[earlier] <= timeline.start[stage.name] for earlier in stage.after)
    way = [s.seconds for s in timeline.stages if s.name in timeline.critical]
    assert sum(way) == pytest.approx(timeline.seconds)
    assert all(slack is None or slack >= 0 for slack in timeline.slack.values())


# How long it takes.


def test_the_longest_way_is_the_sum_of_the_medians_on_it() -> None:
    """VPC, subnets, control plane, system nodes, the driver of the job's store, batching, node Ready,
    image, first step: 15.35 minutes."""
    timeline = schedule(environment_plan())
    way = (14, 2, 544, 124, 54, 2, 86, 50, 45)
    assert timeline.seconds == sum(way) == 921 <= 15.5 * 60
    slow = (17, 3, 683, 298, 105, 6, 10, 97, 60, 90)  # by way of the Trainer
    assert timeline.slow_seconds == sum(slow) == 1369


def test_a_slow_day_is_no_shorter_than_a_typical_one() -> None:
    for plan in (environment_plan(), team_plan(), environment_plan(at("jobs", {}))):
        timeline = schedule(plan)
        assert timeline.slow_seconds > timeline.seconds
        assert all(stage.slow_seconds >= stage.seconds for stage in timeline.stages)


@pytest.mark.parametrize(
    ("lustre", "seconds"),
    [
        ({"capacity_gib": 1200, "throughput_mbps_per_tib": 500}, 446),
        ({"capacity_gib": 48000, "throughput_mbps_per_tib": 125}, 720),
        ({"capacity_gib": 4800, "throughput_mbps_per_tib": 1000, "efa": True}, 900),
    ],
)
def test_a_file_system_takes_longer_when_it_is_large_or_made_for_efa(
    lustre: dict[str, Any], seconds: float
) -> None:
    edits = [
        at("storage.scratch.lustre", lustre),
        at("pools.g6e.instance_types", ["p5.48xlarge"]),
    ]
    timeline = schedule(environment_plan(*edits))
    [stage] = [s for s in timeline.stages if s.name == "file system scratch"]
    assert stage.seconds == seconds
    assert timeline.seconds == 921 + max(0, seconds - 713), (
        "beside the cluster, as long as it can be"
    )


def test_stages_last_as_long_as_make_up_expects() -> None:
    timeline = schedule(environment_plan())
    end, start = timeline.end, timeline.start
    ours = {
        "network": end["NAT gateway"],
        "storage": end["file system scratch"] - start["security groups"],
        "cluster": end["first add-ons"] - start["cluster"],
        "system nodes": end["coredns"] - start["system nodes"],
        "jobs": timeline.seconds - start["batching"],
        **{
            stage: end[name] - start[name]
            for stage, name in (
                ("karpenter", "Karpenter"),
                ("pools", "pools"),
                ("trainer", "Trainer"),
                ("runtimes", "runtimes"),
            )
        },
    }
    assert set(ours) == set(STAGES)
    assert ours == {stage: pytest.approx(STAGES[stage], rel=0.1) for stage in ours}


def test_a_file_system_decides_only_when_it_takes_as_long_as_the_cluster_and_its_nodes() -> None:
    """It decides above 11.9 minutes: from the security groups to its driver."""
    timeline = schedule(environment_plan())
    latest = 446 + (timeline.slack["file system scratch"] or 0)
    assert latest == timeline.end["batching"] - 2 - timeline.start["file system scratch"] == 713
    assert _sooner(timeline, "file system scratch", 713) == 0
    assert _sooner(timeline, "file system scratch", 1200) == 713 - 1200


def test_nothing_comes_of_a_change_within_a_stages_slack_and_all_of_what_goes_beyond() -> None:
    timeline = schedule(environment_plan())
    for stage in timeline.stages:
        slack = timeline.slack[stage.name]
        longer = stage.seconds + (slack or 0)
        assert _sooner(timeline, stage.name, longer) == 0
        assert _sooner(timeline, stage.name, longer + 7) == (0 if slack is None else -7)


# Which job.


def test_a_job_waits_for_its_own_file_systems_only() -> None:
    bare = [without("jobs.t5-large.checkpoints"), at("jobs.t5-large.allow_no_checkpoint", True)]
    slack = schedule(environment_plan(*bare)).slack
    assert slack["file system scratch"] is None and slack["aws-fsx-csi-driver"] is None


def test_the_first_step_is_of_the_job_that_can_begin_first(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Latency(typical=3000, slow=3000, n=0, source="")
    monkeypatch.setitem(timeline.LATENCIES, "fsx.lustre", slow)
    light = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "g6e",
        "image": "image:1",
        "command": ["true"],
    }
    assert schedule(environment_plan(at("jobs.light", light))).job == "light"
    assert schedule(environment_plan()).job == "t5-large"


def test_kept_nodes_boot_with_their_pool_and_not_with_the_job() -> None:
    usual, kept = environment_plan(), environment_plan(at("pools.g6e.replicas", 2))
    timeline, job = schedule(kept), kept.jobs["t5-large"]
    assert (
        "batching" not in timeline.start and timeline.start["first node"] == timeline.end["pools"]
    )
    driver = timeline.end["aws-fsx-csi-driver"]
    assert schedule(usual).seconds - timeline.seconds == driver + 2 - timeline.end["pools"] == 23
    assert (cold_start(usual, job), cold_start(kept, job)) == (86 + 50 + 45, 45)


@pytest.mark.parametrize(("kept", "cold"), [({}, 129 + 50 + 45), ({"replicas": 2}, 50 + 45)])
def test_an_image_that_nobody_fetches_before_the_job_is_pulled_after_the_gpus_are_seen(
    kept: dict[str, Any], cold: float
) -> None:
    plan = environment_plan(
        at("pools.g6e.prefetch", []), *(at(f"pools.g6e.{key}", kept[key]) for key in kept)
    )
    timeline = schedule(plan)
    assert timeline.start["image pull"] >= timeline.end["first node"]
    assert cold_start(plan, plan.jobs["t5-large"]) == cold
    assert "first node Ready" not in timeline.start


def test_a_stack_without_jobs_ends_when_everything_is_there_and_a_team_begins_then() -> None:
    timeline, team = schedule(environment_plan(at("jobs", {}))), schedule(team_plan())
    assert timeline.job is None and timeline.seconds == timeline.end["aws-fsx-csi-driver"]
    assert None not in timeline.slack.values()
    assert team.critical == ("batching", "first node", "image pull", "first step")
    assert team.seconds == 2 + 129 + 50 + 45


def test_system_nodes_wait_for_endpoints_in_the_place_of_a_nat_gateway() -> None:
    plan = environment_plan(
        at("network.internet", "none"),
        at("network.endpoints", "private"),
        at("artifacts.images", "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"),
    )
    stages = {stage.name: stage for stage in timeline._environment(plan)}
    assert "NAT gateway" not in stages and "endpoints" in stages["system nodes"].after
    assert stages["endpoints"].after == ("subnets",)
    before = {stage.name: stage for stage in timeline._environment(environment_plan())}
    assert "endpoints" not in before and before["system nodes"].after == ("NAT gateway", "cluster")


# How long the image takes.

ECR = "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/train:1"


def _pull(nodes: int, image: str | None = None, gb: float = 9.35) -> tuple[float, float]:
    edits = [
        at("pools.g6e.max_nodes", nodes),
        at("jobs.t5-large.nodes", nodes),
        at("jobs.t5-large.image_gb", gb),
    ]
    if image:
        edits += [at("jobs.t5-large.image", image), at("pools.g6e.prefetch", [])]
    plan = environment_plan(*edits)
    [pull] = [s for s in schedule(plan).stages if s.name == "image pull"]
    return round(pull.seconds, 1), round(pull.slow_seconds, 1)


def test_a_few_nodes_pull_an_image_as_fast_as_one() -> None:
    assert _pull(1) == _pull(2) == (50, 60)


def test_a_pull_grows_with_the_size_of_the_image() -> None:
    assert _pull(2, gb=2 * 9.35) == (100, 120)


def test_many_nodes_share_one_gateway_which_starts_at_5_gigabits() -> None:
    """64 x 9.35 GB x 8 = 4,787 gigabits: 48 s at 100 Gb/s, which is less than a node takes, and 957 s
    at 5 Gb/s."""
    assert _pull(64) == (50, 957.4)
    assert _pull(128) == (95.7, 1914.9)
    assert _pull(64, ECR) == (50, 60), "beside the gateway"


def test_a_start_of_many_nodes_costs_the_data_of_an_image_of_that_size() -> None:
    plan = environment_plan(at("jobs.t5-large.image_gb", 20))
    assert cold_start(plan, plan.jobs["t5-large"]) == pytest.approx(86 + 50 * 20 / 9.35 + 45)
    assert timeline.gateway_gb(plan, plan.jobs["t5-large"]) == 2 * 20


# Bottlerocket.

BOTTLEROCKET = at("pools.g6e.ami_family", "Bottlerocket")


def test_a_node_with_bottlerocket_is_there_sooner_and_pulls_once_it_is() -> None:
    before, after = schedule(environment_plan()), schedule(environment_plan(BOTTLEROCKET))
    node, pull = (
        {stage.name: stage.row for stage in after.stages}[name]
        for name in ("first node", "image pull")
    )
    assert (node, pull) == ("ec2.instance-boot.bottlerocket", "job.image-pull.bottlerocket")
    assert after.start["image pull"] == after.end["first node"] < before.end["first node"]
    assert (
        after.seconds < before.seconds
        and drawn(after).typical_seconds < drawn(before).typical_seconds
    )
    other = environment_plan(at("pools.h100.ami_family", "Bottlerocket"))
    assert schedule(other).seconds == before.seconds


@pytest.mark.parametrize("prefetch", [None, []])
@pytest.mark.parametrize("replicas", [None, 2])
def test_the_first_step_waits_for_the_node_its_image_and_what_the_job_needs(
    prefetch: list[str] | None, replicas: int | None
) -> None:
    kept = {"prefetch": prefetch, "replicas": replicas}
    edits = [at(f"pools.g6e.{key}", value) for key, value in kept.items() if value is not None]
    plan = environment_plan(BOTTLEROCKET, *edits)
    found = schedule(plan)
    last = max(found.end["image pull"], found.end["runtimes"], found.end["aws-fsx-csi-driver"])
    assert found.start["first step"] == last >= found.end["first node"]
    assert cold_start(plan, plan.jobs["t5-large"]) == (0 if replicas else 75) + 34 + 45
