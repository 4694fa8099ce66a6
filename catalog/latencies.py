"""How long AWS usually takes, in seconds: what `make up` expects on a real account, and what the
rehearsal scales down.

Medians of raw logs gathered 2026-11-20 (shared facts, latency table); 'model' marks a figure that
was computed.
"""

from __future__ import annotations

from decimal import Decimal

TYPICAL: dict[str, float] = {
    "ec2.vpc": 12,
    "ec2.subnet": 2,  # 11 where public addresses are mapped, which ours leave off
    "ec2.security-group": 11,  # 3, and up to 8 for its rules, which EC2 takes one after the other
    "ec2.nat-gateway": 105,
    "ec2.nat-gateway.delete": 60,
    "ec2.vpc-endpoint": 6,
    "ec2.instance-boot": 75,
    "ec2.instance-terminate": 60,
    "eks.cluster": 540,
    "eks.cluster.delete": 150,
    "eks.addon": 25,
    "eks.addon.vpc-cni": 35,
    "eks.addon.coredns": 20,  # raw logs say 14 to 56
    "eks.addon.delete": 20,
    "eks.nodegroup": 110,
    "eks.nodegroup.delete": 250,
    "efs.file-system": 8,
    "efs.mount-target": 84,
    "efs.mount-target.delete": 30,
    "fsx.lustre": 600,
    "fsx.lustre.delete": 300,
    "fsx.association": 300,  # one after the other on a file system; 120 to more than 600
    "fsx.association.delete": 540,  # one log: 480 to 600
    "sqs.queue": 26,
    "iam.propagation": 2,
}
"""What the account takes to finish, by resource."""

STAGES: dict[str, float] = {
    "network": 130,
    "storage": 610,
    "cluster": 575,
    "system nodes": 130,
    "karpenter": 60,
    "pools": 6,
    "trainer": 60,
    "runtimes": 3,
    "jobs": 170,
}
"""What a stage takes on AWS (model): its slowest chain of the above; `jobs` is a node and JOB
below, but not the training itself. Stages overlap: storage runs beside the cluster."""

JOB: dict[str, float] = {
    "batching": 10,
    "image pull": 40,
    "first step": 45,
}
"""Seconds of a job's start beside its node's boot. Batching: Karpenter's BATCH_MAX_DURATION, at
most. Image pull: 9.35 GB on AL2023 with SOCI's parallel pull, which our nodes turn on; 131 without,
23 on Bottlerocket (karpenter-blueprints, one run of all three). First step: imports, rendezvous and
NCCL with 16 ranks, few samples."""

IMAGE_GB = Decimal("9.35")
"""Of the image behind "image pull": AWS's deep learning container of PyTorch. It comes from a public
registry, through the NAT gateway; layers in ECR of the same region come through the S3 endpoint,
which is free."""
