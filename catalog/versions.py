"""Every pinned version, in one place. An upgrade is a one-line change here plus the golden diff it causes.

Checked 2026-11-21 in the registry named beside each.
"""

from __future__ import annotations

KARPENTER = "1.14.1"
"""oci://public.ecr.aws/karpenter/{karpenter-crd,karpenter}; the floor for EFA interfaces on the NodeClass is 1.11."""
NVIDIA_DEVICE_PLUGIN = "0.18.0"
"""https://nvidia.github.io/k8s-device-plugin"""
EFA_DEVICE_PLUGIN_IMAGE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"
"""Image of the eks-charts release 0.5.30 (2026-08); AWS serves it from us-west-2 to every region."""
LUSTRE = "2.15"
"""FSx file_system_type_version: the newest that FSx for Lustre creates."""
NODE_AMI = "al2023@v20260724"
"""Karpenter alias of the EKS AMI release: pinned, because @latest lets AWS drift nodes under a running gang."""

KUBERNETES: dict[str, dict[str, str]] = {
    "1.34": {
        "vpc-cni": "v1.20.4-eksbuild.2",
        "kube-proxy": "v1.34.0-eksbuild.2",
        "eks-pod-identity-agent": "v1.3.10-eksbuild.2",
        "coredns": "v1.12.3-eksbuild.1",
        "aws-fsx-csi-driver": "v1.7.0-eksbuild.1",
        "aws-efs-csi-driver": "v2.1.13-eksbuild.1",
    },
}
"""Kubernetes version → add-on versions that AWS publishes for it (aws eks describe-addon-versions)."""

TRAINERS: dict[str, str] = {"2.1.0": "v2.1.0"}
"""Kubeflow Trainer chart version → controller image tag; JobSet 0.10.1 comes inside the chart.
oci://ghcr.io/kubeflow/charts/kubeflow-trainer"""
