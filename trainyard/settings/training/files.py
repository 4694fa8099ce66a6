"""Settings of files that a job finds in its container: those of the checkout, and folders of the node."""

from dataclasses import dataclass
from typing import Annotated

import pydantic


@dataclass(frozen=True, kw_only=True)
class FilesConfig:
    """Scripts of this checkout, mounted into the container from a ConfigMap. They can have at most
    1 MiB together."""

    sources: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    """Paths from the folder of Pulumi.yaml. Each file appears under its own name, without its
    folders."""
    path: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")] = "/workspace"
    """Folder in the container."""


@dataclass(frozen=True, kw_only=True)
class HostPathConfig:
    """A folder of the node, mounted read-only. The job's namespace then admits pods that Pod
    Security's baseline level refuses."""

    host: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")]
    """Absolute path on the node."""
    path: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")]
    """Absolute path in the container."""
