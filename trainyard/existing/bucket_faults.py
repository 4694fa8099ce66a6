"""Requirements for an existing S3 bucket, and warnings about one.

The component of an S3 store asks in every preview, `trainyard check --live` before it; both judge by this
file. Sources: S3 API, HeadBucket (404, 403 and 301); FSx for Lustre user guide, overview-dra-data-repo,
"Region and account support for linked S3 buckets"; Mountpoint for Amazon S3, doc/CONFIGURATION.md
(it finds a bucket in another region by itself); S3 user guide, UsingKMSEncryption (the key aws/s3
needs no permission of its own).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainyard.problems import At, InputError

ANOTHER = "another region"
"""Where a bucket is of which S3 says only that it is not in this region."""
ALIAS = ":alias/"
NO_WAY = "nodes without the internet reach S3 in no other region"


@dataclass(frozen=True, kw_only=True)
class BucketFound:
    """A bucket as S3 describes it to the caller."""

    region: str = ""
    """Empty where nobody tells."""
    seen: bool = True
    """The caller may list it; else S3 answers 403."""
    key: str | None = None
    """The customer's KMS key that encrypts what names no other key, as its setting says it: an ARN, an
    id or an alias. None: S3's own key, or nobody tells."""
    public: bool = False
    """Its policy lets everybody in."""


REFUSED = {301: BucketFound(region=ANOTHER), 403: BucketFound(seen=False)}
"""What a status of S3 says."""


@dataclass(frozen=True, kw_only=True)
class BucketUse:
    """What of a stack file needs a bucket."""

    bucket: str
    path: str
    """The setting that names it."""
    region: str
    """The region of the stack."""
    only_here: str = ""
    """Why it must be in the stack's region; empty where it can be elsewhere."""
    keys_path: str = ""
    """The setting that names keys; empty where none can be named."""
    keys: tuple[str, ...] = ()
    """ARNs that it names."""
    written: bool = False
    """Whether pods write to it, with its default key."""


def found_by_status(error: str) -> BucketFound | None:
    """A bucket that the AWS provider's look-up refused, by the words of its error; None where there is
    none. ValueError for another refusal (terraform-provider-aws, internal/service/s3/bucket.go,
    findBucket)."""
    if "couldn't find resource" in error:
        return None
    for status, found in REFUSED.items():
        if f"StatusCode: {status}" in error:
            return found
    raise ValueError(error)


def bucket_faults(use: BucketUse, found: BucketFound | None) -> Iterator[InputError]:
    """Everything that cannot work. `found`: None where there is no such bucket."""
    if found is None:
        yield At(use.path).must(
            "name a bucket that exists",
            got=f"{use.bucket}, which S3 does not know",
            fix=f"write a name that `aws s3 ls` prints, or run `aws s3 mb s3://{use.bucket} --region"
            f" {use.region}`",
        )
        return
    if use.only_here and _elsewhere(use, found):
        yield At(use.path).must(
            f"name a bucket in {use.region}: {use.only_here}",
            got=f"{use.bucket}, which is in {found.region}",
            fix=f"write a bucket of {use.region}, or copy it into one with `aws s3 sync`",
        )
    needed = use.keys_path and (use.written or not use.keys)
    if found.key and needed and not _named(found.key, use.keys):
        yield _key_fault(use, found.key)


def bucket_remarks(use: BucketUse, found: BucketFound) -> Iterator[str]:
    """What works, or may work, and should be known."""
    if not found.seen:
        yield (
            f"{use.bucket} exists, and S3 does not let the caller list it: its owner is another account,"
            " or the caller lacks s3:ListBucket. Nothing more of it is checked, and its policy must let"
            " in whoever reads it"
        )
    if _elsewhere(use, found) and not use.only_here:
        yield (
            f"{use.bucket} is in {found.region}, not in {use.region}: it is read more slowly, past the"
            " VPC's endpoint of S3, and each GB that leaves its region is paid for"
        )
    if found.key and use.keys and not use.written and not _named(found.key, use.keys):
        yield (
            f"the default key of {use.bucket} is {found.key}, which {use.keys_path} does not name:"
            " objects that it encrypts cannot be read"
        )
    if found.public:
        yield (
            f"the policy of {use.bucket} lets everybody in. `aws s3api put-public-access-block --bucket"
            f" {use.bucket} --public-access-block-configuration BlockPublicAcls=true,"
            "IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true` ends that"
        )


def _elsewhere(use: BucketUse, found: BucketFound) -> bool:
    return bool(found.region) and found.region != use.region


def _named(key: str, keys: Sequence[str]) -> bool:
    """Whether one of the ARNs is the key's. Which key an alias stands for S3 does not tell, so any may
    be it."""
    if ALIAS in f":{key}":
        return bool(keys)
    return any(each.rpartition("/")[2] == key.rpartition("/")[2] for each in keys)


def _key_fault(use: BucketUse, key: str) -> InputError:
    arn = key if key.startswith("arn:") and ALIAS not in key else "the ARN of that key"
    verbs = "read and write" if use.written else "read"
    return At(use.keys_path).must(
        f"name the key that encrypts {use.bucket}: without it pods cannot {verbs} objects",
        got=", ".join(use.keys) or f"nothing, and the default key is {key}",
        fix=f"write {arn}; the policy of the key must let the account's roles use it, too",
    )
