"""A job becomes an entry that the planner accepts, and everything that is lost is printed."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic
import pytest
import yaml

from tests.support.recording import CHECKOUT, WORKLOADS
from tests.support.scalars import TEXTS
from tests.support.stackfile import Edit, at, errors
from tests.support.tool import run_word
from trainyard.catalog.scalars import EngineLoader
from trainyard.settings.job import JobConfig

FOLDER = WORKLOADS
KEEP_IT = "# To keep it a PyTorchJob, replace `runtime` with"
TOO_LARGE = "must be at most 8, the max_nodes of pool"
FILE_IS_MISSING = "list files in the folder of the stack file"
CPU = at("pools.cpu", {"instance_types": ["m7i.8xlarge"], "max_nodes": 4})
GPU = at("pools.gpu", {"instance_types": ["g6e.12xlarge"], "max_nodes": 4})


def printed(
    capsys: pytest.CaptureFixture[str], *names: str, code: int = 0
) -> tuple[dict[str, Any], list[str]]:
    """The entries and the comments that the command prints for files."""
    files = [
        str(path)
        for name in names
        for path in ([name] if name.startswith("/") else sorted(FOLDER.glob(f"{name}*")))
    ]
    assert run_word("migrate", files) == code
    output = capsys.readouterr().out
    return (yaml.safe_load(output) or {}).get("jobs", {}), [
        line for line in output.splitlines() if line.startswith("#")
    ]


def refused(entries: dict[str, Any], *edits: Edit, stores: Sequence[str] = ()) -> list[str]:
    """Errors of the dev stack with these entries and with stores of the names that they use. The
    files of ConfigMaps do not exist yet."""
    added = [at(f"storage.{store}", {"efs": {}, "data": "delete"}) for store in stores]
    jobs = [at(f"jobs.{name}", entry) for name, entry in entries.items()]
    return [error for error in errors(*edits, *added, *jobs) if FILE_IS_MISSING not in error]


def typed(entry: dict[str, Any]) -> JobConfig:
    """The entry as settings; a setting that does not exist is refused."""
    assert {*entry} <= {*JobConfig.__annotations__}
    return pydantic.TypeAdapter(JobConfig).validate_python(entry)


def test_placement_of_pods_and_copies_to_s3_have_an_explanation(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "spread.yaml"
    given = (FOLDER / "valid/trainjob-spread-and-schedulers.yaml").read_text()
    file.write_text(
        given.replace("image: acme/train:2", "image: acme/train:2, command: [torchrun, a.py]")
    )
    _, spread = printed(capsys, str(file))
    assert any(
        "podAntiAffinity [spread.yaml:22]: a pod requests a whole node" in line for line in spread
    ), spread
    _, copied = printed(capsys, "valid/trainjob-checkpoints-to-s3")
    [said] = [line for line in copied if "s3://" in line]
    assert "lustre.repositories" in said and "a team with s3_writes" in said


def test_a_command_that_is_text_stays_the_text_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    entries, _ = printed(capsys, "b-t5-large")
    script = entries["t5-large"]["script"]
    assert (
        script.startswith("git clone ") and "'" not in script and script.endswith(" t5-fsdp.py\n")
    )


def test_a_train_job_becomes_an_entry_with_the_same_script(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries, said = printed(capsys, "a-t5")
    [job] = yaml.safe_load_all((FOLDER / "a-t5-large.trainjob.yaml").read_text())
    entry = entries["t5-large"]
    assert entry["script"] == job["spec"]["trainer"]["command"][2]
    assert (entry["runtime"], entry["nodes"], entry["pool"]) == ("torch-distributed", 2, "g6e")
    assert "gpus_per_node" not in entry and refused(entries) == []
    assert any(
        "nodeSelector [a-t5-large.trainjob.yaml:" in line and "the pool decides" in line
        for line in said
    )


def test_every_text_of_a_job_is_the_same_text_for_pyyaml_and_for_pulumi(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A bare 1e-3 is a number for Pulumi, which a command cannot have."""
    variables = {f"X{number}": text for number, text in enumerate(TEXTS)}
    trainer = {
        "image": "image:1",
        "numNodes": 1,
        "args": ["--lr", "1e-3", "--v", "0o17", "--e", "1e5", "--f", "+1e3"],
        "env": [{"name": name, "value": text} for name, text in variables.items()],
    }
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "mine"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
    }
    (file := tmp_path / "job.yaml").write_text(json.dumps(job))
    assert run_word("migrate", [str(file)]) == 0
    said = capsys.readouterr().out
    for read in (yaml.safe_load(said), yaml.load(said, EngineLoader)):
        entry = read["jobs"]["mine"]
        assert entry["arguments"] == trainer["args"]
        assert entry["env"] == variables


@pytest.mark.parametrize(
    ("mount", "saves", "storage", "said"),
    [
        ("/checkpoints", "/checkpoints/run", "/checkpoints", "CHECKPOINT_DIR in the script"),
        ("/checkpoints", "/checkpoints", None, "CHECKPOINT_DIR in the script names it too"),
        ("/ckpt", "/ckpt", "/ckpt", "write $CHECKPOINT_DIR for /ckpt in the script"),
    ],
)
def test_a_script_finds_its_checkpoints_where_they_were_in_the_claim(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    mount: str,
    saves: str,
    storage: str | None,
    said: str,
) -> None:
    """A directory below the claim was mounted at the claim's own path: the script wrote to run/run."""
    container = {
        "name": "pytorch",
        "image": "image:1",
        "command": ["torchrun", "train.py", f"--output_dir={saves}"],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        "volumeMounts": [{"name": "ckpt", "mountPath": mount}],
    }
    volume = {"name": "ckpt", "persistentVolumeClaim": {"claimName": "ckpt-pvc"}}
    template = {"spec": {"containers": [container], "volumes": [volume]}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "mine"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}},
    }
    (file := tmp_path / "job.yaml").write_text(json.dumps(job))
    assert run_word("migrate", [str(file)]) == 0
    out = capsys.readouterr().out
    [entry] = yaml.safe_load(out)["jobs"].values()
    assert entry["checkpoints"]["store"] == "ckpt"
    assert entry.get("storage", {}).get("ckpt", {}).get("path") == storage
    assert said in out


def test_the_30b_job_comes_out_repaired(capsys: pytest.CaptureFixture[str]) -> None:
    entries, said = printed(capsys, "e-q")
    entry = entries["qwen3-30b-fullft"]
    assert entry["checkpoints"] == {"store": "llm-checkpoints", "directory": "qwen3-30b-fullft"}
    assert {store: mount["path"] for store, mount in entry["storage"].items()} == {
        "llm-datasets": "/mnt/datasets",
        "llm-checkpoints": "/mnt/checkpoints",
    }
    assert entry["script"].startswith(
        "export MASTER_ADDR=${PET_MASTER_ADDR}\ntorchrun --nproc_per_node=8 --nnodes=2"
    )
    assert (
        "PYTORCH_JOB" not in entry["script"]
        and "--rdzv_endpoint=${MASTER_ADDR}:29400" in entry["script"]
    )
    [error] = refused(entries, stores=["llm-datasets", "llm-checkpoints"])
    assert "must not contain a placeholder: nothing fills it in; got <your-registry>" in error
    told = "\n".join(said)
    for words in (
        "affinity [e-qwen3-30b-fullft.flawed.pytorchjob.yaml:26]: the pool decides",
        "resources [e-qwen3-30b-fullft.flawed.pytorchjob.yaml:83]: GPUs, EFA",
        "max_restarts",
        "it is one comment",
        "exports MASTER_ADDR from PET_*",
        "qwen3-30b-fullft: {pytorch_job: {clean_pods: none, restarts: 5, image_pull_policy: if_not_present,"
        " master_labels: {role: master}, worker_labels: {role: worker}}}",
    ):
        assert words in told
    assert entry["secrets"]["HUGGING_FACE_HUB_TOKEN"] == {
        "secret": "hf-token",
        "key": "HUGGING_FACE_HUB_TOKEN",
    }
    assert {*entry["secrets"]} >= {"LANGFUSE_HOST", "LANGFUSE_SECRET_KEY"} and entry[
        "shared_memory_gib"
    ] == 64


def test_a_plain_python_script_gets_what_v1_gave_it(capsys: pytest.CaptureFixture[str]) -> None:
    entries, said = printed(capsys, "c-", code=1)
    entry = entries["pytorch-dist-job"]
    assert entry["script"].splitlines()[:4] == [
        *(f"export {name}=${{PET_{name}}}" for name in ("MASTER_ADDR", "MASTER_PORT")),
        "export RANK=${PET_NODE_RANK}",
        "export WORLD_SIZE=$((PET_NNODES * 1))",
    ]
    assert (entry["nodes"], entry["gpus_per_node"]) == (3, 1)
    [error] = refused(entries, GPU)
    assert "must not contain a placeholder: nothing fills it in; got <GIT_REPO>" in error
    assert any("must be YAML" in line for line in said) and any("NCCL" in line for line in said)


@pytest.mark.parametrize(
    "name", ["d-trainjob-with-configmap", "d-trainjob-with-hostpath", "d-trainjob-with-image"]
)
def test_a_job_on_cpus_takes_image_and_command_from_its_runtime(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entries, said = printed(capsys, name, "d-training")
    [entry] = entries.values()
    assert (entry["processes_per_node"], entry["pool"], entry["runtime"]) == (
        2,
        "cpu",
        "training-runtime-demo",
    )
    assert "${PET_NODE_RANK}" in entry["script"]
    runtime = at(
        "trainer.own_runtimes.training-runtime-demo", {"image": "a/b:1", "max_restarts": 0}
    )
    assert refused(entries, CPU, runtime) == []
    files = {"sources": ["pytorch-demo.py"], "path": "/workspace"} if "configmap" in name else None
    assert entry.get("files") == files
    assert ("host_paths" in entry) == ("hostpath" in name)
    assert ("files: write pytorch-demo.py from kubectl get configmap" in "\n".join(said)) == (
        "configmap" in name
    )


NOT_MIGRATED = {
    "trainjob-unknown-runtime": "no image",
}
"""Sample → what neither it nor a runtime that the Trainer ships has."""
NOT_COMPLETE = {
    "pytorchjob-with-its-objects": "got NODE_RANK",  # of a ConfigMap, by envFrom
    "trainjob-nfs-and-local-cache": "got /nfs/run",  # of a volume that is no claim
}
"""Sample → what its entry lacks: it comes from a field without a counterpart."""
SAMPLES = sorted(FOLDER.glob("valid/*job*.yaml"))
MIGRATED = [path for path in SAMPLES if path.stem not in NOT_MIGRATED]


def test_the_samples_of_jobs_are_there() -> None:
    assert {*NOT_MIGRATED} <= {path.stem for path in SAMPLES} and len(MIGRATED) >= 30


@pytest.mark.parametrize("name", sorted(NOT_MIGRATED))
def test_a_job_that_needs_its_runtime_says_so(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entries, comments = printed(capsys, f"valid/{name}.yaml", code=1)
    heading = comments.index("# Cannot be migrated:")
    assert comments[heading + 1 :] and all(
        line.startswith("#   error    spec [")
        and f"must have an image; got {NOT_MIGRATED[name]}. Fix: " in line
        for line in comments[heading + 1 :]
    )
    assert entries == {}


@pytest.mark.parametrize("path", MIGRATED, ids=lambda path: path.stem)
def test_what_is_printed_is_a_job_of_a_stack_file(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries, comments = printed(capsys, str(path))
    assert entries and comments[-1] == "# Every job of the files is an entry above."
    for name, settings in as_pytorch_jobs(comments).items():
        assert typed({**entries[name], "runtime": None, **settings}).pytorch_job
    assert all(typed(entry).runtime for entry in entries.values())
    known = [at(f"pools.{entry['pool']}", _pool(entry["pool"])) for entry in entries.values()]
    known += [
        at(f"trainer.own_runtimes.{name}", {"image": "a/b:1"})
        for name in ("resilient", "jax-distributed")
    ]
    known += [
        at(f"storage.{store}", {"efs": {}})
        for entry in entries.values()
        for store in entry.get("storage", {})
    ]
    jobs = {name: {**entry, "allow_no_checkpoint": True} for name, entry in entries.items()}
    found = refused(jobs, *known)
    wrong = [error for error in found if ".jobs." in error and TOO_LARGE not in error]
    lacking = NOT_COMPLETE.get(path.stem)
    assert [lacking in error for error in wrong] == [True] if lacking else wrong == []


def _pool(name: str) -> dict[str, Any]:
    instance_type = "m7i.8xlarge" if name == "cpu" else "p5.48xlarge"
    return {"instance_types": [instance_type], "max_nodes": 8}


def as_pytorch_jobs(comments: list[str]) -> dict[str, dict[str, Any]]:
    """What replaces `runtime` where a job stays a PyTorchJob."""
    headings = (n for n, line in enumerate(comments) if line.startswith(KEEP_IT))
    heading = next(headings, len(comments))  # a file without a PyTorchJob has none
    lines = [line[4:] for line in comments[heading + 1 :] if ": {pytorch_job" in line]
    return yaml.safe_load("\n".join(lines)) or {}


V1 = """\
kind: PyTorchJob
metadata: {name: 7-Very.Long-name-of-a-job-that-does-not-end-here}
spec:
  nprocPerNode: "4"
  runPolicy: {ttlSecondsAfterFinished: 60, backoffLimit: 3}
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: "a/b:1", envFrom: [{}],
      command: [torchrun, --node_rank, $(RANK), --x=a b, train.py], env: [{name: WORLD_SIZE, value: "8"}],
      resources: {limits: {nvidia.com/gpu: 8}}, volumeMounts: [{name: d, mountPath: /checkpoints}]}],
      volumes: [{name: d, persistentVolumeClaim: {claimName: ckpt}}]}}}
    Worker: {replicas: 1}
"""


def test_words_are_quoted_variables_are_the_shell_s_and_torchrun_meets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "x.yaml").write_text(V1)
    entries, said = printed(capsys, str(tmp_path / "x.yaml"))
    [(name, entry)] = entries.items()
    assert name == "very-long-name-of-a-job-that-d" and entry["processes_per_node"] == 4
    meets = "--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}"
    assert (
        entry["script"]
        == f"export RANK=${{PET_NODE_RANK}}\ntorchrun {meets} --node_rank ${{RANK}} '--x=a b'"
        " train.py\n"
    )
    told = "\n".join(said)
    for words in (
        "env.WORLD_SIZE: removed",
        "ttlSecondsAfterFinished [x.yaml:5]: a job that has ended holds no node",
        "name each variable in env",
        "claim ckpt is now store ckpt",
    ):
        assert words in told
    assert entry["storage"] == {"ckpt": {"path": "/checkpoints"}}, "where it saves is not known"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: ConfigMap", "must contain a PyTorchJob or a TrainJob; got ConfigMap."),
        ("kind: PyTorchJob\nspec: {}", "must have a container; got no container."),
        (
            "kind: TrainJob\nspec: {runtimeRef: {name: nobody-knows-it}, trainer: {}}",
            "must have an image; got no image.",
        ),
        ("{", "must contain a PyTorchJob or a TrainJob; got no object."),
    ],
)
def test_what_cannot_be_migrated_ends_with_1_and_the_reason(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    entries, said = printed(capsys, str(tmp_path / "x.yaml"), code=1)
    assert entries == {} and why in said[-1]


def test_the_image_s_own_entrypoint_keeps_its_arguments_and_becomes_no_script(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = V1.replace(
        "command: [torchrun, --node_rank, $(RANK), --x=a b, train.py]", "args: [--lr, '1', a b]"
    )
    (tmp_path / "x.yaml").write_text(text)
    entries, said = printed(capsys, str(tmp_path / "x.yaml"))
    [entry] = entries.values()
    assert entry["arguments"] == ["--lr", "1", "a b"] and "script" not in entry
    assert [line for line in said if "go to the image's own entrypoint" in line]
    assert [line for line in said if "where it saves is not known" in line]
    assert refused(entries, at("pools.gpu", _pool("gpu")), stores=["ckpt"]) == []


def test_a_job_that_has_arguments_only_keeps_the_command_of_its_runtime(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runtime = (FOLDER / "d-training-runtime-demo.yaml").read_text()
    job = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\n"
        "spec: {runtimeRef: {name: training-runtime-demo}, trainer: {args: [--lr]}}\n"
    )
    (tmp_path / "x.yaml").write_text(runtime + "\n---\n" + job)
    entries, said = printed(capsys, str(tmp_path / "x.yaml"))
    assert not [line for line in said if line.startswith(KEEP_IT)], "it is none"
    assert entries["a"]["script"].endswith("--lr\n") or "torchrun" in entries["a"]["script"]


def test_another_job_of_the_file_is_an_entry_of_its_own_and_not_left_over(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = V1.replace(f"name: {yaml.safe_load(V1)['metadata']['name']}", "name: other", 1)
    (tmp_path / "x.yaml").write_text(f"{V1}\n---\n{other}")
    entries, said = printed(capsys, str(tmp_path / "x.yaml"))
    assert "other" in entries and len(entries) == 2
    assert not [line for line in said if "no part of an entry" in line]


def named(file: Path, *jobs: dict[str, str]) -> str:
    """A file of TrainJobs with this metadata."""
    trainer = {"image": "a/b:1", "command": ["bash", "-c", "torchrun t.py"], "numNodes": 2}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}
    kind = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    file.write_text(yaml.safe_dump_all([{**kind, "metadata": each, "spec": spec} for each in jobs]))
    return str(file)


def test_jobs_of_one_name_are_entries_with_a_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With one key for two entries, YAML keeps the last, and a job was lost."""
    longer = "a" * 40
    given = ({"name": f"{longer}-{number}"} for number in range(10))
    entries, said = printed(
        capsys, named(tmp_path / "x.yaml", {"name": "t5"}, {"name": "t5"}, *given)
    )
    cut = [f"{'a' * 30}-{number}" for number in range(2, 10)]
    assert [*entries] == ["t5", "t5-2", "a" * 32, *cut, f"{'a' * 29}-10"]
    numbered = "#   metadata.name [x.yaml:19]: the entry is t5-2: another job of the files is t5"
    assert numbered in said
    assert [
        line for line in said if f"the entry is {'a' * 32}: a name of an entry has at most" in line
    ]


def test_a_job_whose_name_the_cluster_makes_up_has_the_beginning_of_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    generated = {"generateName": "sweep-"}
    entries, said = printed(capsys, named(tmp_path / "x.yaml", generated, generated))
    assert [*entries] == ["sweep", "sweep-2"]
    assert not [
        line for line in said if "Not in the entry" in line and not line.endswith("nothing")
    ]
    assert (
        "#   metadata.generateName [x.yaml:4]: the entry is sweep: an entry has one name, and no random end"
        in said
    )


def test_each_job_of_a_list_of_the_cluster_is_an_entry(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """kubectl get trainjobs -o yaml prints a List, and objects with what the API server has added."""
    file = Path(named(tmp_path / "x.yaml", {"name": "t5", "uid": "8e1a"}, {"name": "bert"}))
    jobs = [{**each, "status": {"conditions": []}} for each in yaml.safe_load_all(file.read_text())]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": jobs}))
    entries, said = printed(capsys, str(file))
    assert [*entries] == ["t5", "bert"]
    assert [line for line in said if line.startswith("#   metadata.uid [x.yaml:")]


def test_each_entry_of_one_name_is_judged_for_the_stack(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    file = named(tmp_path / "x.yaml", {"name": "t5"}, {"name": "t5"})
    assert run_word("migrate", [file, "--stack", "dev"]) == 1
    said = capsys.readouterr().out
    assert "environment.jobs.t5." in said and "environment.jobs.t5-2." in said


def test_what_only_a_pytorch_job_has_is_kept_in_its_twin(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, said = printed(capsys, "valid/pytorchjob-torchrun-env")
    own = {"clean_pods": "none", "restarts": 3}
    assert as_pytorch_jobs(said) == {"bert": {"pytorch_job": own, "time_limit_minutes": 14400}}
    entries, said = printed(capsys, "valid/pytorchjob-elastic")
    assert as_pytorch_jobs(said)["elastic-echo"]["elastic"] == {"min_nodes": 1, "max_nodes": 3}
    entries, said = printed(capsys, "c-", code=1)
    twin = as_pytorch_jobs(said)["pytorch-dist-job"]
    assert twin["pytorch_job"]["coordinator"] and (
        entries["pytorch-dist-job"]["nodes"],
        twin["nodes"],
    ) == (3, 2)


def test_the_time_limit_of_a_file_is_one_of_the_entry_or_is_said_to_be_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that hangs would be paid for without end."""
    (pytorch_job := tmp_path / "old.yaml").write_text(
        (FOLDER / "valid/pytorchjob-torchrun-env.yaml").read_text().replace("864000", "3630")
    )
    (train_job := tmp_path / "new.yaml").write_text(
        (FOLDER / "a-t5-large.trainjob.yaml")
        .read_text()
        .replace("\nspec:\n", "\nspec:\n  activeDeadlineSeconds: 3630\n", 1)
    )
    for file in (pytorch_job, train_job):
        assert run_word("migrate", [str(file), "--trainer", "2.3.0"]) == 0
        said = capsys.readouterr().out
        [entry] = yaml.safe_load(said)["jobs"].values()
        assert entry["time_limit_minutes"] == 61 and "activeDeadlineSeconds" not in said
        assert not any("time_limit_minutes" in line for line in said.splitlines() if "#" in line)
        entries, comments = printed(capsys, str(file))
        assert "time_limit_minutes" not in [*entries.values()][0]
        [line] = [
            each for each in comments if "activeDeadlineSeconds [" in each and "error" not in each
        ]
        assert "3630: Trainer 2.1 has no time limit; set trainer.version to 2.3.0, or" in line
    assert as_pytorch_jobs(printed(capsys, str(pytorch_job))[1])["bert"]["time_limit_minutes"] == 61


def test_a_number_of_nodes_that_changes_is_said_to_be_only_in_the_twin(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, said = printed(capsys, "valid/pytorchjob-elastic.yaml")
    [line] = [line for line in said if "spec.elasticPolicy [" in line]
    assert "the number of nodes stays 2, since no TrainJob is elastic; pytorch_job keeps" in line


@pytest.mark.parametrize("seconds", ["3h", "864!!int 0", [60], True, 1.5, {}])
def test_a_time_that_is_no_number_of_seconds_is_an_error_and_no_traceback(
    seconds: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by a mutation."""
    [job] = yaml.safe_load_all((FOLDER / "valid/pytorchjob-torchrun-env.yaml").read_text())
    job["spec"]["runPolicy"]["activeDeadlineSeconds"] = seconds
    (file := tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    entries, said = printed(capsys, str(file))
    assert as_pytorch_jobs(said)["bert"].keys() == {"pytorch_job"} and entries
    assert any("activeDeadlineSeconds" in line and "error" in line for line in said)


def test_the_twin_has_the_pull_policy_and_the_labels_of_each_role(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    role = {
        "containers": [
            {
                "name": "pytorch",
                "image": "a/b:1",
                "imagePullPolicy": "Always",
                "command": ["torchrun"],
            }
        ]
    }
    replicas = {
        name: {
            "replicas": 1,
            "restartPolicy": "Never",
            "template": {"metadata": {"labels": {"role": label}}, "spec": role},
        }
        for name, label in (("Master", "first"), ("Worker", "other"))
    }
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "old"}}
    file = tmp_path / "job.yaml"
    policy = {"cleanPodPolicy": "Running"}
    file.write_text(
        yaml.safe_dump(job | {"spec": {"pytorchReplicaSpecs": replicas, "runPolicy": policy}})
    )
    run_word("migrate", [str(file)])
    assert as_pytorch_jobs(capsys.readouterr().out.splitlines())["old"]["pytorch_job"] == {
        "clean_pods": "running",
        "image_pull_policy": "always",
        "master_labels": {"role": "first"},
        "worker_labels": {"role": "other"},
    }


def test_a_config_map_beside_the_job_names_what_to_write(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries, said = printed(capsys, "valid/trainjob-script-from-configmap")
    assert entries["from-configmap"]["files"] == {"sources": ["train.py"], "path": "/script"}
    assert (
        "#   files: write train.py from data.train.py [trainjob-script-from-configmap.yaml:5]"
        in said
    )


def test_folders_of_the_node_and_pull_secrets_have_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nfs = printed(capsys, "valid/trainjob-nfs-and")[0]["nfs"]
    assert (nfs["local_scratch"], nfs["host_paths"]) == (
        "/tmp",
        {"host": {"host": "/data", "path": "/d"}},
    )
    assert printed(capsys, "valid/trainjob-overrides")[0]["llama"]["pull_secrets"] == ["registry"]


def _leaf_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list) or not value:
        return [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [leaf for step, each in inside for leaf in _leaf_paths(each, (*path, step))]


def _with_another(documents: list[Any], path: tuple[Any, ...]) -> list[Any]:
    """The documents with another value at a path."""
    documents = copy.deepcopy(documents)
    *way, last = path
    at: Any = documents
    for step in way:
        at = at[step]
    value = at[last]
    counts = last in ("numProcPerNode", "nprocPerNode") or isinstance(value, int)
    other = "777Gi" if last == "sizeLimit" else f"{value}-other"
    at[last] = not value if isinstance(value, bool) else 7 if counts else other
    return documents


def _migrated(documents: list[Any], file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed, but for lines and for the problems of the file."""
    file.write_text(yaml.safe_dump_all(documents))
    run_word("migrate", [str(file)])
    said = capsys.readouterr().out
    start, end = (said.find(f"# {words}") for words in ("Problems in", "Cannot be"))
    return re.sub(r":\d+\]", "]", said[:start] + said[end:])


@pytest.mark.parametrize(
    "path", [*MIGRATED, FOLDER / "a-t5-large.trainjob.yaml"], ids=lambda path: path.stem
)
def test_no_field_of_a_file_is_lost_silently(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With another value something else is printed, or the field was named."""
    documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
    documents = json.loads(json.dumps(documents))  # without anchors
    file = tmp_path / "x.yaml"
    whole = _migrated(documents, file, capsys)
    leaves = [
        leaf
        for leaf in _leaf_paths(documents)
        # Of other objects the whole is named; names of containers and volumes only link them.
        if re.search("TrainJob|PyTorchJob|Runtime", documents[leaf[0]].get("kind", "Runtime"))
        and leaf[1] not in ("apiVersion", "kind", "status")
        and not (leaf[-1] == "name" and leaf[-3] in ("containers", "volumes", "volumeMounts"))
        and leaf[-1] not in ("emptyDir", "manager")
    ]
    silent = [
        ".".join(map(str, leaf))
        for leaf in leaves
        if not any(f"{step} [" in whole for step in leaf[1:])
        and _migrated(_with_another(documents, leaf), file, capsys) == whole
    ]
    assert silent == []


def test_an_entry_for_a_stack_has_its_pool_and_says_which_names_to_fill_in(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    file = str(FOLDER / "valid/trainjob-nvme-cache-and-claim.yaml")
    assert run_word("migrate", [file, "--stack", "dev"]) == 1
    said = capsys.readouterr().out
    entry = yaml.safe_load(said)["jobs"]["cached"]
    assert entry["pool"] == "g6e" and "is a guess" not in said
    assert "storage: fill in another name for fsx: the stack has scratch, home" in said
    storage = {"scratch": entry["storage"].pop("fsx")}
    checkpoints = {**entry["checkpoints"], "store": "scratch", "directory": "cached"}
    sound = entry | {"storage": storage, "checkpoints": checkpoints}
    assert refused({"cached": sound}) == []
    assert run_word("migrate", [file, "--stack", "nowhere"]) == 2
    assert "must be a sound environment, or a team on one" in capsys.readouterr().out


def test_an_entry_for_a_team_has_the_names_of_its_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    file = str(FOLDER / "valid/trainjob-nvme-cache-and-claim.yaml")
    said = [run_word("migrate", [file, "--stack", stack]) for stack in ("dev", "team-vision")]
    of_environment, of_team = capsys.readouterr().out.split("jobs:\n")[1:]
    assert said == [1, 1] and of_team.replace(" team.jobs", " environment.jobs") == of_environment
    for name in ("Pulumi.yaml", "Pulumi.team-vision.yaml"):
        shutil.copy(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_word("migrate", [file, "--stack", "team-vision"]) == 2


@pytest.mark.parametrize(
    ("written", "ranks"),
    [("cpu", 1), ("auto", 1), ("cpu\n    resourcesPerNode: {requests: {cpu: 3500m}}", 4)],
)
def test_processes_that_follow_from_vcpus_are_said(
    written: str, ranks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.yaml").write_text(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\n"
        "spec:\n  runtimeRef: {name: torch-distributed}\n  trainer:\n    image: a/b:1\n"
        f"    command: [torchrun, t.py]\n    numProcPerNode: {written}\n"
    )
    run_word("migrate", [str(tmp_path / "job.yaml")])
    said = capsys.readouterr().out
    assert yaml.safe_load(said)["jobs"]["a"]["processes_per_node"] == ranks
    assert f"#   processes_per_node: {ranks}: `{written[:4].strip()}` is one for each vCPU" in said


def test_an_entry_is_judged_for_the_release_that_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(FOLDER / "valid/trainjob-overrides.yaml")
    for release, is_refused in (("2.1.0", False), ("2.3.0", True)):
        run_word("migrate", [file, "--trainer", release])
        assert ("be a field of Trainer 2.3.0" in capsys.readouterr().out) == is_refused
