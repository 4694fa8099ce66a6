"""In which zones a network cannot be, and what a stack cannot be called."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.zones import OFFERS, WITHOUT_EKS, zone_names
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.problems import InputError


def stack_errors(stack: str) -> Iterator[InputError]:
    """A name that no environment can have (EC2 API, CreateSecurityGroup, GroupName)."""
    if stack == "sg" or stack.startswith("sg-"):
        yield InputError(
            path="stack",
            must=(
                "not begin with sg-: every security group is called <stack>-…, and EC2 takes"
                " no group name that begins so"
            ),
            got=stack,
            fix=f"rename the stack and its file, such as Pulumi.env-{stack}.yaml",
        )


def network_zone_errors(region: str, wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Zones that the network names and that no cluster can have. Which id a zone has, only the
    account knows: preflight.py."""
    if wanted.zone_id in WITHOUT_EKS:
        ids = {id_ for sold in OFFERS.values() for id_ in sold.get(region, "").split()}
        yield InputError(
            path="environment.zone_id",
            must="be the id of a zone in which EKS places control planes",
            got=str(wanted.zone_id),
            fix=(
                "another zone, and its id, which is one of"
                f" {', '.join(sorted(ids.difference(WITHOUT_EKS)))}"
            ),
        )
    yield from _listed(region, wanted)


def _listed(region: str, wanted: EnvironmentConfig) -> Iterator[InputError]:
    """`network.zones`; plan.zone_cidrs has room for every zone of the table."""
    path, listed, known = "environment.network.zones", wanted.network.zones, zone_names(region)
    if not listed or not known:
        return
    kept = [zone for zone in dict.fromkeys(listed) if zone in known]
    more = [zone for zone in known if zone not in (*kept, wanted.zone)]
    enough = [*kept, *more[: max(0, 2 - len({*kept, wanted.zone}))]]
    rule = None
    if len(kept) < len(listed):
        rule = f"must name zones of {region}, and none of them twice"
    elif len({*listed, wanted.zone}) < 2:
        rule = "must name a second zone beside environment.zone: EKS wants two"
    if rule:
        yield InputError(
            path=path,
            must=rule,
            got=f"[{', '.join(listed)}]",
            fix=f"zones: [{', '.join(enough)}]",
        )
