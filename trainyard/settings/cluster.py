"""Settings of the EKS control plane. What may not stand beside what: trainyard/rules/access.py,
existing_cluster.py, cluster.py and endpoint.py."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pydantic

from trainyard.settings.aws import RoleArn
from trainyard.settings.job import Name


@dataclass(frozen=True, kw_only=True)
class AdminConfig:
    """An IAM role that may do everything in the cluster. The identity that runs `pulumi up` is an
    admin already."""

    role_arn: RoleArn
    """ARN of the IAM role."""


@dataclass(frozen=True, kw_only=True)
class ViewerConfig:
    """An IAM role that may look at the cluster and change nothing."""

    role_arn: RoleArn
    """ARN of the IAM role."""


ClusterName = Annotated[str, pydantic.Field(pattern=r"^[0-9A-Za-z][-_0-9A-Za-z]{0,99}$")]
LogType = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """The EKS control plane."""

    name: ClusterName | None = None
    """Name of an existing EKS cluster, instead of one that the stack creates. It must be in
    the VPC that `network.vpc_id` names. This program never changes or deletes it: see docs/cluster.md."""
    existing_add_ons: tuple[str, ...] = ()
    """EKS add-ons that the cluster of `name` has and this environment uses, beside `vpc-cni`,
    `kube-proxy` and `coredns`, which it must have. They stay as they are. The stack creates the others
    that it needs, such as `eks-pod-identity-agent`."""
    version: str
    """Kubernetes minor version, in quotes: "1.35", which is the recommended value, "1.34" or
    "1.36". It can be raised by one minor version at a time: see docs/upgrades.md. With `name`: the
    version that the cluster has."""
    service_cidr: str | None = None
    """IPv4 range of the addresses of Kubernetes services, between /24 and /12, in 10.0.0.0/8,
    172.16.0.0/12 or 192.168.0.0/16. Pods cannot reach anything else at these addresses, so it must
    overlap neither with the VPC nor with a network that is peered with it or connected by VPN. By default
    172.20.0.0/16, or 10.100.0.0/16 where that overlaps with the VPC. EKS never changes the range of a
    cluster. Refused with `name`: an existing cluster has its range."""
    upgrade_policy: Literal["extended", "standard"] = "extended"
    """Support policy of EKS for the time after standard support of the version. `extended`, the recommended
    value: the control plane stays as it is, and costs six times as much. `standard`: EKS upgrades
    the control plane by itself, at a time that it chooses."""
    logs: tuple[LogType, ...] = ("audit", "authenticator")
    """Logs of the control plane that EKS writes to CloudWatch Logs. CloudWatch bills them by the
    GB: an `audit` log of a busy cluster is several GB a day. An empty list turns them off."""
    log_retention_days: Annotated[int, pydantic.Field(ge=1, strict=True)] | None = None
    """Number of days that CloudWatch Logs keeps `logs`: 30, 90, 365 or another number that CloudWatch
    offers. The stack then owns the log group, and deletes it with the cluster. By default EKS makes the
    log group, which keeps every line and stays when the stack is destroyed."""
    deletion_protection: Annotated[bool, pydantic.Field(strict=True)] | None = None
    """`true`: EKS refuses to delete the cluster, so `pulumi destroy` ends with an error before anything
    is deleted. `false` takes the protection away, and `pulumi up` must run before `pulumi destroy`. By
    default a cluster keeps what it has; a new one is not protected."""
    scaling_tier: Literal["standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl"] | None = None
    """Capacity that EKS keeps ready for the control plane, whatever its load. `standard`: EKS scales the
    control plane with its load, for nothing more. The other tiers are for clusters whose API server
    answers with 429 (too many requests), and cost $1.65 to $13.90 an hour more in us-east-1. EKS changes
    the tier in place. By default a cluster keeps the tier it has; a new one is `standard`."""
    endpoint: Literal["public-and-private", "private"] = "public-and-private"
    """Access to the Kubernetes API. `public-and-private`: from `public_access_cidrs` and from
    inside the VPC. `private`: from inside the VPC only; one of `tunnel_port`, `proxy_url` and
    `inside_vpc` then says how `pulumi up` gets in. The first `pulumi up` of an environment must be
    `public-and-private` where the stack makes the VPC, which does not exist before, and with
    `tunnel_port`. A later change updates the cluster in place."""
    public_access_cidrs: tuple[str, ...] = ()
    """Public IPv4 ranges that may reach the public endpoint. Required with `public-and-private`,
    without a default. `curl https://checkip.amazonaws.com` prints your own address: write it with
    /32."""
    tunnel_port: Annotated[int, pydantic.Field(ge=1024, le=65535, strict=True)] | None = None
    """Port on your machine of a tunnel to the private endpoint, through a system node (AWS Systems
    Manager). The output `tunnel` is the command that opens it. The kubeconfig uses the tunnel only
    with `endpoint: private`; with `public-and-private` the setting prepares the nodes for it."""
    node_sessions: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: AWS Systems Manager opens a terminal on nodes of pools, by `aws ssm start-session --target
    <instance id>`, also on one that never joins the cluster, which no pod reaches. Whoever may start
    sessions is root there, so IAM and not Kubernetes decides who enters. By default nobody can."""
    proxy_url: str | None = None
    """Proxy through which Pulumi and kubectl reach the endpoint: http://proxy.example.com:3128, or
    with https:// or socks5://. No user name and no password: the kubeconfig is a stack output."""
    inside_vpc: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: Pulumi and kubectl run inside the VPC, or in a network with a route to it (VPN,
    peering, transit gateway)."""
    admins: dict[Name, AdminConfig] = field(default_factory=dict)
    """Roles that may do everything in the cluster, each under a name of your choice."""
    viewers: dict[Name, ViewerConfig] = field(default_factory=dict)
    """Roles that may look at everything in the cluster but Secrets, and change nothing, each under a name of
    your choice: for whoever is on call, or for the preview of a pull request."""
    deployer_role_arn: RoleArn | None = None
    """Role that creates everything. Pulumi's AWS provider and the kubeconfig assume it, in team
    stacks too. It is short for one role in `aws:assumeRoles`. By default the caller's own
    credentials are used. Leave it out where the caller has the role already, as a CI job often
    does: a role cannot assume itself unless its trust policy allows it."""
