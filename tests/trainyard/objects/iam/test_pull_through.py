"""Which images a pull-through rule of ECR imports under the names of their copies."""

from __future__ import annotations

import pytest

from trainyard.objects.iam.pull_through import CacheRule, imported, rules_of
from trainyard.plans.images import Copy, copy_of

MIRROR = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
KARPENTER = "public.ecr.aws/karpenter/controller:1.14.1"
PYTORCH = "pytorch/pytorch:2.7.1"


@pytest.mark.parametrize(
    ("image", "prefix", "upstream", "upstream_prefix", "expected"),
    [
        (KARPENTER, "mirror/public.ecr.aws", "public.ecr.aws", "ROOT", True),
        (KARPENTER, "mirror/public.ecr.aws/", "public.ecr.aws", "ROOT", True),
        (KARPENTER, "mirror/public.ecr.aws/karpenter", "public.ecr.aws", "karpenter", True),
        (KARPENTER, "mirror/public.ecr.aws", "quay.io", "ROOT", False),
        (KARPENTER, "mirror", "public.ecr.aws", "ROOT", False),
        (KARPENTER, "ROOT", "public.ecr.aws", "ROOT", False),
        (KARPENTER, "mirror/public", "public.ecr.aws", "ROOT", False),
        (PYTORCH, "mirror/docker.io", "registry-1.docker.io", "ROOT", True),
        (PYTORCH, "mirror/docker.io", "docker.io", "ROOT", False),
        ("alpine:3.10", "mirror/docker.io", "registry-1.docker.io", "ROOT", True),
    ],
)
def test_a_rule_imports_what_has_the_same_name_upstream(
    image: str, prefix: str, upstream: str, upstream_prefix: str, expected: bool
) -> None:
    rule = CacheRule(prefix=prefix, upstream=upstream, upstream_prefix=upstream_prefix)
    assert imported(Copy(image=image, copy=copy_of(image, MIRROR)), [rule]) is expected


def test_the_rule_with_the_longest_prefix_decides() -> None:
    copy = Copy(image=KARPENTER, copy=copy_of(KARPENTER, MIRROR))
    sound = CacheRule(prefix="mirror/public.ecr.aws", upstream="public.ecr.aws")
    longer = CacheRule(prefix="mirror/public.ecr.aws/karpenter", upstream="quay.io")
    whole = CacheRule(prefix="ROOT", upstream="quay.io")
    assert imported(copy, [whole, sound])
    assert not imported(copy, [sound, longer]) and not imported(copy, [])


def test_rules_are_read_as_ecr_describes_them() -> None:
    described = [
        {"ecrRepositoryPrefix": "a", "upstreamRegistryUrl": "quay.io"},
        {
            "ecrRepositoryPrefix": "b",
            "upstreamRegistryUrl": "https://public.ecr.aws",
            "upstreamRepositoryPrefix": "c",
        },
    ]
    assert rules_of(described) == [
        CacheRule(prefix="a", upstream="quay.io"),
        CacheRule(prefix="b", upstream="public.ecr.aws", upstream_prefix="c"),
    ]
