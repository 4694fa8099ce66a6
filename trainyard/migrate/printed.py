"""Output of `trainyard migrate` about a job, and whether a value of the file is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainyard.catalog.scalars import as_file
from trainyard.manifests.document import Path, Workload, items, look
from trainyard.migrate.migrated import Migration


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The entry of a job, and the sentences about it."""

    entry: Mapping[str, Any]
    sentences: tuple[str, ...]

    @cached_property
    def _text(self) -> str:
        return "\n".join([as_file(dict(self.entry), width=10**6), *self.sentences])

    def has(self, workload: Workload, path: Path) -> bool:
        """True where the value at a path of an object is printed, as what it is there."""
        value = workload.get(*path)
        if path[:2] == ("metadata", "labels"):
            return look(self.entry, "labels", str(path[2])) == str(value)
        if "env" in path:
            return self._has_variable(workload, path)
        if "imagePullSecrets" in path:
            return str(value) in self.entry.get("pull_secrets", [])
        if "volumes" in path and path[-1] in ("emptyDir", "medium", "sizeLimit"):
            return self._is_mounted(workload, path)
        if value == "/dev/shm" and "shared_memory_gib" in self.entry:
            return True
        if path[-1] in ("mountPath", "path") and str(value).rstrip("/") == "/checkpoints":
            return "checkpoints" in self.entry or self._names("/checkpoints")
        return self._names(str(value).rstrip("/") if str(value) != "/" else "/")

    def _names(self, text: str) -> bool:
        """True where a word, such as a path or the name of an image, is printed as a whole."""
        return bool(re.search(rf"(?<![\w./-]){re.escape(text)}(?![\w/-])", self._text))

    def _has_variable(self, workload: Workload, path: Path) -> bool:
        """True where the variable is in the entry with this value, or has a sentence of its own."""
        start = path.index("env") + 2
        variable = look(workload.body, *path[:start])
        name = str(look(variable, "name"))
        if any(sentence.startswith(f"env.{name}:") for sentence in self.sentences):
            return True
        secret = look(variable, "valueFrom", "secretKeyRef")
        if secret:
            given = look(self.entry, "secrets", name)
            return given == {"secret": secret.get("name"), "key": secret.get("key")}
        return look(self.entry, "env", name) == str(look(variable, "value") or "")

    def _is_mounted(self, workload: Workload, path: Path) -> bool:
        """True where the folder of a volume is printed: where a container of its pod mounts it."""
        start = path.index("volumes")
        name = look(workload.body, *path[: start + 2], "name")
        mounts = [
            mount
            for container in items(look(workload.body, *path[:start], "containers"))
            for mount in items(container.get("volumeMounts"))
            if mount.get("name") == name
        ]
        paths = {str(mount.get("mountPath")).rstrip("/") for mount in mounts}
        is_shared_memory = "/dev/shm" in paths and "shared_memory_gib" in self.entry
        return is_shared_memory or any(map(self._names, paths))


def printed(migration: Migration) -> Printed:
    """Output about a migration."""
    return Printed(entry=migration.entry, sentences=(*migration.changed, *migration.no_counterpart))
