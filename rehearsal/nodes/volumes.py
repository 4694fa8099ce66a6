"""A pod's volumes: where each lies on the host, or what keeps it from being mounted. One function a type (SOURCES)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal import paths
from rehearsal.kube import Api, Object, absent_is_none
from rehearsal.nodes.aws import Account, AwsError
from rehearsal.nodes.environment import NotReady, field, keyed, quantity
from rehearsal.nodes.process import Mount

HALF_OF_THE_MEMORY = "50%"
"""Size of a memory volume without sizeLimit."""
TOKEN_AGE = 0.8
"""Share of a service account token's life after which the kubelet replaces it."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A folder of the host, or memory of a size."""

    folder: Path | None = None
    size: str = ""
    read_only: bool = False


class Volumes:
    """The volumes of one pod. `drivers` answers whether a CSI driver's node pod runs here."""

    def __init__(self, pod: Object, folder: Path, *, api: Api, account: Account, zone: str, host: Path,
                 has_daemon: Callable[[str], bool]) -> None:
        self.pod, self.folder, self.api, self.account = pod, folder, api, account
        self.zone, self.host, self.has_daemon = zone, host, has_daemon
        self.sources: dict[str, Source] = {}
        self._token_times: dict[Path, float] = {}

    def prepare(self, *, again: bool = False) -> None:
        """Make every volume mountable, or `again` project what may have changed; NotReady says what is missing."""
        for volume in self.pod["spec"].get("volumes", []):
            kind = next((k for k in volume if k != "name"), "emptyDir")
            if again and kind not in CHANGING:
                continue
            if kind not in SOURCES:
                raise NotReady(f'volume "{volume["name"]}": the rehearsal does not mount volumes of type {kind}')
            try:
                self.sources[volume["name"]] = SOURCES[kind](self, volume["name"], volume.get(kind) or {})
            except NotReady as missing:
                raise NotReady(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {missing}') from None

    def mounts(self, container: Object) -> list[Mount]:
        """A container's own mounts."""
        return [self._mount(m) for m in container.get("volumeMounts", [])]

    def _mount(self, wanted: Object) -> Mount:
        source, target = self.sources[wanted["name"]], wanted["mountPath"].rstrip("/")
        if "subPathExpr" in wanted:
            raise NotReady("the rehearsal does not mount with subPathExpr")
        if source.folder is None:
            return Mount(target=target, size=source.size)
        inside = source.folder / wanted.get("subPath", "")
        if not inside.exists():
            inside.mkdir(parents=True)
        return Mount(target=target, source=str(inside), read_only=source.read_only or bool(wanted.get("readOnly")))

    def get(self, kind: str, name: str) -> Object | None:
        """An object of the pod's namespace, with the node's rights."""
        path = f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/{kind}/{name}"
        return absent_is_none(lambda: self.api.request("GET", path))

    def own_folder(self, name: str) -> Path:
        """The volume's folder in the pod's."""
        place = self.folder / "volumes" / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def project(self, place: Path, contents: dict[str, bytes]) -> None:
        """Make a folder contain exactly these files; unchanged ones are not touched."""
        for path, data in contents.items():
            file = place / path
            if not file.exists() or file.read_bytes() != data:
                file.parent.mkdir(parents=True, exist_ok=True)
                fresh = place / f".{file.name}.new"
                fresh.write_bytes(data)
                fresh.replace(file)
        for file in [f for f in place.rglob("*") if f.is_file() and str(f.relative_to(place)) not in contents]:
            file.unlink()

    def keys(self, kind: str, name: str, source: Object) -> dict[str, bytes]:
        """File names and contents of a ConfigMap or Secret source."""
        found = self.get(kind, name)
        if found is None and not source.get("optional"):
            raise NotReady(f'{kind[:-1]} "{name}" not found')
        data = keyed(found or {})
        if "items" not in source:
            return data
        if missing := [i["key"] for i in source["items"] if i["key"] not in data and not source.get("optional")]:
            raise NotReady(f'references non-existent {kind[:-1]} key: {missing[0]}')
        return {i["path"]: data[i["key"]] for i in source["items"] if i["key"] in data}

    def token(self, place: Path, source: Object) -> bytes:
        """A token of the pod's service account, bound to the pod."""
        file, life = place / source["path"], source.get("expirationSeconds", 3600)
        if file.exists() and time.monotonic() < self._token_times.get(file, 0) + TOKEN_AGE * life:
            return file.read_bytes()
        meta, spec = self.pod["metadata"], self.pod["spec"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        wanted = {"expirationSeconds": life, "boundObjectRef": bound,
                  "audiences": [source["audience"]] if source.get("audience") else []}
        path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{spec['serviceAccountName']}/token"
        answer = self.api.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                                 "spec": wanted})
        self._token_times[file] = time.monotonic()
        return answer["status"]["token"].encode()


def config_map(volumes: Volumes, name: str, source: Object) -> Source:
    """A ConfigMap's keys as files."""
    place = volumes.own_folder(name)
    volumes.project(place, volumes.keys("configmaps", source["name"], source))
    return Source(folder=place, read_only=True)


def secret(volumes: Volumes, name: str, source: Object) -> Source:
    """A Secret's keys as files."""
    place = volumes.own_folder(name)
    volumes.project(place, volumes.keys("secrets", source["secretName"], source))
    return Source(folder=place, read_only=True)


def downward(volumes: Volumes, name: str, source: Object) -> Source:
    """The pod's own fields as files."""
    place = volumes.own_folder(name)
    volumes.project(place, _fields(volumes, source))
    return Source(folder=place, read_only=True)


def _fields(volumes: Volumes, source: Object) -> dict[str, bytes]:
    return {i["path"]: field(volumes.pod, i["fieldRef"]["fieldPath"]).encode() for i in source.get("items", [])}


def projected(volumes: Volumes, name: str, source: Object) -> Source:
    """Several sources in one folder, such as a service account's token, CA and namespace."""
    place, contents = volumes.own_folder(name), dict[str, bytes]()
    for part in source.get("sources", []):
        kind, inner = next(iter(part.items()))
        match kind:
            case "serviceAccountToken":
                contents[inner["path"]] = volumes.token(place, inner)
            case "configMap" | "secret":
                contents |= volumes.keys(f"{kind.lower()}s", inner["name"], inner)
            case "downwardAPI":
                contents |= _fields(volumes, inner)
            case other:
                raise NotReady(f"the rehearsal does not project {other}")
    volumes.project(place, contents)
    return Source(folder=place, read_only=True)


def empty_dir(volumes: Volumes, name: str, source: Object) -> Source:
    """A folder as old as the pod, or memory, which only one container may use: it is mounted inside its sandbox."""
    if source.get("medium") != "Memory":
        return Source(folder=volumes.own_folder(name))
    users = [c for c in volumes.pod["spec"]["containers"] if any(m["name"] == name for m in c.get("volumeMounts", []))]
    if len(users) > 1:
        raise NotReady("the rehearsal does not share a memory volume between containers")
    limit = source.get("sizeLimit")
    return Source(size=str(int(quantity(limit))) if limit else HALF_OF_THE_MEMORY)


def host_path(volumes: Volumes, name: str, source: Object) -> Source:
    """A folder of the node's own, which starts empty."""
    place = volumes.host / source["path"].lstrip("/")
    if source.get("type") in ("Directory", "File") and not place.exists():
        raise NotReady(f"hostPath type check failed: {source['path']} is not a {source['type'].lower()}")
    place.mkdir(parents=True, exist_ok=True)
    return Source(folder=place)


def claim(volumes: Volumes, name: str, source: Object) -> Source:
    """A bound claim of a CSI volume."""
    found = volumes.get("persistentvolumeclaims", source["claimName"])
    if found is None:
        raise NotReady(f'persistentvolumeclaim "{source["claimName"]}" not found')
    if found.get("status", {}).get("phase") != "Bound":
        raise NotReady(f'persistentvolumeclaim "{source["claimName"]}" is not bound')
    volume = volumes.api.request("GET", f"/api/v1/persistentvolumes/{found['spec']['volumeName']}")
    csi = volume["spec"].get("csi", {})
    if csi.get("driver") not in DRIVERS:
        kind = csi.get("driver") or next((k for k in volume["spec"] if isinstance(volume["spec"][k], dict)), "?")
        raise NotReady(f"the rehearsal does not mount persistent volumes of {kind}")
    image, check = DRIVERS[csi["driver"]]
    if not volumes.has_daemon(image):
        raise NotReady(f"driver name {csi['driver']} not found in the list of registered CSI drivers")
    check(volumes, csi)
    place = paths.FILE_SYSTEMS / csi["volumeHandle"]
    place.mkdir(parents=True, exist_ok=True)
    return Source(folder=place)


def lustre(volumes: Volumes, csi: Object) -> None:
    """Whether the Lustre file system can be mounted as the volume says."""
    found = _described(lambda: volumes.account.fsx("DescribeFileSystems", {"FileSystemIds": [csi["volumeHandle"]]}))
    system = found["FileSystems"][0]
    if system["Lifecycle"] not in ("AVAILABLE", "UPDATING"):
        raise NotReady(f"{csi['volumeHandle']} is {system['Lifecycle']}")
    facts = {"dnsname": system.get("DNSName"), "mountname": system.get("LustreConfiguration", {}).get("MountName")}
    for key, actual in facts.items():
        if csi.get("volumeAttributes", {}).get(key) != actual:
            raise NotReady(f"mount.lustre: {key} is {csi.get('volumeAttributes', {}).get(key)!r}, the file system's is "
                           f"{actual!r}: Is the MGS specification correct?")


def efs(volumes: Volumes, csi: Object) -> None:
    """Whether the file system exists and has a mount target in the node's zone."""
    name, _, inside = csi["volumeHandle"].partition(":")
    if inside:
        raise NotReady(f"the rehearsal mounts whole file systems only, not {csi['volumeHandle']}")
    system = _described(lambda: volumes.account.efs(f"/file-systems?FileSystemId={name}"))["FileSystems"][0]
    targets = volumes.account.efs(f"/mount-targets?FileSystemId={name}")["MountTargets"]
    if system["LifeCycleState"] != "available":
        raise NotReady(f"{name} is {system['LifeCycleState']}")
    if not any(t.get("AvailabilityZoneName") == volumes.zone and t["LifeCycleState"] == "available" for t in targets):
        raise NotReady(f'Failed to resolve "{name}": check that the file system has a mount target in {volumes.zone}')


def _described(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except AwsError as error:
        raise NotReady(str(error)) from None


DRIVERS: dict[str, tuple[str, Callable[[Volumes, Object], None]]] = {
    "fsx.csi.aws.com": ("aws-fsx-csi-driver", lustre), "efs.csi.aws.com": ("aws-efs-csi-driver", efs)}
"""CSI driver → the image of its node part, and whether one of its volumes can be mounted."""
CHANGING = ("configMap", "secret", "downwardAPI", "projected")
"""Types whose content follows an object."""
SOURCES: dict[str, Callable[[Volumes, str, Object], Source]] = {
    "configMap": config_map, "secret": secret, "downwardAPI": downward, "projected": projected, "emptyDir": empty_dir,
    "hostPath": host_path, "persistentVolumeClaim": claim}
