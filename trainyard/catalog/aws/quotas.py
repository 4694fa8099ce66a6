"""Quotas that are not of vCPUs, by Service Quotas' codes, and the command that asks for more of any. Of vCPUs and
public addresses: instances.py; of Lustre: storage.py."""

from __future__ import annotations

VOLUME_QUOTA = "L-7A658B76"
""""Storage for General Purpose SSD (gp3) volumes, in TiB", of all such disks of an account in a region (service code
ebs; listings of live accounts, 2025)."""
VOLUME_QUOTA_TIB = 50
"""Its default."""
VPC_QUOTA = "L-F678F1CE"
""""VPCs per Region" (service code vpc; 5 in a new account, of which the default VPC is one). More of them bring more
internet gateways (VPC user guide, amazon-vpc-limits)."""


def more_of_quota(service: str, code: str, value: int, region: str) -> str:
    """The command that asks for a larger quota. `service`: its code of Service Quotas."""
    return (
        f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code"
        f" {code} --desired-value {value} --region {region}"
    )
