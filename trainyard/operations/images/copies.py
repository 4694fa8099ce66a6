"""Copies of images in a registry of ECR: which are missing, and how one is made, with all its platforms,
so that its digest stays.

A registry of ECR knows nobody without a token of its own region, AWS's registry of EKS's images among
them (ECR user guide, registry_auth). What a push asks of IAM: the same, image-push-iam.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from trainyard.derive.credentials import aws_session
from trainyard.objects.iam.pull_through import CacheRule, imported, rules_of
from trainyard.operations.images.builders import CannotBuild, Registry, copy_image, manifest
from trainyard.operations.images.image import registry_of
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.images import Copy, ecr_region, parts

PUSH = (
    *("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:CompleteLayerUpload"),
    *("ecr:InitiateLayerUpload", "ecr:PutImage", "ecr:UploadLayerPart"),
)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """A copy, and what ECR has of it."""

    copy: Copy
    new: bool = False
    """Its repository is not there."""
    digest: str = ""
    """Empty where it is not there."""

    @property
    def repository(self) -> str:
        return parts(self.copy.copy).repository


class Mirror:
    """The registry of a plan's copies, which may be of another account than the caller's. `host`: of
    another one."""

    def __init__(self, plan: EnvironmentPlan | TeamPlan, host: str | None = None) -> None:
        copies = (parts(each.copy).registry for each in plan.copies)
        self._host = next(copies, "") if host is None else host
        self._plan, self._region = plan, ecr_region(self._host) or plan.access.region
        self._session = aws_session(plan.access)
        self._ecr = self._session.create_client("ecr", self._region)

    @cached_property
    def _caller(self) -> dict[str, str]:
        return self._session.create_client("sts", self._region).get_caller_identity()

    @property
    def _account(self) -> str:
        return self._host.partition(".")[0]

    @property
    def _own(self) -> bool:
        return self._account in ("", self._caller["Account"])

    def look(self) -> list[Looked]:
        """Every copy, as it is."""
        return [self._looked(copy) for copy in self._plan.copies]

    def _looked(self, copy: Copy) -> Looked:
        name = parts(copy.copy)
        try:
            found = self._ecr.describe_images(
                registryId=self._account, repositoryName=name.repository, imageIds=[name.in_ecr]
            )
        except self._ecr.exceptions.RepositoryNotFoundException:
            return Looked(copy=copy, new=True)
        except self._ecr.exceptions.ImageNotFoundException:
            return Looked(copy=copy)
        return Looked(copy=copy, digest=found["imageDetails"][0]["imageDigest"])

    def rules(self) -> list[CacheRule]:
        """Pull-through rules; none where the caller may not ask for them."""
        from botocore.exceptions import ClientError

        try:
            pages = self._ecr.get_paginator("describe_pull_through_cache_rules")
            found = pages.paginate(registryId=self._account).build_full_result()
        except ClientError as error:
            print(f"pull-through rules are not known: {error}", file=sys.stderr)
            return []
        return rules_of(found["pullThroughCacheRules"])

    def moved(self, there: Sequence[Looked]) -> list[tuple[Looked, str]]:
        """Copies whose image is another one in its registry today, each with that one's digest. Only digests can
        say it: a tag of a copy is never written again. `crane copy` keeps the digest; with --platform the
        copy is an image that the index names (go-containerregistry 0.22.1, pkg/crane/copy.go)."""
        sources, found = [*self._sources(there)], list[tuple[Looked, str]]()
        for each in there:
            try:
                today = manifest(each.copy.image, sources)
            except CannotBuild as error:
                print(f"{each.copy.image}: not compared with its copy: {error}", file=sys.stderr)
                continue
            digest = f"sha256:{hashlib.sha256(today).hexdigest()}"
            if each.digest != digest and each.digest.encode() not in today:
                found.append((each, digest))
        return found

    def require_push(self, missing: Sequence[Looked]) -> None:
        """CannotBuild where the registry is another account's and cannot take the copies: its owner
        makes the repositories, and lets others push. An upload that begins and never ends leaves
        nothing."""
        from botocore.exceptions import ClientError

        if self._own:
            return
        if lacking := sorted({each.repository for each in missing if each.new}):
            raise CannotBuild(
                f"artifacts.images is a registry of account {self._account}, in which"
                f" {self._caller['Arn']} makes no repositories, and it lacks {len(lacking)}:"
                f" {', '.join(lacking)}. Fix: let its owner make them, log in to that account, or"
                " correct artifacts.images"
            )
        at = missing[0].repository
        try:
            self._ecr.initiate_layer_upload(registryId=self._account, repositoryName=at)
        except ClientError as error:
            raise CannotBuild(
                f"{self._caller['Arn']} may not push to {at} of account {self._account}:"
                f" {error.response['Error']['Code']}. Fix: let the owner of the registry allow it in"
                f" the policy of each repository: {', '.join(PUSH)}"
            ) from None

    def make(self, missing: Sequence[Looked]) -> tuple[list[Looked], dict[str, str]]:
        """Copy each image, the others too where one fails. The copies, and image → why there is none."""
        from botocore.exceptions import BotoCoreError, ClientError

        target, sources = self._target(), [*self._sources(missing)]
        made, failed = list[Looked](), dict[str, str]()
        for number, each in enumerate(missing, 1):
            image = each.copy.image
            print(f"{number}/{len(missing)} {image}", file=sys.stderr, flush=True)
            try:
                self._make(each, target, sources)
                made.append(self._looked(each.copy))
            except (CannotBuild, BotoCoreError, ClientError) as error:
                print(error, file=sys.stderr, flush=True)
                failed[image] = str(error)
        return made, failed

    def token(self) -> str:
        """User and password in base64."""
        return self._ecr.get_authorization_token()["authorizationData"][0]["authorizationToken"]

    def make_repository(self, name: str) -> None:
        """Make a repository, if it is not there."""
        with suppress(self._ecr.exceptions.RepositoryAlreadyExistsException):
            self._ecr.create_repository(
                registryId=self._account, repositoryName=name, **self._new_repository()
            )

    def _target(self) -> Registry:
        """A token is good for every registry that the caller may use (ECR API reference,
        GetAuthorizationToken); the answer names the caller's own."""
        own, _ = registry_of(self._ecr.get_authorization_token()["authorizationData"])
        return own if self._own else replace(own, host=self._host, encrypted=True)

    def _sources(self, missing: Iterable[Looked]) -> Iterator[Registry]:
        """Private registries of ECR that images come from, with a token of their region."""
        from botocore.exceptions import BotoCoreError, ClientError

        for host in sorted({parts(each.copy.image).registry for each in missing}):
            if region := ecr_region(host):
                try:
                    ecr = self._session.create_client("ecr", region)
                    token = ecr.get_authorization_token()["authorizationData"][0]
                except (BotoCoreError, ClientError) as error:
                    print(f"{host}: no token of ECR in {region}: {error}", file=sys.stderr)
                else:
                    yield Registry(host=host, encrypted=True, auth=token["authorizationToken"])

    def _make(self, missing: Looked, target: Registry, sources: Sequence[Registry]) -> None:
        if missing.new:
            self.make_repository(missing.repository)
        name = f"{target.host}/{missing.repository}:{self._tag(missing.copy)}"
        copy_image(missing.copy.image, name, target, sources)

    def _tag(self, copy: Copy) -> str:
        """The tag to push. An image with a digest is pulled by it, and takes no tag that another image has: the
        repositories keep their tags."""
        own = parts(copy.copy)
        if not own.digest:
            return own.tag or "latest"
        tagged = replace(copy, copy=copy.copy.partition("@")[0])
        is_free = own.tag and not self._looked(tagged).digest
        return own.tag if is_free else own.digest.replace(":", "-")

    def _new_repository(self) -> dict[str, Any]:
        """As a registry of the stack is (components/nodes/registry.py), and with the key of the stack, which that
        has not: docs/encryption.md says why."""
        me = self._plan.identity
        tags = {**dict(self._plan.access.default_tags), **me.tags("mirror")}
        key = {"encryptionType": "KMS", "kmsKey": me.kms_key_arn}
        return {
            "imageTagMutability": "IMMUTABLE",
            "imageScanningConfiguration": {"scanOnPush": True},
            "tags": [{"Key": name, "Value": value} for name, value in tags.items()],
            **({"encryptionConfiguration": key} if me.kms_key_arn else {}),
        }


def coming(looked: Iterable[Looked], rules: Sequence[CacheRule]) -> list[Looked]:
    """Copies that a pull-through rule imports when a node pulls them."""
    return [each for each in looked if imported(each.copy, rules)]
