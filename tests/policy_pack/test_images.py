"""Images of objects that somebody adds. Those of this program: test_policies.py."""

from __future__ import annotations

from typing import Any

import pytest

from policy_pack.images import allowed_images
from policy_pack.resource import Resource

ALLOWED = {"registries": ["quay.io/"]}


def wrong(kind: str, props: dict[str, Any]) -> list[str]:
    of = Resource(type=f"kubernetes:{kind}", name="added", urn="added", props=props)
    return [must.rpartition("got ")[2] for must in allowed_images(of, ALLOWED)]


SCHEMAS: list[dict[str, Any]] = [
    {"properties": {"containers": {"type": "array", "items": {"type": "object"}}}},
    {"properties": {"volumes": {"type": "array"}, "trainer": {"image": {"type": "string"}}}},
    {"required": ["containers"], "default": {"containers": ["docker.io/a"]}},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=["containers", "volumes", "names"])
def test_the_schema_of_a_crd_that_describes_pods_names_no_image(schema: dict[str, Any]) -> None:
    kind = "apiextensions.k8s.io/v1:CustomResourceDefinition"
    assert wrong(kind, {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}) == []


PARTS: dict[str, Any] = {
    "containers": {"name": "a", "image": "docker.io/a:1"},
    "initContainers": {"name": "a", "image": "docker.io/a:1"},
    "volumes": {"name": "a", "image": {"reference": "docker.io/a:1"}},
}


@pytest.mark.parametrize("key", PARTS)
def test_every_image_of_a_pod_is_judged(key: str) -> None:
    sound = {"name": "b", "image": "quay.io/b:1"}
    spec = {"containers": [sound], key: [PARTS[key]]}
    assert wrong("core/v1:Pod", {"spec": spec}) == ["docker.io/a:1"]
    assert wrong("core/v1:Pod", {"spec": {"containers": [sound]}}) == []
