"""In which zones a network cannot be, and what a stack cannot be called."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.zones import OFFERS, WITHOUT_EKS, zone_names
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.problems import Fault


def stack_faults(stack: str) -> Iterator[Fault]:
    """A name that no environment can have (EC2 API, CreateSecurityGroup, GroupName)."""
    if stack == "sg" or stack.startswith("sg-"):
        yield Fault(
            path="stack",
            rule=(
                "must not begin with sg-: every security group is called <stack>-…, and EC2 takes"
                " no group name that begins so"
            ),
            value=stack,
            way_out=f"rename the stack and its file, such as Pulumi.env-{stack}.yaml",
        )


def network_zone_faults(region: str, wanted: EnvironmentConfig) -> Iterator[Fault]:
    """Zones that the network names and that no cluster can have. Which id a zone has, only the
    account knows: preflight.py."""
    if wanted.zone_id in WITHOUT_EKS:
        ids = {id_ for sold in OFFERS.values() for id_ in sold.get(region, "").split()}
        yield Fault(
            path="environment.zone_id",
            rule="must be the id of a zone in which EKS places control planes",
            value=str(wanted.zone_id),
            way_out=(
                "another zone, and its id, which is one of"
                f" {', '.join(sorted(ids.difference(WITHOUT_EKS)))}"
            ),
        )
    yield from _listed(region, wanted)


def _listed(region: str, wanted: EnvironmentConfig) -> Iterator[Fault]:
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
        yield Fault(
            path=path,
            rule=rule,
            value=f"[{', '.join(listed)}]",
            way_out=f"zones: [{', '.join(enough)}]",
        )
