"""Errors about keys, and about a retention of logs, that cannot work."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.logs import RETENTION_DAYS, offered
from trainyard.objects.iam.encryption import region_of
from trainyard.objects.iam.policies import account_of
from trainyard.parts.parts import wanted_parts
from trainyard.plans.access import AccessPlan
from trainyard.problems import At, InputError
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import NetworkConfig

KEY = "environment.kms_key_arn"


def encryption_errors(
    region: str, wanted: EnvironmentConfig, access: AccessPlan
) -> Iterator[InputError]:
    """Every error of the key, and of the logs that it can encrypt."""
    if wanted.kms_key_arn:
        yield from _key_errors(region, wanted.kms_key_arn, access)
    yield from _log_errors(wanted)


def _key_errors(region: str, key: str, access: AccessPlan) -> Iterator[InputError]:
    if region_of(key) != region:
        yield At(KEY).must(
            f"be a key of {region}: EBS, EFS, FSx and EKS take none of another region",
            got=key,
            fix=f"write a key of {region}: aws kms list-keys --region {region}",
        )
    owner = account_of(key)
    known = access.accounts
    if access.refuses(owner) or (known and owner not in known):
        yield At(KEY).must(
            f"be a key of the account that the stack works in{_listed(known)}",
            got=key,
            fix="write a key of that account, or correct the account in cluster.deployer_role_arn and"
            " aws:allowedAccountIds",
        )


def _listed(accounts: set[str]) -> str:
    return f", {' or '.join(sorted(accounts))}" if accounts else ""


def _log_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    cluster, network = wanted.cluster, wanted.network
    days = {"cluster.log_retention_days": cluster.log_retention_days}
    if isinstance(network, NetworkConfig) and network.flow_logs:
        days["network.flow_logs.days"] = network.flow_logs.days
    for part, settings in wanted_parts(wanted):
        days |= part.log_days(settings)
    for setting, wished in days.items():
        if wished is not None and wished not in RETENTION_DAYS:
            yield At(f"environment.{setting}").must(
                f"be one of {', '.join(map(str, RETENTION_DAYS))}, as CloudWatch Logs offers",
                got=wished,
                write=offered(wished),
            )
    if cluster.log_retention_days is not None and not cluster.logs:
        yield At("environment.cluster.log_retention_days").not_set(
            "beside logs: [], which writes no logs", got=cluster.log_retention_days
        )
