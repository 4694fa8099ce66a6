"""AMIs of EKS: the public parameters that name them, and the images."""

from __future__ import annotations

import hashlib
import re

from rehearsal.aws import backends
from trainyard.catalog.versions import KUBERNETES

_AMI_PARAMETER = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<version>1\.\d\d)/amazon-linux-2023/(?P<arch>x86_64|arm64)/"
    r"(?P<variant>standard|nvidia|neuron)/(recommended|amazon-eks-node-al2023-(?P=arch)-(?P=variant)-(?P=version)-"
    r"(?P<date>v\d{8}))/image_id"
)
_RECOMMENDED = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<version>1\.\d\d)/amazon-linux-2023/x86_64/(?:standard|nvidia)/"
    r"recommended/release_version"
)
NEWEST_RELEASE = "v20261101"
OLDER_KUBELETS = {("1.35", "v20260724"): "1.35.4"}
"""(minor release of Kubernetes, release of the AMI) → kubelet, where it is not that of the catalogue."""


def public_parameter(region: str, name: str) -> str:
    """The value of a public parameter about EKS's AMIs; empty where there is none of the name."""
    return _image(region, name) or _recommended(name)


def _image(region: str, name: str) -> str:
    """Id of the AMI that the parameter names."""
    asked = _AMI_PARAMETER.fullmatch(name)
    if not asked or (asked["arch"], asked["variant"]) == ("arm64", "neuron"):
        return ""
    date = asked["date"] or NEWEST_RELEASE
    return ami(region, asked["version"], asked["arch"], asked["variant"], date)


def _recommended(name: str) -> str:
    """The newest release, with its kubelet."""
    asked = _RECOMMENDED.fullmatch(name)
    if not asked or asked["version"] not in KUBERNETES:
        return ""
    return node_release(asked["version"], NEWEST_RELEASE)


def node_release(version: str, date: str) -> str:
    """The release of AMIs as a node group takes it: 1.35.8-20261012 of 1.35 and v20261012."""
    return f"{_kubelet(version, date)}-{date.removeprefix('v')}"


def _kubelet(version: str, date: str) -> str:
    """Version of the kubelet in AMIs of a release."""
    known = KUBERNETES.get(version)
    return OLDER_KUBELETS.get((version, date)) or (known.ami_patch if known else f"{version}.0")


def ami(region: str, version: str, arch: str, variant: str, date: str = NEWEST_RELEASE) -> str:
    """Id of EKS's AL2023 AMI of that release: the same in every run."""
    name = f"amazon-eks-node-al2023-{arch}-{variant}-{version}-{date}"
    id_ = "ami-0" + hashlib.sha1(f"{region}/{name}".encode()).hexdigest()[:16]
    backends.publish_ami(
        region,
        id_,
        name=name,
        architecture=arch,
        owner_id="602401143452",
        owner_alias="amazon",
        description=(
            "EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s:"
            f" {_kubelet(version, date)}, containerd: 2.*)"
        ),
    )
    return id_
