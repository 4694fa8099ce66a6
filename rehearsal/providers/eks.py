"""pulumi-resource-eks: eks:index:Cluster as a bare control plane, with the children of the genuine
component.

After nodejs/eks/cluster/cluster.ts of pulumi-eks 4.4 (createCore). What it builds beyond the
control plane (node groups, security groups, add-ons, OIDC provider, storage classes) is not here:
WITHOUT says which inputs leave it away, and any input that is in neither table is refused by name.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from importlib import metadata
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import main as serve

from rehearsal.providers.protocol import leave_when_told, stay
from rehearsal.providers.wire import words

WITHOUT = {
    "authenticationMode": "API",
    "skipDefaultNodeGroup": True,
    "skipDefaultSecurityGroups": True,
    "useDefaultVpcCni": True,
    "kubeProxyAddonOptions": {"enabled": False},
    "corednsAddonOptions": {"enabled": False},
    "createOidcProvider": False,
    "createInstanceRole": False,
}
"""Inputs with the only value they may have."""
MAY_BE_SILENT = words("corednsAddonOptions createOidcProvider createInstanceRole")
"""Inputs in WITHOUT whose default is that value too, given the others."""
IMPLEMENTED = words(
    "bootstrapSelfManagedAddons deletionProtection enabledClusterLogTypes encryptionConfigKeyArn"
    " endpointPrivateAccess endpointPublicAccess"
    " kubernetesServiceIpAddressRange name privateSubnetIds publicAccessCidrs publicSubnetIds"
    " serviceRole tags upgradePolicy version vpcId"
)
CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"


class ServiceRole(pulumi.ComponentResource):
    """The role that EKS works with, and its policy."""

    def __init__(self, name: str, tags: Any, opts: pulumi.ResourceOptions) -> None:
        super().__init__("eks:index:ServiceRole", name, {}, opts)
        mine = pulumi.ResourceOptions(parent=self)
        statement = {
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Effect": "Allow",
            "Principal": {"Service": ["eks.amazonaws.com"]},
        }
        self.role = aws.iam.Role(
            f"{name}-role",
            description="Allows EKS to manage clusters on your behalf.",
            assume_role_policy=json.dumps(
                {"Version": "2012-10-17", "Statement": [statement]}, separators=(",", ":")
            ),
            tags=tags,
            opts=mine,
        )
        arn = aws.get_partition_output(
            opts=pulumi.InvokeOutputOptions(parent=self)
        ).partition.apply(lambda partition: CLUSTER_POLICY.replace("arn:aws:", f"arn:{partition}:"))
        attachment = f"{name}-{hashlib.sha1(CLUSTER_POLICY.encode()).hexdigest()[:8]}"
        self.attachment = aws.iam.RolePolicyAttachment(
            attachment, policy_arn=arn, role=self.role.name, opts=mine
        )
        self.register_outputs({})


class Cluster(pulumi.ComponentResource):
    """The control plane, who may use it, and a Kubernetes provider for it."""

    def __init__(
        self, name: str, given: dict[str, Any], opts: pulumi.ResourceOptions | None
    ) -> None:
        super().__init__("eks:index:Cluster", name, {}, opts)
        self.name, self.given = name, given
        mine = pulumi.ResourceOptions(parent=self)
        self.role: Any = given.get("serviceRole")
        first: list[pulumi.Resource] = []
        if self.role is None:
            own = ServiceRole(f"{name}-eksRole", given.get("tags"), mine)
            self.role, first = own.role, [own.role, own.attachment]
        self.eks = self._control_plane(first)
        facts = (self.eks.name, self.eks.endpoint, self.eks.certificate_authority, self.eks.arn)
        self.kubeconfig = pulumi.Output.all(*facts).apply(lambda all_: kubeconfig(*all_))
        text = pulumi.Output.json_dumps(self.kubeconfig)
        self.provider = _KubernetesProvider(f"{name}-eks-k8s", {"kubeconfig": text}, mine)
        # As the genuine component does: the state then has references to its children.
        self.register_outputs(self.outputs())

    def _control_plane(self, first: list[pulumi.Resource]) -> aws.eks.Cluster:
        given = self.given
        cidr = given.get("kubernetesServiceIpAddressRange")
        key = given.get("encryptionConfigKeyArn")
        subnets = pulumi.Output.all(
            given.get("publicSubnetIds"), given.get("privateSubnetIds")
        ).apply(lambda parts: [id_ for part in parts for id_ in part or []])
        tags = pulumi.Output.from_input(given.get("tags")).apply(
            lambda tags: {"Name": f"{self.name}-eksCluster", **(tags or {})}
        )
        ignored = [
            "accessConfig.bootstrapClusterCreatorAdminPermissions",
            "bootstrapSelfManagedAddons",
        ]
        bootstraps = given.get("bootstrapSelfManagedAddons")
        return aws.eks.Cluster(
            f"{self.name}-eksCluster",
            name=given.get("name"),
            role_arn=self.role.arn,
            version=given.get("version"),
            upgrade_policy=given.get("upgradePolicy"),
            deletion_protection=given.get("deletionProtection"),
            encryption_config=_present(provider={"keyArn": key}, resources=["secrets"])
            if key
            else None,
            enabled_cluster_log_types=given.get("enabledClusterLogTypes"),
            bootstrap_self_managed_addons=True if bootstraps is None else bootstraps,
            vpc_config=_present(
                subnetIds=subnets,
                endpointPrivateAccess=given.get("endpointPrivateAccess"),
                endpointPublicAccess=given.get("endpointPublicAccess"),
                publicAccessCidrs=given.get("publicAccessCidrs"),
            ),
            access_config=_present(
                authenticationMode="API", bootstrapClusterCreatorAdminPermissions=True
            ),
            kubernetes_network_config=_present(serviceIpv4Cidr=cidr) if cidr else None,
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=ignored, depends_on=first),
        )

    def outputs(self) -> dict[str, Any]:
        group = self.eks.vpc_config.cluster_security_group_id
        issuer = self.eks.identities[0].oidcs[0].issuer
        subnets = {
            key: self.given.get(key) for key in ("publicSubnetIds", "privateSubnetIds", "vpcId")
        }
        core = _present(
            **subnets,
            cluster=self.eks,
            endpoint=self.eks.endpoint,
            kubeconfig=self.kubeconfig,
            provider=self.provider,
            clusterIamRole=self.role,
            instanceRoles=[],
            tags=self.given.get("tags"),
        )
        return {
            "kubeconfig": self.kubeconfig,
            "kubeconfigJson": pulumi.Output.json_dumps(self.kubeconfig),
            "eksCluster": self.eks,
            "core": core,
            "clusterSecurityGroupId": group,
            "nodeSecurityGroupId": group,
            "instanceRoles": [],
            "oidcProviderArn": "",
            "oidcProviderUrl": issuer,
            "oidcIssuer": issuer.apply(lambda url: (url or "").removeprefix("https://")),
            "autoModeNodeRoleName": "",
        }


class _KubernetesProvider(pulumi.ProviderResource):
    def __init__(self, name: str, properties: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
        pinned = pulumi.ResourceOptions(version=metadata.version("pulumi-kubernetes"))
        super().__init__("kubernetes", name, properties, pulumi.ResourceOptions.merge(opts, pinned))


def kubeconfig(name: str, endpoint: str, authority: Any, arn: str) -> dict[str, Any]:
    """Kubeconfig by which a client reaches the cluster; the profile is left to whoever uses it, as
    the genuine component does."""
    info = {
        "name": "KUBERNETES_EXEC_INFO",
        "value": '{"apiVersion": "client.authentication.k8s.io/v1beta1"}',
    }
    command = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": [
            "--region",
            arn.split(":")[3],
            "eks",
            "get-token",
            "--cluster-name",
            name,
            "--output",
            "json",
        ],
        "env": [info],
    }
    return {
        "apiVersion": "v1",
        "clusters": [
            {
                "cluster": {"server": endpoint, "certificate-authority-data": authority["data"]},
                "name": "kubernetes",
            }
        ],
        "contexts": [{"context": {"cluster": "kubernetes", "user": "aws"}, "name": "aws"}],
        "current-context": "aws",
        "kind": "Config",
        "users": [{"name": "aws", "user": {"exec": command}}],
    }


def faults(given: dict[str, Any]) -> list[str]:
    """Messages about inputs that ask for what this plugin does not build."""
    wrong = [
        f"{key} must be {value!r}: this eks plugin builds nothing else"
        for key, value in WITHOUT.items()
        if not _is(given.get(key), value) and not (key in MAY_BE_SILENT and given.get(key) is None)
    ]
    known = IMPLEMENTED | WITHOUT.keys()
    unknown = [key for key, value in given.items() if value is not None and key not in known]
    return wrong + [f"this eks plugin does not implement {key}" for key in sorted(unknown)]


def _is(given: Any, wanted: Any) -> bool:
    """True where the input is what it must be; of options, only what they must say counts, not the
    SDK's defaults."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        return all(given.get(key) == value for key, value in wanted.items())
    return given == wanted


def _present(**values: Any) -> Any:
    return {key: value for key, value in values.items() if value is not None}


class Eks(Provider):
    def __init__(self) -> None:
        version = metadata.version("pulumi-eks")
        super().__init__(version, schema=json.dumps({"name": "eks", "version": version}))

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Any,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        if resource_type != "eks:index:Cluster":
            raise NotImplementedError(f"this eks plugin does not implement {resource_type}")
        if wrong := faults(inputs):
            raise ValueError("; ".join(wrong))
        cluster = Cluster(name, inputs, options)
        return ConstructResult(urn=cluster.urn, state=cluster.outputs())


if __name__ == "__main__":
    leave_when_told()
    threading.Thread(target=serve, args=(Eks(), sys.argv[1:]), daemon=True).start()
    stay()
