"""A run as the graph has it: what it waits for, what comes with it, and what replaces it."""

from __future__ import annotations

import logging
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stacks.outputs import FEW, job_starts, prices_of_runs
from tests.support.cases.jobs import JOB, SCRIPT, pytorch_job
from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.recording import CHECKOUT, WORKLOADS, Graph, RecordingMonitor, deploy
from tests.support.stackfile import (
    at,
    environment_plan,
    reading,
    team_plan,
    without,
)
from tests.trainyard.derive.test_after import beside
from trainyard.catalog.aws import quotes
from trainyard.catalog.aws.prices import Price
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.reports.costs.cost import estimate

TRAIN_JOB = "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob t5-large"
OTHERS = WORKLOADS / "valid"
MANIFEST = {
    "manifest": "tests/workloads/valid/trainjob-of-dev.yaml",
    "pool": "g6e",
    "claims": {"fsx-pvc": "scratch"},
}


def test_a_train_job_waits_for_its_runtime_and_a_pytorch_job_for_its_operator(dev: Graph) -> None:
    assert dev.waits_for(dev[TRAIN_JOB], dev["ClusterTrainingRuntime torch-distributed-resilient"])
    legacy = environment(*pytorch_job())
    run = legacy["kubernetes:kubeflow.org/v1:PyTorchJob t5-large"]
    assert legacy.waits_for(run, legacy["Release training-operator"])
    assert run.inputs["metadata"]["annotations"].keys() == {"trainyard.io/run"}


def test_a_job_of_another_kind_waits_for_the_operator_that_runs_it_and_is_replaced_as_others_are() -> (
    None
):
    kinds = {"mpi": "MPIJob", "tf": "TFJob"}
    graph = environment(
        at("training_operator", {"version": "1.8.1", "more_kinds": [*kinds.values()]}),
        *(
            at(f"jobs.{name}", {"manifest": f"tests/workloads/v1/{name}.yaml", "pool": "g6e"})
            for name in kinds
        ),
    )
    for name, kind in kinds.items():
        run = graph[f"kubernetes:kubeflow.org/v1:{kind} {name}"]
        assert graph.waits_for(run, graph["Release training-operator"])
        assert list(run.options.hooks.before_create) == ["job-alone", "job-starts"]
        assert list(run.options.replaceOnChanges) == ['metadata.annotations["trainyard.io/run"]']


def test_a_train_job_is_deleted_in_the_background_or_the_trainer_makes_it_again(dev: Graph) -> None:
    """Its annotation is none of its spec, of which its identity is a digest."""
    assert dev[TRAIN_JOB].inputs["metadata"]["annotations"] == {
        "trainyard.io/run": environment_plan().jobs["t5-large"].run,
        "pulumi.com/deletionPropagationPolicy": "background",
    }


def test_a_run_begins_when_the_one_before_it_is_gone(dev: Graph) -> None:
    legacy = environment(*pytorch_job())["kubernetes:kubeflow.org/v1:PyTorchJob t5-large"]
    for run in (dev[TRAIN_JOB], legacy):
        assert list(run.options.hooks.before_create) == ["job-alone", "job-starts"]


def test_a_run_is_replaced_by_its_identity_only_and_the_old_one_ends_first(dev: Graph) -> None:
    options = dev[TRAIN_JOB].options
    assert list(options.ignoreChanges) == ["spec"] and options.deleteBeforeReplace
    assert list(options.replaceOnChanges) == ['metadata.annotations["trainyard.io/run"]']


def test_a_run_that_was_made_when_each_job_was_a_component_is_not_replaced(dev: Graph) -> None:
    alias, _ = dev[TRAIN_JOB].options.aliases
    old = "urn:pulumi:dev::trainyard::trainyard:jobs:Job$"
    assert alias.urn == f"{old}kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob::t5-large"
    graph = environment(at("jobs.theirs", MANIFEST))
    for node in graph.nodes.values():
        if node.options.parent.endswith("::jobs"):
            assert node.options.aliases[0].urn == f"{old}{node.kind}::{node.name}"


def test_a_run_of_another_kind_of_job_is_the_one_that_is_replaced(dev: Graph) -> None:
    """As another resource the new run would begin beside the end of the old one."""
    _, alias = dev[TRAIN_JOB].options.aliases
    assert alias.spec.type == "kubernetes:kubeflow.org/v1:PyTorchJob"


@pytest.mark.parametrize("preview", [True, False])
def test_a_run_that_begins_says_so_in_a_preview_too(
    preview: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        deploy("dev", preview=preview)
    assert [line for line in caplog.messages if "starts a run:" in line] == [
        job_starts(environment_plan())["t5-large"]
    ]


@pytest.mark.parametrize("preview", [True, False])
def test_the_price_of_a_run_is_said_before_anything_is_made(
    preview: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came with the run, when its nodes were launching."""
    before: list[list[str]] = []
    register = RecordingMonitor.RegisterResource

    def registered(monitor: RecordingMonitor, request: Any) -> Any:
        if request.type != "pulumi:pulumi:Stack":
            before.append([*caplog.messages])
        return register(monitor, request)

    monkeypatch.setattr(RecordingMonitor, "RegisterResource", registered)
    with caplog.at_level(logging.INFO):
        deploy("dev", preview=preview)
    [line] = [line for line in before[0] if "this update starts a run" in line]
    assert line.startswith("this update starts a run of t5-large: 2 x g6e.48xlarge, $")
    assert line.endswith(" in ap-northeast-2 (disks of 2 nodes in g6e)")


def test_an_update_that_starts_no_run_says_no_price(
    dev: Graph, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        deploy("dev", deployed=deployed(dev))
    assert not [line for line in caplog.messages if "this update starts" in line]


def test_the_whole_price_of_runs_is_said_where_their_hours_are_known_and_the_sum_of_many() -> None:
    hours = at(f"{JOB}.expected_hours", 8.0)
    [line] = prices_of_runs(environment_plan(hours), ["t5-large"])
    assert line.endswith(" USD for the 8 hours of its expected_hours")
    many = environment_plan(beside(**{f"t5-{n}": None for n in range(8)}))
    said = prices_of_runs(many, [*many.jobs])
    assert len(said) == FEW + 1 and "these 9 runs: " in said[-1]
    assert said[-1].endswith("USD an hour while all of them run; 4 are not listed above")
    assert prices_of_runs(many, []) == []
    full = estimate(many).jobs[0].at_least_usd_per_hour
    assert full is not None and many.capacity["g6e"].max_nodes == 2 * many.jobs["t5-0"].nodes
    assert f"{2 * full:,.2f} USD an hour while all" in said[-1], (
        "nine runs of two nodes on a pool of four"
    )


def test_runs_that_wait_for_others_have_no_price_together() -> None:
    chain = environment_plan(beside(later=["t5-large"]))
    *_, last = prices_of_runs(chain, [*chain.jobs])
    assert last == "these 2 runs: some wait for others; `trainyard plan` has the price of all"
    sweep = {"over": {"LR": ["1", "2", "3"]}, "at_most": 1}
    swept = environment_plan(
        at(f"{JOB}.sweep", sweep),
        at(f"{JOB}.env", {"LEARNING_RATE": "{LR}"}),
        at(f"{JOB}.checkpoints.directory", "t5/{LR}/{run}"),
    )
    assert prices_of_runs(swept, [*swept.jobs])[-1].startswith("these 3 runs: some wait for others")


def test_a_schedule_that_begins_is_said_with_the_price_of_its_runs() -> None:
    times = {"cron": "0 3 * * *", "time_zone": "Asia/Seoul"}
    nightly = environment_plan(
        at(f"{JOB}.schedule", times), at(f"{JOB}.checkpoints.when_changed", "resume")
    )
    [line] = prices_of_runs(nightly, ["t5-large"])
    assert line.startswith(
        "this update begins the schedule of t5-large, 0 3 * * * (Asia/Seoul): about 30 runs a month of"
        " 2 x g6e.48xlarge, $"
    )


def test_it_says_what_an_hour_costs_as_far_as_prices_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said(plan: EnvironmentPlan | TeamPlan, **usd: str) -> str:
        monkeypatch.setattr(
            quotes,
            "price",
            lambda service, sku, region: (
                Price(
                    usd=Decimal(usd[service]), unit="hour", kind="", as_of="2026-07-20", source=""
                )
                if service in usd
                else None
            ),
        )
        monkeypatch.setattr(quotes, "guess", lambda service, sku, region: None)
        [line] = job_starts(plan).values()
        return line.partition(". It resumes")[0]

    team = "vit-base starts a run: 1 x g6e.48xlarge, "
    assert said(team_plan()) == f"{team}no price known in ap-northeast-2"
    assert said(team_plan(), ec2="30.13") == (
        f"{team}$30.13 an hour while it runs, and what has no price in ap-northeast-2 (disks of its nodes,"
        " which the environment pays, NAT gateway data)"
    )
    assert (
        "2 x g6e.48xlarge, $60.26 an hour while it runs, and what has no price in ap-northeast-2 (disks of 2"
        in said(environment_plan(), ec2="30.13")
    )


def test_it_says_of_a_job_on_a_capacity_block_that_its_nodes_are_paid_already() -> None:
    held = {"id": "cr-0123456789abcdef0", "instances": 2}
    times = {"starts": "2100-12-01T11:30:00Z", "ends": "2100-12-08T11:30:00Z"}
    block = {"instance_types": ["p5.48xlarge"], "max_nodes": 2, "capacity": "block"}
    plan = environment_plan(at("pools.g6e", {**block, "reservation": {**held, **times}}))
    assert job_starts(plan)["t5-large"].startswith(
        "t5-large starts a run: 2 x p5.48xlarge, paid already with a Capacity Block, in"
        " ap-northeast-2"
    )


def test_a_run_that_finds_an_older_checkpoint_says_where_and_how_to_begin_afresh() -> None:
    directory = at(f"{JOB}.checkpoints.directory", "t5-large/{run}")
    assert job_starts(environment_plan())["t5-large"].endswith(
        ". It resumes from the checkpoint in scratch/t5-large, if a run before it left one, and ends at"
        " once where that run has finished. To begin afresh, write another checkpoints.directory, such as"
        " t5-large-2, or checkpoints.when_changed: afresh"
    )
    own = job_starts(environment_plan(directory))["t5-large"]
    assert "resumes" not in own and own.endswith(
        ". It keeps its checkpoints in scratch/t5-large/1: a changed job with the same `run` goes on from"
        " there"
    )


def test_files_are_there_before_the_run_that_mounts_them() -> None:
    graph = environment(
        without(SCRIPT),
        at(f"{JOB}.files", {"sources": ["README.md"]}),
        at(f"{JOB}.torchrun", {"script": "/workspace/README.md"}),
    )
    files = graph["ConfigMap t5-large-files"]
    assert graph.waits_for(graph[TRAIN_JOB], files) and files.inputs["immutable"]
    assert files.inputs["data"] == {"README.md": (CHECKOUT / "README.md").read_text()}


def test_a_priority_is_there_before_the_run_that_has_it() -> None:
    graph = environment(
        at("priorities", {"high": 1000}), *pytorch_job(), at(f"{JOB}.priority", "high")
    )
    run = graph["kubernetes:kubeflow.org/v1:PyTorchJob t5-large"]
    assert graph.waits_for(run, graph["PriorityClass high"])
    made = graph["PriorityClass high"]
    assert made.inputs["value"] == 1000
    assert made.options.deleteBeforeReplace, "a new value, the same name"
    assert [*made.options.replaceOnChanges] == ["value"], "the API server refuses it in place"


def test_a_file_is_a_run_with_what_it_brings() -> None:
    graph = environment(at("jobs.theirs", MANIFEST))
    [run] = [node for node in graph.of("TrainJob") if node.name == "theirs"]
    theirs = [node for node in graph.of("TrainingRuntime") if node.name.startswith("theirs-")]
    assert theirs and all(graph.waits_for(run, node) for node in theirs)
    assert all(graph.waits_for(node, graph["Release kubeflow-trainer"]) for node in theirs)
    assert run.inputs["metadata"]["namespace"] == "training"


def test_one_more_job_changes_nothing_but_itself(dev: Graph) -> None:
    more = environment(at("jobs.theirs", MANIFEST))
    assert set(dev.nodes) < set(more.nodes)
    assert all(more.nodes[urn].inputs == node.inputs for urn, node in dev.nodes.items())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"pool": "a100"},
            "environment.jobs.theirs.pool: must be a pool of the environment; got a100",
        ),
        (
            {"claims": {"fsx-pvc": "nothing"}},
            "environment.jobs.theirs.claims.fsx-pvc: must be a store of the environment",
        ),
        (
            {"manifest": "nowhere.yaml"},
            "environment.jobs.theirs.manifest: must be a file in the folder of the stack file, which it is not; got",
        ),
    ],
)
def test_what_the_stack_file_says_of_a_file_is_checked_too(
    wrong: dict[str, Any], says: str
) -> None:
    found = [
        str(error)
        for error in plan_stack(reading(at("jobs.theirs", MANIFEST | wrong)), CHECKOUT).errors
    ]
    assert [error for error in found if error.startswith(says)] and len(found) == 1


def test_faults_of_the_file_are_the_stacks_with_their_lines(tmp_path: Path) -> None:
    flawed = (OTHERS / "trainjob-of-dev.yaml").read_text().replace("numNodes:", "numNodez:")
    (tmp_path / "job.yaml").write_text(flawed)
    shutil.copy(CHECKOUT / "Pulumi.yaml", tmp_path)
    found = plan_stack(
        reading(at("jobs.theirs", MANIFEST | {"manifest": "job.yaml"})), tmp_path
    ).errors
    assert any("[job.yaml:" in error.where and "numNodez" in error.path for error in found), found
