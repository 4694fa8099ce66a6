"""Places that files are loaded from: a repository of Hugging Face at a commit, a prefix of an S3 bucket, a
directory of another store.

Sources: Hugging Face Hub API (huggingface.co/docs/hub/api, /api/models/<name>/tree/<commit> gives path, size,
and the SHA-256 of a file in LFS, in pages, as huggingface_hub 1.x asks for it in _snapshot_download.py and
utils/_pagination.py); S3 API reference, ListObjectsV2 and GetObject; Git, whose id of a file is the SHA-1 of
`blob <size>\\0` and the file. An answer to `Range` has the status 206 (RFC 9110).
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
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
BUSY = 429
"""Status of a server that has had too many requests (RFC 6585)."""
WINDOW, UNSAID = 300, 30
"""Seconds: for which Hugging Face counts requests (huggingface.co/docs/hub/rate-limits), so that no wait is longer, and
those of a wait that a server says nothing of."""
WAITS = 12
"""For one request in a row, at most: an hour."""
_RESET = re.compile(r"\bt\s*=\s*(\d+)")
"""Seconds until requests count anew, in a header `RateLimit` (huggingface_hub 1.2, utils/_http.py)."""
_NEXT = re.compile(r'<([^>]*)>\s*;\s*rel="?next\b')
"""Address of the next page, in a header `Link`."""


class Broken(Exception):
    """A server did not answer, or not as it should: another try may succeed."""


class Missing(Refused):
    """A server does not have what it was asked for."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a source."""

    path: str
    bytes: int
    sha256: str = ""
    git: str = ""
    """Its id in Git, where the source says no SHA-256."""
    etag: str = ""
    """Its version in S3, where it can be replaced at any moment."""


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


def wanted(files: Iterable[File], only: tuple[str, ...], where: str) -> list[File]:
    """The files that patterns choose, all where there are none. Raises Refused for a path that would leave
    the directory, and where no file is left."""
    found = [file for file in files if _is_chosen(file.path, only)]
    for file in found:
        parts = file.path.split("/")
        if not all(parts) or ".." in parts or "." in parts or parts[0].startswith(OWN):
            raise Refused(f"{where} has a file {file.path!r}, which has no place in a directory")
    if not found:
        like = f" like {', '.join(only)}" if only else ""
        raise Refused(f"{where} has no files{like}")
    return found


def _is_chosen(path: str, only: tuple[str, ...]) -> bool:
    return not only or any(fnmatch.fnmatchcase(path, each) for each in only)


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
        try:
            listed = [*self._tree()]
        except Missing:  # by a server that knows no trees, or no such repository
            listed = [*self._siblings()]
        return wanted(listed, self.only, str(self))

    def _tree(self) -> Iterator[File]:
        """Every file, page by page. Of the address of the next page the query alone is taken, so that the token
        goes to `endpoint` and to no other host."""
        query = "recursive=true"
        while query:
            answer = self._ask(f"api/{self.repository}/tree/{self.revision}?{query}", {})
            for said in json.load(answer):
                if said["type"] == "file":
                    yield _file(said["path"], said, said["oid"], "oid")
            then = _NEXT.search(answer.headers.get("Link", ""))
            query = urllib.parse.urlsplit(then[1]).query if then else ""

    def _siblings(self) -> Iterator[File]:
        """The list of files that Hugging Face cuts off where there are many (huggingface_hub#3122, #3565)."""
        path = f"api/{self.repository}/revision/{self.revision}?blobs=true"
        for said in json.load(self._ask(path, {})).get("siblings", ()):
            yield _file(said["rfilename"], said, said.get("blobId", ""), "sha256")

    def read(self, file: File, offset: int) -> tuple[IO[bytes], int]:
        repository = self.repository.removeprefix("models/")
        path = f"{repository}/resolve/{self.revision}/{urllib.parse.quote(file.path)}"
        answer = self._ask(path, {"Range": f"bytes={offset}-"} if offset else {})
        return answer, offset if answer.status == 206 else 0

    def _ask(
        self, path: str, headers: Mapping[str, str], waits: int = WAITS
    ) -> http.client.HTTPResponse:
        own = {"Authorization": f"Bearer {os.environ[TOKEN]}"} if os.environ.get(TOKEN) else {}
        request = urllib.request.Request(
            f"{self.endpoint.rstrip('/')}/{path}", headers={**headers, **own}
        )
        try:
            return _open(request)
        except urllib.error.HTTPError as error:
            if error.code != BUSY or not waits:
                raise self._refusal(error.code) from None
            time.sleep(_until_free(error.headers))
        return self._ask(path, headers, waits - 1)

    def _refusal(self, code: int) -> Exception:
        if code in (401, 403):
            how = "the token cannot read it" if os.environ.get(TOKEN) else "no token is named"
            return Refused(
                f"{self.endpoint} refuses {self} ({code}): {how}. Fix: accept the licence of the"
                " repository with the account of the token, and name its Secret in `token`"
            )
        if code == 404:
            return Missing(
                f"{self.endpoint} has no {self}. Fix: correct `repository` or `revision`"
            )
        return Broken(f"{self.endpoint} answers {code}")

    def __str__(self) -> str:
        return f"{self.repository} at {self.revision}"


def _until_free(headers: Message) -> int:
    """Seconds after which a server takes requests again, by its own word."""
    reset = _RESET.search(headers.get("RateLimit", ""))
    said = reset[1] if reset else headers.get("Retry-After", "")
    return min(int(said) + 1, WINDOW) if said.isdecimal() else UNSAID


def _file(path: str, said: Mapping[str, Any], git: str, sha256: str) -> File:
    """A file of Hugging Face. `sha256`: name of the field of a file in LFS that has its SHA-256."""
    large = said.get("lfs") or {}
    size = large.get("size", said.get("size", 0))
    return File(path, size, large.get(sha256, ""), git="" if large else git)


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
                    size, etag = int(each.findtext("Size", "0")), each.findtext("ETag", "")
                    yield File(path=key.removeprefix(self.prefix), bytes=size, etag=etag)
            token = page.findtext("NextContinuationToken", "")
            if not token:
                return

    def read(self, file: File, offset: int) -> tuple[IO[bytes], int]:
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        headers |= {"If-Match": file.etag} if file.etag else {}
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
        if error.code == 412:  # If-Match (S3 API reference, GetObject)
            return Broken("the object was replaced after it was listed")
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
        """Every file, also below links. Raises Refused for a link that leads nowhere, such as the absolute path that
        a store has in the pods of a job."""
        for at, folders, names in os.walk(self.folder, followlinks=True):
            for name in sorted([*folders, *names]):
                path = Path(at, name)
                own = str(path.relative_to(self.folder))
                if _leads_nowhere(path) and _is_chosen(own, self.only):
                    raise Refused(
                        f"{self.folder} has a link {own} to {path.readlink()}, which cannot be followed here."
                        " Fix: put in its place what it leads to, or name in `only` what is to be loaded"
                    )
                if not own.startswith(OWN) and path.is_file():
                    yield File(path=own, bytes=path.stat().st_size)
            folders[:] = sorted(name for name in folders if not _leads_nowhere(Path(at, name)))

    def read(self, file: File, offset: int) -> tuple[IO[bytes], int]:
        opened = (self.folder / file.path).open("rb")
        opened.seek(offset)
        return opened, offset

    def __str__(self) -> str:
        return str(self.folder)


def _leads_nowhere(path: Path) -> bool:
    """True for a link to nothing, or to a directory that it is in."""
    if not path.is_symlink():
        return False
    return not path.exists() or path.resolve() in {each.resolve() for each in path.parents}


def git_id(size: int) -> Any:
    """Hash of a file as Git counts it, before its bytes."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
