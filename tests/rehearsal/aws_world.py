"""A served account for tests, with a control plane and a cluster that only pretend."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError

from rehearsal import paths
from rehearsal.aws import (
    backends,
    backups,
    eks,
    identity,
    keeper,
    parameters,
    quotas,
    service,
    services,
    sharing,
    storage,
)
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.faults import FAULTS
from rehearsal.aws.server import Application, serve
from rehearsal.toolchain.programs import KUBERNETES_RELEASES

REGION = "ap-northeast-2"
AT_ONCE, NEVER = 1e9, 1e-3
"""Speeds: everything AWS takes time for is over at the next request, or not while a test runs."""
_HTTP = urllib3.PoolManager()


def _check(version: str) -> None:
    if version not in KUBERNETES_RELEASES:
        raise ValueError(f"the rehearsal's control plane is not Kubernetes {version}")


class Plane:
    """A control plane that is ready when told so."""

    problem = ""

    def __init__(self) -> None:
        self.started, self.up = "", True

    def start(self, version: str, service_cidr: str) -> None:
        _check(version)
        self.started = f"{version} {service_cidr}"
        paths.PLANE.mkdir(parents=True, exist_ok=True)
        (paths.PLANE / "ca.crt").write_text("authority")

    def upgrade(self, version: str) -> None:
        _check(version)
        self.started = f"{version} {self.started.partition(' ')[2]}"

    def ready(self) -> bool:
        return self.up

    def stop(self) -> None:
        self.started = ""


class Kubernetes:
    """What the keeper needs of an API server: objects by kind and name, and nodes."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.nodes: list[dict[str, Any]] = []
        self.pods: list[dict[str, Any]] = []
        self.available = True

    def get(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        return self.objects.get(_name(obj))

    def apply(self, obj: dict[str, Any], *, manager: str) -> None:
        meta = obj["metadata"] | {"generation": 1, "managedFields": [{"manager": manager}]}
        copies = obj.get("spec", {}).get("replicas", 1) if self.available else 0
        status = {
            "observedGeneration": 1,
            "availableReplicas": copies,
            "desiredNumberScheduled": 1,
            "numberAvailable": copies,
        }
        self.objects[_name(obj)] = obj | {"metadata": meta, "status": status}

    def delete(self, obj: dict[str, Any]) -> None:
        self.objects.pop(_name(obj), None)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = ""
    ) -> dict[str, Any]:
        """Nodes, the pods of a node, and what a drain does to both. `body`: cordons or evicts."""
        if method == "PATCH":
            node = next(one for one in self.nodes if path.endswith(one["metadata"]["name"]))
            node["spec"] |= body["spec"]
        elif method == "POST":
            self.pods = [pod for pod in self.pods if pod["metadata"]["name"] not in path]
        elif path.startswith("/api/v1/pods"):
            return {"items": [p for p in self.pods if path.endswith(p["spec"]["nodeName"])]}
        else:
            assert path == "/api/v1/nodes"
        return {"items": self.nodes}

    def join(self, *ids: str) -> None:
        self.nodes += [
            {
                "metadata": {"name": id_},
                "spec": {"providerID": f"aws:///zone/{id_}"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            for id_ in ids
        ]


def _name(obj: dict[str, Any]) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


class Account:
    """The account over HTTP."""

    def __init__(self, port: int) -> None:
        self.url, self.planes, self.kubernetes = f"http://127.0.0.1:{port}", [], Kubernetes()

    def client(
        self, service: str, credentials: dict[str, str] | None = None, region: str = REGION
    ) -> Any:
        keys = credentials or {
            "AccessKeyId": identity.DEVELOPER_KEY,
            "SecretAccessKey": paths.world().developer_secret,
        }
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=region,
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys.get("SessionToken"),
            config=Config(retries={"total_max_attempts": 1}),
        )

    def world(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = _HTTP.request(
            method,
            f"{self.url}/_world/{path}",
            body=None if body is None else json.dumps(body),
            headers={"Authorization": f"Bearer {paths.world().world_secret}"},
        )
        return answer.status, json.loads(answer.data)

    def keep(self) -> None:
        """One round of the keeper in every cluster."""
        for cluster in list(eks.CLUSTERS.values()):
            keeper.keep(cluster, self.kubernetes)  # pyright: ignore[reportArgumentType] — plays the API server

    def speed(self, speed: float) -> None:
        CLOCK._speed = speed

    def types(self) -> set[str]:
        return {row["type"] for row in self.world("GET", "inventory")[1]}


@contextmanager
def served(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name in ("STATE", "LOGS", "PLANE"):
        patch.setattr(paths, name, folder if name == "STATE" else folder / name.lower())
    paths.LOGS.mkdir()
    paths.remember(paths.World(api_port=6443, account_port=0, speed=AT_ONCE))
    for held in (
        eks.CLUSTERS,
        parameters.PARAMETERS,
        backups.BACKUPS,
        storage.FILE_SYSTEMS,
        storage.ASSOCIATIONS,
        services._deleted_queues,
        sharing.OWNERS,
        *(one.kept for one in service.SERVICES.values()),
    ):
        held.clear()
    CLOCK.forget()
    FAULTS.clear()
    backends.reset()
    patch.setattr(quotas, "QUOTAS", dict(quotas.QUOTAS))
    server = serve(Application(), "127.0.0.1")
    account = Account(server.server_port)

    def new_plane() -> Plane:
        account.planes.append(Plane())
        return account.planes[-1]

    patch.setattr(eks, "new_plane", new_plane)
    try:
        yield account
    finally:
        server.shutdown()
        server.server_close()


def speak_to(account: Account, patch: pytest.MonkeyPatch) -> None:
    """Let AWS's programs and SDKs reach the account, as its developer."""
    patch.setenv("AWS_ENDPOINT_URL", account.url)
    patch.setenv("AWS_ACCESS_KEY_ID", identity.DEVELOPER_KEY)
    patch.setenv("AWS_SECRET_ACCESS_KEY", paths.world().developer_secret)


@contextmanager
def refused(code: str) -> Iterator[None]:
    """The call is refused with that code."""
    with pytest.raises(ClientError) as caught:
        yield
    assert caught.value.response["Error"]["Code"] == code, caught.value


def trust(*services_: str) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": list(services_)},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class Network:
    """A VPC with two private subnets in two zones, one public, an internet gateway and a security
    group."""

    def __init__(self, account: Account) -> None:
        self.ec2 = account.client("ec2")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            self.subnet(f"10.20.{16 * number}.0/20", zone) for number, zone in enumerate("ac")
        ]
        self.gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)
        self.group = self.ec2.create_security_group(
            GroupName="node", Description="nodes", VpcId=self.vpc
        )["GroupId"]

    def subnet(self, cidr: str, zone: str) -> str:
        made = self.ec2.create_subnet(
            VpcId=self.vpc, CidrBlock=cidr, AvailabilityZone=f"{REGION}{zone}"
        )
        return made["Subnet"]["SubnetId"]

    def lead_out(self) -> Network:
        """A NAT gateway, for every subnet without a route table of its own."""
        public = self.subnet("10.20.240.0/24", "a")
        table = self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"]
        self.ec2.associate_route_table(RouteTableId=table, SubnetId=public)
        everywhere = {"DestinationCidrBlock": "0.0.0.0/0"}
        self.ec2.create_route(RouteTableId=table, GatewayId=self.gateway, **everywhere)
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        nat = self.ec2.create_nat_gateway(SubnetId=public, AllocationId=address)["NatGateway"]
        of_vpc = [
            {"Name": "vpc-id", "Values": [self.vpc]},
            {"Name": "association.main", "Values": ["true"]},
        ]
        [main] = self.ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]
        self.ec2.create_route(
            RouteTableId=main["RouteTableId"], NatGatewayId=nat["NatGatewayId"], **everywhere
        )
        return self

    def nat(self) -> tuple[str, str]:
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        made = self.ec2.create_nat_gateway(SubnetId=self.subnets[0], AllocationId=address)
        return made["NatGateway"]["NatGatewayId"], address


def role(account: Account, name: str, service: str, *policies: str) -> str:
    iam = account.client("iam")
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust(service))["Role"]["Arn"]
    for policy in policies:
        iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
    return arn


def policy(account: Account, name: str, **statement: Any) -> str:
    """A policy of one statement that allows something; its ARN."""
    allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}
    made = account.client("iam").create_policy(PolicyName=name, PolicyDocument=json.dumps(allowed))
    return made["Policy"]["Arn"]


def profile(account: Account, name: str, *policies: str) -> str:
    arn = role(account, name, "ec2.amazonaws.com", *policies)
    account.client("iam").create_instance_profile(InstanceProfileName=name)
    account.client("iam").add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    return arn


def create_cluster(
    account: Account, network: Network, credentials: dict[str, str] | None = None, **more: Any
) -> Any:
    """`credentials`: of whoever creates it, the developer where there are none."""
    role_arn = (
        role(account, "cluster", "eks.amazonaws.com")
        if "roleArn" not in more
        else more.pop("roleArn")
    )
    wanted = {
        "name": "demo",
        "version": "1.34",
        "roleArn": role_arn,
        "bootstrapSelfManagedAddons": False,
        "resourcesVpcConfig": {"subnetIds": network.subnets},
        "accessConfig": {"authenticationMode": "API"},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"},
        "tags": {"Name": "demo"},
    }
    return account.client("eks", credentials).create_cluster(**(wanted | more))["cluster"]
