"""What `make check LIVE=1` asks about a VPC that the stack is brought, and what the answers mean. What
the VPC must be: plans/vpc_faults.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from plans.networks import AnyNetworkPlan, BroughtNetworkPlan
from plans.vpc_faults import AT, VpcFound, faults
from stacks.reports.account import Account
from stacks.settings.problems import InputError, InputWarning

Check = Callable[[], Iterator[InputError | InputWarning]]


def vpc_checks(account: Account, network: AnyNetworkPlan) -> dict[str, Check]:
    """The questions by name; none where the stack makes its VPC."""
    if not isinstance(network, BroughtNetworkPlan):
        return {}
    vpc, subnets = network.vpc_id, [zone.subnet_id for zone in network.zones]
    return {
        f"VPC {vpc}": lambda: vpc_findings(network, account.vpc(vpc, subnets)),
        f"endpoints of {vpc}": lambda: endpoint_findings(network, account.endpoint_apis(vpc)),
        f"S3 endpoint of {vpc}": lambda: s3_findings(network, account.without_s3(vpc, subnets)),
    }


def vpc_findings(network: BroughtNetworkPlan, found: VpcFound | None) -> Iterator[InputError]:
    """Everything that is wrong with the VPC. `found`: None where there is none."""
    for fault in faults(network, found):
        yield InputError(path=fault.path, must=fault.must, got=fault.got, fix=fault.fix)


def endpoint_findings(
    network: BroughtNetworkPlan, there: Collection[str]
) -> Iterator[InputError | InputWarning]:
    """APIs that nothing leads to, and endpoints that would be there twice. `there`: APIs that the VPC
    has an endpoint for."""
    path = f"{AT}.endpoints"
    lacking = [api for api in network.called_apis if api not in there]
    twice = [api for api in network.called_apis if api in there]
    if network.isolated and lacking and not network.endpoints:
        yield InputError(
            path=path,
            must="lead to every AWS API that is called from inside the VPC",
            got=f"no endpoint with private DNS for {', '.join(lacking)}",
            fix="make those in the VPC, or write private where it has none of them",
            write="private",
        )
    if network.endpoints and twice:
        yield InputWarning(
            path=path,
            text=(
                f"{network.vpc_id} has endpoints for {', '.join(twice)}; unless they are this stack's"
                " own, AWS refuses a second one with private DNS"
            ),
        )


def s3_findings(
    network: BroughtNetworkPlan, without: Sequence[str]
) -> Iterator[InputError | InputWarning]:
    """Whether the stack must make the endpoint. `without`: the subnets whose route table has none."""
    path, served = f"{AT}.s3_endpoint", len(network.zones) - len(without)
    if network.s3_endpoint and served:
        yield InputWarning(
            path=path,
            text=(
                f"{served} of {len(network.zones)} subnets have a gateway endpoint for S3; unless it"
                " is this stack's own, AWS refuses a second one: delete s3_endpoint"
            ),
        )
    if without and not network.s3_endpoint and network.isolated:
        yield InputError(
            path=path,
            must="be true: without the internet images come from S3 by a gateway endpoint",
            got=f"false, and none for {', '.join(without)}",
            fix="write true",
            write=True,
        )
    elif without and not network.s3_endpoint:
        yield InputWarning(
            path=path,
            text=(
                f"{', '.join(without)} reach S3 by the way to the internet; with s3_endpoint: true the"
                " stack makes a gateway endpoint, which is free"
            ),
        )
