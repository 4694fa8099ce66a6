"""What a CSI driver mounts for a pod: the directory of its team and nothing above it, or nothing at
all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.kubelet import drivers, volumes
from rehearsal.kubelet.aws import AwsError
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.process import Mount

DNSNAME = "fs-1.fsx.ap-northeast-2.amazonaws.com"
VISION = {"OwnerUid": 7, "OwnerGid": 7, "Permissions": "0750"}
"""What the access points of fs-2 say of the directory of team vision."""
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}


class Account:
    """One Lustre file system, one EFS with an access point, one bucket with a prefix that may be
    listed."""

    def fsx(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        if body["FileSystemIds"] != ["fs-1"]:
            raise AwsError("FileSystemNotFound")
        lustre = {"MountName": "abcd"}
        system = {"Lifecycle": "AVAILABLE", "DNSName": DNSNAME, "LustreConfiguration": lustre}
        return {"FileSystems": [system]}

    def efs(self, path: str) -> dict[str, Any]:
        target = {"AvailabilityZoneName": "ap-northeast-2a", "LifeCycleState": "available"}
        coming = {"AvailabilityZoneName": "ap-northeast-2b", "LifeCycleState": "creating"}
        root = {"Path": "/teams/vision", "CreationInfo": VISION}
        points = {
            "fsap-1": {"RootDirectory": root, "PosixUser": {"Uid": 7, "Gid": 7}},
            "fsap-other": {"RootDirectory": root, "PosixUser": {"Uid": 8, "Gid": 8}},
            "fsap-group": {
                "RootDirectory": root,
                "PosixUser": {"Uid": 8, "Gid": 8, "SecondaryGids": [7]},
            },
            "fsap-root": {"RootDirectory": root, "PosixUser": {"Uid": 0, "Gid": 0}},
            "fsap-top": {"RootDirectory": {"Path": "/"}, "PosixUser": {"Uid": 7, "Gid": 7}},
        }
        point = points.get(path.rpartition("=")[2])
        return {
            "FileSystems": [{"LifeCycleState": "available"}],
            "MountTargets": [target, coming],
            "AccessPoints": [{"FileSystemId": "fs-2", **point}] if point else [],
        }

    def mounts(self, system: str, *, tls: bool, **who: Any) -> list[str]:
        """fs-2 has no policy; fs-3 lets in the role of the driver, with TLS; fs-4 reads only; fs-5 has
        no root."""
        every = ["ClientMount", "ClientWrite", "ClientRootAccess"]
        if system == "fs-2":
            return every
        if not tls or who.get("keys") != KEYS:
            return []
        return {"fs-3": every, "fs-4": every[:1], "fs-5": every[:2]}[system]

    def lists(self, bucket: str, prefix: str, keys: dict[str, str]) -> None:
        if bucket == "elsewhere":
            raise AwsError("<Code>NoSuchBucket</Code>")
        if prefix != "teams/vision/":
            raise AwsError("<Code>AccessDenied</Code>")

    def blocked(self, instance: str, to: str) -> str:
        return ""


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where file systems lie; two teams have directories on fs-1."""
    monkeypatch.setattr(paths, "FILE_SYSTEMS", tmp_path)
    for team in ("vision", "nlp"):
        (tmp_path / "fs-1" / "teams" / team).mkdir(parents=True)
    (tmp_path / "fs-1" / "teams" / "nlp" / "secret").write_text("weights")
    return tmp_path


def host(*, zone: str = "ap-northeast-2a", keys: dict[str, str] | None = None) -> Any:
    return SimpleNamespace(
        id="i-1",
        zone=zone,
        account=Account(),
        pod_identity=lambda _: KEYS if keys is None else keys,
        daemon=lambda image: {"image": image},
    )


def lustre(mountname: str, dnsname: str = DNSNAME, mode: str = "ReadWriteMany") -> Path:
    attributes = {"dnsname": dnsname, "mountname": mountname}
    csi = {"volumeHandle": "fs-1-vision", "volumeAttributes": attributes}
    return Path(drivers.lustre(host(), {}, {"csi": csi, "accessModes": [mode]}).source)


def efs_mount(handle: str, zone: str = "ap-northeast-2a", mode: str = "ReadWriteMany") -> Mount:
    return drivers.efs(
        host(zone=zone), {}, {"csi": {"volumeHandle": handle}, "accessModes": [mode]}
    )


def efs(handle: str, zone: str = "ap-northeast-2a", mode: str = "ReadWriteMany") -> Path:
    return Path(efs_mount(handle, zone, mode).source)


def s3(prefix: str, bucket: str = "data", *, keys: dict[str, str] | None = None) -> Path:
    attributes = {"bucketName": bucket, "authenticationSource": "pod"}
    spec = {"csi": {"volumeAttributes": attributes}, "mountOptions": [f"prefix {prefix}"]}
    return Path(drivers.s3(host(keys=keys), {}, spec).source)


def test_lustre_is_mounted_as_a_whole_or_as_a_directory_that_exists(disks: Path) -> None:
    assert lustre("abcd") == disks / "fs-1"
    assert lustre("abcd/teams/vision") == disks / "fs-1/teams/vision"
    with pytest.raises(NotReady, match=r"abcd/teams/audio failed: No such file or directory"):
        lustre("abcd/teams/audio")
    with pytest.raises(NotReady, match="Is the MGS specification correct"):
        lustre("abce/teams/vision")
    with pytest.raises(AwsError):
        lustre("abcd", dnsname="fs-9.fsx.ap-northeast-2.amazonaws.com")


@pytest.mark.parametrize(
    "path", ["teams/vision/../nlp", "teams/link", "../fs-2", "teams/nlp/secret"]
)
def test_a_directory_of_lustre_is_named_without_detours(disks: Path, path: str) -> None:
    """A link instead of a directory shows nobody what it points to."""
    (disks / "fs-1/teams/link").symlink_to("nlp")
    with pytest.raises(NotReady, match="No such file or directory"):
        lustre(f"abcd/{path}")


def test_what_a_team_leaves_in_its_directory_leads_nowhere_else(disks: Path) -> None:
    """A5: `..`, a symbolic link and a subPath, from what the team mounts; each shows the other team's
    file once the mount begins at the root of the store."""

    def seen(mountname: str, path: str) -> bool:
        mount = Mount(source=str(lustre(mountname)))
        pod: Any = SimpleNamespace(
            _ready={"v": mount}, kubelet=SimpleNamespace(folder=disks / "node")
        )
        wanted = {"name": "v", "mountPath": "/v", "subPath": path}
        try:
            found = volumes.Volumes._mount(pod, wanted)
        except NotReady:
            return False
        return (Path(found.source) / found.inside).is_file()

    own = disks / "fs-1/teams/vision"
    (own / "out").symlink_to("../nlp")
    (disks / "fs-1" / "out").symlink_to("teams/nlp")
    for path in ("../nlp/secret", "out/secret"):
        assert not seen("abcd/teams/vision", path), path
    assert not (own / "teams/nlp").exists()
    for path in ("teams/vision/../nlp/secret", "teams/vision/out/secret", "out/secret"):
        assert seen("abcd", path), path


def test_drivers_of_file_systems_refuse_a_volume_for_reading_only(disks: Path) -> None:
    """So the mount option says it, and not the access mode."""
    for mount in (
        lambda: lustre("abcd", mode="ReadOnlyMany"),
        lambda: efs("fs-2", mode="ReadOnlyMany"),
    ):
        with pytest.raises(NotReady, match="Volume capability not supported"):
            mount()
    assert {"ro", "read-only"} == volumes.READ_ONLY


def test_efs_is_mounted_only_where_its_zone_has_a_mount_target(disks: Path) -> None:
    """As the DNS name of the file system resolves only there."""
    assert efs("fs-2") == disks / "fs-2"
    for zone in ("ap-northeast-2b", "ap-northeast-2c"):
        with pytest.raises(NotReady, match=f'Failed to resolve "fs-2".* mount target in {zone}$'):
            efs("fs-2", zone=zone)


def test_an_access_point_shows_its_root_directory_which_efs_makes(disks: Path) -> None:
    assert efs("fs-2::fsap-1") == disks / "fs-2/teams/vision"
    for handle in ("fs-2::fsap-9", "fs-3::fsap-1"):
        with pytest.raises(NotReady, match="access denied by server"):
            efs(handle)


def test_an_access_point_shows_what_its_user_may(disks: Path) -> None:
    """Its files have one owner, whoever the client says it is."""
    assert not efs_mount("fs-2::fsap-1").read_only, "it owns the directory"
    assert not efs_mount("fs-2::fsap-root").read_only
    assert efs_mount("fs-2::fsap-group").read_only, "0750: a group reads"
    with pytest.raises(NotReady, match="fsap-other: /teams/vision .*Permission denied"):
        efs("fs-2::fsap-other")
    assert efs_mount("fs-2::fsap-top").read_only, "the root of a file system belongs to root"
    assert not efs_mount("fs-2").read_only, "EFS does not squash root"


def test_a_directory_belongs_to_the_access_point_that_made_it_first(disks: Path) -> None:
    """CreationInfo counts once: the second point's user finds a directory of somebody else."""
    with pytest.raises(NotReady, match="Permission denied"):
        efs("fs-2::fsap-other")
    assert not efs_mount("fs-2::fsap-1").read_only


def test_a_prefix_is_mounted_by_pods_that_may_list_it(disks: Path) -> None:
    """A7: the role of the team's pods refuses other prefixes and the whole bucket."""
    assert s3("teams/vision/") == disks / "data/teams/vision"
    for prefix in ("teams/nlp/", "teams/vision2/", "teams/", ""):
        with pytest.raises(NotReady, match="ListObjectsV2 failed for bucket data: .*AccessDenied"):
            s3(prefix)
    with pytest.raises(NotReady, match="No signing credentials available"):
        s3("teams/vision/", keys={})
    assert s3("any/", bucket="elsewhere") == disks / "elsewhere/any"


def test_a_bucket_is_mounted_by_the_driver_where_the_pod_has_no_part_in_it(disks: Path) -> None:
    def asked(pod: dict[str, Any]) -> dict[str, str]:
        return KEYS if pod == {"image": drivers.S3_NODE} else {}

    node = host()
    node.pod_identity = asked
    spec = {
        "csi": {"volumeAttributes": {"bucketName": "data"}},
        "mountOptions": ["prefix teams/vision/"],
    }
    assert drivers.s3(node, {}, spec).source == str(disks / "data/teams/vision")
    with pytest.raises(NotReady, match="ListObjectsV2 failed for bucket data: .*AccessDenied"):
        drivers.s3(node, {}, spec | {"mountOptions": []})
    with pytest.raises(NotReady, match="No signing credentials available"):
        drivers.s3(host(keys={}), {}, spec)


@pytest.mark.parametrize("name", ["../../home", "fs-1&x=/../../home", "fs-1:/sub", "", ".", "a/b"])
def test_what_is_mounted_is_called_as_a_file_system_or_a_bucket(disks: Path, name: str) -> None:
    with pytest.raises(NotReady, match="the rehearsal mounts nothing that is called"):
        drivers._whole(name)


def efs_of(
    name: str, *options: str, keys: dict[str, str] | None = None, **attributes: str
) -> Mount:
    csi = {"volumeHandle": name, "volumeAttributes": attributes}
    spec = {"csi": csi, "accessModes": ["ReadWriteMany"], "mountOptions": list(options)}
    return drivers.efs(host(keys=keys), {}, spec)


def test_a_file_system_with_a_policy_is_mounted_with_the_role_and_tls_only(disks: Path) -> None:
    assert efs_of("fs-3", "iam").source == str(disks / "fs-3")
    for refused in (
        lambda: efs_of("fs-3"),
        lambda: efs_of("fs-3", "iam", keys={}),
        lambda: efs_of("fs-3", "iam", encryptInTransit="false"),
    ):
        with pytest.raises(NotReady, match="access denied by server while mounting"):
            refused()
    assert not efs_of("fs-3", "iam").read_only
    assert efs_of("fs-4", "iam").read_only, "ClientWrite is missing"
    assert efs_of("fs-5", "iam").read_only, "the root is root's"
