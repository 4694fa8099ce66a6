"""The dev stack's own AWS resources, made in the embedded account by the aws plugin: no engine, no
control plane, a second or two. What GPU nodes and pods then ask of the account, tests can ask, too."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.aws import services
from rehearsal.aws.notices import NOTICES
from rehearsal.aws.operations import LOCK
from rehearsal.kubelet.aws import Account as NodeAccount
from rehearsal.providers.aws.provider import Aws
from rehearsal.providers.call import Call
from rehearsal.providers.eks import CLUSTER_POLICY
from rehearsal.providers.wire import Properties
from tests.rehearsal.aws_world import REGION, Account, served, speak_to
from tests.support.recording import Graph, deploy

IMAGE = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id"
POOL = "g6e-class"
"""The EC2NodeClass whose nodes are tried."""
TYPE = "g6e.xlarge"
"""A smaller one of the same family."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A resource as the engine keeps it."""

    kind: str
    name: str
    id: str
    inputs: Properties
    state: Properties

    @property
    def call(self) -> Call:
        return _call(self.kind, self.name, self.id)


class Product:
    """The stack, up, with two system nodes and room for GPU nodes."""

    def __init__(self, account: Account) -> None:
        self.account, self.plugin = account, Aws()
        self.plugin.configure({"region": REGION})
        self.made: dict[tuple[str, str], Made] = {}
        self.graph: Graph = deploy(maker=self._maker)
        world = paths.world()
        self.asked = NodeAccount(url=account.url, secret=world.world_secret, region=REGION)
        self.ec2 = account.client("ec2")

    def _maker(self, kind: str, name: str, inputs: Properties) -> tuple[str, Properties]:
        if kind == "eks:index:Cluster":
            return name, self._cluster(name, inputs)
        if not kind.startswith("aws:"):
            return f"{name}-id", {}
        made = self.make(kind, name, inputs)
        return made.id, made.state

    def make(self, kind: str, name: str, inputs: Properties) -> Made:
        """A resource of the aws plugin."""
        call = _call(kind, name)
        checked = self.plugin.check(call, {}, inputs)
        id_, state = self.plugin.create(call, checked)
        made = Made(kind=kind, name=name, id=id_, inputs=checked, state=state)
        self.made[kind.rpartition(":")[2], name] = made
        return made

    def _cluster(self, name: str, given: Properties) -> Properties:
        """What the eks plugin makes of it."""
        trust = {
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Effect": "Allow",
            "Principal": {"Service": ["eks.amazonaws.com"]},
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        role = self.make("aws:iam/role:Role", "eks", {"assumeRolePolicy": document})
        self.make(
            "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            "eks",
            {"role": role.state["name"], "policyArn": CLUSTER_POLICY},
        )
        made = self.make(
            "aws:eks/cluster:Cluster",
            name,
            {
                "name": given["name"],
                "roleArn": role.state["arn"],
                "version": given["version"],
                "bootstrapSelfManagedAddons": False,
                "vpcConfig": {
                    "subnetIds": given["publicSubnetIds"] + given["privateSubnetIds"],
                    "endpointPrivateAccess": given["endpointPrivateAccess"],
                    "endpointPublicAccess": given["endpointPublicAccess"],
                    "publicAccessCidrs": given["publicAccessCidrs"],
                },
                "accessConfig": {
                    "authenticationMode": "API",
                    "bootstrapClusterCreatorAdminPermissions": True,
                },
                "kubernetesNetworkConfig": {
                    "serviceIpv4Cidr": given["kubernetesServiceIpAddressRange"]
                },
                "tags": given["tags"],
            },
        )
        state = made.state
        group = state["vpcConfig"]["clusterSecurityGroupId"]
        facts = {key: state[key] for key in ("name", "arn", "endpoint")}
        authority = {"certificateAuthority": {"data": "Y2E="}}
        return {"clusterSecurityGroupId": group, "eksCluster": {**facts, **authority}}

    @property
    def cluster(self) -> str:
        return self.made["Cluster", "cluster"].id

    def system_nodes(self) -> list[str]:
        """Their instances."""
        role = self.made["Role", "gpu-nodes"].state["name"]
        return [i for i, profile in self._running() if role not in profile]

    def _running(self) -> Iterator[tuple[str, str]]:
        up = [{"Name": "instance-state-name", "Values": ["running"]}]
        for part in self.ec2.describe_instances(Filters=up)["Reservations"]:
            for one in part["Instances"]:
                yield one["InstanceId"], one.get("IamInstanceProfile", {}).get("Arn", "")

    def launch(self, subnet: str = "", profile: str = "") -> str:
        """A GPU node, from the graph's own EC2NodeClass; or a node elsewhere, with the cluster's
        group alone."""
        spec = self._class()
        image = self.account.client("ssm").get_parameter(Name=IMAGE)["Parameter"]["Value"]
        made = self.ec2.run_instances(
            MinCount=1,
            MaxCount=1,
            ImageId=image,
            InstanceType=TYPE if not subnet else "m7i.large",
            SubnetId=subnet or spec["subnetSelectorTerms"][0]["id"],
            SecurityGroupIds=_ids(spec)[: 1 if subnet else None],
            IamInstanceProfile={"Name": profile or spec["instanceProfile"]},
        )
        return made["Instances"][0]["InstanceId"]

    def _class(self) -> Properties:
        return self.graph.one("EC2NodeClass", POOL).inputs["spec"]

    def launch_as(self, ec2: Any) -> None:
        """What Karpenter asks for a node of the pool, with its client: a launch template, and a fleet
        from it in a dry run."""
        spec, cluster = self._class(), self.cluster
        owned = {
            f"kubernetes.io/cluster/{cluster}": "owned",
            "eks:eks-cluster-name": cluster,
            "karpenter.sh/nodepool": "g6e",
        }
        tags = [{"Key": key, "Value": value} for key, value in owned.items()]
        image = self.account.client("ssm").get_parameter(Name=IMAGE)["Parameter"]["Value"]
        nic = {"DeviceIndex": 0, "Groups": _ids(spec)}
        template = ec2.create_launch_template(
            LaunchTemplateName=f"karpenter-{time.monotonic_ns()}",
            LaunchTemplateData={
                "ImageId": image,
                "IamInstanceProfile": {"Name": spec["instanceProfile"]},
                "NetworkInterfaces": [nic],
                "TagSpecifications": _tagged(tags, "network-interface"),
            },
            TagSpecifications=_tagged(tags, "launch-template"),
        )["LaunchTemplate"]
        place = {"InstanceType": TYPE, "SubnetId": spec["subnetSelectorTerms"][0]["id"]}
        specified = {"LaunchTemplateId": template["LaunchTemplateId"], "Version": "$Latest"}
        made = ec2.create_fleet(
            Type="instant",
            TargetCapacitySpecification={"TotalTargetCapacity": 1},
            LaunchTemplateConfigs=[
                {"Overrides": [place], "LaunchTemplateSpecification": specified}
            ],
            TagSpecifications=_tagged(tags, "instance", "volume", "fleet"),
        )
        self.ec2.terminate_instances(InstanceIds=made["Instances"][0]["InstanceIds"])

    def announce(self, kind: str) -> None:
        """AWS says something of an instance; `state`: one that is there for this alone ends."""
        if kind == "state":
            self.account.world("POST", f"instances/{self.launch()}/vanish")
            return
        notice, id_ = NOTICES[kind], "i-0"
        with LOCK:
            services.emit(REGION, notice.detail_type, id_, notice.detail(id_), source=notice.source)


def _ids(spec: Properties) -> list[str]:
    return [term["id"] for term in spec["securityGroupSelectorTerms"]]


def _tagged(tags: list[dict[str, str]], *kinds: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tags} for kind in kinds]


def _call(kind: str, name: str, id_: str = "") -> Call:
    return Call(urn=f"urn:pulumi:dev::trainyard::{kind}::{name}", id=id_, seed=name.encode())


def _keep(account: Account, stop: threading.Event) -> None:
    """EKS's part inside the cluster, and every instance a Ready node at once."""
    ec2 = account.client("ec2")
    while not stop.wait(0.1):
        found = ec2.describe_instances()["Reservations"]
        account.kubernetes.nodes.clear()
        account.kubernetes.join(*(i["InstanceId"] for part in found for i in part["Instances"]))
        account.keep()


@contextmanager
def product(folder: Path) -> Iterator[Product]:
    """The stack, up."""
    with pytest.MonkeyPatch.context() as patch, served(folder, patch) as account:
        speak_to(account, patch)
        stop = threading.Event()
        keeper = threading.Thread(target=_keep, args=(account, stop), daemon=True)
        keeper.start()
        try:
            yield Product(account)
        finally:
            stop.set()
            keeper.join()
