"""Errors about links to S3 that let one file system overwrite what another one saves.

Refusals of FSx for a single store: lustre_repositories.py. FSx resolves no conflict: of a
file that both sides change, either may win (FSx for Lustre user guide, autoimport-data-repo-dra), and
an export overwrites the object that is there (autoexport-data-repo-dra).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from trainyard.problems import At, InputError
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.reading.reader import read_file, stack_files
from trainyard.stores.lustre_repositories import overlap


def export_errors(stack: str, wanted: EnvironmentConfig, folder: Path) -> Iterator[InputError]:
    """Prefixes to which another store, or another environment of the checkout, exports, too."""
    exported = [
        (name, key, link.s3)
        for name, store in wanted.storage.items()
        for key, link in (store.lustre.repositories.items() if store.lustre else ())
        if link.auto_export
    ]
    yield from _within(exported)
    others = other_exports(stack, folder) if exported else {}
    for name, key, prefix in exported:
        for other, theirs in others.items():
            if taken := next((each for each in theirs if overlap(prefix, each)), None):
                yield _shared(name, key, prefix, taken, f"stack {other}")


def _within(exported: Sequence[tuple[str, str, str]]) -> Iterator[InputError]:
    """Prefixes of two stores. Those below a prefix stand behind it in their order, so each is compared with one.
    `exported`: store, repository and prefix."""
    first: tuple[str, str, str] | None = None
    for each in sorted(exported, key=lambda export: f"{export[2].rstrip('/')}/"):
        if first is None or not overlap(first[2], each[2]):
            first = each
        elif first[0] != each[0]:  # FSx refuses those of one store
            yield _shared(*each, first[2], f"repository {first[1]} of store {first[0]}")


def _shared(name: str, key: str, prefix: str, taken: str, other: str) -> InputError:
    return At(f"environment.storage.{name}.lustre.repositories.{key}.s3").must(
        f"not overlap with {taken}, which {other} exports to: files of the one would replace those of the other",
        got=prefix,
        fix="write a prefix of its own, or delete auto_export",
    )


def import_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Checkpoints in a directory to which changes come from S3, and from which none go there."""
    store = environment.storage.get(job.checkpoints.store) if job.checkpoints else None
    if job.checkpoints is None or store is None or store.lustre is None:
        return
    saved = f"/{job.in_run(job.checkpoints.directory)}"
    for name, link in store.lustre.repositories.items():
        if link.auto_import and not link.auto_export and overlap(saved, link.path):
            yield At(f"{path}.checkpoints.directory").must(
                f"not be in {link.path}, the path of repository {name}: changes in {link.s3} replace and delete"
                " checkpoints there",
                got=job.checkpoints.directory,
                fix=f"write {_other_place(link.path)}, or write auto_import: [] in environment.storage."
                f"{job.checkpoints.store}.lustre.repositories.{name}, which then imports once",
            )


def _other_place(path: str) -> str:
    """Words for a place outside of a path; the whole store has none."""
    return "another directory" if path.strip("/") else "another path for the repository"


def other_exports(stack: str, folder: Path) -> dict[str, tuple[str, ...]]:
    """Name of each other stack → S3 prefixes that its file systems export to. A stack file with errors
    may be missing: they are its own business."""
    found = {
        name: _exports(name, file, file.stat().st_mtime_ns)
        for name, file in stack_files(folder).items()
        if name != stack
    }
    return {name: prefixes for name, prefixes in found.items() if prefixes}


@cache
def _exports(name: str, file: Path, changed: int) -> tuple[str, ...]:
    """Exports of a stack file that was last changed at `changed`."""
    if b"auto_export" not in file.read_bytes():
        return ()
    config = read_file(name, file.parent).config
    stores = config.environment.storage.values() if config and config.environment else ()
    return tuple(
        link.s3
        for store in stores
        for link in (store.lustre.repositories.values() if store.lustre else ())
        if link.auto_export
    )
