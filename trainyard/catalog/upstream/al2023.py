"""Names of the EKS AMIs of Amazon Linux 2023. Their release is pinned in trainyard/catalog/versions.py."""

from __future__ import annotations

AMI_PARAMETERS = "/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/x86_64/{variant}"
"""Folder of Systems Manager in which EKS names its AMIs (EKS user guide, retrieve-ami-id)."""
AMI_NAME = "amazon-eks-node-al2023-x86_64-{variant}-{kubernetes}-{release}"
"""Name of one of these AMIs."""
