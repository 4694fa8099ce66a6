"""The policy `images-from-allowed-registries`: every image that an object of Kubernetes names."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from policy_pack.resource import Config, Resource


def allowed_images(resource: Resource, config: Config) -> Iterator[str]:
    """Every container of every object, own runtimes and jobs among them."""
    if resource.is_kubernetes:
        for image in sorted(set(_images(resource.props))):
            if not any(fnmatch.fnmatchcase(image, f"{each}*") for each in config["registries"]):
                yield f"must take its image from an allowed registry; got {image}"


def _images(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        for key, inner in _known(part):
            yield from _named(key, inner)
            yield from _images(inner)
    elif _is_list(part):
        for inner in part:
            yield from _images(inner)


def _named(key: str, inner: Any) -> Iterator[str]:
    """Images that the value of one key names. The schema of a CRD has the same keys, with other values."""
    if key in ("containers", "initContainers", "ephemeralContainers"):
        found = [one.get("image") for one in _maps(inner)]
    elif key == "volumes":
        found = [
            image.get("reference") for one in _maps(inner) for image in _maps([one.get("image")])
        ]
    elif key == "trainer":  # of a TrainJob
        found = [one.get("image") for one in _maps([inner])]
    else:
        found = []
    yield from (image for image in found if image and isinstance(image, str))


def _maps(part: Any) -> list[Mapping[str, Any]]:
    return [one for one in part if isinstance(one, Mapping)] if _is_list(part) else []


def _is_list(part: Any) -> bool:
    return isinstance(part, Sequence) and not isinstance(part, str)


def _known(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Images that a preview knows; a value that AWS chooses, such as one of a variable, hides no
    image."""
    for key in part:
        with contextlib.suppress(UnknownValueError):
            yield key, part[key]
