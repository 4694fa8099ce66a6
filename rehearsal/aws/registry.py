"""ECR's registry: the distribution API that podman, docker and crane push to
(github.com/opencontainers/distribution-spec, spec.md), on the address of the account.

Blobs are files of the rehearsal's state. Manifests are images of moto's ECR, so the API and nodes see
what was pushed. As on ECR the repository must exist, the caller's role must allow each step, and a
tag of an immutable repository stays.
https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-push-iam.html
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from moto.core.exceptions import ServiceException

from rehearsal import paths
from rehearsal.aws import backends, principals
from rehearsal.aws.operations import LOCK, Call, Fields, Principal, Refused, answers
from rehearsal.aws.policies import Ask
from rehearsal.aws.wire import Environ, Reply

PREFIX = "/v2/"
TOKEN_HOURS = 12
"""ECR API reference, GetAuthorizationToken."""
PIECE = 1 << 20
_PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>blobs/uploads|blobs|manifests)/(?P<last>[^/]*)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ACTIONS = {
    ("POST", "blobs/uploads"): "InitiateLayerUpload",
    ("PATCH", "blobs/uploads"): "UploadLayerPart",
    ("PUT", "blobs/uploads"): "CompleteLayerUpload",
    ("HEAD", "blobs"): "BatchCheckLayerAvailability",
    ("GET", "blobs"): "GetDownloadUrlForLayer",
    ("PUT", "manifests"): "PutImage",
    ("HEAD", "manifests"): "BatchGetImage",
    ("GET", "manifests"): "BatchGetImage",
}
"""Method and kind of a request → action that it asks of IAM."""
_TOKENS: dict[str, tuple[Principal, str, datetime.datetime]] = {}
"""Password → whose it is, its region, and its end."""

CACHE_RULES: list[Fields] = []
"""Pull-through rules. Nobody makes one here: no registry of others is part of the rehearsal."""


@answers("ecr", "DescribePullThroughCacheRules")
def _rules(call: Call) -> Fields:
    return {"pullThroughCacheRules": CACHE_RULES}


@answers("ecr", "GetAuthorizationToken")
def _token(call: Call) -> Fields:
    password = secrets.token_urlsafe(32)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=TOKEN_HOURS)
    _TOKENS[password] = (call.principal, call.region, until)
    return {
        "authorizationData": [
            {
                "authorizationToken": base64.b64encode(f"AWS:{password}".encode()).decode(),
                "expiresAt": until,
                "proxyEndpoint": paths.world().account_url,
            }
        ]
    }


class _No(Exception):
    """A refusal in the words of the distribution API."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.reply = _json(status, {"errors": [{"code": code, "message": message}]})


def respond(environ: Environ) -> Reply:
    """Answer one request."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    try:
        principal, region = _caller(environ)
        if path == PREFIX:
            return _json(200, {})
        found = _PATH.fullmatch(path)
        if not found or (method, found["kind"]) not in _ACTIONS:
            raise _No(404, "UNSUPPORTED", f"{method} {path}")
        with LOCK:
            repository = _repository(region, found["name"])
            _permit(principal, region, found["name"], _ACTIONS[method, found["kind"]])
        return _DO[found["kind"]](environ, repository, found["last"])
    except _No as no:
        reply = no.reply
        if reply.status == 401:
            reply.headers["WWW-Authenticate"] = 'Basic realm="ECR"'
        return reply


def _caller(environ: Environ) -> tuple[Principal, str]:
    """Principal whose token a request shows, and region; 401 where it is none or too old."""
    scheme, _, shown = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    try:
        user, _, password = base64.b64decode(shown).decode().partition(":")
    except ValueError:
        user, password = "", ""
    principal, region, until = _TOKENS.get(password, (None, "", None))
    now = datetime.datetime.now(datetime.UTC)
    if scheme != "Basic" or user != "AWS" or principal is None or until is None or until < now:
        raise _No(401, "UNAUTHORIZED", "Your authorization token is invalid or has expired.")
    return principal, region


def _permit(principal: Principal, region: str, name: str, action: str) -> None:
    arn = f"arn:aws:ecr:{region}:{backends.ACCOUNT}:repository/{name}"
    call = Call(
        service="ecr",
        prefix="ecr",
        operation=SimpleNamespace(name=action),
        protocol="json",
        region=region,
        key="",
        token=None,
        params={},
        principal=principal,
    )
    try:
        principals.authorize(call, [Ask(action=f"ecr:{action}", resource=arn)])
    except Refused as refused:
        raise _No(403, "DENIED", refused.message) from None


def _repository(region: str, name: str) -> Any:
    found = backends.ecr(region).repositories.get(name)
    if found is None:
        raise _No(404, "NAME_UNKNOWN", f"The repository with name '{name}' does not exist")
    return found


# Blobs.


def _uploads(environ: Environ, repository: Any, upload: str) -> Reply:
    """Begin, go on with, or end an upload. Another repository's blob is uploaded once more."""
    if environ["REQUEST_METHOD"] == "POST":
        upload = secrets.token_hex(16)
        (_folder() / upload).touch()
    file = _folder() / upload
    if not re.fullmatch(r"[0-9a-f]{32}", upload) or not file.exists():
        raise _No(404, "BLOB_UPLOAD_UNKNOWN", "there is no such upload")
    with file.open("ab") as out:
        for piece in _pieces(environ):
            out.write(piece)
    wanted = re.search(r"(?:^|&)digest=(sha256(?::|%3A)[0-9a-f]{64})", environ["QUERY_STRING"])
    at = f"{PREFIX}{repository.name}/blobs/"
    if wanted is None:
        size = file.stat().st_size
        headers = {"Location": f"{at}uploads/{upload}", "Range": f"0-{max(0, size - 1)}"}
        return Reply(status=202, headers=headers, body=b"")
    digest = wanted[1].replace("%3A", ":")
    with file.open("rb") as content:
        if f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}" != digest:
            raise _No(400, "DIGEST_INVALID", "Layer digest mismatch")
    file.rename(_blob(repository.name, digest))
    headers = {"Location": f"{at}{digest}", "Docker-Content-Digest": digest}
    return Reply(status=201, headers=headers, body=b"")


def _pieces(environ: Environ) -> Iterator[bytes]:
    left = int(environ.get("CONTENT_LENGTH") or 0)
    if not left and not environ.get("wsgi.input_terminated"):
        return
    while piece := environ["wsgi.input"].read(min(PIECE, left) if left else PIECE):
        yield piece
        left -= len(piece) if left else 0
        if not left and environ.get("CONTENT_LENGTH"):
            return


def _blobs(environ: Environ, repository: Any, digest: str) -> Reply:
    file = _blob(repository.name, digest)
    if not _DIGEST.fullmatch(digest) or not file.exists():
        raise _No(404, "BLOB_UNKNOWN", "there is no such layer")
    return _content(environ, file.read_bytes(), digest, "application/octet-stream")


def _blob(repository: str, digest: str) -> Path:
    """A layer belongs to a repository."""
    own = hashlib.sha256(repository.encode()).hexdigest()[:16]
    return _folder() / f"{own}-{digest.removeprefix('sha256:')}"


def _folder() -> Path:
    """Holds every blob, and uploads that go on."""
    folder = paths.STATE / "registry"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# Manifests.


def _manifests(environ: Environ, repository: Any, reference: str) -> Reply:
    with LOCK:
        if environ["REQUEST_METHOD"] == "PUT":
            return _put(environ, repository, reference)
        image = next(
            (
                each
                for each in repository.images
                if reference in (each.get_image_digest(), *each.image_tags)
            ),
            None,
        )
    if image is None:
        raise _No(404, "MANIFEST_UNKNOWN", "Requested image not found")
    kind, digest = image.image_manifest_media_type, image.get_image_digest()
    return _content(environ, image.image_manifest.encode(), digest, kind)


def _put(environ: Environ, repository: Any, reference: str) -> Reply:
    """An image, by tag, or by digest where it is part of an index."""
    content = b"".join(_pieces(environ))
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    by_digest = bool(_DIGEST.fullmatch(reference))
    try:
        manifest = json.loads(content)
    except ValueError:
        raise _No(400, "MANIFEST_INVALID", "Invalid JSON syntax") from None
    parts = [*manifest.get("layers", ()), *filter(None, [manifest.get("config")])]
    missing = [
        each["digest"] for each in parts if not _blob(repository.name, each["digest"]).exists()
    ]
    if missing or (by_digest and reference != digest):
        raise _No(400, "MANIFEST_INVALID", f"Layers {missing} do not exist")
    kind = environ.get("CONTENT_TYPE") or manifest.get("mediaType")
    try:
        backends.ecr(repository.region_name).put_image(
            repository.name, content.decode(), None if by_digest else reference, kind, digest
        )
    except ServiceException as error:
        known = reference in [tag for each in repository.images for tag in each.image_tags]
        code = "TAG_INVALID" if known else "MANIFEST_INVALID"
        raise _No(400, code, error.message) from None
    _expire(repository)
    headers = {
        "Location": f"{PREFIX}{repository.name}/manifests/{digest}",
        "Docker-Content-Digest": digest,
    }
    return Reply(status=201, headers=headers, body=b"")


def _expire(repository: Any) -> None:
    """Delete images by a lifecycle policy of one rule that counts them. AWS takes up to a day."""
    if repository.lifecycle_policy:
        [rule] = json.loads(repository.lifecycle_policy)["rules"]
        del repository.images[: -rule["selection"]["countNumber"]]


def _content(environ: Environ, content: bytes, digest: str, kind: str) -> Reply:
    headers = {"Docker-Content-Digest": digest, "Content-Type": kind}
    return Reply(status=200, headers=headers, body=content)


def _json(status: int, answer: Any) -> Reply:
    headers = {
        "Content-Type": "application/json",
        "Docker-Distribution-Api-Version": "registry/2.0",
    }
    return Reply(status=status, headers=headers, body=json.dumps(answer).encode())


_DO: dict[str, Callable[[Environ, Any, str], Reply]] = {
    "blobs/uploads": _uploads,
    "blobs": _blobs,
    "manifests": _manifests,
}
