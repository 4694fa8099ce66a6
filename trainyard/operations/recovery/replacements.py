"""Operations that a killed update had started on objects in the state: replacements, updates, deletions.

In a replacement, the new object exists, and the state holds the old one only.
The engine notes before it creates the new object with which inputs it does so. Most old objects are
deleted after that; where both cannot exist, the old one is gone and marked `pendingReplacement`.
`pulumi import` cannot give a resource of the state another object, so the new one is written into the
state, and a refresh reads the rest. Where the stack file wants the old object again, the state holds
that one, and the next update deletes the new one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from trainyard.replacing.urn import name_of, type_of

Entry = dict[str, Any]
GONE = "pendingReplacement"


def begun(state: Entry) -> dict[str, Entry]:
    """Objects that the killed update was creating in the place of resources that the state holds,
    by URN."""
    held = {each["urn"] for each in _resources(state) if not each.get("delete")}
    return {
        operation["resource"]["urn"]: operation["resource"]
        for operation in state["deployment"].get("pending_operations") or []
        if operation["type"] == "creating"
        and operation["resource"].get("custom")
        and operation["resource"]["urn"] in held
    }


def changing(state: Entry) -> list[str]:
    """URNs of objects whose deletion was killed, and of AWS objects whose update was: it may have
    happened. Helm refuses to delete what is gone, and an update would take what is gone for an object
    that exists. AWS refuses some updates that change nothing, such as one of a cluster's endpoint."""
    read = {"updating": ("aws:",), "deleting": ("aws:", "kubernetes:")}
    return [
        operation["resource"]["urn"]
        for operation in state["deployment"].get("pending_operations") or []
        if type_of(operation["resource"]["urn"]).startswith(read.get(operation["type"], ()))
    ]


def held_ids(state: Entry) -> Mapping[str, Collection[str]]:
    """Type → ids of the objects that the state holds and that have not been deleted for a new one."""
    ids = defaultdict[str, set[str]](set)
    for each in _resources(state):
        if each.get("id") and not each.get(GONE):
            ids[each["type"]].add(each["id"])
    return ids


def new_name(urn: str) -> str:
    """Name that a repair gives the new object."""
    return f"{name_of(urn)}{type_of(urn).rpartition(':')[2]}"


def candidates(begun: Mapping[str, Entry]) -> Iterator[tuple[Entry, Entry]]:
    """(name and type, inputs) of every new object that may exist."""
    for urn, resource in begun.items():
        yield {"name": new_name(urn), "type": resource["type"]}, resource["inputs"]


def take(state: Entry, ids: Mapping[str, str]) -> None:
    """Let the state hold the new objects, URN → id. The next update deletes the old ones, as it does
    where the engine was killed later, but for those that are gone."""
    started, now = begun(state), datetime.now(UTC).isoformat()
    resources = state["deployment"].get("resources") or []
    old = [each for each in resources if each["urn"] in ids and not each.get("delete")]
    for each in old:
        id_, resource = ids[each["urn"]], started[each["urn"]]
        new = resource | {"id": id_, "outputs": {**resource["inputs"], "id": id_}}
        new |= {"created": now, "modified": now}
        resources[resources.index(each)] = new
    resources += [each | {"delete": True} for each in old if not each.get(GONE)]


def wanted_again(state: Entry, made: Mapping[str, Entry], taken: Collection[str]) -> dict[str, str]:
    """URN → id of old Kubernetes objects to keep. The stack file has reverted the change that replaced
    them, so the next update would create them again and fail, because Pulumi deletes the old ones only
    at its end. `made`: URN → resource that a preview replaces another one with. `taken`: URNs of
    replacements that were killed; if a preview does not replace such a resource, it wants the old
    object.

    No AWS object is among them: Pulumi deletes an AWS object with a fixed name before it creates the
    next one."""
    old = {
        each["urn"]: each["id"]
        for each in _resources(state)
        if each["type"].startswith("kubernetes:")
        and not each.get(GONE)
        and (each.get("delete") or each["urn"] in taken)
    }
    return {
        urn: id_
        for urn, id_ in old.items()
        if (_id(made[urn]) == id_ if urn in made else urn in taken)
    }


def put_back(state: Entry, ids: Mapping[str, str]) -> None:
    """Let the state hold the old objects again, URN → id. The next update deletes the new ones."""
    resources = _resources(state)
    for urn, id_ in ids.items():
        same = [index for index, each in enumerate(resources) if each["urn"] == urn]
        [new] = [index for index in same if not resources[index].get("delete")]
        [old] = [index for index in same if index != new and resources[index]["id"] == id_]
        back = {key: value for key, value in resources[old].items() if key != "delete"}
        resources[new], resources[old] = back, resources[new] | {"delete": True}


def _id(made: Entry) -> str:
    """Id that the Kubernetes provider gives the object."""
    meta = made["inputs"].get("metadata") or {}
    return "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))


def _resources(state: Entry) -> list[Entry]:
    return state["deployment"].get("resources") or []
