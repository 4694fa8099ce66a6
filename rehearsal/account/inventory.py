"""Everything that costs money or is in somebody's way, except what an account has from the start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from rehearsal.account import backends, eks, storage
from rehearsal.account.identity import USERS
from rehearsal.account.operations import Fields


def inventory() -> Iterator[Fields]:
    """One row a thing: type, id, name, state, tags."""
    return chain(_clusters(), _identities(), _regional(), _file_systems())


def _row(type_: str, id_: str, *, name: Any = "", state: Any = "", tags: Any = ()) -> Fields:
    pairs = tags if isinstance(tags, dict) else {tag.get("Key", tag.get("key")): tag.get("Value", tag.get("value"))
                                                 for tag in tags or ()}
    return {"type": type_, "id": id_, "name": name or pairs.get("Name", ""), "state": str(state), "tags": pairs}


def _clusters() -> Iterator[Fields]:
    for found in eks.CLUSTERS.values():
        view = found.view
        yield _row("eks-cluster", view["arn"], name=found.name, state=view["status"], tags=view["tags"])
        for kind, parts in found.parts.items():
            yield from (_row(f"eks-{eks.KINDS[kind].arn}", f"{found.name}/{key}", name=key, tags=one.view["tags"],
                             state=one.view.get("status", "")) for key, one in parts.items())


def _identities() -> Iterator[Fields]:
    iam = backends.iam()
    own = {"role": [role for role in iam.get_roles() if not role.path.startswith("/aws-service-role/")],
           "policy": [one for one in iam.managed_policies.values() if f"::{backends.ACCOUNT}:" in one.arn],
           "instance-profile": iam.get_instance_profiles(),
           "user": [user for user in iam.users.values() if user.name not in USERS]}
    for kind, things in own.items():
        yield from (_row(f"iam-{kind}", one.arn, name=one.name, tags=getattr(one, "tags", ())) for one in things)


def _regional() -> Iterator[Fields]:
    for _, ec2 in backends.used_regions("ec2"):
        for kind, things in _of_ec2(ec2).items():
            yield from (_row(kind, one.id, name=getattr(one, "name", ""), tags=one.get_tags(),
                             state=getattr(one, "state", getattr(one, "status", ""))) for one in things)
        for one in ec2.addresses:
            yield _row("elastic-ip", one.allocation_id, name=one.public_ip, tags=one.get_tags())
    for _, sqs in backends.used_regions("sqs"):
        yield from (_row("sqs-queue", one.queue_arn, name=name, tags=one.tags) for name, one in sqs.queues.items())
    for _, events in backends.used_regions("events"):
        yield from (_row("event-rule", one.arn, name=one.name, state=one.state,
                         tags=events.tagger.get_tag_dict_for_resource(one.arn))
                    for one in events.event_buses["default"].rules.values())
    for _, logs in backends.used_regions("logs"):
        yield from (_row("log-group", one.arn, name=name, tags=logs.list_tags_log_group(name))
                    for name, one in logs.groups.items())


def _of_ec2(ec2: Any) -> dict[str, Iterable[Any]]:
    own = [vpc.id for vpc in ec2.vpcs.values() if not vpc.is_default]
    return {"vpc": [ec2.vpcs[id_] for id_ in own],
            "subnet": [one for zone in ec2.subnets.values() for one in zone.values() if one.vpc_id in own],
            "internet-gateway": ec2.internet_gateways.values(), "vpc-endpoint": ec2.vpc_end_points.values(),
            "nat-gateway": [one for one in ec2.nat_gateways.values() if one.state != "deleted"],
            "route-table": [one for one in ec2.route_tables.values()
                            if one.vpc_id in own and not one.main_association_id],
            "security-group": [one for id_ in own for one in ec2.groups.get(id_, {}).values() if not one.is_default],
            "network-interface": ec2.enis.values(), "volume": ec2.volumes.values(),
            "instance": [one for one in ec2.all_instances() if one.state != "terminated"],
            "launch-template": ec2.launch_templates.values()}


def _file_systems() -> Iterator[Fields]:
    yield from (_row("fsx-file-system", id_, state=view["Lifecycle"], tags=view["Tags"])
                for id_, view in storage.FILE_SYSTEMS.items())
    for _, efs in backends.used_regions("efs"):
        yield from (_row("efs-file-system", id_, state=one.life_cycle_state, tags=efs.list_tags_for_resource(id_))
                    for id_, one in efs.file_systems_by_id.items())
        yield from (_row("efs-mount-target", id_, name=one.file_system_id, state=one.life_cycle_state)
                    for id_, one in efs.mount_targets_by_id.items())
