"""The cluster a provider is configured with: its kubeconfig read as client-go does, and a client
for its API server.

What an entry may hold is decided in access(); how a credential plugin is run, in Exec.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from urllib3.exceptions import HTTPError

from rehearsal.kube import Api, ApiError, Object
from rehearsal.providers.problems import Refused

CLUSTER = {
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "tls-server-name",
    "proxy-url",
}


class Rejected(ApiError, Refused):
    """Error: the API server refused, or with code 0 gave no answer. Its text is the whole message
    where nobody catches it."""


class Client(Api):
    """An API client that asks its credential plugin again after it was not let in, as client-go's
    does."""

    credentials: Exec | None = None

    def token(self) -> str:
        return self._token() if self._token else ""

    def request(self, *arguments: Any, **options: Any) -> Object:
        try:
            return super().request(*arguments, **options)
        except HTTPError as error:
            raise Rejected(0, {"message": f"the API server does not answer: {error}"}) from None
        except ApiError as error:
            if error.code == 401 and self.credentials:
                self.credentials.forget()
            raise Rejected(error.code, error.status) from None


@dataclass(frozen=True, kw_only=True)
class Access:
    """The current context of a kubeconfig."""

    api: Client
    config: Object

    @property
    def text(self) -> str:
        """The kubeconfig for a program that works for this one: it comes with our token, as what is
        linked into the genuine plugin shares its client."""
        user = _named(self.config, "context", self.config["current-context"]).get("user", "")
        return json.dumps(
            self.config | {"users": [{"name": user, "user": {"token": self.api.token()}}]}
        )


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The cluster of one provider."""

    access: Access | None = None
    reason: str = "not configured"
    """Reason why the cluster cannot be reached, if it cannot."""
    force: bool = False
    """Server-side apply takes fields that somebody else has changed."""

    @property
    def api(self) -> Client:
        if not self.access:
            raise Refused(f"configured Kubernetes cluster is unreachable: {self.reason}")
        return self.access.api


@dataclass(kw_only=True)
class Exec:
    """The exec entry of a user: a program that prints a token."""

    entry: Object
    _token: str = ""
    _expires: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def token(self) -> str:
        with self._lock:
            if not self._token or (
                self._expires and datetime.now(self._expires.tzinfo) >= self._expires
            ):
                self._keep(json.loads(self._output()))
            return self._token

    def forget(self) -> None:
        with self._lock:
            self._token = ""

    def _output(self) -> str:
        command = [self.entry["command"], *(self.entry.get("args") or [])]
        asked = {
            "apiVersion": self.entry["apiVersion"],
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        given = {variable["name"]: variable["value"] for variable in self.entry.get("env") or []}
        environment = os.environ | given | {"KUBERNETES_EXEC_INFO": json.dumps(asked)}
        failed = f"getting credentials: exec: executable {command[0]}"
        try:
            answer = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )
        except FileNotFoundError:
            raise Refused(f"{failed} not found") from None
        if answer.returncode:
            raise Refused(
                f"{failed} failed with exit code {answer.returncode}: {answer.stderr.strip()}"
            )
        return answer.stdout

    def _keep(self, credential: Object) -> None:
        if credential.get("apiVersion") != self.entry["apiVersion"]:
            raise Refused(
                "getting credentials: exec plugin is configured to use API version"
                f" {self.entry['apiVersion']}, plugin returned version"
                f" {credential.get('apiVersion')}"
            )
        status = credential.get("status") or {}
        if "token" not in status:
            raise Refused(
                "getting credentials: this rehearsal needs a token from an exec plugin, no"
                " certificate"
            )
        until = status.get("expirationTimestamp")
        self._token, self._expires = (
            status["token"],
            datetime.fromisoformat(until) if until else None,
        )


def load(source: str | Object | None) -> Object:
    """A kubeconfig from its text (YAML or JSON), its path, or from where kubectl looks for it."""
    if isinstance(source, dict):
        return source
    source = source or os.environ.get("KUBECONFIG") or "~/.kube/config"
    inline = "\n" in source or source.lstrip().startswith("{")
    return yaml.safe_load(source if inline else Path(source).expanduser().read_text())


def access(config: Object) -> Access:
    """A client for the current context of a kubeconfig."""
    context = _named(config, "context", config.get("current-context", ""))
    cluster, user = (
        _named(config, "cluster", context["cluster"]),
        _named(config, "user", context.get("user", "")),
    )
    unknown = {*context} - {"cluster", "user"} | {*cluster} - CLUSTER | {*user} - {"exec", "token"}
    if unknown:
        raise Refused(
            f"this rehearsal does not implement {', '.join(sorted(unknown))} in a kubeconfig"
        )
    credentials = Exec(entry=user["exec"]) if "exec" in user else None
    token = credentials.token if credentials else lambda: user["token"]
    client = Client(
        cluster["server"],
        ca_file=_authority(cluster),
        token=token,
        server_name=cluster.get("tls-server-name"),
        proxy_url=cluster.get("proxy-url"),
    )
    client.credentials = credentials
    return Access(api=client, config=config)


def _named(config: Object, what: str, name: str) -> Object:
    found = next(
        (entry[what] for entry in config.get(f"{what}s") or [] if entry["name"] == name), None
    )
    if found is None:
        raise Refused(f'{what} "{name}" does not exist in the kubeconfig')
    return found


def _authority(cluster: Object) -> str:
    """The path of the certificate authority; one that stands in the kubeconfig itself gets no file
    on the disk."""
    data = cluster.get("certificate-authority-data")
    return (
        f"/proc/self/fd/{in_memory(base64.b64decode(data))}"
        if data
        else cluster["certificate-authority"]
    )


def in_memory(content: bytes) -> int:
    """The descriptor of a file that is in memory only and vanishes with this process, however that
    ends."""
    descriptor = os.memfd_create("rehearsal")
    os.fchmod(descriptor, 0o600)
    os.write(descriptor, content)
    return descriptor
