"""Services of AWS with a Query API as a program in a pod asks them, with nothing but Python: for programs
that have an IAM role.

Sources: Signature Version 4 (IAM user guide, reference_sigv-create-signed-request); EC2 developer guide,
ec2-query-api; SNS developer guide, sns-making-api-requests; the agent of EKS Pod Identity (EKS user guide,
pod-id-how-it-works). trainyard/in_cluster/passes signs addresses of STS, which are tokens, and asks nobody.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

REQUEST_SECONDS = 5
FORM = "application/x-www-form-urlencoded; charset=utf-8"


@dataclass(frozen=True)
class Service:
    """A service with a Query API."""

    name: str
    """As its host and its signature name it."""
    version: str
    """Version of its API."""


EC2, SNS = Service("ec2", "2016-11-15"), Service("sns", "2010-03-31")


class AwsError(Exception):
    """AWS refused, did not answer, or there are no credentials to ask it with."""

    def __init__(self, code: str, message: str, *, refused: bool = False) -> None:
        """`refused`: AWS says that it did not do what it was asked; else nobody knows."""
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.refused = code, message, refused


@dataclass(frozen=True)
class Credentials:
    """Keys of a session of the pod's role."""

    key: str
    secret: str
    session: str


def credentials() -> Credentials:
    """The credentials of the role: from variables, or from the agent of Pod Identity on the node. Raises OSError,
    KeyError or ValueError where there are none."""
    if "AWS_ACCESS_KEY_ID" in os.environ:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return Credentials(*(os.environ[name] for name in names))
    token = Path(os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text()
    request = urllib.request.Request(
        os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"], headers={"Authorization": token}
    )
    with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
        found = json.load(answer)
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["Token"])


def ask(
    service: Service, region: str, action: str, fields: Mapping[str, str]
) -> ElementTree.Element:
    """The answer of a service, without its namespace. Raises AwsError where it cannot be had."""
    url = os.environ.get("AWS_ENDPOINT_URL") or f"https://{service.name}.{region}.amazonaws.com"
    body = urllib.parse.urlencode({"Action": action, "Version": service.version, **fields}).encode()
    try:
        now = datetime.datetime.now(datetime.UTC)
        headers = signed(service, url, region, body, credentials(), now)
        request = urllib.request.Request(f"{url.rstrip('/')}/", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
            return _plain(answer.read())
    except urllib.error.HTTPError as error:
        raise _refusal(error) from None
    except (OSError, KeyError, ValueError, http.client.HTTPException) as error:
        raise AwsError("NoAnswer", repr(error)) from None


def signed(
    service: Service, url: str, region: str, body: bytes, who: Credentials, now: datetime.datetime
) -> dict[str, str]:
    """Headers of a POST to a service, its signature among them. `now`: in UTC."""
    date = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{date[:8]}/{region}/{service.name}/aws4_request"
    headers = {
        "content-type": FORM,
        "host": urllib.parse.urlsplit(url).netloc,
        "x-amz-date": date,
        "x-amz-security-token": who.session,
    }
    names = ";".join(headers)
    lines = [f"{name}:{value}" for name, value in headers.items()]
    request = "\n".join(["POST", "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()])
    to_sign = "\n".join(
        ["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()]
    )
    key = f"AWS4{who.secret}".encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    proof = f"Credential={who.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return headers | {"Authorization": f"AWS4-HMAC-SHA256 {proof}"}


def _refusal(error: urllib.error.HTTPError) -> AwsError:
    """What AWS says in an answer that is an error. With a status of 500 or more it may have acted."""
    text, refused = error.read(), error.code < 500
    try:
        said = _plain(text)
    except ValueError:
        said_text = text.decode(errors="replace")[:300]
        return AwsError(str(error.code), said_text, refused=refused)
    code, message = said.findtext(".//Code") or "", said.findtext(".//Message") or ""
    return AwsError(code, message, refused=refused)


def _plain(text: bytes) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"no XML: {error}") from None
    for each in root.iter():
        each.tag = each.tag.rpartition("}")[2]
    return root
