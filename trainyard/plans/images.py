"""Names of images where nodes pull them: their own, or that of a copy in a registry of the account.

Grammar of names: github.com/distribution/reference v0.6.0. Of repositories: ECR API reference,
CreateRepository, repositoryName.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, cast

from trainyard.plans.identity import Identity

HUB = "docker.io"
"""Registry of a name without one."""
IMAGE_FIELDS = ("image", "images")
"""Names of fields that hold images, in plans and objects; or the end of such a name, behind a _."""
NOT_OBJECTS = ("annotations", "contract", "data", "env", "environment", "files", "labels")
"""Fields whose keys are somebody else's words."""


@dataclass(frozen=True, kw_only=True)
class ChartImage:
    """An image that a chart pulls, and the values that name another one."""

    image: str
    at: tuple[str, ...]
    """Path of the image in the chart's values."""
    form: Literal["repository-and-tag", "registry-too", "repository", "whole"]
    """Form of the value: `repository` and `tag`; both with `registry`; a text with the repository
    alone, whose tag is the chart's; a text with all of it."""

    def values(self) -> dict[str, Any]:
        """The values with which the chart pulls it."""
        name = parts(self.image)
        said: Any = {"repository": f"{name.registry}/{name.repository}", "tag": name.tag}
        if self.form == "registry-too":
            said = {"registry": name.registry, "repository": name.repository, "tag": name.tag}
        elif self.form == "repository":
            said = f"{name.registry}/{name.repository}"
        elif self.form == "whole":
            said = self.image
        for step in reversed(self.at):
            said = {step: said}
        return said


@dataclass(frozen=True, kw_only=True)
class Copy:
    """An image, and what its copy is called."""

    image: str
    copy: str


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of an image's name."""

    registry: str
    repository: str
    tag: str
    """Empty where there is none."""
    digest: str
    """sha256:…, or empty."""

    @property
    def version(self) -> str:
        """Tag and digest, as they follow the repository."""
        tag, digest = f":{self.tag}" * bool(self.tag), f"@{self.digest}" * bool(self.digest)
        return tag + digest

    @property
    def in_ecr(self) -> dict[str, str]:
        """Identifier of the image in its repository of ECR (ECR API, ImageIdentifier)."""
        return {"imageDigest": self.digest} if self.digest else {"imageTag": self.tag or "latest"}


def parts(image: str) -> Parts:
    """The parts of a name, as container runtimes read it."""
    name, _, digest = image.partition("@")
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    path = f"{head}{slash}{last}"
    registry, slash, rest = path.partition("/")
    if not slash or not ({".", ":"} & {*registry} or registry == "localhost"):
        registry, rest = HUB, path if slash else f"library/{path}"
    return Parts(registry=registry, repository=rest, tag=tag, digest=digest)


def ecr_region(registry: str) -> str | None:
    """The region of a private registry of ECR, which answers only whom it knows; None for another
    registry."""
    found = re.fullmatch(
        r"\d{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?", registry
    )
    return found[1] if found else None


def in_region(image: str, region: str) -> bool:
    """True where an image is in a registry of ECR in the region, which nodes reach by its
    endpoints."""
    return bool(re.match(rf"\d{{12}}\.dkr\.ecr\.{region}\.amazonaws\.com/", image))


def copy_of(image: str, mirror: str) -> str:
    """Name of an image's copy. `mirror`: registry and beginning of the repositories."""
    name = parts(image)
    registry = name.registry.replace(":", "-")
    return f"{mirror}/{registry}/{name.repository}{name.version}"


def changed(value: Any, change: Callable[[str], str]) -> Any:
    """A plan, or a part of one, with each image in it changed. What has no image stays the same
    object."""
    if isinstance(value, list | tuple):
        each = [changed(one, change) for one in value]
        return value if _same(each, value) else type(value)(each)
    if isinstance(value, Mapping):
        old = dict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        old = {each.name: getattr(value, each.name) for each in fields(value)}
    else:
        return value
    new = {name: _of_field(str(name), each, change) for name, each in old.items()}
    if _same(new.values(), old.values()):
        return value
    return new if isinstance(value, Mapping) else replace(cast(Any, value), **new)


def _same(new: Iterable[object], old: Iterable[object]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def _of_field(name: str, value: Any, change: Callable[[str], str]) -> Any:
    if name in NOT_OBJECTS:
        return value
    if name not in IMAGE_FIELDS and not name.endswith(("_image", "_images")):
        return changed(value, change)
    if isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        made = tuple(_once(one, change) for one in value)
        return value if made == value else made
    return _once(value, change) if isinstance(value, str) else changed(value, change)


def _once(image: str, change: Callable[[str], str]) -> str:
    found = change(image)
    return image if found == image else found


def images_in(*plans: Any) -> list[str]:
    """Every image of the plans, each of them once, in the order of their names."""
    found: set[str] = set()

    def see(image: str) -> str:
        found.add(image)
        return image

    for plan in plans:
        changed(plan, see)
    return sorted(found - {""})


def merged(*values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a chart, the later ones over the earlier ones."""
    whole: dict[str, Any] = {}
    for each in values:
        for key, value in each.items():
            under = whole.get(key)
            if isinstance(under, Mapping) and isinstance(value, Mapping):
                whole[key] = merged(under, value)
            else:
                whole[key] = value
    return whole


def chart_values(images: Iterable[ChartImage]) -> dict[str, Any]:
    """The values with which a chart pulls these images."""
    return merged(*(each.values() for each in images))


@dataclass(frozen=True, kw_only=True)
class RegistryPlan:
    identity: Identity
    name: str
    """In ECR: people type it."""
    keep: bool
    keep_images: int | None
    """Images that stay, the newest; None: all."""
