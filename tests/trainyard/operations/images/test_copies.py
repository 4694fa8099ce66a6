"""Copies of images: which of them are of an image that its tag no longer means."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.support.stackfile import at, environment_plan
from trainyard.operations.images import copies, mirror
from trainyard.operations.images.builders import CannotBuild
from trainyard.operations.images.copies import Looked, Mirror
from trainyard.plans.images import Copy, copy_of

REGISTRY = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
AMD64 = f"sha256:{64 * 'a'}"
INDEX = json.dumps({"manifests": [{"digest": AMD64}]}).encode()
TODAY = f"sha256:{hashlib.sha256(INDEX).hexdigest()}"
FIRST = f"sha256:{64 * 'b'}"


def looked(digest: str, image: str = "quay.io/acme/vit:1") -> Looked:
    return Looked(copy=Copy(image=image, copy=copy_of(image, REGISTRY)), digest=digest)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The registry for copies, and registries that have one index under every tag."""

    def manifest(image: str, _: Any) -> bytes:
        if "/gone/" in image:
            raise CannotBuild("crane manifest ended with 1: NAME_UNKNOWN")
        return INDEX

    monkeypatch.setattr(copies, "manifest", manifest)
    return Mirror(environment_plan(at("artifacts.images", REGISTRY)))


@pytest.mark.parametrize(("digest", "moved"), [(TODAY, False), (AMD64, False), (FIRST, True)])
def test_a_copy_is_compared_with_the_index_and_with_each_platform(
    registry: Mirror, digest: str, moved: bool
) -> None:
    assert registry.moved([looked(digest)]) == [(looked(digest), TODAY)][: int(moved)]


def test_an_image_that_its_registry_does_not_show_is_said_and_ends_nothing(
    registry: Mirror, capsys: Any
) -> None:
    gone = looked(FIRST, "quay.io/gone/vit:1")
    assert [each for each, _ in registry.moved([gone, looked(FIRST)])] == [looked(FIRST)]
    assert capsys.readouterr().err == (
        "quay.io/gone/vit:1: not compared with its copy: crane manifest ended with 1: NAME_UNKNOWN\n"
    )


def test_digests_and_what_a_rule_imports_do_not_move(
    registry: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {"ecrRepositoryPrefix": "mirror/quay.io", "upstreamRegistryUrl": "quay.io"}
    pinned = looked(FIRST, f"ghcr.io/acme/vit@{FIRST}")
    monkeypatch.setattr(registry, "rules", lambda: copies.rules_of([rule]))
    assert mirror._moved(registry, [pinned, looked(FIRST), looked("")]) == []
