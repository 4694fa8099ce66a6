"""A VPC, an EKS cluster with its add-ons and two nodes, Karpenter, and one pod on a GPU node.

Written as people write such programs, and with nothing of this checkout: no component, no table and
no helper. It asks its charts' folder from its configuration, because the chart registries are
outside of the world that it comes up in.
"""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

HELLO = "import time; print('hello', flush=True); time.sleep(36000)"

config = pulumi.Config()
charts = config.require("charts")
region = aws.config.region
zones = [f"{region}a", f"{region}b"]


def trust(service: str, *more: str) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": ["sts:AssumeRole", *more],
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def role(name: str, service: str, *policies: str, more: tuple[str, ...] = ()) -> aws.iam.Role:
    made = aws.iam.Role(name, assume_role_policy=trust(service, *more))
    for policy in policies:
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy}", role=made.name, policy_arn=f"arn:aws:iam::aws:policy/{policy}"
        )
    return made


# ---- the network: a public and a private subnet in each zone, one NAT gateway

vpc = aws.ec2.Vpc(
    "shop", cidr_block="10.7.0.0/16", enable_dns_hostnames=True, tags={"Name": "shop"}
)
gateway = aws.ec2.InternetGateway("shop", vpc_id=vpc.id)
public_routes = aws.ec2.RouteTable("public", vpc_id=vpc.id)
private_routes = aws.ec2.RouteTable("private", vpc_id=vpc.id)
out = aws.ec2.Route(
    "public",
    route_table_id=public_routes.id,
    destination_cidr_block="0.0.0.0/0",
    gateway_id=gateway.id,
)
public, private = [], []
for number, zone in enumerate(zones):
    for subnets, table, kind, block in (
        (public, public_routes, "public", number),
        (private, private_routes, "private", 8 + number),
    ):
        subnet = aws.ec2.Subnet(
            f"{kind}-{number}",
            vpc_id=vpc.id,
            cidr_block=f"10.7.{16 * block}.0/20",
            availability_zone=zone,
            map_public_ip_on_launch=kind == "public",
            tags={"karpenter.sh/discovery": "shop"} if kind == "private" else {},
        )
        association = aws.ec2.RouteTableAssociation(
            f"{kind}-{number}", subnet_id=subnet.id, route_table_id=table.id
        )
        subnets.append((subnet, association))
address = aws.ec2.Eip("nat", domain="vpc")
nat = aws.ec2.NatGateway(
    "nat",
    subnet_id=public[0][0].id,
    allocation_id=address.id,
    opts=pulumi.ResourceOptions(depends_on=[out, public[0][1]]),
)
way_out = aws.ec2.Route(
    "private",
    route_table_id=private_routes.id,
    destination_cidr_block="0.0.0.0/0",
    nat_gateway_id=nat.id,
)
private_ids = [subnet.id for subnet, _ in private]

# ---- the cluster: control plane, add-ons, two nodes for what is not a GPU job

control_plane = role("control-plane", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
cluster = aws.eks.Cluster(
    "shop",
    name="shop",
    role_arn=control_plane.arn,
    version="1.35",
    bootstrap_self_managed_addons=False,
    access_config={
        "authentication_mode": "API",
        "bootstrap_cluster_creator_admin_permissions": True,
    },
    vpc_config={
        "subnet_ids": private_ids,
        "endpoint_private_access": True,
        "endpoint_public_access": True,
    },
)


def add_on(name: str, *needs: pulumi.Resource) -> aws.eks.Addon:
    return aws.eks.Addon(
        name,
        cluster_name=cluster.name,
        addon_name=name,
        opts=pulumi.ResourceOptions(depends_on=list(needs)),
    )


before = [add_on("vpc-cni"), add_on("kube-proxy"), add_on("eks-pod-identity-agent")]
node_role = role(
    "nodes",
    "ec2.amazonaws.com",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryReadOnly",
)
nodes = aws.eks.NodeGroup(
    "system",
    cluster_name=cluster.name,
    node_role_arn=node_role.arn,
    subnet_ids=private_ids,
    instance_types=["m7i.xlarge"],
    scaling_config={"desired_size": 2, "min_size": 2, "max_size": 2},
    opts=pulumi.ResourceOptions(
        depends_on=[*before, way_out, *(association for _, association in private)]
    ),
)
dns = add_on("coredns", nodes)


def kubeconfig(name: str, endpoint: str, authority: str) -> str:
    command = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--region", region, "--cluster-name", name],
    }
    there = {"server": endpoint, "certificate-authority-data": authority}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": there}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
            "users": [{"name": name, "user": {"exec": command}}],
        }
    )


kubernetes = k8s.Provider(
    "shop",
    kubeconfig=pulumi.Output.all(
        cluster.name, cluster.endpoint, cluster.certificate_authority.data
    ).apply(lambda facts: kubeconfig(*facts)),
)

# ---- Karpenter, and what its nodes are

karpenter_role = role("karpenter", "pods.eks.amazonaws.com", more=("sts:TagSession",))
allowed = [
    "ec2:CreateFleet",
    "ec2:CreateLaunchTemplate",
    "ec2:CreateTags",
    "ec2:DeleteLaunchTemplate",
    "ec2:Describe*",
    "ec2:RunInstances",
    "ec2:TerminateInstances",
    "eks:DescribeCluster",
    "iam:AddRoleToInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:DeleteInstanceProfile",
    "iam:GetInstanceProfile",
    "iam:ListInstanceProfiles",
    "iam:PassRole",
    "iam:RemoveRoleFromInstanceProfile",
    "iam:TagInstanceProfile",
    "pricing:GetProducts",
    "ssm:GetParameter",
]
rights = aws.iam.RolePolicy(
    "karpenter",
    role=karpenter_role.name,
    policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": allowed, "Resource": "*"}],
        }
    ),
)
identity = aws.eks.PodIdentityAssociation(
    "karpenter",
    cluster_name=cluster.name,
    namespace="kube-system",
    service_account="karpenter",
    role_arn=karpenter_role.arn,
)
karpenter = k8s.helm.v3.Release(
    "karpenter",
    name="karpenter",
    chart=f"{charts}/karpenter",
    namespace="kube-system",
    values={
        "settings": {
            "clusterName": cluster.name,
            "clusterEndpoint": cluster.endpoint,
            # Karpenter would try a class that has no pool yet with a type of its own choice.
            "disableDryRun": True,
        },
        "controller": {"env": [{"name": "AWS_REGION", "value": region}]},
    },
    opts=pulumi.ResourceOptions(provider=kubernetes, depends_on=[identity, rights, nodes, dns]),
)
devices = k8s.helm.v3.Release(
    "nvidia-device-plugin",
    name="nvidia-device-plugin",
    chart=f"{charts}/nvidia-device-plugin",
    namespace="kube-system",
    values={"tolerations": [{"operator": "Exists"}]},
    opts=pulumi.ResourceOptions(provider=kubernetes, depends_on=[nodes]),
)
node_class = k8s.apiextensions.CustomResource(
    "gpu-class",
    api_version="karpenter.k8s.aws/v1",
    kind="EC2NodeClass",
    metadata={"name": "gpu"},
    spec={
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": node_role.name,
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
        "securityGroupSelectorTerms": [{"id": cluster.vpc_config.cluster_security_group_id}],
    },
    opts=pulumi.ResourceOptions(provider=kubernetes, depends_on=[karpenter]),
)
pool = k8s.apiextensions.CustomResource(
    "gpu-pool",
    api_version="karpenter.sh/v1",
    kind="NodePool",
    metadata={"name": "gpu"},
    spec={
        "template": {
            # What NVIDIA's device plugin looks for.
            "metadata": {"labels": {"nvidia.com/gpu.present": "true"}},
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": "gpu",
                },
                "requirements": [
                    {
                        "key": "node.kubernetes.io/instance-type",
                        "operator": "In",
                        "values": ["g6.xlarge"],
                    },
                    {
                        "key": "karpenter.sh/capacity-type",
                        "operator": "In",
                        "values": ["on-demand"],
                    },
                ],
                "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
            },
        },
        "limits": {"nvidia.com/gpu": 2},
    },
    opts=pulumi.ResourceOptions(provider=kubernetes, depends_on=[node_class]),
)

# ---- the pod

spec: Any = {
    "restartPolicy": "Never",
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "containers": [
        {
            "name": "hello",
            "image": "public.ecr.aws/docker/library/python:3.12",
            "command": ["python3", "-c", HELLO],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }
    ],
}
pod = k8s.core.v1.Pod(
    "hello",
    metadata={"name": "hello", "namespace": "default"},
    spec=spec,
    opts=pulumi.ResourceOptions(provider=kubernetes, depends_on=[pool, devices]),
)

pulumi.export("cluster", cluster.name)
pulumi.export("pod", pod.metadata["name"])
