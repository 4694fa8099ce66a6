"""From a job's description to its object, its files and its identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cases.jobs import JOB, SCRIPT, TOKEN, pytorch_job, tune
from tests.support.recording import CHECKOUT
from tests.support.stackfile import SCRATCH, Edit, at, environment_plan, without
from trainyard.catalog import versions
from trainyard.derive import commands
from trainyard.objects.jobs.rendezvous import VARIABLE, conf
from trainyard.plans.jobs import JobPlan


def job(*edits: Edit) -> JobPlan:
    return environment_plan(*edits).jobs["t5-large"]


def pod(planned: JobPlan) -> dict[str, Any]:
    return planned.spec["podTemplateOverrides"][0]["spec"]


def container(planned: JobPlan) -> dict[str, Any]:
    return pod(planned)["containers"][0]


def mounted(planned: JobPlan) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container(planned)["volumeMounts"]}


# Directories of runs.


def test_each_run_begins_afresh_in_a_directory_of_its_own() -> None:
    def second(directory: str) -> JobPlan:
        return job(at(f"{JOB}.run", 2), at(f"{JOB}.checkpoints.directory", directory))

    def checkpoints(planned: JobPlan) -> str:
        [mount] = [
            m for m in container(planned)["volumeMounts"] if m["mountPath"] == "/checkpoints"
        ]
        return mount["subPath"]

    fresh, same = second("t5-large/{run}"), second("t5-large")
    assert (checkpoints(fresh), fresh.resumes_from) == ("t5-large/2", None)
    assert (checkpoints(same), same.resumes_from) == ("t5-large", "scratch/t5-large")


def _saves(*edits: Edit) -> tuple[str, str]:
    """Identity of the run, and the directory that its pods mount for checkpoints."""
    planned = job(*edits)
    mounts = container(planned)["volumeMounts"]
    [place] = [each["subPath"] for each in mounts if each["mountPath"] == "/checkpoints"]
    assert planned.checkpoints == f"scratch/{place}"
    return planned.run, place


def test_a_changed_job_begins_afresh_in_a_directory_of_its_description() -> None:
    afresh = at(f"{JOB}.checkpoints.when_changed", "afresh")
    run, place = _saves()
    same, own = _saves(afresh)
    assert same == run, "the setting starts no run"
    assert own == f"{place}/{run.partition('-')[0]}"
    other, elsewhere = _saves(afresh, at(f"{JOB}.env.SEED", "7"))
    assert other != run and elsewhere != own and elsewhere.startswith(f"{place}/")
    again, still = _saves(afresh, at(f"{JOB}.run", 2))
    assert again == f"{run.partition('-')[0]}-2" and still == own, "it goes on"
    assert _saves(at(f"{JOB}.checkpoints.when_changed", "resume")) == (run, place)


# Twins.


def test_one_description_gives_a_train_job_and_its_pytorch_job_twin() -> None:
    train, legacy = job(), job(*pytorch_job())
    assert (train.kind, legacy.kind, legacy.runtime) == ("TrainJob", "PyTorchJob", None)
    replicas = legacy.spec["pytorchReplicaSpecs"]
    assert (
        sum(each["replicas"] for each in replicas.values())
        == train.spec["trainer"]["numNodes"]
        == legacy.nodes
    )
    for replica in replicas.values():
        made, [body] = replica["template"]["spec"], replica["template"]["spec"]["containers"]
        assert (
            body["command"] == train.spec["trainer"]["command"]
            and body["image"] == train.spec["trainer"]["image"]
        )
        assert body["resources"] == train.spec["trainer"]["resourcesPerNode"]
        assert body["volumeMounts"] == container(train)["volumeMounts"]
        assert {key: made[key] for key in ("nodeSelector", "tolerations", "volumes")} == {
            key: pod(train)[key] for key in ("nodeSelector", "tolerations", "volumes")
        }


# What a job brings.


def test_a_script_of_the_checkout_is_a_config_map_called_by_its_content() -> None:
    files = [
        without(SCRIPT),
        at(f"{JOB}.files", {"sources": ["README.md"], "path": "/code"}),
        at(f"{JOB}.torchrun", {"script": "/code/README.md"}),
    ]
    planned = job(*files)
    assert planned.files and planned.files.data == {
        "README.md": (CHECKOUT / "README.md").read_text()
    }
    assert planned.files.name.startswith("t5-large-files-") and mounted(planned)["/code"] == "files"
    assert {"name": "files", "configMap": {"name": planned.files.name}} in pod(planned)["volumes"]


def test_a_changed_script_is_another_run(tmp_path: Path) -> None:
    def run(text: str) -> str:
        (tmp_path / "train.py").write_text(text)
        edits = [
            without(SCRIPT),
            at(f"{JOB}.files", {"sources": ["train.py"]}),
            at(f"{JOB}.torchrun", {"script": "/workspace/train.py"}),
        ]
        return environment_plan(*edits, folder=tmp_path).jobs["t5-large"].run

    assert run("print(1)") == run("print(1)") != run("print(2)")


def test_another_release_of_the_trainer_is_another_object_and_not_another_run() -> None:
    older, newer = job(), job(at("trainer.version", "2.3.0"))
    assert older.spec != newer.spec and older.run == newer.run


def test_a_secret_stays_where_it_is() -> None:
    planned = job(at(f"{JOB}.secrets", TOKEN), at(f"{JOB}.pull_secrets", ["registry"]))
    assert {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}},
    } in (planned.spec["trainer"]["env"])
    assert pod(planned)["imagePullSecrets"] == [{"name": "registry"}]


def test_a_folder_of_the_node_is_read_only_and_opens_the_namespace() -> None:
    edits = [at(f"{JOB}.host_paths", {"data": {"host": "/data/scripts", "path": "/scripts"}})]
    plan = environment_plan(*edits)
    assert {"name": "data", "hostPath": {"path": "/data/scripts", "type": "Directory"}} in pod(
        plan.jobs["t5-large"]
    )["volumes"]
    [mount] = [
        each for each in container(plan.jobs["t5-large"])["volumeMounts"] if each["name"] == "data"
    ]
    assert (
        mount["readOnly"]
        and plan.workspace.host_paths
        and not environment_plan().workspace.host_paths
    )


def test_events_and_checkpoints_on_one_store_are_below_one_mount() -> None:
    """The TrainJob CRD keys mounts by volume, so there cannot be two of one claim."""
    planned = job(at(f"{JOB}.tensorboard", {"store": "scratch", "directory": "events"}))
    env = {each["name"]: each["value"] for each in planned.spec["trainer"]["env"]}
    assert env == {
        "CHECKPOINT_DIR": "/stores/scratch/t5-large",
        "TENSORBOARD_DIR": "/stores/scratch/events",
        VARIABLE: conf(),
        "PYTHONUNBUFFERED": "1",
    }
    assert list(mounted(planned)) == ["/dev/shm", "/stores/scratch"]


def test_torchrun_meets_at_the_first_node_or_at_an_etcd() -> None:
    def command(**more: Any) -> list[str]:
        return job(
            without(SCRIPT),
            at(f"{JOB}.torchrun", {"script": "a.py", "arguments": ["--x", "1"], **more}),
        ).spec["trainer"]["command"]

    assert command() == [
        "torchrun",
        "--max_restarts=0",
        "--rdzv_backend=c10d",
        "--rdzv_endpoint=$(PET_MASTER_ADDR).training.svc.cluster.local:$(PET_MASTER_PORT)",
        "a.py",
        "--x",
        "1",
    ]
    assert command(rendezvous={"etcd": "etcd:2379"})[2:5] == [
        "--rdzv_backend=etcd-v2",
        "--rdzv_endpoint=etcd:2379",
        "--rdzv_id=$(PET_MASTER_ADDR)",  # of this run alone: two runs on an etcd must not meet
    ]


def test_an_id_that_came_later_starts_no_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned() -> JobPlan:
        meets = {"script": "a.py", "rendezvous": {"etcd": "etcd:2379"}}
        return job(without(SCRIPT), at(f"{JOB}.torchrun", meets))

    before = planned()
    monkeypatch.setattr(commands, "RUN_ID", "--rdzv_id=another")
    assert before.spec != planned().spec and before.run == planned().run


def test_labels_are_of_the_job_and_of_its_pods() -> None:
    planned = job(at(f"{JOB}.labels", {"kueue.x-k8s.io/queue-name": "team"}))
    assert planned.labels == planned.spec["podTemplateOverrides"][0]["metadata"]["labels"]


@pytest.mark.parametrize("version", versions.TRAINERS)
def test_a_job_on_a_torchtune_runtime_runs_its_recipe_and_has_its_store(version: str) -> None:
    bare = [
        without(f"{JOB}.checkpoints"),
        at(f"{JOB}.storage", {}),
        at("trainer.version", version),
    ]
    plan = environment_plan(*tune(), *bare)
    planned, [runtime] = (
        plan.jobs["t5-large"],
        [each for each in plan.runtimes if each.name == "tune"],
    )
    assert "command" not in planned.spec["trainer"] and planned.stores == ("scratch",)
    assert f"'claimName': '{SCRATCH}'" in str(runtime.spec) and "volumeClaimPolicies" not in str(
        runtime.spec
    )


def test_another_model_to_tune_is_another_run_and_another_token_is_not() -> None:
    fetched = {"model": "qwen2.5-1.5b", "store": "scratch", "directory": "tuned"}
    other = {"model": "llama3.2-1b"}
    assert job(*tune()).run == job(*tune(torchtune=fetched | {"token": TOKEN["HF_TOKEN"]})).run
    assert job(*tune()).run != job(*tune(torchtune=fetched | other)).run


def test_a_job_needs_its_runtimes_priority() -> None:
    own = "trainer.own_runtimes.torch-distributed-resilient.priority"
    assert job(at("priorities", {"high": 9}), at(own, "high")).priorities == ("high",)
    assert job(
        at("priorities", {"high": 9}), *pytorch_job(), at(f"{JOB}.priority", "high")
    ).priorities == ("high",)


# The command of a runtime.


def test_a_job_without_a_command_takes_that_of_its_runtime_and_runs_again_with_another() -> None:
    def ran(*command: str) -> JobPlan:
        own = "trainer.own_runtimes.torch-distributed-resilient.command"
        return job(at(own, [*command]), without(SCRIPT))

    planned = ran("torchrun", "/app/a.py")
    assert not {"command", "args"} & planned.spec["trainer"].keys()
    assert ran("torchrun", "/app/a.py").run == planned.run != ran("torchrun", "/app/b.py").run


def test_a_pytorch_job_has_its_roles_labels_and_pulls_as_it_says() -> None:
    roles = {"master_labels": {"role": "master"}, "worker_labels": {"role": "worker"}}
    labels = at(f"{JOB}.labels", {"app": "llm"})
    planned = job(*pytorch_job(image_pull_policy="if_not_present", **roles), labels)
    for role, replica in planned.spec["pytorchReplicaSpecs"].items():
        template = replica["template"]
        assert template["metadata"]["labels"] == {"app": "llm", "role": role.lower()}
        [body] = template["spec"]["containers"]
        assert body["imagePullPolicy"] == "IfNotPresent"
    plain = job(*pytorch_job(), labels)
    assert plain.run != planned.run
    assert "imagePullPolicy" not in str(plain.spec) and "role" not in str(plain.spec)


MANAGED = {"HF_TOKEN": {"secrets_manager": "vision/hf", "key": "token"}}


@pytest.mark.parametrize("kind", [[], pytorch_job()], ids=["TrainJob", "PyTorchJob"])
def test_a_managed_secret_is_mounted_and_another_one_is_another_run(kind: list[Edit]) -> None:
    planned, plain = job(*kind, at(f"{JOB}.secrets", MANAGED)), job(*kind)
    assert planned.secrets == ("vision/hf",) and plain.secrets == ()
    [made] = planned.objects
    assert f"'{made['metadata']['name']}'" in str(planned.spec)
    assert "secrets-store.csi.k8s.io" in str(planned.spec)
    other = {"HF_TOKEN": {"secrets_manager": "vision/hf", "key": "other"}}
    runs = {planned.run, plain.run, job(*kind, at(f"{JOB}.secrets", other)).run}
    assert len(runs) == 3


def test_a_secret_of_kubernetes_stays_beside_a_managed_one() -> None:
    planned = job(at(f"{JOB}.secrets", {**MANAGED, "OTHER": TOKEN["HF_TOKEN"]}))
    variables = {each["name"]: each for each in planned.spec["trainer"]["env"]}
    assert "OTHER" in variables and "HF_TOKEN" not in variables


def test_a_runtime_with_a_pool_has_its_nodes_and_the_run_of_a_job_stays() -> None:
    own = "trainer.own_runtimes.torch-distributed-resilient.pool"
    before, after = environment_plan(), environment_plan(at(own, "g6e"))
    [runtime] = [each for each in after.runtimes if each.name == "torch-distributed-resilient"]
    [node] = runtime.spec["template"]["spec"]["replicatedJobs"]
    pod = node["template"]["spec"]["template"]["spec"]
    wanted = after.jobs["t5-large"].spec
    assert pod["containers"][0]["resources"] == wanted["trainer"]["resourcesPerNode"]
    assert pod["nodeSelector"]["trainyard.io/pool"] == "g6e"
    assert before.jobs["t5-large"].run == after.jobs["t5-large"].run
