"""Account and identity of a stack: the `aws:` settings of a stack file.

They are named as Pulumi's AWS provider names them, because people know and copy them. A key that is
not here is refused: Pulumi hands stack settings to its default provider only, and this program
makes its own, so such a key would be accepted and ignored.
"""

import re
from dataclasses import dataclass
from typing import Annotated

import pydantic

from trainyard.settings.section import Section


def arn_of(role: str) -> str:
    """The command that prints the ARN of a role, with its path."""
    return f"aws iam get-role --role-name {role} --query Role.Arn --output text"


Text = Annotated[str, pydantic.Field(min_length=1)]
RoleArn = Annotated[
    str, pydantic.Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/(.+/)?[A-Za-z0-9_+=,.@-]{1,64}$")
]
PolicyArn = Annotated[str, pydantic.Field(pattern=r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/.+$")]
AccountId = Annotated[str, pydantic.Field(pattern=r"^\d{12}$")]

KEYS = ("accessKey", "secretKey", "token")
"""Keys that hold a secret; no message may show their value."""
WITH_KEYS = (
    "delete it and use aws:profile, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and"
    " AWS_SESSION_TOKEN in the environment: a stack file is committed, and the state must not hold keys"
)
REPLACEMENTS = {
    **dict.fromkeys(KEYS, WITH_KEYS),
    "endpoints": (
        "delete it and use AWS_ENDPOINT_URL, or AWS_ENDPOINT_URL_<SERVICE>, in the environment"
    ),
    "assumeRoleWithWebIdentity": (
        "delete it and use AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE in the environment, or a"
        " profile with role_arn and web_identity_token_file"
    ),
    "sharedConfigFiles": "delete it and use AWS_CONFIG_FILE in the environment",
    "sharedCredentialsFiles": "delete it and use AWS_SHARED_CREDENTIALS_FILE in the environment",
    "httpProxy": "delete it and use HTTP_PROXY in the environment",
    "httpsProxy": "delete it and use HTTPS_PROXY in the environment",
    "noProxy": "delete it and use NO_PROXY in the environment",
    "customCaBundle": "delete it and use AWS_CA_BUNDLE in the environment",
    "maxRetries": "delete it and use AWS_MAX_ATTEMPTS in the environment",
    "retryMode": "delete it and use AWS_RETRY_MODE in the environment",
    "useFipsEndpoint": "delete it and use AWS_USE_FIPS_ENDPOINT in the environment",
    "useDualstackEndpoint": "delete it and use AWS_USE_DUALSTACK_ENDPOINT in the environment",
    "ec2MetadataServiceEndpoint": (
        "delete it and use AWS_EC2_METADATA_SERVICE_ENDPOINT in the environment"
    ),
    "skipMetadataApiCheck": "delete it and use AWS_EC2_METADATA_DISABLED in the environment",
}
"""Setting of Pulumi's AWS provider that a stack file cannot have → what to do instead."""


@dataclass(frozen=True, kw_only=True)
class AssumeRoleConfig:
    """A role to assume."""

    roleArn: RoleArn
    """ARN of the IAM role."""
    sessionName: Text | None = None
    """Name of the session in CloudTrail."""
    externalId: Text | None = None
    """External ID, where the role's trust policy requires one. The last role cannot have one: `aws
    eks get-token` assumes that role too and cannot pass an external ID."""
    duration: Annotated[str, pydantic.Field(pattern=r"^\d+[hms](\d+[ms])?(\d+s)?$")] | None = None
    """Length of a session of the AWS provider, from 15m to 12h: 1h30m. By default it is one hour. STS refuses
    more than the role's MaxSessionDuration, and more than an hour where the caller is a role itself."""


@dataclass(frozen=True, kw_only=True)
class DefaultTagsConfig:
    """Tags for every AWS resource."""

    tags: dict[str, str]
    """Key → value."""


@dataclass(frozen=True, kw_only=True)
class AwsConfig:
    """Identity that calls AWS, and the account that it calls. By default AWS_PROFILE and the other
    variables of the AWS CLI decide."""

    profile: Text | None = None
    """Name of a profile in ~/.aws/config. Everybody who uses the stack or its kubeconfig needs a
    profile of that name."""
    assumeRole: Section[AssumeRoleConfig] = None
    """Short for `assumeRoles` with one role."""
    assumeRoles: tuple[AssumeRoleConfig, ...] = ()
    """Roles to assume, each with the credentials of the one before. The last role creates the
    cluster and is its admin."""
    allowedAccountIds: tuple[AccountId, ...] = ()
    """Account IDs, in quotes: "123456789012". Every other account is refused before anything is
    created."""
    forbiddenAccountIds: tuple[AccountId, ...] = ()
    """Account IDs that are refused before anything is created."""
    defaultTags: Section[DefaultTagsConfig] = None
    """Tags for every AWS resource. `environment.tags` and the tags that this program sets override
    tags with the same key."""

    @property
    def roles(self) -> tuple[AssumeRoleConfig, ...]:
        return (self.assumeRole,) if self.assumeRole else self.assumeRoles


def key_of_alias(text: str) -> str:
    """A fix that says how to find the ARN of the key of an alias; empty for what is no alias."""
    alias = re.fullmatch(r"(?:arn:.*:)?(alias/[\w/-]+)", text)
    asked = f"aws kms describe-key --key-id {alias[1]}" if alias else ""
    return (
        f"write the ARN that `{asked} --query KeyMetadata.Arn --output text` prints in aws:region"
        if alias
        else ""
    )
