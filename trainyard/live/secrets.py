"""Questions of `trainyard check --live` about the secrets of Secrets Manager that jobs of the
environment read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from trainyard.live.questions.account import Account
from trainyard.objects.iam.secrets import ManagedSecret
from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputError
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import typed

AWS_KEY = "alias/aws/secretsmanager"
"""The key of a secret that names none. Whoever may read the secret may use it."""


def secret_checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig
) -> dict[str, Callable[[], Iterable[InputError]]]:
    """The questions about secrets, one for each of the stack file's variables."""
    region = plan.identity.region
    return {
        f"secret {secret.secrets_manager} of job {job}": lambda path=path, secret=secret: (
            secret_errors(path, secret, region, account.secret(secret.secrets_manager))
        )
        for job, settings in typed(wanted.jobs).items()
        for variable, secret in settings.managed_secrets.items()
        for path in [f"environment.jobs.{job}.secrets.{variable}"]
    }


def secret_errors(
    path: str, secret: ManagedSecret, region: str, described: Mapping[str, Any]
) -> Iterator[InputError]:
    """A secret that pods cannot read. `described`: empty where Secrets Manager has no such secret."""
    name, deleted = secret.secrets_manager, described.get("DeletedDate")
    if not described or deleted:
        restore = f"aws secretsmanager restore-secret --secret-id {name} --region {region}"
        yield InputError(
            path=f"{path}.secrets_manager",
            must=f"be a secret of Secrets Manager in {region}",
            got=f"{name}, which is being deleted" if deleted else f"{name}, which does not exist",
            fix=f"run `{restore}`" if deleted else "create it, or name one that exists",
        )
        return
    key = described.get("KmsKeyId", AWS_KEY)
    if not key.endswith(AWS_KEY) and secret.kms_key_arn is None:
        yield InputError(
            path=f"{path}.kms_key_arn",
            must=f"be the key of secret {name}, which pods must be permitted to use",
            got="nothing",
            fix=f"write the ARN of the key: {key}",
        )
