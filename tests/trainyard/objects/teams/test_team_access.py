"""The table of roles, and the same table in the documents."""

from __future__ import annotations

import re

from tests.support.recording import CHECKOUT
from trainyard.objects.teams.team_access import OF_STARTER, ROLES, SCALES, Grant, grants


def every(role: str) -> tuple[Grant, ...]:
    """All that a role can have, with queues and without."""
    queued = grants(role, queues=True, secrets=True, schedules=True)
    free = grants(role, queues=False, secrets=True, schedules=True)
    return (*queued, *(grant for grant in free if grant not in queued))


def test_only_who_starts_jobs_scales_them_and_only_without_queues() -> None:
    may = {
        (role, queues)
        for role in ROLES
        for queues in (True, False)
        if SCALES in grants(role, queues=queues, secrets=False, schedules=False)
    }
    assert may == {("deployer", False), ("member", False)}


EVERY = [grant for role in ROLES for grant in every(role)]


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
    meant: dict[tuple[str, str], list[str]] = {}
    for role in ROLES:
        for grant in every(role):
            for resource in grant.resources:
                meant.setdefault((role, resource), []).extend(grant.verbs)
    assert written == meant


def test_no_role_has_what_would_lead_out_of_the_namespace() -> None:
    """Each of these is an attack of tests/controllers/test_team_attacks.py, too."""
    reading = {"get", "list", "watch"}
    written = {
        resource for grant in EVERY if set(grant.verbs) - reading for resource in grant.resources
    }
    jobs = {"trainjobs", "pytorchjobs", "pytorchjobs/scale", "trainingruntimes", "configmaps"}
    schedules = {"cronjobs", "jobs"}
    assert written == {*jobs, *schedules, "secretproviderclasses", "pods/portforward"}
    named = {resource for grant in EVERY for resource in grant.resources}
    assert not named & {"secrets", "pods/exec", "pods/attach", "serviceaccounts/token", "*"}


def test_the_account_of_schedules_may_nothing_that_a_member_may_not() -> None:
    """So whoever starts a pod under this account gains nothing."""
    member = {
        (grant.group, each, verb)
        for grant in ROLES["member"]
        for each in grant.resources
        for verb in grant.verbs
    }
    starter = {
        (grant.group, each, verb)
        for grant in OF_STARTER
        for each in grant.resources
        for verb in grant.verbs
    }
    assert starter and starter <= member


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
