"""Settings with which programs work in the world: pulumi, terraform, kubectl, helm and aws.

A program of any kind needs nothing else: `eval "$(python -m rehearsal env)"`.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from pathlib import Path

from rehearsal import charts, paths, world
from rehearsal.aws.identity import DEVELOPER_KEY
from rehearsal.providers import install

CONFIG = paths.STATE / "config"
"""Files that programs are told of."""
PROFILES = CONFIG / "aws"
"""File that is for programs what ~/.aws/config is for people."""
KUBECONFIG = paths.STATE / "kubeconfig"
VENV = Path(sys.executable).parent
PROFILE = "developer"
"""The AWS profile of whoever names none."""
REGION = "us-east-1"
"""The region of whoever names none."""


def variables(region: str = REGION) -> dict[str, str]:
    """The environment in which programs work against the world, without PATH."""
    return {
        "PULUMI_HOME": str(paths.PULUMI_HOME),
        "PULUMI_BACKEND_URL": backend_url(),
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(CONFIG / "passphrase"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        **account_variables(region),
        "KUBECONFIG": str(KUBECONFIG),
        "KUBECACHEDIR": str(paths.STATE / "kube-cache"),
        "HELM_CACHE_HOME": str(paths.STATE / "helm/cache"),
        "HELM_CONFIG_HOME": str(paths.STATE / "helm/config"),
        "HELM_DATA_HOME": str(paths.STATE / "helm/data"),
        "REHEARSAL_CHARTS": str(charts.pinned_mirror()),
    }


def backend_url() -> str:
    """Where Pulumi's states are kept, without the sidecars that a killed engine leaves half written:
    after one of them there is only `failed to load checkpoint: EOF`, for ever (gocloud.dev fileblob
    writes it in place, the state beside it not).
    """
    return f"file://{paths.BACKEND}?metadata=skip"


def account_variables(region: str = REGION) -> dict[str, str]:
    """Environment variables that say who one is and where AWS is."""
    now = paths.world()
    return {
        "AWS_ENDPOINT_URL": now.account_url,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,  # what version 1 of the AWS CLI reads
        "AWS_ACCESS_KEY_ID": DEVELOPER_KEY,
        "AWS_SECRET_ACCESS_KEY": now.developer_secret,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(PROFILES),
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def search_path() -> str:
    """PATH entries that come first: our programs and the virtual environment's AWS CLI."""
    return f"{paths.BIN}:{VENV}"


def own_programs() -> Path:
    """A folder with the plugin of the AWS CLI that carries a tunnel."""
    folder = paths.STATE / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    program(folder / "session-manager-plugin", f'{ours()} -m rehearsal.tunnel "$@"\n')
    return folder


def ours() -> str:
    """The beginning of a shell command that runs Python with this rehearsal and its state."""
    return (
        f"PYTHONPATH={shlex.quote(str(paths.HOME))} TRAINYARD_REHEARSAL="
        f"{shlex.quote(str(paths.STATE))} {shlex.quote(f'{VENV}/python')}"
    )


def program(file: Path, script: str) -> None:
    """Write a shell script that can be run."""
    file.write_text(f"#!/bin/sh\n{script}")
    file.chmod(0o755)


def complete(given: dict[str, str]) -> dict[str, str]:
    """Everything a program gets that works against the world. `given`: variables()."""
    path = f"{search_path()}:{os.environ.get('PATH', os.defpath)}"
    return world.environment() | given | {"PATH": path}


def prepare(profile: str = PROFILE) -> None:
    """Make what the variables name: folders, the passphrase, the profile, Pulumi's plugins."""
    for folder in (paths.BACKEND, CONFIG, paths.PULUMI_HOME, paths.LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    _passphrase(CONFIG / "passphrase")
    write_profile(profile)
    install.install(paths.PULUMI_HOME, paths.BIN)


def write_profile(profile: str) -> None:
    """An AWS profile of that name is the developer."""
    section = (
        f"[profile {profile}]\naws_access_key_id = {DEVELOPER_KEY}\n"
        f"aws_secret_access_key = {paths.world().developer_secret}\n"
    )
    before = PROFILES.read_text() if PROFILES.exists() else ""
    if section not in before:
        PROFILES.write_text(before + section)


def _passphrase(file: Path) -> None:
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(16))
