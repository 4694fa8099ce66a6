"""A stack gets newer releases of Karpenter, the Trainer and Kueue while the gang of a team runs. The preview of
it works, and the upgrade of each chart is stopped twice, by kill -9 and by ctrl-C: the next `up` goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import VICTIMS, Harness, Object, rehearsing, rehearsing_teams, with_l4
from trainyard.catalog.job_kinds import resource_of
from trainyard.objects.jobs.pod_template import GPU, POOL, TOLERATIONS
from trainyard.objects.jobs.trainer import changed_pods
from trainyard.objects.queues.queues import Urgency, job_labels

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

STACK, NAMESPACE = "charts", "team-vision"
OLDER, NEWER = ("1.14.1", "2.1.0"), ("1.15.2", "2.3.0")
"""Releases of Karpenter and of the Trainer, with which Kueue moves."""
END = "/dev/shm/end"
"""File in a pod of the gang that ends it."""
UPGRADING = (
    "kubectl get secrets --all-namespaces --selector owner=helm,status=pending-upgrade --output"
    " 'jsonpath={range .items[*]}{.metadata.labels.name}/{.metadata.labels.version} {end}'"
)
"""Helm writes the status into a label of the revision, and a rollback leaves it there."""
WAYS = ("kill -9", "ctrl-C")


def _file(karpenter: str, trainer: str, **settings: Any) -> Object:
    """The stack file with these releases."""
    vision = {
        "deployer": "arn:aws:iam::123456789012:role/vision",
        "guaranteed_nodes": {"l4": 2},
    }
    found = with_l4(
        queues={},
        teams={"vision": vision},
        karpenter={"version": karpenter},
        trainer={"version": trainer, "runtimes": ["torch-distributed"]},
        **settings,
    )
    found["trainyard:environment"]["pools"]["cpu"] = {
        "instance_types": ["m7i.4xlarge"],
        "max_nodes": 1,
    }
    return found


def _gang(name: str = "long", urgency: Urgency = "normal") -> Object:
    gpus = {GPU: "4"}
    pod = {"nodeSelector": {POOL: "l4"}, "tolerations": TOLERATIONS}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": job_labels("vision", urgency),
        },
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "image": "trainer:1",
                "command": ["/bin/bash", "-c", f"until [ -e {END} ]; do sleep 1; done"],
                "numNodes": 2,
                "resourcesPerNode": {"limits": gpus, "requests": gpus},
            },
            "podTemplateOverrides": changed_pods("podTemplateOverrides", {"node": pod}),
        },
    }


def _pods(trial: Harness) -> list[tuple[str, str, str, int]]:
    """What tells each pod of the gang from any other, its node, its phase and its restarts."""
    gang = f"pods --namespace {NAMESPACE} --selector jobset.sigs.k8s.io/jobset-name=long"
    return sorted(
        (
            pod["metadata"]["uid"],
            pod["spec"].get("nodeName", ""),
            pod["status"]["phase"],
            sum(one["restartCount"] for one in pod["status"].get("containerStatuses", ())),
        )
        for pod in trial.get(gang)["items"]
    )


def _started(trial: Harness, name: str) -> bool:
    return trial.get(f"trainjob {name} --namespace {NAMESPACE}")["spec"].get("suspend") is False


def _counted(trial: Harness) -> bool:
    """True when the quota of the team counts TrainJobs."""
    quota = trial.get(f"resourcequota objects --namespace {NAMESPACE}")
    return f"count/{resource_of('TrainJob')}" in quota.get("status", {}).get("used", {})


@pytest.fixture(scope="module")
def gang() -> Iterator[tuple[Harness, list[tuple[str, str, str, int]]]]:
    """The stack with the older charts, and its gang, which runs because its queue stopped another one."""
    with rehearsing_teams(STACK, _file(*OLDER), later=("queues", "teams")) as trial:
        assert until(lambda: _counted(trial)), "its quota refuses jobs before it (docs/limits.md)"
        trial.apply(_gang("patient", "low"))
        assert until(lambda: _started(trial, "patient"))
        trial.apply(_gang())
        assert until(lambda: [pod[2] for pod in _pods(trial)] == ["Running", "Running"])
        yield trial, _pods(trial)


SHORT = {
    "runtime": "torch-distributed",
    "nodes": 1,
    "pool": "cpu",
    "processes_per_node": 1,
    "command": ["sh", "-c", "true"],
    "image": "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cpu-amzn2023",
}
"""A job of the stack that is complete at once, on a node that Karpenter launches for it."""


def _newer(trial: Harness) -> None:
    """The stack file with the newer releases, and with a job that only the newer CRDs admit."""
    file = trial.checkout / f"Pulumi.{STACK}.yaml"
    file.write_text(yaml.safe_dump({"config": _file(*NEWER, jobs={"short": SHORT})}))


def test_a_preview_of_newer_charts_is_refused_while_a_job_waits_that_would_lose_its_stores(
    gang: tuple[Harness, list[tuple[str, str, str, int]]],
) -> None:
    trial, _ = gang
    _newer(trial)
    assert trial.do("preview", "--stack", STACK) != 0
    refused = (
        f"got {NEWER[1]} beside {NAMESPACE}/patient (its queue stopped it once). Fix: let them"
    )
    assert refused in trial.said("preview")
    assert "environment.trainer.version" in trial.said("preview")
    trial.shell(f"kubectl delete trainjob patient --namespace {NAMESPACE}")


def test_a_preview_of_newer_charts_works(
    gang: tuple[Harness, list[tuple[str, str, str, int]]],
) -> None:
    trial, _ = gang
    _newer(trial)
    assert trial.do("preview", "--stack", STACK) == 0, trial.log.read_text()


class Stopper:
    """Stops an `up` in the middle of each chart's upgrade, each time in a way that this chart has not met."""

    def __init__(self, trial: Harness) -> None:
        self.trial = trial
        self.met: list[tuple[str, str]] = []
        """(release, way) of each stop."""
        self._seen: set[str] = set()

    def up(self) -> bool:
        """True if the `up` was stopped; it must end well otherwise."""
        self._seen |= {*self._upgrading()}
        command = self.trial.start("up", "--stack", STACK)
        while command.poll() is None:
            if self._stopped(command):
                command.wait()
                return True
            time.sleep(0.1)
        assert command.returncode == 0, self.trial.log.read_text()
        return False

    def _stopped(self, command: subprocess.Popen[str]) -> bool:
        for revision in self._upgrading():
            release = revision.rpartition("/")[0]
            left = [way for way in WAYS if (release, way) not in self.met]
            if revision in self._seen or not left:
                continue
            if left[0] == "kill -9":
                self.trial.kill(*VICTIMS["engine"])
            else:
                command.send_signal(signal.SIGINT)
            self.met.append((release, left[0]))
            return True
        return False

    def _upgrading(self) -> list[str]:
        """Release and revision of each upgrade that Helm has begun and not ended."""
        return self.trial.shell(UPGRADING, check=False).split()


def test_an_upgrade_that_is_stopped_at_each_chart_is_gone_on_from(
    gang: tuple[Harness, list[tuple[str, str, str, int]]],
) -> None:
    trial, before = gang
    stopper = Stopper(trial)
    stops = 0
    while stopper.up():
        stops += 1
        assert stops <= 16, stopper.met
        assert _pods(trial) == before, "no pod of the gang moved or was started again"
    print(stopper.met)
    for release in ("karpenter-crd", "karpenter", "kubeflow-trainer", "kueue"):
        assert {way for name, way in stopper.met if name == release} == {*WAYS}, stopper.met


def test_the_newer_karpenter_runs_and_calls_no_node_of_the_gang_drifted(
    gang: tuple[Harness, list[tuple[str, str, str, int]]],
) -> None:
    trial, before = gang
    image = "jsonpath={.spec.template.spec.containers[0].image}"
    namespace = "--namespace kube-system"
    assert trial.shell(f"kubectl get deployment karpenter {namespace} --output '{image}'").endswith(
        ":1.15.2"
    )
    nodes = {node for _, node, _, _ in before}
    claims = trial.get("nodeclaims.karpenter.sh")["items"]
    theirs = [one for one in claims if one["status"]["nodeName"] in nodes]
    assert len(theirs) == len(nodes) == 2
    for claim in theirs:
        hashed = "karpenter.k8s.aws/ec2nodeclass-hash-version"
        assert claim["metadata"]["annotations"][hashed] == "v6", "1.15 has seen it"
        conditions = {one["type"]: one["status"] for one in claim["status"]["conditions"]}
        assert conditions["Ready"] == "True" and "Drifted" not in conditions
    for pool in trial.get("nodepools.karpenter.sh")["items"]:
        [ready] = [one for one in pool["status"]["conditions"] if one["type"] == "Ready"]
        assert ready["status"] == "True", pool["metadata"]["name"]


def test_after_it_nothing_is_left_to_change_and_the_gang_ends(
    gang: tuple[Harness, list[tuple[str, str, str, int]]],
) -> None:
    trial, before = gang
    assert _pods(trial) == before
    assert trial.do("up", "--stack", STACK) == 0, trial.log.read_text()
    assert " 0 changes" in trial.said("up")
    assert trial.condition("short") == "Complete"
    unfinished = trial.shell("helm list --all-namespaces --pending --failed --short")
    assert unfinished.split() == []
    for pod in trial.get(f"pods --namespace {NAMESPACE}")["items"]:
        name = pod["metadata"]["name"]
        trial.shell(f"kubectl exec --namespace {NAMESPACE} {name} -- touch {END}")
    assert until(lambda: trial.condition("long", NAMESPACE) == "Complete")


def test_a_stack_that_begins_with_the_newer_karpenter_trains_and_leaves_nothing() -> None:
    """With the older Trainer, which the other tests leave behind."""
    file = _file(NEWER[0], OLDER[1], jobs={"short": SHORT})
    settings = file["trainyard:environment"]
    del settings["queues"], settings["teams"]
    files = {f"Pulumi.{STACK}.yaml": yaml.safe_dump({"config": file})}
    with rehearsing(STACK, files) as trial:
        assert trial.do("up", "--stack", STACK) == 0, trial.log.read_text()
        assert until(lambda: trial.condition("short") == "Complete")
        assert trial.do("up", "--stack", STACK) == 0 and " 0 changes" in trial.said("up")
        assert trial.do("down") == 0, trial.log.read_text()
