"""Stores on file systems that exist: what the plan and the reports say about them."""

from __future__ import annotations

from tests.support.existing_stores import EFS, EXISTING_STORES, LUSTRE
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import at, environment_plan, planned
from trainyard.reports import plan
from trainyard.reports.costs.cost import estimate
from trainyard.reports.policy import policies, resource_types
from trainyard.stores.kinds import plan_kind

ON_EXISTING = (EXISTING_VPC, EXISTING_STORES)


def test_nothing_of_their_cost_is_in_the_sum_and_make_plan_says_so() -> None:
    found = environment_plan(*ON_EXISTING)
    lines = {line.what: line for line in estimate(found).usage}
    for what in ("existing Lustre scratch", "existing EFS home"):
        assert (lines[what].assumption, lines[what].as_of) == ("existing: not in this sum", None)
    assert estimate(found).storage == ()
    said = plan.text(found)
    assert f"scratch is {LUSTRE}, which this stack neither changes nor deletes" in said
    assert "existing: not in this sum" in said


def test_nobody_may_create_or_delete_them() -> None:
    found = environment_plan(*ON_EXISTING)
    assert not any("fsx" in kind or "efs" in kind for kind in resource_types(found))
    actions = {
        action
        for document in policies(found).values()
        for statement in document["Statement"]
        for action in statement["Action"]
        if action.startswith(("fsx:", "elasticfilesystem:"))
    }
    assert actions == {
        "elasticfilesystem:DescribeFileSystemPolicy",
        "elasticfilesystem:DescribeFileSystems",
        "fsx:DescribeFileSystems",
        "fsx:ListTagsForResource",
    }


def test_the_claim_of_another_file_system_has_another_name() -> None:
    found = environment_plan(*ON_EXISTING)
    stores = {name: plan_kind(store).name for name, store in found.stores.items()}
    assert stores == {"scratch": "lustre", "home": "efs"}
    names = {claim.store: claim.name for claim in found.workspace.claims}
    other = environment_plan(
        EXISTING_VPC,
        lambda settings: settings.update(
            storage={
                "scratch": {"lustre": {"file_system_id": "fs-0123456789abcdef9"}},
                "home": {"efs": {"file_system_id": EFS}},
            }
        ),
    )
    others = {claim.store: claim.name for claim in other.workspace.claims}
    assert others["scratch"] != names["scratch"] and others["home"] == names["home"]


def test_how_long_a_save_takes_is_said_to_be_unknown() -> None:
    warnings = [warning.text for warning in planned(*ON_EXISTING).warnings]
    [lustre] = [
        text
        for text in warnings
        if "scratch is an existing file system: how long a save takes" in text
    ]
    assert "`trainyard check --live` says how many fit" in lustre


def test_nothing_is_said_of_how_many_checkpoints_fit_where_a_file_system_grows() -> None:
    elsewhere = at("jobs.t5-large.checkpoints.store", "home")
    warnings = [warning.text for warning in planned(*ON_EXISTING, elsewhere).warnings]
    assert "home is an existing file system: how long a save takes is not checked" in warnings
