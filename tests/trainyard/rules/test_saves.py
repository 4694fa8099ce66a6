"""What is said about the place in which a job saves, and about the number of checkpoints that stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cases.environment import JOB
from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, planned, without
from trainyard.manifests.context import ManifestContext, contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.manifests.rules import manifest_problems


def warnings(*edits: Edit, folder: Path = CHECKOUT) -> str:
    return "\n".join(str(n) for n in planned(*edits, folder=folder).warnings)


def test_a_job_that_mounts_nothing_that_outlives_its_pods_is_a_warning() -> None:
    says, upstream = (
        "t5-large: it mounts no store: all that it writes ends",
        at(f"{JOB}.runtime", "torch-distributed"),
    )
    bare = (upstream, without(f"{JOB}.checkpoints"))
    assert says in warnings(*bare)
    for edit in (
        at(f"{JOB}.storage", {"home": {"path": "/home/me"}}),
        at(f"{JOB}.allow_no_checkpoint", True),
        at(f"{JOB}.tensorboard", {"store": "home", "directory": "events"}),
    ):
        assert says not in warnings(*bare, edit)
    assert says not in warnings(upstream)
    reads = at(f"{JOB}.host_paths", {"data": {"host": "/data", "path": "/data"}})
    assert says in warnings(*bare, reads), "pods can only read folders of the node"


def test_a_number_that_nothing_reads_is_a_warning() -> None:
    keep, says = at(f"{JOB}.checkpoints.keep", 4), "names CHECKPOINT_KEEP"
    assert says in warnings(keep)
    assert says not in warnings()
    handed = at(f"{JOB}.env", {"FLAGS": "--save_total_limit $(CHECKPOINT_KEEP)"})
    assert says not in warnings(keep, handed)
    files = at(f"{JOB}.files", {"sources": ["workloads/checkpoints.py"]})
    assert says not in warnings(keep, files)
    assert says in warnings(keep, at(f"{JOB}.files", {"sources": ["workloads/ddp/train.py"]}))


def test_a_script_that_knows_no_place_for_checkpoints_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("torch.save(model, args.out)\n")
    brings, says = (
        at(f"{JOB}.files", {"sources": ["train.py"]}),
        "names CHECKPOINT_DIR or /checkpoints",
    )

    def said(*edits: Edit) -> str:
        return warnings(*edits, folder=tmp_path)

    starts = "torchrun --rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:29500 /workspace/train.py --out "
    assert says in said(brings, at(f"{JOB}.script", f"{starts}/tmp/ckpt"))
    assert says not in said(brings, at(f"{JOB}.script", f"{starts}$CHECKPOINT_DIR"))
    assert says not in said(brings, at(f"{JOB}.script", f"{starts}/checkpoints"))
    assert says not in said(), "what the image has, nobody reads"
    mount = at(f"{JOB}.storage", {"scratch": {"path": "/data"}})
    assert says not in said(brings, mount, at(f"{JOB}.script", f"{starts}/data/mine"))
    assert "CHECKPOINT_DIR or /data" in said(
        brings, mount, at(f"{JOB}.script", f"{starts}/tmp/ckpt")
    )
    (tmp_path / "train.py").write_text("torch.save(model, os.environ['CHECKPOINT_DIR'])\n")
    assert says not in said(brings, at(f"{JOB}.script", f"{starts}/tmp/ckpt"))


def of_file(volume: dict[str, Any], nodes: int = 2, more: str = "") -> ManifestContext:
    """A PyTorchJob that saves in /data, where this volume is mounted."""
    script = f"torchrun --nproc_per_node=8 train.py --output_dir=/data/out{more}"
    container = {
        "name": "pytorch",
        "image": "a/b:1",
        "command": ["bash", "-c", script],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    template = {"spec": {"containers": [container], "volumes": [{"name": "data", **volume}]}}
    replica = {"replicas": 1, "restartPolicy": "OnFailure", "template": template}
    roles = {"Master": replica, "Worker": replica | {"replicas": nodes - 1}}
    spec = {"runPolicy": {"backoffLimit": 5}, "pytorchReplicaSpecs": roles}
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"}}
    workloads, _ = read_manifest(yaml.safe_dump({**kind, "spec": spec}), "job.yaml")
    return contexts_of(workloads)[0]


def host(path: str) -> dict[str, Any]:
    return {"hostPath": {"path": path}}


LOST, MAY_BE_LOST, FROM_NOTHING = (
    "is on the node's own disk, and gone with it",
    "/data/out is in a folder of the node",
    "restarts begin at step 0",
)


@pytest.mark.parametrize(
    ("volume", "said", "resumes"),
    [
        (host("/mnt/k8s-disks/0"), [LOST], False),
        (host("/opt/dlami/nvme"), [LOST], False),
        (host("/var/lib/out"), [LOST, FROM_NOTHING], False),
        (host("/mnt/fsx"), [MAY_BE_LOST], True),
        ({"secret": {"secretName": "s"}}, [FROM_NOTHING], False),
        ({"projected": {"sources": []}}, [FROM_NOTHING], False),
        ({"nfs": {"server": "a", "path": "/"}}, [], True),
        ({"csi": {"driver": "s3.csi.aws.com"}}, [], True),
        ({"persistentVolumeClaim": {"claimName": "c"}}, [], True),
        ({7: None}, [], True),
    ],
    ids=str,
)
def test_a_volume_of_the_node_or_of_the_api_server_is_no_store(
    volume: dict[str, Any], said: list[str], resumes: bool
) -> None:
    context = of_file(volume)
    text = "\n".join(map(str, manifest_problems([context])))
    assert [each for each in (LOST, MAY_BE_LOST, FROM_NOTHING) if each in text] == said
    assert context.view.resumes is resumes


def test_what_is_saved_on_a_disk_of_the_node_may_be_found_there_or_in_s3() -> None:
    """By one pod that starts again on its node, and by whoever looks where the script copies it."""
    disk = host("/mnt/k8s-disks/0")
    for context, says in (
        (of_file(disk, nodes=1), MAY_BE_LOST),
        (of_file(disk, more="; aws s3 sync /data/out s3://b/o"), ""),
    ):
        text = "\n".join(map(str, manifest_problems([context])))
        assert LOST not in text and (MAY_BE_LOST in text) is bool(says)
