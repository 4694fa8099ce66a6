"""Settings that no other world has: runtimes of `kind: cpu` and `kind: mpi`, the launcher of DeepSpeed on
upstream's runtime, an elastic job that meets by etcd, Lustre of SCRATCH_2 and one whose size follows from a model,
stores that age, a gateway in each zone, a registry, flow logs and a budget. Then all of it goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import etcd_server
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
PREPARE, TRAIN, GROWS, MPI, DEEP, ETCD = ("prepare", "train", "grows", "ranks", "deep", "etcd")
MODEL = {"parameters_billion": 8, "nodes": 2}
AGING: Object = {
    "home": {"data": "delete", "efs": {"throughput": "provisioned", "throughput_mibps": 128}},
    "old": {"data": "delete", "efs": {"lifecycle": {"infrequent_after_days": 30}}},
    "corpus": {
        "data": "delete",
        "s3": {"writable": True, "versioning": True, "delete_after_days": {"old/": 30}},
    },
}
SCRIPT = (
    "echo rank $JOB_COMPLETION_INDEX wrote > /scratch/$JOB_COMPLETION_INDEX.txt; cat /scratch/*.txt"
)


def _stack() -> Object:
    prepare: Object = {
        "runtime": "plain",
        "nodes": 2,
        "pool": "cpus",
        "image": "python:3.13",
        "script": SCRIPT,
        "processes_per_node": 1,
        "allow_no_checkpoint": True,
        "storage": {"scratch": {"path": "/scratch"}},
    }
    train: Object = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": "trainer:1",
        "gpus_per_node": 1,
        "script": "touch x.py; torchrun --nproc_per_node=1 x.py",
        "checkpoints": {"store": "checkpoints", "directory": TRAIN},
        "env": {"TRAINYARD_STEPS": "6"},
    }
    grows: Object = {
        **train,
        "nodes": 2,
        "torchrun": {
            "script": "/workspace/x.py",
            "rendezvous": {"etcd": f"{ETCD}-node-0-0.{ETCD}:2379"},
        },
        "files": {"sources": ["x.py"]},
        "processes_per_node": 1,
        "checkpoints": {"store": "checkpoints", "directory": GROWS},
        "pytorch_job": {"clean_pods": "none"},
        "elastic": {"min_nodes": 1, "max_nodes": 2},
    }
    del grows["runtime"], grows["script"]
    etcd: Object = {**prepare, "nodes": 1, "files": {"sources": ["etcd_server.py"]}}
    etcd |= {"script": "python3 /workspace/etcd_server.py 2379", "wait": "running"}
    ranks: Object = {**prepare, "runtime": "mpi", "pool": "l4", "image": "mpi:1", "script": RANKS}
    ranks |= {"gpus_per_node": 4, "processes_per_node": 2}
    del ranks["storage"]
    deep = {**ranks, "runtime": "deepspeed-distributed", "script": DEEPSPEED}
    deep |= {"storage": {"scratch": {"path": "/scratch"}}, "image": DEEPSPEED_IMAGE}
    stack = with_l4(
        max_nodes=5,
        storage={
            "scratch": {
                "data": "delete",
                "lustre": {"capacity_gib": 1200, "deployment": "SCRATCH_2"},
            },
            "checkpoints": {
                "data": "delete",
                "lustre": {
                    "for_model": MODEL,
                    "maintenance_window": "sunday 16:30",
                    "backup_days": 7,
                },
            },
            **AGING,
        },
        network={"nat": "each_zone", "flow_logs": {"days": 30}},
        budget={"dollars_a_month": 40_000, "emails": ["ml@example.com"]},
        registries={"images": {"data": "delete", "keep_images": 30}},
        tags={"cost-center": "17"},
        training_operator={"version": "1.8.1"},
        jobs={PREPARE: prepare, TRAIN: train, ETCD: etcd, GROWS: grows, MPI: ranks, DEEP: deep},
    )
    environment = stack["trainyard:environment"]
    environment["pools"]["cpus"] = {"instance_types": ["m7i.4xlarge"], "max_nodes": 3}
    environment["trainer"]["runtimes"].append("deepspeed-distributed")
    environment["trainer"]["own_runtimes"] = {
        "plain": {"kind": "cpu", "image": "python:3.13"},
        "mpi": {"kind": "mpi", "image": "mpi:1"},
    }
    return stack


RANKS = "mpirun bash -c 'echo rank $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE on $(hostname)'"
DEEPSPEED_IMAGE = "ghcr.io/kubeflow/trainer/deepspeed-runtime:v2.1.0"
DEEPSPEED = """\
echo 'import os; os.write(1, b"trains " + os.environb[b"OMPI_COMM_WORLD_RANK"] + bytes([10]))' > /scratch/x.py
deepspeed --launcher openmpi --hostfile /etc/mpi/hostfile /scratch/x.py
"""


@pytest.fixture(scope="module")
def trial() -> Iterator[Harness]:
    file = yaml.safe_dump({"config": _stack()})
    etcd = Path(etcd_server.__file__).read_text()
    files = {"Pulumi.settings.yaml": file, "etcd_server.py": etcd, "x.py": ""}
    with rehearsing("settings", files) as made:
        assert made.do("up", "--stack", "settings") == 0, made.log.read_text()
        yield made


def test_a_runtime_without_gpus_runs_its_pods_on_nodes_without_gpus(trial: Harness) -> None:
    assert trial.condition(PREPARE) == "Complete"
    pods = "-n training -l jobset.sigs.k8s.io/jobset-name=prepare"
    said = trial.shell(f"kubectl logs {pods} --tail=-1")
    assert "rank 0 wrote" in said and "rank 1 wrote" in said
    names = {pod["spec"]["nodeName"] for pod in trial.get(f"pods {pods}")["items"]}
    types = {
        trial.get(f"node {name}")["metadata"]["labels"]["node.kubernetes.io/instance-type"]
        for name in names
    }
    assert types == {"m7i.4xlarge"}


def test_an_elastic_job_meets_by_etcd_and_runs_with_all_the_nodes_that_come_in_time(
    trial: Harness,
) -> None:
    job = trial.get(f"pytorchjob {GROWS} -n training")
    assert [c["type"] for c in job["status"]["conditions"] if c["status"] == "True"][
        -1
    ] == "Succeeded"
    logs = "kubectl logs -n training -l training.kubeflow.org/job-name=grows --tail=-1"
    assert "[rank 1/2]" in trial.shell(logs)


def test_mpirun_starts_ranks_in_the_launcher_and_in_the_pods_with_sshd(trial: Harness) -> None:
    assert trial.condition(MPI) == "Complete"
    logs = "kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name=ranks --tail=-1"
    said = trial.shell(logs)
    assert {f"rank {n}/4 on" in said for n in range(4)} == {True}
    assert "on ranks-launcher-0-0" in said and "on ranks-node-0-0" in said


def test_the_launcher_of_deepspeed_ends_on_upstreams_runtime(trial: Harness) -> None:
    assert trial.condition(DEEP) == "Complete"
    said = trial.shell("kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name=deep --tail=-1")
    assert sorted(line for line in said.splitlines() if line.startswith("trains")) == [
        f"trains {n}" for n in range(4)
    ]


def test_a_store_whose_size_follows_from_a_model_holds_its_checkpoints(trial: Harness) -> None:
    assert trial.condition(TRAIN) == "Complete"
    systems = trial.aws("fsx").describe_file_systems()["FileSystems"]
    kinds = {one["LustreConfiguration"]["DeploymentType"]: one for one in systems}
    assert set(kinds) == {"SCRATCH_2", "PERSISTENT_2"}
    assert kinds["PERSISTENT_2"]["LustreConfiguration"]["PerUnitStorageThroughput"] >= 125


def test_nothing_changes_after_that(trial: Harness) -> None:
    trial.shell("pulumi preview --non-interactive --expect-no-changes --refresh")


def test_it_has_a_gateway_in_each_zone_and_stores_that_age(trial: Harness) -> None:
    gateways = trial.aws("ec2").describe_nat_gateways()["NatGateways"]
    subnets = trial.aws("ec2").describe_subnets()["Subnets"]
    zones = {one["SubnetId"]: one["AvailabilityZone"] for one in subnets}
    private = [one for one in subnets if not one["MapPublicIpOnLaunch"] and _is_ours(one)]
    assert len(gateways) == len({one["AvailabilityZone"] for one in private}) > 1
    assert {zones[one["SubnetId"]] for one in gateways} == {
        one["AvailabilityZone"] for one in private
    }
    efs = trial.aws("efs")
    told = efs.describe_file_systems()["FileSystems"]
    assert {one["ThroughputMode"] for one in told} == {"provisioned", "elastic"}
    ages = [
        efs.describe_lifecycle_configuration(FileSystemId=one["FileSystemId"])["LifecyclePolicies"]
        for one in told
    ]
    assert sorted(ages, key=len) == [[], [{"TransitionToIA": "AFTER_30_DAYS"}]]
    [corpus] = [one["Name"] for one in trial.aws("s3").list_buckets()["Buckets"]]
    rules = trial.aws("s3").get_bucket_lifecycle_configuration(Bucket=corpus)["Rules"]
    assert [
        one["Expiration"]["Days"] for one in rules if one["Filter"].get("Prefix") == "old/"
    ] == [30], rules


def _is_ours(subnet: Object) -> bool:
    return any(tag["Key"] == "trainyard:stack" for tag in subnet.get("Tags", []))


def test_a_budget_counts_what_the_stack_is_billed(trial: Harness) -> None:
    state = json.loads(trial.shell("pulumi stack export"))["deployment"]["resources"]
    [made] = [each for each in state if each["type"] == "aws:budgets/budget:Budget"]
    account, name = made["id"].split(":")
    budget = trial.aws("budgets").describe_budget(AccountId=account, BudgetName=name)["Budget"]
    assert float(budget["BudgetLimit"]["Amount"]) == 40_000
    assert budget["CostFilters"]["TagKeyValue"] == ["user:trainyard:stack$settings"]


def test_down_leaves_nothing(trial: Harness) -> None:
    assert trial.do("down") == 0, trial.log.read_text()
