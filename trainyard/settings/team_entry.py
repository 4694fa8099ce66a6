"""Settings of a team: an entry of `environment.teams`. Their plan: trainyard/derive/teams.py. The
team's own stack file: TeamConfig in environment.py."""

from dataclasses import dataclass, field
from typing import Annotated

import pydantic

from trainyard.objects.iam.secrets import KeyArn, SecretPrefix
from trainyard.objects.queues.queues import Urgency
from trainyard.settings.aws import RoleArn
from trainyard.settings.job import Name, Positive
from trainyard.settings.section import S3Prefix

ImagePrefix = Annotated[str, pydantic.Field(pattern=r"^[a-z0-9][-._:/a-z0-9]*/$")]
"""The beginning of image names, up to a slash: without the slash `registry/vision` would admit
`registry/vision2` too."""


@dataclass(frozen=True, kw_only=True)
class TeamEntryConfig:
    """A team whose namespace, stores, limits and access belong to the environment. The team's own
    stack contains its jobs only: see docs/teams.md."""

    deployer: RoleArn
    """Role that runs `pulumi up` of the team's stack. It can create the team's jobs and runtimes
    and nothing outside of the team's namespace. The team's stack assumes it."""
    members: tuple[RoleArn, ...] = ()
    """Roles of people who start, watch and delete jobs of the team with kubectl or the SDK."""
    viewers: tuple[RoleArn, ...] = ()
    """Roles of people who read the team's jobs, pods and logs."""
    namespace: Name | None = None
    """Kubernetes namespace of the team. By default it is `team-<name>`."""
    max_gpus: Positive | None = None
    """Maximum number of GPUs that the team's pods can request together (a ResourceQuota). By
    default there is no limit."""
    max_jobs: Positive = 100
    """Maximum number of TrainJobs that exist in the namespace, finished ones included; the same
    number of PyTorchJobs."""
    max_pods: Positive = 500
    """Maximum number of pods of the team that have not ended."""
    guaranteed_nodes: dict[Name, Positive] = field(default_factory=dict)
    """Name of a pool → number of its nodes that the team gets whenever it wants them. Other teams use
    them while they are idle. Only with `environment.queues`."""
    max_nodes: dict[Name, Positive] = field(default_factory=dict)
    """Name of a pool → maximum number of its nodes that jobs of the team have at once. By default all
    that are free. Only with `environment.queues`."""
    lends_nodes: Annotated[bool, pydantic.Field(strict=True)] = True
    """`true`: other teams use the team's guaranteed nodes while they are idle. Only with
    `environment.queues`."""
    max_urgency: Urgency = "high"
    """The highest `urgency` that the team's jobs can have. Only with `environment.queues`."""
    stores: tuple[Name, ...] | None = None
    """Names from `environment.storage` that the team can mount. By default all of them."""
    schedules: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: jobs of the team can have a `schedule`. The environment then makes a service account in the
    namespace, which makes the runs and can do no more than a member, and the deployer can create CronJobs
    whose pods run as this account."""
    allowed_priorities: tuple[Name, ...] = ()
    """Names from `environment.priorities` that the team's jobs can use. By default none."""
    image_prefixes: tuple[ImagePrefix, ...] = ()
    """Beginnings of the image names that the team's pods can use, each with a slash at its end:
    123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/vision/. By default every image. Nodes pull
    images with the role of the node, so only this setting keeps a team from the images of another
    team."""
    s3_reads: tuple[S3Prefix, ...] = ()
    """Parts of S3 buckets whose objects the team's pods can list and read, each with a slash at its
    end: s3://data-sets/imagenet/. With this setting or `s3_writes` the pods get an IAM role of their
    own (EKS Pod Identity), which can do this and nothing else. By default they have no AWS
    identity."""
    s3_writes: tuple[S3Prefix, ...] = ()
    """Parts of S3 buckets whose objects the team's pods can also create, overwrite and delete, such
    as s3://results/vision/. They cannot overlap with those of another team."""
    kms_key_arns: tuple[KeyArn, ...] = ()
    """ARNs of the KMS keys of objects in `s3_reads` and `s3_writes`, and of `secrets`, where AWS
    encrypts them with such a key."""
    secrets: tuple[SecretPrefix, ...] = ()
    """Secrets of AWS Secrets Manager that the team's pods can read: names, ARNs, and beginnings of
    names, each with a slash at its end: vision/. With this setting the pods get an IAM role of their
    own, as with `s3_reads`. By default they can read none."""

    tags: dict[str, str] = field(default_factory=dict)
    """Tags for what the environment creates in AWS for this team, such as a cost center. They count
    before `environment.tags`. This program adds `trainyard:team`. The team's nodes are not among it:
    all teams share them."""

    def namespace_of(self, name: str) -> str:
        """The team's namespace. `name`: of the entry."""
        return self.namespace or f"team-{name}"
