"""A team cannot fill etcd with objects of any kind that its roles make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stackfile import at
from tests.support.teams import both, checkout, environment_of, listed
from trainyard.objects.teams.team_access import ROLES
from trainyard.objects.teams.team_limits import counts


def nothing(settings: dict[str, object]) -> None:
    """No edit."""


@pytest.mark.parametrize("role", ROLES)
def test_every_kind_that_a_role_makes_is_counted(role: str, tmp_path: Path) -> None:
    """But for connections to ports, which are no objects."""
    operator = at("training_operator", {"version": "1.8.1"})
    plan = environment_of(checkout(tmp_path, both(listed, operator), nothing)).teams["vision"]
    hard = counts(plan)["hard"]
    made = {
        f"count/{resource}.{grant.group}".rstrip(".")
        for grant in ROLES[role]
        for resource in grant.resources
        if "create" in grant.verbs and "/" not in resource
    }
    assert made - hard.keys() == set()
    assert hard["count/trainingruntimes.trainer.kubeflow.org"] == str(plan.max_jobs + 50)
