"""The directory that a source is loaded into, and the two files in it that say how far it is.

LOADING begins with the source, and has a line for each file that is there. WHOLE is written last: without
it nobody may take the directory for whole. Both are written so that a kill at any moment leaves a
directory which the next load goes on with, or begins afresh.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

OWN = ".trainyard-"
"""Beginning of the names of all files that are the loader's own."""
WHOLE, LOADING, PARTS, LOCK = f"{OWN}whole", f"{OWN}loading", f"{OWN}parts", f"{OWN}lock"


class Refused(Exception):
    """No further try can load it; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Have:
    """A file that is in the directory."""

    bytes: int
    sha256: str
    etag: str = ""
    """Its version in S3; empty where the source has none, or an earlier release loaded it."""


@dataclass(frozen=True)
class Whole:
    """A directory into which a source is loaded as a whole."""

    source: str
    files: int
    bytes: int
    sha256: str


@dataclass
class Place:
    """A directory of a store."""

    folder: Path
    source: str
    """The source, as one line: another source needs another directory."""
    have: dict[str, Have] = field(default_factory=dict)
    """Path of each file that is there → what is known of it."""

    @contextlib.contextmanager
    def alone(self, say: Callable[[str], object]) -> Iterator[None]:
        """The directory, made where it is missing, with no other loader in it. Waits for another one, and says
        so, if the file system knows locks."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / LOCK).open("w") as lock:
            with contextlib.suppress(OSError):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    say(f"waits for the end of another load into {self.folder}")
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def whole(self) -> Whole | None:
        """The end of an earlier load; None where there is none. Raises Refused for one of another source."""
        said = _json((self.folder / WHOLE).read_text()) if (self.folder / WHOLE).exists() else None
        if said is None:
            return None
        found = Whole(**{name: said.get(name) for name in ("source", "files", "bytes", "sha256")})
        if found.source != self.source:
            raise Refused(
                f"the directory already has {found.source}, as a whole, which jobs may read."
                " Fix: write another `directory` for this source"
            )
        return found

    def begin(self) -> str:
        """Go on with what an earlier load left, or begin afresh; returns a word about it. Raises Refused where
        the directory has files that no load wrote."""
        (self.folder / WHOLE).unlink(missing_ok=True)
        lines = self._lines()
        before = (_json(next(lines, "")) or {}).get("source")
        self.have = dict(self._there(lines)) if before == self.source else {}
        lines.close()
        if before is None and (strange := self._strange()):
            raise Refused(
                f"the directory has {strange}, which no load wrote. Fix: write a `directory` that is"
                " empty or that does not exist"
            )
        if before not in (None, self.source):
            for each in self.folder.iterdir():
                if each.name != LOCK:
                    shutil.rmtree(each) if each.is_dir() else each.unlink()
        known = (json.dumps({"path": name, **asdict(each)}) for name, each in self.have.items())
        self._write(LOADING, chain([json.dumps({"source": self.source})], known))
        (self.folder / PARTS).mkdir(exist_ok=True)
        return (
            "goes on" if before == self.source else "begins" if before is None else "begins afresh"
        )

    def _lines(self) -> Generator[str, None, None]:
        """Lines of LOADING, one after the other: a million files have 200 MB of them."""
        with (
            contextlib.suppress(FileNotFoundError),
            (self.folder / LOADING).open(errors="replace") as file,
        ):
            yield from file

    def _strange(self) -> str | None:
        others = (each.name for each in self.folder.iterdir() if not each.name.startswith(OWN))
        return next(others, None)

    def _there(self, lines: Iterable[str]) -> Iterator[tuple[str, Have]]:
        """Files of an earlier load that are there with their size. The last line can be half of one."""
        for said in filter(None, map(_json, lines)):
            path = self.folder / said["path"]
            if path.is_file() and path.stat().st_size == said["bytes"]:
                yield said["path"], Have(said["bytes"], said["sha256"], said.get("etag", ""))

    def part(self, name: str, etag: str = "") -> Path:
        """Where a file is while it is loaded. Another version of it is another part."""
        return self.folder / PARTS / hashlib.sha256(f"{name}{etag}".encode()).hexdigest()[:32]

    def parts(self) -> list[Path]:
        """Files that are being loaded."""
        return list((self.folder / PARTS).iterdir())

    def keep_parts(self, files: Iterable[tuple[str, str]]) -> dict[str, int]:
        """Delete the parts of all other files; path of a file → bytes of its part. `files`: path and version."""
        there, found = {part.name: part for part in self.parts()}, dict[str, int]()
        for name, etag in files if there else ():
            if part := there.pop(self.part(name, etag).name, None):
                found[name] = part.stat().st_size
        for part in there.values():
            part.unlink()
        return found

    def add(self, name: str, part: Path, sha256: str, etag: str) -> None:
        """Put a loaded file in its place, and write that it is there."""
        path, size = self.folder / name, part.stat().st_size
        path.parent.mkdir(parents=True, exist_ok=True)
        part.replace(path)
        self.have[name] = Have(size, sha256, etag)
        line = json.dumps({"path": name, **asdict(self.have[name])})
        with (self.folder / LOADING).open("a") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    def keep(self, files: Iterable[str]) -> None:
        """Delete what an earlier load left of files that the source no longer has."""
        for name in self.have.keys() - {*files}:
            (self.folder / name).unlink()
            del self.have[name]

    def end(self) -> Whole:
        """What the directory has, once every file is there."""
        return Whole(
            source=self.source,
            files=len(self.have),
            bytes=sum(each.bytes for each in self.have.values()),
            sha256=checksum({name: each.sha256 for name, each in self.have.items()}),
        )

    def still_there(self, whole: Whole) -> bool:
        """True where every file of an earlier load has its size."""
        self.have = dict(self._there(islice(self._lines(), 1, None)))
        return self.end() == whole

    def close(self, whole: Whole) -> None:
        """Write that the directory is whole: the last thing that a load does."""
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)
        self._write(WHOLE, [json.dumps(asdict(whole))])

    def _write(self, name: str, lines: Iterable[str]) -> None:
        """Write a file in one step."""
        beside = self.folder / f"{name}.new"
        with beside.open("w") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.folder / name)


def checksum(files: Mapping[str, str]) -> str:
    """SHA-256 of a directory: of the lines that `sha256sum` prints of its files, sorted by their path.
    `files`: path → SHA-256."""
    whole = hashlib.sha256()
    for name in sorted(files, key=str.encode):
        whole.update(f"{files[name]}  {name}\n".encode())
    return whole.hexdigest()


def _json(line: str) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
