"""Errors where the account has too few public addresses left for the NAT gateways of a network that
the stack makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainyard.catalog.aws.instances import ADDRESS_QUOTA
from trainyard.live.questions.account import Account
from trainyard.plans.networks import AnyNetworkPlan, OwnNetworkPlan
from trainyard.problems import InputError


def public_address_checks(
    account: Account, network: AnyNetworkPlan
) -> dict[str, Callable[[], Iterator[InputError]]]:
    """The question, where the stack makes NAT gateways."""
    if not isinstance(network, OwnNetworkPlan) or not network.ways_out:
        return {}
    return {
        "public addresses": lambda: public_address_errors(
            network, *account.public_addresses(network.identity)
        )
    }


def public_address_errors(
    network: OwnNetworkPlan, quota: float, others: int
) -> Iterator[InputError]:
    """More NAT gateways than the account has addresses for. `others`: addresses that are not of this
    stack."""
    wanted, region = len(network.ways_out), network.identity.region
    if wanted + others <= quota:
        return
    fewer = "write nat: single, or " if wanted > 1 and others + 1 <= quota else ""
    yield InputError(
        path="environment.network.nat",
        must=f"need at most the {quota:g} public addresses of quota {ADDRESS_QUOTA}",
        got=f"{wanted} for NAT gateways" + f", beside {others} that others use" * bool(others),
        fix=(
            f"{fewer}run `aws service-quotas request-service-quota-increase --service-code ec2"
            f" --quota-code {ADDRESS_QUOTA} --desired-value {wanted + others} --region {region}`"
        ),
    )
