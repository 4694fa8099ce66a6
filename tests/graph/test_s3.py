"""S3 stores in the graph: the bucket, who may use it, and how pods mount it."""

from __future__ import annotations

import functools
import json
from typing import Any

import pulumi
import pytest

from tests.support.graphs import environment
from tests.support.recording import BUCKET, Graph, Node, deploy
from tests.support.stackfile import ENVIRONMENT, at

KEY = "arn:aws:kms:ap-northeast-2:111122223333:key/1234abcd"


@functools.cache
def with_store(settings: str, data: str = "keep") -> Graph:
    """The dev stack with an S3 store `corpus`. `settings`: of it, as JSON."""
    found: dict[str, Any] = {"s3": json.loads(settings), "data": data}
    edit = at("storage.corpus", found)
    return deploy("dev", lambda values: edit(values[ENVIRONMENT]))


def volume_of(graph: Graph) -> Node:
    return graph["PersistentVolume training-corpus-volume"]


def allowed(graph: Graph) -> dict[str, Any]:
    """Sid → statement of the driver's role."""
    [policy] = [p for p in graph.of("RolePolicy") if "mountpoint" in p.name]
    return {s["Sid"]: s for s in json.loads(policy.inputs["policy"])["Statement"]}


def test_a_bucket_of_the_stack_is_private_encrypted_and_answers_over_tls_only() -> None:
    graph = with_store("{}")
    bucket = graph["Bucket corpus"]
    assert bucket.inputs["bucket"].startswith("dev-corpus-")
    assert bucket.inputs["bucket"].endswith("-111122223333")
    assert bucket.options.protect and not bucket.inputs["forceDestroy"]
    block = graph["BucketPublicAccessBlock corpus"].inputs
    assert [value for key, value in block.items() if key != "bucket"] == [True] * 4
    [deny] = json.loads(graph["BucketPolicy corpus"].inputs["policy"])["Statement"]
    assert deny["Effect"] == "Deny" and deny["Condition"] == {
        "Bool": {"aws:SecureTransport": "false"}
    }
    [rule, _] = graph["BucketLifecycleConfiguration corpus"].inputs["rules"]
    assert rule["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 7}


def test_a_bucket_deletes_by_age_and_keeps_old_versions_where_the_stack_file_says_so() -> None:
    aging = {"delete_after_days": {"tmp/": 3, "checkpoints/": 30}, "versioning": True}
    graph = with_store(json.dumps(aging))
    [uploads, checkpoints, temporary, old] = graph["BucketLifecycleConfiguration corpus"].inputs[
        "rules"
    ]
    assert uploads["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 7}
    assert (checkpoints["filter"], checkpoints["expiration"]) == (
        {"prefix": "checkpoints/"},
        {"days": 30},
    )
    assert temporary["expiration"] == {"days": 3}
    assert old["noncurrentVersionExpiration"] == {"noncurrentDays": 30}
    assert old["expiration"] == {"expiredObjectDeleteMarker": True}
    status = graph["BucketVersioning corpus"].inputs["versioningConfiguration"]
    assert status == {"status": "Enabled"}
    assert not with_store("{}").of("BucketVersioning")


def test_old_versions_end_also_where_the_stack_file_asks_for_none_any_more() -> None:
    """The provider only suspends versioning, and S3 keeps the versions that there are."""
    plain, kept = (
        with_store(settings)["BucketLifecycleConfiguration corpus"].inputs["rules"][-1]
        for settings in ("{}", json.dumps({"versioning": True}))
    )
    assert plain == kept and plain["id"] == "old-versions"


def test_a_bucket_to_be_deleted_goes_with_its_objects() -> None:
    bucket = with_store("{}", "delete")["Bucket corpus"]
    assert bucket.inputs["forceDestroy"] and not bucket.options.protect


def test_what_guards_a_bucket_stays_with_a_bucket_that_is_kept() -> None:
    """It is not protected: an update changes it. Versioning that is taken out of the stack file must be suspended."""
    settings = json.dumps({"versioning": True})
    guards = ("PublicAccessBlock", "Policy", "ServerSideEncryptionConfiguration")
    for data, stays in (("keep", True), ("delete", False)):
        graph = with_store(settings, data)
        for kind in (*guards, "LifecycleConfiguration"):
            options = graph[f"Bucket{kind} corpus"].options
            assert (options.retainOnDelete, options.protect) == (stays, False), kind
        assert not graph["BucketVersioning corpus"].options.retainOnDelete
        assert graph["Bucket corpus"].options.protect is stays


def test_a_key_encrypts_the_bucket_and_the_driver_may_use_it() -> None:
    graph = with_store(json.dumps({"kms_key_arn": KEY}))
    [rule] = graph["BucketServerSideEncryptionConfiguration corpus"].inputs["rules"]
    assert rule["applyServerSideEncryptionByDefault"]["kmsMasterKeyId"] == KEY
    assert allowed(graph)["Key"]["Resource"] == KEY


def test_an_existing_bucket_is_used_and_never_made() -> None:
    graph = with_store('{"bucket": "our-corpus"}')
    assert not graph.of("Bucket") and not graph.of("BucketPolicy")
    spec = volume_of(graph).inputs["spec"]
    assert spec["csi"] == {
        "driver": "s3.csi.aws.com",
        "volumeHandle": "our-corpus",
        "volumeAttributes": {"bucketName": "our-corpus"},
    }
    assert spec["mountOptions"] == ["allow-other", "read-only"]
    assert spec["accessModes"] == ["ReadOnlyMany"]


def answered(answer: Any, *, preview: bool = True) -> Graph:
    """The dev stack on a bucket of which the AWS provider says that."""
    edit = at("storage.corpus", {"s3": {"bucket": "our-corpus"}})

    def look_up(token: str, arguments: dict[str, Any]) -> Any:
        assert (token, arguments["bucket"]) == (BUCKET, "our-corpus")
        return answer

    return deploy("dev", lambda all_: edit(all_[ENVIRONMENT]), vpc=look_up, preview=preview)


def refused(why: str) -> Any:
    return {}, [("bucket", f"reading S3 Bucket (our-corpus): {why}")]


STATUS = "operation error S3: HeadBucket, https response error StatusCode: {}, RequestID: 1"


@pytest.mark.parametrize("preview", [True, False])
def test_a_bucket_that_does_not_exist_ends_the_program(preview: bool) -> None:
    with pytest.raises(
        pulumi.RunError, match=r"corpus\.s3\.bucket: must name a bucket that exists"
    ):
        answered(refused("couldn't find resource"), preview=preview)


@pytest.mark.parametrize(
    ("answer", "remark"),
    [
        (refused(STATUS.format(403)), "S3 does not let the caller list it"),
        (refused(STATUS.format(301)), "our-corpus is in another region, not in ap-northeast-2"),
        ({"bucketRegion": "eu-west-1"}, "our-corpus is in eu-west-1, not in ap-northeast-2"),
    ],
)
def test_what_pods_may_not_reach_is_a_warning(
    answer: Any, remark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings = list[str]()
    monkeypatch.setattr(pulumi, "warn", lambda text, *_: warnings.append(text))
    assert answered(answer).nodes
    [warning] = [each for each in warnings if "our-corpus" in each]
    assert warning.startswith("environment.storage.corpus.s3.bucket: ") and remark in warning


def test_another_refusal_of_the_look_up_is_told_as_it_is() -> None:
    with pytest.raises(ValueError, match="StatusCode: 503"):
        answered(refused(STATUS.format(503)))


def test_the_driver_may_read_the_bucket_and_create_objects_only_where_jobs_may() -> None:
    reads = allowed(with_store('{"bucket": "our-corpus"}'))
    writes = allowed(with_store('{"bucket": "our-corpus", "writable": true}'))
    assert reads["List"]["Resource"] == "arn:aws:s3:::our-corpus"
    assert reads["Objects"]["Action"] == ["s3:GetObject"]
    assert writes["Objects"]["Action"] == [
        "s3:GetObject",
        "s3:AbortMultipartUpload",
        "s3:PutObject",
    ]
    assert writes["Objects"]["Resource"] == "arn:aws:s3:::our-corpus/*"


def test_the_driver_starts_with_its_role_on_every_node() -> None:
    graph = with_store("{}")
    add_on = graph["Addon aws-mountpoint-s3-csi-driver"]
    association = graph["PodIdentityAssociation aws-mountpoint-s3-csi-driver"]
    assert association.inputs["serviceAccount"] == "s3-csi-driver-sa"
    assert graph.waits_for(add_on, association)
    assert json.loads(add_on.inputs["configurationValues"])["node"]["tolerateAllTaints"]


def test_pods_mount_the_bucket_after_its_safeguards_and_its_driver() -> None:
    graph = with_store("{}")
    assert graph.waits_for(volume_of(graph), graph["BucketPolicy corpus"])
    claim = graph["PersistentVolumeClaim training-corpus-claim"]
    assert graph.waits_for(claim, graph["Addon aws-mountpoint-s3-csi-driver"])


def test_a_stack_without_a_bucket_has_no_driver_for_one() -> None:
    assert not [node for node in environment().nodes.values() if "mountpoint" in node.name]
