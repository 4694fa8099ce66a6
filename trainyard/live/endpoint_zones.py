"""`trainyard check --live`: whether PrivateLink offers the interface endpoints that the stack makes, in each zone
of the network.

EC2 refuses the whole endpoint where one of its subnets is in a zone without the service (PrivateLink
guide, create-interface-endpoint). Which zones those are differs from service to service, and only the
account can say: a zone's name means another zone in another account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trainyard.existing.vpc_faults import AT
from trainyard.live.questions.account import Account
from trainyard.plans.networks import AnyNetworkPlan, ExistingNetworkPlan, OwnNetworkPlan
from trainyard.problems import InputError

Offers = Mapping[str, tuple[str, ...]]
"""API → names of the zones in which the region offers an endpoint; an API without one is not in it."""


def endpoint_zone_checks(
    account: Account, network: AnyNetworkPlan
) -> dict[str, Callable[[], Iterator[InputError]]]:
    """One question, about all services; none where the stack makes no interface endpoints."""
    if network.endpoints is None:
        return {}
    apis = network.endpoints.apis
    return {"endpoints on offer": lambda: endpoint_errors(network, account.endpoint_offers(apis))}


def endpoint_errors(network: AnyNetworkPlan, offers: Offers) -> Iterator[InputError]:
    """Services that the region lacks, and zones of the network that lack some of the others."""
    apis = network.endpoints.apis if network.endpoints else ()
    if absent := [api for api in apis if api not in offers]:
        region = network.identity.region
        yield InputError(
            path=f"{AT}.endpoints",
            must=f"be endpoints that PrivateLink offers in {region}",
            got=f"private, and {region} has none for {', '.join(absent)}",
            fix=f"take another region{_without_endpoints(network)}",
        )
    yield from _zone_errors(network, {api: offers[api] for api in apis if api in offers})


def _zone_errors(network: AnyNetworkPlan, offers: Offers) -> Iterator[InputError]:
    """Zones of the network without some of the services. `offers`: of all that the region has."""
    sets = [{*zones} for zones in offers.values()]
    fit = sorted(set[str].intersection(*sets)) if sets else []
    for zone in [each.name for each in network.zones]:
        if lacking := [api for api, zones in offers.items() if zone not in zones]:
            yield InputError(
                path=_setting(network, zone),
                must="be in a zone in which PrivateLink offers every endpoint of the stack",
                got=f"{zone}, which has none for {', '.join(lacking)}",
                fix=_other_zone(network, fit) + _without_endpoints(network),
            )


def _setting(network: AnyNetworkPlan, zone: str) -> str:
    """Where the stack file names the zone."""
    if isinstance(network, ExistingNetworkPlan):
        return f"{AT}.private_subnets.{zone}"
    return "environment.zone" if zone == network.training_zone.name else f"{AT}.zones"


def _other_zone(network: AnyNetworkPlan, fit: list[str]) -> str:
    """How to be in other zones. `fit`: those that have every endpoint."""
    if len(fit) < 2:
        return "take another region: EKS needs two zones"
    what = "a subnet" if isinstance(network, ExistingNetworkPlan) else "the name"
    return f"write {what} of one of {', '.join(fit)}"


def _without_endpoints(network: AnyNetworkPlan) -> str:
    """End of a fix where something else leads to AWS APIs: the internet, or endpoints that an existing VPC
    has."""
    only_way = isinstance(network, OwnNetworkPlan) and not network.ways_out
    return "" if only_way else ", or delete endpoints: private"
