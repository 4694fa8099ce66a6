"""Renews the passes with which Kueue enters the clusters of workers.

A pass is a kubeconfig with a token of EKS, in a Secret beside Kueue. EKS takes a token for 15 minutes,
so each is written anew every few minutes. It runs as one pod, with nothing but Python, as the IAM role
that EKS Pod Identity gives it. Why: docs/decisions/0022.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokens
from api_server import Api, ApiError, Object, say, serve

STUCK_ROUNDS = 3
"""A program that has finished no round for so many is started again."""
AGENT_SECONDS = 10


@dataclass(frozen=True)
class Settings:
    """What trainyard/objects/programs/dispatch.py writes."""

    namespace: str
    secrets: list[str]
    """Of the workers. Each says where the cluster is, and gets its pass."""
    region: str
    renew_seconds: float

    @staticmethod
    def read(path: Path) -> Settings:
        """The file of the ConfigMap."""
        return Settings(**json.loads(path.read_text()))


def credentials() -> tokens.Credentials:
    """Those of the role: from variables, or from the agent of Pod Identity on the node (EKS user guide,
    pod-id-how-it-works)."""
    if "AWS_ACCESS_KEY_ID" in os.environ:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return tokens.Credentials(*(os.environ[name] for name in names))
    request = urllib.request.Request(
        os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
        headers={
            "Authorization": Path(os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text()
        },
    )
    with urllib.request.urlopen(request, timeout=AGENT_SECONDS) as answer:
        found = json.load(answer)
    return tokens.Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["Token"])


def kubeconfig(cluster: str, server: str, authority: str, token: str) -> str:
    """As Kueue takes it: no programs, no paths (validateKubeconfig of Kueue 0.19.2). `authority`: PEM,
    base64."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": cluster,
            "clusters": [
                {
                    "name": cluster,
                    "cluster": {"server": server, "certificate-authority-data": authority},
                }
            ],
            "users": [{"name": cluster, "user": {"token": token}}],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        }
    )


def renew(api: Api, settings: Settings, who: tokens.Credentials, now: datetime.datetime) -> bool:
    """Write the pass of each worker; whether all were written."""
    sts = os.environ.get("AWS_ENDPOINT_URL") or f"https://sts.{settings.region}.amazonaws.com"
    written = 0
    for name in settings.secrets:
        path = f"/api/v1/namespaces/{settings.namespace}/secrets/{name}"
        try:
            said = _said(api.ask("GET", path))
            token = tokens.token(said["cluster"], sts, settings.region, who, now)
            text = kubeconfig(said["cluster"], said["server"], said["authority"], token)
            patch = {"data": {"kubeconfig": base64.b64encode(text.encode()).decode()}}
            api.ask("PATCH", path, patch, "merge-patch+json")
            written += 1
        except (ApiError, KeyError) as error:
            say(f"{name}: {error!r}")
    return written == len(settings.secrets)


def _said(secret: Object) -> dict[str, str]:
    data: dict[str, Any] = secret.get("data") or {}
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def main() -> None:
    """For ever."""
    settings, api = Settings.read(Path(sys.argv[1])), Api()
    looked = [time.monotonic()]
    patience = STUCK_ROUNDS * settings.renew_seconds
    serve(int(sys.argv[2]), lambda: time.monotonic() - looked[0] < patience)
    while True:
        try:
            done = renew(api, settings, credentials(), datetime.datetime.now(datetime.UTC))
        except (OSError, KeyError, ValueError) as error:
            say(f"no credentials: {error!r}")
            done = False
        if done:
            looked[0] = time.monotonic()
        time.sleep(settings.renew_seconds if done else settings.renew_seconds / 10)


if __name__ == "__main__":
    main()
