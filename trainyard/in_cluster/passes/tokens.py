"""A token of EKS: an address of STS, signed for 15 minutes, that says who asks and for which cluster.

Sources: `aws eks get-token` of the AWS CLI; Signature Version 4 with a query (IAM user guide,
reference_sigv-create-signed-request). Pure.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import urllib.parse
from dataclasses import dataclass

PREFIX, CLUSTER_HEADER = "k8s-aws-v1.", "x-k8s-aws-id"
EXPIRES = "60"
"""As the AWS CLI says it; EKS takes a token for 15 minutes after its date."""


@dataclass(frozen=True)
class Credentials:
    """Of a session of a role."""

    key: str
    secret: str
    session: str


def token(cluster: str, sts: str, region: str, who: Credentials, now: datetime.datetime) -> str:
    """A token for a cluster. `sts`: the address of STS. `now`: in UTC."""
    url = _signed(cluster, sts, region, who, now.strftime("%Y%m%dT%H%M%SZ"))
    return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def _signed(cluster: str, sts: str, region: str, who: Credentials, date: str) -> str:
    parts = urllib.parse.urlsplit(sts)
    scope = f"{date[:8]}/{region}/sts/aws4_request"
    headers = {"host": parts.netloc, CLUSTER_HEADER: cluster}
    names = ";".join(headers)
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{who.key}/{scope}",
        "X-Amz-Date": date,
        "X-Amz-Expires": EXPIRES,
        "X-Amz-Security-Token": who.session,
        "X-Amz-SignedHeaders": names,
    }
    asked = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="")
    lines = [f"{name}:{value}" for name, value in headers.items()]
    request = "\n".join(["GET", "/", asked, *lines, "", names, hashlib.sha256(b"").hexdigest()])
    to_sign = "\n".join(
        ["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()]
    )
    key = f"AWS4{who.secret}".encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return f"{parts.scheme}://{parts.netloc}/?{asked}&X-Amz-Signature={signature}"
