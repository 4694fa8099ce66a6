"""Which images come from Docker Hub, and which from ECR Public."""

from __future__ import annotations

import pytest

from trainyard.catalog.upstream.public_registries import is_on_docker_hub, is_on_ecr_public


@pytest.mark.parametrize(
    "image",
    [
        "python:3.12",
        "python",
        "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime",
        "docker.io/pytorch/pytorch:2.7.1",
        "index.docker.io/library/python@sha256:00",
        "registry-1.docker.io/library/python:3.12",
        "registry.hub.docker.com/library/python:3.12",
    ],
)
def test_an_image_without_a_registry_or_of_docker_hubs_own_hosts_comes_from_there(
    image: str,
) -> None:
    assert is_on_docker_hub(image)


@pytest.mark.parametrize(
    "image",
    [
        "",
        "public.ecr.aws/docker/library/python:3.12",
        "localhost/train:1",
        "registry:5000/train:1",
        "ghcr.io/team/train:1",
    ],
)
def test_an_image_of_another_registry_does_not(image: str) -> None:
    assert not is_on_docker_hub(image)


def test_an_image_of_ecr_public_is_known_by_its_host() -> None:
    assert is_on_ecr_public("public.ecr.aws/docker/library/busybox:1.37.0")
    assert not is_on_ecr_public("public.ecr.aws.example.com/a/b:1")
    assert not is_on_ecr_public("123456789012.dkr.ecr.us-east-2.amazonaws.com/a:1")
