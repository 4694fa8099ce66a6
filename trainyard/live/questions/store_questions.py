"""The questions that `trainyard check --live` asks an AWS account about stores. They read and never write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainyard.catalog.aws.storage import LUSTRE_QUOTAS
from trainyard.existing.bucket_faults import BucketFound
from trainyard.existing.store_faults import ServersFound, StoreFound
from trainyard.live.questions.caller import Filters, NotAnswered
from trainyard.live.questions.network_questions import NetworkQuestions, tags_of
from trainyard.plans.identity import Identity

S3_OWN_KEY = "alias/aws/s3"
"""AWS's own KMS key for S3, which lets in whoever of its account may read the objects (S3 user guide,
UsingKMSEncryption)."""
FREE_ROOM = "FreeDataStorageCapacity"
"""Metric of CloudWatch: bytes that files can still fill."""
FREE_ROOM_MINUTES = 15
"""Minutes after which the newest value is too old."""
ELASTIC = "INTELLIGENT_TIERING"
"""Storage type of a Lustre that grows by itself (FSx API, StorageType)."""


class StoreQuestions(NetworkQuestions):
    """Each method is a question."""

    def lustre_file_system(self, id_: str) -> StoreFound | None:
        """An FSx for Lustre file system; None where the region has none of that id."""
        found = self._ask(
            "fsx:DescribeFileSystems", unless="FileSystemNotFound", FileSystemIds=[id_]
        )
        systems = [one for one in found.get("FileSystems", ()) if one["FileSystemType"] == "LUSTRE"]
        if not systems:
            return None
        ids = systems[0].get("NetworkInterfaceIds", [])
        squash = systems[0]["LustreConfiguration"].get("RootSquashConfiguration") or {}
        return StoreFound(
            servers=self._servers({"network-interface-id": ids}) if ids else {},
            lifecycle=systems[0]["Lifecycle"],
            version=systems[0].get("FileSystemTypeVersion", ""),
            deployment=systems[0]["LustreConfiguration"]["DeploymentType"],
            capacity_gib=_capacity(systems[0]),
            root_becomes="" if squash.get("RootSquash") == "0:0" else squash.get("RootSquash", ""),
            root_stays=tuple(squash.get("NoSquashNids", ())),
        )

    def free_bytes(self, id_: str) -> int | None:
        """Bytes that are free on a Lustre file system; None where CloudWatch has no value of the
        last minutes. FSx sends a value of each disk every minute, and their sum is what is free on
        the file system (FSx for Lustre user guide, performance-monitoring). The current minute is
        left out, because values of some disks may still be missing."""
        dimensions = [{"Name": "FileSystemId", "Value": id_}]
        metric = {"Namespace": "AWS/FSx", "MetricName": FREE_ROOM, "Dimensions": dimensions}
        until = datetime.now(UTC).replace(second=0, microsecond=0)
        found = self._ask(
            "cloudwatch:GetMetricData",
            MetricDataQueries=[
                {"Id": "free", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
            ],
            StartTime=until - timedelta(minutes=FREE_ROOM_MINUTES),
            EndTime=until,
            ScanBy="TimestampDescending",
        )
        values = [value for one in found["MetricDataResults"] for value in one["Values"]]
        return int(values[0]) if values else None

    def has_lustre(self, tags: Mapping[str, str]) -> bool:
        """True where there is a file system with these tags."""
        every = self._ask("fsx:DescribeFileSystems")["FileSystems"]
        return any(tags.items() <= tags_of(one).items() for one in every)

    def lustre_storage(self, me: Identity, deployment: str) -> tuple[float | None, int]:
        """GiB of the quota of file systems of a deployment, None where the account was given no number of its own,
        and GiB that others than this stack have."""
        code, start = LUSTRE_QUOTAS[deployment], deployment.partition("_")[0]
        names = {deployment} if start == "PERSISTENT" else {"SCRATCH_1", "SCRATCH_2"}
        answer = self._ask(
            "servicequotas:GetServiceQuota",
            unless="NoSuchResource",
            ServiceCode="fsx",
            QuotaCode=code,
        )
        others = [
            one["StorageCapacity"]
            for one in self._ask("fsx:DescribeFileSystems")["FileSystems"]
            if one.get("LustreConfiguration", {}).get("DeploymentType") in names
            and one["Lifecycle"] not in ("DELETING", "FAILED")
            and not me.owns(tags_of(one))
            and _capacity(one)
        ]
        return answer.get("Quota", {}).get("Value"), sum(others)

    def backup(self, id_: str) -> dict[str, Any]:
        """As FSx describes a backup; empty where it knows none."""
        found = self._ask("fsx:DescribeBackups", unless="BackupNotFound", BackupIds=[id_])
        return next(iter(found.get("Backups", ())), {})

    def efs_file_system(self, id_: str) -> StoreFound | None:
        """An EFS file system; None where the region has none of that id."""
        found = self._ask(
            "elasticfilesystem:DescribeFileSystems", unless="FileSystemNotFound", FileSystemId=id_
        )
        systems = found.get("FileSystems", ())
        if not systems:
            return None
        targets = self._servers({"description": [f"EFS mount target for {id_} (*"]})
        return StoreFound(servers=targets, lifecycle=systems[0]["LifeCycleState"].upper())

    def efs_policy(self, id_: str) -> str:
        """The policy of an EFS file system as JSON; empty where it has none, or the region has no such file system."""
        found = self._ask(
            "elasticfilesystem:DescribeFileSystemPolicy",
            unless=("PolicyNotFound", "FileSystemNotFound"),
            FileSystemId=id_,
        )
        policy: str = found.get("Policy", "")
        return policy

    def _servers(self, filters: Filters) -> dict[str, ServersFound]:
        """Zone → what is there of a file system with these interfaces."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self._ask("ec2:DescribeNetworkInterfaces", filters=filters)["NetworkInterfaces"]:
            found.setdefault(one["AvailabilityZone"], []).append(one)
        return {zone: self._server(those) for zone, those in found.items()}

    def _server(self, interfaces: Sequence[Mapping[str, Any]]) -> ServersFound:
        groups = sorted({each["GroupId"] for one in interfaces for each in one["Groups"]})
        return ServersFound(
            vpc_id=interfaces[0]["VpcId"], groups=tuple(groups), rules=self._rules(groups)
        )

    def keeps_versions(self, bucket: str) -> bool:
        """True where a bucket keeps old versions of its objects."""
        return self._ask("s3:GetBucketVersioning", Bucket=bucket).get("Status") == "Enabled"

    def is_public(self, bucket: str) -> bool:
        """True where the policy of a bucket lets everybody in."""
        found = self._ask("s3:GetBucketPolicyStatus", unless="NoSuchBucketPolicy", Bucket=bucket)
        return found.get("PolicyStatus", {}).get("IsPublic", False)

    def bucket(self, name: str) -> BucketFound | None:
        """Where a bucket is, and whether the caller may list it; None where S3 knows none. S3 tells its
        region with a refusal, too."""
        seen = True
        try:
            answer = self._ask("s3:HeadBucket", unless="404", Bucket=name)
        except NotAnswered as refused:
            answer, seen = getattr(refused.__cause__, "response", {}), False
            if answer.get("Error", {}).get("Code") not in ("301", "403"):
                raise
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        region = headers.get("x-amz-bucket-region", "")
        return BucketFound(region=region, seen=seen) if answer else None

    def bucket_key(self, name: str) -> str | None:
        """The customer's KMS key that a bucket encrypts with, as its setting says it; None of S3's own
        key and of AWS's."""
        none = "ServerSideEncryptionConfigurationNotFound"
        found = self._ask("s3:GetBucketEncryption", unless=none, Bucket=name)
        for rule in found.get("ServerSideEncryptionConfiguration", {}).get("Rules", ()):
            key = rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID", "")
            if key and not key.endswith(S3_OWN_KEY):
                return key
        return None


def _capacity(system: Mapping[str, Any]) -> int:
    """GiB of a Lustre file system; 0 where it grows by itself."""
    return 0 if system.get("StorageType") == ELASTIC else system["StorageCapacity"]
