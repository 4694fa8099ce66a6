"""What the nodes of a gang are told so that they wait for each other, for each kind of job."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.support.cases.jobs import JOB, OPERATOR, SCRIPT, pytorch_job
from tests.support.stackfile import Edit, at, environment_plan, without
from tests.support.stacks import STACKS
from tests.trainyard.manifests.test_admission import JOB as FILE
from tests.trainyard.manifests.test_admission import environment, made
from trainyard.catalog.limits import (
    FIRST_NODE_SECONDS,
    INIT_POLL_SECONDS,
    INIT_TRIES,
    NODES_SECONDS,
)
from trainyard.derive.jobs import runtime_plans
from trainyard.objects.jobs.rendezvous import OWN_STORE, VARIABLE, conf, read
from trainyard.reports.minutes.timeline import schedule
from trainyard.settings.job import ManifestConfig

HALF_AN_HOUR = 1800
TORCHRUN = [without(SCRIPT), at(f"{JOB}.torchrun", {"script": "/app/train.py"})]
ENTRIES: dict[str, list[Edit]] = {
    "TrainJob, script": [],
    "TrainJob, torchrun": TORCHRUN,
    "PyTorchJob, script": pytorch_job(),
    "PyTorchJob, torchrun": [*pytorch_job(), *TORCHRUN],
    "PyTorchJob with a coordinator": pytorch_job(coordinator=True),
    "elastic": [
        *pytorch_job(),
        *TORCHRUN,
        at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4}),
    ],
}


def told(spec: dict[str, Any]) -> list[str]:
    """The value of the variable in each container that has it."""
    if "trainer" in spec:
        containers = [spec["trainer"]]
    else:
        replicas = spec["pytorchReplicaSpecs"].values()
        containers = [c for each in replicas for c in each["template"]["spec"]["containers"]]
    env = [each for container in containers for each in container.get("env", [])]
    return [each["value"] for each in env if each["name"] == VARIABLE]


def of_entry(*edits: Edit) -> list[str]:
    return told(environment_plan(*edits).jobs["t5-large"].spec)


def of_file(text: str, *edits: Edit) -> list[str]:
    config = environment(*edits)
    manifest = made(text, environment=config)
    runtimes = {runtime.name: runtime for runtime in runtime_plans(config)}
    return told(manifest.plan(ManifestConfig(manifest="x.yaml", pool="g6e"), "t", runtimes).spec)


def master_and_workers(**more: Any) -> str:
    container = {"name": "pytorch", "image": "a/b:1", "command": ["torchrun", "t.py"]}
    beside = {"name": "logs", "image": "a/c:1"}

    def replica(count: int) -> dict[str, Any]:
        containers = [container, beside]
        return {"replicas": count, "template": {"spec": {"containers": containers}}}

    spec = {"pytorchReplicaSpecs": {"Master": replica(1), "Worker": replica(3)}, **more}
    return yaml.safe_dump(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "a"},
            "spec": spec,
        }
    )


@pytest.mark.parametrize("name", ENTRIES)
def test_every_node_of_an_entry_is_told_to_wait(name: str) -> None:
    found = of_entry(*ENTRIES[name])
    assert found and set(found) == {conf()}


def test_every_node_of_a_file_is_told_to_wait() -> None:
    assert of_file(FILE) == [conf()]
    assert of_file(master_and_workers(), OPERATOR) == [conf(), conf()], "the Master and the Workers"


def test_with_etcd_an_answer_of_etcd_is_waited_for_as_torch_does() -> None:
    etcd = at(f"{JOB}.torchrun.rendezvous", {"etcd": "etcd.ops.svc:2379"})
    [said] = of_entry(*TORCHRUN, etcd)
    assert read(said) == {key: str(NODES_SECONDS) for key in ("join_timeout", "timeout")}, (
        "and no read_timeout"
    )


def test_the_first_node_of_a_train_job_knows_itself_without_dns() -> None:
    """Its /etc/hosts has the whole name only (kubelet); a PyTorchJob's pod has the name itself."""

    def endpoint(*edits: Edit) -> str:
        planned = environment_plan(*edits).jobs["t5-large"]
        said = re.findall(
            r"--rdzv_endpoint=[^\s\"]+", json.dumps(planned.spec["trainer"]["command"])
        )
        return "".join(said).removeprefix("--rdzv_endpoint=")

    whole = "$(PET_MASTER_ADDR).training.svc.cluster.local:$(PET_MASTER_PORT)"
    assert endpoint(*TORCHRUN) == whole
    secret = at(f"{JOB}.secrets", {"A": {"secrets_manager": "a/b", "key": "c"}})
    assert endpoint(*TORCHRUN, secret) == whole, "behind the shell that reads secrets"
    legacy = environment_plan(*pytorch_job(), *TORCHRUN).jobs["t5-large"].spec
    assert "cluster.local" not in json.dumps(legacy)


def test_each_round_of_an_elastic_job_has_a_store_of_its_own_and_the_run_stays() -> None:
    """The variable came later than the run's identity."""

    def worker(*edits: Edit) -> tuple[str, list[str]]:
        job = environment_plan(*edits).jobs["t5-large"]
        env = job.spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"]
        return job.run, [each["value"] for each in env if each["name"] == OWN_STORE]

    elastic = (*pytorch_job(), at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4}))
    assert worker(*elastic)[1] == ["1"]
    assert worker(*pytorch_job())[1] == []
    assert worker(*elastic, at(f"{JOB}.env", {OWN_STORE: "0"}))[1] == ["0"]


def test_one_node_is_told_nothing() -> None:
    assert of_entry(at(f"{JOB}.nodes", 1)) == []
    assert of_file(FILE.replace("numNodes: 2", "numNodes: 1")) == []


def test_what_people_say_themselves_wins() -> None:
    own = "join_timeout=9000,read_timeout=9000"
    assert of_entry(at(f"{JOB}.env.{VARIABLE}", own)) == [own]
    runtime = {"image": "a/b:1", "max_restarts": 1, "env": {VARIABLE: own}}
    in_runtime = (at("trainer.own_runtimes.own", runtime), at(f"{JOB}.runtime", "own"))
    assert of_entry(*in_runtime) == []
    text = FILE.replace(
        "numNodes: 2", f'numNodes: 2\n    env: [{{name: {VARIABLE}, value: "{own}"}}]'
    )
    assert of_file(text) == [own]
    by_policy = {"elasticPolicy": {"rdzvConf": [{"key": "join_timeout", "value": "9000"}]}}
    assert of_file(master_and_workers(**by_policy), OPERATOR) == []
    of_file_runtime = at("trainer.own_runtimes.torch-distributed", runtime)
    assert of_file(FILE, of_file_runtime) == []


def test_a_pod_of_another_file_keeps_everything_else() -> None:
    """Nothing but the variable is added, and only to what trains."""
    manifest = made(master_and_workers(), environment=environment(OPERATOR))
    wanted = ManifestConfig(manifest="x.yaml", pool="g6e")
    spec = json.loads(json.dumps(manifest.plan(wanted, "t", {}).spec))
    for replica in spec["pytorchReplicaSpecs"].values():
        trains, beside = replica["template"]["spec"]["containers"]
        assert trains.pop("env") == [{"name": VARIABLE, "value": conf()}]
        assert "env" not in beside
    assert spec == manifest.objects[-1]["spec"]


@pytest.mark.parametrize("name", STACKS)
def test_no_limit_is_below_the_slowest_start_that_the_plan_prints(name: str) -> None:
    slowest = schedule(environment_plan(*STACKS[name])).slow_seconds
    limits = [int(value) for value in read(conf()).values()] + [INIT_TRIES * INIT_POLL_SECONDS]
    assert min(limits) >= FIRST_NODE_SECONDS >= max(2 * HALF_AN_HOUR, slowest)
    assert NODES_SECONDS * 1000 < 2**31, "milliseconds of poll()"
