"""The permissions boundary that `trainyard policy --boundary` prints lets the roles of a stack do their work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from tests.graph.test_recorded_stacks import EVERYTHING, graph_of
from trainyard.objects.deployer import ATTACHED, LARGEST
from trainyard.objects.iam.boundary import boundary, called
from trainyard.parts.parts import SERVICES

STACKS = (EVERYTHING, "no way to the internet", "a store of this cluster only")
"""Between them they have every policy of a role."""
CALLED = called(SERVICES)


def _actions(policy: dict[str, Any]) -> Iterator[str]:
    statements = policy["Statement"]
    for each in statements if isinstance(statements, list) else [statements]:
        actions = each["Action"]
        yield from [actions] if isinstance(actions, str) else actions


@pytest.fixture(scope="module")
def done() -> set[str]:
    """What roles may do: actions, with the wildcards that policies of AWS have."""
    inline = [
        json.loads(node.inputs["policy"])
        for stack in STACKS
        for node in graph_of(stack).of("RolePolicy")
    ]
    of_aws = json.loads(aws_managed_policies_data)
    attached = [of_aws[name]["Document"] for name in ATTACHED]
    return {action for policy in (*inline, *attached) for action in _actions(policy)}


def test_a_boundary_lets_roles_do_what_their_policies_allow(done: set[str]) -> None:
    assert len(done) > 60
    assert {
        one for one in done if not any(fnmatchcase(one, allowed) for allowed in CALLED)
    } == set()


@pytest.mark.parametrize("action", CALLED)
def test_what_it_allows_some_role_does(action: str, done: set[str]) -> None:
    assert any(fnmatchcase(one, action) for one in done)


def test_it_widens_no_role_and_fits_a_managed_policy() -> None:
    assert not any(fnmatchcase(each, one) for one in CALLED for each in WIDENING)
    assert len("".join(json.dumps(boundary(SERVICES)).split())) < LARGEST


WIDENING = ("iam:CreateUser", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:CreateRole")
