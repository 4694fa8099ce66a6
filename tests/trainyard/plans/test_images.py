"""Names of images and of their copies, and where they stand in plans and in the values of charts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from trainyard.plans.images import (
    ChartImage,
    changed,
    chart_values,
    copy_of,
    images_in,
    in_region,
    parts,
)
from trainyard.rules.images import REFERENCE

MIRROR = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror"
DIGEST = f"sha256:{'a' * 64}"
REPOSITORY = re.compile(r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*")
"""ECR API reference, CreateRepository, repositoryName."""
COPIES = {
    "busybox": "docker.io/library/busybox",
    "pytorch/pytorch:2.9": "docker.io/pytorch/pytorch:2.9",
    f"public.ecr.aws/karpenter/controller:1.14.1@{DIGEST}": (
        f"public.ecr.aws/karpenter/controller:1.14.1@{DIGEST}"
    ),
    "registry.example.com:5000/team/train:1": "registry.example.com-5000/team/train:1",
    "localhost/train:1": "localhost/train:1",
    f"quay.io/a/b@{DIGEST}": f"quay.io/a/b@{DIGEST}",
}


@pytest.mark.parametrize("image", COPIES)
def test_a_copy_is_called_after_its_registry_and_can_be_a_repository_of_ecr(image: str) -> None:
    copy = copy_of(image, MIRROR)
    assert copy == f"{MIRROR}/{COPIES[image]}"
    assert REPOSITORY.fullmatch(parts(copy).repository) and REFERENCE.fullmatch(copy)


def test_two_images_never_share_a_copy() -> None:
    alike = ["a/b:1", "quay.io/a/b:1", "docker.io/library/a:1", "ghcr.io/a/b:1", "a.b/c:1"]
    assert len({copy_of(image, MIRROR) for image in alike}) == len(alike)


def test_an_image_in_ecr_of_the_region_is_where_nodes_reach_it() -> None:
    assert in_region(f"{MIRROR}/a:1", "eu-west-1")
    assert not in_region(f"{MIRROR}/a:1", "eu-west-2")
    assert not in_region(
        "evil.example.com/111122223333.dkr.ecr.eu-west-1.amazonaws.com/a", "eu-west-1"
    )


@dataclass(frozen=True, kw_only=True)
class Part:
    image: str
    gpu_image: str
    images: tuple[str, ...]
    image_tag: str
    spec: dict[str, Any]


def _part(**spec: Any) -> Part:
    return Part(image="a:1", gpu_image="b:1", images=("c:1", "a:1"), image_tag="v1", spec=spec)


def test_every_image_of_a_plan_is_found_and_no_word_of_somebody_else() -> None:
    containers = [{"name": "image", "image": "d:1", "env": {"image": "no"}}]
    plan = _part(template={"containers": containers}, labels={"image": "no"}, data={"image": "no"})
    assert images_in(plan) == ["a:1", "b:1", "c:1", "d:1"]
    renamed = changed(plan, lambda image: f"x/{image}")
    assert (renamed.image, renamed.gpu_image, renamed.images) == (
        "x/a:1",
        "x/b:1",
        ("x/c:1", "x/a:1"),
    )
    assert renamed.image_tag == "v1" and renamed.spec["labels"] == {"image": "no"}
    [container] = renamed.spec["template"]["containers"]
    assert (container["name"], container["image"], container["env"]) == (
        "image",
        "x/d:1",
        {"image": "no"},
    )


def test_a_plan_whose_images_stay_is_the_same_object() -> None:
    plan = _part(containers=[{"image": "d:1"}])
    assert changed(plan, str) is plan


def test_a_chart_is_told_its_images_where_its_values_have_them() -> None:
    told = chart_values(
        [
            ChartImage(image="r.io/a:1", at=("image",), form="registry-too"),
            ChartImage(image="r.io/b/c:2", at=("sub", "image"), form="repository-and-tag"),
            ChartImage(image="r.io/d:3", at=("sub", "other"), form="repository"),
            ChartImage(image="r.io/e:4", at=("init",), form="whole"),
        ]
    )
    assert told == {
        "image": {"registry": "r.io", "repository": "a", "tag": "1"},
        "sub": {"image": {"repository": "r.io/b/c", "tag": "2"}, "other": "r.io/d"},
        "init": "r.io/e:4",
    }
