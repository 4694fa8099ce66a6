"""Settings of the network: of a VPC that the stack makes, or of an existing one."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from trainyard.settings.section import Section

Internet = Literal["outbound", "none"]
VpcId = Annotated[str, pydantic.Field(pattern=r"^vpc-[0-9a-f]{8,17}$")]
SubnetId = Annotated[str, pydantic.Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]


@dataclass(frozen=True, kw_only=True)
class FlowLogsConfig:
    """Flow logs of the VPC: who talked to whom, of every network interface, in CloudWatch Logs."""

    days: Annotated[int, pydantic.Field(ge=1, strict=True)]
    """Number of days that CloudWatch Logs keeps them: 7, 14, 30, 90 or another number that CloudWatch
    offers. It bills them by the GB."""


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The VPC of the environment and its subnets."""

    cidr: str = "10.0.0.0/16"
    """Address range of the VPC: /16 to /20, inside RFC 1918. Each private subnet gets an eighth of
    it."""
    zones: tuple[str, ...] = ()
    """Names of the zones that get subnets, at least two. `environment.zone` is always one of them.
    By default they are that zone and the region's first two other zones. A changed list is
    refused once the cluster exists: EKS cannot leave the zones it was created in."""
    nat: Literal["single", "each_zone"] = "single"
    """Where NAT gateways are, through which nodes reach the internet. `single`, the recommended value:
    one, in `environment.zone`, where the GPU nodes are. `each_zone`: one in each zone, so that nodes
    of the other zones do not lose the internet with `environment.zone`. Each gateway costs money and
    takes a public address."""
    internet: Internet = "outbound"
    """Whether nodes reach the internet. `outbound`, the recommended value: through NAT gateways.
    `none`: the VPC has no NAT gateway, no internet gateway and no public subnets. It takes
    `endpoints: private`, and a registry of your account with all images: `artifacts.images`."""
    endpoints: Literal["s3", "private"] = "s3"
    """Endpoints of the VPC, by which nodes reach AWS APIs without the internet. `s3`, the recommended
    value with `internet: outbound`: one for S3, which is free. `private`: also an interface endpoint
    for each AWS API that this stack calls from inside the VPC, in each zone. Each costs money by the
    hour and zone: `trainyard plan` lists them."""
    flow_logs: Section[FlowLogsConfig] = None
    """By default no traffic is recorded."""


@dataclass(frozen=True, kw_only=True)
class ExistingNetworkConfig:
    """An existing VPC, instead of one that the stack creates. This program never changes or deletes
    it: see docs/network.md."""

    vpc_id: VpcId
    """ID of the VPC: vpc-0123456789abcdef0. The cluster cannot move to another VPC."""
    private_subnets: dict[str, SubnetId]
    """Zone and ID of the subnet for nodes and stores in it, at least two, `environment.zone` among
    them. Each subnet needs a route out, such as a NAT gateway, and gives no public addresses. Other
    zones replace the cluster: EKS cannot leave the zones it was created in."""
    s3_endpoint: Annotated[bool, pydantic.Field(strict=True)] = False
    """Whether the stack creates a gateway endpoint for S3, which is free, and enters it in the route
    tables of the subnets. AWS refuses a second one in the same route table."""
    internet: Internet = "outbound"
    """Whether nodes reach the internet. `outbound`: each subnet must have a default route. `none`: none
    is needed; then the VPC must have an endpoint for each AWS API that the stack calls, and
    `artifacts.images` must name a registry of your account with all images."""
    endpoints: Literal["existing", "private", "elsewhere"] = "existing"
    """Interface endpoints for AWS APIs. `existing`: those that the VPC has. `private`: the stack creates
    one for each AWS API that it calls from inside the VPC, in each zone of `private_subnets`. AWS
    refuses a second one for the same API. `elsewhere`: those of another VPC, which private hosted zones
    and a transit gateway lead to; the stack creates none and `trainyard check --live` looks for none."""


def _whose(value: object) -> str:
    """The tag of a network: `existing` by its class or by the settings that only an existing VPC has."""
    existing = isinstance(value, ExistingNetworkConfig)
    listed = isinstance(value, dict) and {"vpc_id", "private_subnets", "s3_endpoint"} & {*value}
    return "existing" if existing or listed else "own"


AnyNetwork = Annotated[
    Annotated[NetworkConfig, pydantic.Tag("own")]
    | Annotated[ExistingNetworkConfig, pydantic.Tag("existing")],
    pydantic.Discriminator(_whose),
]
"""A VPC that the stack creates, or an existing one."""

_EXISTING = (
    "delete it; an existing VPC is vpc_id, with private_subnets: a subnet for each zone, as in"
    " private_subnets: {ap-northeast-2a: subnet-0123456789abcdef0}"
)
NETWORK_HINTS = {
    **dict.fromkeys(("vpc", "subnet", "subnets", "subnetid", "subnetids"), _EXISTING),
    "vpcid": "did you mean vpc_id?",
    "publicsubnets": "delete it; nothing of an environment is in a public subnet",
    "cidr": "delete it; the range is that of the VPC that vpc_id names",
    "zones": "delete it; the zones are those of private_subnets",
    "nat": "delete it; the subnets of private_subnets have their routes",
    "flowlogs": "delete it; the flow logs of a VPC belong to whoever owns the VPC",
}
"""What people look for in `network`, in small letters without dashes → what to do instead."""
