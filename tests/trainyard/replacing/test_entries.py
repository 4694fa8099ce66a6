"""An access entry keeps its name for as long as its role enters the cluster."""

from __future__ import annotations

from typing import Any

from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.entries import ENTRY, entry_errors

ROLE = "arn:aws:iam::123456789012:role"
VISION: dict[str, Any] = {
    "deployer": f"{ROLE}/vision-deployer",
    "members": [f"{ROLE}/vision"],
}
ADMIN = at("cluster.admins", {"me": {"role_arn": f"{ROLE}/admin"}})


def _teams(**teams: Any) -> Edit:
    return at("teams", teams)


def _deployed(*edits: Edit) -> Deployed:
    """What the program made of this stack file."""
    made = {
        (ENTRY, node.name): node.inputs
        for node in environment(*edits).nodes.values()
        if node.kind == ENTRY
    }
    return Deployed(resources=made)


def _said(before: Deployed, *edits: Edit) -> list[str]:
    return [str(each) for each in entry_errors(environment_plan(*edits), before)]


def test_a_stack_that_stays_or_is_new_takes_no_role_over() -> None:
    before = _deployed(ADMIN, _teams(vision=VISION))
    assert len(before.resources) >= 3
    assert _said(before, ADMIN, _teams(vision=VISION)) == []
    assert _said(Deployed(), ADMIN, _teams(vision=VISION)) == []
    assert _said(before) == []
    assert _said(before, ADMIN, _teams(vision=VISION, nlp={"deployer": f"{ROLE}/nlp"})) == []


def test_a_team_that_is_renamed_with_its_roles_is_refused() -> None:
    before = _deployed(_teams(vision=VISION))
    deployer, member = _said(before, _teams(perception=VISION))
    assert deployer == (
        "environment.teams.perception.deployer: must not take a role over in one update: EKS has one access entry"
        " for a role, and the new one would be made before the old one is deleted; got"
        f" {ROLE}/vision-deployer, which has the access entry team-vision-deployer. Fix: run `pulumi up` without team"
        " perception first, and with it then"
    )
    assert (
        "got arn:aws:iam::123456789012:role/vision, which has the access entry team-vision-member-"
        in member
    )
    assert member.endswith("Fix: run `pulumi up` without it first, and with it then")
    others = {"deployer": f"{ROLE}/perception-deployer"}
    assert _said(before, _teams(perception=others)) == []


def test_a_role_that_becomes_an_admin_or_another_role_of_its_team_is_refused() -> None:
    before = _deployed(ADMIN, _teams(vision=VISION))
    admin = at("cluster.admins", {"you": {"role_arn": f"{ROLE}/vision"}})
    [said] = _said(before, admin, _teams(vision={"deployer": VISION["deployer"]}))
    assert said.startswith(
        "environment.cluster.admins.you: must not take a role over in one update: "
    )
    assert said.endswith("Fix: run `pulumi up` without admin you first, and with it then")
    viewer = at("cluster.viewers", {"me": {"role_arn": f"{ROLE}/admin"}})
    [said] = _said(before, viewer, _teams(vision=VISION))
    assert said.startswith("environment.cluster.viewers.me: must not take a role over")
    assert said.endswith("Fix: run `pulumi up` without viewer me first, and with it then")
    swapped = {"deployer": f"{ROLE}/vision", "members": [f"{ROLE}/vision-deployer"]}
    assert len(_said(before, ADMIN, _teams(vision=swapped))) == 2
