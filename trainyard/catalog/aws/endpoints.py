"""AWS APIs that nodes and controllers call, as interface endpoints (AWS PrivateLink) of a VPC are
called after them.

Sources: EKS user guide, private-clusters; Karpenter 1.14.1, pkg/operator/operator.go and its
settings.isolatedVPC (karpenter-provider-aws#4985); EKS user guide, pod-identities (credentials come from
eks-auth, so nothing here calls sts); EFS user guide, efs-vpc-endpoints; Systems Manager user guide,
setup-create-vpc. Read 2026-11-23.
"""

from __future__ import annotations

S3 = "s3"
"""Reached by a gateway endpoint, which is free: layers of images of ECR lie there, and S3 stores."""
ALWAYS: dict[str, str] = {
    "ec2": "a node describes itself when it boots, the VPC CNI takes addresses, Karpenter launches nodes",
    "ecr.api": "the kubelet asks ECR for a token",
    "ecr.dkr": "the container runtime asks ECR which layers an image has",
    "eks": "Karpenter asks for the version of the cluster",
    "eks-auth": "pods get the credentials of their role (Pod Identity)",
    "sqs": "Karpenter hears that AWS takes an instance back",
    "ssm": "Karpenter looks up the AMI of its nodes",
}
"""API that every environment calls → why."""
TOPICS, LOGS, EFS_API, SECRETS = "sns", "logs", "elasticfilesystem", "secretsmanager"
"""Called by what publishes to a topic, such as Alertmanager; by Fluent Bit; by the CSI driver of EFS; by
that of Secrets Manager. That of Lustre calls no API: the file systems are there before it."""
SAMPLES = "aps-workspaces"
"""Called by Prometheus (AMP user guide, AMP-and-interface-VPC)."""
SESSIONS: tuple[str, ...] = ("ssmmessages",)
"""Called, beside ssm, by the agent of Systems Manager that opens a tunnel or a terminal on a node. Regions that
launched in 2024 or later have no ec2messages, which agents before 3.3.40 called (Systems Manager user
guide, systems-manager-setting-up-messageAPIs)."""
NONE: dict[str, str] = {
    "pricing": "Karpenter knows the prices of its own release only",
    "iam": "Karpenter makes no instance profile: it is given one",
}
"""API without an endpoint in most regions → what follows in a VPC without a way to the internet."""


def service_name(region: str, api: str) -> str:
    """EC2's name of the service behind an endpoint."""
    return f"com.amazonaws.{region}.{api}"
