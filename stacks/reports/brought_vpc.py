"""What `make check LIVE=1` asks about a VPC that the stack is brought, and what the answers mean. What
the VPC must be: plans/vpc_faults.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
        f"S3 endpoint of {vpc}": lambda: s3_findings(network, account.without_s3(vpc, subnets)),
    }


def vpc_findings(network: BroughtNetworkPlan, found: VpcFound | None) -> Iterator[InputError]:
    """Everything that is wrong with the VPC. `found`: None where there is none."""
    for fault in faults(network, found):
        yield InputError(path=fault.path, must=fault.must, got=fault.got, fix=fault.fix)


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
    if without and not network.s3_endpoint:
        yield InputWarning(
            path=path,
            text=(
                f"{', '.join(without)} reach S3 by the way to the internet; with s3_endpoint: true the"
                " stack makes a gateway endpoint, which is free"
            ),
        )
