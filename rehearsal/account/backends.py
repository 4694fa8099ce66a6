"""moto 5.2.5 as the account uses it: loaded lean, mended where it is wrong, one function a service.

Mended in place, each with what was wrong; look here first after an upgrade of moto. What moto is too kind about is not
mended here but refused by a check (see operations.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import moto.utilities.utils as moto_utilities
from moto.core.responses import ActionResult

from catalog.instances import INSTANCE_TYPES
from rehearsal.account.identity import ACCOUNT, USERS

SYSTEM_FAMILIES = ("t3", "m5", "m6i", "m7i", "c5", "c6i", "c7i", "r6i", "r7i", "m7g", "c7g")
FAMILIES = frozenset({name.split(".")[0] for name in INSTANCE_TYPES} | set(SYSTEM_FAMILIES) | {"g4dn"})
"""Instance families that exist here. All of AWS's would cost 80 MB, and Karpenter 5 s at each start."""


def _load_families(resource: str) -> Any:
    data = _load_resource(resource)
    if resource.endswith("instance_types.json"):
        return {name: facts for name, facts in data.items() if name.split(".")[0] in FAMILIES}
    if "instance_type_offerings" in resource:
        return [offer for offer in data if offer["InstanceType"].split(".")[0] in FAMILIES]
    return data


_load_resource = moto_utilities.load_resource
moto_utilities.load_resource = _load_families
os.environ.update(MOTO_ACCOUNT_ID=ACCOUNT, MOTO_IAM_LOAD_MANAGED_POLICIES="true", MOTO_EC2_LOAD_DEFAULT_AMIS="false")


def _of(service: str) -> Any:
    return getattr(import_module(f"moto.{service}.models"), f"{service}_backends")[ACCOUNT]


def _regional(service: str) -> Callable[[str], Any]:
    return lambda region: _of(service)[region]


ec2, efs, sqs, events, logs = map(_regional, ("ec2", "efs", "sqs", "events", "logs"))
"""moto's backend of the service in a region."""


def iam() -> Any:
    """IAM."""
    return _of("iam")["aws"]


def sts() -> Any:
    """STS."""
    return _of("sts")["aws"]


def instance_types() -> list[Any]:
    """Facts of every instance type, the same in all regions."""
    return import_module("moto.ec2.models.instance_types").InstanceTypeBackend.instance_types


def publish_ami(region: str, id_: str, **facts: Any) -> None:
    """Make sure that an AMI of AWS's own exists."""
    ami = import_module("moto.ec2.models.amis").Ami
    if id_ not in ec2(region).amis:
        ec2(region).amis[id_] = ami(
            ec2(region), id_, public=True, virtualization_type="hvm", hypervisor="xen", root_device_type="ebs",
            root_device_name="/dev/xvda", region_name=f"{region}a", **facts)


def used_regions(service: str) -> Iterator[tuple[str, Any]]:
    """(region, backend) of every region in which the service was used."""
    yield from list(_of(service).items())


def seed() -> None:
    """Create the users that exist before anybody creates anybody."""
    for name, (key_id, secret) in USERS.items():
        user = iam().create_user("aws", name)
        key = user.create_access_key(prefix="AKIA")
        key.access_key_id, key.secret_access_key = key_id, secret


def reset() -> None:
    """An empty account, for tests."""
    import_module("moto.core.base_backend").BackendDict.reset()
    seed()


def _mend_queue_attributes() -> None:
    """SetQueueAttributes drops a queue's policy unless the call repeats it."""
    queue = import_module("moto.sqs.models").Queue
    original = queue._set_attributes

    def keeping_policy(self: Any, attributes: dict[str, Any], now: float | None = None) -> None:
        original(self, {"Policy": getattr(self, "policy", None)} | attributes, now)

    queue._set_attributes = keeping_policy


def _mend_instance_profiles() -> None:
    """ListInstanceProfiles ignores PathPrefix: Karpenter would delete everybody's when one node class goes."""
    def list_instance_profiles(self: Any) -> ActionResult:
        prefix = self._get_param("PathPrefix") or "/"
        profiles = [profile for profile in self.backend.get_instance_profiles() if profile.path.startswith(prefix)]
        return ActionResult({"InstanceProfiles": profiles, "IsTruncated": False})

    import_module("moto.iam.responses").IamResponse.list_instance_profiles = list_instance_profiles


def _mend_rule_description() -> None:
    """The description of a security group rule with a referenced group is lost."""
    rule = import_module("moto.ec2.models.security_groups").SecurityGroupRule
    rule.description = property(lambda self: self.ip_range.get("Description") or self.source_group.get("Description"))


def _mend_network_cards() -> None:
    """Every interface is said to sit on network card 0."""
    module: Any = import_module("moto.ec2.models.elastic_network_interfaces")

    class Attachment(module.Attachment):
        def __init__(self, eni: Any) -> None:
            super().__init__(eni)
            self.network_card_index = getattr(eni, "network_card_index", 0)

    module.Attachment = Attachment


def _mend_launch_templates() -> None:
    """DescribeLaunchTemplates ends after 15 without a token: Karpenter would leak the rest."""
    templates = import_module("moto.ec2.responses.launch_templates").LaunchTemplates
    original = templates.describe_launch_templates

    def describe_all(self: Any) -> ActionResult:
        integer = self._get_int_param
        self._get_int_param = lambda name, default=None: 10_000 if name == "MaxResults" else integer(name, default)
        return original(self)

    templates.describe_launch_templates = describe_all


for _mend in (_mend_queue_attributes, _mend_instance_profiles, _mend_rule_description, _mend_network_cards,
              _mend_launch_templates):
    _mend()


def document(text: str | dict[str, Any]) -> dict[str, Any]:
    """A policy document, however moto keeps it."""
    return text if isinstance(text, dict) else json.loads(text)
