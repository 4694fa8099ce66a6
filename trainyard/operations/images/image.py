"""`trainyard image JOB --from FOLDER`: build the image of a folder, push it to an ECR repository of the
environment, and write its digest into the job's entry.

Only the value of `image` changes in the stack file; comments and layout stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from trainyard.decide import plan_stack
from trainyard.derive.credentials import NotAssumed, aws_session
from trainyard.derive.pools import job_type
from trainyard.operations.images.builders import Builder, CannotBuild, Image, Registry, builder_for
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.stack import Stack, read_stack
from trainyard.operations.reach.stack_lines import Change, scalar_of_job, values_of_jobs
from trainyard.operations.reach.target import update_command
from trainyard.plans.access import AccessPlan
from trainyard.problems import Refused, by_option
from trainyard.rules.access import account_findings

NOTHING = "Nothing was built, and nothing was changed."
UNCHANGED = "The stack file was not changed."


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Request for an image."""

    stack: Stack
    job: str
    folder: Path
    repository: str
    """<stack of the environment>/<registry>."""
    tag: str


def main(options: argparse.Namespace) -> int:
    """Return 0 where the digest was written, 1 where it was not, 2 where there is no terminal to
    ask."""
    otherwise = NOTHING
    try:
        stack = read_stack(options.stack)
        wish = Wish(
            stack=stack,
            job=options.job,
            folder=Path(options.folder),
            repository=_repository(stack, options.registry),
            tag=f"{options.job}-{datetime.now(UTC):%Y%m%d-%H%M%S}",
        )
        change = _changed(wish, "")
        builder = builder_for(wish.folder)
        print(
            f"{stack.file}:{change.line}: image of {wish.job}, which {builder.program} makes of"
            f" {wish.folder} for {_platform(wish)} and pushes to {wish.repository}:{wish.tag}"
        )
        if code := ask(
            "Build and push it, and write its digest?", yes=options.yes, otherwise=NOTHING
        ):
            return code
        otherwise = UNCHANGED
        name = _pushed(wish, builder)
        otherwise = f"{name} is pushed. {UNCHANGED}"
        change = _changed(wish, name)
    except (CannotBuild, NotAssumed, FileNotFoundError, Refused, yaml.YAMLError) as error:
        print(f"{error}\n{otherwise}", file=sys.stderr)
        return 1
    Path(stack.file).write_text(change.applied(Path(stack.file).read_text()))
    print(f"{stack.file}:{change.line}: {change.text.strip()}")
    print(f"next: {update_command(options.stack, options.live)}, which starts the job anew")
    return 0


def _repository(stack: Stack, wanted: str | None) -> str:
    """The one that is meant."""
    found = stack.environment.registries
    name = next(iter(found)) if wanted is None and len(found) == 1 else wanted
    if not found:
        raise CannotBuild(
            "the environment has no ECR repository. Fix: add registries: {train: {}} to environment,"
            " and create it with the next update"
        )
    if name not in found:
        got = "several are there" if wanted is None else f"there is no registry {wanted}"
        raise CannotBuild(f"{got}. Fix: {by_option('--registry', found, 'a registry')}")
    return f"{stack.environment_stack}/{name}"


def _changed(wish: Wish, image: str) -> Change:
    """Change that writes an image into the job's entry. CannotBuild where a line cannot be
    changed."""
    file, jobs = wish.stack.file, wish.stack.jobs
    if wish.job not in jobs:
        where = f"{file} has no job {wish.job} that is described there"
        raise CannotBuild(f"{where}. Fix: {by_option('--job', jobs, 'a job')}")
    text = Path(file).read_text()
    change = scalar_of_job(text, wish.job, "image", image or "image")
    by_hand = f"write image: {image or '<repository>@sha256:<digest>'} into the entry by hand"
    if change is None:
        raise CannotBuild(f"{file}: the image of {wish.job} is no text of one line. Fix: {by_hand}")
    before, after = (values_of_jobs(each, "image") for each in (text, change.applied(text)))
    if after != {**before, wish.job: image or "image"}:
        raise CannotBuild(
            f"{file}:{change.line} is a line of other jobs, too (an anchor of YAML). Fix: give"
            f" {wish.job} a line `image:` of its own"
        )
    return change


def _platform(wish: Wish) -> str:
    """Platform of the job's nodes."""
    kind = job_type(wish.stack.jobs[wish.job], wish.stack.environment)
    return f"linux/{kind.architecture if kind else 'amd64'}"


def _pushed(wish: Wish, builder: Builder) -> str:
    """Build and push; the image's name with its digest, as ECR knows it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        plan = plan_stack(wish.stack.reading).accepted()
        session = aws_session(plan.access)
        _require_account(plan.access, session)
        ecr = session.create_client("ecr", plan.access.region)
        uri = _address(ecr, wish)
        registry, host = registry_of(ecr.get_authorization_token()["authorizationData"])
        name = f"{host}/{wish.repository}:{wish.tag}"
        image = Image(folder=wish.folder, name=name, platform=_platform(wish))
        builder.push(image, registry)
        which = [{"imageTag": wish.tag}]
        found = ecr.describe_images(repositoryName=wish.repository, imageIds=which)
    except (BotoCoreError, ClientError) as error:
        raise CannotBuild(f"ECR, {wish.repository}: {error}") from None
    return f"{uri}@{found['imageDetails'][0]['imageDigest']}"


def _require_account(access: AccessPlan, session: Any) -> None:
    """CannotBuild where the stack file refuses the account of the caller, as its AWS provider would: another account
    may have a repository of the same name."""
    if access.allowed_account_ids or access.forbidden_account_ids:
        caller = session.create_client("sts", access.region).get_caller_identity()["Arn"]
        for error in account_findings(access, caller):
            raise CannotBuild(str(error))


def _address(ecr: Any, wish: Wish) -> str:
    """Beginning of the names of images. CannotBuild where no update has made the repository."""
    try:
        found = ecr.describe_repositories(repositoryNames=[wish.repository])["repositories"]
    except ecr.exceptions.RepositoryNotFoundException:
        raise CannotBuild(
            f"there is no repository {wish.repository} yet. Fix: delete job {wish.job} from the stack file for now:"
            " an update starts it, and its nodes would wait for the image. Then update the environment, which"
            " makes the repository, add the job again, and repeat this command"
        ) from None
    return str(found[0]["repositoryUri"])


def registry_of(tokens: Iterable[dict[str, Any]]) -> tuple[Registry, str]:
    """Where to push, with a token of 12 hours; and its host."""
    token = next(iter(tokens))
    scheme, _, host = str(token["proxyEndpoint"]).rstrip("/").rpartition("://")
    encrypted = scheme != "http"
    return Registry(host=host, encrypted=encrypted, auth=token["authorizationToken"]), host
