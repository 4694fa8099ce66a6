"""AMIs of EKS: the public parameters that name them, and the images."""

from __future__ import annotations

import hashlib
import re

from catalog.versions import KUBERNETES
from rehearsal.aws import backends
from rehearsal.aws.operations import Call, Fields, Refused, answers

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


@answers("ssm", "GetParameter")
def _get_parameter(call: Call) -> Fields:
    """Of all parameters only the public ones of EKS's AMIs exist here."""
    value = _image(call) or _recommended(call)
    if value is None:
        raise Refused("ParameterNotFound", f"Parameter {call['Name']} not found.")
    return {
        "Parameter": {
            "Name": call["Name"],
            "Type": "String",
            "Value": value,
            "Version": 1,
            "DataType": "text",
        }
    }


def _image(call: Call) -> str | None:
    """Id of the AMI that the parameter names."""
    asked = _AMI_PARAMETER.fullmatch(call["Name"])
    if not asked or (asked["arch"], asked["variant"]) == ("arm64", "neuron"):
        return None
    return ami(
        call.region,
        asked["version"],
        asked["arch"],
        asked["variant"],
        asked["date"] or NEWEST_RELEASE,
    )


def _recommended(call: Call) -> str | None:
    """The newest release, with the patch release of the kubelet that the catalogue has."""
    asked = _RECOMMENDED.fullmatch(call["Name"])
    if not asked or asked["version"] not in KUBERNETES:
        return None
    return f"{KUBERNETES[asked['version']].ami_patch}-{NEWEST_RELEASE.removeprefix('v')}"


def ami(region: str, version: str, arch: str, variant: str, date: str = NEWEST_RELEASE) -> str:
    """Id of EKS's AL2023 AMI of that release: the same in every run."""
    name = f"amazon-eks-node-al2023-{arch}-{variant}-{version}-{date}"
    id_ = "ami-0" + hashlib.sha1(f"{region}/{name}".encode()).hexdigest()[:16]
    backends.publish_ami(
        region, id_, name=name, architecture=arch, owner_id="602401143452", owner_alias="amazon"
    )
    return id_
