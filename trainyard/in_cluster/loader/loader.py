"""Loads data or weights into a directory of a store, before a job asks for GPUs.

A Job of Kubernetes runs it on a node without GPUs: components/jobs/loads.py. Its settings are its only
argument, as JSON: trainyard/derive/loads.py. It exits with 0 where the directory is whole, with REFUSED where
no further try can help, and with 1 where the next try of the Job goes on.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from place import Place, Refused, Whole
from sources import Broken, File, Source, git_id, source_of

REFUSED = 3
"""Exit code after which the Job tries no more."""
AT_ONCE = 8
"""Files that are loaded at once."""
TRIES = 4
"""Of a file, before this try of the Job is over."""
CHUNK = 1 << 20
SAY_SECONDS = 15.0


def say(text: str) -> None:
    print(text, flush=True)


def load(source: Source, place: Place, check: Mapping[str, Any], pause: float = 2.0) -> Whole:
    """The directory, whole. Raises Refused or Broken where it is not. `pause`: seconds before another try of
    a file."""
    with place.alone(say):
        before = place.whole()
        if before and place.still_there(before):
            checked(before, check)
            say(f"{place.folder} is whole already: {before.files} files, {before.bytes} bytes")
            return before
        word, files = place.begin(), source.files()
        all_of_it = sum(file.bytes for file in files)
        checked(Whole(place.source, len(files), all_of_it, ""), {**check, "sha256": None})
        place.keep(file.path for file in files)
        missing = [file for file in files if not _there(place, file)]
        _leave_room(place, missing)
        say(f"{place.source} {word}: {len(files) - len(missing)} of {len(files)} files are there")
        with _progress(place, len(files), all_of_it):
            _fetch_all(source, place, missing, pause)
        whole = place.end()
        checked(whole, check)
        place.close(whole)
        say(f"whole: {whole.files} files, {whole.bytes} bytes, sha256 {whole.sha256}")
        _name_fp8(place.folder)
        return whole


def checked(whole: Whole, check: Mapping[str, Any]) -> None:
    """Raises Refused where a directory is not what the stack file says."""
    for name in ("files", "bytes", "sha256"):
        said, found = check.get(name), getattr(whole, name)
        if said is not None and said != found:
            raise Refused(
                f"{whole.source} has {name} {found}, and the stack file says check.{name}: {said}."
                " Fix: find out which is right; nobody takes the directory for whole"
            )


def _there(place: Place, file: File) -> bool:
    have = place.have.get(file.path)
    return bool(
        have
        and have.bytes == file.bytes
        and have.sha256 == (file.sha256 or have.sha256)
        and have.etag in ("", file.etag)
    )


def _leave_room(place: Place, missing: list[File]) -> None:
    """Raises Refused where the store has no room for what is missing, beside what of it is there in parts."""
    parts = place.keep_parts((file.path, file.etag) for file in missing)
    needed = sum(max(0, file.bytes - parts.get(file.path, 0)) for file in missing)
    free = shutil.disk_usage(place.folder).free
    if needed > free:
        raise Refused(
            f"the store has {free / 1e9:,.1f} GB free, and {needed / 1e9:,.1f} GB are missing. Fix: make"
            " the store larger, or delete something from it"
        )


def _fetch_all(source: Source, place: Place, files: list[File], pause: float) -> None:
    """Load files, AT_ONCE at a time. Each thread takes the next file when it is free: a task for each of a
    million files would take gigabytes."""
    left = iter(files)  # of a list, so that threads can share it

    def work() -> None:
        try:
            for file in left:
                _fetch(source, place, file, pause)
        finally:
            deque(left, maxlen=0)  # after an error the other threads take no more

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for each in [pool.submit(work) for _ in range(AT_ONCE)]:
            each.result()


def _fetch(source: Source, place: Place, file: File, pause: float) -> None:
    """Load one file, and go on where an earlier try ended."""
    part = place.part(file.path, file.etag)
    for left in reversed(range(TRIES)):
        try:
            place.add(file.path, part, _read(source, file, part), file.etag)
            return
        except (Broken, OSError, http.client.HTTPException) as error:
            if not left:
                raise Broken(f"{file.path}: {error}") from None
            say(f"{file.path}: {error}; tries again")
            time.sleep(pause)


def _read(source: Source, file: File, part: Path) -> str:
    """Append what is missing of a file; returns its SHA-256, once it is what the source says it is."""
    offset = part.stat().st_size if part.exists() else 0
    if offset == file.bytes:
        opened, start = io.BytesIO(), offset
    else:
        opened, start = source.read(file, offset if offset < file.bytes else 0)
    ours, of_git = hashlib.sha256(), git_id(file.bytes)
    with opened, part.open("r+b" if start else "wb") as to:
        while block := to.read(CHUNK) if start else b"":
            ours.update(block)
            of_git.update(block)
        while block := opened.read(CHUNK):
            ours.update(block)
            of_git.update(block)
            to.write(block)
        size = to.tell()
        to.flush()
        os.fsync(to.fileno())
    if size < file.bytes:
        raise Broken(f"{size} of {file.bytes} bytes came")
    found = ours.hexdigest()
    if (
        size > file.bytes
        or found != (file.sha256 or found)
        or file.git not in ("", of_git.hexdigest())
    ):
        part.unlink()
        raise Broken(f"what came is not the file: {size} bytes, sha256 {found}")
    return found


class _progress:
    """Says from time to time how far a load is."""

    def __init__(self, place: Place, files: int, size: int) -> None:
        self._over, self._place, self._all = threading.Event(), place, (files, size)
        self._thread = threading.Thread(target=self._say, daemon=True)

    def _say(self) -> None:
        while not self._over.wait(SAY_SECONDS):
            have = [*self._place.have.values()]
            size = sum(each.bytes for each in have) + sum(map(_size, self._place.parts()))
            files, all_of_it = self._all
            say(
                f"{size / 1e9:,.1f} of {all_of_it / 1e9:,.1f} GB, {len(have)} of {files} files"
                f" ({size / max(all_of_it, 1):.0%})"
            )

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it is in its place by now
        return 0


def _name_fp8(folder: Path) -> None:
    """Say of weights in FP8 what a fine-tune meets."""
    try:
        said = json.loads((folder / "config.json").read_text())["quantization_config"]
        method = said["quant_method"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if method == "fp8":
        say(
            "the weights are FP8, for inference: transformers' Trainer refuses to train them. Load the"
            " repository in bf16, or FineGrainedFP8Config(dequantize=True) in the script"
        )


def main() -> int:
    """The exit code."""
    settings = json.loads(sys.argv[1])
    place = Place(Path(settings["to"]), settings["what"])
    try:
        load(source_of(settings["source"]), place, settings["check"])
    except Refused as error:
        say(f"refused: {error}")
        return REFUSED
    except (Broken, OSError, ValueError, KeyError, http.client.HTTPException) as error:
        say(f"this try is over: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
