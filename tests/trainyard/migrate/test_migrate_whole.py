"""`trainyard migrate` loses nothing of a file in silence, and prints no text that it changed to hide a
secret."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recording import WORKLOADS
from tests.support.tool import run_word
from trainyard.settings.reading.secrets.secrets import HIDDEN

TOKEN = "hf_" + "aBcDe" * 6 + "fGhI"
KEY = "0a1b2c3d4e" * 4
RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainingRuntime",
    "metadata": {"name": "mine"},
    "spec": {
        "mlPolicy": {"numNodes": 2, "torch": {"numProcPerNode": "auto"}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {
                                "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
                            },
                            "spec": {
                                "template": {
                                    "spec": {
                                        "imagePullSecrets": [{"name": "regcred"}],
                                        "volumes": [
                                            {"name": "shm", "emptyDir": {"medium": "Memory"}},
                                            {
                                                "name": "data",
                                                "persistentVolumeClaim": {"claimName": "fsx"},
                                            },
                                        ],
                                        "containers": [
                                            {
                                                "name": "node",
                                                "image": "registry.example.com/train:1.0",
                                                "command": ["torchrun", "/app/train.py"],
                                                "env": [
                                                    {"name": "DATA_DIR", "value": "/data/set-a"},
                                                    {"name": "SEED", "value": "1"},
                                                    {
                                                        "name": "HF_TOKEN",
                                                        "valueFrom": {
                                                            "secretKeyRef": {
                                                                "name": "hf",
                                                                "key": "token",
                                                            }
                                                        },
                                                    },
                                                ],
                                                "volumeMounts": [
                                                    {"name": "shm", "mountPath": "/dev/shm"},
                                                    {"name": "data", "mountPath": "/data"},
                                                ],
                                                "resources": {"limits": {"nvidia.com/gpu": 8}},
                                            }
                                        ],
                                    }
                                }
                            },
                        },
                    }
                ]
            }
        },
    },
}
TRAIN_JOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "j"},
    "spec": {
        "runtimeRef": {"kind": "TrainingRuntime", "name": "mine"},
        "trainer": {"numNodes": 2, "env": [{"name": "SEED", "value": "7"}]},
    },
}


def pytorch_job(**container: Any) -> dict[str, Any]:
    """A PyTorchJob whose container has these fields, and `volumes` for its pod."""
    spec = {"volumes": container.pop("volumes", [])}
    base = {"name": "pytorch", "image": "a/b:1", "command": ["torchrun", "/app/train.py"]}
    spec["containers"] = [{**base, "resources": {"limits": {"nvidia.com/gpu": 8}}, **container}]
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": spec}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }


def migrated(
    folder: Path, capsys: pytest.CaptureFixture[str], *documents: Any, code: int = 0
) -> tuple[dict[str, Any], str]:
    """The entry that is printed for the only job of these documents, and everything that is printed."""
    file = folder / "x.yaml"
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    assert run_word("migrate", [str(file)]) == code
    said = capsys.readouterr().out
    [entry] = yaml.safe_load(said)["jobs"].values()
    return entry, said


def runtime_job(runtime: Any) -> dict[str, Any]:
    return runtime["spec"]["template"]["spec"]["replicatedJobs"][0]


@pytest.mark.parametrize("name", ["node", "trainer", "gpu-workers"])
def test_what_the_runtime_gives_a_pod_is_in_the_entry(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = copy.deepcopy(RUNTIME)
    runtime_job(runtime)["name"] = name
    entry, said = migrated(tmp_path, capsys, runtime, TRAIN_JOB)
    assert entry["env"] == {"DATA_DIR": "/data/set-a", "SEED": "7"}
    assert entry["secrets"] == {"HF_TOKEN": {"secret": "hf", "key": "token"}}
    assert entry["pull_secrets"] == ["regcred"]
    assert entry["storage"] == {"fsx": {"path": "/data"}} and entry["shared_memory_gib"] == 64
    assert "env[0]" not in said
    assert re.search(r"env\[1\] \[x.yaml:\d+\]: .*'1'}: of the runtime", said), "the job's is 7"


def test_a_runtime_of_the_stack_keeps_its_own_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = copy.deepcopy(TRAIN_JOB)
    job["spec"]["runtimeRef"] = {"name": "torch-distributed"}
    job["spec"]["trainer"] |= {"image": "a/b:1", "command": ["torchrun", "a.py"]}
    assert migrated(tmp_path, capsys, job)[0]["env"] == {"SEED": "7"}


def test_a_second_mount_of_a_claim_is_named_with_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mounts = [
        {"name": "fsx", "mountPath": "/fsx"},
        {"name": "fsx", "mountPath": "/dataset", "subPath": "pre/dataset"},
    ]
    volumes = [{"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx"}}]
    entry, said = migrated(tmp_path, capsys, pytorch_job(volumes=volumes, volumeMounts=mounts))
    assert entry["storage"] == {"fsx": {"path": "/fsx"}}
    assert "/dataset: a second mount of claim fsx" in said
    assert "ln -sfn /fsx/pre/dataset /dataset" in said
    assert said.count("claim fsx is now store fsx") == 1


def test_a_mount_and_a_volume_without_names_have_nothing_to_do_with_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """migrate leaves each field out in turn, also the name of a volume."""
    job = pytorch_job(volumes=[{"hostPath": {"path": "/a"}}], volumeMounts=[{"mountPath": "/b"}])
    entry, said = migrated(tmp_path, capsys, job)
    assert "host_paths" not in entry and "/b: no volume" in said


def test_folders_of_the_node_say_what_they_become(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {
        "nvme": "/mnt/k8s-disks/0/cache",
        "models": "/data/models",
        "out": "/data/out",
        "dshm": "/dev/shm",
    }
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in folders.items()]
    mounts = [
        {"name": "nvme", "mountPath": "/cache"},
        {"name": "models", "mountPath": "/models", "readOnly": True},
        {"name": "out", "mountPath": "/out"},
        {"name": "out", "mountPath": "/out-too"},
        {"name": "dshm", "mountPath": "/dev/shm"},
    ]
    entry, said = migrated(tmp_path, capsys, pytorch_job(volumes=volumes, volumeMounts=mounts))
    assert entry["local_scratch"] == "/cache" and "its files are deleted with the pod" in said
    assert {it["path"] for it in entry["host_paths"].values()} == {"/models", "/out", "/out-too"}
    assert "host_paths.out: /out is read-only" in said and "baseline level refuses; for" in said
    assert "host_paths.models: /models is read-only" in said
    assert "no longer /dev/shm of the node" in said


def test_a_second_volume_in_memory_does_not_replace_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    volumes = [
        {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": size}}
        for name, size in (("shm", "32Gi"), ("cache", "8Gi"))
    ]
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "cache", "mountPath": "/cache"}]
    entry, said = migrated(tmp_path, capsys, pytorch_job(volumes=volumes, volumeMounts=mounts))
    assert entry["shared_memory_gib"] == 32 and "/cache: 8Gi: a second volume in memory" in said


def test_the_key_of_a_config_map_that_no_file_has_is_called_a_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    volumes = [{"name": "code", "configMap": {"name": "scripts"}}]
    mounts = [{"name": "code", "mountPath": "/app"}]
    job = pytorch_job(volumes=volumes, volumeMounts=mounts)
    entry, said = migrated(tmp_path, capsys, job)
    assert entry["files"] == {"sources": ["train.py"], "path": "/app"} and "is a guess" in said
    known = {"kind": "ConfigMap", "metadata": {"name": "scripts"}, "data": {"train.py": "1"}}
    assert "so this one is a guess" not in migrated(tmp_path, capsys, job, known)[1]


def test_no_file_name_is_invented_for_a_config_map_that_the_script_does_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    volumes = [{"name": "conf", "configMap": {"name": "sft-conf"}}]
    job = pytorch_job(volumes=volumes, volumeMounts=[{"name": "conf", "mountPath": "/conf"}])
    entry, said = migrated(tmp_path, capsys, job)
    assert "files" not in entry
    assert "/conf: no file names the keys of ConfigMap sft-conf; write them to files" in said


def test_the_limits_of_restarts_of_a_pytorch_job_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = gang("OnFailure")
    job["spec"]["runPolicy"] = {"backoffLimit": 10}
    said = migrated(tmp_path, capsys, job)[1]
    assert "restarts: 10" in said and "the object has backoffLimit 41" in said
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 2, "maxRestarts": 3}
    said = migrated(tmp_path, capsys, job)[1]
    assert "restarts: 3" in said and "elasticPolicy.maxRestarts [" not in said
    job["spec"]["elasticPolicy"]["maxRestarts"] = 0
    said = migrated(tmp_path, capsys, job)[1]
    assert "restarts: 0" in said and "restartPolicy is Never" not in said


def gang(policy: str | None) -> dict[str, Any]:
    """A PyTorchJob with a Master and a Worker of one restartPolicy; with None, none is written."""
    job = pytorch_job()
    roles = job["spec"]["pytorchReplicaSpecs"]
    roles["Master"] |= {"restartPolicy": policy}
    if policy is None:
        del roles["Master"]["restartPolicy"]
    roles["Worker"] = copy.deepcopy(roles["Master"])
    return job


def test_a_job_that_never_restarts_does_not_as_a_twin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = gang("Never")
    job["spec"]["runPolicy"] = {"backoffLimit": 3}
    said = migrated(tmp_path, capsys, job)[1]
    assert "pytorch_job: {clean_pods: none, restarts: 0}" in said
    assert re.search(
        r"backoffLimit \[x.yaml:\d+\]: 3: the first pod that fails ends the job, since its"
        r" restartPolicy is Never, so pytorch_job.restarts is 0",
        said,
    )
    del job["spec"]["runPolicy"]
    assert "pytorch_job: {clean_pods: none}" in migrated(tmp_path, capsys, job)[1]
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    assert "pytorch_job: {clean_pods: none, restarts: 5}" in migrated(tmp_path, capsys, job)[1]


@pytest.mark.parametrize("policy", ["OnFailure", "Always", None])
def test_a_job_that_restarts_without_a_limit_restarts_a_few_times_as_a_twin(
    policy: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = migrated(tmp_path, capsys, gang(policy))[1]
    assert "pytorch_job: {clean_pods: none, restarts: 5}" in said
    assert re.search(
        r"pytorchReplicaSpecs \[x.yaml:\d+\]: no runPolicy.backoffLimit: failed pods restart without a limit, and"
        r" pytorch_job.restarts 5 lets the whole gang restart 5 times",
        said,
    )


# Pods of another role that are alike.


def test_what_both_roles_have_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value that is changed in one role to see where it is printed makes the roles unlike."""
    job = pytorch_job(
        command=["bash", "-c", 'torchrun train.py --lr "$1"', "x", "--lr=3"],
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "fsx"}}],
        volumeMounts=[{"name": "data", "mountPath": "/data", "subPath": "a", "readOnly": True}],
        lifecycle={"preStop": {"exec": {"command": ["sleep", "30"]}}},
    )
    roles = job["spec"]["pytorchReplicaSpecs"]
    pod = roles["Master"]["template"]["spec"]
    pod |= {
        "terminationGracePeriodSeconds": 600,
        "hostIPC": True,
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["data"]}],
        "activeDeadlineSeconds": 7200,
    }
    alone = named_as_not_in_the_entry(migrated(tmp_path, capsys, job)[1])
    assert {"subPath: a", "command[4]: --lr=3", "terminationGracePeriodSeconds: 600"} <= {*alone}
    roles["Worker"] = copy.deepcopy(roles["Master"])
    assert named_as_not_in_the_entry(migrated(tmp_path, capsys, job)[1]) == alone
    roles["Worker"]["template"]["spec"]["terminationGracePeriodSeconds"] = 30
    unlike = named_as_not_in_the_entry(migrated(tmp_path, capsys, job)[1])
    assert {*alone} - {*unlike} == {"terminationGracePeriodSeconds: 600"}
    [line] = [line for line in unlike if line.startswith("termination")]
    assert "30 in Worker, 600 in Master" in line and len(unlike) == len(alone)


def named_as_not_in_the_entry(said: str) -> list[str]:
    """The last step of each field that is not in the entry, with its value."""
    section = said.partition("# Not in the entry:\n")[2]
    lines = re.match(r"(?:#   .*\n)*", section)
    found = re.findall(r"\.([\w\[\]]+) \[x\.yaml:\d+\](: .*)", lines[0] if lines else "")
    return sorted("".join(each) for each in found)


# Pods of another role that are not alike.


def test_what_only_one_role_has_is_one_line_for_one_thing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A volume has a name, a source, and mounts; an annotation has a key and a value."""
    job = pytorch_job(command=["torchrun", "train.py"])
    roles = job["spec"]["pytorchReplicaSpecs"]
    master, worker = roles["Master"], roles.setdefault("Worker", copy.deepcopy(roles["Master"]))
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    mounts = [{"name": "home", "mountPath": "/home"}, {"name": "data", "mountPath": "/data"}]
    for role, number in ((master, 2), (worker, 1)):
        pod = role["template"]["spec"]
        pod["volumes"] = [home, data][:number]
        pod["containers"][0]["volumeMounts"] = mounts[:number]
    master["template"]["metadata"] = {"annotations": {"example.com/a": "b"}}
    said = [line for line in migrated(tmp_path, capsys, job)[1].splitlines() if "all like" in line]
    assert [re.sub(r".*\.(\S+) \[x.yaml:\d+\]: ", r"\1 ", line) for line in sorted(said)] == [
        "com/a only Master has b: the pods of an entry are all like Master",
        "volumes[1] only Master has data: the pods of an entry are all like Master",
    ]
    del worker["template"]["spec"]["volumes"]
    del worker["template"]["spec"]["containers"][0]["volumeMounts"]
    said = [line for line in migrated(tmp_path, capsys, job)[1].splitlines() if "all like" in line]
    assert len(said) == 2 and "volumes [" in said[0] and "has home, data: the pods" in said[0]
    worker["template"]["spec"]["containers"][0]["volumeMounts"] = mounts
    worker["template"]["spec"]["volumes"] = [
        home,
        {**data, "persistentVolumeClaim": {"claimName": "b"}},
    ]
    said = migrated(tmp_path, capsys, job)[1]
    assert "claimName [x.yaml" in said and "b in Worker, data in Master" in said


# Secrets.


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        (f"export HF_TOKEN={TOKEN}\ntorchrun train.py\n", "torchrun train.py\n"),
        (f"wandb login {KEY} && torchrun train.py", "torchrun train.py\n"),
        (f"cd /app; export HF_TOKEN={TOKEN}; torchrun train.py", "cd /app; torchrun train.py\n"),
        (f"torchrun train.py \\\n  --token {TOKEN}\necho done\n", "torchrun train.py\necho done\n"),
        (
            f"torchrun train.py \\\n  --token {TOKEN} \\\n  --lr 1\n",
            "torchrun train.py \\\n  --lr 1\n",
        ),
        (f"python - <<'E'\nlogin('{TOKEN}')\ntrain()\nE\n", "python - <<'E'\ntrain()\nE\n"),
    ],
)
def test_a_line_with_a_secret_is_left_out_and_named(
    script: str, kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = pytorch_job(command=["bash", "-c", script])
    entry, said = migrated(tmp_path, capsys, job, code=1)
    assert entry["script"].endswith(kept) and HIDDEN not in said and TOKEN[:12] not in said
    number = next(n for n, line in enumerate(script.split("\n"), 1) if TOKEN in line or KEY in line)
    assert re.search(rf"\[x.yaml:\d+\]: line {number} of the script is left out: a secret", said)
    assert "secrets: {HF_TOKEN: {secrets_manager: NAME}}" in said


def test_an_argument_with_a_secret_is_left_out_with_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "torchrun",
        "train.py",
        "--token",
        TOKEN,
        f"--api-key={KEY}",
        f"--hf_token={TOKEN}",
        "-v",
    ]
    entry, said = migrated(tmp_path, capsys, pytorch_job(command=words), code=1)
    assert entry["script"].endswith("torchrun train.py -v\n")
    assert (
        KEY[:12] not in said
        and HIDDEN not in said
        and TOKEN[:12] not in said
        and "--token, is left out" in said
    )


@pytest.mark.parametrize(
    "job",
    [
        pytorch_job(env=[{"name": "MY_TOKEN", "value": TOKEN}]),
        pytorch_job(env=[{"name": TOKEN, "value": "1"}]),
        pytorch_job(image=f"registry.example.com/{TOKEN}:1"),
        pytorch_job(volumes=[{"name": "a", "hostPath": {"path": f"/{TOKEN}"}}]),
        {**pytorch_job(), "metadata": {"name": "j", "labels": {"owner": TOKEN}}},
        {**pytorch_job(), "metadata": {"name": TOKEN}},
        {**pytorch_job(), "metadata": {"name": "j", "annotations": {"a": f"see {TOKEN}"}}},
    ],
)
def test_no_changed_text_is_printed_wherever_the_secret_stands(
    job: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(job))
    run_word("migrate", [str(file)])
    said = capsys.readouterr().out
    before, _, problems = said.partition("# Problems in the original file:")
    assert HIDDEN not in before and TOKEN[:12] not in said and "a secret in clear" in problems


def test_a_script_without_a_secret_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "python -c 'login(token=os.environ[\"HF_TOKEN\"])'\ntorchrun train.py\n"
    entry, said = migrated(tmp_path, capsys, pytorch_job(command=["bash", "-c", script]))
    assert entry["script"].endswith(script) and "a secret" not in said


# Every value.


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list) and value:
        for step, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(each, (*path, step))
    else:
        yield path, value


def _marked(documents: list[Any]) -> tuple[list[Any], dict[str, str]]:
    """The documents with a mark in each text that a person chooses, and mark → its path."""
    documents = copy.deepcopy(documents)
    marks: dict[str, str] = {}
    for path, value in [*_leaves(documents)]:
        steps = [str(step) for step in path]
        if not _is_chosen(steps, value):
            continue
        mark = f"mark{len(marks):03d}"
        marks[mark] = ".".join(steps)
        at: Any = documents
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = f"{value}-{mark}" if value else mark
    return documents, marks


def _is_chosen(steps: list[str], value: Any) -> bool:
    """Whether a leaf is a text of the job or its runtime that can be any other."""
    last, above = steps[-1], steps[-3:-1]
    return isinstance(value, str) and (
        last in ("value", "image", "mountPath", "claimName", "subPath")
        or (last == "path" and "hostPath" in above)
        or (last in ("name", "key") and ("secretKeyRef" in above or "imagePullSecrets" in above))
        or ("command" in steps or "args" in steps)
        or ("labels" in above or "annotations" in above)
    )


@pytest.mark.parametrize(
    "path",
    sorted([*WORKLOADS.glob("*.yaml"), *WORKLOADS.glob("valid/*.yaml")]),
    ids=lambda p: p.stem,
)
def test_every_text_of_a_file_is_printed_or_named_with_its_place(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each text has a mark of its own: the mark is in the entry or in a sentence, or a sentence names
    the field, or something above it, with its line."""
    try:
        documents = json.loads(json.dumps([*yaml.safe_load_all(path.read_text())]))
    except yaml.YAMLError:
        pytest.skip("no YAML on purpose")
    jobs = [it for it in documents if it and re.search("TrainJob|PyTorchJob", it.get("kind", ""))]
    if len(jobs) != 1:
        pytest.skip("no job, or several")
    referred = jobs[0]["spec"].get("runtimeRef", {}).get("name")
    documents = jobs + [
        it
        for it in documents
        if it and "Runtime" in it.get("kind", "") and it["metadata"]["name"] == referred
    ]
    documents, marks = _marked(documents)
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False, width=10**6))
    run_word("migrate", [str(file)])
    said = capsys.readouterr().out.partition("# Problems in the original file")[0]
    if "jobs:" not in said:
        pytest.skip("cannot be migrated, which is said")
    named = {_path(found) for found in re.findall(r"#   ([\w.\[\]/-]+) \[x\.yaml:\d+\]", said)}
    lost = [
        place
        for mark, place in marks.items()
        if mark not in said and not _is_named(place.split(".")[1:], named)
    ]
    assert lost == []


def _path(shown: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^.\[\]]+", shown))


def _is_named(steps: list[str], named: set[tuple[str, ...]]) -> bool:
    if any(tuple(steps[:n]) in named for n in range(1, len(steps) + 1)):
        return True
    return any(name[-1] in steps for name in named if name[-1] in GENERAL)


GENERAL = {
    *("nodeSelector", "affinity", "tolerations", "initContainers", "securityContext", "envFrom"),
    *(
        "topologySpreadConstraints",
        "resources",
        "resourcesPerNode",
        "initializer",
        "podAntiAffinity",
    ),
}
"""Fields of which one sentence speaks for all places."""
