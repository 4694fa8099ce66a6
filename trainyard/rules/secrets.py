"""Errors about secrets of Secrets Manager that a job cannot read: those of another place, those
that no command exports, and those that the entry of its team does not list.

Sources: the provider refuses the ARN of another region (provider/secret_descriptor.go of
aws/secrets-store-csi-driver-provider-aws@a74182c); another account has another policy on its side
(Secrets Manager user guide, cross-account access), which this program does not make.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.logs.missing_secrets import FIRST_DAY, creation, pull_creation
from trainyard.derive.teams import Share
from trainyard.objects.iam.encryption import region_of
from trainyard.objects.iam.secrets import SECRET_ARN, covers
from trainyard.plans.access import AccessPlan
from trainyard.plans.images import HUB, ecr_region, parts
from trainyard.problems import At, InputError, InputWarning, write_one_of
from trainyard.rules.texts import partition
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.job import JobConfig, typed

HUB_SERVER = "https://index.docker.io/v1/"
"""Docker Hub in such a Secret (kubectl create secret docker-registry, --docker-server)."""


def secret_errors(path: str, job: JobConfig, region: str) -> Iterator[InputError]:
    """Every error of a job's own secrets. `path`: the job's."""
    if not job.managed_secrets:
        return
    for variable, secret in job.managed_secrets.items():
        at = f"{path}.secrets.{variable}.secrets_manager"
        yield from _elsewhere(at, secret.secrets_manager, region)
        yield from _expanded(path, job, variable)
    if not (job.script or job.command or job.torchrun):
        yield At(f"{path}.secrets").must(
            "be Secrets of Kubernetes in a job without script, command and torchrun: these"
            " export what is in Secrets Manager before they begin",
            got=", ".join(job.managed_secrets),
            fix="write what the image's entrypoint or the runtime starts into command, or write"
            " {secret: hf-token, key: token}",
        )


def secret_warnings(path: str, job: JobConfig) -> Iterator[InputWarning]:
    """Secrets of Kubernetes, which somebody must make: nothing of a stack holds their values."""
    for variable, at in job.kubernetes_secrets.items():
        yield At(f"{path}.secrets.{variable}.secret").warning(
            f"Secret {at.secret} with key {at.key} must be in the job's namespace before `pulumi up`: otherwise its"
            " containers wait in CreateContainerConfigError on nodes that cost; make it with"
            f" {creation(at.secret, [at.key])}; {FIRST_DAY}"
        )
    yield from _pull_secrets(path, job)


def _pull_secrets(path: str, job: JobConfig) -> Iterator[InputWarning]:
    """Secrets for a registry. kubelet pulls without one that is missing (Kubernetes 1.35,
    pkg/kubelet/kubelet_pods.go: getPullSecretsForPod), and from ECR with the node's role."""
    registry = parts(job.image).registry
    if ecr_region(registry):
        return
    server = HUB_SERVER if registry == HUB else registry
    for number, secret in enumerate(job.pull_secrets):
        yield At(f"{path}.pull_secrets.{number}").warning(
            f"Secret {secret} must be in the job's namespace before `pulumi up`: otherwise a private image fails"
            " with ImagePullBackOff on nodes that cost; make it with"
            f" {pull_creation(secret, server)}; {FIRST_DAY}"
        )


def _expanded(path: str, job: JobConfig, variable: str) -> Iterator[InputError]:
    """$(HF_TOKEN), which Kubernetes puts in place before the container starts."""
    words = {
        "script": [job.script or ""],
        "command": job.command,
        "torchrun.arguments": job.torchrun.arguments if job.torchrun else (),
        "env": job.env.values(),
    }
    for setting, texts in words.items():
        if any(f"$({variable})" in text for text in texts):
            yield At(f"{path}.{setting}").must(
                f"not contain $({variable}): Kubernetes does not see what is in Secrets Manager",
                got=f"$({variable})",
                fix=f"write a script, and ${variable} in it",
            )


def _elsewhere(path: str, secret: str, region: str) -> Iterator[InputError]:
    """The ARN of a secret of another region."""
    found = SECRET_ARN.fullmatch(secret)
    if found and found["region"] != region:
        is_near = partition(found["region"]) == partition(region)
        have = "replicate the secret to" if is_near else "create the secret in"
        yield At(path).must(
            f"be a secret in {region}, the region of the stack",
            got=secret,
            fix=f"{have} {region}, and write {found['name']}",
            write=found["name"],
        )


def entry_secret_errors(wanted: EnvironmentConfig, region: str) -> Iterator[InputError]:
    """Errors about secrets that the entries of teams cannot grant."""
    for name, entry in wanted.teams.items():
        for secret in entry.secrets:
            yield from _elsewhere(f"environment.teams.{name}.secrets", secret, region)
        only_secrets = entry.secrets and not (entry.s3_reads or entry.s3_writes)
        for key in entry.kms_key_arns if only_secrets else ():
            if region_of(key) != region:
                yield At(f"environment.teams.{name}.kms_key_arns").must(
                    f"be keys of {region}, the region of the stack: Secrets Manager encrypts a secret with a"
                    " key of its own region",
                    got=key,
                    fix=f"write the key of the secret: aws kms list-keys --region {region}",
                )


def account_errors(wanted: EnvironmentConfig, access: AccessPlan) -> Iterator[InputError]:
    """ARNs of another account than the stack's, as far as the stack file tells which one that is."""
    ours = access.accounts
    places = {
        f"environment.jobs.{name}.secrets.{variable}.secrets_manager": [secret.secrets_manager]
        for name, job in typed(wanted.jobs).items()
        for variable, secret in job.managed_secrets.items()
    }
    places |= {
        f"environment.teams.{name}.secrets": [*entry.secrets]
        for name, entry in wanted.teams.items()
    }
    for path, secrets in places.items():
        for secret in secrets:
            found = SECRET_ARN.fullmatch(secret)
            if found and ours and found["account"] not in ours:
                yield At(path).must(
                    f"be a secret of the account of the stack, {', '.join(sorted(ours))}",
                    got=secret,
                    fix=f"copy the secret to that account, and write {found['name']}",
                    write=found["name"],
                )


def team_secret_errors(share: Share, team: TeamConfig) -> Iterator[InputError]:
    """Secrets that the jobs of a team name and its pods cannot read."""
    for name, job in typed(team.jobs).items():
        for variable, secret in job.managed_secrets.items():
            at = f"team.jobs.{name}.secrets.{variable}"
            if share.entry is None:
                yield _for_listed_teams(at, secret.secrets_manager, team)
                continue
            if not any(covers(each, secret.secrets_manager) for each in share.entry.secrets):
                yield At(f"{at}.secrets_manager").must(
                    "be a secret that the environment's entry of the team lists",
                    got=secret.secrets_manager,
                    fix=write_one_of(
                        share.entry.secrets,
                        f"add {secret.secrets_manager} to environment.teams.{team.name}.secrets",
                    ),
                )
            if secret.kms_key_arn:
                yield At(f"{at}.kms_key_arn").not_set(
                    "by a team that the environment lists:"
                    f" environment.teams.{team.name}.kms_key_arns has it",
                    got=secret.kms_key_arn,
                )


def _for_listed_teams(path: str, secret: str, team: TeamConfig) -> InputError:
    return At(f"{path}.secrets_manager").must(
        "not be set by a team that the environment does not list: its pods have no identity in AWS",
        got=secret,
        fix=f"list the team under environment.teams in Pulumi.{team.environment}.yaml, or write"
        " {secret: hf-token, key: token}",
    )
