"""Where the state of a stack is kept, and whether it can be lost there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from trainyard.live.questions.account import Account
from trainyard.problems import InputError, InputWarning


def back_end() -> str:
    """URL of the back end that the Pulumi CLI would use: that of PULUMI_BACKEND_URL, else of Pulumi.yaml,
    else of the last `pulumi login`; empty where there is none (pulumi/pulumi, workspace.GetCurrentCloudURL)."""
    if url := os.environ.get("PULUMI_BACKEND_URL"):
        return url
    project = yaml.safe_load(Path("Pulumi.yaml").read_text())
    if url := (project.get("backend") or {}).get("url"):
        return url
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    try:
        return json.loads((home / "credentials.json").read_text()).get("current") or ""
    except OSError:
        return ""


def state_checks(
    account: Account, url: str
) -> dict[str, Callable[[], Iterator[InputError | InputWarning]]]:
    """The questions about a back end. Pulumi's own service needs none: it locks, and keeps old versions."""
    at = urlsplit(url)
    if at.scheme == "file":
        return {"the state": lambda: iter([on_this_machine(url)])}
    if at.scheme != "s3":
        return {}
    bucket = at.netloc
    return {
        "old versions of the state": lambda: lost(bucket, account.keeps_versions(bucket)),
        "who reads the state": lambda: open_to_all(bucket, account.is_public(bucket)),
    }


def on_this_machine(url: str) -> InputWarning:
    """No lock of Pulumi's reaches another machine."""
    return InputWarning(
        path="account",
        text=(
            f"the state is kept on this machine, at {url}: `pulumi up` on another machine knows nothing of"
            " what exists, and nothing keeps it waiting for an update here. Run"
            " `pulumi login 's3://<bucket>?region=<region>'`, or `pulumi login` for Pulumi's own service"
        ),
    )


def lost(bucket: str, keeps_versions: bool) -> Iterator[InputWarning]:
    """A state that is damaged or deleted cannot be brought back."""
    if not keeps_versions:
        yield InputWarning(
            path="account",
            text=(
                f"bucket {bucket} keeps the state, and no old versions of it: a damaged state cannot be"
                f" brought back. Run `aws s3api put-bucket-versioning --bucket {bucket}"
                " --versioning-configuration Status=Enabled`"
            ),
        )


def open_to_all(bucket: str, public: bool) -> Iterator[InputError]:
    """The state names everything that exists, and who may write it can delete the environment."""
    if public:
        yield InputError(
            path="account",
            must="keep the state where not everybody can read it",
            got=f"bucket {bucket}, whose policy is public",
            fix=(
                f"run `aws s3api put-public-access-block --bucket {bucket}"
                " --public-access-block-configuration RestrictPublicBuckets=true,BlockPublicPolicy=true,"
                "BlockPublicAcls=true,IgnorePublicAcls=true`"
            ),
        )
