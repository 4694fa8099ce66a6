"""The cluster a provider is configured with: its kubeconfig read as client-go does, and a client for its API server.

What a user entry may hold is decided in _user; how a credential plugin is run, in Exec.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import threading
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from urllib3.exceptions import HTTPError

from rehearsal.kube import Api, ApiError, Object
from rehearsal.plugins.base import Refused
from rehearsal.plugins.wire import Properties


class Rejected(ApiError, Refused):
    """What the API server answered, or with code 0 that it did not; the whole message where nobody catches it."""


class Client(Api):
    """An API client that asks its credential plugin again after it was not let in, as client-go's does."""

    credentials: Exec | None = None

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
    """One context of a kubeconfig."""

    api: Client
    namespace: str
    """Of objects that name none."""
    text: str
    """The kubeconfig for another program."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The cluster of one provider, and what the provider was told about it."""

    config: Properties
    access: Access | None = None
    reason: str = "not configured"
    """Why it cannot be reached, if it cannot."""

    @property
    def api(self) -> Client:
        if not self.access:
            raise Refused(f"configured Kubernetes cluster is unreachable: {self.reason}")
        return self.access.api

    def flag(self, option: str, default: bool = False) -> bool:
        """An option of the provider, which the SDK sends as text, or else of the environment."""
        variable = "PULUMI_K8S_" + re.sub("([A-Z])", r"_\1", option.replace("ConfigMap", "Configmap")).upper()
        given = self.config.get(option)
        return str(os.environ.get(variable, default) if given is None else given).lower() == "true"


@dataclass(kw_only=True)
class Exec:
    """The exec entry of a user: a program that prints a token."""

    entry: Object
    _token: str = ""
    _expires: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def token(self) -> str:
        with self._lock:
            if not self._token or (self._expires and datetime.now(self._expires.tzinfo) >= self._expires):
                self._keep(json.loads(self._output()))
            return self._token

    def forget(self) -> None:
        with self._lock:
            self._token = ""

    def _output(self) -> str:
        command = [self.entry["command"], *(self.entry.get("args") or [])]
        asked = {"apiVersion": self.entry["apiVersion"], "kind": "ExecCredential", "spec": {"interactive": False}}
        given = {variable["name"]: variable["value"] for variable in self.entry.get("env") or []}
        environment = os.environ | given | {"KUBERNETES_EXEC_INFO": json.dumps(asked)}
        failed = f"getting credentials: exec: executable {command[0]}"
        try:
            answer = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except FileNotFoundError:
            raise Refused(f"{failed} not found") from None
        if answer.returncode:
            raise Refused(f"{failed} failed with exit code {answer.returncode}: {answer.stderr.strip()}")
        return answer.stdout

    def _keep(self, credential: Object) -> None:
        if credential.get("apiVersion") != self.entry["apiVersion"]:
            raise Refused(f"getting credentials: exec plugin is configured to use API version "
                          f"{self.entry['apiVersion']}, plugin returned version {credential.get('apiVersion')}")
        status = credential.get("status") or {}
        if "token" not in status:
            raise Refused("getting credentials: this rehearsal needs a token from an exec plugin, no certificate")
        until = status.get("expirationTimestamp")
        self._token, self._expires = status["token"], datetime.fromisoformat(until) if until else None


def load(source: str | Object | None) -> Object:
    """A kubeconfig from its text (YAML or JSON), its path, or from where kubectl looks for it."""
    if isinstance(source, dict):
        return source
    source = source or os.environ.get("KUBECONFIG") or "~/.kube/config"
    inline = "\n" in source or source.lstrip().startswith("{")
    return yaml.safe_load(source if inline else Path(source).expanduser().read_text())


def cluster_entry(config: Object, context: str | None = None) -> Object:
    """The cluster a context points to."""
    return _named(config, "cluster", _context(config, context)["cluster"])


def access(config: Object, *, context: str | None = None, namespace: str | None = None) -> Access:
    """A client for one context of a kubeconfig."""
    chosen, cluster = _context(config, context), cluster_entry(config, context)
    user = _named(config, "user", chosen.get("user", ""))
    credentials = Exec(entry=user["exec"]) if "exec" in user else None
    client = Client(cluster["server"], ca_file=_authority(cluster), **_user(user, credentials))
    client.credentials = credentials
    text = json.dumps(config | ({"current-context": context} if context else {}))
    return Access(api=client, namespace=namespace or chosen.get("namespace") or "default", text=text)


def _context(config: Object, context: str | None) -> Object:
    return _named(config, "context", context or config.get("current-context", ""))


def _named(config: Object, what: str, name: str) -> Object:
    found = next((entry[what] for entry in config.get(f"{what}s") or [] if entry["name"] == name), None)
    if found is None:
        raise Refused(f'{what} "{name}" does not exist in the kubeconfig')
    return found


def _user(user: Object, credentials: Exec | None) -> Object:
    """What the client needs to be this user."""
    unsupported = user.keys() & {"username", "password", "tokenFile", "auth-provider", "as"}
    if unsupported:
        raise Refused(f"this rehearsal does not implement {', '.join(sorted(unsupported))} in a kubeconfig")
    if credentials:
        return {"token": credentials.token}
    if "token" in user:
        return {"token": lambda: user["token"]}
    return {"cert_file": _file(user, "client-certificate"), "key_file": _file(user, "client-key")}


def _authority(cluster: Object) -> str | None:
    if cluster.get("insecure-skip-tls-verify"):
        return None
    return _file(cluster, "certificate-authority") or ssl.get_default_verify_paths().cafile


def _file(entry: Object, key: str) -> str | None:
    """The path of a certificate; one that is written in the kubeconfig itself gets no file on the disk."""
    data = entry.get(f"{key}-data")
    return f"/proc/self/fd/{in_memory(base64.b64decode(data))}" if data else entry.get(key)


def in_memory(content: bytes) -> int:
    """The descriptor of a file that is in memory only and vanishes with this process, however that ends."""
    descriptor = os.memfd_create("rehearsal")
    os.fchmod(descriptor, 0o600)
    os.write(descriptor, content)
    return descriptor
