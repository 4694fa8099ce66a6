"""Service Quotas of EC2: how many vCPUs may run at once."""

from __future__ import annotations

from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.operations import Fields, answers, refuse, refuses
from trainyard.catalog.aws.instances import ADDRESS_QUOTA, SPOT_QUOTAS
from trainyard.catalog.aws.instances import QUOTAS as CODES

_VCPUS = {"G": 1536.0, "P": 768.0, "P5": 768.0, "standard": 1280.0}
QUOTAS = {code: _VCPUS[family] for codes in (CODES, SPOT_QUOTAS) for family, code in codes.items()}
"""Service Quotas' code → vCPUs of running instances; a fault of kind `quota` changes one."""
VALUES = {ADDRESS_QUOTA: 5.0}
"""Service Quotas' code → number of something else: public addresses."""

refuses(
    "service-quotas",
    "GetServiceQuota",
    "NoSuchResourceException",
    "The specified quota does not exist.",
    lambda call: call["ServiceCode"] != "ec2" or call["QuotaCode"] not in QUOTAS | VALUES,
)


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
        "ServiceCode": "ec2",
        "QuotaCode": code,
        "Value": (QUOTAS | VALUES)[code],
        "Unit": "None",
        "Adjustable": True,
    }


answers("service-quotas", "GetServiceQuota")(lambda call: {"Quota": _shown(call["QuotaCode"])})
answers("service-quotas", "ListServiceQuotas")(
    lambda call: {"Quotas": list(map(_shown, QUOTAS | VALUES))}
)
