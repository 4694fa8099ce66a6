"""The file that tests change and mutate has every setting, and nothing in it is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.everything import everything
from tests.support.recording import CHECKOUT
from trainyard.decide import plan_stack
from trainyard.settings.reading.reader import json_schema, read

SCHEMA = json_schema()
BESIDE_NOTHING = {
    "AlertsConfig.topic_arn": "beside emails, which are of the environment's own topic",
    "ClusterConfig.existing_add_ons": "needs an existing cluster",
    "ClusterConfig.inside_vpc": "for an endpoint that is private",
    "ClusterConfig.name": "needs an existing VPC",
    "ClusterConfig.proxy_url": "for an endpoint that is private",
    "ClusterConfig.tunnel_port": "for an endpoint that is private",
    "EfsConfig.file_system_id": "needs an existing VPC",
    "EnvironmentConfig.queues": "with queues an environment has no GPU jobs of its own",
    "JobConfig.urgency": "needs queues",
    "LustreConfig.file_system_id": "needs an existing VPC",
    "LustreConfig.restore_from": "names a backup, which no file has made",
    "ManifestConfig.urgency": "needs queues",
    "NetworkConfig.internet": "beside NAT gateways, none of which there are without the internet",
    "TeamEntryConfig.guaranteed_nodes": "needs queues",
    "TeamEntryConfig.lends_nodes": "needs queues",
    "TeamEntryConfig.max_nodes": "needs queues",
    "TeamEntryConfig.max_urgency": "needs queues",
}
"""Setting → why it cannot stand in the same file as the others."""
ELSEWHERE = ("ExistingNetworkConfig", "QueuesConfig", "TeamConfig")
"""Settings of an existing VPC, of queues, and of the other kind of stack file."""


def test_a_file_with_every_setting_has_no_error() -> None:
    found = plan_stack(read(everything(), stack="dev", project="trainyard"), CHECKOUT)
    assert found.errors == () and found.plan


def test_every_setting_stands_in_the_file_or_has_a_reason_not_to() -> None:
    properties = SCHEMA["properties"]["config"]["properties"]
    used = {
        name
        for key, value in everything().items()
        for name in _used(value, properties.get(key, {}))
    }
    known = {
        f"{kind}.{name}"
        for kind, shape in SCHEMA["$defs"].items()
        for name in shape.get("properties", {})
        if kind not in ELSEWHERE
    }
    assert known - used == BESIDE_NOTHING.keys()


def _used(value: Any, shape: Mapping[str, Any]) -> Iterator[str]:
    """The settings of a value: "JobConfig.nodes"."""
    if "$ref" in shape:
        kind = shape["$ref"].rpartition("/")[2]
        settings = SCHEMA["$defs"][kind].get("properties", {})
        for name, each in value.items() if isinstance(value, dict) else ():
            if name in settings:
                yield f"{kind}.{name}"
                yield from _used(each, settings[name])
    for part in (*shape.get("anyOf", ()), *shape.get("oneOf", ())):
        yield from _used(value, part)
    if isinstance(value, dict):
        of_entries = [
            shape.get("additionalProperties"),
            *shape.get("patternProperties", {}).values(),
        ]
        for each in value.values():
            for of_entry in of_entries:
                yield from _used(each, of_entry if isinstance(of_entry, dict) else {})
    for each in value if isinstance(value, list) else ():
        yield from _used(each, shape.get("items") or {})
