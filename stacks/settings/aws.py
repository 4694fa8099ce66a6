"""Which account a stack works in, and as whom: the `aws:` settings of a stack file.

They are named as Pulumi's AWS provider names them, because people know and copy them. A key that is
not here is refused: Pulumi hands stack settings to its default provider only, and this program
makes its own, so such a key would be accepted and ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pydantic

Text = Annotated[str, pydantic.Field(min_length=1)]
RoleArn = Annotated[str, pydantic.Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/.+$")]
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
    sessionName: Text | None = None
    """Shown in CloudTrail."""
    externalId: Text | None = None
    """For a role whose trust policy asks for it; not of the last role, which `aws eks get-token`
    assumes too and cannot give one."""
    duration: Annotated[str, pydantic.Field(pattern=r"^\d+[hms](\d+[ms])?(\d+s)?$")] | None = None
    """Of a session of the AWS provider, between 15m and 12h: 1h30m."""


@dataclass(frozen=True, kw_only=True)
class DefaultTagsConfig:
    """Tags that a company puts on everything."""

    tags: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class AwsConfig:
    """Who speaks to AWS, and in which account; unset, AWS_PROFILE and the other variables of the
    AWS CLI decide."""

    profile: Text | None = None
    """Of ~/.aws/config. Everybody who uses the stack or its kubeconfig needs one of that name."""
    assumeRole: AssumeRoleConfig | None = None
    """`assumeRoles` with one role."""
    assumeRoles: tuple[AssumeRoleConfig, ...] = ()
    """Roles to assume, one from the other; the last one makes the cluster and enters it."""
    allowedAccountIds: tuple[AccountId, ...] = ()
    """In any other account nothing is made. Quoted: "123456789012"."""
    forbiddenAccountIds: tuple[AccountId, ...] = ()
    """In these accounts nothing is made."""
    defaultTags: DefaultTagsConfig | None = None
    """On everything in AWS; where `environment.tags` or this program sets the same key, theirs
    count."""

    @property
    def roles(self) -> tuple[AssumeRoleConfig, ...]:
        return (self.assumeRole,) if self.assumeRole else self.assumeRoles
