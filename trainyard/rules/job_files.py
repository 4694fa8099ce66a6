"""Errors of the files that a job brings from this checkout. The ConfigMap that they become:
trainyard/derive/job_files.py."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from trainyard.derive.job_files import CONFIG_MAP_BYTES
from trainyard.problems import FEW, At, InputError, few
from trainyard.settings.job import JobConfig
from trainyard.settings.reading.files import is_inside
from trainyard.settings.reading.secrets.secrets import ASSIGNED, Secret, hidden

SHELL = (".sh", ".bash")
FOLDER = "a folder"
NO_FILE = "list files in the folder of the stack file"
"""Rule of a source that is no file. What else is said of the job's files follows from it."""


def file_errors(path: str, job: JobConfig, folder: Path) -> Iterator[InputError]:
    """Every error of the files that a job brings."""
    if job.files is None:
        return
    path, names, size = f"{path}.files.sources", [Path(each).name for each in job.files.sources], 0
    elsewhere: dict[str, str] | None = None
    for source in job.files.sources:
        file = folder / source
        if not is_inside(folder, source):
            elsewhere = _by_name(folder) if elsewhere is None else elsewhere
            near = _meant(elsewhere, source) or "scripts/train.py"
            yield At(path).must(
                NO_FILE,
                got=f"{source[:80]}, which is {_what_is(file)}",
                fix=_files_of(folder, source) or f"write paths from that folder, such as {near}",
            )
            continue
        content = file.read_bytes()
        size += len(content)
        yield from _name_errors(path, source)
        yield from _content_errors(path, source, content)
    if size > CONFIG_MAP_BYTES:
        yield At(path).must(
            "have at most 1 MiB in all, as a ConfigMap takes",
            got=f"{size / CONFIG_MAP_BYTES:.1f} MiB",
            fix="put the files into the image (workloads/README.md) or into a store",
        )
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield At(path).must(
            "list each file name once, because the folders are left out in the container",
            got=name,
            fix="rename one of the two files",
        )


def _name_errors(path: str, source: str) -> Iterator[InputError]:
    """A name that no ConfigMap can have as a key (k8s.io/apimachinery, IsConfigMapKey)."""
    name = Path(source).name
    if not re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", name):
        sound = re.sub(r"[^-._a-zA-Z0-9]+", "_", name)[:253]
        yield At(path).must(
            "list files whose names have letters, digits, -, _ and . only, as the keys of a ConfigMap do",
            got=source,
            fix=f"rename the file to {sound}, also where the job runs it",
        )


def _content_errors(path: str, source: str, content: bytes) -> Iterator[InputError]:
    """Contents that no ConfigMap takes, or that bash does not read."""
    is_shell = Path(source).suffix in SHELL or content.startswith(b"#!")
    if not _is_text(content):
        yield At(path).must(
            "list text files",
            got=f"{source}, which is not UTF-8 text",
            fix="delete it, and put the file into the image or into a store",
        )
    elif kinds := [kind for kind in hidden(content.decode())[1] if kind != ASSIGNED]:
        yield At(path).must(
            "list files without a secret in clear",
            got=f"{source}, with {kinds[0]}, which is not shown",
            fix=Secret(path=(), kind=kinds[0]).fix,
        )
    elif is_shell and b"\r\n" in content:
        yield At(path).must(
            "list scripts with the line ends of Linux: bash takes the CR as part of each line's last word",
            got=f"{source}, whose lines end with CR LF",
            fix=f"change the file: perl -pi -e 's/\\r$//' {shlex.quote(source)}",
        )


def _what_is(file: Path) -> str:
    """Words for what stands where a file of the checkout should be."""
    try:
        if file.is_dir():
            return FOLDER
        return "outside it" if file.is_file() else "not there"
    except OSError:
        return "not there"


def _files_of(folder: Path, source: str) -> str:
    """Fix for a folder of the checkout: the files in it, or the first few of many. Empty where it is none."""
    place = folder / source
    if _what_is(place) != FOLDER or folder.resolve() not in place.resolve().parents:
        return ""
    found = [
        str(each.relative_to(folder))
        for each in sorted(place.rglob("*"))
        if each.is_file() and not {*each.parts} & {"__pycache__", ".git"}
    ]
    if not found:
        return f"put files into {source}, and write their paths"
    said = few(found)
    return (
        f"write the files in it: [{said}]"
        if len(found) <= FEW
        else f"write those of its files that the job needs: {said}"
    )


def _meant(files: dict[str, str], source: str) -> str:
    """Path of the file of this name, or of the one whose name is nearest to it; empty where none is near."""
    near = get_close_matches(Path(source).name, files, n=1, cutoff=0.8)
    return files[near[0]] if near else ""


def _by_name(folder: Path) -> dict[str, str]:
    """Name of each file in the folders that jobs bring files from, and of each script in the project's own → its
    path."""
    places = [folder / "scripts", folder / "workloads"]
    files = [file for place in places for file in sorted(place.rglob("*")) if file.is_file()]
    files += [file for file in sorted(folder.glob("*.py")) if file.name != "__main__.py"]
    return {file.name: str(file.relative_to(folder)) for file in reversed(files)}


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False
