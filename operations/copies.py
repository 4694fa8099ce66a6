"""Copies of images in a registry of ECR: which are missing, and how one is made, with all its platforms,
so that its digest stays.

A registry of ECR knows nobody without a token of its own region, AWS's registry of EKS's images among
them (ECR user guide, registry_auth).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from operations.builders import CannotBuild, Registry, copy_image
from operations.image import registry_of
from plans.images import Copy, ecr_region, parts


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A copy that is not there."""

    copy: Copy
    repository: str
    new: bool
    """The repository is not there either."""


def missing_copies(ecr: Any, copies: Iterable[Copy]) -> Iterator[Missing]:
    """The copies that ECR does not have."""
    for copy in copies:
        name = parts(copy.copy)
        which = {"imageDigest": name.digest} if name.digest else {"imageTag": name.tag or "latest"}
        try:
            ecr.describe_images(repositoryName=name.repository, imageIds=[which])
        except ecr.exceptions.RepositoryNotFoundException:
            yield Missing(copy=copy, repository=name.repository, new=True)
        except ecr.exceptions.ImageNotFoundException:
            yield Missing(copy=copy, repository=name.repository, new=False)


def make_copies(session: Any, ecr: Any, missing: Sequence[Missing]) -> dict[str, str]:
    """Copy each image, the others too where one fails. Image → why it was not copied."""
    from botocore.exceptions import BotoCoreError, ClientError

    target, _ = registry_of(ecr.get_authorization_token()["authorizationData"])
    sources, failed = [*_sources(session, missing)], dict[str, str]()
    for number, each in enumerate(missing, 1):
        image = each.copy.image
        print(f"{number}/{len(missing)} {image}", file=sys.stderr, flush=True)
        try:
            _copy(ecr, each, target, sources)
        except (CannotBuild, BotoCoreError, ClientError) as error:
            print(error, file=sys.stderr, flush=True)
            failed[image] = str(error)
    return failed


def _sources(session: Any, missing: Iterable[Missing]) -> Iterator[Registry]:
    """Private registries of ECR that images come from, with a token of their region. It is good for
    every registry of the region that the caller may read (ECR API reference, GetAuthorizationToken)."""
    from botocore.exceptions import BotoCoreError, ClientError

    for host in sorted({parts(each.copy.image).registry for each in missing}):
        if region := ecr_region(host):
            try:
                ecr = session.create_client("ecr", region)
                token = ecr.get_authorization_token()["authorizationData"][0]
            except (BotoCoreError, ClientError) as error:
                print(f"{host}: no token of ECR in {region}: {error}", file=sys.stderr)
            else:
                yield Registry(host=host, encrypted=True, auth=token["authorizationToken"])


def _copy(ecr: Any, missing: Missing, target: Registry, sources: Sequence[Registry]) -> None:
    own = parts(missing.copy.copy)
    if missing.new:
        with suppress(
            ecr.exceptions.RepositoryAlreadyExistsException
        ):  # of another image, just now
            ecr.create_repository(repositoryName=missing.repository, imageTagMutability="IMMUTABLE")
    tag = own.tag or own.digest.replace(":", "-") or "latest"
    copy_image(missing.copy.image, f"{target.host}/{missing.repository}:{tag}", target, sources)
