"""The name and the tags of everything that a stack makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Owner of the resources: the names and tags by which they are found again."""

    project: str
    stack: str
    region: str
    extra_tags: tuple[tuple[str, str], ...] = ()
    permissions_boundary: str | None = None
    """ARN of the policy that limits every role."""
    kms_key_arn: str | None = None
    """ARN of the key that encrypts what the stack stores; None: AWS's own keys."""
    team: str | None = None
    """The team of the environment that the resources are made for; None: they are for all."""

    def of_team(self, team: str, tags: Mapping[str, str]) -> Identity:
        """The identity of what is made for one team. `tags`: the team's, which count before those of all."""
        merged = {**dict(self.extra_tags), **tags}
        return replace(self, team=team, extra_tags=tuple(sorted(merged.items())))

    def name(self, logical: str, *forcing: str) -> str:
        """`<stack>-<logical>-<8 hex>`: the same inputs give the same name, so a repeated create
        finds its object; a change that forces a replacement (`forcing`) gives another, so the new
        one can stand beside the old."""
        return f"{self.stack}-{logical}-{digest([self.project, self.region, *forcing])[:8]}"

    def short_name(self, logical: str, most: int) -> str:
        """`name`, where that has `most` characters or fewer; else its beginning and a digest of the
        whole."""
        whole = self.name(logical)
        return whole if len(whole) <= most else f"{whole[: most - 9]}-{digest([whole])[:8]}"

    def tags(self, logical: str, **more: str) -> dict[str, str]:
        """Tags of one object; project, stack and logical name tell an orphan from a stranger's
        resource, the team tells who pays."""
        return {
            **dict(self.extra_tags),
            "Name": f"{self.stack}-{logical}",
            "trainyard:project": self.project,
            "trainyard:stack": self.stack,
            "trainyard:name": logical,
            **({"trainyard:team": self.team} if self.team else {}),
            **more,
        }

    def owns(self, tags: Mapping[str, str]) -> bool:
        """True for the tags of something that the stack has made."""
        own = {"trainyard:project": self.project, "trainyard:stack": self.stack}
        return own.items() <= tags.items()


OF_CLUSTER = "kubernetes.io/cluster/"
"""Beginning of the tag by which Kubernetes, EKS and Karpenter tell what is of a cluster."""


def cluster_tag(cluster: str) -> str:
    """Key of the tag of subnets, nodes and volumes of a cluster; its value is owned or shared."""
    return f"{OF_CLUSTER}{cluster}"


def digest(value: Any) -> str:
    """SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
