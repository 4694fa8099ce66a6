"""Questions of `trainyard check --live` about an existing VPC, and what the answers mean. Requirements for
the VPC: trainyard/existing/vpc_faults.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from trainyard.catalog.aws.endpoints import S3
from trainyard.existing.store_faults import Client
from trainyard.existing.vpc_faults import AT, VpcFound, faults
from trainyard.live.existing.buckets import bucket_uses
from trainyard.live.existing.cluster import groups_of_nodes
from trainyard.live.existing.endpoint_policies import (
    S3Needs,
    api_policy_findings,
    s3_policy_findings,
)
from trainyard.live.existing.vpc_walls import HTTPS, acl_findings, dns_findings
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import once
from trainyard.live.questions.network_questions import EndpointFound
from trainyard.plan import EnvironmentPlan
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.stores.kinds import needs_client, plan_kind

Check = Callable[[], Iterator[InputError | InputWarning]]


def vpc_checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig
) -> dict[str, Check]:
    """The questions by name; none where the stack makes its VPC."""
    if not isinstance(plan.network, ExistingNetworkPlan):
        return {}
    network: ExistingNetworkPlan = plan.network
    vpc, subnets = network.vpc_id, [zone.subnet_id for zone in network.zones]
    found = once(lambda: account.vpc(vpc, subnets))
    checks: dict[str, Check] = {
        f"VPC {vpc}": lambda: faults(network, found()),
        f"endpoints of {vpc}": lambda: endpoint_findings(
            network, found(), account.endpoints(vpc), groups_of_nodes(account, plan)
        ),
        f"S3 endpoint of {vpc}": lambda: s3_findings(
            network, found(), account.without_s3(vpc, subnets)
        ),
        f"policy of the S3 endpoint of {vpc}": lambda: s3_policy_findings(
            network, found(), account.s3_policies(vpc, subnets), _needs(plan, wanted)
        ),
        f"DNS servers of {vpc}": lambda: dns_findings(network, found(), account.name_servers(vpc)),
        f"network ACLs of {vpc}": lambda: acl_findings(network, found(), account.acls(subnets)),
    }
    if wanted.teams:
        checks[f"networks behind {vpc}"] = lambda: reach_of_teams(
            network, account.ways_to_networks(vpc, subnets)
        )
    return checks


def reach_of_teams(network: ExistingNetworkPlan, ways: Mapping[str, str]) -> Iterator[InputWarning]:
    """Other networks that pods of teams reach: their policies refuse the VPC, and not what is behind it. `ways`: range
    → gateway."""
    if ways:
        led = ", ".join(f"{range_} by {way}" for range_, way in sorted(ways.items()))
        yield At("environment.teams").warning(
            f"pods of teams reach TCP 443 of networks behind {network.vpc_id}, to which its subnets have routes: {led}."
            " The policies of teams refuse the ranges of the VPC alone. Where a team must not reach what is there, have"
            " the owner of the network refuse the nodes' subnets in its security groups, network ACLs or firewall"
        )


def _needs(plan: EnvironmentPlan, wanted: EnvironmentConfig) -> S3Needs:
    """Needs of nodes and pods. FSx, not they, reads buckets that a file system is linked to."""
    linked = {
        name for store in plan.stores.values() for name in plan_kind(store).linked_buckets(store)
    }
    return S3Needs(
        region=plan.identity.region,
        client=any(map(needs_client, wanted.storage.values())),
        buckets=[use for use in bucket_uses(plan, wanted) if use.bucket not in linked],
    )


def endpoint_findings(
    network: ExistingNetworkPlan,
    vpc: VpcFound | None,
    there: Sequence[EndpointFound],
    groups: tuple[str, ...],
) -> Iterator[InputError | InputWarning]:
    """APIs that nothing leads to, endpoints that lead nowhere, and endpoints that would be there twice.
    `there`: the endpoints of the VPC. `groups`: security groups of all nodes."""
    if network.endpoints_elsewhere:
        yield _elsewhere(network)
    elif vpc and vpc.shared_by:
        yield _out_of_sight(network, vpc.shared_by)
    else:
        yield from _in_sight(network, vpc, there, groups)


def _in_sight(
    network: ExistingNetworkPlan,
    vpc: VpcFound | None,
    there: Sequence[EndpointFound],
    groups: tuple[str, ...],
) -> Iterator[InputError | InputWarning]:
    path, called = f"{AT}.endpoints", network.called_apis
    named = [one for one in there if one.private_dns and one.api in called]
    lacking = [api for api in called if api not in {one.api for one in named}]
    if network.isolated and lacking and not network.endpoints:
        yield InputError(
            path=path,
            must="lead to every AWS API that is called from inside the VPC",
            got=f"no endpoint with private DNS for {', '.join(lacking)}",
            fix="make those in the VPC, or write private where it has none of them, or elsewhere where"
            " private hosted zones lead to endpoints of another VPC",
            write="private",
        )
    if network.endpoints:
        if named:
            yield InputWarning(
                path=path,
                text=(
                    f"{network.vpc_id} has endpoints for {', '.join(sorted({one.api for one in named}))};"
                    " unless they are this stack's own, AWS refuses a second one with private DNS"
                ),
            )
        return
    yield from api_policy_findings(named)
    for one in named:
        yield from _of_endpoint(network, vpc, one, groups)


def _reached(network: ExistingNetworkPlan) -> str:
    """The APIs that endpoints must lead to: that of S3 too, where nothing else does."""
    return ", ".join([S3, *network.called_apis] if network.isolated else network.called_apis)


def _out_of_sight(network: ExistingNetworkPlan, owner: str) -> InputWarning:
    """EC2 describes an endpoint to the account that made it."""
    apis = _reached(network)
    unknown = (
        f"nothing checks that it has them for {apis}; each must have private DNS and let"
        if network.isolated
        else f"any of them with private DNS for {apis} must be available and let"
    )
    return InputWarning(
        path=f"{AT}.vpc_id",
        text=(
            f"{network.vpc_id} belongs to account {owner}, which shares it; its endpoints are not"
            f" visible from here, and {unknown} TCP 443 in from the private subnets"
        ),
    )


def _elsewhere(network: ExistingNetworkPlan) -> InputWarning:
    return InputWarning(
        path=f"{AT}.endpoints",
        text=(
            f"elsewhere: nothing checks that nodes in {network.vpc_id} reach {_reached(network)} by"
            " endpoints of another VPC; the private hosted zone of each must be associated with this"
            " VPC, and each must let TCP 443 in from the private subnets"
        ),
    )


def _of_endpoint(
    network: ExistingNetworkPlan,
    vpc: VpcFound | None,
    endpoint: EndpointFound,
    groups: tuple[str, ...],
) -> Iterator[InputError]:
    """Private DNS makes an endpoint the only way to its API, also where there is a way to the
    internet."""
    path = f"{AT}.endpoints"
    if endpoint.state.lower() != "available":
        yield InputError(
            path=path,
            must="be endpoints that are available: their API has no other address in the VPC",
            got=f"{endpoint.id} for {endpoint.api}, which is {endpoint.state}",
            fix=f"wait until `aws ec2 describe-vpc-endpoints --vpc-endpoint-ids {endpoint.id}` says"
            " available, or delete it and make another",
        )
    shut = [
        found.cidr
        for zone in network.zones
        if vpc and (found := vpc.subnets.get(zone.subnet_id))
        if not any(
            not rule.egress
            and rule.lets(HTTPS, Client(zone=zone.name, cidr=found.cidr, groups=groups))
            for rule in endpoint.rules
        )
    ]
    if shut:
        group = next(iter(endpoint.groups), "<security group>")
        ranges = ",".join(f"{{CidrIp={cidr}}}" for cidr in shut)
        yield InputError(
            path=path,
            must="let TCP 443 in from the private subnets",
            got=f"{endpoint.id} for {endpoint.api}, whose security groups"
            f" ({', '.join(endpoint.groups) or 'none'}) have no rule for {', '.join(shut)}",
            fix=f"run `aws ec2 authorize-security-group-ingress --group-id {group} --ip-permissions"
            f" IpProtocol=tcp,FromPort=443,ToPort=443,IpRanges=[{ranges}]`",
        )


def s3_findings(
    network: ExistingNetworkPlan, vpc: VpcFound | None, without: Sequence[str]
) -> Iterator[InputError | InputWarning]:
    """Findings about a gateway endpoint for S3 that the stack must make, or must not. `without`:
    the subnets whose route table has none."""
    if vpc and vpc.shared_by:
        return  # it is not visible, as the finding about endpoints says
    path, served = f"{AT}.s3_endpoint", len(network.zones) - len(without)
    if network.s3_endpoint and served:
        yield InputWarning(
            path=path,
            text=(
                f"{served} of {len(network.zones)} subnets have a gateway endpoint for S3; unless it"
                " is this stack's own, AWS refuses a second one: delete s3_endpoint"
            ),
        )
    if network.endpoints_elsewhere and network.isolated:
        return  # the endpoint of S3 is elsewhere, too
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
