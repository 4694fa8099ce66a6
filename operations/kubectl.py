"""kubectl and helm that ask once who one is: `aws eks get-token` takes longer than all the rest of
a call."""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Object = dict[str, Any]
Environment = Mapping[str, str]
Login = Callable[[], Environment]
"""Gives an environment whose KUBECONFIG is logged in."""
Kubectl = Callable[..., str]
"""Its words → what it says; RuntimeError with its complaint."""
TOKEN_SECONDS = 600
"""For so long one is used; it is good for 14 minutes at EKS."""
UNSERVED = "the server doesn't have a resource type"
"""kubectl's words where the API server does not know a kind."""


def kubectl_with(login: Login, *flags: str) -> Kubectl:
    """kubectl in the environment of a login, with these flags in every call."""

    def run(*words: str) -> str:
        try:
            done = subprocess.run(
                ["kubectl", *words, *flags], capture_output=True, text=True, env=login()
            )
        except FileNotFoundError:
            raise RuntimeError("kubectl is not on PATH") from None
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"kubectl {words[0]} failed")
        return done.stdout

    return run


@contextmanager
def logged_in(environment: Environment) -> Iterator[Login]:
    """A login whose kubeconfig goes with the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield login(environment, folder)


@contextmanager
def logged_in_to(kubeconfig: str) -> Iterator[Login]:
    """A login to the cluster of this kubeconfig, and to no other: KUBECONFIG names a private file
    with this text alone. The file goes with the block."""
    with tempfile.TemporaryDirectory() as folder:
        file = _private(Path(folder) / "kubeconfig", kubeconfig)
        yield login({**os.environ, "KUBECONFIG": str(file)}, folder)


def login(environment: Environment, folder: Path | str) -> Login:
    """Logs in when first asked, and anew every TOKEN_SECONDS. The folder is private and holds the
    kubeconfig."""
    made, until = environment, -math.inf

    def current() -> Environment:
        nonlocal made, until
        if time.monotonic() >= until:
            made, until = _logged_in(environment, folder), time.monotonic() + TOKEN_SECONDS
        return made

    return current


def _logged_in(environment: Environment, folder: Path | str) -> Environment:
    """The environment with another KUBECONFIG: the current one, with a token in place of the
    program that gives one. The same environment where there is no cluster or no such program;
    kubectl itself then says what is wrong."""
    try:
        shown = kubectl_with(lambda: environment)(
            "config", "view", "--minify", "--flatten", "--raw", "--output=json"
        )
    except (RuntimeError, OSError):
        return environment
    config = json.loads(shown)
    for entry in config.get("users") or []:
        plugin = entry["user"].pop("exec", None)
        if plugin and (token := _token(plugin, environment)):
            entry["user"]["token"] = token
            return {
                **environment,
                "KUBECONFIG": str(_private(Path(folder) / "logged-in", json.dumps(config))),
            }
    return environment


def _token(plugin: Object, environment: Environment) -> str | None:
    """As kubectl asks a credential plugin; None where that gives none."""
    info = {
        "kind": "ExecCredential",
        "apiVersion": plugin["apiVersion"],
        "spec": {"interactive": False},
    }
    env = {each["name"]: each["value"] for each in plugin.get("env") or []}
    try:
        done = subprocess.run(
            [plugin["command"], *(plugin.get("args") or [])],
            capture_output=True,
            text=True,
            env={**environment, **env, "KUBERNETES_EXEC_INFO": json.dumps(info)},
        )
        return json.loads(done.stdout)["status"]["token"]
    except (OSError, ValueError, KeyError):
        return None


def _private(file: Path, text: str) -> Path:
    """The file with this text, which only its owner may read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    return file
