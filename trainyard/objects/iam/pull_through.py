"""Pull-through rules of a registry of ECR, which import an image when somebody pulls its copy.

Names: ECR user guide, pull-through-cache-private-wildcards. Limits: ECR API reference,
CreatePullThroughCacheRule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainyard.plans.images import HUB, Copy, parts

ROOT = "ROOT"
"""A prefix that every repository has."""
UPSTREAMS: Mapping[str, str] = {HUB: "registry-1.docker.io"}
"""Registry in the name of an image → the URL that a rule has for it, where the two differ."""


@dataclass(frozen=True, kw_only=True)
class CacheRule:
    """A rule as ECR describes it."""

    prefix: str
    """Repositories whose names begin with it are filled by the rule."""
    upstream: str
    """Registry that images come from, without https://."""
    upstream_prefix: str = ROOT
    """Stands there instead of `prefix`."""

    def below(self, repository: str) -> str | None:
        """The rest of a repository's name; None where the rule does not fill it."""
        if self.prefix == ROOT:
            return repository
        start = f"{self.prefix.rstrip('/')}/"
        return repository.removeprefix(start) if repository.startswith(start) else None

    def imports(self, copy: Copy) -> bool:
        """True where a pull of the copy imports this very image."""
        image, rest = parts(copy.image), self.below(parts(copy.copy).repository)
        if rest is None:
            return False
        root = self.upstream_prefix == ROOT
        there = rest if root else f"{self.upstream_prefix.rstrip('/')}/{rest}"
        upstream = UPSTREAMS.get(image.registry, image.registry)
        return (self.upstream, there) == (upstream, image.repository)


def imported(copy: Copy, rules: Iterable[CacheRule]) -> bool:
    """True where one of the rules imports the image. Of several that fill a repository, ECR takes
    the one with the longest prefix."""
    repository = parts(copy.copy).repository
    filling = [rule for rule in rules if rule.below(repository) is not None]
    longest = max(filling, key=lambda rule: len(rule.prefix) * (rule.prefix != ROOT), default=None)
    return longest is not None and longest.imports(copy)


def fills(rules: Iterable[CacheRule], repository: str) -> bool:
    """True where one of the rules may import images into a repository."""
    return any(rule.below(repository) is not None for rule in rules)


def rules_of(described: Iterable[Mapping[str, str]]) -> list[CacheRule]:
    """Rules, of an answer of DescribePullThroughCacheRules."""
    return [
        CacheRule(
            prefix=one["ecrRepositoryPrefix"],
            upstream=one["upstreamRegistryUrl"].removeprefix("https://"),
            upstream_prefix=one.get("upstreamRepositoryPrefix") or ROOT,
        )
        for one in described
    ]
