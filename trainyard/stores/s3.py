"""S3: the kind of store for data sets that jobs read, in every zone, mounted with Mountpoint for
Amazon S3.

Mountpoint reads objects as files and writes new ones from beginning to end. It cannot rename, change
or append to a file (doc/SEMANTICS.md of Mountpoint; read 2026-11-22). So the store takes no
checkpoints and no logs. Driver and options: docs/CONFIGURATION.md and charts of
github.com/awslabs/mountpoint-s3-csi-driver, 2.7.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from trainyard.catalog.aws.questions import BUCKET_QUESTIONS
from trainyard.catalog.aws.storage import Driver
from trainyard.existing.bucket_faults import NO_WAY, BucketUse
from trainyard.objects.iam.encryption import KEY_ARN, region_of
from trainyard.objects.iam.policies import Document
from trainyard.objects.iam.s3 import BUCKET, S3Plan, key_statement, of_no_bucket
from trainyard.plans.identity import Identity
from trainyard.plans.unchangeable import Output
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.stores import S3Config
from trainyard.stores.acts import AT_S3
from trainyard.stores.figures import StoreRow, UsageCost
from trainyard.stores.kind import Shown, StoreKind, Surroundings

KEY = re.compile(KEY_ARN)
PREFIX = re.compile(r"[\w!.*'()-][\w!.*'()/-]*/")
"""S3 user guide, object-keys: characters that are safe in a key."""
OWN_NAME = 50
"""Characters of an own bucket's name, at most: S3 takes 63, and the account's id has 12."""
ABORT_UPLOADS_DAYS = 7
"""A choice of ours: longer than any upload takes, and short enough that nobody pays for remains."""
OLD_VERSIONS_DAYS = 30
"""A choice of ours: long enough to see that something is missing."""
CAPACITY = "1024Gi"
"""S3 grows by itself and ignores the figure, but a PersistentVolume must state one."""
MOUNT_GIB = 16
"""Memory that one Mountpoint was seen to take: 13.5 GiB and more than 15 GB (mountpoint-s3#1006, #1556). Its pod
has no request: the driver makes it after the job's pod, so a request that no longer fits would leave both Pending,
and the volume of an existing stack cannot get one in place."""
ALL_USERS = "allow-other"
"""Containers that do not run as root read files, too."""
OPEN = ("dir-mode=0777", "file-mode=0666")
"""Every user writes files. Mountpoint runs as user 1000, and the kernel checks its modes, by default 0755 and 0644
(mountpoint-s3-csi-driver 2.7.0, pkg/cluster/cluster.go and pkg/mountpoint/mounter/mount_linux.go; doc/CONFIGURATION.md
of Mountpoint). The options of a volume change in place (Kubernetes, ValidatePersistentVolumeUpdate)."""

ENCRYPTION = (
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
)
BUCKET_TYPES = (
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    ENCRYPTION,
)
"""Resource types of a bucket that the stack creates."""
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"


class S3(StoreKind[S3Config, S3Plan]):
    """One bucket."""

    name = "s3"
    plans = S3Plan
    example = {}
    weak_at = AT_S3
    holds_data = BUCKET_TYPES[0]
    compared = (ENCRYPTION,)
    driver = Driver(
        name="s3.csi.aws.com",
        add_on="aws-mountpoint-s3-csi-driver",
        attributes=("bucketName",),
        service_account="s3-csi-driver-sa",
        # The driver must run on GPU nodes, which have a taint.
        configuration=json.dumps({"node": {"tolerateAllTaints": True}}),
    )
    mounted_by_pods = True
    mount_gib = MOUNT_GIB

    def plan(
        self, me: Identity, name: str, settings: S3Config, *, keep: bool, zones: tuple[str, ...]
    ) -> S3Plan:
        return S3Plan(
            identity=me,
            kind=self.name,
            keep=keep,
            path=f"environment.storage.{name}.{self.name}.bucket",
            existing=settings.bucket,
            name=me.short_name(name, OWN_NAME),
            writable=settings.writable,
            kms_key_arn=settings.kms_key_arn or (None if settings.bucket else me.kms_key_arn),
            abort_uploads_days=ABORT_UPLOADS_DAYS,
            delete_after_days=tuple(sorted(settings.delete_after_days.items())),
            versioning=settings.versioning,
            old_versions_days=settings.old_versions_days or OLD_VERSIONS_DAYS,
        )

    def made_from(self, settings: S3Config, zone: str) -> list[str]:
        return ["s3", settings.bucket or "", str(settings.writable)]

    def capacity(self, settings: S3Config) -> str:
        return CAPACITY

    def access_mode(self, settings: S3Config) -> str:
        return "ReadWriteMany" if settings.writable else "ReadOnlyMany"

    def mount_options(self, settings: S3Config) -> tuple[str, ...]:
        return (ALL_USERS, *OPEN) if settings.writable else self.read_only_options(settings)

    def read_only_options(self, settings: S3Config) -> tuple[str, ...]:
        return (ALL_USERS, "read-only")

    def directory_options(self, settings: S3Config, path: str) -> tuple[str, ...]:
        return (*self.mount_options(settings), f"prefix {path}/")

    def checkpoint_store(self, settings: S3Config, region: str) -> None:
        return None

    def errors(self, path: str, settings: S3Config, around: Surroundings) -> Iterator[InputError]:
        if settings.bucket is not None and not BUCKET.fullmatch(settings.bucket):
            name, _, folder = settings.bucket.removeprefix("s3://").partition("/")
            plain, below = name.lower(), folder.strip("/")
            found = f"; jobs find {below}/ below the path of the store" if below else ""
            yield At(f"{path}.bucket").must(
                "be the name of a bucket alone: 3 to 63 of a-z, 0-9, - and .",
                got=settings.bucket or "nothing",
                fix=f"write {plain}{found}"
                if BUCKET.fullmatch(plain)
                else "write a name such as my-data",
                write=plain if BUCKET.fullmatch(plain) else "my-data",
            )
        elif settings.bucket is not None and (owned := of_no_bucket(settings.bucket)):
            yield At(f"{path}.bucket").must(
                f"be the name of a general purpose bucket, which never {owned}",
                got=settings.bucket,
                fix="name another bucket, or delete bucket, and the stack makes one",
            )
        yield from _key_errors(path, settings, around.region)
        yield from _aging_errors(path, settings)

    def errors_together(
        self, names: Sequence[str], wanted: EnvironmentConfig, zones: tuple[str, ...]
    ) -> Iterator[InputError]:
        """Existing buckets that would be deleted, or that a pod cannot mount beside each other."""
        first: dict[str, str] = {}
        for name in names:
            store = wanted.storage[name]
            bucket = store.s3.bucket if store.s3 else None
            if bucket is None:
                continue
            if store.data == "delete":
                yield At(f"environment.storage.{name}.data").must(
                    "be keep with bucket: this program deletes no bucket that it did not create",
                    got="delete",
                    fix="write keep, or delete bucket, and the stack creates one",
                    write="keep",
                )
            if (other := first.setdefault(bucket, name)) != name:
                yield At(f"environment.storage.{name}.s3.bucket").must(
                    f"be another bucket than that of {other}: a pod mounts a bucket once",
                    got=bucket,
                    fix=f"delete {name}, and mount {other} in its place",
                )

    def write_errors(self, path: str, name: str) -> Iterator[InputError]:
        yield At(path).must(
            "be a store whose files can be renamed and appended to, which Mountpoint for Amazon"
            " S3 cannot",
            got=name,
            fix="write the name of a Lustre or EFS store; lustre.repositories with auto_export"
            " copies what is written there to a bucket",
        )

    def resource_types(self, plan: S3Plan) -> tuple[str, ...]:
        if plan.existing:
            return ()
        return (*BUCKET_TYPES, *([VERSIONING] if plan.versioning else []))

    def update_warnings(
        self, path: str, name: str, plan: S3Plan, was: Output
    ) -> Iterator[InputWarning]:
        """Another key of a bucket, or none (S3 user guide, UsingKMSEncryption: the default is that of new objects, and
        whoever reads one needs kms:Decrypt on its own key). Jobs get the right to use one key."""
        before, key = _had_key(name, was), plan.kms_key_arn
        if plan.existing or not before or before == key:
            return
        bucket = was(self.holds_data, name, "bucket")
        sse = f"aws:kms --sse-kms-key-id {key}" if key else "AES256"
        yield At(f"{path}.kms_key_arn").warning(
            f"objects that are in {bucket} keep their key, {before}, which jobs cannot use after this update: they read"
            " none of them. Write that key again, unless the bucket is empty; otherwise copy the objects after"
            f" `pulumi up`, as somebody who may use both keys: aws s3 cp s3://{bucket}/ s3://{bucket}/ --recursive"
            f" --sse {sse}"
        )

    def shown(self, me: Identity, name: str, settings: S3Config) -> tuple[Shown, ...]:
        own = rf"{re.escape(me.short_name(name, OWN_NAME))}-\d+"
        bucket = re.escape(settings.bucket) if settings.bucket else own
        return (Shown(bucket=bucket, prefix="", path=""),)

    def own_buckets(self, plan: S3Plan) -> tuple[str, ...]:
        return () if plan.existing else (f"{plan.name}-*",)

    def bucket_uses(
        self, path: str, settings: S3Config, region: str, *, isolated: bool
    ) -> Iterator[BucketUse]:
        if settings.bucket:
            yield BucketUse(
                bucket=settings.bucket,
                path=f"{path}.bucket",
                region=region,
                only_here=NO_WAY if isolated else "",
                keys_path=f"{path}.kms_key_arn",
                keys=tuple(filter(None, [settings.kms_key_arn])),
                written=settings.writable,
            )

    def key_use(self, plan: S3Plan) -> Document | None:
        key = plan.kms_key_arn
        return key_statement(key, writable=plan.writable) if key else None

    def questions(self, plan: S3Plan) -> tuple[str, ...]:
        return BUCKET_QUESTIONS if plan.existing else ()

    def row(self, plan: S3Plan) -> StoreRow:
        return StoreRow(
            kind=f"S3, {'new files' if plan.writable else 'read only'}",
            size="grows",
            speed="by node",
        )

    def notes(self, name: str, plan: S3Plan) -> Iterator[str]:
        yield f"{name} shows the bucket {plan.existing or f'{plan.name}-<account>, which is created'}"

    def usage_costs(self, name: str, plan: S3Plan) -> Iterator[UsageCost]:
        yield UsageCost(what=f"S3 {name}", service="s3", sku="standard")
        if plan.writable:
            yield UsageCost(what=f"S3 {name}, requests that write", service="s3", sku="put")


def _had_key(name: str, was: Output) -> str | None:
    """The KMS key of a deployed bucket; None where it has none."""
    [rule, *_] = was(ENCRYPTION, name, "rules") or [{}]
    return (rule.get("applyServerSideEncryptionByDefault") or {}).get("kmsMasterKeyId") or None


def _key_errors(path: str, settings: S3Config, region: str) -> Iterator[InputError]:
    """Keys that no bucket can have, or not the one that the stack makes: S3 takes a key of the bucket's
    region only (S3 API, PutBucketEncryption). Only S3 knows the region of an existing bucket."""
    key = settings.kms_key_arn
    if key is None:
        return
    if not KEY.fullmatch(key):
        yield At(f"{path}.kms_key_arn").must(
            "be the ARN of a KMS key, and not its alias: a policy of IAM permits keys by their ARN only",
            got=key or "nothing",
            fix=f"write the ARN that this prints: aws kms describe-key --region {region} --query KeyMetadata.Arn"
            f" --key-id {key if key.startswith('alias/') else 'alias/<name>'}",
        )
    elif settings.bucket is None and region_of(key) != region:
        yield At(f"{path}.kms_key_arn").must(
            f"be a key of {region}, where the stack makes the bucket",
            got=key,
            fix=f"write a key of {region}: aws kms list-keys --region {region}",
        )


def _aging_errors(path: str, settings: S3Config) -> Iterator[InputError]:
    """Ages of objects in a bucket that is not the stack's, or of versions that there are not."""
    for prefix in settings.delete_after_days:
        if not PREFIX.fullmatch(prefix):
            sound = re.sub(r"[^\w!.*'()/-]+", "-", prefix).strip("/") or "tmp"
            yield At(f"{path}.delete_after_days.{prefix}").must(
                "be the beginning of keys, which ends with a slash and begins without one, such as checkpoints/",
                got=prefix or "nothing",
                fix=f"rename it to {sound}/",
            )
    if settings.bucket is not None:
        for key in ("delete_after_days", "versioning", "old_versions_days"):
            if given := getattr(settings, key):
                yield At(f"{path}.{key}").not_set(
                    "with bucket: this program changes no bucket that it did not create",
                    got=as_yaml(given),
                    instead="delete bucket, and the stack creates one",
                )
    elif settings.old_versions_days and not settings.versioning:
        yield At(f"{path}.old_versions_days").not_set(
            "without versioning, which keeps old versions",
            got=settings.old_versions_days,
            instead="write versioning: true",
        )
