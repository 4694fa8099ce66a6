"""The environment that an older release has made, with a gang that runs, is updated by today's program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.patience import until
from tests.support.recording import CHECKOUT
from tests.support.releases import OLDER, Release, lost_by, told, unpack
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, rehearsing

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK, JOB = "dev", "t5-large"
GANG = f"pods --namespace training --selector jobset.sigs.k8s.io/jobset-name={JOB}"
END = "/dev/shm/end"
"""File in a pod of the gang that ends it: how long the update takes is not known before."""
Gang = list[tuple[str, str, str, int]]
TYPES = {"g6e": "g6e.48xlarge", "h100": "p5.48xlarge"}
"""NodeClass → the type of its nodes."""


def settings(release: Release) -> dict[str, Any]:
    """The stack file of a release, whose job runs until it is told to end.

    What 0.1.0 gets wrong itself is left out. A policy of `make preview` refuses an API server that everybody reaches.
    No node mounts its Lustre store, whose security group lets nothing out to the nodes.
    """
    found = release.settings
    found["trainyard:environment"]["cluster"]["public_access_cidrs"] = ["203.0.113.7/32"]
    job = found["trainyard:environment"]["jobs"][JOB]
    job["checkpoints"] = {"store": "home", "directory": JOB}
    del job["script"]
    job["command"] = ["sh", "-c", f"until [ -e {END} ]; do sleep 1; done"]
    return found


def begin(trial: Harness) -> None:
    """Start a world that has the stack, and nothing in it."""
    world_up = [sys.executable, "-m", "rehearsal", "up"]
    subprocess.run(world_up, cwd=trial.checkout, env=trial.environment, check=True)
    assert trial.do("preview", "--stack", STACK) == 0, trial.log.read_text()


def typed(node_class: str) -> dict[str, Any]:
    """A NodePool that names the type of a class, and launches nothing."""
    key = "node.kubernetes.io/instance-type"
    spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class},
        "requirements": [{"key": key, "operator": "In", "values": [TYPES[node_class]]}],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": f"typed-{node_class}"},
        "spec": {"limits": {"cpu": "0"}, "template": {"spec": spec}},
    }


def make(release: Release, trial: Harness) -> None:
    """Make the environment with the program of the release.

    0.1.0 waits for a class before it makes the class's NodePool, and so long Karpenter tries the class with types at
    random, which the zone does not sell: ten minutes at times. NodePools of the test's own end that.
    """
    before = unpack(release, trial.checkout.parent / "before")
    kubectl = f"kubectl --kubeconfig {trial.state}/plane/admin.kubeconfig"
    pools = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*map(typed, TYPES)]})
    there = f"until {kubectl} get ec2nodeclass {' '.join(TYPES)}; do sleep 1; done"
    helped = f"timeout 900 bash -c '{there}' && echo '{pools}' | {kubectl} create --filename -"
    up = f"pulumi up --yes --skip-preview --non-interactive --stack {STACK}"
    trial.shell(f"cd {before}; ({helped}) &>/dev/null & {up}")
    for node_class in TYPES:
        trial.shell(f"{kubectl} delete nodepool typed-{node_class}")


def gang(trial: Harness) -> Gang:
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


def changes(trial: Harness) -> None:
    """`up` until the engine is done. It then follows the job, and is ended."""
    command = trial.start("up", "--stack", STACK, "--wait", "900")
    assert until(lambda: " changes" in trial.said("up")), trial.log.read_text()
    command.terminate()
    command.wait()


@pytest.fixture(scope="module", params=OLDER, ids=[each.name for each in OLDER])
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Release, Harness, Gang]]:
    """A release, its environment, and the gang that runs there."""
    release: Release = request.param
    file = {f"Pulumi.{STACK}.yaml": yaml.safe_dump({"config": settings(release)})}
    with rehearsing(STACK, file) as trial:
        begin(trial)
        make(release, trial)
        assert trial.do("kubeconfig", "--stack", STACK) == 0, trial.log.read_text()
        assert until(lambda: [pod[2] for pod in gang(trial)] == ["Running", "Running"])
        yield release, trial, gang(trial)


def test_a_preview_loses_what_the_changelog_names_and_nothing_else(
    made: tuple[Release, Harness, Gang],
) -> None:
    release, trial, _ = made
    said = trial.shell(f"pulumi preview --json --stack {STACK}")
    steps = json.loads(said[said.index("{") :])["steps"]
    assert lost_by(steps) == told(release, (CHECKOUT / "CHANGELOG.md").read_text())


def test_an_update_leaves_the_gang_alone_and_a_second_one_changes_nothing(
    made: tuple[Release, Harness, Gang],
) -> None:
    _, trial, before = made
    changes(trial)
    assert gang(trial) == before, "no pod of it moved or was started again"
    trial.shell(f"pulumi preview --expect-no-changes --stack {STACK}")


def test_the_gang_ends_as_it_was_and_there_is_nothing_left_to_change(
    made: tuple[Release, Harness, Gang],
) -> None:
    _, trial, before = made
    assert gang(trial) == before
    for pod in trial.get(GANG)["items"]:
        name = pod["metadata"]["name"]
        trial.shell(f"kubectl exec --namespace training {name} -- touch {END}")
    assert trial.do("up", "--stack", STACK) == 0, trial.log.read_text()
    assert " 0 changes" in trial.said("up")
    assert trial.condition(JOB) == "Complete"
