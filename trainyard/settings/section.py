"""Types that many settings have: a section, which need not be there and cannot be empty; names; secrets."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, get_args

import pydantic
from pydantic_core import CoreSchema

from trainyard.objects.iam.secrets import ManagedSecret
from trainyard.objects.jobs.pod_template import SecretKey

T = TypeVar("T")


class _NeverEmpty:
    """Refuses null, which would otherwise mean the same as no section: whoever writes `history:` with
    nothing behind it wants the history, with the defaults of its settings."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable"
        return schema["schema"]


Section = Annotated[T | None, _NeverEmpty()]
"""`Section[X] = None`: an X, or no such section in the file."""

LONGEST_NAME = 32
Name = Annotated[
    str, pydantic.Field(pattern=rf"^[a-z]([-a-z0-9]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?$")
]
"""Lower-case letters, digits and dashes, at most LONGEST_NAME: it becomes part of Kubernetes and AWS names."""
Reference = Annotated[
    str,
    pydantic.Field(min_length=1),
    pydantic.WithJsonSchema({"type": "string", "pattern": get_args(Name)[1].metadata[0].pattern}),
]
"""The name of something else in the environment. Any text is read, so that the rule which lists the
names that there are can refuse it; an editor marks what cannot be one of them."""


def _whose_secret(value: object) -> str:
    """Where a secret lies, from its class or from the setting that only a managed one has."""
    listed = isinstance(value, dict) and {"secrets_manager", "kms_key_arn"} & {*value}
    return "managed" if isinstance(value, ManagedSecret) or listed else "kubernetes"


AnySecret = Annotated[
    Annotated[SecretKey, pydantic.Tag("kubernetes")]
    | Annotated[ManagedSecret, pydantic.Tag("managed")],
    pydantic.Discriminator(_whose_secret),
]
"""A value that only the pods see."""
S3Prefix = Annotated[
    str, pydantic.Field(pattern=r"^s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9]/([-!_.'()/A-Za-z0-9]+/)?$")
]
"""A bucket or a part of it, up to a slash: without the slash `teams/vision` would admit
`teams/vision2` too. Of the characters of keys those that S3 calls safe, without the wildcards of
policies (S3 user guide, object-keys)."""
