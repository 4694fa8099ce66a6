"""The table of roles, and the same table in the documents."""

from __future__ import annotations

import re

from tests.support.recording import CHECKOUT
from trainyard.objects.teams.team_access import ROLES, grants

EVERY = [grant for role in ROLES for grant in grants(role, queues=True, secrets=True)]


def test_the_table_of_the_documents_is_the_table_of_the_program() -> None:
    page = (CHECKOUT / "docs/teams.md").read_text()
    section = page.partition("### Who may do what")[2].partition("###")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in re.findall(r"^\|.*$", section, re.M)
    ]
    head, _, *told = rows
    written = {
        (role, resource): verbs.split()
        for resources, *cells in told
        for role, verbs in zip(head[1:], cells, strict=True)
        for resource in resources.split(", ")
        if verbs
    }
    meant = {
        (role, resource): [*grant.verbs]
        for role in ROLES
        for grant in grants(role, queues=True, secrets=True)
        for resource in grant.resources
    }
    assert written == meant


def test_no_role_has_what_would_lead_out_of_the_namespace() -> None:
    """Each of these is an attack of tests/controllers/test_team_attacks.py, too."""
    reading = {"get", "list", "watch"}
    written = {
        resource for grant in EVERY if set(grant.verbs) - reading for resource in grant.resources
    }
    jobs = {"trainjobs", "pytorchjobs", "trainingruntimes", "configmaps"}
    assert written == {*jobs, "secretproviderclasses", "pods/portforward"}
    named = {resource for grant in EVERY for resource in grant.resources}
    assert not named & {"secrets", "pods/exec", "pods/attach", "serviceaccounts/token", "*"}


def test_nobody_may_everything() -> None:
    assert all("*" not in grant.verbs for grant in EVERY)


def test_who_cannot_start_pods_cannot_reach_their_ports() -> None:
    named = {
        role
        for role, grants_of_role in ROLES.items()
        for grant in grants_of_role
        if "pods/portforward" in grant.resources
    }
    starting = {
        role
        for role, grants_of_role in ROLES.items()
        for grant in grants_of_role
        if "trainjobs" in grant.resources and "create" in grant.verbs
    }
    assert named == starting == {"deployer", "member"}
