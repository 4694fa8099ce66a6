"""Folders of a node whose files end with it, as pods mount them by hostPath.

Karpenter deletes a node that nothing runs on (docs/jobs.md), and AWS deletes what was on its disks.
"""

from __future__ import annotations

import re

ON_NVME = re.compile(
    r"nvme|/mnt/k8s-disks|/mnt/disks|ephemeral|instance-?store|^/(?:local|mnt/local|mnt/scratch|scratch|tmp)"
    r"(?:[-_/]|$)"
)
"""Folders of a node that lie on its NVMe disks: the paths of EKS's AMIs (nodeadm mounts a RAID at
/mnt/k8s-disks/0), of the Deep Learning AMIs (/opt/dlami/nvme), and their usual names."""
OF_SYSTEM = re.compile(r"/(?:dev|proc|sys|run|etc|usr|boot|lib(?:64)?|var/(?:run|lib|log))(?:/|$)")
"""Folders of a node that no shared file system is mounted at: devices, and files of the system (Filesystem Hierarchy
Standard 3.0)."""
