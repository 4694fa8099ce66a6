"""Results for the volumes that the training container of a job mounts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from trainyard.catalog.aws.node_disks import ON_NVME
from trainyard.catalog.quantities import amount
from trainyard.derive.jobs import CHECKPOINTS
from trainyard.derive.scripts import saved_in
from trainyard.manifests.document import Container, Pod, Workload, items, look, mapping
from trainyard.migrate.result import Migration, setting_name

SHARED_MEMORY_BYTES = 2**36
"""For a volume in memory without a sizeLimit."""


class Volumes:
    """The volumes that the training container mounts: claims become stores, ConfigMaps files, and
    folders of the node host_paths. A directory for checkpoints on a claim becomes `checkpoints`."""

    def __init__(
        self,
        migration: Migration,
        pod: Pod,
        container: Container,
        config_maps: Mapping[str, Workload],
    ) -> None:
        self.migration, self.entry = migration, migration.entry
        self.container, self.config_maps = container, config_maps
        named = ((volume.get("name"), volume) for volume in items(pod.spec.get("volumes")))
        self.volumes = {name: volume for name, volume in named if name}
        self.stores: dict[str, str] = {}
        """Store → where it is mounted."""

    def migrate(self) -> None:
        for mount in items(self.container.body.get("volumeMounts")):
            path = str(mount.get("mountPath")).rstrip("/")
            volume = self.volumes.get(mount.get("name"), {})
            if not (
                self._store(volume, path, mount)
                or self._empty_dir(volume, path)
                or self._host_path(volume, path, mount)
                or self._files(volume, path, mount)
            ):
                kinds = ", ".join({*volume} - {"name"}) or "no volume"
                self.migration.no_counterpart.append(
                    f"{path}: {kinds}: put its files into the image or a store"
                )
        mounted = {name: {"path": path} for name, path in self.stores.items()}
        if store := self._checkpoints():
            del mounted[store]
        self.entry |= {"storage": mounted} if mounted else {}

    def _store(self, volume: Mapping[str, Any], path: str, mount: Mapping[str, Any]) -> bool:
        claim = look(volume, "persistentVolumeClaim", "claimName")
        if not claim:
            return False
        store = setting_name(re.sub(r"-(pvc|claim)$", "", str(claim)))
        if store not in self.stores:
            self.stores[store] = path
            self.migration.changed.append(
                f"storage: claim {claim} is now store {store}; name a store of your stack and copy"
                " the data"
            )
        elif self.stores[store] != path:
            first, below = self.stores[store], str(mount.get("subPath") or "")
            self.migration.no_counterpart.append(
                f"{path}: a second mount of claim {claim}: a store is mounted once; in the script,"
                f" ln -sfn {first}{'/' if below else ''}{below} {path}"
            )
        return True

    def _empty_dir(self, volume: Mapping[str, Any], path: str) -> bool:
        """Shared memory, and the first other folder that is empty at the start."""
        empty_dir = look(volume, "emptyDir")
        if path == "/dev/shm" or look(empty_dir, "medium") == "Memory":
            self._shared_memory(volume, path)
            return True
        if empty_dir is None or "local_scratch" in self.entry:
            return False
        self.entry["local_scratch"] = path
        return True

    def _shared_memory(self, volume: Mapping[str, Any], path: str) -> None:
        written = look(volume, "emptyDir", "sizeLimit")
        size = amount(written) or SHARED_MEMORY_BYTES
        if "shared_memory_gib" in self.entry:
            self.migration.no_counterpart.append(
                f"{path}: {written or 'no sizeLimit'}: a second volume in memory; use /dev/shm, and add"
                " its size to shared_memory_gib"
            )
            return
        self.entry["shared_memory_gib"] = math.ceil(size / 2**30)
        if path != "/dev/shm":
            self.migration.changed.append(f"shared_memory_gib: the memory at {path} is /dev/shm")
        if host := look(volume, "hostPath", "path"):
            self.migration.changed.append(
                f"shared_memory_gib: /dev/shm of the pod, no longer {host} of the node"
            )

    def _host_path(self, volume: Mapping[str, Any], path: str, mount: Mapping[str, Any]) -> bool:
        """A folder that pods write on the node's NVMe is `local_scratch`; any other is read-only."""
        host = look(volume, "hostPath", "path")
        if not host:
            return False
        is_written = not mount.get("readOnly")
        if is_written and ON_NVME.search(str(host)) and "local_scratch" not in self.entry:
            self.entry["local_scratch"] = path
            self.migration.changed.append(
                f"local_scratch: {host} of the node is now a folder of the pod on the node's NVMe at"
                f" {path}; its files are deleted with the pod"
            )
            return True
        folders = self.entry.setdefault("host_paths", {})
        name = wanted = setting_name(str(volume["name"]))
        while name in folders:
            name = f"{wanted}-{len(folders) + 1}"
        folders[name] = {"host": host, "path": path}
        self.migration.changed.append(
            f"host_paths.{name}: {path} is read-only, and the namespace of the job then admits pods"
            " that Pod Security's baseline level refuses"
            + (
                "; for files that the job writes, use local_scratch or a store"
                if is_written
                else ""
            )
        )
        return True

    def _files(self, volume: Mapping[str, Any], path: str, mount: Mapping[str, Any]) -> bool:
        """The first ConfigMap: all of it, or the key that a subPath names."""
        name = look(volume, "configMap", "name")
        if not name or "files" in self.entry:
            return False
        key = str(mount.get("subPath") or "")
        folder, _, file = path.rpartition("/") if key else (path, "", "")
        folder = folder or "/"
        if keys := self._keys(str(name), volume, folder, [key] if key else []):
            self.entry["files"] = {"sources": keys, "path": folder}
        else:
            self.migration.no_counterpart.append(
                f"{path}: no file names the keys of ConfigMap {name}; write them to files of the"
                f" checkout, and name these in files: {{sources: [file], path: {folder}}}"
            )
        if file != key:
            self.migration.changed.append(
                f"files: {key} has its own name in {folder}; in the script, ln -sfn {key} {path}"
            )
        return True

    def _keys(
        self, name: str, volume: Mapping[str, Any], folder: str, keys: list[str]
    ) -> list[str]:
        """The keys of a ConfigMap: those that are given or that the volume lists, else those of the
        ConfigMap in the files, else the names of the files that the script runs from the folder of the
        mount."""
        config_map = self.config_maps.get(name)
        listed = {
            str(item.get("path")): str(item.get("key"))
            for item in items(look(volume, "configMap", "items"))
        }
        keys = [listed.get(key, key) for key in keys] or [*listed.values()]
        keys = keys or [*mapping(config_map.get("data") if config_map else None)]
        is_known = bool(keys)
        below = rf"(?<![\w.-]){re.escape(folder)}/([\w.-]+\.\w+)"
        keys = keys or [*dict.fromkeys(re.findall(below, self.container.script))]
        for key in keys:
            source = (
                config_map.where("data", key)
                if config_map
                else f"kubectl get configmap {name} -o yaml"
            )
            guess = "" if is_known else "; no file names its keys, so this one is a guess"
            self.migration.changed.append(f"files: write {key} from {source}{guess}")
        return keys

    def _checkpoints(self) -> str | None:
        """The store that `checkpoints` alone mounts where the script saves, at /checkpoints. Any other store is
        mounted whole, so that the paths of the script stay those of its files."""
        saves = saved_in(self.container.script)
        if not saves:
            return None
        paths = self.stores.items()
        store = next((name for name, path in paths if f"{saves[0]}/".startswith(f"{path}/")), None)
        if not store:
            return None
        below = saves[0][len(self.stores[store]) :].strip("/")
        directory = below or self.migration.name
        self.entry["checkpoints"] = {"store": store, "directory": directory}
        alone = saves[0] == CHECKPOINTS
        said = "CHECKPOINT_DIR in the script names it too"
        if not below and not alone:
            said = f"write $CHECKPOINT_DIR for {saves[0]} in the script, which is the whole store"
        self.migration.changed.append(f"checkpoints: {directory} of store {store}; {said}")
        if self.entry["runtime"] == "torch-distributed":
            self.entry["runtime"] = "torch-distributed-resilient"
            self.migration.changed.append(
                "runtime: torch-distributed-resilient stands for a runtime of your own_runtimes with"
                " max_restarts, which starts all ranks again from the checkpoint"
            )
        return store if alone else None
