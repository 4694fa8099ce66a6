"""The TrainJobs of tests/workloads/d-* train for real on two CPU nodes, are disturbed, and end as
if they had not been. What is changed of them, `_runtime` and `_job` say. And the acceptance job finds
a slow node."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from rehearsal import processes
from tests.support.patience import until
from tests.support.recording import CHECKOUT, stack_values
from tests.support.worlds import NEEDS_A_WORLD
from tests.workloads_train.runs import FAULTS, RANKS, ROUNDING, WORKLOADS, Run, final, resumed
from tests.worlds.harness import Harness, Object, rehearsing
from trainyard.objects.jobs.pod_template import TOLERATIONS
from trainyard.objects.programs.history import APP as HISTORY

pytestmark = [
    pytest.mark.world,
    NEEDS_A_WORLD,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None,
        reason="real training needs torch: make train-real",
    ),
]

FLAGS = {
    "ddp": ("--steps=200", "--steps-per-checkpoint=50"),
    "fsdp": ("--steps=120", "--steps-per-checkpoint=1000"),
}
POOLS = {"cpu": {"instance_types": ["m7i.4xlarge"], "max_nodes": 2}}
TORCH = "trainyard/torch-cpu:2.15"


def _sample(name: str) -> Object:
    return yaml.safe_load((CHECKOUT / "tests" / "workloads" / f"d-{name}.yaml").read_text())


def _runtime() -> Object:
    runtime = _sample("training-runtime-demo")
    runtime["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 3}
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["backoffLimit"] = 0  # a pod alone would meet nobody
    [container] = job["template"]["spec"]["containers"]
    container |= {"image": TORCH, "command": [*container["command"][:-1], "/workspace/train.py"]}
    return runtime


def _job(harness: Harness, name: str, sample: str, env: dict[str, str]) -> Object:
    """The variant of that name, of which `checkpoints` is the only volume that all its pods
    share."""
    job = _sample(f"trainjob-with-{name}")
    job["metadata"] = {"name": name, "namespace": "training"}
    whole_nodes = {"cpu": "10", "memory": "2Gi"}  # more than half of one
    job["spec"]["trainer"] |= {
        "args": list(FLAGS[sample]),
        "resourcesPerNode": {"requests": whole_nodes, "limits": whole_nodes},
        "env": [
            {"name": key, "value": value}
            for key, value in {"CHECKPOINT_DIR": "/checkpoints", **env}.items()
        ],
    }
    [override] = job["spec"].setdefault(
        "podTemplateOverrides", [{"targetJobs": [{"name": "node"}], "spec": {}}]
    )
    pod = override["spec"]
    pod |= {"nodeSelector": {"trainyard.io/pool": "cpu"}, "tolerations": TOLERATIONS}
    claim = next(
        c["metadata"]["name"]
        for c in harness.get("pvc -n training")["items"]
        if "scratch" in str(c)
    )
    pod.setdefault("volumes", []).append(
        {"name": "checkpoints", "persistentVolumeClaim": {"claimName": claim}}
    )
    [container] = pod.setdefault("containers", [{"name": "node"}])
    container.setdefault("volumeMounts", []).append(
        {"name": "checkpoints", "mountPath": "/checkpoints", "subPath": name}
    )
    return job


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    """A world with the runtime; the scripts in a ConfigMap and on the disk of every node."""
    config = stack_values("dev")
    config["trainyard:environment"] |= {
        "pools": POOLS,
        "jobs": {},
        "history": {"progress": True},
    }
    scripts = [WORKLOADS / "ddp" / "train.py", WORKLOADS / "checkpoints.py"]
    with rehearsing(files={"Pulumi.dev.yaml": yaml.safe_dump({"config": config})}) as made:
        assert made.do("up") == 0, made.log.read_text()
        on_disk = (
            made.state / "nodes/ami/data/kubeflow-training/scripts"
        )  # of every node that boots from now on
        on_disk.mkdir(parents=True)
        for script in scripts:
            (on_disk / script.name).write_text(script.read_text())
        made.apply(_runtime())
        files = {f.name: f.read_text() for f in (*scripts, FAULTS)}
        made.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "data": files,
                "metadata": {"name": "pytorch-demo-script", "namespace": "training"},
            }
        )
        made.shell(
            "kubectl label namespace training pod-security.kubernetes.io/enforce=privileged"
            " --overwrite"
        )
        yield made


def _logs(harness: Harness, name: str) -> str:
    return harness.shell(
        f"kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name={name} --tail=-1", check=False
    )


def _pod(harness: Harness, name: str, index: int) -> str:
    """The pod of a node."""
    labels = (
        f"jobset.sigs.k8s.io/jobset-name={name},batch.kubernetes.io/job-completion-index={index}"
    )
    return harness.get(f"pods -n training -l {labels}")["items"][0]["metadata"]["name"]


def _ends_like(harness: Harness, name: str, undisturbed: Run) -> list[int]:
    """Whatever was done to it; the steps from which it resumed."""
    assert undisturbed.wait() == [0, 0], undisturbed.log
    assert until(lambda: harness.condition(name)) == "Complete", _logs(harness, name)
    assert harness.get(f"jobset {name} -n training")["status"]["restarts"] == 1
    pods = harness.get(f"pods -n training -l jobset.sigs.k8s.io/jobset-name={name}")["items"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    log = _logs(harness, name)
    assert final(log) == [pytest.approx(final(undisturbed.log)[0], rel=ROUNDING)] * RANKS, log
    return resumed(log)


@pytest.fixture(scope="module")
def ddp(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Outside any world, and undisturbed."""
    return Run(sample="ddp", folder=tmp_path_factory.mktemp("ddp"), flags=FLAGS["ddp"]).start()


def test_from_a_configmap_and_killed_in_the_middle_of_a_checkpoint(harness: Harness, ddp: Run):
    harness.apply(
        _job(
            harness,
            "configmap",
            "ddp",
            {"PYTHONPATH": "/workspace", "STALL_AT": "step-00000149.pt"},
        )
    )
    assert until(
        lambda: [*harness.state.glob("file-systems/*/configmap/step-00000149.pt.new")],
        every=0.2,
    )
    harness.shell(
        f"kubectl delete pod {_pod(harness, 'configmap', 0)} -n training --grace-period=0 --force"
    )
    assert _ends_like(harness, "configmap", ddp) == [99], "the checkpoint before"


def test_from_a_folder_of_the_node_and_one_rank_killed(harness: Harness, ddp: Run):
    harness.apply(_job(harness, "hostpath", "ddp", {}))
    assert until(lambda: [*harness.state.glob("file-systems/*/hostpath/latest")], every=0.2)
    ranks = [
        pid
        for pid in harness.processes("/workspace/train.py")
        if "torchrun" not in str(processes.command(pid))
    ]
    processes.kill(ranks[-1:])
    assert len(_ends_like(harness, "hostpath", ddp)) == 1


def test_from_an_image_and_a_node_asked_to_leave(harness: Harness, tmp_path: Path):
    job = _job(harness, "image", "fsdp", {})
    job["spec"]["trainer"]["image"] = "trainyard/fsdp:1"
    harness.apply(job)
    assert until(lambda: "step 20 loss" in _logs(harness, "image"), every=0.5)
    harness.shell(f"kubectl delete pod {_pod(harness, 'image', 1)} -n training")
    undisturbed = Run(sample="fsdp", folder=tmp_path, flags=FLAGS["fsdp"]).start()
    [step] = _ends_like(harness, "image", undisturbed)
    assert 20 <= step < 119, "saved because it was asked to stop"


def test_what_is_measured_of_a_run_is_what_its_own_log_says(harness: Harness) -> None:
    """Within 2 %: steps, their time, the newest checkpoint and its age, goodput."""
    job = _job(harness, "configmap", "ddp", {"PYTHONPATH": "/workspace"})
    job["metadata"]["name"] = "measured"
    text = json.dumps(job["spec"]).replace('"subPath": "configmap"', '"subPath": "measured"')
    harness.apply(job | {"spec": json.loads(text)})
    assert until(lambda: harness.condition("measured")) == "Complete", _logs(harness, "measured")
    log = harness.shell(f"kubectl logs -n training {_pod(harness, 'measured', 0)} --timestamps")
    steps, between, saved = own_figures(log)

    assert until(lambda: harness.recorded("measured")), harness.shell(
        f"kubectl logs -n {HISTORY} deployment/{HISTORY}"
    )
    said = json.loads(harness.shell(f"{sys.executable} -m trainyard runs dev --json"))
    [run] = [run for run in said["runs"] if run["job"] == "measured"]
    each = sorted(between)[len(between) // 2]
    assert max(steps) == 190 and run["step"] == 199
    assert run["checkpoint"] == saved == "step-00000199.pt"
    assert run["step_seconds"] == pytest.approx(each, rel=0.02)
    assert run["goodput_measured"] == pytest.approx(199 * each / run["ran_seconds"], rel=0.02)


def own_figures(log: str) -> tuple[dict[int, float], list[float], str]:
    """Of a log with times: when each step was printed; the seconds of a step between two such lines
    with no other between them; the newest checkpoint."""
    steps: dict[int, float] = {}
    between: list[float] = []
    saved, before = "", None
    for when, line in (line.split(" ", 1) for line in log.splitlines() if " " in line):
        step = re.match(r"step (\d+) loss", line)
        at = datetime.fromisoformat(when).timestamp()
        if step and before is not None:
            between.append((at - steps[before]) / (int(step[1]) - before))
        before = int(step[1]) if step else None
        steps |= {int(step[1]): at} if step else {}
        saved = line.split()[-1] if line.startswith("saved ") else saved
    return steps, between, saved


def test_the_acceptance_job_resumes_and_names_a_slow_node(harness: Harness):
    """The entry is the one that `trainyard accept` writes, below an empty `jobs`."""
    slow = "accept-cpu-node-0-1"
    assert harness.tool("accept", "--pool", "cpu", "--image", TORCH, "--yes") == 0
    (harness.checkout / FAULTS.name).write_text(FAULTS.read_text())
    stack_file = harness.checkout / "Pulumi.dev.yaml"
    config = yaml.safe_load(stack_file.read_text())
    entry = config["config"]["trainyard:environment"]["jobs"]["accept-cpu"]
    entry["files"]["sources"].append(FAULTS.name)
    entry["env"] |= {"PYTHONPATH": "/workspace", "SLOW_NODE": slow}
    stack_file.write_text(yaml.safe_dump(config))
    assert harness.do("up") == 0, harness.log.read_text()
    assert harness.tool("accept", "--json") == 1, harness.log.read_text()
    said = harness.log.read_text().splitlines()
    found = json.loads([line for line in said if line.startswith("{")][-1])
    pod = next(
        pod
        for pod in harness.get("pods -n training")["items"]
        if pod["spec"].get("hostname") == slow
    )
    words = {(one["line"], one["node"].split(" ")[0]): one["verdict"] for one in found["verdicts"]}
    assert words["matrix product", pod["spec"]["nodeName"]] == "fail", words
    assert words["resumed ranks", ""] == "pass", words
