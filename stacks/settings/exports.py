"""Where the other environments of the checkout export files to."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stacks.settings.reader import read_file


def other_exports(stack: str, folder: Path) -> dict[str, tuple[str, ...]]:
    """Name of each other stack → S3 prefixes that its file systems export to. A stack file with errors
    may be missing: they are its own business."""
    found = {
        file.name.removeprefix("Pulumi.").removesuffix(".yaml"): _exports(
            file, file.stat().st_mtime_ns
        )
        for file in sorted(folder.glob("Pulumi.*.yaml"))
        if file.name != f"Pulumi.{stack}.yaml"
    }
    return {name: prefixes for name, prefixes in found.items() if prefixes}


@cache
def _exports(file: Path, changed: int) -> tuple[str, ...]:
    """Those of a stack file, which was last changed then."""
    if b"auto_export" not in file.read_bytes():
        return ()
    config = read_file(file.name.removeprefix("Pulumi.").removesuffix(".yaml"), file.parent).config
    stores = config.environment.storage.values() if config and config.environment else ()
    return tuple(
        link.s3
        for store in stores
        for link in (store.lustre.repositories.values() if store.lustre else ())
        if link.auto_export
    )
