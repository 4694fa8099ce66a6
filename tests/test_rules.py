"""Every rule refuses what it is for, says where, and leaves sound stack files alone."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from stacks import check, rules
from stacks.config import read
from stacks.plan import plan_stack
from tests.recording import CHECKOUT
from tests.stackfile import Edit, at, faults, planned, values, without

JOB = "jobs.t5-large"
OWN = "trainer.own_runtimes.torch-distributed-resilient"
SCRIPT = f"{JOB}.script"
P5 = {"instance_types": ["p5.48xlarge"], "max_nodes": 1}

# name → (edits of the dev file, path of the fault, part of what it says)
REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "region as zone": ([at("zone", "ap-northeast-2")], "zone", "is a zone, not a region"),
    "another region as zone": ([at("zone", "us-east-1")], "zone", "use one of ap-northeast-2a"),
    "zone of another region": ([at("zone", "us-east-1a")], "zone", "lies in aws:region (ap-northeast-2)"),
    "zone that does not exist": ([at("zone", "ap-northeast-2f")], "zone", "exists in ap-northeast-2"),
    "no range": ([at("network.cidr", "10.0.0.0/99")], "network.cidr", "is an IPv4 range"),
    "host bits": ([at("network.cidr", "10.0.0.1/16")], "network.cidr", "has host bits set"),
    "network too large": ([at("network.cidr", "10.0.0.0/12")], "network.cidr", "/16 to /20"),
    "network too small": ([at("network.cidr", "10.0.0.0/24")], "network.cidr", "10.0.0.0/16"),
    "public addresses": ([at("network.cidr", "8.8.0.0/16")], "network.cidr", "RFC 1918"),
    "unknown Kubernetes": ([at("cluster.version", "1.19")], "cluster.version", "is a version with known add-ons"),
    "CIDRs of a private endpoint": ([at("cluster.endpoint", "private")], "cluster.public_access_cidrs",
                                    "belongs to a public endpoint"),
    "public endpoint for nobody": ([without("cluster.public_access_cidrs")], "cluster.public_access_cidrs",
                                   "says who may reach"),
    "no range at the endpoint": ([at("cluster.public_access_cidrs", ["my-house"])], "cluster.public_access_cidrs",
                                 "holds IPv4 ranges, got my-house"),
    "namespace of the system": ([at("namespace", "kube-system")], "namespace", "is for jobs only"),
    "two types in a pool": ([at("pools.g6e.instance_types", ["g6e.48xlarge", "p5.48xlarge"])],
                            "pools.g6e.instance_types", "make a pool for each type"),
    "no type in a pool": ([at("pools.g6e.instance_types", [])], "pools.g6e.instance_types", "got none"),
    "capacity that is not built": ([at("pools.g6e.capacity", "spot")], "pools.g6e.capacity", "is on_demand"),
    "unknown type": ([at("pools.g6e.instance_types", ["p7.48xlarge"])], "pools.g6e.instance_types",
                     "is a GPU type of the catalogue"),
    "type the region does not sell": ([at("pools.big", {**P5, "instance_types": ["p5e.48xlarge"]})],
                                      "pools.big.instance_types", "is sold in ap-northeast-2"),
    "type the zone does not sell": ([at("zone_id", "apne2-az3")], "pools.h100.instance_types",
                                    "in ap-northeast-2: apne2-az1"),
    "store of two kinds": ([at("storage.home.lustre", {"capacity_gib": 1200, "throughput_mbps_per_tib": 125})],
                           "storage.home", "got both"),
    "store of no kind": ([without("storage.home.efs")], "storage.home", "got neither"),
    "size FSx does not sell": ([at("storage.scratch.lustre.capacity_gib", 5000)],
                               "storage.scratch.lustre.capacity_gib", "nearest: 4800"),
    "small size FSx does not sell": ([at("storage.scratch.lustre.capacity_gib", 1000)],
                                     "storage.scratch.lustre.capacity_gib", "nearest: 1200"),
    "speed FSx does not sell": ([at("storage.scratch.lustre.throughput_mbps_per_tib", 300)],
                                "storage.scratch.lustre.throughput_mbps_per_tib", "(125, 250, 500, 1000)"),
    "no speed": ([without("storage.scratch.lustre.throughput_mbps_per_tib")],
                 "storage.scratch.lustre.throughput_mbps_per_tib", "got None"),
    "speed of scratch": ([at("storage.scratch.lustre.deployment", "SCRATCH_2")],
                         "storage.scratch.lustre.throughput_mbps_per_tib", "is fixed for SCRATCH_2"),
    "unknown Trainer": ([at("trainer.version", "1.8.1")], "trainer.version", "has builders for"),
    "unknown runtime": ([at("trainer.runtimes", ["torch-distributed", "jax"])], "trainer.runtimes",
                        "your own go under own_runtimes"),
    "own runtime of an upstream name": (
        [at("trainer.own_runtimes.torch-distributed", {"image": "a@sha256:0"})],
        "trainer.own_runtimes.torch-distributed", "does not take an upstream name"),
    "unknown pool": ([at(f"{JOB}.pool", "g6")], f"{JOB}.pool", "one of g6e, h100"),
    "gang larger than its pool": ([at(f"{JOB}.nodes", 5)], f"{JOB}.nodes", "raise pools.g6e.max_nodes to 5"),
    "more GPUs than a node has": ([at(f"{JOB}.gpus_per_node", 9)], f"{JOB}.gpus_per_node",
                                  "fits g6e.48xlarge, which has 8, got 9"),
    "more ranks than GPUs": ([at(f"{JOB}.gpus_per_node", 4), at(f"{JOB}.processes_per_node", 8)],
                             f"{JOB}.processes_per_node", "is at most the 4 GPUs of the pod"),
    "all memory shared": ([at(f"{JOB}.shared_memory_gib", 1400)], f"{JOB}.shared_memory_gib", "half of the node's"),
    "runtime that is not installed": ([at(f"{JOB}.runtime", "jax")], f"{JOB}.runtime", "is a runtime of the"),
    "restarts from nothing": ([without(f"{JOB}.checkpoints")], f"{JOB}.checkpoints", "is what 5 restarts resume from"),
    "unknown store": ([at(f"{JOB}.storage.data", {"path": "/data"})], f"{JOB}.storage.data", "one of scratch, home"),
    "two mounts at a path": ([at(f"{JOB}.storage", {"home": {"path": "/mnt/"}, "scratch": {"path": "/mnt"}})],
                             f"{JOB}.storage", "mounts one thing at a path, got /mnt"),
    "mount where checkpoints are": ([at(f"{JOB}.storage.home", {"path": "/checkpoints"})], f"{JOB}.storage",
                                    "got /checkpoints"),
    "mount on shared memory": ([at(f"{JOB}.storage.home", {"path": "/dev/shm"})], f"{JOB}.storage", "got /dev/shm"),
    "checkpoints on an unknown store": ([at(f"{JOB}.checkpoints.store", "data")], f"{JOB}.checkpoints.store",
                                        "is a store of the environment, got data; one of scratch, home"),
    "checkpoints outside of their store": ([at(f"{JOB}.checkpoints.directory", "a/../../b")],
                                           f"{JOB}.checkpoints.directory", "stays in its store"),
    "no command": ([without(SCRIPT)], JOB, "got neither"),
    "two commands": ([at(f"{JOB}.command", ["python", "train.py"])], JOB, "got both"),
    "ranks without a meeting place": ([at(SCRIPT, "cd /code\ntorchrun --nproc_per_node=8 train.py\n")],
                                      f"{JOB}.script", "--rdzv_backend=c10d --rdzv_endpoint"),
    "ranks without a meeting place, over lines": (
        [at(SCRIPT, "torchrun \\\n  --nproc_per_node=8 \\\n  train.py\n")], f"{JOB}.script", "rendezvous endpoint"),
    "torchrun itself without a meeting place": (
        [without(SCRIPT), at(f"{JOB}.command", ["/usr/bin/torchrun", "train.py"])], f"{JOB}.script", "rendezvous"),
    "blank after a backslash": (
        [at(SCRIPT, "torchrun --rdzv_endpoint=a:1 \\ \n  train.py\n")], f"{JOB}.script", "backslash"),
    "comment after a backslash": (
        [at(SCRIPT, "torchrun --rdzv_endpoint=a:1 \\ # eight\n  train.py\n")], f"{JOB}.script", "backslash"),
    "variable of the Trainer": ([at(f"{JOB}.env.PET_NNODES", "2")], f"{JOB}.env.PET_NNODES", "is set by the Trainer"),
    "token in the environment": ([at(f"{JOB}.env.HF_TOKEN", "hf_" + "a" * 34)], f"{JOB}.env.HF_TOKEN",
                                 "put it into a Kubernetes Secret"),
    "token in the script": ([at(SCRIPT, "export AWS_ACCESS_KEY_ID=AKIA" + "A" * 16)], f"{JOB}.script",
                            "holds no token in clear"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_where_it_stands(case: str) -> None:
    edits, path, says = REFUSED[case]
    found = [f for f in faults(*edits) if f.startswith(f"environment.{path}: ")]
    assert found and says in " ".join(found), faults(*edits)


def test_a_token_is_not_repeated_by_the_refusal() -> None:
    for case in ("token in the environment", "token in the script"):
        assert not rules.TOKEN.search(" ".join(faults(*REFUSED[case][0])))


@pytest.mark.parametrize("token", ["hf_" + "b" * 34, "AKIA" + "B" * 16, "sk-lf-" + "0a" * 12, "nvapi-" + "c" * 24])
def test_tokens_of_the_usual_services_are_recognised(token: str) -> None:
    assert rules.TOKEN.search(f"export X={token}")


def test_the_longest_name_and_the_largest_gang_give_pod_names_that_the_webhook_takes() -> None:
    longest = next(n for n in range(100, 0, -1) if not faults(_job_called("j" * n)))
    assert len("j" * longest + f"-node-0-{10**6}-abcde") <= 63


def _job_called(name: str) -> Edit:
    return lambda settings: settings["jobs"].update({name: settings["jobs"]["t5-large"]})


def test_a_region_without_known_zones_is_refused_because_one_zone_makes_no_cluster() -> None:
    moved = values(at("zone", "mars-north-1a"))
    moved["aws:region"] = "mars-north-1"
    [fault] = plan_stack(read(moved, stack="dev", project="trainyard")).faults
    assert fault.path == "aws:region" and "catalog/zones.py" in fault.way_out


# name → (edits of the team file, path, part of what it says)
TEAM_REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "namespace of the environment": ([at("namespace", "training")], "team.namespace", "is the team's own"),
    "namespace of the system": ([at("namespace", "default")], "team.namespace", "is the team's own"),
    "more GPUs than its share": ([at("max_gpus", 4)], "team.jobs.vit-base.nodes", "raise team.max_gpus from 4"),
    "pool that the environment lacks": ([at("jobs.vit-base.pool", "a100")], "team.jobs.vit-base.pool",
                                        "one of g6e, h100"),
    "store that the environment lacks": ([at("jobs.vit-base.storage.data", {"path": "/data"})],
                                         "team.jobs.vit-base.storage.data", "is a store of the environment"),
    "environment without a file": ([at("environment", "prod")], "team.environment", "no Pulumi.prod.yaml"),
    "environment that is a team": ([at("environment", "team-vision")], "team.environment",
                                   "make check STACK=team-vision"),
}


@pytest.mark.parametrize("case", TEAM_REFUSED)
def test_what_a_team_cannot_have_is_refused_where_it_stands(case: str) -> None:
    edits, path, says = TEAM_REFUSED[case]
    found = [f for f in faults(*edits, stack="team-vision") if f.startswith(f"{path}: ")]
    assert found and says in found[0], faults(*edits, stack="team-vision")


def test_a_team_in_another_region_than_its_environment_is_refused() -> None:
    moved = {**values(stack="team-vision"), "aws:region": "us-east-1"}
    found = plan_stack(read(moved, stack="team-vision", project="trainyard"), CHECKOUT).faults
    assert [str(f) for f in found] == ["aws:region: is the environment's region, got us-east-1; use ap-northeast-2"]


def test_a_broken_environment_is_its_own_business_and_one_line_of_the_teams(tmp_path: Path) -> None:
    for name in ("Pulumi.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    (tmp_path / "Pulumi.dev.yaml").write_text(
        (CHECKOUT / "Pulumi.dev.yaml").read_text().replace("zone: ap-northeast-2a", "zone: ap-northeast-2"))
    team = read(values(stack="team-vision"), stack="team-vision", project="trainyard")
    [fault] = plan_stack(team, tmp_path).faults
    assert str(fault) == "team.environment: needs an environment without faults, got dev; make check STACK=dev"


SOUND: dict[str, list[Edit]] = {
    "as it is": [],
    "another zone": [at("zone", "ap-northeast-2c")],
    "with its zone id": [at("zone_id", "apne2-az1")],
    "a small private network": [at("network.cidr", "192.168.16.0/20")],
    "a private endpoint": [at("cluster.endpoint", "private"), without("cluster.public_access_cidrs")],
    "one's own address": [at("cluster.public_access_cidrs", ["203.0.113.7/32"])],
    "the smallest Lustre": [at("storage.scratch.lustre.capacity_gib", 1200)],
    "scratch Lustre": [at("storage.scratch.lustre", {"capacity_gib": 2400, "deployment": "SCRATCH_2"})],
    "data that is kept": [at("storage.scratch.data", "keep"), without("storage.home.data")],
    "half a node": [at(f"{JOB}.gpus_per_node", 4), at(f"{JOB}.processes_per_node", 4)],
    "one node without a meeting place": [at(f"{JOB}.nodes", 1), at(SCRIPT, "torchrun train.py")],
    "master_addr as the meeting place": [at(SCRIPT, "exec torchrun --master-addr=$PET_MASTER_ADDR train.py")],
    "another launcher": [at(SCRIPT, "accelerate launch train.py")],
    "a command": [without(SCRIPT), at(f"{JOB}.command", ["python", "-m", "train", "--note=a \\ b"])],
    "no restarts and no checkpoints": [at(f"{OWN}.max_restarts", 0), without(f"{JOB}.checkpoints")],
    "restarts that may start over": [without(f"{JOB}.checkpoints"), at(f"{JOB}.allow_no_checkpoint", True)],
    "an upstream runtime": [at(f"{JOB}.runtime", "torch-distributed"), without(f"{JOB}.checkpoints")],
    "no jobs": [without("jobs")],
    "no pools and no jobs": [at("pools", {}), without("jobs")],
    "no storage": [without("storage"), at(f"{JOB}.storage", {}), without(f"{JOB}.checkpoints"),
                   at(f"{JOB}.allow_no_checkpoint", True)],
    "charts from a folder": [at("artifacts.charts", "/mirror/charts")],
    "ordinary words that begin like tokens": [at(f"{JOB}.env", {"NAME": "hf_hub", "KIND": "AKIA"})],
    "tags": [at("tags", {"cost-center": "17"})],
}


@pytest.mark.parametrize("case", SOUND)
def test_what_works_is_not_refused(case: str) -> None:
    assert faults(*SOUND[case]) == []


@pytest.mark.parametrize("edits", [[], [without("max_gpus")], [without("jobs")], [at("max_gpus", 8)]])
def test_a_sound_team_is_not_refused(edits: list[Edit]) -> None:
    assert faults(*edits, stack="team-vision") == []


def test_every_refusal_in_the_rules_is_caused_by_a_test_above() -> None:
    """Counted by line: a new rule without a case fails here."""
    source = Path(rules.__file__)
    lines, first = inspect.getsourcelines(rules)
    offered = {first + n for n, line in enumerate(lines, start=1 - first) if re.search(r"yield Fault\(", line)}
    seen: set[int] = set()

    def watch(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename == str(source):
            if event == "line":
                seen.add(frame.f_lineno)
            return watch
        return None if event == "call" else watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        for edits, _, _ in REFUSED.values():
            planned(*edits)
        for edits, _, _ in TEAM_REFUSED.values():
            planned(*edits, stack="team-vision")
        test_a_region_without_known_zones_is_refused_because_one_zone_makes_no_cluster()
        test_a_team_in_another_region_than_its_environment_is_refused()
    finally:
        sys.settrace(before)
    assert sorted(offered - seen) == [], "lines of stacks/rules.py that no case reaches"


def test_the_planted_faults_are_reported_together_and_nothing_else_is(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An unknown key, a region for a zone, nine GPUs on a node of eight and a type that the region does not sell."""
    text = (CHECKOUT / "Pulumi.dev.yaml").read_text()
    for line, planted in (("    zone: ap-northeast-2a ", "    placement: cluster\n    zone: ap-northeast-2 "),
                          ("        nodes: 2\n", "        nodes: 2\n        gpus_per_node: 9\n"),
                          ("[p5.48xlarge]", "[p5e.48xlarge]")):
        assert line in text
        text = text.replace(line, planted)
    (tmp_path / "Pulumi.planted.yaml").write_text(text)
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    assert check.main(["planted"]) == 1
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  fault")]
    paths = ["environment.placement", "environment.zone", "environment.pools.h100.instance_types",
             "environment.jobs.t5-large.gpus_per_node"]
    assert [line.split()[1].rstrip(":") for line in said] == paths


def test_check_says_what_a_sound_stack_is_and_what_comes_next(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert check.main(["dev", "team-vision"]) == 0
    said = capsys.readouterr().out
    assert "dev: zone ap-northeast-2a, pools g6e 4 x g6e.48xlarge" in said and "make preview STACK=dev" in said
    assert "team-vision: namespace team-vision on dev, 1 job\n" in said


def test_check_of_a_stack_without_a_file_says_so(capsys: pytest.CaptureFixture[str],
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert check.main(["nowhere"]) == 2
    assert "no stack file (Pulumi.nowhere.yaml)" in capsys.readouterr().out
    assert check.main([]) == 2


# What works but should be known.

NOTICES: dict[str, tuple[list[Edit], str]] = {
    "endpoint for the whole internet": ([], "answers the whole internet"),
    "no zone id": ([], "unset, so what the zone sells is only checked by region"),
    "many nodes without GPUDirect": ([], "g6e has no GPUDirect RDMA"),
    "image by tag": ([], "a digest (@sha256:…) is what was tested"),
}


@pytest.mark.parametrize("case", NOTICES)
def test_what_should_be_known_is_said(case: str) -> None:
    edits, says = NOTICES[case]
    assert [n for n in planned(*edits).notices if says in n.text]


def test_a_stack_without_such_a_thing_has_nothing_to_be_told() -> None:
    quiet = planned(at("cluster.public_access_cidrs", ["203.0.113.7/32"]), at("zone_id", "apne2-az1"),
                    at(f"{JOB}.pool", "h100"), at(f"{JOB}.image", "registry/image@sha256:" + "0" * 64))
    assert [str(n) for n in quiet.notices] == []
