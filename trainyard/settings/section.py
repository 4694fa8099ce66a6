"""Types that several settings share: a section, which need not be there and cannot be empty, and a secret."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

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
