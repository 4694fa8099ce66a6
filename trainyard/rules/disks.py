"""A warning about disks of nodes that a new account has no quota for."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.quotas import VOLUME_QUOTA, VOLUME_QUOTA_TIB, more_of_quota
from trainyard.derive.disks import GIB_A_TIB, disks_when_full, in_tib
from trainyard.problems import At, InputWarning
from trainyard.settings.environment import EnvironmentConfig


def disk_warnings(region: str, wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Full pools whose disks exceed the default quota alone. EC2 ends each instance beyond it at launch with
    Client.VolumeLimitExceeded (EC2 API, StateReason), and Karpenter launches the next one."""
    takers = disks_when_full(wanted)
    if (total := sum(takers.values())) > VOLUME_QUOTA_TIB * GIB_A_TIB:
        yield At("environment.pools").warning(
            f"disks of {', '.join(takers)} take {total} GiB of gp3 when the pools are full, and quota"
            f" {VOLUME_QUOTA} is {VOLUME_QUOTA_TIB} TiB in an account that asked for no more: lower root_volume_gib"
            f" or max_nodes, or run `{more_of_quota('ebs', VOLUME_QUOTA, in_tib(total), region)}` before large jobs"
        )
