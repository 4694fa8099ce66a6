"""AMIs of EKS: the public parameters that name them, and the images."""

from __future__ import annotations

import hashlib
import re

from rehearsal.aws import backends
from trainyard.catalog.versions import KUBERNETES

_AL2023 = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<version>1\.\d\d)/amazon-linux-2023/(?P<arch>x86_64|arm64)/"
    r"(?P<variant>standard|nvidia|neuron)/(recommended|amazon-eks-node-al2023-(?P=arch)-(?P=variant)-(?P=version)-"
    r"(?P<date>v\d{8}))/(?P<what>image_id|release_version)"
)
_BOTTLEROCKET = re.compile(
    r"/aws/service/bottlerocket/(?P<variant>aws-k8s-(?P<version>1\.\d\d)(-nvidia)?)/(?P<arch>x86_64|arm64)/"
    r"((?P<release>\d+\.\d+\.\d+)/image_id|latest/image_version)"
)
NEWEST_RELEASE = "v20261101"
NEWEST_BOTTLEROCKET = "1.69.0-5e9ad6b5"
OLDER_KUBELETS = {("1.35", "v20260724"): "1.35.4"}
"""(minor release of Kubernetes, release of the AMI) → kubelet, where it is not that of the catalogue."""


def public_parameter(region: str, name: str) -> str:
    """The value of a public parameter about AMIs for EKS; empty where there is none of the name."""
    if (asked := _BOTTLEROCKET.fullmatch(name)) and asked["version"] in KUBERNETES:
        arch, release = asked["arch"], asked["release"]
        image = f"bottlerocket-{asked['variant']}-{arch}-v{release}"
        return _published(region, image, arch, "Bottlerocket") if release else NEWEST_BOTTLEROCKET
    asked = _AL2023.fullmatch(name)
    if not asked or (asked["arch"], asked["variant"]) == ("arm64", "neuron"):
        return ""
    version, date = asked["version"], asked["date"] or NEWEST_RELEASE
    if asked["what"] == "image_id":
        return ami(region, version, asked["arch"], asked["variant"], date)
    return node_release(version, date) if version in KUBERNETES else ""


def node_release(version: str, date: str) -> str:
    """The release of AMIs as a node group takes it: 1.35.8-20261012 of 1.35 and v20261012."""
    return f"{_kubelet(version, date)}-{date.removeprefix('v')}"


def _kubelet(version: str, date: str) -> str:
    """Version of the kubelet in AMIs of a release."""
    known = KUBERNETES.get(version)
    return OLDER_KUBELETS.get((version, date)) or (known.ami_patch if known else f"{version}.0")


def ami(region: str, version: str, arch: str, variant: str, date: str = NEWEST_RELEASE) -> str:
    """Id of EKS's AL2023 AMI of that release."""
    name = f"amazon-eks-node-al2023-{arch}-{variant}-{version}-{date}"
    about = f"Amazon Linux 2023, (k8s: {_kubelet(version, date)}, containerd: 2.*)"
    return _published(region, name, arch, f"EKS-optimized Kubernetes node based on {about}")


def _published(region: str, name: str, arch: str, description: str) -> str:
    """Id of an AMI of AWS: the same in every run."""
    id_ = "ami-0" + hashlib.sha1(f"{region}/{name}".encode()).hexdigest()[:16]
    backends.publish_ami(
        region,
        id_,
        name=name,
        architecture=arch,
        owner_id="602401143452",
        owner_alias="amazon",
        description=description,
    )
    return id_
