"""A pod's volumes: where each lies on the host, or what keeps it from being mounted. One function a
type (SOURCES)."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rehearsal.kube import Object, absent_is_none
from rehearsal.kubelet import broken_stores, secrets_store, tokens
from rehearsal.kubelet.aws import AwsError
from rehearsal.kubelet.drivers import DRIVERS
from rehearsal.kubelet.environment import NotReady, field, quantity
from rehearsal.kubelet.host import Host
from rehearsal.kubelet.process import Mount
from rehearsal.kubelet.sandbox import beneath

READ_ONLY = {"ro", "read-only"}
"""Options of mounts that cannot write. `csi.readOnly` of a volume is none: the kubelet hands it to no
driver (getReadOnlyFromSpec of Kubernetes 1.34 reads the pod's)."""
HALF_OF_THE_MEMORY = "50%"
"""Size of a memory volume without sizeLimit."""
ABSENT_KEY = {
    "configMap": "configmap references non-existent config key",
    "secret": "references non-existent secret key",
}
PATH_TYPES = {
    "": (Path.exists, "path"),
    "Directory": (Path.is_dir, "directory"),
    "File": (Path.is_file, "file"),
}
"""Type of a hostPath → what must be there. The words are the kubelet's: pkg/volume of Kubernetes
1.34."""
TOKEN_AGE = 0.8
"""Share of a service account token's life after which the kubelet replaces it."""


class Volumes:
    """The volumes of one pod."""

    def __init__(self, pod: Object, folder: Path, kubelet: Host) -> None:
        self.pod, self.folder, self.kubelet = pod, folder, kubelet
        self._ready: dict[str, Mount] = {}
        self._signed: dict[Path, float] = {}
        self._fetched: dict[str, float] = {}

    def prepare(self, *, again: bool = False) -> None:
        """Make every volume mountable, or `again` project what may have changed; NotReady says what
        is missing."""
        for volume in self.pod["spec"].get("volumes", []):
            name, kind = volume["name"], next(k for k in volume if k != "name")
            if again and SOURCES.get(kind) not in (projection, inline):
                continue
            if kind not in SOURCES:
                raise NotReady(
                    f'volume "{name}": the rehearsal does not mount volumes of type {kind}'
                )
            try:
                self._ready[name] = SOURCES[kind](self, name, volume)
            except NotReady as missing:
                raise NotReady(
                    f'MountVolume.SetUp failed for volume "{name}" : {missing}'
                ) from None

    def mounts(self, container: Object) -> list[Mount]:
        """A container's own mounts."""
        return [self._mount(m) for m in container.get("volumeMounts", [])]

    def _mount(self, wanted: Object) -> Mount:
        source = replace(self._ready[wanted["name"]], target=wanted["mountPath"].rstrip("/"))
        if source.source:
            source = replace(source, source=broken_stores.seen(self.kubelet.folder, source.source))
        if "subPathExpr" in wanted:
            raise NotReady("the rehearsal does not mount with subPathExpr")
        if source.size:
            return source
        inside = f"{source.inside}/{wanted.get('subPath', '')}".strip("/")
        _open_beneath(Path(source.source), inside, f'failed to prepare subPath "{inside}"')
        return replace(
            source, inside=inside, read_only=source.read_only or bool(wanted.get("readOnly"))
        )

    def get(self, kind: str, name: str, optional: bool = False) -> Object:
        """An object of the pod's namespace, with the node's rights; an optional one that is absent
        is empty."""
        path = f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/{kind}/{name}"
        found = absent_is_none(lambda: self.kubelet.api.request("GET", path))
        if found is None and not optional:
            raise NotReady(f'{kind[:-1]} "{name}" not found')
        return found or {}

    def data(self, kind: str, source: Object) -> dict[str, bytes]:
        """Content of the ConfigMap or Secret that a source names; empty where it is optional and
        absent."""
        obj = self.get(
            f"{kind.lower()}s",
            source.get("secretName") or source["name"],
            source.get("optional", False),
        )
        plain = {
            k: base64.b64decode(v) if kind == "secret" else v.encode()
            for k, v in obj.get("data", {}).items()
        }
        return plain | {k: base64.b64decode(v) for k, v in obj.get("binaryData", {}).items()}

    def own_folder(self, name: str) -> Path:
        """The volume's folder in the pod's."""
        place = self.folder / "volumes" / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def contents(self, kind: str, place: Path, source: Object) -> dict[str, bytes]:
        """File names and contents of one source of a projection."""
        match kind:
            case "configMap" | "secret":
                return _chosen(self.data(kind, source), source, ABSENT_KEY[kind])
            case "downwardAPI":
                return {
                    i["path"]: field(self.pod, i["fieldRef"]["fieldPath"]).encode()
                    for i in source["items"]
                }
            case "serviceAccountToken":
                return {source["path"]: self._token(place / source["path"], source)}
        raise NotReady(f"the rehearsal does not project {kind}")

    def _token(self, file: Path, source: Object) -> bytes:
        """A token of the pod's service account, bound to the pod."""
        life = source["expirationSeconds"]
        if file.exists() and time.monotonic() < self._signed.get(file, 0) + TOKEN_AGE * life:
            return file.read_bytes()
        audiences = [source["audience"]] if source.get("audience") else []
        token = tokens.signed(self.kubelet.api, self.pod, seconds=life, audiences=audiences)
        self._signed[file] = time.monotonic()
        return token.encode()

    def secrets(self, name: str, csi: Object) -> dict[str, bytes] | None:
        """Files of a volume of secrets; None where those that are mounted need no comparison yet. Of a
        running pod the driver hides why it fetched nothing (kubernetes#121271)."""
        last = self._fetched.get(name)
        if last is not None:
            every = secrets_store.rotation(self.kubelet)
            if every is None or time.monotonic() < last + every:
                return None
        try:
            found = secrets_store.files(self.kubelet, self.pod, csi)
        except NotReady as refused:
            if last is None:
                raise
            self.kubelet.log(f"secrets of {self.pod['metadata']['name']}: {refused}")
            found = None
        self._fetched[name] = time.monotonic()
        return found


def _chosen(data: dict[str, bytes], source: Object, absent: str) -> dict[str, bytes]:
    """The keys that a source asks for, by the names it gives them."""
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not source.get("optional"):
        raise NotReady(f"{absent}: {missing[0]}")
    return {item["path"]: data[item["key"]] for item in items if item["key"] in data}


def projection(volumes: Volumes, name: str, volume: Object) -> Mount:
    """A folder with exactly the files of one source, or of several; unchanged files are not
    touched."""
    place, files = volumes.own_folder(name), dict[str, bytes]()
    for part in volume["projected"]["sources"] if "projected" in volume else [volume]:
        kind = next(k for k in part if k != "name")
        files |= volumes.contents(kind, place, part[kind])
    return _projected(place, files)


def _projected(place: Path, files: dict[str, bytes]) -> Mount:
    """Exactly these files in a folder."""
    for path, data in files.items():
        file = place / path
        if not file.exists() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = place / f".{file.name}.new"
            fresh.write_bytes(data)
            fresh.replace(file)
    for file in [
        f for f in place.rglob("*") if f.is_file() and str(f.relative_to(place)) not in files
    ]:
        file.unlink()
    return Mount(source=str(place), read_only=True)


def inline(volumes: Volumes, name: str, volume: Object) -> Mount:
    """A volume of a CSI driver that a pod describes itself: of the one for secrets. Its folder stands
    for memory."""
    place = volumes.own_folder(name)
    files = volumes.secrets(name, volume["csi"])
    return Mount(source=str(place), read_only=True) if files is None else _projected(place, files)


def empty_dir(volumes: Volumes, name: str, volume: Object) -> Mount:
    """A folder as old as the pod, or memory, which only one container may use: it is mounted inside
    its sandbox."""
    if volume["emptyDir"].get("medium") != "Memory":
        return Mount(source=str(volumes.own_folder(name)))
    users = [
        c
        for c in volumes.pod["spec"]["containers"]
        if any(m["name"] == name for m in c.get("volumeMounts", []))
    ]
    if len(users) > 1:
        raise NotReady("the rehearsal does not share a memory volume between containers")
    limit = volume["emptyDir"].get("sizeLimit")
    return Mount(size=str(int(quantity(limit))) if limit else HALF_OF_THE_MEMORY)


def host_path(volumes: Volumes, name: str, volume: Object) -> Mount:
    """A path of the node, which begins with what `nodes/ami` holds; made where its type says so."""
    path, kind = volume["hostPath"]["path"], volume["hostPath"].get("type") or ""
    host = volumes.kubelet.folder / "host"
    host.mkdir(exist_ok=True)
    make = kind in ("", "DirectoryOrCreate")
    fits, word = PATH_TYPES.get(kind.removesuffix("OrCreate"), (Path.is_socket, "socket file"))
    failed = f"hostPath type check failed: {path} is not a {word}"
    _open_beneath(host, path, failed, fits, make=make)
    return Mount(source=str(host), inside=path.strip("/"))


def _open_beneath(
    folder: Path,
    path: str,
    failed: str,
    fits: Callable[[Path], bool] = Path.exists,
    *,
    make: bool = True,
) -> None:
    """NotReady where the path is not there, or leaves the folder, or is nothing that fits. `make`:
    folders that are missing."""
    try:
        found = beneath(str(folder), path, make=make)
    except OSError as error:
        raise NotReady(f"{failed}: {error.strerror}") from None
    good = fits(Path(f"/proc/self/fd/{found}"))
    os.close(found)
    if not good:
        raise NotReady(failed)


def claim(volumes: Volumes, name: str, volume: Object) -> Mount:
    """A bound claim of a CSI volume."""
    wanted = volume["persistentVolumeClaim"]["claimName"]
    found = volumes.get("persistentvolumeclaims", wanted)
    if found["status"]["phase"] != "Bound":
        raise NotReady(f'persistentvolumeclaim "{wanted}" is not bound')
    bound = volumes.kubelet.api.request(
        "GET", f"/api/v1/persistentvolumes/{found['spec']['volumeName']}"
    )
    csi = bound["spec"].get("csi") or {"driver": "no CSI driver"}
    if csi["driver"] not in DRIVERS:
        raise NotReady(f"the rehearsal does not mount persistent volumes of {csi['driver']}")
    image, mount_of = DRIVERS[csi["driver"]]
    if not volumes.kubelet.has_daemon(image):
        raise NotReady(
            f"driver name {csi['driver']} not found in the list of registered CSI drivers"
        )
    try:
        shown = mount_of(volumes.kubelet, volumes.pod, bound["spec"])
    except AwsError as error:
        raise NotReady(str(error)) from None
    broken_stores.reached(volumes.kubelet.folder, Path(shown.source), csi["driver"])
    options = bound["spec"].get("mountOptions", ())
    return replace(shown, read_only=shown.read_only or bool({*options} & READ_ONLY))


SOURCES: dict[str, Callable[[Volumes, str, Object], Mount]] = {
    "configMap": projection,
    "secret": projection,
    "downwardAPI": projection,
    "projected": projection,
    "csi": inline,
    "emptyDir": empty_dir,
    "hostPath": host_path,
    "persistentVolumeClaim": claim,
}
