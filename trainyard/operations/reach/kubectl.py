"""kubectl with one login for many calls: `aws eks get-token` takes longer than the rest of a call."""

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

from trainyard.operations.reach.other_programs import not_on_path

Object = dict[str, Any]
Environment = Mapping[str, str]
Login = Callable[[], Environment]
"""Returns environment variables whose KUBECONFIG holds a token."""
Kubectl = Callable[..., str]
"""Arguments of kubectl → its output; RuntimeError with its error message."""
TOKEN_SECONDS = 600
"""Seconds for which a token is used. EKS accepts it for 14 minutes."""
UNSERVED = "the server doesn't have a resource type"
"""Part of kubectl's message where the API server does not serve a kind."""
FORBIDDEN, NOT_FOUND = "(Forbidden)", "(NotFound)"
"""Parts of kubectl's messages of which another try has no better answer. NOT_FOUND is also that of a path which the
API server does not serve."""


def kubectl_with(login: Login, *flags: str) -> Kubectl:
    """kubectl with a login, and with these flags in every call. Its output is text whatever a rank has logged: a rank
    that is killed may end within a character."""

    def run(*arguments: str) -> str:
        words = ["kubectl", *arguments, *flags]
        try:
            done = subprocess.run(
                words, capture_output=True, encoding="utf-8", errors="replace", env=login()
            )
        except FileNotFoundError:
            raise RuntimeError(not_on_path("kubectl")) from None
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"kubectl {arguments[0]} failed")
        return done.stdout

    return run


@contextmanager
def logged_in(environment: Environment) -> Iterator[Login]:
    """A login whose kubeconfig is deleted at the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield login(environment, folder)


@contextmanager
def logged_in_to(kubeconfig: str) -> Iterator[Login]:
    """A login to the cluster of this kubeconfig, and to no other: KUBECONFIG names a private file
    with this text alone. The file is deleted at the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        file = _private(Path(folder) / "kubeconfig", kubeconfig)
        yield login({**os.environ, "KUBECONFIG": str(file)}, folder)


def login(environment: Environment, folder: Path | str) -> Login:
    """A login at the first call and again after TOKEN_SECONDS. The folder must be private: it holds
    the kubeconfig with the token."""
    logged_in_environment, until = environment, -math.inf

    def current() -> Environment:
        nonlocal logged_in_environment, until
        if time.monotonic() >= until:
            logged_in_environment = _logged_in(environment, folder)
            until = time.monotonic() + TOKEN_SECONDS
        return logged_in_environment

    return current


def _logged_in(environment: Environment, folder: Path | str) -> Environment:
    """The environment with another KUBECONFIG: the current one, with a token in place of the
    credential plugin. The same environment where there is no cluster or no such plugin; kubectl
    itself then prints the error."""
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
    """The token of a credential plugin, called as kubectl calls it; None where it fails."""
    info = {
        "kind": "ExecCredential",
        "apiVersion": plugin["apiVersion"],
        "spec": {"interactive": False},
    }
    env = {variable["name"]: variable["value"] for variable in plugin.get("env") or []}
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
    """Write the text into the file, which only its owner can read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    return file
