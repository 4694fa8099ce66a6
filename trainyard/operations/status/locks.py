"""Locks of a stack's state: who updates the stack, or has left its lock when it was killed.

A self-managed back end of Pulumi has a file for each lock, in .pulumi/locks/organization/<project>/<stack>, with
process, user, host and time (pulumi 3.259, pkg/backend/diy/lock.go). It is read in a folder and in a bucket of S3.
Pulumi's own service and the buckets of other clouds are not asked.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from trainyard.live.state import back_end
from trainyard.settings.reading.reader import project_name

ENGINE = "pulumi"
"""Name of the process that takes a lock."""


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock of an update. A preview takes none."""

    pid: int
    """0 where the engine was killed before it had written the file."""
    user: str
    host: str
    since: str
    """Time as Pulumi writes it."""

    @property
    def lives(self) -> bool | None:
        """The engine still runs; None where this machine cannot know it, because it runs on another one."""
        if not self.pid or self.host != socket.gethostname():
            return None
        return _lives(self.pid)


def locks_of(stack: str) -> tuple[Lock, ...]:
    """The locks of a stack in the back end of the Pulumi CLI; none where the back end is another one, or does not
    let us read them."""
    url = back_end()
    at = urlsplit(url)
    try:
        if at.scheme == "file":
            root = url.removeprefix("file://").partition("?")[0]
            return tuple(map(_lock, _in_folder(Path(root).expanduser() / _folder(stack))))
        if at.scheme == "s3":
            prefix = "/".join(filter(None, [at.path.strip("/"), _folder(stack)]))
            return tuple(map(_lock, _in_bucket(at.netloc, f"{prefix}/", parse_qs(at.query))))
    except (OSError, BotoCoreError, ClientError):
        pass
    return ()


def _folder(stack: str) -> str:
    """Folder of the locks of a stack, such as dev or organization/<project>/dev."""
    *_, project, name = ["", *stack.split("/")]
    return f".pulumi/locks/organization/{project or project_name(Path())}/{name}"


def _in_folder(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("*.json")):
        try:
            yield file.read_text()
        except FileNotFoundError:  # the update has just ended
            continue


def _in_bucket(bucket: str, prefix: str, options: dict[str, list[str]]) -> Iterator[str]:
    """Texts of the objects below a prefix. `options`: those of the back end's URL (gocloud.dev, s3blob)."""
    given = {name: values[0] for name, values in options.items()}
    session = boto3.Session(profile_name=given.get("profile"), region_name=given.get("region"))
    s3 = session.client("s3", endpoint_url=_endpoint(given.get("endpoint")))
    for each in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ()):
        try:
            yield s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read().decode()
        except s3.exceptions.NoSuchKey:  # the update has just ended
            continue


def _endpoint(given: str | None) -> str | None:
    return f"https://{given}" if given and "://" not in given else given


def _lock(text: str) -> Lock:
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        found = {}
    return Lock(
        pid=int(found.get("pid") or 0),
        user=str(found.get("username", "")),
        host=str(found.get("hostname", "")),
        since=str(found.get("timestamp", "")),
    )


def _lives(pid: int) -> bool:
    """An engine has this process id. One that is only a zombie, and another program, are none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # no Linux
        return True
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name.startswith(ENGINE) and rest.split()[0] != "Z"
