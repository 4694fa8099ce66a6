"""A cluster goes from one Kubernetes version to the next, twice, while a gang runs on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, rehearsing
from trainyard.catalog import versions

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

BEFORE, AFTER = "1.34", ("1.35", "1.36")
TOO_FAR = {"1.35": "1.36"}
"""Version to go to → another one, which is two steps away."""
OLDER, NEWER = "2.1.0", "2.3.0"
GANG = "pods --namespace training --selector jobset.sigs.k8s.io/jobset-name=long"
END = "/dev/shm/end"
"""File in a pod of the gang that ends it: how long the upgrades take is not known before."""


def _job(script: str) -> dict[str, Any]:
    return {
        "runtime": "torch-distributed",
        "nodes": 2,
        "pool": "g6",
        "command": ["sh", "-c", script],
        "shared_memory_gib": 8,
        "image": "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023",
    }


def _stack(version: str, trainer: str, jobs: dict[str, Any]) -> dict[str, Any]:
    long = _job(f"until [ -e {END} ]; do sleep 1; done")
    return {
        "aws:region": "us-east-2",
        "trainyard:environment": {
            "zone": "us-east-2a",
            "pools": {"g6": {"instance_types": ["g6.48xlarge"], "max_nodes": 2}},
            "trainer": {"version": trainer, "runtimes": ["torch-distributed"]},
            "cluster": {
                "version": version,
                "endpoint": "public-and-private",
                "public_access_cidrs": ["203.0.113.7/32"],
            },
            "jobs": {"long": long} | jobs,
        },
    }


def _write(trial: Harness, version: str, trainer: str = OLDER, **jobs: Any) -> None:
    file, config = trial.checkout / "Pulumi.upgrade.yaml", _stack(version, trainer, jobs)
    file.write_text(yaml.safe_dump({"config": config}))


def _gang(trial: Harness) -> list[tuple[str, str, str, int]]:
    """Of each pod: what tells it from any other, its node, its phase and its restarts."""
    return sorted(
        (
            pod["metadata"]["uid"],
            pod["spec"].get("nodeName", ""),
            pod["status"]["phase"],
            sum(one["restartCount"] for one in pod["status"].get("containerStatuses", ())),
        )
        for pod in trial.get(GANG)["items"]
    )


def _aws(trial: Harness, question: str) -> Any:
    return json.loads(trial.shell(f"aws eks {question} --output json"))


def _changes(trial: Harness) -> None:
    """`up` until the engine is done. It then follows the job, and nothing else may change the world
    meanwhile: it is ended."""
    command = trial.start("up", "--stack", "upgrade", "--wait", "900")
    assert until(lambda: " changes" in trial.said("up")), trial.log.read_text()
    command.terminate()
    command.wait()


@pytest.fixture(scope="module")
def gang() -> Iterator[tuple[Harness, list[tuple[str, str, str, int]]]]:
    """A stack of the oldest version, and its gang of two, which runs."""
    with rehearsing("upgrade") as trial:
        _write(trial, BEFORE)
        _changes(trial)
        assert until(lambda: [pod[2] for pod in _gang(trial)] == ["Running", "Running"])
        yield trial, _gang(trial)


@pytest.mark.parametrize("after", AFTER)
def test_a_control_plane_is_upgraded_under_a_gang_that_notices_nothing(
    gang: tuple[Harness, list[tuple[str, str, str, int]]], after: str
) -> None:
    trial, before = gang
    release = versions.KUBERNETES[after]
    if after in TOO_FAR:
        _write(trial, TOO_FAR[after])
        assert trial.do("preview", "--stack", "upgrade") != 0, "two steps at once"
        assert "at most one minor version above" in trial.log.read_text()

    _write(trial, after)
    _changes(trial)
    assert _gang(trial) == before, "no pod of it moved or was started again"

    [cluster] = _aws(trial, "list-clusters")["clusters"]
    assert _aws(trial, f"describe-cluster --name {cluster}")["cluster"]["version"] == after
    for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"):
        about = f"describe-addon --cluster-name {cluster} --addon-name {name}"
        assert _aws(trial, about)["addon"]["addonVersion"] == release.add_ons[name]
    system = trial.get("nodes --selector trainyard.io/nodes=system")["items"]
    assert len(system) == 2
    assert all(_kubelet(node).startswith(f"v{after}.") for node in system)
    assert all(
        _kubelet(node).startswith(f"v{BEFORE}.")
        for node in trial.get("nodes --selector trainyard.io/pool=g6")["items"]
    ), "nodes of a gang are left alone, though they have drifted"


def _kubelet(node: dict[str, Any]) -> str:
    return node["status"]["nodeInfo"]["kubeletVersion"]


def test_after_the_upgrades_the_gang_ends_and_there_is_nothing_left_to_change(
    gang: tuple[Harness, list[tuple[str, str, str, int]]],
) -> None:
    trial, before = gang
    assert _gang(trial) == before
    for pod in trial.get(GANG)["items"]:
        name = pod["metadata"]["name"]
        trial.shell(f"kubectl exec --namespace training {name} -- touch {END}")
    assert trial.do("up", "--stack", "upgrade") == 0, trial.log.read_text()
    assert " 0 changes" in trial.said("up")
    assert trial.condition("long") == "Complete"


def test_a_newer_trainer_runs_a_job_on_the_newest_version(
    gang: tuple[Harness, list[tuple[str, str, str, int]]],
) -> None:
    trial, _ = gang
    _write(trial, AFTER[-1], NEWER, short=_job("true"))
    assert trial.do("preview", "--stack", "upgrade") == 0, trial.log.read_text()
    assert trial.do("up", "--stack", "upgrade") == 0, trial.log.read_text()
    assert trial.condition("short") == "Complete"
    assert trial.do("up", "--stack", "upgrade") == 0
    assert " 0 changes" in trial.said("up")
