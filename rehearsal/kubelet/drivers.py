"""Mounts of the CSI drivers of stores: the folder of this machine that stands for a file system or
a bucket, or for a directory of it. One function a driver (DRIVERS).

Sources: pkg/driver/node.go of aws-fsx-csi-driver 1.9.0 and of aws-efs-csi-driver 3.4;
docs/CONFIGURATION.md of mountpoint-s3-csi-driver 2.7.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rehearsal import paths
from rehearsal.kube import Object
from rehearsal.kubelet import access_points
from rehearsal.kubelet.aws import AwsError
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.host import Host
from rehearsal.kubelet.process import Mount

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""The id of a file system or the name of a bucket, which becomes a folder's name."""
EFS_NODE, S3_NODE = "aws-efs-csi-driver", "aws-mountpoint-s3-csi-driver"
"""Images of the drivers' pods on each node."""
NO_CREDENTIALS = "No signing credentials available"
"""Message of Mountpoint where the pod has no identity."""


def _whole(name: str) -> Path:
    """The folder of a file system or a bucket."""
    if not NAME.fullmatch(name):
        raise NotReady(f"the rehearsal mounts nothing that is called {name!r}")
    place = paths.FILE_SYSTEMS / name
    place.mkdir(parents=True, exist_ok=True)
    return place


def _inside(whole: Path, path: str) -> Path | None:
    """A directory of it; None where it is not there, or where a symbolic link is on the way."""
    found = whole / path.strip("/")
    return (
        found if found.is_dir() and found.resolve() == whole.resolve() / path.strip("/") else None
    )


def _shared(spec: Object, driver: str) -> None:
    """The drivers of file systems know two access modes, and the kubelet hands over the first of the
    volume."""
    if spec.get("accessModes", ["ReadWriteMany"])[0] not in ("ReadWriteMany", "ReadWriteOnce"):
        raise NotReady(
            f"rpc error: code = InvalidArgument desc = Volume capability not supported ({driver})"
        )


def lustre(kubelet: Host, pod: Object, spec: Object) -> Mount:
    """The file system behind the DNS name, or a directory of it: the handle means nothing to the
    driver, and `mountname` may go on with a path."""
    _shared(spec, "fsx.csi.aws.com")
    said = spec["csi"].get("volumeAttributes", {})
    dnsname, (name, _, path) = said.get("dnsname", ""), said.get("mountname", "").partition("/")
    id_ = dnsname.partition(".")[0]
    found = kubelet.account.fsx("DescribeFileSystems", {"FileSystemIds": [id_]})
    system: dict[str, Any] = found["FileSystems"][0]
    if system["Lifecycle"] not in ("AVAILABLE", "UPDATING"):
        raise NotReady(f"{id_} is {system['Lifecycle']}")
    facts = {
        "dnsname": (dnsname, system.get("DNSName")),
        "mountname": (name, system.get("LustreConfiguration", {}).get("MountName", "")),
    }
    for key, (wanted, actual) in facts.items():
        if wanted != actual:
            raise NotReady(
                f"mount.lustre: {key} is {wanted!r}, the file system's is {actual!r}: Is the MGS"
                " specification correct?"
            )
    if wall := kubelet.account.blocked(kubelet.id, id_):
        raise NotReady(f"mount.lustre: {id_}: Connection timed out: {wall}")
    if (place := _inside(_whole(id_), path)) is None:
        raise NotReady(
            f'Could not mount "{dnsname}@tcp:/{name}/{path}": mount.lustre: mount'
            f" {dnsname}@tcp:/{name}/{path} failed: No such file or directory\nIs the MGS"
            " specification correct?\nIs the filesystem name correct?"
        )
    return Mount(source=str(place))


def efs(kubelet: Host, pod: Object, spec: Object) -> Mount:
    """The file system, or the root directory of its access point as the point's user sees it."""
    _shared(spec, "efs.csi.aws.com")
    name, _, point = spec["csi"]["volumeHandle"].partition("::")
    system = kubelet.account.efs(f"/file-systems?FileSystemId={name}")["FileSystems"][0]
    if system["LifeCycleState"] != "available":
        raise NotReady(f"{name} is {system['LifeCycleState']}")
    targets = kubelet.account.efs(f"/mount-targets?FileSystemId={name}")["MountTargets"]
    zones = [t.get("AvailabilityZoneName") for t in targets if t["LifeCycleState"] == "available"]
    if kubelet.zone not in zones:
        raise NotReady(
            f'Failed to resolve "{name}": check that the file system has a mount target in'
            f" {kubelet.zone}"
        )
    if wall := kubelet.account.blocked(kubelet.id, name):
        raise NotReady(f"mount.nfs4: {name}: Connection timed out: {wall}")
    allowed = _allowed(kubelet, name, spec)
    if "ClientMount" not in allowed:
        raise NotReady(f"mount.nfs4: access denied by server while mounting 127.0.0.1:/ ({name})")
    found = _root_of(kubelet, name, point) if point else Mount(source=str(_whole(name)))
    # The root of the file system is root's, and a directory of a team its access point's.
    writes = {"ClientWrite"} if point else {"ClientWrite", "ClientRootAccess"}
    return found if writes <= {*allowed} else replace(found, read_only=True)


def _allowed(kubelet: Host, name: str, spec: Object) -> list[str]:
    """Actions of the driver that its file system allows: with the option `iam` as the role of its
    own pod, or of the node where that has none (docs/parameters.md), else without a role."""
    said = spec["csi"].get("volumeAttributes") or {}
    tls = said.get("encryptInTransit", "true").lower() != "false"
    if "iam" not in spec.get("mountOptions", ()):
        return kubelet.account.mounts(name, tls=tls)
    driver = kubelet.daemon(EFS_NODE)
    keys = kubelet.pod_identity(driver) if driver else {}
    return kubelet.account.mounts(name, tls=tls, keys=keys, instance=kubelet.id)


def _root_of(kubelet: Host, name: str, point: str) -> Mount:
    """The root directory of an access point, which EFS makes at the first mount where the point says
    whose it is."""
    found = kubelet.account.efs(f"/access-points?AccessPointId={point}")["AccessPoints"]
    if not found or found[0]["FileSystemId"] != name:
        raise NotReady(f"mount.nfs4: access denied by server while mounting {name}: {point}")
    path, whole = found[0]["RootDirectory"]["Path"], _whole(name)
    made = found[0]["RootDirectory"].get("CreationInfo")
    if made and not (whole / path.strip("/")).exists():
        access_points.make(whole, path, made)
    if (place := _inside(whole, path)) is None:
        raise NotReady(
            f"mount.nfs4: mounting {name}:{path} failed, reason given by server: No such"
            " file or directory"
        )
    may = access_points.rights(whole, path, found[0].get("PosixUser"))
    if "r" not in may or "x" not in may:
        raise NotReady(f"{point}: {path} is not the access point's user's: Permission denied")
    return Mount(source=str(place), read_only="w" not in may)


def s3(kubelet: Host, pod: Object, spec: Object) -> Mount:
    """The bucket, or a prefix of it, which nobody needs to make. Every bucket that exists elsewhere counts as there.
    Who may not list the prefix cannot mount it: the pod where the volume says so, and else the driver's node part."""
    said = spec["csi"].get("volumeAttributes", {})
    if not (bucket := said.get("bucketName")):
        raise NotReady("mount-s3: bucketName is not set")
    options = [option.partition(" ") for option in spec.get("mountOptions", ())]
    prefix = next((value.strip() for key, _, value in options if key == "prefix"), "")
    own = said.get("authenticationSource") == "pod"
    _listed(kubelet, pod if own else kubelet.daemon(S3_NODE), bucket, prefix)
    place = _whole(bucket) / prefix
    place.mkdir(parents=True, exist_ok=True)
    return Mount(source=str(place))


def _listed(kubelet: Host, pod: Object | None, bucket: str, prefix: str) -> None:
    keys = {} if pod is None else kubelet.pod_identity(pod)
    if not keys:
        raise NotReady(f"mount-s3: Failed to create mount process: {NO_CREDENTIALS}")
    try:
        kubelet.account.lists(bucket, prefix, keys)
    except AwsError as error:
        if "NoSuchBucket" not in str(error):
            raise NotReady(
                f"mount-s3: initial ListObjectsV2 failed for bucket {bucket}: {error}"
            ) from None


DRIVERS: dict[str, tuple[str, Callable[[Host, Object, Object], Mount]]] = {
    "fsx.csi.aws.com": ("aws-fsx-csi-driver", lustre),
    "efs.csi.aws.com": (EFS_NODE, efs),
    "s3.csi.aws.com": (S3_NODE, s3),
}
"""CSI driver → the image of its node part, and what it mounts for a pod, by the spec of the volume."""
