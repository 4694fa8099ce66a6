"""A request to S3 that reads, signed (IAM user guide, reference_sigv-create-signed-request)."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import urllib.parse
from collections.abc import Mapping

from query import Credentials

NOTHING = hashlib.sha256(b"").hexdigest()


def signed_get(
    server: str,
    path: str,
    query: Mapping[str, str],
    region: str,
    who: Credentials,
    now: datetime.datetime | None = None,
) -> tuple[str, dict[str, str]]:
    """URL and headers. `path`: bucket and key. `now`: in UTC."""
    date = (now or datetime.datetime.now(datetime.UTC)).strftime("%Y%m%dT%H%M%SZ")
    server = server.rstrip("/")
    place, asked = f"/{urllib.parse.quote(path)}", _query(query)
    headers = {
        "host": urllib.parse.urlsplit(server).netloc,
        "x-amz-content-sha256": NOTHING,
        "x-amz-date": date,
        **({"x-amz-security-token": who.session} if who.session else {}),
    }
    names, scope = ";".join(headers), f"{date[:8]}/{region}/s3/aws4_request"
    lines = [f"{name}:{value}" for name, value in headers.items()]
    request = "\n".join(["GET", place, asked, *lines, "", names, NOTHING])
    to_sign = "\n".join(
        ["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()]
    )
    key = f"AWS4{who.secret}".encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    proof = f"Credential={who.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    url = f"{server}{place}{f'?{asked}' if asked else ''}"
    return url, headers | {"Authorization": f"AWS4-HMAC-SHA256 {proof}"}


def _query(query: Mapping[str, str]) -> str:
    return urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="")
