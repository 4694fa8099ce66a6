"""Two teams write the same path on the same stores, and neither sees the other's: by Lustre's directory,
by EFS's access point, and by S3's prefix with the identity of the pod."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing_teams, with_l4
from trainyard.decide import plan_stack
from trainyard.reports.policy import policies
from trainyard.settings.reading.reader import read_file

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

TEAMS, STORES = ("vision", "nlp"), ("scratch", "home", "corpus")
CONTRACTED = TEAMS[0]
"""Team that deploys by the contract of its environment alone; the other has its stack file beside."""
LOOK = "; ".join(
    f"echo {store} had $(ls /{store} | wc -l) files; echo $TEAM > /{store}/mine; ls /{store}/.. /{store}"
    for store in STORES
)


STACK = with_l4(
    storage={
        "scratch": {
            "lustre": {"capacity_gib": 1200, "deployment": "SCRATCH_2"},
            "data": "delete",
            "teams": "apart",
        },
        "home": {"efs": {"only_this_cluster": True}, "data": "delete", "teams": "apart"},
        "corpus": {"s3": {"writable": True}, "data": "delete", "teams": "apart"},
    },
    teams={team: {"deployer": f"arn:aws:iam::123456789012:role/{team}"} for team in TEAMS},
)


def team(name: str) -> Object:
    job: Any = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023",
        "command": ["bash", "-c", LOOK],
        "env": {"TEAM": name},
        "shared_memory_gib": 8,
        "storage": {store: {"path": f"/{store}"} for store in STORES},
    }
    return {
        "aws:region": "us-east-2",
        "trainyard:team": {"environment": "shared", "name": name, "jobs": {"look": job}},
    }


@contextmanager
def by_contract(harness: Harness, name: str) -> Iterator[None]:
    """A checkout in which the team has the contract of its environment, and the stack file of the
    environment is not there. Afterwards that is back; the team still names its contract."""
    words = f"contract --stack shared --team {name}"
    harness.shell(f"{sys.executable} -m trainyard {words} > contract.yaml")
    values = team(name)
    values["trainyard:team"]["contract"] = "contract.yaml"
    (harness.checkout / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": values}))
    environment = harness.checkout / "Pulumi.shared.yaml"
    text = environment.read_text()
    environment.unlink()
    try:
        yield
    finally:
        environment.write_text(text)


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    files = {f"Pulumi.{name}.yaml": yaml.safe_dump({"config": team(name)}) for name in TEAMS}
    with rehearsing_teams("shared", STACK, files=files) as made:
        yield made


@pytest.mark.parametrize("name", TEAMS)
def test_a_team_finds_empty_stores_though_another_wrote_there(harness: Harness, name: str) -> None:
    plan = plan_stack(read_file(name, harness.checkout), harness.checkout).accepted()
    [policy] = policies(plan).values()
    given = f"--role-name {name} --policy-name contract"
    harness.shell(f"aws iam put-role-policy {given} --policy-document '{json.dumps(policy)}'")
    with by_contract(harness, name) if name == CONTRACTED else nullcontext():
        assert harness.do("up", "--stack", name) == 0, harness.log.read_text()
    said = harness.shell(
        f"kubectl logs --namespace team-{name} --selector jobset.sigs.k8s.io/jobset-name=look --tail -1"
    )
    assert [f"{store} had 0 files" in said for store in STORES] == [True] * 3, said
    assert not any(other in said for other in TEAMS if other != name), said


def test_down_leaves_nothing(harness: Harness) -> None:
    for name in TEAMS:
        # The stack of a team speaks to the cluster in its role, which is the test's own.
        assert harness.do("down", "--stack", name) == 0, harness.log.read_text()
        given = f"--role-name {name}"
        harness.shell(f"aws iam delete-role-policy {given} --policy-name contract")
        harness.shell(f"aws iam delete-role {given}")
    assert harness.do("down") == 0, harness.log.read_text()
