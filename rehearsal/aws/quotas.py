"""Service Quotas of EC2: how many vCPUs may run at once."""

from __future__ import annotations

from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.operations import Fields, answers, refuse, refuses
from trainyard.catalog.aws.instances import ADDRESS_QUOTA, SPOT_QUOTAS
from trainyard.catalog.aws.instances import QUOTAS as CODES
from trainyard.catalog.aws.quotas import VOLUME_QUOTA, VOLUME_QUOTA_TIB, VPC_QUOTA

_VCPUS = {"G": 1536.0, "P": 768.0, "P5": 768.0, "standard": 1280.0}
QUOTAS = {code: _VCPUS[family] for codes in (CODES, SPOT_QUOTAS) for family, code in codes.items()}
"""Service Quotas' code → vCPUs of running instances; a fault of kind `quota` changes one."""
VALUES = {ADDRESS_QUOTA: 5.0, VOLUME_QUOTA: float(VOLUME_QUOTA_TIB), VPC_QUOTA: 5.0}
"""Service Quotas' code → number of something else: public addresses, TiB of gp3, VPCs."""
OTHERS = {VOLUME_QUOTA: "ebs", VPC_QUOTA: "vpc"}
"""Service Quotas' code → its service, where that is not EC2."""

refuses(
    "service-quotas",
    "GetServiceQuota",
    "NoSuchResourceException",
    "The specified quota does not exist.",
    lambda call: call["QuotaCode"] not in _codes(call["ServiceCode"]),
)


def _codes(service: str) -> list[str]:
    return [code for code in QUOTAS | VALUES if OTHERS.get(code, "ec2") == service]


def quota_code(name: str, lifecycle: str | None) -> str:
    """Code of the quota that such an instance counts against; a Capacity Block's counts against none."""
    family = {"g": "G", "p": "P"}.get(name[:1], "standard")
    if lifecycle == "spot":
        return SPOT_QUOTAS["P5" if name.startswith("p5") else family]
    return "" if lifecycle else CODES[family]


def check(alive: list[Any], name: str, lifecycle: str | None) -> None:
    """Refused where one more instance of the type, beside those that are alive, exceeds its quota."""
    code, known = quota_code(name, lifecycle), backends.instance_types()
    beside = [
        one.instance_type for one in alive if quota_code(one.instance_type, one.lifecycle) == code
    ]
    vcpus = sum(known[kind]["VCpuInfo"]["DefaultVCpus"] for kind in (name, *beside))
    refuse(
        code and vcpus > QUOTAS[code],
        "MaxSpotInstanceCountExceeded" if lifecycle else "VcpuLimitExceeded",
        "You have requested more vCPU capacity than your current vCPU limit of"
        f" {QUOTAS.get(code, 0):g} allows for the instance bucket that the specified instance type"
        " belongs to.",
    )


def _shown(code: str) -> Fields:
    return {
        "ServiceCode": OTHERS.get(code, "ec2"),
        "QuotaCode": code,
        "Value": (QUOTAS | VALUES)[code],
        "Unit": "None",
        "Adjustable": True,
    }


answers("service-quotas", "GetServiceQuota")(lambda call: {"Quota": _shown(call["QuotaCode"])})
answers("service-quotas", "ListServiceQuotas")(
    lambda call: {"Quotas": list(map(_shown, _codes(call["ServiceCode"])))}
)
