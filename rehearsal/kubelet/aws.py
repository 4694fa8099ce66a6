"""Questions of nodes to the embedded account: descriptions, credentials, and the token that an API
server of EKS takes."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import urllib3
from botocore.auth import S3SigV4Auth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rehearsal.aws.identity import WORLD_KEY
from rehearsal.kube import ApiError

TOKEN_SECONDS = 60
EC2_VERSION = "2016-11-15"
PEERS = "peers"
"""Instances launched as an instance is, over EFA: something that it may reach."""


class AwsError(RuntimeError):
    """The account refused."""


TROUBLE = (ApiError, AwsError, OSError, urllib3.exceptions.HTTPError)
"""Errors of a control plane or an account that is not there, or refuses: wait and try again."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """The embedded account at `url`, asked with the world's own key. urllib3 and botocore's signer
    only: a machine process with boto3 would weigh twice as much."""

    url: str
    secret: str
    """World.world_secret."""
    region: str = "us-east-1"
    """The account's own endpoints have none."""
    role: Credentials | None = None
    """Credentials that calls are signed with, instead of the world's own."""
    pool: urllib3.PoolManager = field(
        default_factory=lambda: urllib3.PoolManager(retries=False, timeout=10)
    )

    def as_instance(self, name: str) -> Account:
        """The account as software on an instance asks it: with the keys of the instance's role, as
        the metadata service gives them. AwsError where it has none."""
        keys = self.private(f"/instances/{name}/credentials")
        if keys is None:
            raise AwsError(f"{name} has no instance profile whose role EC2 may assume")
        role = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys.get("SessionToken"))
        return replace(self, role=role)

    def blocked(self, instance: str, to: str) -> str:
        """Obstacle between an instance and the internet, its peers, an API of AWS (`aws:ec2`), a
        cluster's API server or a file system; empty where it gets there."""
        found = self.private(f"/instances/{instance}/reach?{urlencode({'to': to})}")
        if found is None:
            raise AwsError(f"{to} is not to be found from {instance}")
        return found["blocked"]

    def unreached(self, instance: str, cluster: str, port: int) -> str:
        """Obstacle between a cluster's API server and an instance's port; empty where none is."""
        query = urlencode({"from": cluster, "port": port})
        found = self.private(f"/instances/{instance}/reach?{query}")
        if found is None:
            raise AwsError(f"{instance} is not to be found from {cluster}")
        return found["blocked"]

    def assigns(self, instance: str, interface: str, keys: dict[str, str]) -> str:
        """Reason why software on an instance may not assign private addresses: with a pod's keys,
        or with the instance's where the pod has none. Empty where it may."""
        wanted = {"NetworkInterfaceId": interface, "SecondaryPrivateIpAddressCount": "1"}
        try:
            who = replace(self, role=_credentials(keys)) if keys else self.as_instance(instance)
            who.ec2("AssignPrivateIpAddresses", DryRun="true", **wanted)
        except AwsError as error:
            return "" if "DryRunOperation" in str(error) else str(error)
        return ""

    def ec2(self, action: str, **parameters: str) -> dict[str, Any]:
        """A describe call of EC2, its XML as plain data."""
        body = urlencode({"Action": action, "Version": EC2_VERSION} | parameters)
        answer = self._send(
            "ec2", "POST", "/", body, {"Content-Type": "application/x-www-form-urlencoded"}
        )
        return plain(ElementTree.fromstring(answer)) or {}

    def fsx(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        """A call of FSx."""
        return json.loads(
            self._send(
                "fsx",
                "POST",
                "/",
                json.dumps(body),
                {
                    "Content-Type": "application/x-amz-json-1.1",
                    "X-Amz-Target": f"AWSSimbaAPIService_v20180301.{action}",
                },
            )
        )

    def efs(self, path: str) -> dict[str, Any]:
        """A read of EFS."""
        return json.loads(self._send("elasticfilesystem", "GET", f"/2015-02-01{path}", "", {}))

    def mounts(
        self, system: str, *, tls: bool, keys: dict[str, str] | None = None, instance: str = ""
    ) -> list[str]:
        """Actions that EFS allows a client of a file system: with a pod's keys, with those of its
        instance where the pod has none, or as nobody."""
        who = _credentials(keys) if keys else self.as_instance(instance).role if instance else None
        query = urlencode(
            {"region": self.region, "tls": str(tls).lower(), "key": who.access_key if who else ""}
        )
        found = self.private(f"/file-systems/{system}/mount?{query}")
        return found["allowed"] if found else []

    def lists(self, bucket: str, prefix: str, keys: dict[str, str]) -> None:
        """Lists objects of S3 with a pod's keys, by the names of their variables. AwsError where they may not."""
        query = urlencode({"list-type": "2", "max-keys": "1", "prefix": prefix})
        url = f"{self.url}/{bucket}?{query}"
        request = AWSRequest(method="GET", url=url)
        S3SigV4Auth(_credentials(keys), "s3", self.region).add_auth(request)
        _accepted(self.pool.request("GET", url, headers=dict(request.headers.items())))

    def secret_value(self, name: str, region: str, keys: dict[str, str]) -> bytes:
        """The value of a secret, asked for with a pod's keys. AwsError in the words of the SDK for Go."""
        who = replace(self, role=_credentials(keys), region=region)
        target = {"X-Amz-Target": "secretsmanager.GetSecretValue"}
        headers = {"Content-Type": "application/x-amz-json-1.1", **target}
        body = json.dumps({"SecretId": name})
        try:
            found = json.loads(who._send("secretsmanager", "POST", "/", body, headers))
        except AwsError as error:
            said = json.loads(str(error))
            code, words = said.get("__type", ""), said.get("message") or said.get("Message", "")
            raise AwsError(f"api error {code.rpartition('#')[2]}: {words}") from None
        if "SecretString" in found:
            return found["SecretString"].encode()
        return base64.b64decode(found["SecretBinary"])

    def logs(
        self, action: str, body: dict[str, Any], region: str, keys: dict[str, str]
    ) -> dict[str, Any]:
        """A call of CloudWatch Logs with a pod's keys."""
        who = replace(self, role=_credentials(keys), region=region)
        target = {"X-Amz-Target": f"Logs_20140328.{action}"}
        headers = {"Content-Type": "application/x-amz-json-1.1", **target}
        return json.loads(who._send("logs", "POST", "/", json.dumps(body), headers) or "{}")

    def ecr(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        """A call of ECR."""
        return json.loads(
            self._send(
                "ecr",
                "POST",
                "/",
                json.dumps(body),
                {
                    "Content-Type": "application/x-amz-json-1.1",
                    "X-Amz-Target": f"AmazonEC2ContainerRegistry_V20150921.{action}",
                },
            )
        )

    def dead(self, instance: str) -> None:
        """Tell the account that the machine of an instance has died: EC2 finds out by itself, in its own time."""
        self.private(f"/instances/{instance}/dead", "POST")

    def private(self, path: str, method: str = "GET") -> Any:
        """One of the account's own endpoints; None for 404."""
        answer = self.pool.request(
            method, f"{self.url}/_world{path}", headers={"Authorization": f"Bearer {self.secret}"}
        )
        return None if answer.status == 404 else json.loads(_accepted(answer))

    def _send(
        self, service: str, method: str, path: str, body: str, headers: dict[str, str]
    ) -> bytes:
        request = AWSRequest(method=method, url=self.url + path, data=body, headers=headers)
        who = self.role or Credentials(WORLD_KEY, self.secret)
        SigV4Auth(who, service, self.region).add_auth(request)
        return _accepted(
            self.pool.request(
                method, self.url + path, body=body, headers=dict(request.headers.items())
            )
        )


def _credentials(keys: dict[str, str]) -> Credentials:
    """Credentials of a pod, by the names of its variables."""
    return Credentials(
        keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"], keys["AWS_SESSION_TOKEN"]
    )


def _accepted(answer: urllib3.BaseHTTPResponse) -> bytes:
    if answer.status >= 300:
        raise AwsError(answer.data.decode(errors="replace")[:500])
    return answer.data


def plain(element: ElementTree.Element) -> Any:
    """EC2's XML: <item> children are a list, others a dictionary, a leaf its text."""
    children = [(child.tag.rpartition("}")[2], plain(child)) for child in element]
    if not children:
        return element.text
    return [value for _, value in children] if children[0][0] == "item" else dict(children)


class InstanceToken:
    """Token that `aws eks get-token` prints for an instance's role (a presigned GetCallerIdentity
    that names the cluster), signed anew before it expires."""

    def __init__(self, account: Account, instance: str, cluster: str) -> None:
        self._account, self._instance, self._cluster = account, instance, cluster
        self._token, self._signed = "", 0.0

    def __call__(self) -> str:
        """The current token."""
        if time.monotonic() - self._signed > TOKEN_SECONDS / 2:
            self._token, self._signed = self._sign(), time.monotonic()
        return self._token

    def _sign(self) -> str:
        who = self._account.as_instance(self._instance).role
        request = AWSRequest(
            method="GET",
            url=f"{self._account.url}/?Action=GetCallerIdentity&Version=2011-06-15",
            headers={"x-k8s-aws-id": self._cluster},
        )
        SigV4QueryAuth(who, "sts", self._account.region, expires=TOKEN_SECONDS).add_auth(request)
        return "k8s-aws-v1." + base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip(
            "="
        )
