"""Settings of data and weights that are loaded into a store before a job starts: their types and units.

What follows from them: trainyard/derive/loads.py. What is refused: trainyard/rules/loads.py.
"""

from dataclasses import dataclass
from typing import Annotated

import pydantic

from trainyard.objects.iam.secrets import KeyArn
from trainyard.settings.section import AnySecret, Reference, S3Prefix, Section

Directory = Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
"""Path from the root of a store."""
HUGGING_FACE = "https://huggingface.co"
WAIT_HOURS = 24


@dataclass(frozen=True, kw_only=True)
class HuggingFaceConfig:
    """A repository of Hugging Face: a model below `weights`, a data set below `data`."""

    repository: str
    """Name of the repository, with that of its owner, such as Qwen/Qwen3-8B."""
    revision: str
    """Commit of the repository: 40 hexadecimal digits. A branch or a tag can change."""
    token: Section[AnySecret] = None
    """Token of Hugging Face, for a repository that is private or has a licence to accept."""
    endpoint: str = HUGGING_FACE
    """Address of a server with the API of the Hugging Face Hub."""


@dataclass(frozen=True, kw_only=True)
class S3SourceConfig:
    """A prefix of an S3 bucket. The role of the environment's jobs is allowed to read it."""

    address: S3Prefix
    """Address of the prefix: s3://bucket/ or s3://bucket/prefix/."""
    region: str | None = None
    """Region of the bucket. By default that of the stack. A bucket of another region is refused."""
    kms_key_arn: KeyArn | None = None
    """ARN of the KMS key of the objects, if it is not S3's own."""


@dataclass(frozen=True, kw_only=True)
class StoreSourceConfig:
    """A directory of another store."""

    store: Reference
    """Name of a store in `environment.storage`."""
    directory: Directory
    """Path from the root of the store."""


@dataclass(frozen=True, kw_only=True)
class LoadCheckConfig:
    """Figures that the loaded directory must have. What is not set is compared with what the source lists:
    its files and their sizes and, of Hugging Face, the checksum of each file."""

    files: Annotated[int, pydantic.Field(ge=1, strict=True)] | None = None
    """Number of files."""
    bytes: Annotated[int, pydantic.Field(ge=0, strict=True)] | None = None
    """Size of all files together, in bytes. The plan computes minutes and cost from it."""
    sha256: str | None = None
    """SHA-256 of the lines that `sha256sum` prints of the files, sorted by path: 64 hexadecimal digits. The
    load prints it."""


@dataclass(frozen=True, kw_only=True)
class LoadConfig:
    """Data or weights, loaded once into a directory of a store by a pod without GPUs. Set exactly one of
    `from_huggingface`, `from_s3` and `from_store`."""

    from_huggingface: Section[HuggingFaceConfig] = None
    from_s3: Section[S3SourceConfig] = None
    from_store: Section[StoreSourceConfig] = None
    only: tuple[str, ...] = ()
    """Patterns of the paths that are loaded, such as *.safetensors. `*` stands for any text, with
    slashes. By default every file is loaded."""
    store: Reference
    """Name of a store in `environment.storage`. The job must mount it in `storage`."""
    directory: Directory
    """Path from the root of the store: of a directory that is empty or does not exist. The job finds the
    files below the path at which it mounts the store."""
    pool: Reference | None = None
    """Name of a pool without GPUs in `environment.pools`. By default the only such pool."""
    check: Section[LoadCheckConfig] = None
    wait_hours: Annotated[float, pydantic.Field(gt=0)] = WAIT_HOURS
    """Hours that `pulumi up` waits for the load at most. The load goes on after that, and the next
    `pulumi up` waits for it again."""
