"""Places that files are loaded from: a repository of Hugging Face at a commit, a prefix of an S3 bucket, a
directory of another store.

Sources: Hugging Face Hub API (huggingface.co/docs/hub/api, /api/models/<name>/revision/<commit>?blobs=true
gives path, size, and the SHA-256 of a file in LFS); S3 API reference, ListObjectsV2 and GetObject; Git, whose
id of a file is the SHA-1 of `blob <size>\\0` and the file. An answer to `Range` has the status 206 (RFC 9110).
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol
from xml.etree import ElementTree

from place import OWN, Refused
from query import credentials
from signed_get import signed_get

SECONDS = 60
"""For which a server may say nothing."""
TOKEN = "HF_TOKEN"
"""Variable with the token of Hugging Face."""


class Broken(Exception):
    """A server did not answer, or not as it should: another try may succeed."""


@dataclass(frozen=True)
class File:
    """A file of a source."""

    path: str
    bytes: int
    sha256: str = ""
    git: str = ""
    """Its id in Git, where the source says no SHA-256."""


class Source(Protocol):
    """A place with files."""

    def files(self) -> list[File]:
        """Every file that is wanted."""
        ...

    def read(self, file: File, offset: int) -> tuple[IO[bytes], int]:
        """The file, and the byte with which it begins: `offset`, or 0 where the server cannot."""
        ...


def source_of(settings: Mapping[str, Any]) -> Source:
    """The source that settings name."""
    only = tuple(settings.get("only", ()))
    if settings["kind"] == "huggingface":
        return Hub(settings["endpoint"], settings["repository"], settings["revision"], only)
    if settings["kind"] == "s3":
        return Bucket(settings["bucket"], settings["prefix"], settings["region"], only)
    return Directory(Path(settings["path"]), only)


def wanted(files: Iterator[File], only: tuple[str, ...], where: str) -> list[File]:
    """The files that patterns choose, all where there are none. Raises Refused for a path that would leave
    the directory, and where no file is left."""
    found = [
        file
        for file in files
        if not only or any(fnmatch.fnmatchcase(file.path, each) for each in only)
    ]
    for file in found:
        parts = file.path.split("/")
        if not all(parts) or ".." in parts or "." in parts or parts[0].startswith(OWN):
            raise Refused(f"{where} has a file {file.path!r}, which has no place in a directory")
    if not found:
        like = f" like {', '.join(only)}" if only else ""
        raise Refused(f"{where} has no files{like}")
    return found


class Plain(urllib.request.HTTPRedirectHandler):
    """Follows to another host without the token, which is none of its business."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        then = super().redirect_request(req, fp, code, msg, headers, newurl)
        if (
            then
            and urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc
        ):
            then.remove_header("Authorization")
        return then


_OPENER = urllib.request.build_opener(Plain)


def _open(request: urllib.request.Request) -> http.client.HTTPResponse:
    try:
        return _OPENER.open(request, timeout=SECONDS)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise Broken(f"{urllib.parse.urlsplit(request.full_url).netloc}: {error!r}") from None


@dataclass(frozen=True)
class Hub:
    """A repository of Hugging Face, or of a server with its API."""

    endpoint: str
    repository: str
    """models/<owner>/<name> or datasets/<owner>/<name>."""
    revision: str
    only: tuple[str, ...]

    def files(self) -> list[File]:
        said = json.load(
            self._ask(f"api/{self.repository}/revision/{self.revision}?blobs=true", {})
        )
        listed = (self._file(each) for each in said.get("siblings", ()))
        return wanted(listed, self.only, str(self))

    def _file(self, said: Mapping[str, Any]) -> File:
        large = said.get("lfs") or {}
        return File(
            path=said["rfilename"],
            bytes=large.get("size", said.get("size", 0)),
            sha256=large.get("sha256", ""),
            git="" if large else said.get("blobId", ""),
        )

    def read(self, file: File, offset: int) -> tuple[IO[bytes], int]:
        repository = self.repository.removeprefix("models/")
        path = f"{repository}/resolve/{self.revision}/{urllib.parse.quote(file.path)}"
        answer = self._ask(path, {"Range": f"bytes={offset}-"} if offset else {})
        return answer, offset if answer.status == 206 else 0

    def _ask(self, path: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        own = {"Authorization": f"Bearer {os.environ[TOKEN]}"} if os.environ.get(TOKEN) else {}
        request = urllib.request.Request(
            f"{self.endpoint.rstrip('/')}/{path}", headers={**headers, **own}
        )
        try:
            return _open(request)
        except urllib.error.HTTPError as error:
            raise self._refusal(error.code) from None

    def _refusal(self, code: int) -> Exception:
        if code in (401, 403):
            how = "the token cannot read it" if os.environ.get(TOKEN) else "no token is named"
            return Refused(
                f"{self.endpoint} refuses {self} ({code}): {how}. Fix: accept the licence of the"
                " repository with the account of the token, and name its Secret in `token`"
            )
        if code == 404:
            return Refused(
                f"{self.endpoint} has no {self}. Fix: correct `repository` or `revision`"
            )
        return Broken(f"{self.endpoint} answers {code}")

    def __str__(self) -> str:
        return f"{self.repository} at {self.revision}"


@dataclass(frozen=True)
class Bucket:
    """A prefix of an S3 bucket."""

    bucket: str
    prefix: str
    region: str
    only: tuple[str, ...]

    def files(self) -> list[File]:
        return wanted(self._listed(), self.only, str(self))

    def _listed(self) -> Iterator[File]:
        token = ""
        while True:
            query = {"list-type": "2", "prefix": self.prefix}
            answer = self._ask("", query | ({"continuation-token": token} if token else {}), {})
            try:
                page = ElementTree.fromstring(answer.read())
            except ElementTree.ParseError as error:
                raise Broken(f"S3 answers no XML: {error}") from None
            for each in page.iter():
                each.tag = each.tag.rpartition("}")[2]
            for each in page.iter("Contents"):
                key = each.findtext("Key", "")
                if not key.endswith("/"):  # a folder that the console has made
                    size = int(each.findtext("Size", "0"))
                    yield File(path=key.removeprefix(self.prefix), bytes=size)
            token = page.findtext("NextContinuationToken", "")
            if not token:
                return

    def read(self, file: File, offset: int) -> tuple[IO[bytes], int]:
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        answer = self._ask(f"{self.prefix}{file.path}", {}, headers)
        return answer, offset if answer.status == 206 else 0

    def _ask(
        self, key: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        server = os.environ.get("AWS_ENDPOINT_URL") or f"https://s3.{self.region}.amazonaws.com"
        try:
            who = credentials()
        except (OSError, KeyError, ValueError) as error:
            raise Broken(f"the pod has no identity in AWS: {error!r}") from None
        path = f"{self.bucket}/{key}" if key else self.bucket
        url, signed = signed_get(server, path, query, self.region, who)
        try:
            return _open(urllib.request.Request(url, headers={**headers, **signed}))
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        region = error.headers.get("x-amz-bucket-region") or self.region
        if error.code in (301, 307, 400) and region != self.region:
            return Refused(
                f"bucket {self.bucket} is in {region}, and the stack in {self.region}: each GB between"
                f" regions is paid. Fix: copy it to a bucket in {self.region}, and name that one"
            )
        if error.code == 404:
            return Refused(f"S3 has no bucket {self.bucket}. Fix: correct `from_s3.address`")
        # A role's new policy counts some seconds later: a refusal may end.
        return Broken(f"S3 answers {error.code} for {self}: {error.read()[:300]!r}")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"


@dataclass(frozen=True)
class Directory:
    """A directory of another store."""

    folder: Path
    only: tuple[str, ...]

    def files(self) -> list[File]:
        if not self.folder.is_dir():
            raise Refused(
                f"there is no directory {self.folder}. Fix: correct `from_store.directory`"
            )
        return wanted(self._listed(), self.only, str(self))

    def _listed(self) -> Iterator[File]:
        for at, folders, names in os.walk(self.folder):
            folders.sort()
            for name in sorted(names):
                path = Path(at, name)
                own = str(path.relative_to(self.folder))
                if not own.startswith(OWN) and path.is_file():
                    yield File(path=own, bytes=path.stat().st_size)

    def read(self, file: File, offset: int) -> tuple[IO[bytes], int]:
        opened = (self.folder / file.path).open("rb")
        opened.seek(offset)
        return opened, offset

    def __str__(self) -> str:
        return str(self.folder)


def git_id(size: int) -> Any:
    """Hash of a file as Git counts it, before its bytes."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
