"""Address from which other machines can install this tool."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from urllib.parse import unquote, urlsplit

SSH = re.compile(r"([\w.-]+@[\w.-]+):(?!/)(.+)")
"""Address of a repository as git writes it for SSH."""


def installed_from() -> str:
    """Address from which pip has installed this tool (PEP 610); of a clone, its origin at the commit that is checked
    out. Empty where other machines cannot reach it, or where nobody knows it."""
    try:
        told = metadata.distribution("trainyard").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    about = json.loads(told or "{}")
    address, vcs = about.get("url", ""), about.get("vcs_info")
    if address.startswith("file:"):
        return _origin(unquote(urlsplit(address).path))
    return f"{vcs['vcs']}+{address}@{vcs['commit_id']}" if vcs else address


def _origin(folder: str) -> str:
    """Address of the origin of a clone, without a password, at its commit; empty where the folder is no clone, or its
    origin a folder."""
    address, commit = _git(folder, "remote", "get-url", "origin"), _git(folder, "rev-parse", "HEAD")
    if found := SSH.fullmatch(address):
        address = f"ssh://{found[1]}/{found[2]}"
    parts = urlsplit(address)
    if parts.scheme not in ("https", "ssh") or not parts.hostname or not commit:
        return ""
    if parts.scheme == "https":
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return f"git+{parts.geturl()}@{commit}"


def _git(folder: str, *words: str) -> str:
    """Output of git; empty where it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
