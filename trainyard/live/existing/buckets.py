"""Questions of `trainyard check --live` about existing S3 buckets: those of S3 stores, those that
Lustre is linked to, those of teams, and those that jobs load from. Requirements for them:
trainyard/existing/bucket_faults.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from trainyard.existing.bucket_faults import (
    NO_WAY,
    BucketFound,
    BucketUse,
    bucket_faults,
    bucket_remarks,
)
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.objects.iam.s3 import bucket_of
from trainyard.plan import EnvironmentPlan
from trainyard.plans.networks import OwnNetworkPlan
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import typed
from trainyard.stores.kinds import kinds_of

Finding = InputError | InputWarning
Check = Callable[[], Iterator[Finding]]


def bucket_checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig
) -> dict[str, Check]:
    """The questions by name; none where nothing names a bucket. A bucket is asked for once."""
    named: dict[str, list[BucketUse]] = {}
    for use in bucket_uses(plan, wanted):
        named.setdefault(use.bucket, []).append(use)
    return {
        f"bucket {bucket}": lambda bucket=bucket, uses=uses: _findings(account, bucket, uses)
        for bucket, uses in named.items()
    }


def bucket_uses(plan: EnvironmentPlan, wanted: EnvironmentConfig) -> Iterator[BucketUse]:
    """Every setting that names a bucket."""
    region, isolated = plan.identity.region, _isolated(plan)
    for name, store in wanted.storage.items():
        for kind, settings in kinds_of(store):
            path = f"environment.storage.{name}.{kind.name}"
            yield from kind.bucket_uses(path, settings, region, isolated=isolated)
    for name, team in wanted.teams.items():
        for setting in ("s3_reads", "s3_writes"):
            for prefix in getattr(team, setting):
                yield BucketUse(
                    bucket=bucket_of(prefix),
                    path=f"environment.teams.{name}.{setting}",
                    region=region,
                    only_here=NO_WAY if isolated else "",
                    keys_path=f"environment.teams.{name}.kms_key_arns",
                    keys=team.kms_key_arns,
                    written=setting == "s3_writes",
                )
    for name, job in typed(wanted.jobs).items():
        for setting, load in job.loads.items():
            if at := load.from_s3:
                path = f"environment.jobs.{name}.{setting}.from_s3"
                yield BucketUse(
                    bucket=bucket_of(at.address),
                    path=f"{path}.address",
                    region=region,
                    only_here="a load from another region is paid by the GB",
                    keys_path=f"{path}.kms_key_arn",
                    keys=(at.kms_key_arn,) if at.kms_key_arn else (),
                )


def _isolated(plan: EnvironmentPlan) -> bool:
    return isinstance(plan.network, OwnNetworkPlan) and not plan.network.ways_out


def _findings(account: Account, bucket: str, uses: list[BucketUse]) -> Iterator[Finding]:
    found = account.bucket(bucket)
    unknown: list[Finding] = []
    if found and found.seen:
        found, unknown = _looked_into(account, bucket, found)
    for use in uses:
        yield from bucket_faults(use, found)
        for text in bucket_remarks(use, found) if found else ():
            yield InputWarning(path=use.path, text=text)
    yield from unknown


def _looked_into(
    account: Account, bucket: str, found: BucketFound
) -> tuple[BucketFound, list[Finding]]:
    """The bucket with its key, and whether it is public. What the caller may not ask is a warning, and
    keeps nothing else from being said."""
    unknown = list[Finding]()
    for field, ask in (("key", account.bucket_key), ("public", account.is_public)):
        try:
            found = replace(found, **{field: ask(bucket)})
        except NotAnswered as reason:
            text = f"a question about {bucket} failed: {reason}"
            unknown.append(InputWarning(path="account", text=text))
    return found, unknown
