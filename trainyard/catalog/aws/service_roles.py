"""Service-linked roles: one of each in an account, shared by everything in it, so no stack makes
them.

Names: the user guides of EC2 (service-linked-roles-spot-instance-requests), EKS
(using-service-linked-roles-eks, using-service-linked-roles-eks-nodegroups), FSx for Lustre and EFS
(using-service-linked-roles). Two roles are left out. AWSServiceRoleForAutoScaling: the node groups'
role makes it, as its policy allows (AllowAutoscalingToCreateSLR).
AWSServiceRoleForFSxS3Access_<file system>: FSx makes one for each file system with a repository.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServiceRole:
    """A service-linked role."""

    name: str
    service: str
    """As `create-service-linked-role` takes it."""
    maker: str | None
    """Service that makes the role when it is first needed, with the caller's
    iam:CreateServiceLinkedRole. None: no service that this program starts."""

    @property
    def command(self) -> str:
        """Command that makes the role by hand; it fails where the account has the role already."""
        return f"aws iam create-service-linked-role --aws-service-name {self.service}"


SPOT = ServiceRole(name="AWSServiceRoleForEC2Spot", service="spot.amazonaws.com", maker=None)
"""Karpenter requests the spot instances, and its policy has no iam:CreateServiceLinkedRole
(Karpenter's troubleshooting page, "Missing Service Linked Role")."""
EKS = ServiceRole(name="AWSServiceRoleForAmazonEKS", service="eks.amazonaws.com", maker="EKS")
NODE_GROUPS = ServiceRole(
    name="AWSServiceRoleForAmazonEKSNodegroup", service="eks-nodegroup.amazonaws.com", maker="EKS"
)
FSX = ServiceRole(name="AWSServiceRoleForAmazonFSx", service="fsx.amazonaws.com", maker="FSx")
EFS = ServiceRole(
    name="AWSServiceRoleForAmazonElasticFileSystem",
    service="elasticfilesystem.amazonaws.com",
    maker="EFS",
)
ROLES = (SPOT, EKS, NODE_GROUPS, FSX, EFS)
