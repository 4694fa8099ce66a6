"""Access entries that an update gives another name, such as those of a team that is renamed.

EKS has one access entry for a role (EKS API, CreateAccessEntry, ResourceInUseException). The engine makes new
objects before it deletes old ones, so each try of such an update fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.derive.teams import setting_of
from trainyard.plan import EnvironmentPlan
from trainyard.problems import At, InputError
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.leaving import PREFIX

ENTRY = "aws:eks/accessEntry:AccessEntry"
TYPES = frozenset({ENTRY})
"""Types of resources that the rule looks at."""


def entry_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """Roles whose access entry has another name in the state."""
    names = {deployed.output(ENTRY, name, "principalArn"): name for name in deployed.names(ENTRY)}
    for name, path, arn, owner in _wanted(plan):
        if names.get(arn, name) != name:
            yield At(path).must(
                "not take a role over in one update: EKS has one access entry for a role, and the new one would be"
                " made before the old one is deleted",
                got=f"{arn}, which has the access entry {names[arn]}",
                fix=f"run `pulumi up` without {owner} first, and with it then",
            )


def _wanted(plan: EnvironmentPlan) -> Iterator[tuple[str, str, str, str]]:
    """Logical name of each access entry of a person's role, the setting that names the role, its ARN, and what the
    setting belongs to."""
    for role in plan.cluster.roles:
        component = "cluster" if role.setting == "admins" else role.setting
        whose = f"{role.setting.removesuffix('s')} {role.name}"
        yield f"{component}-{role.name}", role.path, role.arn, whose
    for team, entry in plan.teams.items():
        for name, each in entry.entrants.items():
            whose = f"team {team}" if each.role == "deployer" else "it"
            yield f"{PREFIX}{team}-{name}", setting_of(team, each.role), each.role_arn, whose
