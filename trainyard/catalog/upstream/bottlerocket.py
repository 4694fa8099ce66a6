"""Bottlerocket for nodes with GPUs: the AMI of the release that trainyard/catalog/versions.py pins, and what has
none.

Found on 2026-11-28 on bottlerocket.dev and in bottlerocket-os/bottlerocket.
"""

from __future__ import annotations

from trainyard.catalog.versions import BOTTLEROCKET_RELEASE

AMI = f"bottlerocket@{BOTTLEROCKET_RELEASE}"
"""Karpenter's alias of it: of GPU nodes the variant aws-k8s-<version>-nvidia. Pinned like the AMI of AL2023. SOCI's
parallel pull came with 1.44.0, and the bind of all that Karpenter wants on the NVMe disks with 1.46.0."""
IMAGE = "/aws/service/bottlerocket/aws-k8s-{kubernetes}-nvidia/x86_64/{release}/image_id"
"""Parameter of Systems Manager with the id of its AMI, where Karpenter looks. `release`: without the v."""
NEWEST = "/aws/service/bottlerocket/aws-k8s-{kubernetes}-nvidia/x86_64/latest/image_version"
"""Parameter with the newest release and its commit, such as 1.11.1-104f8e0f (bottlerocket#2617)."""
SYSTEM_GIB = 4
"""Size of the volume with its system, which nothing else is written to (variants/*/Cargo.toml,
os-image-size-gib)."""
KUBERNETES = ("1.34", "1.35", "1.36", "1.37")
"""Minor releases of Kubernetes with such a variant (folder variants, and the notes of v1.53.0, v1.61.0 and
v1.66.0)."""
REFUSED = {
    "g7": "does not boot with it: it loads a driver that the GPU refuses (bottlerocket#4889)"
}
"""Family of types with GPUs → why its nodes cannot have it."""
LABEL, FAMILY = "trainyard.io/ami-family", "Bottlerocket"
"""Label that its nodes keep for as long as they stand, whatever their pool has meanwhile; others have none."""


def is_bottlerocket(ami: str) -> bool:
    """True for an alias of Karpenter's that names Bottlerocket."""
    return ami.startswith("bottlerocket@")
