"""Signature V4 of a request: computed again with the caller's secret, as AWS does."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import re

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rehearsal.aws.operations import Call, Refused
from rehearsal.aws.wire import Environ

FRESH = datetime.timedelta(minutes=15)
"""Largest difference between the caller's clock and AWS's."""
UNHASHED = ("UNSIGNED-PAYLOAD", "STREAMING-")
"""Beginnings of words that may stand in place of the body's hash: S3 takes unsigned bodies."""
CODES = {
    "ec2": "AuthFailure",
    "query": "SignatureDoesNotMatch",
    "rest-xml": "SignatureDoesNotMatch",
}
"""Protocol → error code, where it is not InvalidSignatureException."""
_SIGNED = re.compile(r"SignedHeaders=([^, ]+), *Signature=([0-9a-f]+)")


def check(call: Call, environ: Environ, body: bytes, secret: str, now: datetime.datetime) -> None:
    """Refused where the request is not what the owner of the secret signed, or too old. `now`: UTC
    without a zone."""
    signed = _SIGNED.search(environ["HTTP_AUTHORIZATION"])
    date = environ.get("HTTP_X_AMZ_DATE", "")
    right = signed and hmac.compare_digest(
        _signature(call, environ, body, secret, signed[1].split(";")), signed[2]
    )
    if not right or not _hashed(environ, body):
        _refuse(
            call,
            "The request signature we calculated does not match the signature you provided. Check"
            " your AWS Secret Access Key and signing method.",
        )
    if abs(now - datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ")) > FRESH:
        _refuse(call, f"Signature expired: {date} is not within 15 minutes of {now:%Y%m%dT%H%M%SZ}")


def _refuse(call: Call, message: str) -> None:
    raise Refused(CODES.get(call.protocol, "InvalidSignatureException"), message, status=403)


def _hashed(environ: Environ, body: bytes) -> bool:
    """True where the hash that the caller signed, if it names one, is the body's."""
    said = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "UNSIGNED-PAYLOAD")
    return said.startswith(UNHASHED) or said == hashlib.sha256(body).hexdigest()


def _signature(call: Call, environ: Environ, body: bytes, secret: str, headers: list[str]) -> str:
    """Signature of the request as it came over the wire: its path and query are encoded already."""
    request = AWSRequest(
        method=environ["REQUEST_METHOD"],
        url=f"http://{environ.get('HTTP_HOST', '')}{environ['RAW_URI']}",
        data=body,
        headers={name: _header(environ, name) for name in headers},
    )
    request.context["timestamp"] = environ.get("HTTP_X_AMZ_DATE", "")
    signer = S3SigV4Auth if call.service == "s3" else SigV4Auth
    auth = signer(Credentials(call.key, secret), call.prefix, call.region)
    canonical = auth.canonical_request(request)
    return str(auth.signature(auth.string_to_sign(request, canonical), request))


def _header(environ: Environ, name: str) -> str:
    key = name.upper().replace("-", "_")
    return environ.get(key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}", "")
