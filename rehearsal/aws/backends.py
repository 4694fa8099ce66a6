"""moto 5.2.5 as the account uses it: loaded lean, mended where it is wrong, one function a service.

Mended in place, each with what was wrong; look here first after an upgrade of moto. What moto is
too kind about is not mended here but refused by a row (see operations.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import moto.utilities.utils as moto_utilities

from rehearsal import paths
from rehearsal.aws.identity import ACCOUNT, DEVELOPER, DEVELOPER_KEY, WORLD, WORLD_KEY
from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES
from trainyard.catalog.aws.service_roles import ROLES

SYSTEM_FAMILIES = ("t3", "m5", "m6i", "m7i", "c5", "c6i", "c7i", "r6i", "r7i", "m7g", "c7g")
FAMILIES = frozenset(
    {name.split(".")[0] for name in (*GPU_TYPES, *CPU_TYPES)} | set(SYSTEM_FAMILIES) | {"g4dn"}
)
"""Instance families that exist here. All of AWS's would cost 80 MB, and Karpenter 5 s at each
start."""


def _load_families(resource: str) -> Any:
    data = _load_resource(resource)
    if resource.endswith("instance_types.json"):
        return {name: facts for name, facts in data.items() if name.split(".")[0] in FAMILIES}
    if "instance_type_offerings" in resource:
        return [offer for offer in data if offer["InstanceType"].split(".")[0] in FAMILIES]
    return data


_load_resource = moto_utilities.load_resource
moto_utilities.load_resource = _load_families
os.environ.update(
    MOTO_ACCOUNT_ID=ACCOUNT,
    MOTO_IAM_LOAD_MANAGED_POLICIES="true",
    MOTO_EC2_LOAD_DEFAULT_AMIS="false",
)


def _of(service: str) -> Any:
    return getattr(import_module(f"moto.{service}.models"), f"{service}_backends")[ACCOUNT]


def _backend(service: str) -> Callable[..., Any]:
    return lambda region="aws": _of(service)[region]


ec2, ecr, efs, sqs, sns, events, kms, logs, iam, sts = map(
    _backend, ("ec2", "ecr", "efs", "sqs", "sns", "events", "kms", "logs", "iam", "sts")
)
secretsmanager = _backend("secretsmanager")
"""moto's backend of the service in a region; IAM and STS have none."""


def instance_types() -> dict[str, Any]:
    """Facts of every instance type, the same in all regions."""
    kinds = import_module("moto.ec2.models.instance_types").InstanceTypeBackend.instance_types
    return {kind["InstanceType"]: kind for kind in kinds}


def publish_ami(region: str, id_: str, **facts: Any) -> None:
    """Make sure that an AMI of AWS's own exists."""
    ami = import_module("moto.ec2.models.amis").Ami
    if id_ not in ec2(region).amis:
        ec2(region).amis[id_] = ami(
            ec2(region),
            id_,
            public=True,
            virtualization_type="hvm",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name="/dev/xvda",
            region_name=f"{region}a",
            **facts,
        )


def used(service: str) -> Iterator[Any]:
    """moto's backend of the service in every region in which it was used."""
    yield from list(_of(service).values())


def seed() -> None:
    """Create the users that exist before anybody creates anybody."""
    world = paths.world()
    for name, key_id, secret in (
        (DEVELOPER, DEVELOPER_KEY, world.developer_secret),
        (WORLD, WORLD_KEY, world.world_secret),
    ):
        user = iam().create_user("aws", name)
        key = user.create_access_key(prefix="AKIA")
        key.access_key_id, key.secret_access_key = key_id, secret


def reset() -> None:
    """An empty account, for tests."""
    _iam_models.iam_backends.clear()  # else it reads all of AWS's policies before it is dropped
    import_module("moto.core.base_backend").BackendDict.reset()
    seed()


_iam_models: Any = import_module("moto.iam.models")
_iam = _iam_models.IAMBackend
_iam_models.SERVICE_NAME_CONVERSION |= {  # moto names the role of spot AWSServiceRoleForspot
    role.service.split(".")[0]: role.name.removeprefix("AWSServiceRoleFor") for role in ROLES
}
_read_policies = _iam._init_aws_policies


@cache
def _policies(account: str, region: str) -> list[Any]:
    """AWS's own policies, 2 MB of JSON: moto reads them for each account and region anew."""
    return _read_policies(SimpleNamespace(account_id=account, region_name=region))


_iam._init_aws_policies = lambda self: [
    copy(policy) for policy in _policies(self.account_id, self.region_name)
]


_rule = import_module("moto.ec2.models.security_groups").SecurityGroupRule
_rule.description = property(
    lambda self: self.ip_range.get("Description") or self.source_group.get("Description")
)
_groups: Any = import_module("moto.ec2.models.security_groups").SecurityGroupBackend
_modify_rules = _groups.modify_security_group_rules


def _modified(self: Any, group_id: str, rules: dict[str, dict[str, Any]]) -> None:
    """moto keeps the old referenced group."""
    _modify_rules(self, group_id, rules)
    group = self.get_security_group_by_name_or_id(group_id)
    for rule_id, wanted in rules.items():
        if referenced := wanted.get("ReferencedGroupId"):
            source = {"GroupId": referenced, "Description": wanted.get("Description")}
            group.get_rule(rule_id).source_group |= source


_groups.modify_security_group_rules = _modified
_interfaces: Any = import_module("moto.ec2.models.elastic_network_interfaces")


class _Attachment(_interfaces.Attachment):
    """moto puts every interface on card 0, and loses the description of a rule with a referenced
    group (above)."""

    def __init__(self, eni: Any) -> None:
        super().__init__(eni)
        self.network_card_index = getattr(eni, "network_card_index", 0)


_interfaces.Attachment = _Attachment
# moto wants this of a delete marker once a bucket keeps no more versions.
import_module("moto.s3.models").FakeDeleteMarker.dispose = lambda self: None
