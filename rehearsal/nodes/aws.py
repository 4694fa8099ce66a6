"""What nodes ask of the embedded account: descriptions, credentials, and the token an API server of EKS takes."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import urllib3
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rehearsal.account.identity import WORLD_KEY, WORLD_SECRET
from rehearsal.kube import ApiError

TOKEN_SECONDS = 60
EC2_VERSION = "2016-11-15"


class AwsError(RuntimeError):
    """The account refused."""


TROUBLE = (ApiError, AwsError, OSError, urllib3.exceptions.HTTPError)
"""What may happen when the control plane or the account is not there, or refuses: wait and try again."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """The embedded account at `url`, asked with the world's own key. urllib3 and botocore's signer only: a machine
    process with boto3 would weigh twice as much."""

    url: str
    region: str
    pool: urllib3.PoolManager

    def ec2(self, action: str, **parameters: str) -> dict[str, Any]:
        """A describe call of EC2, its XML as plain data."""
        body = urlencode({"Action": action, "Version": EC2_VERSION} | parameters)
        answer = self._send("ec2", "POST", "/", body, {"Content-Type": "application/x-www-form-urlencoded"})
        return plain(ElementTree.fromstring(answer)) or {}

    def fsx(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        """A call of FSx."""
        return json.loads(self._send("fsx", "POST", "/", json.dumps(body), {
            "Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"AWSSimbaAPIService_v20180301.{action}"}))

    def efs(self, path: str) -> dict[str, Any]:
        """A read of EFS."""
        return json.loads(self._send("elasticfilesystem", "GET", f"/2015-02-01{path}", "", {}))

    def private(self, path: str) -> Any:
        """One of the account's own endpoints; None for 404."""
        answer = self.pool.request("GET", f"{self.url}/_world{path}", timeout=10)
        if answer.status == 404:
            return None
        if answer.status >= 300:
            raise AwsError(f"{path}: {answer.data.decode(errors='replace')}")
        return json.loads(answer.data)

    def _send(self, service: str, method: str, path: str, body: str, headers: dict[str, str]) -> bytes:
        request = AWSRequest(method=method, url=self.url + path, data=body, headers=headers)
        SigV4Auth(Credentials(WORLD_KEY, WORLD_SECRET), service, self.region).add_auth(request)
        answer = self.pool.request(method, self.url + path, body=body, timeout=10,
                                   headers=dict(request.headers.items()))
        if answer.status >= 300:
            raise AwsError(answer.data.decode(errors="replace")[:500])
        return answer.data


def account(url: str, region: str = "us-east-1") -> Account:
    """The embedded account; its own endpoints have no region."""
    return Account(url=url, region=region, pool=urllib3.PoolManager(retries=False))


def plain(element: ElementTree.Element) -> Any:
    """EC2's XML: <item> children are a list, others a dictionary, a leaf its text."""
    children = list(element)
    if not children:
        return element.text
    names = [child.tag.rpartition("}")[2] for child in children]
    if set(names) == {"item"}:
        return [plain(child) for child in children]
    return {name: plain(child) for name, child in zip(names, children, strict=True)}


def eks_token(account: Account, credentials: dict[str, str], cluster: str) -> str:
    """What `aws eks get-token` prints: a presigned GetCallerIdentity that names the cluster."""
    request = AWSRequest(method="GET", url=f"{account.url}/?Action=GetCallerIdentity&Version=2011-06-15",
                         headers={"x-k8s-aws-id": cluster})
    keys = Credentials(credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials.get("SessionToken"))
    SigV4QueryAuth(keys, "sts", account.region, expires=TOKEN_SECONDS).add_auth(request)
    return "k8s-aws-v1." + base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")


class InstanceToken:
    """The bearer token of an instance's role, signed anew before it expires."""

    def __init__(self, account: Account, instance: str, cluster: str) -> None:
        self._account, self._instance, self._cluster = account, instance, cluster
        self._token, self._signed = "", 0.0

    def __call__(self) -> str:
        """The current token."""
        if time.monotonic() - self._signed > TOKEN_SECONDS / 2:
            credentials = self._account.private(f"/instances/{self._instance}/credentials")
            if credentials is None:
                raise AwsError(f"{self._instance} has no instance profile: there are no credentials to join with")
            self._token, self._signed = eks_token(self._account, credentials, self._cluster), time.monotonic()
        return self._token
