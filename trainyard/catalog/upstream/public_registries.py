"""Public registries: which images come from Docker Hub or ECR Public, and how many of them each gives to
nodes that have no account.

Source of Docker Hub: docs.docker.com/docker-hub/usage/pulls, in the text of docker/docs@17c998c2da (2025-03-27), which
took the ten pulls an hour back that had been announced for 2025-04-01. A stored copy of the page,
read on 2026-11-22, has the same figures. Source of ECR Public: its user guide, public-service-quotas, "Rate
of unauthenticated image pulls", which cannot be raised (a stored copy of the page, read on 2026-11-26).
"""

from __future__ import annotations

PULLS, HOURS = 100, 6
"""Pulls without an account from one IPv4 address in so many hours. A personal account has 200, a paid
one has no limit."""
HOSTS = ("docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com")


def is_on_docker_hub(image: str) -> bool:
    """True for the name of an image that comes from Docker Hub. The text before the first slash is
    a registry where it has a dot or a colon, or is localhost; without a registry it is Docker Hub
    (distribution/reference, splitDockerDomain)."""
    host, slash, _ = image.partition("/")
    named = bool(slash) and ("." in host or ":" in host or host == "localhost")
    return bool(image) and (host in HOSTS if named else True)


ECR_PUBLIC = "public.ecr.aws"
PULLS_A_SECOND = 1
"""Images that ECR Public gives without a login. Nodes behind a NAT gateway have one address together."""
PATIENT_SECONDS = 60
"""Time of pulls from ECR Public that nobody needs to know of. A choice of ours: kubelet's pauses are short
until then."""


def is_on_ecr_public(image: str) -> bool:
    """True for the name of an image that comes from ECR Public."""
    return image.startswith(f"{ECR_PUBLIC}/")
