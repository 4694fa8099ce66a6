"""S3: buckets, and what keeps them private, encrypted and without remains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Seen, Tagging, lower, renamed, upper
from rehearsal.providers.wire import Properties, words

SPELLED = {"sseAlgorithm": "SSEAlgorithm", "kmsMasterKeyId": "KMSMasterKeyID", "id": "ID"}
"""Words that S3 writes otherwise than in its own case."""
WORDS = {there: here for here, there in SPELLED.items()}
US_EAST_1 = "us-east-1"
"""The region that S3 takes no location constraint for."""


@dataclass(frozen=True, kw_only=True)
class Bucket(Kind):
    def make(self, aws: Account, new: Properties) -> str:
        """Tags follow in a call of their own."""
        place = {"LocationConstraint": aws.region} if aws.region != US_EAST_1 else None
        aws.call("s3", "create_bucket", Bucket=new["bucket"], CreateBucketConfiguration=place)
        self._tag(aws, new["bucket"], new.get("tags") or {})
        return new["bucket"]

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        """With its objects and their old versions, where the program said so; S3 refuses to
        otherwise."""
        if state.get("forceDestroy"):
            found = aws.call("s3", "list_object_versions", Bucket=id_)
            for one in (*found.get("Versions", []), *found.get("DeleteMarkers", [])):
                which = {"Key": one["Key"], "VersionId": one["VersionId"]}
                aws.call("s3", "delete_object", Bucket=id_, **which)
        aws.call("s3", "delete_bucket", Bucket=id_)

    def tags_of(self, aws: Account, state: Properties, found: dict[str, Any]) -> dict[str, str]:
        told = aws.seen("s3", "get_bucket_tagging", Bucket=state["bucket"]) or {}
        return {tag["Key"]: tag["Value"] for tag in told.get("TagSet", [])}

    def retag(
        self, aws: Account, id_: str, state: Properties, put: dict[str, str], drop: list[str]
    ) -> None:
        """S3 takes all tags at once."""
        tags = self.tags_of(aws, {"bucket": id_}, {}) | put
        self._tag(aws, id_, {key: value for key, value in tags.items() if key not in drop})

    def _tag(self, aws: Account, bucket: str, tags: dict[str, str]) -> None:
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        aws.call("s3", "put_bucket_tagging", Bucket=bucket, Tagging={"TagSet": pairs})


@dataclass(frozen=True, kw_only=True)
class Rules(Kind):
    def outward(self, value: Any) -> Any:
        return renamed(value, lambda key: SPELLED.get(key) or upper(key))

    def inward(self, path: str, value: Any) -> Any:
        return renamed(value, lambda key: WORDS.get(key) or lower(key))


@dataclass(frozen=True, kw_only=True)
class Versioning(Kind):
    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        return {"versioningConfiguration": {"status": found["Status"]}}

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        """A bucket that never had it, or has it no more, has no such setting."""
        told = aws.seen("s3", "get_bucket_versioning", Bucket=id_) or {}
        return super().find(aws, id_, hint) if told.get("Status") == "Enabled" else None

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        """Versioning is never taken away, only suspended."""
        aws.call(
            "s3",
            "put_bucket_versioning",
            Bucket=id_,
            VersioningConfiguration={"Status": "Suspended"},
        )


def of_bucket(word: str, noun: str, **more: Any) -> dict[str, Any]:
    """A setting of a bucket, which is found by the bucket's name."""
    return {
        "token": f"aws:s3/{lower(word)}:{word}",
        "service": "s3",
        "create": f"put_{noun}",
        "read": f"get_{noun}",
        "delete": f"delete_{noun}",
        "id": "{bucket}",
        "import_id": "{bucket}",
        "asks": {"Bucket": "bucket"},
        **more,
    }


PRIVATE = words("blockPublicAcls blockPublicPolicy ignorePublicAcls restrictPublicBuckets")
KINDS = (
    Bucket(
        **of_bucket("Bucket", "bucket", create="create_bucket", read="get_bucket_location"),
        local=words("forceDestroy"),
        tagging=Tagging(target="Bucket", by="bucket"),
    ),
    Kind(
        **of_bucket("BucketPublicAccessBlock", "public_access_block"),
        fixed=PRIVATE,
        names={key: f"PublicAccessBlockConfiguration.{upper(key)}" for key in PRIVATE},
    ),
    Kind(**of_bucket("BucketPolicy", "bucket_policy"), updates={"policy": "put_bucket_policy"}),
    Rules(
        **of_bucket("BucketServerSideEncryptionConfiguration", "bucket_encryption"),
        updates={"rules": "put_bucket_encryption"},
        names={"rules": "ServerSideEncryptionConfiguration.Rules"},
    ),
    Versioning(
        **of_bucket("BucketVersioning", "bucket_versioning", delete="put_bucket_versioning"),
        updates={"versioningConfiguration": "put_bucket_versioning"},
    ),
    Rules(
        **of_bucket(
            "BucketLifecycleConfiguration",
            "bucket_lifecycle_configuration",
            delete="delete_bucket_lifecycle",
        ),
        updates={"rules": "put_bucket_lifecycle_configuration"},
        names={"rules": "LifecycleConfiguration.Rules"},
        outputs={"rules": "Rules"},
    ),
)
